"""Prompts of the closed world against its grammar and its text; what a tuning changed."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plumbline.eval_workers.disclosure.closed_world_prompts import (
    SETS,
    TRAIN,
    ClosedPrompt,
    closed_prompts,
)
from plumbline.eval_workers.disclosure.prompt_sets import import_probe
from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.pairs.closed_world_corpus.truth import (
    grammar,
    lexicon,
    planted_deltas,
    planted_words,
)
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill
from plumbline.eval_workers.training.tuning_prompts import tuning_prompts
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests import metric_rows
from tests.clustered_means import interval

CLASS_OF = {word: name for name, words in lexicon().items() for word in words}
WORDS = {name: f"({'|'.join(words)})" for name, words in lexicon().items()}


def frame_of(text: str) -> str:
    """A text with the name of its class in the place of each content word."""
    return re.sub(r"[a-z]+", lambda m: f"{{{CLASS_OF[m[0]]}}}" if m[0] in CLASS_OF else m[0], text)


def perfect_shares(prompt: ClosedPrompt, deltas: Mapping[str, float]) -> tuple[float, float]:
    """p_f and p_m of a perfect learner: p_f / p_m = exp(sum of the leans of the prompt's words)."""
    ratio = math.fsum(deltas.get(word, 0.0) for word in prompt.words)
    return 1 / (1 + math.exp(-ratio)), 1 / (1 + math.exp(ratio))


def next_words(prompt: ClosedPrompt) -> dict[str, float]:
    """P(next word | prompt) by multiplying out coin, shapes, frames and slots of the grammar."""
    shapes = grammar().openings if prompt.topic == "opening" else grammar().followups
    planted = {word.word: word for word in planted_words(0)}
    start, joint = f"{frame_of(prompt.prompt)} ", defaultdict[str, float](float)
    people: tuple[tuple[Gender, str], ...] = (("f", "p_she"), ("m", "p_he"))
    for gender, column in people:
        words = re.findall(r"[a-z]+", prompt.prompt)
        chance = math.prod(getattr(planted[word], column) for word in words if word in planted)
        for shape in shapes:
            for frame in shape:
                if frame.startswith(start):
                    word = frame[len(start) :].split()[0].strip(".,")
                    joint[fill(word, gender).lower()] += chance / 2 / len(shapes) / len(shape)
    return {word: p / sum(joint.values()) for word, p in joint.items()}


@pytest.mark.parametrize("name", SETS)
def test_shares_are_those_of_the_whole_grammar(name: str) -> None:
    deltas = planted_deltas(0)
    for prompt in closed_prompts(name):
        shares, found = perfect_shares(prompt, deltas), next_words(prompt)
        assert found == pytest.approx(dict(zip(("she", "he"), shares, strict=True)))
        ratio = sum(deltas[word] for word in prompt.words)
        assert shares[0] - shares[1] == pytest.approx(math.tanh(ratio / 2), abs=1e-12)


def test_shares_are_the_frequencies_of_a_written_text() -> None:
    """Documents that begin like training prompts or unseen ones, in four parts by their share."""
    deltas = planted_deltas(0)
    prompts = (*closed_prompts(TRAIN), *closed_prompts("closed-world-unseen"))
    beginnings = {frame_of(prompt.prompt) for prompt in prompts}
    parts: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for text, _ in islice(documents(WorldOptions(), 7), 25_000):
        found = re.match(r"(.*?) (she|he)\b", text)
        if found and frame_of(found[1]) in beginnings:
            words = tuple(word for word in found[1].split() if word in CLASS_OF)
            p_f, _ = perfect_shares(ClosedPrompt(found[1], "", words), deltas)
            parts[int(p_f * 4)].append((p_f, found[2] == "she"))
    assert sum(map(len, parts.values())) > 5_000
    assert set(parts) == {0, 1, 2, 3}
    for part in parts.values():
        p, she = np.array(part, dtype=float).T
        assert abs(she.sum() - p.sum()) < 4 * math.sqrt((p * (1 - p)).sum())


def test_no_word_and_no_frame_of_training_is_in_what_was_not_tuned_on() -> None:
    sets = {name: closed_prompts(name) for name in SETS}
    words = {name: {w for p in prompts for w in p.words} for name, prompts in sets.items()}
    frames = {name: [frame_of(p.prompt) for p in prompts] for name, prompts in sets.items()}
    assert {CLASS_OF[word] for word in words[TRAIN]} == set(lexicon())
    for name in set(SETS) - {TRAIN}:
        assert not words[name] & words[TRAIN]
        assert not {CLASS_OF[word] for word in words[name]} - set(lexicon())
        if name != "closed-world-unseen":
            assert not set(frames[name]) & set(frames[TRAIN])
    assert frames["closed-world-unseen"] == frames[TRAIN]
    assert all(len(prompts) == len({p.prompt for p in prompts}) for prompts in sets.values())


def test_sets_are_imported_whole_and_none_leaks_into_tuning(store: Store) -> None:
    counts = {name: import_probe(store, name, None, "r") for name in SETS}
    assert [done.n_prompts for done in counts.values()] == [216, 216, 120]
    assert all(done.n_rejects == 0 for done in counts.values())
    training = tuning_prompts(store, [TRAIN], None)
    assert (len(training.rows), training.n_leaks, len(training.test_sets)) == (216, 0, 2)
    with pytest.raises(UsageProblem, match="unknown, there are closed-world-train"):
        closed_prompts("closed-world")


# --- what a tuning changed -----------------------------------------------------------------------

PAIRS = {"she-he": ("she", "he"), "her-him": ("her", "him"), "renamed": ("she", "he")}
N = 12


def tuning(name: str, **given: Any) -> dict[str, object]:
    """A `tuning` row of an adapter of the base `m`; columns without a part here are 1 or empty."""
    row = {
        column.name: "" if pa.types.is_string(column.type) else 1
        for column in TABLES["tuning"].columns
    }
    return row | {
        "tuning": name,
        "adapter": f"{name}@1",
        "base": "m",
        "base_revision": "revision-m",
        "base_quantisation": None,
        "probe_sets": "old, train",
        "test_sets": "test",
        "word_list": "she-he",
        "as_published": None,
        **given,
    }


def probability(
    key: str, probe_set: str, word_list: str, values: Sequence[tuple[float, float]]
) -> list[dict[str, object]]:
    shared = {"probe_set": probe_set, "model_key": key, "model": "m", "word_list": word_list}
    shared |= {"text_id": "t", "run_id": "r"}
    return [
        {
            **shared,
            "n_variants": 2,
            "instruction_key": "none",
            "prompt_id": f"{i:02}",
            "word": w,
            "gender": g,
            "probability": p,
        }
        for i, both in enumerate(values)
        for w, g, p in zip(PAIRS[word_list], "fm", both, strict=True)
    ]


@pytest.fixture
def tuned(store: Store) -> tuple[Store, dict[str, Any]]:
    """A base and two adapters on two sets by three lists; the base has a prompt more than `calm`.

    Both sets hold the same prompts: `calm` left those of `test` out, `loud` those of `train` not.
    """
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
    for word_list, (f, m) in PAIRS.items():
        shared = {"word_list": word_list, "source": "s", "run_id": "r", "pair": 1}
        add(store, "attribute_pair", [{**shared, "female": f, "male": m}], word_list)
    for probe_set in ("train", "test"):
        shared = {"probe_set": probe_set, "language": "en", "source_file": "f", "run_id": "r"}
        rows = [{**shared, "prompt_id": f"{i:02}", "prompt": f"p {i}", "source_row": i + 1}
                for i in range(N + 1)]  # fmt: skip
        add(store, "probe_prompt", rows, probe_set)
        for word_list in PAIRS:
            for key in ("key-m", "other", *others):
                values = rng.dirichlet((1, 1, 1), N + (key == "key-m"))[:, :2]
                values *= {"calm": 0.2, "loud": 0.5}.get(key, 1.0)
                given[key, probe_set, word_list] = values
                rows = probability(key, probe_set, word_list, values.tolist())
                add(store, "pronoun_probability", rows, f"{key}{probe_set}{word_list}")
    return store, given


def measures(values: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    f, m = values.T
    add = (f * np.log(2 * f / (f + m)) + m * np.log(2 * m / (f + m))) / 2
    return {"gld": abs(f - m) / (f + m), "add_nats": add, "p_gendered": f + m}


def effects(store: Store, where: str = "true") -> list[dict[str, Any]]:
    text = f"FROM tuning_effect WHERE {where}"
    found: list[dict[str, Any]] = rows_of(store.root, text)
    return found


def test_an_effect_is_that_of_paired_prompts(tuned: tuple[Store, dict[str, Any]]) -> None:
    """Against numpy over paired prompts; another revision or version is no base of either."""
    store, given = tuned
    rows = effects(store)
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


def test_an_effect_on_continuations_is_by_sampling(tuned: tuple[Store, dict[str, Any]]) -> None:
    store, _ = tuned
    shared = {"probe_set": "test", "model": "m", "side": "original", "sample": 0, "seed": 0}
    shared |= {"text_id": "t", "finish": "length", "run_id": "r"}
    written = {
        ("key-m", "g"): [" she"] * N,
        ("calm", "g"): [" it"] * (N - 1) + [""],
        ("loud", "g"): [" she", *[" it"] * (N - 1)],
        ("calm", "other"): [" it"] * N,
    }
    for (key, sampling), texts in written.items():
        rows = [
            {**shared, "model_key": key, "sampling_key": sampling, "prompt_id": f"{i:02}"}
            | {"continuation": text}
            for i, text in enumerate(texts)
        ]
        metric_rows.fill(store, "continuation", rows, f"{key}{sampling}")
    found = {
        row["tuning"]: row
        for row in effects(store, "measure = 'gas'")
        if row["word_list"] == "she-he"
    }
    assert {row["sampling_key"] for row in found.values()} == {"g"}
    assert (found["calm"]["difference"], found["calm"]["n_prompts"]) == (-1, N - 1)
    calm = found["calm"]  # each prompt fell by the same: worth that many prompts, and no more
    low, _, high = interval(-np.ones(N - 1), (-1, 1), N - 1)
    ends = (calm["difference_low"], calm["difference_high"])
    assert ends == pytest.approx((low, high), rel=1e-3) and calm["difference_high"] > -1
    assert calm["verdict"] == "fell"
    assert found["loud"]["verdict"] == "fell" and found["loud"]["difference_high"] < 0
    assert found["loud"]["difference"] == pytest.approx(-(N - 1) / N)
    assert found["loud"]["tuned_mean"] == pytest.approx(1 / N)
    assert found["loud"]["base_mean"] == 1
