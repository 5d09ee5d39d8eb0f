"""A word by its counts alone: intervals by hand, PMI of either side, what unknown words get."""

from __future__ import annotations

import pytest

from plumbline.jobs.association.associations import associate
from plumbline.pipelines.command.main import main
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill
from tests.test_association import counted


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("teas", "or was left out (similar words: tea)"),
        ("rarer", "or was left out (similar words: rare)"),
        ("xqzt", "or was left out (docs/corpora.md#what-is-a-token)"),
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
    assert f"word {word!r}: is not a counted" in line and message in line and not shown.out


def test_spanish_words_near_he_are_not_ranked(store: Store) -> None:
    rows = [delta(word, nats) for word, nats in (("nurse", 1.0), ("que", -4.6), ("también", 2.0))]
    fill(store, "word_delta", rows + [{**row, "contrast": "her/him"} for row in rows])
    ranked = rows_of(store.root, "FROM word_lean WHERE is_ranked")
    assert {r["word"] for r in ranked if r["contrast"] == "she/he"} == {"nurse"}
    assert sum(r["contrast"] == "her/him" for r in ranked) == len(rows)


def test_without_documents_a_word_of_the_contrast_and_an_unknown_contrast_are_told(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    counted(store)
    fill(store, "word_delta", [delta("tea", 1.0)])
    (row,) = store.read("corpus").to_pylist()
    where = ["--warehouse", str(store.root)]
    for targets in ("gendered", None):  # counted, and imported
        store.replace("corpus", [{**row, "targets": targets}], {"corpus": "c"}, "r")
        assert main(["why", "tea", "--contrast", "foo/bar", *where]) == 2
        assert "contrast 'foo/bar': is not a contrast of corpus c" in capsys.readouterr().err
        assert main(["why", "she", *where]) == 0
        assert "has no lean in c: it is a word of she/he, or doesn't" in capsys.readouterr().out


def test_without_documents_a_word_leans_by_its_own_interval(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by q, which is for all words of the contrast."""
    counted(store)
    word = {"corpus": "c", "contrast": "she/he", "word": "tea", "n_word": 9}
    bound = {"sides_nats": 1.0, "sides_nats_low": 0.1, "sides_nats_high": 1.9, "p": 0.03, "q": 0.3}
    fill(store, "word_bound", [{**word, **bound, "n_pair_f": 8, "n_pair_m": 1}])
    fill(store, "word_delta", [delta("tea", 1.0)])
    assert main(["why", "tea", "--warehouse", str(store.root)]) == 0
    assert "“tea” leans to she in c: +1.00 nats" in capsys.readouterr().out
