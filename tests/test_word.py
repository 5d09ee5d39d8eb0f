"""A word by its counts alone: intervals by hand, PMI of either side, what unknown words get."""

from __future__ import annotations

import pytest

from plumbline.jobs.association.associations import associate
from plumbline.pipelines.command.main import main
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill
from tests.test_association import counted


def test_a_lean_is_clear_if_its_interval_excludes_0(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
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
    words = [str(row["word"]) for row in rows]
    assert main(["why", *words, "--warehouse", str(store.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for word, said in {
        "clear": "leans to she in c: +1.00 nats (95% interval +0.02 to +1.98 over co-occurrences)",
        "male": "leans to he in c: −1.00 nats (95% interval −1.98 to −0.02 over co-occurrences)",
        "unclear": "has no clear lean in c: +1.00 nats "
        "(95% interval −0.18 to +2.18 over co-occurrences)",
        "unknown": "is measured at +1.00 nats in c, towards she; no interval is known",
    }.items():
        assert f"“{word}” {said}. It occurs 100 times." in lines


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


#: Word: PMI and co-occurrences with she, and with he; None where it never occurs with that word.
WORDS: dict[str, tuple[tuple[float, int] | None, tuple[float, int] | None]] = {
    "tea": ((1.25, 9), (0.5, 7)),
    "cup": ((1.21, 5), (0.55, 5)),
    "army": ((-0.45, 5), (1.0, 30)),
    "key": ((0.15, 4), (0.35, 50)),  # too few with she
    "beard": (None, (2.05, 8)),
    "rare": ((3.0, 1), None),
}


@pytest.fixture
def with_pmi(store: Store) -> Store:
    rows = [
        {"corpus": "c", "word": word, "target": target, "n_word": 60, "n_target": 90}
        | {"pmi_nats": found[0], "n_pair": found[1], "pmi_nats_se": 0.1}
        for word, both in WORDS.items()
        for target, found in zip(("she", "he"), both, strict=True)
        if found
    ]
    fill(store, "word_association", [*rows, rows[0] | {"target": "queen", "n_pair": 70}])
    deltas = [delta(w, f[0] - m[0]) for w, (f, m) in WORDS.items() if f and m]
    of_list = {**delta("tea", 0.1), "contrast": "gendered"}
    fill(store, "word_delta", [*deltas, of_list])
    return store


def test_the_view_has_every_word_of_either_side(with_pmi: Store) -> None:
    rows = {r["word"]: r for r in rows_of(with_pmi.root, "FROM word_pmi")}
    assert {r["contrast"] for r in rows.values()} == {"she/he"}, "a list has no one PMI"
    found = {
        word: tuple(
            (r[f"pmi_{s}_nats"], r[f"n_pair_{s}"]) if r[f"n_pair_{s}"] else None for s in "fm"
        )
        for word, r in rows.items()
    }
    assert found == WORDS
    deltas = rows_of(with_pmi.root, "FROM word_delta WHERE contrast = 'she/he'")
    for row in deltas:
        of = rows[row["word"]]
        assert of["pmi_f_nats"] - of["pmi_m_nats"] == pytest.approx(row["delta_nats"])


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
        assert "contrast 'foo/bar': is not one of corpus c" in capsys.readouterr().err
        assert main(["why", "she", *where]) == 0
        assert "has no lean in c: it is a word of she/he, or near none" in capsys.readouterr().out
