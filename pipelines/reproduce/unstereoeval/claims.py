"""Claims of UnStereoEval outside its tables: each is a query and the printed values of its rows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa

from plumbline.pipelines.reproduce.compare import AGREE, NOT_RUN, OFF
from plumbline.warehouse.query.connection import connect, query
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import OneOrMore, Text, Texts, load, toml_table
from plumbline.warehouse.wordlists import load as load_list

if TYPE_CHECKING:
    import duckdb

_FILE = "claims.toml"
_TEXTS = pa.list_(pa.string())
#: Sets of UnStereoEval in the order of its tables.
BENCHMARKS = ("use-5", "use-10", "use-20", "winobias", "winogender")
#: Limits on |MaxPMI| of the rows of `card`; ``inf`` for none.
_CARD_ETAS = (math.inf, 0.5)
_PRINTED = re.compile(r"(<=|>=|<|>|) ?(-?\d+)(?:\.(\d+))?(k?)")


@toml_table
class ReleaseClaim:
    """An entry of ``claims.toml``, which explains its keys.

    ``printed`` has one value per row of the query, in their order or by the row's label.
    """

    where: Text
    what: Text
    printed: Annotated[Texts, OneOrMore] | dict[str, str]
    query: str = ""
    note: str = ""


@toml_table
class _ClaimFile:
    claim: tuple[ReleaseClaim, ...]


@dataclass(frozen=True)
class CheckedClaim:
    """A printed value, our value (None if undefined), and the outcome of comparing them.

    ``of``: label of the query's row; empty if the query has only one row.
    """

    where: str
    what: str
    of: str
    printed: str
    ours: float | str | None
    outcome: str
    note: str


def packaged() -> list[ReleaseClaim]:
    """Packaged claims.

    >>> sum(len(claim.printed) for claim in packaged()) > 150
    True
    """
    return list(load(_ClaimFile, resources.files(__package__) / _FILE, _FILE).claim)


#: Relations of words and their gendered neighbours, empty as without the release's file of PMI.
_NO_NEIGHBOURS = {
    "near": pa.table({"word": pa.array([], pa.string()), "targets": pa.array([], _TEXTS)}),
    "tau": pa.table(
        {"contrast_a": pa.array([], pa.string()), "contrast_b": pa.array([], pa.string())}
        | {"n_words": pa.array([], pa.int64()), "tau_b": pa.array([], pa.float64())}
    ),
}


def check(
    store: Store,
    models: Sequence[str],
    corpus: str,
    claims: Iterable[ReleaseClaim],
    neighbours: Mapping[str, pa.Table] | None = None,
) -> list[CheckedClaim]:
    """Compare each printed value of the claims with the result of its query.

    ``models``: whose released scores are read. ``corpus``: name of the released word statistics.
    ``neighbours``: the relations `near` and `tau`; None without the file of PMI.
    Claims are about the whole release: empty unless the store has the scores of all 28 models on
    all five sets, and the word statistics.
    """
    with connect(store.root) as connection:
        parameters = {"models": list(models), "corpus": corpus}
        for name in ("ratio", "figure", "word"):
            connection.register(name, query(connection, f"reproduce/released_{name}", parameters))
        if connection.sql(_IS_WHOLE).fetchall() != [(True,)]:
            return []
        connection.register("card", _cards(store, connection, corpus))
        register_words(connection, neighbours or {})
        return [c for claim in claims for c in _checked(connection, claim, corpus)]


def register_words(
    connection: duckdb.DuckDBPyConnection, neighbours: Mapping[str, pa.Table]
) -> None:
    """Register the relations `near`, `tau` (empty unless given) and `pair`."""
    pairs = [{"contrast": p.contrast, "a": p.a, "b": p.b} for p in load_list("gendered").pairs]
    relations = {**_NO_NEIGHBOURS, **neighbours, "pair": pa.Table.from_pylist(pairs)}
    for name, rows in relations.items():
        connection.register(name, rows)


_IS_WHOLE = """
    SELECT count(*) = 28 * 5 * 4 AND EXISTS (FROM word)
        AND (SELECT count(*) FROM ratio) = 28 * 15810
    FROM figure
