"""What UnStereoEval says in numbers outside its tables: a claim is a query and a printed value."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa

from plumbline.pipelines.reproduce.compare import AGREE, NOT_RUN, OFF
from plumbline.warehouse.query.connection import connect, query
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import OneOrMore, Text, Texts, load, toml_table

if TYPE_CHECKING:
    import duckdb

_FILE = "claims.toml"
#: Sets of UnStereoEval in the order of its tables.
BENCHMARKS = ("use-5", "use-10", "use-20", "winobias", "winogender")
#: The limits on |MaxPMI| at which `card` is; ``inf`` for none.
_CARD_ETAS = (math.inf, 0.5)
_PRINTED = re.compile(r"(<=|>=|<|>|) ?(-?\d+)(?:\.(\d+))?(k?)")


@toml_table
class Claim:
    """One entry of ``claims.toml``, which says what its keys mean; ``printed`` has one per row."""

    where: Text
    what: Text
    printed: Annotated[Texts, OneOrMore]
    query: str = ""
    note: str = ""


@toml_table
class _File:
    claim: tuple[Claim, ...]


@dataclass(frozen=True)
class Checked:
    """A printed value beside ours, None where there is none, and what that comes to.

    ``of``: which row of the claim's query ours is, empty where it has one.
    """

    where: str
    what: str
    of: str
    printed: str
    ours: float | str | None
    outcome: str
    note: str


def packaged() -> list[Claim]:
    """The claims that come with Plumbline.

    >>> sum(len(claim.printed) for claim in packaged()) > 150
    True
    """
    return list(load(_File, resources.files(__package__) / _FILE, _FILE).claim)


def check(
    store: Store, models: Sequence[str], corpus: str, claims: Iterable[Claim]
) -> list[Checked]:
    """Each printed value of the claims beside what its query gives.

    Args:
        models: whose released scores the queries read. corpus: of the released word statistics.

    A part of the release is not what the page speaks of: without all 28 models, five sets and the
    word statistics there is nothing.
    """
    with connect(store.root) as connection:
        parameters = {"models": list(models), "corpus": corpus}
        for name in ("ratio", "figure", "word"):
            connection.register(name, query(connection, f"reproduce/released_{name}", parameters))
        if not _is_whole(connection):
            return []
        connection.register("card", _cards(store, connection, corpus))
        return [c for claim in claims for c in _checked(connection, claim, corpus)]


def _is_whole(connection: duckdb.DuckDBPyConnection) -> bool:
    text = """
        SELECT count(*) = 28 * 5 * 4 AND EXISTS (FROM word)
            AND (SELECT count(*) FROM ratio) = 28 * 15810
        FROM figure
    """
    return connection.sql(text).fetchall() == [(True,)]


def _cards(store: Store, connection: duckdb.DuckDBPyConnection, corpus: str) -> pa.Table:
    """The statistics of Table 7 of every set, of all pairs and of those within 0.5 nats."""
    from plumbline.eval_workers.writing.sharing.benchmark_card import statistics

    text = """
        SELECT DISTINCT pair_id FROM ratio
        WHERE benchmark = $benchmark AND (isinf($eta::DOUBLE) OR within(max_pmi_nats, $eta::DOUBLE))
    """
    rows = []
    for place, benchmark in enumerate(BENCHMARKS):
        for eta in _CARD_ETAS:
            found = connection.sql(text, params={"benchmark": benchmark, "eta": eta}).fetchall()
            figures: dict[str, Any] = statistics(store.root, benchmark, [i for (i,) in found])
            (deltas,) = (
                row
                for row in figures.pop("seed_delta")
                if (row["corpus"], row["contrast"]) == (corpus, "she/he")
            )
            rows.append({**deltas, **figures, "place": place, "eta": eta})
    return pa.Table.from_pylist(rows)


def _checked(connection: duckdb.DuckDBPyConnection, claim: Claim, corpus: str) -> list[Checked]:
    rows: list[tuple[object, ...]] = [(None,)] * len(claim.printed)
    if claim.query:
        given = {"corpus": corpus} if "$corpus" in claim.query else {}
        rows = connection.sql(claim.query, params=given).fetchall()
    found = []
    for printed, (*of, ours) in zip(claim.printed, rows, strict=True):
        value = ours if ours is None or isinstance(ours, str) else float(ours)  # type: ignore[arg-type]
        value = None if value != value else value  # NaN: nothing to compare
        named = ", ".join("all pairs" if x == math.inf else f"{x}" for x in of)
        outcome = verdict(printed, value)
        found.append(Checked(claim.where, claim.what, named, printed, value, outcome, claim.note))
    return found


def verdict(printed: str, ours: float | str | None) -> str:
    """Whether ours, rounded as the page rounds, is what is printed or within its bound.

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


def summary(found: Iterable[Checked]) -> str:
    """How many claims came to each outcome.

    >>> summary([Checked("App. A", "words", "", "3", 3.0, AGREE, "")])
    'claims: 1 agree, 0 off, 0 not run'
    """
    counts = Counter(c.outcome for c in found)
    return f"claims: {', '.join(f'{counts[o]:,} {o}' for o in (AGREE, OFF, NOT_RUN))}"


def table(found: Iterable[Checked]) -> list[dict[str, object]]:
    """A row per claim, values separated by ` / `; ours with a decimal more than printed.

    >>> (row,) = table([Checked("App. A", "words", of, "3", 3.0, AGREE, "") for of in ("a", "b")])
    >>> row["what"], row["printed"], row["ours"], row["outcome"]
    ('words (a / b)', '3 / 3', '3 / 3', 'agree')
    """
    rows: list[dict[str, object]] = []
    for (where, what, note), group in groupby(found, lambda c: (c.where, c.what, c.note)):
        values = list(group)
        of, printed, ours = (
            " / ".join(cell)
            for cell in (
                [c.of for c in values if c.of],
                [c.printed for c in values],
                map(_shown, values),
            )
        )
        outcomes = {c.outcome for c in values}
        n_off = sum(c.outcome == OFF for c in values)
        outcome = outcomes.pop() if len(outcomes) == 1 else f"{n_off} of {len(values)} off"
        claim = {"where": where, "what": f"{what} ({of})" if of else what}
        rows.append({**claim, "printed": printed, "ours": ours, "outcome": outcome, "note": note})
    return rows


def _shown(c: Checked) -> str:
    if c.ours is None or isinstance(c.ours, str):
        return c.ours or "–"
    decimals = len(c.printed.partition(".")[2].rstrip("k"))
    return f"{c.ours:,.{0 if c.ours == int(c.ours) else decimals + 1}f}"


def as_rows(found: Iterable[Checked]) -> list[dict[str, object]]:
    """The claims under the columns of the figures' CSV."""
    return [
        {
            **{"table": c.where, "metric": c.what, "benchmark": c.of, "eta_nats": None},
            **{"model": "", "log_base": None, "value": c.printed, "ours": c.ours},
            **{"ours_low": None, "ours_high": None, "difference": None},
            **{"outcome": c.outcome, "note": c.note},
        }
        for c in found
    ]
