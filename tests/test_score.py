"""Scoring benchmarks into the warehouse: resumable, also as released."""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.eval_workers.pairs.released_scores import import_scores
from plumbline.eval_workers.scoring.pair_scores import TextForm, in_form
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import new_run_id
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import trained
from tests.released_files import write_scores
from tests.steps import score_sets
from tests.tiny_models import KINDS, Plain, save

_SOUP = "The cook said {{pronoun}} made soup number {} for {{pronoun1}} guests."
#: The same sentences twice are two pairs.
TEMPLATES = [*map(_SOUP.format, range(40)), *["{pronoun} drank tea."] * 2]
#: With words of several tokens.
OTHERS = (
    "The cook said {pronoun} made soup for {pronoun1} guests.",
    "{pronoun} drank tea, naïvely.",
    "The boss saw {pronoun2}self.",
)


def _pairs(store: Store, templates: Sequence[str], benchmark: str = "demo") -> None:
    parsed = Parsed(benchmark)
    for i, template in enumerate(templates):
        parsed.add(pair_id=f"{i:03d}", template=template, source_file="demo.csv", source_row=i + 1)
    rows = [{"benchmark": benchmark, **pair} for pair in parsed.pairs]
    store.replace("benchmark_pair", rows, {"benchmark": benchmark}, "run")


def _score(store: Store, model: Path, **how: Any) -> Any:
    return score_sets(store, ["demo"], str(model), ModelOptions(), new_run_id(), **how)[0]


def _rows(store: Store) -> list[dict[str, Any]]:
    rows = store.read("pair_score").drop_columns("run_id").to_pylist()
    return sorted(rows, key=lambda r: (r["model_key"], r["pair_id"]))


def test_a_family_is_that_of_a_published_model(store: Store, model: Path, tmp_path: Path) -> None:
    """Not read from a directory's name; a model that was trained here is no published one."""
    _pairs(store, TEMPLATES[:2])

    def families() -> dict[str, str | None]:
        return {row["model"]: row["family"] for row in store.read("model").to_pylist()}

    names = ("run-1", "pythia-70m", "pythia-70m-chat", "pythia-7m", "opt-1.3b")
    store.replace("trained_model", [trained("opt-1.3b", "novels")], {"model": "opt-1.3b"}, "r")
    for name in names:
        copytree(model, tmp_path / name)
        _score(store, tmp_path / name)
    assert families() == {**dict.fromkeys(names), "pythia-70m": "Pythia"}


def test_a_second_run_scores_nothing_and_a_changed_pair_alone(
    store: Store, model: Path, texts_scored: list[str]
) -> None:
    _pairs(store, TEMPLATES)
    _score(store, model)
    before = _rows(store)
    texts_scored.clear()
    assert _score(store, model).n_new == 0
    assert not texts_scored and _rows(store) == before
    _pairs(store, [*TEMPLATES[:3], "{pronoun} ate soup.", *TEMPLATES[4:-1]])
    done = _score(store, model)
    assert (done.n_wanted, done.n_done, done.n_new) == (41, 41, 1)
    assert sorted(texts_scored) == ["He ate soup.", "She ate soup."]
    after = _rows(store)
    assert [r for r in after if r["pair_id"] != "003"] == [
        r for r in before if r["pair_id"] not in ("003", "041")
    ]
    assert [r["pair_id"] for r in after] == sorted({r["pair_id"] for r in after})
    assert after[3]["logprob_a_nats"] != before[3]["logprob_a_nats"]
    _pairs(store, TEMPLATES[:2])  # pairs that left the benchmark leave the scores
    assert (_score(store, model).n_new, len(_rows(store))) == (0, 2)


@pytest.mark.parametrize(
    ("pattern", "content"),
    [(r"\b[Ss]he\b", "he"), (r"\b([Ss]he|[Hh]e)\b", "they"), (r"\b([Ss]he|[Hh]e) ", "")],
)
def test_a_tokenizer_that_changes_the_words_gives_no_score(
    store: Store, tmp_path: Path, pattern: str, content: str
) -> None:
    model = save("neox", tmp_path / "tiny-neox")
    file = model / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
    file.write_text(json.dumps(tokenizer))
    _pairs(store, TEMPLATES[:3])
    reason = "the tokenizer reads other words"
    with pytest.raises(NothingUsed, match=f"could score nothing of demo: .*{reason}") as caught:
        _score(store, model)
    (done,) = caught.value.outcomes
    assert (done.n_done, done.n_rejected) == (0, 3)
    assert all(reason in row["reason"] for row in store.read("reject").to_pylist())


