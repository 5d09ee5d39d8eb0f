"""What the product makes of stored inputs is what it was: `python -m tools.frozen` shows more."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.frozen import compare
from tools.frozen.compare import Compared, kept_texts, save
from tools.frozen.outputs import Outputs, helps
from tools.frozen.rebuild import frozen
from tools.frozen.recipe import INPUTS, place
from tools.frozen.rows import Relation

#: Lines of a difference that a failure shows.
_LINES = 60


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outputs]:
    with frozen(tmp_path_factory.mktemp("frozen")) as printed:
        yield Outputs(printed)


def _check(compared: Compared) -> None:
    found = compared.differences
    more = f"\n... and {len(found) - _LINES} lines" if len(found) > _LINES else ""
    shown = "\n".join(found[:_LINES])
    assert not found, f"see tools/frozen/__main__.py\n{shown}{more}"


def test_helps_are_the_frozen_ones(tmp_path: Path) -> None:
    compared = Compared()
    kept = kept_texts()
    with place(tmp_path):
        texts = helps()
    compared.texts(texts, {name: kept[name] for name in kept if name.endswith("--help")})
    _check(compared)


@pytest.mark.slow
def test_rows_are_the_frozen_ones(outputs: Outputs) -> None:
    compared = Compared()
    compared.rows(outputs.relations())
    _check(compared)


@pytest.mark.slow
def test_texts_are_the_frozen_ones(outputs: Outputs) -> None:
    compared = Compared()
    kept = kept_texts()
    compared.texts(
        outputs.texts(), {name: kept[name] for name in kept if not name.endswith("--help")}
    )
    _check(compared)


def test_files_are_small() -> None:
    files = [p for top in (INPUTS, compare.OUTPUTS) for p in top.rglob("*") if p.is_file()]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    texts = [path.read_text("utf-8") for path in files if path.is_relative_to(compare.OUTPUTS)]
    assert sum(text.count("\n") for text in texts) < 700


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        ({30: ["w30", "a", "4.285714287"]}, []),  # tenth digit
        ({30: ["w30", "a", "4.2857144"]}, ["x"]),  # eighth
        ({30: ["w30", "a", "nan"]}, ["x"]),
        ({30: ["w30", "b", "4.28571428571"]}, ["text"]),
        ({30: ["w30", "a", "4.42857142857"], 31: ["w31", "a", "4.28571428571"]}, ["x"]),  # swap
        ({40: ["w40", "a", "5.71428571429"]}, ["key", "text", "x"]),  # a row more
        ({30: ["w31", "a", "4.42857142857"], 31: ["w30", "a", "4.28571428571"]}, []),  # order
    ],
)
def test_changes_in_rows_that_are_not_kept(
    changed: dict[int, list[str]],
    columns: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare, "ROWS", tmp_path)
    rows = {k: [f"w{k}", "a", f"{k / 7:.12g}"] for k in range(40)}
    save(tmp_path, "a", Relation(["key", "text", "x"], [*rows.values()]))
    compared = Compared()
    compared.rows({"a": Relation(["key", "text", "x"], [*(rows | changed).values()])})
    assert len((tmp_path / "a.tsv").read_text("utf-8").splitlines()) == 5
    found = [line.split(", ")[0] for line in compared.differences if line[:2] == "+s"]
    assert found == [f"+see --all: {column}" for column in columns]
