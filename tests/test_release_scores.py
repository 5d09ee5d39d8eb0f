"""Importing released scores: a damaged file is refused or shows in a count."""

import csv
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.released_scores import N_PARAMETERS, ImportedScores, import_scores
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.released_files import import_pairs, score_rows, write_scores

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
    with pytest.raises(BadInput, match="holds no files"):
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
        assert {row["hf_id"] for row in csv.DictReader(file)} == set(N_PARAMETERS)
