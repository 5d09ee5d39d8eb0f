"""Importing released scores and MaxPMI: a damaged file is refused or shows in a count."""

import csv
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.released.released_files import HUB_IDS
from plumbline.eval_workers.pairs.released.released_results import (
    ImportedScores,
    import_max_pmi,
    import_scores,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.released_files import PAIRS, as_csv, import_pairs, score_rows, write_scores

#: Pair -> female and male score of the whole file.
TRUE = {
    "00000": (-1.5, -1.25),
    "00001": (-2.5, -2.25),
    "00002": (-1.5, -1.25),
    "00003": (-2.5, -2.25),
    "00004": (-5.5, -5.25),
}


_FIGURES = ("logprob", "num_tokens", "template")


@pytest.fixture
def results(store: Store, tmp_path: Path) -> Path:
    """An empty results directory; the pairs are in the warehouse."""
    import_pairs(store, tmp_path)
    return tmp_path / "results"


def scores(store: Store) -> dict[str, tuple[float, float]]:
    rows = store.read("pair_score").to_pylist()
    assert len({(row["model_key"], row["pair_id"]) for row in rows}) == len(rows)
    return {row["pair_id"]: (row["logprob_a_nats"], row["logprob_b_nats"]) for row in rows}


def reasons(store: Store) -> dict[int, str]:
    rows = store.read("reject", stage="import").to_pylist()
    return {row["source_row"]: row["reason"] for row in rows}


def counts(done: list[ImportedScores]) -> tuple[int, int, int]:
    (one,) = done
    assert one.n_pairs == one.n_scored + one.n_missing == 5
    return one.n_scored, one.n_rejected, one.n_missing


@pytest.mark.parametrize("column", ["template", *(f"{s}_{c}" for s in "FM" for c in _FIGURES)])
def test_a_missing_column_is_named(store: Store, results: Path, column: str) -> None:
    write_scores(results, [{k: v for k, v in row.items() if k != column} for row in score_rows()])
    with pytest.raises(BadInput, match=f"no column {column}"):
        import_scores(store, results, "r")
    assert not scores(store) and store.read("model").num_rows == 0


def test_a_row_in_two_versions_is_not_chosen_from(store: Store, results: Path) -> None:
    table = score_rows()
    write_scores(results, [*table, table[4] | {"F_logprob": "-9.5"}])
    assert counts(import_scores(store, results, "r")) == (4, 2, 1)
    assert scores(store).keys() == TRUE.keys() - {"00004"}
    assert set(reasons(store)) == {5, 6}
    assert all(
        "rows 5, 6" in reason and "different" in reason for reason in reasons(store).values()
    )


def test_a_row_of_no_pair_is_rejected(store: Store, results: Path) -> None:
    table = score_rows()
    other = table[0] | {"template": "{pronoun} ate.", "F_template": "She ate."}
    rows = [*table, other | {"M_template": "He ate."}, table[4] | {"word": "boss"}]
    write_scores(results, [*rows, table[4] | {"is_natural": "True"}])
    assert counts(import_scores(store, results, "r")) == (5, 3, 0)
    assert scores(store) == TRUE
    assert all("no pair of the benchmark" in reason for reason in reasons(store).values())


@pytest.mark.parametrize(
    ("column", "value"),
    [("F_logprob", v) for v in ("nan", "", "inf", "-inf", "low", "0.1")]
    + [("M_num_tokens", v) for v in ("0", "-4", "4.5", "", "\u0664")]
    + [("M_template", "She lost her key."), ("F_template", ""), ("M_template", "He lost his")],
)
def test_a_value_that_is_none_shows(store: Store, results: Path, column: str, value: str) -> None:
    table = score_rows()
    table[1][column] = value
    path = write_scores(results, table)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], lines[5] + ",more"]) + "\n")
    assert counts(import_scores(store, results, "r")) == (3, 2, 2)
    assert set(reasons(store)) == {2, 5} and column in reasons(store)[2]
    # one of two pairs with the same sentences; the other one holds its true score
    assert scores(store).items() <= TRUE.items() and len(scores(store)) == 3


_LLAMA = "__extra__ucinlp1__llama-2__hf_models__7b"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("org__m.csv", "org__m.csv.gz"),
        ("org__m.csv", "Org__M.csv"),
        (f"{_LLAMA}.csv.gz", "meta-llama__Llama-2-7b-hf.csv.gz"),
        ("EleutherAI__pythia-70m.csv", "__models__eleutherai__pythia-70m.csv"),
    ],
)
def test_a_model_twice_is_refused(store: Store, results: Path, one: str, other: str) -> None:
    paths = [
        write_scores(results, score_rows(name.split(".csv")[0]), name) for name in (one, other)
    ]
    with pytest.raises(BadInput, match="both hold") as e:
        import_scores(store, results, "r")
    assert all(path.name in str(e.value) for path in paths)
    assert not scores(store)


def test_what_can_not_be_told_is_asked_for(store: Store, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with pytest.raises(UsageProblem, match="is not a directory"):
        import_scores(store, results, "r")
    path = write_scores(results, score_rows())
    with pytest.raises(UsageProblem, match="plumbline benchmark import use-5"):
        import_scores(store, results, "r")
    path.rename(results / path.name)
    with pytest.raises(BadInput, match=path.name):
        import_scores(store, results, "r")
    (results / path.name).unlink()
    with pytest.raises(BadInput, match="holds no files"):
        import_scores(store, results, "r")
    import_pairs(store, tmp_path)
    path = write_scores(results, score_rows("org__other"))
    with pytest.raises(BadInput, match=rf"{path.name}, row 1: its model is 'org__other'"):
        import_scores(store, results, "r")
    assert not scores(store)


@pytest.mark.reference
def test_the_28_names_are_the_published_ones(data: Path) -> None:
    path = data.parent / "reference" / "unstereoeval_models.csv"
    with path.open(encoding="utf-8", newline="") as file:
        assert {row["hf_id"] for row in csv.DictReader(file)} == set(HUB_IDS)


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
