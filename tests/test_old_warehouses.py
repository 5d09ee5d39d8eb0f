"""A warehouse that an earlier Plumbline wrote opens today, with the figures it had."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.renamed import OLD_SCHEMA, REMOVED, RENAMED
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.migration import migrate
from plumbline.warehouse.storage.store import Store

#: Commits whose warehouses are kept, see `tests/data/old-warehouse/README.md`.
KEPT = ("60872cc",)
DATA = Path(__file__).parent / "data/old-warehouse"


@pytest.fixture(params=KEPT)
def old(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    with tarfile.open(DATA / f"{request.param}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return Store.open("warehouse", create=False)


def figures(store: Store) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """What is expected and found of each figure that is kept beside the warehouse of a commit."""
    found = []
    with connect(store) as connection:
        kept = json.loads((DATA / f"{KEPT[0]}.json").read_text(encoding="utf-8"))
        for one in (one for one in kept if one["of"] not in REMOVED):
            columns = ", ".join(f'"{name}"' for name in one["figures"])
            key = " AND ".join(f'"{name}" = ${name}' for name in one["key"])
            of = f"{OLD_SCHEMA}.{one['of']}" if one["of"] in RENAMED else one["of"]
            query = f"SELECT {columns} FROM {of} WHERE {key}"
            rows = connection.execute(query, one["key"]).fetchall()
            assert len(rows) == 1, one
            row = dict(zip(one["figures"], rows[0], strict=True))
            found.append((one["of"], one["figures"], row))
    return found


@pytest.mark.slow
def test_every_row_of_every_table_and_view_is_read(old: Store) -> None:
    empty = set()
    with connect(old) as connection:
        names = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        assert names > TABLES.keys()
        for name in sorted(names):
            rows = connection.sql(f'FROM "{name}" ORDER BY ALL').to_arrow_table()
            if name in TABLES:
                read = old.read(name)
                assert (
                    rows.num_rows
                    == read.num_rows
                    == sum(file.n_rows for file in old.snapshot().files(name))
                )
                mine = sorted(map(str, read.to_pylist()))
                assert mine == sorted(map(str, rows.to_pylist())), name
                empty |= set() if rows.num_rows else {name}
    assert empty.isdisjoint(old.snapshot().tables)


def test_figures_are_what_they_were(old: Store) -> None:
    for of, expected, row in figures(old):
        assert row == (expected if of in TABLES else pytest.approx(expected)), of


@pytest.mark.slow
def test_commands_run_on_it(old: Store, capsys: pytest.CaptureFixture[str]) -> None:
    n_values = len(rows_of(old, "FROM metric_value"))
    for command in (
        ("warehouse", "check"),
        ("measure",),
        ("report", "--out", "page"),
        ("why", "teacher", "--corpus", "letters"),
        ("warehouse", "check"),
        ("warehouse", "compact", "--keep-days", "0"),
        ("warehouse", "check"),
    ):
        assert main([*command, "--warehouse", str(old.root)]) == 0, capsys.readouterr()
    assert len(rows_of(old, "FROM metric_value")) >= n_values
    assert Path("page/index.html").exists()


def test_migrating_it_keeps_every_row(old: Store) -> None:
    before = {name: old.read(name).to_pylist() for name in TABLES}
    migrate(old.root)
    again = Store.open(old.root, create=False)
    assert {name: again.read(name).to_pylist() for name in TABLES} == before


@pytest.mark.slow
def test_tables_that_are_gone_stay_until_their_versions_go(old: Store) -> None:
    """Only an older Plumbline can read them, at the versions that name them."""

    def there() -> set[str]:
        return {n for n in old.place.walk() if n.removeprefix("_log/tables/").startswith(gone)}

    gone = tuple(REMOVED)
    before = there()
    assert {name.split("/")[1] for name in before} >= {"_delta_log", "tables"}
    assert old.snapshot().removed.keys() == REMOVED and check(old) == []
    compact(old, "r", keep_days=10_000)
    assert not old.snapshot().removed and there() == before, "an earlier version names them"
    assert check(old) == []
    compact(old, "r", keep_days=0)
    assert there() == set() and check(old) == []
