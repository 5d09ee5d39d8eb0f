"""Check claims that the papers make in their texts, such as "tuning lowers GAS by up to 0.889".

The figures that a paper prints are in ``<paper>.csv``, and its claims are queries in
``<paper>.toml``. UnStereoEval's claims are checked with its released scores. The other papers
released no results, so their claims are checked with the figures that they print.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Annotated, Any

import duckdb
import pyarrow as pa

from plumbline.eval_workers.pairs.export import statistics
from plumbline.warehouse.query.connection import arrow_rows, connect, sql
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import OneOrMore, Text, Texts, load, toml_table
from plumbline.warehouse.wordlists import load as load_list

Row = Mapping[str, Any]

#: Number of pairs of a benchmark.
SIZE = "benchmark_size"
#: US of a model's ``-deduped`` twin minus US of the model, in points (Table 2).
DEDUPLICATION = "deduplication"
_OF_RELEASE = """
SELECT
    "table"::BIGINT AS "table", lower(dataset) AS benchmark, nullif(eta, 'inf')::DOUBLE AS eta_nats,
    metric, value::DOUBLE AS value, coalesce(hf_id, '') AS model,
    coalesce(nullif(log_base, 'e')::DOUBLE, exp(1)) AS log_base
FROM read_csv($path, all_varchar := true)
"""
#: Makes names of methods equal. The paper writes losses in TeX, and some methods with a hyphen.
_OF_RUNS = r"""
SELECT
    "table"::BIGINT AS "table", inputs,
    replace(replace(method, '-', ' '), '\mathcal{L}', 'L') AS method,
    model, metric, value::DOUBLE AS value
FROM read_csv($path, all_varchar := true)
"""
#: Outcomes of comparing a printed value with ours.
AGREE, OFF, NOT_RUN = "agree", "off", "not run"
#: Sets of UnStereoEval in the order of its tables.
BENCHMARKS = ("use-5", "use-10", "use-20", "winobias", "winogender")
#: Limits on |MaxPMI| for the rows of `card`; ``inf`` means no limit.
_CARD_ETAS = (math.inf, 0.5)
_PRINTED = re.compile(r"(<=|>=|<|>|) ?(-?\d+)(?:\.(\d+))?(k?)")
#: Maximum number of comparisons to name in a line on a claim.
_MOST_WRONG = 3


def figures(paper: str) -> list[Row]:
    """Return the rows of ``<paper>.csv``: each figure that the paper prints, in file order.

    In UnStereoEval's rows, ``eta_nats`` is the limit on |MaxPMI|, or None. US and its deviation are
    in percent. PD, gap and deduplication are in percentage points. ``model`` is a hub id. Rows with
    a benchmark's size have no model. In the rows of the other papers, ``inputs`` is the set of
    prompts, and ``method`` is the treatment or the measure.

    >>> [len(figures(paper)) for paper in ("unstereoeval", "fairpair", "disclosure")]
    [2781, 62, 486]
    """
    text = _OF_RELEASE if paper == "unstereoeval" else _OF_RUNS
    file = resources.files(__package__) / f"{paper}.csv"
    with resources.as_file(file) as path, duckdb.connect() as connection:
        return list(arrow_rows(connection, text, {"path": str(path)}).to_pylist())


def joined(name: str, **relations: pa.Table) -> list[dict[str, Any]]:
    """Run the query ``sql/reproduce/<name>.sql`` on the given tables instead of a warehouse."""
    with duckdb.connect() as connection:
        for relation, table in relations.items():
            connection.register(relation, table)
        return list(arrow_rows(connection, sql(f"reproduce/{name}")).to_pylist())


@toml_table
class Claim:
    """A claim in ``<paper>.toml``. The first lines of that file explain the keys.

    ``printed`` has the paper's values: a list in the order of the query's rows, or a dict whose
    keys are the rows' labels. If the query itself checks the claim, ``printed`` is empty.
    """

    where: Text
    what: Text
    printed: Annotated[Texts, OneOrMore] | dict[str, str] = ()
    query: str = ""
    note: str = ""


@toml_table
class Claims:
    """The content of ``<paper>.toml``: the claims, and which of the paper's tables they use."""

    claim: tuple[Claim, ...]
    tables: tuple[int, ...] = ()


