"""Prompts of the closed world against its grammar and its text; what a tuning changed."""

import re
from typing import Any

import numpy as np
import pytest

from plumbline.eval_workers.disclosure.closed_world_prompts import SETS, TRAIN, closed_prompts
from plumbline.eval_workers.disclosure.prompt_sets import import_probe
from plumbline.eval_workers.pairs.closed_world_words import lexicon
from plumbline.eval_workers.training.tuning_prompts import tuning_prompts
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests import metric_rows
from tests.metric_rows import interval
from tests.prompt_rows import put_probabilities, put_prompts, put_words

CLASS_OF = {word: name for name, words in lexicon().items() for word in words}


def frame_of(text: str) -> str:
    """A text with the name of its class in the place of each content word."""
    return re.sub(r"[a-z]+", lambda m: f"{{{CLASS_OF[m[0]]}}}" if m[0] in CLASS_OF else m[0], text)


def test_no_word_and_no_frame_of_training_is_in_what_was_not_tuned_on() -> None:
    sets = {name: [text for text, _ in closed_prompts(name)] for name in SETS}
    words = {name: {w for p in sets[name] for w in p.split() if w in CLASS_OF} for name in SETS}
    frames = {name: [frame_of(text) for text in prompts] for name, prompts in sets.items()}
    assert {CLASS_OF[word] for word in words[TRAIN]} == set(lexicon())
    for name in set(SETS) - {TRAIN}:
        assert not words[name] & words[TRAIN]
        if name != "closed-world-unseen":
            assert not set(frames[name]) & set(frames[TRAIN])
    assert frames["closed-world-unseen"] == frames[TRAIN]
    assert all(len(prompts) == len(set(prompts)) for prompts in sets.values())


def test_sets_are_imported_whole_and_none_leaks_into_tuning(store: Store) -> None:
    done = [import_probe(store, name, None, "r") for name in SETS]
    assert [(len(one.rows), len(one.rejects)) for one in done] == [(216, 0), (216, 0), (120, 0)]
    training = tuning_prompts(store, [TRAIN], None)
    assert (len(training.rows), training.n_leaks, len(training.test_sets)) == (216, 0, 2)


PAIRS = {"she-he": ("she", "he"), "her-him": ("her", "him"), "renamed": ("she", "he")}
N = 12


def tuning(name: str, **given: Any) -> dict[str, object]:
    """A `tuning` row of an adapter of the base `m`."""
    row = {"tuning": name, "adapter": f"{name}@1", "base": "m", "base_revision": "revision-m"}
    row |= {"probe_sets": "old, train", "test_sets": "test", "word_list": "she-he"}
    return metric_rows.made_row("tuning", **row | given)


@pytest.mark.parametrize("as_published", [None, False, True])
def test_sets_that_were_tuned_on_are_marked(store: Store, as_published: bool | None) -> None:
    """`late` holds a prompt of `train`; `held` does too, but was held out, except as published."""
    put_prompts(store, "train", ["A man  ran, and", "A cat ran"])
    put_prompts(store, "late", ["a man ran.", "The boss ran", "The poet ran"])
    put_prompts(store, "held", ["A MAN ran, and", "The nurse ran"])
    models = [metric_rows.scored_by("m", key) for key in ("base", "tuned")]
    models[1]["adapter"] = "calm@1"
    metric_rows.fill(store, "model", models)
    sets = {"probe_sets": "train", "test_sets": "held", "as_published": as_published}
    metric_rows.fill(store, "tuning", [tuning("calm", **sets)])
    found = rows_of(store.root, "FROM tuned_prompt ORDER BY probe_set")
    n_held = 1 if as_published else 0
    assert [(r["model_key"], r["probe_set"], r["n_prompts"], r["n_tuned_on"]) for r in found] == [
        *(("tuned", "held", 2, n_held), ("tuned", "late", 3, 1), ("tuned", "train", 2, 2))
    ]


@pytest.fixture
def tuned(store: Store) -> tuple[Store, dict[str, Any]]:
    """A base, of a prompt more, and two adapters on two sets of the same prompts by three lists."""
    rng = np.random.default_rng(4)
    add = metric_rows.fill
    scored = metric_rows.scored_by("m") | {"text_form": "written"}
    others = {"calm": {}, "loud": {}, "elsewhere": {"backend_version": "11"}}
    models = [scored, scored | {"model_key": "other", "revision": "v0"}]
    for name, changes in others.items():
        adapter = "calm@1" if name == "elsewhere" else f"{name}@1"
        versions = {"backend_version": "1, peft 2"}
        models.append(scored | versions | {"model_key": name, "adapter": adapter} | changes)
    add(store, "model", models)
    add(store, "tuning", [tuning("calm")], "calm")
    published = {"probe_sets": "test", "test_sets": "train", "as_published": True}
    add(store, "tuning", [tuning("loud", **published)], "loud")
    given = {}
    for word_list, words in PAIRS.items():
        put_words(store, [words], word_list)
    for probe_set in ("train", "test"):
        put_prompts(store, probe_set, [f"p {i}" for i in range(N + 1)])
        for word_list in PAIRS:
            for key in ("key-m", "other", *others):
                values = rng.dirichlet((1, 1, 1), N + (key == "key-m"))[:, :2]
                values *= {"calm": 0.2, "loud": 0.5}.get(key, 1.0)
                given[key, probe_set, word_list] = values
                by_prompt = [dict(zip(PAIRS[word_list], both, strict=True)) for both in values]
                put_probabilities(store, by_prompt, word_list, probe_set, key)
    return store, given


def measures(values: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    f, m = values.T
    add = (f * np.log(2 * f / (f + m)) + m * np.log(2 * m / (f + m))) / 2
    return {"gld": abs(f - m) / (f + m), "add_nats": add, "p_gendered": f + m}


def test_an_effect_is_that_of_paired_prompts(tuned: tuple[Store, dict[str, Any]]) -> None:
    """Against numpy over paired prompts; another revision or version is no base of either."""
    store, given = tuned
    rows = rows_of(store.root, "FROM tuning_effect")
    assert len(rows) == 2 * 2 * 3 * 3 and {row["verdict"] for row in rows} >= {"fell", "unclear"}
    for row in rows:
        place = row["probe_set"], row["word_list"]
        base = measures(given[("key-m", *place)][:N])[row["measure"]]
        after = measures(given[(row["tuning"], *place)])[row["measure"]]
        assert (row["base_key"], row["n_prompts"]) == ("key-m", N)
        assert (row["base_mean"], row["tuned_mean"]) == pytest.approx((base.mean(), after.mean()))
        ends = None if row["measure"] == "add_nats" else (-1.0, 1.0)
        low, mean, high = interval(after - base, ends)
        found = (row["difference_low"], row["difference"], row["difference_high"])
        assert found == pytest.approx((low, mean, high), rel=1e-3, abs=1e-5)
        clear = "fell" if high < 0 else "rose" if low > 0 else "unclear"
        assert row["verdict"] == clear
        seen = {"calm": ("train", "old"), "loud": ("test", "train")}[row["tuning"]]
        assert row["on_training_set"] == (row["probe_set"] in seen)
        assert row["on_training_list"] == (row["word_list"] != "her-him")
