"""PMI with either word of a contrast (UnStereoEval's Figure 4): the view, its bins, the figure."""

from __future__ import annotations

import pytest

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill

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
def counted(store: Store) -> Store:
    rows = [
        {"corpus": "c", "word": word, "target": target, "n_word": 60, "n_target": 90}
        | {"pmi_nats": found[0], "n_pair": found[1], "pmi_nats_se": 0.1}
        for word, both in WORDS.items()
        for target, found in zip(("she", "he"), both, strict=True)
        if found
    ]
    other = {"corpus": "c", "word": "tea", "target": "queen", "n_word": 60, "n_target": 9}
    other |= {"pmi_nats": 4.0, "n_pair": 70, "pmi_nats_se": 0.1}
    fill(store, "word_association", [*rows, other])
    deltas = [delta(w, f[0] - m[0]) for w, (f, m) in WORDS.items() if f and m]
    of_list = {**delta("tea", 0.1), "contrast": "gendered"}
    fill(store, "word_delta", [*deltas, of_list])
    return store


def test_the_view_has_every_word_of_either_side(counted: Store) -> None:
    rows = {r["word"]: r for r in rows_of(counted.root, "FROM word_pmi")}
    assert {r["contrast"] for r in rows.values()} == {"she/he"}, "a list has no one PMI"
    found = {
        word: tuple(
            (r[f"pmi_{s}_nats"], r[f"n_pair_{s}"]) if r[f"n_pair_{s}"] else None for s in "fm"
        )
        for word, r in rows.items()
    }
    assert found == WORDS
    deltas = rows_of(counted.root, "FROM word_delta WHERE contrast = 'she/he'")
    for row in deltas:
        of = rows[row["word"]]
        assert of["pmi_f_nats"] - of["pmi_m_nats"] == pytest.approx(row["delta_nats"])


def test_spanish_words_near_he_are_not_ranked(store: Store) -> None:
    """Of the Pile, as released, que and pero lean furthest to he but for homers."""
    leans = {"quarterback": -3.4, "que": -4.6, "pero": -4.5, "también": 2.0, "nurse": 1.0}
    rows = [delta(word, nats) for word, nats in leans.items()]
    fill(store, "word_delta", rows + [{**row, "contrast": "her/him"} for row in rows])
    ranked = {contrast: set[str]() for contrast in ("she/he", "her/him")}
    for row in rows_of(store.root, "FROM word_lean WHERE is_ranked"):
        ranked[row["contrast"]].add(row["word"])
    assert ranked == {"she/he": {"quarterback", "nurse"}, "her/him": set(leans)}