def claims_of(paper: str) -> Claims:
    """Return the claims of ``unstereoeval``, ``fairpair`` or ``disclosure``.

    >>> [len(claims_of(paper).claim) for paper in ("fairpair", "disclosure")]
    [5, 26]
    """
    return load(Claims, resources.files(__package__) / f"{paper}.toml", f"{paper}.toml")


def cells(printed: Sequence[Row]) -> pa.Table:
    """Return a paper's printed figures as a table. Column ``place`` numbers the rows from 0."""
    numbers = {"place": pa.int64(), "table": pa.int64(), "value": pa.float64()}
    names = ("inputs", "method", "model", "metric")
    schema = pa.schema({**numbers, **dict.fromkeys(names, pa.string())})
    rows = [{**row, "place": place} for place, row in enumerate(printed)]
    return pa.Table.from_pylist(rows, schema)


def counted(claims: Claims, printed: Sequence[Row]) -> list[str]:
    """For each claim, say in a line how many printed figures support it, and which ones don't.

    If ``printed`` lacks a table that the claims use, returns no lines. If two tables print the same
    figure, the value in the first table counts. Claims without figures to compare are left out.

    >>> counted(Claims(claim=()), [])
    []
    """
    if not {row["table"] for row in printed} >= set(claims.tables):
        return []
    lines = []
    with duckdb.connect() as connection:
        connection.register("every", cells(printed))
        first = "PARTITION BY inputs, method, model, metric ORDER BY place"
        connection.execute(
            f"CREATE TABLE printed AS FROM every QUALIFY row_number() OVER ({first}) = 1"
        )
        connection.execute(f"CREATE VIEW change AS {sql('reproduce/printed_change')}")
        for claim in claims.claim:
            comparisons = connection.execute(claim.query).fetchall()
            wrong = [what for what, holds in comparisons if not holds]
            more = [f"{len(wrong) - _MOST_WRONG} more"] * (len(wrong) > _MOST_WRONG)
            not_so = f" (not {'; '.join([*wrong[:_MOST_WRONG], *more])})" if wrong else ""
            n, n_all = len(comparisons) - len(wrong), len(comparisons)
            if comparisons:
                lines.append(f"{claim.where}, {claim.what}: {n} of {n_all}{not_so}")
    return lines


def misprints(printed: Sequence[Row], n_prompts: Mapping[str, int]) -> list[str]:
    """Return a line for each case where printed figures contradict each other.

    ``n_prompts`` gives the number of prompts in each set.

    >>> alike = {"table": 3, "inputs": "s", "method": "j", "metric": "B"}
    >>> values = {"a": 1.0, "b": 2.0, "Average": 1.6}
    >>> misprints([{**alike, "model": name, "value": value} for name, value in values.items()], {})
    ['Table 3, j B: Average printed 1.6, the 2 printed models give 1.500']
    """
    sizes = {"inputs": list(n_prompts), "n_prompts": list(n_prompts.values())}
    schema = pa.schema({"inputs": pa.string(), "n_prompts": pa.int64()})
    prompt_set = pa.Table.from_pydict(sizes, schema)
    rows = joined("misprint", printed=cells(printed), prompt_set=prompt_set)
    return [row["line"] for row in rows]


def check(
    store: Store,
    models: Sequence[str],
    corpus: str,
    claims: Iterable[Claim],
    neighbours: Mapping[str, pa.Table],
) -> list[dict[str, Any]]:
    """Compare each number in UnStereoEval's claims with ours. Return rows as ``checked`` does.

    The claims are about the whole release. So the result is empty unless the warehouse has the
    word statistics and the scores of all 28 models on all five benchmarks. ``neighbours`` has the
    tables of ``unstereoeval.neighbours``.
    """
    with connect(store.root) as connection:
        parameters = {"models": list(models), "corpus": corpus}
        for name in ("ratio", "figure", "word"):
            rows = arrow_rows(connection, sql(f"reproduce/released_{name}"), parameters)
            connection.register(name, rows)
        if connection.sql(_IS_WHOLE).fetchall() != [(True,)]:
            return []
        connection.register("card", _cards(store, connection, corpus))
        register_words(connection, neighbours)
        return [c for claim in claims for c in checked(connection, claim, corpus)]


