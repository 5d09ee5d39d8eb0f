"""Importing released MaxPMI: each value reaches the pairs of its own template, the rest shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.released.released_results import import_max_pmi
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.released_files import PAIRS, as_csv, import_pairs

#: Template -> MaxPMI as released.
LEANS = {
    "{pronoun} drank tea.": "0.25",
    "{pronoun} lost {pronoun1} key.": "-0.75",
    "The CEO saw {pronoun2}.": "-1.5",
}
Fields = dict[str, str]


@pytest.fixture
def sets(store: Store, tmp_path: Path) -> Path:
    """A directory for the preprocessed sets; the pairs are in the warehouse."""
    import_pairs(store, tmp_path)
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


def rows(verdicts: tuple[str, ...] = ("True",)) -> list[Fields]:
    """A row for each pair of these verdicts; as in the release, ``orig_index`` counts the rows."""
    kept = [pair for pair in PAIRS if pair[2] in verdicts]
    return [
        {"orig_index": str(i), "word": word, "template": template, "is_natural": natural}
        | {"max_gender_pmi": LEANS[template], "max_gender_pmi_invalid": "False"}
        for i, (template, word, natural) in enumerate(kept)
    ]


def write(sets: Path, table: list[Fields]) -> None:
    text = as_csv(table)
    (sets / "USE-5-no-maxpmi-constraint.csv").write_text(text, encoding="utf-8", newline="")


def leans(store: Store) -> dict[str, float | None]:
    found = store.read("pair_association", corpus="pile").to_pylist()
    assert all(row["n_words"] is None and row["max_pmi_word"] is None for row in found)
    return {row["pair_id"]: row["max_pmi_nats"] for row in found}


NATURAL = {"00000": 0.25, "00001": -0.75, "00002": 0.25, "00003": -0.75}


def test_a_value_that_is_none_shows_unless_the_file_says_so(store: Store, sets: Path) -> None:
    table = rows(("True", "False"))
    table[0]["max_gender_pmi"] = ""
    table[4] |= {"max_gender_pmi": "", "max_gender_pmi_invalid": "True"}
    write(sets, table)
    import_max_pmi(store, sets, "pile", "r")
    assert leans(store) == {k: v for k, v in NATURAL.items() if k != "00000"} | {"00004": None}
    (reject,) = store.read("reject", stage="import").to_pylist()
    assert (reject["source_row"], reject["subject"]) == (1, "pile/use-5")


def test_files_that_can_not_be_used_leave_one_line(store: Store, sets: Path) -> None:
    with pytest.raises(BadInput, match=str(sets)):
        import_max_pmi(store, sets, "pile", "r")
    for change, named in (({"max_gender_pmi": "?"}, "max_gender_pmi is '\\?'"), ({}, "no column")):
        kept = [{k: v for k, v in row.items() if k != "max_gender_pmi"} for row in rows()]
        write(sets, [row | change for row in kept])
        with pytest.raises(BadInput, match=named):
            import_max_pmi(store, sets, "pile", "r")
    write(sets, rows())
    (sets / "winogender-no-maxpmi-constraint.csv").write_text("template,max_gender_pmi\n")
    with pytest.raises(UsageProblem, match="plumbline benchmark import winogender"):
        import_max_pmi(store, sets, "pile", "r")
    assert not leans(store)


@pytest.mark.reference
def test_released_max_pmi_covers_every_natural_pair(store: Store, data: Path) -> None:
    directory = data / "unstereo-eval" / "data" / "datasets"
    for name in ("use-5", "use-10", "use-20", "winobias", "winogender"):
        import_benchmark(store, name, directory / "raw", "r")
    import_max_pmi(store, directory, "pile", "r")
    found = store.read("pair_association", corpus="pile").to_pylist()
    assert Counter(row["benchmark"] for row in found) == {
        **{"use-5": 4405, "use-10": 4740, "use-20": 4839, "winobias": 1586, "winogender": 240}
    }
    assert not store.read("reject").num_rows
