"""`docs/sql.md`: the questions run and answer what they say, the lists are those of the files."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

from plumbline.eval_workers.scoring.measure import MeasureOptions, compute
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.reference import entries, filled, questions
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.metric_rows import association, delta, fill, pair, score, scored_by

WORDS = ("nurse", "boss", "pilot", "clerk")
DELTAS = (1.0, -1.0, -0.4, 0.3)


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
    fill(store, "token_logprob", [token for i in ("00", "01") for token in _tokens(i)])
    figures = compute(store.root, MeasureOptions(eta=(0.4,)), "r").to_pylist()
    fill(store, "metric_value", figures)
    return connect(store.root)


def _tokens(pair_id: str) -> list[dict[str, object]]:
    """`she ran` and `he ran`: the pronoun makes 0.5, the verb -0.25."""
    key = {"model_key": "key-follows", "benchmark": "b", "pair_id": pair_id}
    said = {"a": ((" she", -1.0), (" ran", -2.5)), "b": ((" he", -1.5), (" ran", -2.25))}
    rest = {"text_id": "t", "token_id": 1, "run_id": "r"}
    return [
        {**key, **rest, "side": side, "position": i, "token": token, "logprob_nats": logprob}
        for side, tokens in said.items()
        for i, (token, logprob) in enumerate(tokens)
    ]


def answer(connection: duckdb.DuckDBPyConnection, number: int) -> list[dict[str, Any]]:
    question = questions()[number - 1]
    assert question.number == number
    rows: list[dict[str, Any]] = connection.sql(question.query).to_arrow_table().to_pylist()
    return rows


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
