"""`docs/sql.md`: the questions run and answer what they say, the lists are those of the files."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb
import numpy as np
import pytest

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import entries, filled, questions
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.metric_rows import association, delta, fill, pair, score, scored_by

WORDS = ("nurse", "boss", "pilot", "clerk")
DELTAS = (1.0, -1.0, -0.4, 0.3)
LIMIT = math.log(1.65)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """40 pairs, ten a word, under two models; a pair without MaxPMI; a rejected row."""
    store = Store.open(tmp_path_factory.mktemp("docs") / "w")
    words = [(w, d) for w, d in zip(WORDS, DELTAS, strict=True) for _ in range(10)]
    fill(
        store,
        "benchmark_pair",
        [
            pair(
                "b", f"{i:02}", word=w, template=f"{w} {i:02} {{pronoun}}", pronoun_first=i % 2 == 0
            )
            | {"is_natural": True}
            for i, (w, _) in enumerate(words)
        ],
    )
    fill(store, "word_delta", [delta(w, d) for w, d in zip(WORDS, DELTAS, strict=True)])
    rows = [association("b", f"{i:02}", d) | {"max_pmi_word": w} for i, (w, d) in enumerate(words)]
    rows[0] |= {"max_pmi_nats": None, "max_pmi_word": None, "n_words_defined": 0}
    fill(store, "pair_association", rows)
    # The first follows the text; the second too, at half, but turns pair 39 round.
    followed = [2 * d for _, d in words]
    halved = [*(d for _, d in words[:-1]), -3.0]
    for model, ratios in (("follows", followed), ("halves", halved)):
        rows = [score("b", f"{i:02}", r, model) for i, r in enumerate(ratios)]
        fill(store, "pair_score", rows)
    reject = {
        "stage": "benchmark",
        "subject": "b",
        "source_file": "made.csv",
        "reason": "no pronoun",
        "run_id": "r",
    }
    lines = [reject | {"source_row": n, "excerpt": f"row {n}"} for n in (9, 4)]
    fill(store, "reject", lines)
    fill(store, "model", [scored_by("follows")])
    figures = compute(store.root, MeasureOptions(eta=(0.4,)), "r").to_pylist()
    fill(store, "metric_value", figures)
    return connect(store.root)


def answer(connection: duckdb.DuckDBPyConnection, number: int) -> list[dict[str, Any]]:
    query = questions()[number - 1][2]
    rows: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
    return rows


def test_the_answers_are_right(small: duckdb.DuckDBPyConnection) -> None:
    assert [r["word"] for r in answer(small, 1)] == ["nurse", "clerk", "pilot", "boss"]
    (difference,) = answer(small, 2)
    # Figures of four words, which are too few for an interval.
    assert (difference["us_reference"], difference["us_model"]) == (0, 47.5)
    assert difference["difference"] == 47.5
    assert difference["low"] is None and difference["high"] is None
    gaps = [(r["model"], r["n_pairs"], r["gap"]) for r in answer(small, 3)]
    assert gaps == [("follows", 20, 0), ("halves", 20, 47.5)]
    decided = [(r["max_pmi_word"], r["n_pairs"], r["percent"]) for r in answer(small, 4)]
    assert decided[0] == ("boss", 10, 25.6) and decided[-1] == ("nurse", 9, 23.1)
    fits = {r["model"]: r["slope"] for r in answer(small, 5)}
    slope = np.polyfit(DELTAS, (1.0, -1.0, -0.4, (9 * 0.3 - 3) / 10), 1)[0]
    assert fits["follows"] == 2 and fits["halves"] == pytest.approx(slope, abs=5e-4)
    (rejected,) = answer(small, 6)
    assert (rejected["n"], rejected["place"]) == (2, "made.csv, row 4")
    assert rejected["excerpt"] == "row 4"


def test_the_list_holds_every_view_and_macro(small: duckdb.DuckDBPyConnection) -> None:
    """As DuckDB itself lists them, with their parameters."""
    text = (REPOSITORY / "docs" / "sql.md").read_text(encoding="utf-8")
    assert text == filled(text), (
        "stale: run `python -m plumbline.warehouse.query.reference docs/tables.md docs/sql.md`"
    )
    macros = small.execute(
        "SELECT function_name, parameters, function_type FROM duckdb_functions() WHERE NOT internal"
    ).fetchall()
    found = {re.split(r"\(", e.signature)[0]: e for e in entries()}
    assert all(f"`{e.signature}`" in text for e in entries())
    for name, parameters, kind in macros:
        assert (found[name].kind == "table macro") == (kind == "table_macro")
        assert [p.split(" := ")[0] for p in split(found[name].signature)] == parameters
    views = small.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert {name for name, e in found.items() if e.kind == "view"} == {
        v for (v,) in views if f"CREATE OR REPLACE VIEW {v} " in all_sql()
    }
    assert all(e.grain for e in entries() if e.kind != "function")


def split(signature: str) -> list[str]:
    inside = signature.split("(", 1)[1].removesuffix(")")
    return [p.strip() for p in inside.split(",") if p.strip()]


def all_sql() -> str:
    files = (REPOSITORY / "warehouse" / "sql" / "views").glob("*.sql")
    return "\n".join(f.read_text(encoding="utf-8") for f in files)


def test_the_page_s_other_queries_run(small: duckdb.DuckDBPyConnection) -> None:
    text = (REPOSITORY / "docs" / "sql.md").read_text(encoding="utf-8")
    for query in re.findall(r'(?:plumbline sql|connection\.sql\() ?"([^"]+)"', text):
        assert small.execute(query).fetchall(), query
    call = re.search(r"`(preference_pairwise\([^`]*epsilon := 1\))`", text)
    assert call and small.execute(f"FROM {call[1]}").fetchall() == []
