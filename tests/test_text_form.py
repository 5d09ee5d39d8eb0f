"""Sentences as the released scores had them: the exact form, its own keys, both side by side."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from plumbline.eval_workers.models.model_options import ModelOptions, in_form
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill
from plumbline.eval_workers.pairs.released_scores import import_scores
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

TEMPLATES = (
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


@pytest.fixture
def filled(store: Store) -> Store:
    parsed = Parsed("use-5")
    for i, template in enumerate(TEMPLATES):
        parsed.add(pair_id=str(i), template=template, source_file="USE-5.csv", source_row=i + 1)
    rows = [{"benchmark": "use-5", **pair} for pair in parsed.pairs]
    store.replace("benchmark_pair", rows, {"benchmark": "use-5"}, "run")
    return store


def _score(store: Store, model: Path, form: str) -> str:
    options = ModelOptions(text_form=form)
    (done,) = score_benchmarks(store, str(model), ["use-5"], options, "run")
    assert done.n_done == len(TEMPLATES)
    return str(done.model_key)


def _rows(store: Store, key: str) -> list[dict[str, Any]]:
    rows = store.read("pair_score", benchmark="use-5", model_key=key).to_pylist()
    return sorted(rows, key=lambda row: str(row["pair_id"]))


def _released_file(directory: Path, model: str) -> Path:
    """Scores of the made-up release: -10 and -20 nats less the number of the row."""
    path = directory / "5words" / f"revised_templates__scores__{model}.csv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        head = [
            "word",
            "template",
            "model",
            "F_logprob",
            "M_logprob",
            "F_num_tokens",
            "M_num_tokens",
        ]
        writer.writerow([*head, "F_template", "M_template"])
        for i, (template, texts) in enumerate(zip(TEMPLATES, RELEASED, strict=True)):
            writer.writerow(["", template, model, -10 - i, -20 - i, 7, 8, *texts])
    return directory


def test_the_same_texts_have_the_same_hash_whoever_scored_them(
    filled: Store, model: Path, tmp_path: Path
) -> None:
    import_scores(filled, _released_file(tmp_path / "results", model.name), "run")
    written, released = _score(filled, model, "written"), _score(filled, model, "released")
    found = rows_of(filled.root, "FROM score_difference ORDER BY model_key, pair_id")
    assert [row["model_key"] for row in found] == [
        key for key in sorted((written, released)) for _ in range(3)
    ]
    for row in found:
        i = int(row["pair_id"])
        own = _rows(filled, row["model_key"])[i]
        a, b = own["logprob_a_nats"] + 10 + i, own["logprob_b_nats"] + 20 + i
        assert row["difference_log_ratio_nats"] == pytest.approx(a - b, abs=1e-9)
        assert row["difference_tokens_b"] == own["n_tokens_b"] - 8
    imported = filled.read("model", pa.compute.field("backend") == "released").to_pylist()[0]
    theirs = {r["pair_id"]: r["text_id"] for r in _rows(filled, imported["model_key"])}
    assert {r["pair_id"]: r["text_id"] for r in _rows(filled, released)} == theirs
    assert {r["pair_id"]: r["text_id"] for r in _rows(filled, written)} != theirs


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
