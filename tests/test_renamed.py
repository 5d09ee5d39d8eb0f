"""Columns that had other names: how older files are read, and what answers older queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query import connection as connections
from plumbline.warehouse.query.connection import connect, init_sql, rows_of, unfilled
from plumbline.warehouse.query.reference import entries, filled
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.renamed import OLD_SCHEMA, RENAMED
from plumbline.warehouse.storage.check import check
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.migration import migrate
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.metric_rows import delta, pair, score

#: Pretended old names of a table, a view and two macros.
PRETENDED: dict[str, dict[str, tuple[str, ...]]] = {
    "word_delta": {"delta_nats": ("lean", "drift"), "n_defined": ("n_pairs",)},
    "audited_pair": {"log_ratio_nats": ("log_ratio",)},
    "us_curve": {"us": ("share",)},
    "group_share": {"even_share": ("even",)},
}
Rows = list[dict[str, Any]]


def _become(names: Mapping[str, dict[str, tuple[str, ...]]]) -> None:
    RENAMED.clear()
    RENAMED.update(names)
    connections._views.cache_clear()
    connections._BOUND.clear()  # views that were bound under other names


@pytest.fixture
def renamed() -> Iterator[None]:
    known = dict(RENAMED)
    _become(PRETENDED)
    yield
    _become(known)


def with_old_names(rows: Rows, which: int = 0) -> Rows:
    old = {new: names[min(which, len(names) - 1)] for new, names in PRETENDED["word_delta"].items()}
    return [{old.get(name, name): value for name, value in row.items()} for row in rows]


def publish_old(store: Store, rows: Rows, unit: str, which: int = 0) -> None:
    """Publish rows as an earlier Plumbline did (0), or one before that (1)."""
    today, known = TABLES["word_delta"], RENAMED["word_delta"]
    then = dict(
        zip(today.names, with_old_names([dict.fromkeys(today.names)], which)[0], strict=True)
    )
    columns = (dataclasses.replace(c, name=then[c.name]) for c in today.columns)
    TABLES["word_delta"] = dataclasses.replace(today, columns=tuple(columns))
    RENAMED["word_delta"] = {} if which else {"lean": ("drift",)}
    try:
        store.publish("word_delta", with_old_names(rows, which), unit=unit, run_id="r")
    finally:
        TABLES["word_delta"], RENAMED["word_delta"] = today, known


OLD = [delta("tea", 0.5), delta("nurse", 1.5)]
OLDER = [delta("milk", -0.25)]
NEW = [delta("cook", 0.75)]


def test_old_files_are_read_under_todays_names(store: Store, renamed: None) -> None:
    publish_old(store, OLDER, "older", 1)
    assert [f["delta_nats"] for f in rows_of(store, "FROM word_delta")] == [-0.25]
    publish_old(store, OLD, "old")
    store.publish("word_delta", NEW, unit="new", run_id="r")
    (path,) = (f.path for f in store.snapshot().files("word_delta") if f.units[0].name == "old")
    assert {"lean", "n_pairs"} < set(pq.read_schema(store.root / path).names)
    rows = {row["word"]: row["delta_nats"] for row in (*OLD, *OLDER, *NEW)}

    def found(got: Rows) -> dict[str, float]:
        assert all(row.keys() == set(TABLES["word_delta"].names) for row in got)
        assert all(row["n_defined"] == 1 and row["n_pair_f"] == 10 for row in got)
        return {row["word"]: row["delta_nats"] for row in got}

    assert found(store.read("word_delta").to_pylist()) == rows
    assert found(rows_of(store, "FROM word_delta")) == rows
    some = store.read("word_delta", pc.field("delta_nats") > 0.6)
    assert found(some.to_pylist()) == {"nurse": 1.5, "cook": 0.75}
    assert {p.problem for p in check(store)} == {"its run r is not in `run`"}


def test_old_names_are_columns_of_a_schema_for_old_queries(
    store: Store, renamed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_old(store, OLD, "old")
    store.publish("word_delta", NEW, unit="new", run_id="r")
    query = f"SELECT word, lean, n_pairs FROM {OLD_SCHEMA}.word_delta ORDER BY word"
    rows = [(row["word"], row["delta_nats"], 1) for row in (*NEW, OLD[1], OLD[0])]
    assert [tuple(row.values()) for row in rows_of(store, query)] == rows
    with connect(store, "") as connection:
        assert not connection.execute("SHOW TABLES").fetchall()
    assert main(["sql", query, "--format", "csv", "--warehouse", str(store.root)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "cook,0.75,1"
    columns = list(rows_of(store, f"FROM {OLD_SCHEMA}.word_delta")[0])
    today = TABLES["word_delta"].names
    assert columns == [{"delta_nats": "lean", "n_defined": "n_pairs"}.get(n, n) for n in today]
    with connect(store) as connection:
        connection.execute(init_sql(store.root))  # what a plain DuckDB is given
        assert connection.execute(query).fetchall() == rows
        asked = f"FROM {OLD_SCHEMA}.audited_pair"
        assert "benchmark_pair" in unfilled(connection, asked)
        assert "corpus_shard" not in unfilled(connection, asked)


def test_macros_take_their_parameters_in_the_old_schema(store: Store, renamed: None) -> None:
    store.publish("benchmark_pair", [pair("b", "p")], unit="all", run_id="r")
    store.publish("pair_score", [score("b", "p", 0.5)], unit="all", run_id="r")
    (row,) = rows_of(store, f"FROM {OLD_SCHEMA}.audited_pair")
    assert row["log_ratio"] == 0.5
    for epsilon, share in ((0.4, 0), (0.6, 1)):
        for call in (f"us_curve([NULL, 9], {epsilon})", f"us_curve([9], epsilon := {epsilon})"):
            now = rows_of(store, f"FROM {call}")
            old = rows_of(store, f"FROM {OLD_SCHEMA}.{call}")
            assert [{"share" if k == "us" else k: v for k, v in r.items()} for r in now] == old
            assert all(r["share"] in (share, None) for r in old)
    even = rows_of(store, f"SELECT even FROM {OLD_SCHEMA}.group_share(0.5)")
    assert even == rows_of(store, "SELECT even_share AS even FROM group_share(0.5)") != []


def test_what_is_written_has_todays_names(store: Store, renamed: None) -> None:
    publish_old(store, OLD, "old")
    with pytest.raises(BadInput, match="no column named lean, n_pairs"):
        store.publish("word_delta", with_old_names(NEW), unit="new", run_id="r")
    store.publish("word_delta", NEW, unit="new", run_id="r")
    before = store.read("word_delta").sort_by("word").to_pylist()

    def delta_lake() -> Rows:
        read = deltalake.DeltaTable(store.root / "word_delta").to_pyarrow_table()
        rows: Rows = read.sort_by("word").to_pylist()
        return rows

    # Readers of Delta Lake find both, until the older files are written again.
    assert [(r["lean"], r["delta_nats"]) for r in delta_lake()] == [
        (None, 0.75),
        (1.5, None),
        (0.5, None),
    ]
    assert len(migrate(store.root).files) == 1
    assert store.read("word_delta").sort_by("word").to_pylist() == before == delta_lake()


def test_small_files_of_several_times_are_merged_under_todays_names(
    store: Store, renamed: None
) -> None:
    publish_old(store, OLDER, "older", 1)
    publish_old(store, OLD, "old")
    store.publish("word_delta", NEW, unit="new", run_id="r")
    before = store.read("word_delta").sort_by("word")
    compact(store, "r", 0)
    (file,) = store.snapshot().files("word_delta")
    assert pq.read_schema(store.root / file.path).names == TABLES["word_delta"].names
    assert store.read("word_delta").sort_by("word").equals(before)
    assert {p.problem for p in check(store)} == {"its run r is not in `run`"}


def test_the_list_of_names_fits_todays_tables_and_views(store: Store) -> None:
    with connect(store) as connection:
        names = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        macros = {e.signature.split("(")[0] for e in entries() if e.kind == "table macro"}
        for name, columns in RENAMED.items():
            assert name in names | macros
            old = [old for names_ in columns.values() for old in names_]
            assert len(set(old)) == len(old)
            if name in TABLES:
                assert columns.keys() <= set(TABLES[name].names) - set(TABLES[name].key)
                assert not set(old) & set(TABLES[name].names)
            if name in names:
                listed = connection.execute(f"DESCRIBE {name}").fetchall()
                assert columns.keys() <= {column for column, *_ in listed}
                assert connection.execute(f"FROM {OLD_SCHEMA}.{name}").fetchall() == []


def test_the_page_lists_them() -> None:
    text = (REPOSITORY / "docs/renamed.md").read_text(encoding="utf-8")
    assert text == filled(text), (
        "stale: run `python -m plumbline.warehouse.query.reference docs/renamed.md`"
    )
    for old, new in registry.OLD.items():
        assert f"| `plumbline {old}` | `plumbline {new}` |" in text
