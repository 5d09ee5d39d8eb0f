"""Names of the two groups that pairs are about, and of the sides of a contrast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.wordlists import from_rows, side_names

if TYPE_CHECKING:  # with DuckDB, which no command needs to print its rows
    from plumbline.pipelines.report.facts import Facts

#: The usual groups, which aren't named beside a benchmark.
_USUAL = "female/male"


def sides(row: Row) -> tuple[str, str]:
    """The names of the groups of sentence a and of sentence b.

    >>> sides({"groups": "she/they"})
    ('she', 'they')
    """
    a, _, b = str(row["groups"]).partition("/")
    return a, b


def contrast_sides(facts: Facts, corpus: str, contrast: str) -> tuple[str, str]:
    """The names of a contrast's sides, above and below 0, from the corpus's word lists."""
    rows = facts.query("FROM word_list ORDER BY ALL").where(corpus=corpus)
    return side_names(contrast, [from_rows(list_rows) for list_rows in rows.groups("word_list")])


def set_name(row: Row) -> str:
    """A row's benchmark, with its groups unless they are empty or female/male.

    >>> set_name({"benchmark": "mine", "groups": "she/they"})
    'mine (she/they)'
    >>> set_name({"benchmark": "use-5", "groups": "female/male"})
    'use-5'
    """
    groups = row["groups"]
    return str(row["benchmark"]) if groups in ("", _USUAL) else f"{row['benchmark']} ({groups})"


def sets(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The combinations of benchmark and groups in the rows, each once, sorted.

    >>> sets([{"benchmark": "b", "groups": "x/y", "n": n} for n in (1, 2)])
    [{'benchmark': 'b', 'groups': 'x/y'}]
    """
    names = sorted({(str(r["benchmark"]), str(r["groups"])) for r in rows})
    return [{"benchmark": benchmark, "groups": groups} for benchmark, groups in names]


def by_set(rows: Rows) -> list[Rows]:
    """Rows split by benchmark and groups, in the order of each part's first row."""
    return rows.groups("benchmark", "groups")