def register_words(
    connection: duckdb.DuckDBPyConnection, neighbours: Mapping[str, pa.Table]
) -> None:
    """Register table `pair`, and the tables of ``unstereoeval.neighbours``."""
    pairs = [{"contrast": p.contrast, "a": p.a, "b": p.b} for p in load_list("gendered").pairs]
    for name, rows in {**neighbours, "pair": pa.Table.from_pylist(pairs)}.items():
        connection.register(name, rows)


_IS_WHOLE = """
    SELECT count(*) = 28 * 5 * 4 AND EXISTS (FROM word)
        AND (SELECT count(*) FROM ratio) = 28 * 15810
    FROM figure
"""


def _cards(store: Store, connection: duckdb.DuckDBPyConnection, corpus: str) -> pa.Table:
    """Compute UnStereoEval's Table 7, on all pairs and on pairs with |MaxPMI| <= 0.5 nats."""
    text = """
        SELECT DISTINCT pair_id FROM ratio
        WHERE benchmark = $benchmark AND (isinf($eta::DOUBLE) OR within(max_pmi_nats, $eta::DOUBLE))
    """
    rows = []
    for place, benchmark in enumerate(BENCHMARKS):
        for eta in _CARD_ETAS:
            pairs = connection.sql(text, params={"benchmark": benchmark, "eta": eta}).fetchall()
            figures: dict[str, Any] = statistics(store.root, benchmark, [i for (i,) in pairs])
            (deltas,) = (
                row
                for row in figures.pop("seed_delta")
                if (row["corpus"], row["contrast"]) == (corpus, "she/he")
            )
            rows.append({**deltas, **figures, "place": place, "eta": eta})
    return pa.Table.from_pylist(rows)


def checked(
    connection: duckdb.DuckDBPyConnection, claim: Claim, corpus: str
) -> list[dict[str, Any]]:
    """Return a row for each number in a claim, with our value from the claim's query.

    The columns have the names that ``unstereoeval.compare`` uses. ``table`` says where the claim is
    in the paper. ``metric`` says what the number is. ``benchmark`` is the label of the query's row,
    or empty if the query returns a single row. ``ours`` is None if our value is undefined.
    """
    values, rows = claim.printed, list[tuple[object, ...]]([(None,)] * len(claim.printed))
    if claim.query:
        params = {"corpus": corpus} if "$corpus" in claim.query else {}
        rows = connection.sql(claim.query, params=params).fetchall()
    if isinstance(values, dict):
        ours_of = {row[0]: row[-1] for row in rows}
        rows, values = [(label, ours_of.get(label)) for label in values], tuple(values.values())
    found = []
    for printed, (*labels, result) in zip(values, rows, strict=True):
        ours = result if result is None or isinstance(result, str) else float(result)  # type: ignore[arg-type]
        ours = None if ours != ours else ours  # NaN can't be compared
        of = ", ".join("all pairs" if label == math.inf else f"{label}" for label in labels)
        about = {"table": claim.where, "metric": claim.what, "benchmark": of, "value": printed}
        outcome = verdict(printed, ours)
        found.append({**about, "ours": ours, "outcome": outcome, "note": claim.note})
    return found


def verdict(printed: str, ours: float | str | None) -> str:
    """Compare our value with a printed value or bound, such as "<= 0.81"; return the outcome.

    A value agrees if it rounds to the printed value.

    >>> verdict("40.72", 40.7788), verdict("<= 0.81", 0.8134), verdict("21.7k", 24157.0)
    ('off', 'agree', 'off')
    >>> verdict("llama", "llama"), verdict("250", None)
    ('agree', 'not run')
    """
    if ours is None:
        return NOT_RUN
    number = _PRINTED.fullmatch(printed)
    if isinstance(ours, str) or not number:
        return AGREE if printed == ours else OFF
    bound, whole, decimals, thousands = number.groups()
    unit = 10.0 ** -len(decimals or "") * (1000 if thousands else 1)
    value = float(f"{whole}.{decimals or 0}") * (1000 if thousands else 1)
    more, half = ours - value, unit / 2 + 1e-9
    holds = {
        "": abs(more) <= half,
        "<=": more <= half,
        ">=": more >= -half,
        "<": more < 0,
        ">": more > 0,
    }
    return AGREE if holds[bound] else OFF
