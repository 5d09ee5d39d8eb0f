"""Scoring benchmarks into the warehouse: resumable, never shared, nothing lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.warehouse.run_records import new_run_id
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import trained
from tests.tiny_models import one_by_one, save

TEMPLATES = [
    *(
        f"The cook said {{pronoun}} made soup number {i} for {{pronoun1}} guests."
        for i in range(40)
    ),
    "{pronoun} drank tea.",
    "{pronoun} drank tea.",  # the same sentences twice are two pairs
]


def _pairs(store: Store, templates: Sequence[str], benchmark: str = "demo") -> None:
    parsed = Parsed(benchmark)
    for i, template in enumerate(templates):
        parsed.add(pair_id=f"{i:03d}", template=template, source_file="demo.csv", source_row=i + 1)
    rows = [{"benchmark": benchmark, **pair} for pair in parsed.pairs]
    store.replace("benchmark_pair", rows, {"benchmark": benchmark}, "run")


def _score(store: Store, model: Path, **options: Any) -> Any:
    return score_benchmarks(store, str(model), ["demo"], ModelOptions(**options), new_run_id())[0]


def _rows(store: Store) -> list[dict[str, Any]]:
    rows = store.read("pair_score").drop_columns("run_id").to_pylist()
    return sorted(rows, key=lambda r: (r["model_key"], r["pair_id"]))


def test_every_pair_has_its_row_and_its_model(
    store: Store, model: Path, texts_scored: list[str]
) -> None:
    _pairs(store, TEMPLATES)
    done = _score(store, model)
    assert (done.n_pairs, done.n_scored, done.n_new, done.n_rejected) == (42, 42, 42, 0)
    assert len(texts_scored) == len(set(texts_scored)) == 82
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    rows = _rows(store)
    texts = [pairs[row["pair_id"]][f"sentence_{g}"] for row in rows for g in "ab"]
    expected = one_by_one(model, "<|endoftext|>", texts)
    for row, f, m in zip(rows, expected[::2], expected[1::2], strict=True):
        assert abs(row["logprob_a_nats"] - f[0]) < 1e-4
        assert abs(row["logprob_b_nats"] - m[0]) < 1e-4
        assert (row["n_tokens_a"], row["n_tokens_b"]) == (f[1], m[1])
    (identity,) = store.read("model").to_pylist()
    assert identity["model"] == "tiny-neox" and identity["dtype"] == "float32"
    assert {row["model_key"] for row in rows} == {identity["model_key"]} == {done.model_key}
    assert identity["n_parameters"] > 0


def test_a_family_is_that_of_a_published_model_or_is_named(
    store: Store, model: Path, tmp_path: Path
) -> None:
    """Not read from a directory's name; a model that was trained here is no published one."""
    _pairs(store, TEMPLATES[:2])

    def families() -> dict[str, str | None]:
        return {row["model"]: row["family"] for row in store.read("model").to_pylist()}

    names = ("run-1", "pythia-70m", "pythia-70m-chat", "pythia-7m", "opt-1.3b")
    store.replace("trained_model", [trained("opt-1.3b", "novels")], {"model": "opt-1.3b"}, "r")
    for name in names:
        copytree(model, tmp_path / name)
        _score(store, tmp_path / name)
    expected: dict[str, str | None] = {**dict.fromkeys(names), "pythia-70m": "Pythia"}
    assert families() == expected
    key = _score(store, tmp_path / "run-1", family="mine").model_key
    expected["run-1"] = "mine"
    assert families() == expected
    done = _score(store, tmp_path / "run-1")
    assert (done.n_new, done.model_key, families()) == (0, key, expected), "a name given stays"


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
    assert (done.n_pairs, done.n_scored, done.n_new) == (41, 41, 1)
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
    ("pattern", "content", "reason"),
    [
        (r"\b[Ss]he\b", "he", "the tokenizer reads other words"),
        (r"\b([Ss]he|[Hh]e)\b", "they", "the tokenizer reads other words"),
        (r"\b([Ss]he|[Hh]e) ", "", "the tokenizer reads other words"),
    ],
)
def test_a_tokenizer_that_changes_the_words_gives_no_score(
    store: Store, tmp_path: Path, pattern: str, content: str, reason: str
) -> None:
    """What it reads is not the pair: each sentence of it is named with what it became."""
    model = save("neox", tmp_path / "tiny-neox")
    file = model / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
    file.write_text(json.dumps(tokenizer))
    _pairs(store, TEMPLATES[:3])
    with pytest.raises(NothingUsed, match=f"could score nothing of demo: .*{reason}") as caught:
        _score(store, model)
    (done,) = caught.value.outcomes
    assert (done.n_scored, done.n_rejected) == (0, 3)
    assert all(reason in row["reason"] for row in store.read("reject").to_pylist())


def test_a_pair_that_cannot_be_scored_is_kept_with_its_reason(store: Store, model: Path) -> None:
    bad = ["{pronoun} wrote <|endoftext|>.", "{pronoun} " + "x" * 80]
    _pairs(store, [*TEMPLATES[:2], *bad])
    done = _score(store, model)
    assert (done.n_pairs, done.n_scored, done.n_rejected) == (4, 2, 2)
    rejects = sorted(store.read("reject").to_pylist(), key=lambda r: r["source_row"])
    assert [(r["stage"], r["source_row"]) for r in rejects] == [("score", 3), ("score", 4)]
    assert "pair 002, female sentence: the tokenizer gives the special" in rejects[0]["reason"]
    assert "context of 64" in rejects[1]["reason"]
    assert _score(store, model).n_new == 0
    assert store.read("reject").num_rows == 2
    _pairs(store, TEMPLATES[:2])
    _score(store, model)
    assert store.read("reject").num_rows == 0
