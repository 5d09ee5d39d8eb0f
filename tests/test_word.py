"""A word by its counts alone: intervals and ranks by hand, and what unknown words get."""

from __future__ import annotations

import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.association.word_summary import describe_word
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill
from tests.test_association import counted


def test_a_lean_is_clear_if_its_interval_excludes_0(store: Store) -> None:
    counted(store)
    rows = [
        delta("clear", 1.0) | {"delta_nats_se": 0.5},
        delta("male", -1.0) | {"delta_nats_se": 0.5},
        delta("unclear", 1.0) | {"delta_nats_se": 0.6},
        delta("unknown", 1.0) | {"delta_nats_se": None},
    ]
    counts = [{"corpus": "c", "word": r["word"], "n_word": 100} for r in rows]
    store.replace("word_count", counts, {"corpus": "c"}, "r")
    fill(store, "word_delta", rows)
    assert {str(r["word"]): describe_word(store, "c", str(r["word"]))[-1] for r in rows} == {
        word: f"  she/he: delta {text}"
        for word, text in {
            "clear": "+1.000 nats, 95% interval over co-occurrences +0.020 to +1.980: leans to she",
            "male": "-1.000 nats, 95% interval over co-occurrences -1.980 to -0.020: leans to he",
            "unclear": "+1.000 nats, 95% interval over co-occurrences -0.176 to +2.176: "
            "no clear lean",
            "unknown": "+1.000 nats, no interval: no clear lean",
        }.items()
    }


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("teas", "does not occur in corpus c (similar words: tea)"),
        ("rarer", "does not occur in corpus c (similar words: rare)"),
        ("xqzt", "does not occur in corpus c"),
        ("the", "is not counted in corpus c: a stop word, or without letters"),
        ("...", "is not counted in corpus c: a stop word, or without letters"),
        ("kings-army", "is counted in corpus c as kings army"),
    ],
)
def test_an_unknown_word_is_an_error_of_one_line(
    store: Store, capsys: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    counted(store)
    associate(store, "c")
    assert main(["why", word, "--warehouse", str(store.root)]) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.strip().splitlines()
    assert f"word {word!r}: {message}" in line and not shown.out