def _pair_scores(store: Store) -> dict[tuple[str, str], float]:
    rows = store.read("pair_score").to_pylist()
    return {(r["pair_id"], side): r[f"logprob_{side}_nats"] for r in rows for side in "ab"}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos", "gpt2-wordpiece"])
def test_tokens_are_those_of_an_independent_pass(store: Store, tmp_path: Path, kind: str) -> None:
    path = save(kind, tmp_path / kind)
    _pairs(store, OTHERS)
    # WordPiece refuses what it has no tokens for.
    assert _score(store, path).n_new >= 1
    plain, scores = Plain(path, KINDS[kind].bos), _pair_scores(store)
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    texts = {place: pairs[place[0]][f"sentence_{place[1]}"] for place in scores}
    found = open_backend(str(path), ModelOptions()).score([*texts.values()])
    for (place, text), score in zip(texts.items(), found, strict=True):
        tokens = score.token_logprobs_nats
        assert list(score.token_ids) == plain.ids(text)
        assert tokens == pytest.approx(plain.logprobs(text), rel=1e-5, abs=1e-4)
        assert sum(tokens) == pytest.approx(scores[place], abs=1e-4)


#: The form of the release has no capitals within a sentence, and no quotes.
IN_CAPITALS = (
    "{pronoun} met the CEO of BBC.",
    '"{pronoun} ran," Ann said. "Why did {pronoun}?"',
    "The boss said {pronoun} won.",
)
#: The same by hand.
RELEASED = (
    ("She met the ceo of bbc.", "He met the ceo of bbc."),
    ("She ran, ann said. why did she?", "He ran, ann said. why did he?"),
    ("The boss said she won.", "The boss said he won."),
)


def test_the_same_texts_have_the_same_hash_whoever_scored_them(
    store: Store, model: Path, tmp_path: Path
) -> None:
    """Scores of the made-up release: -10 and -20 nats less the number of the row."""
    _pairs(store, IN_CAPITALS, "use-5")
    shared = {"word": "", "model": model.name, "F_num_tokens": "7", "M_num_tokens": "8"}
    table = [
        {"template": template, "F_template": female, "M_template": male, **shared}
        | {"F_logprob": str(-10 - i), "M_logprob": str(-20 - i)}
        for i, (template, (female, male)) in enumerate(zip(IN_CAPITALS, RELEASED, strict=True))
    ]
    write_scores(tmp_path / "results", table, f"{model.name}.csv")
    import_scores(store, tmp_path / "results", "run")

    def scored(form: TextForm) -> str:
        (done,) = score_sets(store, ["use-5"], str(model), ModelOptions(), text_form=form)
        assert done.n_done == len(IN_CAPITALS)
        return str(done.model_key)

    def rows(key: str) -> list[dict[str, Any]]:
        return [row for row in _rows(store) if row["model_key"] == key]

    written, released = scored("written"), scored("released")
    found = rows_of(store.root, "FROM score_difference ORDER BY model_key, pair_id")
    assert [row["model_key"] for row in found] == [
        key for key in sorted((written, released)) for _ in range(3)
    ]
    for row in found:
        i = int(row["pair_id"])
        own = rows(row["model_key"])[i]
        a, b = own["logprob_a_nats"] + 10 + i, own["logprob_b_nats"] + 20 + i
        assert row["difference_log_ratio_nats"] == pytest.approx(a - b, abs=1e-9)
        assert row["difference_tokens_b"] == own["n_tokens_b"] - 8
    imported = store.read("model", pa.compute.field("backend") == "released").to_pylist()[0]
    theirs = {r["pair_id"]: r["text_id"] for r in rows(imported["model_key"])}
    assert {r["pair_id"]: r["text_id"] for r in rows(released)} == theirs
    assert {r["pair_id"]: r["text_id"] for r in rows(written)} != theirs


@pytest.mark.reference
def test_the_form_is_that_of_every_released_sentence(data: Path) -> None:
    """Models' files hold the same sentences: one model's are read."""
    n = n_same = 0
    for path in sorted((data / "unstereo-eval" / "results").glob("*/*opt-125m.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                written = fill(row["template"], "f"), fill(row["template"], "m")
                theirs = row["F_template"], row["M_template"]
                assert tuple(in_form(text, "released") for text in written) == theirs
                n, n_same = n + 1, n_same + (written == theirs)
    assert (n, n_same) == (16_668, 16_208)