"""


def _cards(store: Store, connection: duckdb.DuckDBPyConnection, corpus: str) -> pa.Table:
    """Table 7's statistics of every set: of all pairs, and of those with |MaxPMI| <= 0.5 nats."""
    from plumbline.eval_workers.pairs.sharing.benchmark_card import statistics

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


def _checked(
    connection: duckdb.DuckDBPyConnection, claim: ReleaseClaim, corpus: str
) -> list[CheckedClaim]:
    values, rows = claim.printed, list[tuple[object, ...]]([(None,)] * len(claim.printed))
    if claim.query:
        params = {"corpus": corpus} if "$corpus" in claim.query else {}
        rows = connection.sql(claim.query, params=params).fetchall()
    if isinstance(values, dict):
        ours_of = {row[0]: row[-1] for row in rows}
        rows, values = [(label, ours_of.get(label)) for label in values], tuple(values.values())
    checked = []
    for printed, (*labels, ours) in zip(values, rows, strict=True):
        value = ours if ours is None or isinstance(ours, str) else float(ours)  # type: ignore[arg-type]
        value = None if value != value else value  # NaN: nothing to compare
        row = ", ".join("all pairs" if label == math.inf else f"{label}" for label in labels)
        outcome = verdict(printed, value)
        checked.append(
            CheckedClaim(claim.where, claim.what, row, printed, value, outcome, claim.note)
        )
    return checked


def verdict(printed: str, ours: float | str | None) -> str:
    """Outcome of comparing ours, rounded as printed, with a printed value or bound.

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


def summary(checked: Iterable[CheckedClaim]) -> str:
    """Number of printed values of claims by outcome.

    >>> summary([CheckedClaim("App. A", "words", "", "3", 3.0, AGREE, "")])
    'claims: 1 agree, 0 off, 0 not run'
    """
    counts = Counter(c.outcome for c in checked)
    return f"claims: {', '.join(f'{counts[o]:,} {o}' for o in (AGREE, OFF, NOT_RUN))}"


def table(checked: Iterable[CheckedClaim]) -> list[dict[str, object]]:
    """One row per claim, its values joined by ` / `; ours have one decimal more, or are whole.

    >>> two = [CheckedClaim("App. A", "words", of, "3", 3.0, AGREE, "") for of in ("a", "b")]
    >>> (row,) = table(two)
    >>> row["what"], row["printed"], row["ours"], row["outcome"]
    ('words (a / b)', '3 / 3', '3 / 3', 'agree')
    """
    rows: list[dict[str, object]] = []
    for (where, what, note), group in groupby(checked, lambda c: (c.where, c.what, c.note)):
        values = list(group)
        labels = " / ".join(c.of for c in values if c.of)
        printed, ours = " / ".join(c.printed for c in values), " / ".join(map(_shown, values))
        outcomes = {c.outcome for c in values}
        n_off = sum(c.outcome == OFF for c in values)
        outcome = outcomes.pop() if len(outcomes) == 1 else f"{n_off} of {len(values)} off"
        claim = {"where": where, "what": f"{what} ({labels})" if labels else what}
        rows.append({**claim, "printed": printed, "ours": ours, "outcome": outcome, "note": note})
    return rows


def _shown(c: CheckedClaim) -> str:
    if c.ours is None or isinstance(c.ours, str):
        return c.ours or "–"
    decimals = len(c.printed.partition(".")[2].rstrip("k"))
    return f"{c.ours:,.{0 if c.ours == int(c.ours) else decimals + 1}f}"


def as_rows(checked: Iterable[CheckedClaim]) -> list[dict[str, object]]:
    """Claims in the columns of the figures' CSV."""
    return [
        {
            **{"table": c.where, "metric": c.what, "benchmark": c.of, "eta_nats": None},
            **{"model": "", "log_base": None, "value": c.printed, "ours": c.ours},
            **{"ours_low": None, "ours_high": None, "difference": None},
            **{"outcome": c.outcome, "note": c.note},
        }
        for c in checked
    ]
