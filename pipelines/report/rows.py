"""Rows of a query together with their SQL, which users can run with ``plumbline sql``.

Other functions name benchmarks, groups and corpora for readers. A "set" is a benchmark with two
groups, such as female/male.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

from plumbline.eval_workers.models.model_texts import text_name
from plumbline.warehouse.text.escape import sql_text

#: A row of a query or of a table of the warehouse.
Row: TypeAlias = Mapping[str, Any]

#: Columns that identify a fit.
FIT = ("subset", "benchmark", "groups", "corpus", "contrast", "model_key", "options")
#: The usual groups, which are not printed after a benchmark's name.
_USUAL = "female/male"
_PARAMETER = re.compile(r"\$([a-z_]+)")


class Rows(list[Row]):
    """Rows of a query. ``where`` and ``but`` select rows, and add the same condition to ``sql``.

    >>> rows = Rows([{"a": 1}, {"a": 2}, {"a": None}], "FROM t;")
    >>> print(rows.where(a=(1, 2)), rows.where(a=(1, 2)).sql)
    [{'a': 1}, {'a': 2}] FROM (
    FROM t
    )
    WHERE "a" IN (1, 2);
    """

    def __init__(
        self, rows: Iterable[Row] = (), text: str = "", conditions: tuple[str, ...] = ()
    ) -> None:
        super().__init__(rows)
        self._text, self._conditions = text, conditions

    @property
    def sql(self) -> str:
        """The query that returns the rows, or an empty string if they come from no query."""
        if not self._conditions:
            return self._text
        inner = self._text.rstrip().removesuffix(";")
        return f"FROM (\n{inner}\n)\nWHERE {' AND '.join(self._conditions)};"

    def where(self, **wanted: object) -> Rows:
        """Return the rows whose columns have the wanted values. A tuple allows several values."""
        rows: list[Row] = self
        for column, value in wanted.items():
            values = value if isinstance(value, tuple) else (value,)
            rows = [row for row in rows if row[column] in values]
        return Rows(
            rows, self._text, (*self._conditions, *map(_condition, wanted, wanted.values()))
        )

    def but(self, **unwanted: object) -> Rows:
        """Return the rows in which every given column differs from its unwanted value.

        ``None`` is compared like any other value.

        >>> rows = Rows([{"a": 1}, {"a": None}], "FROM t;").but(a=1)
        >>> rows, rows.sql.splitlines()[-1]
        ([{'a': None}], 'WHERE "a" IS DISTINCT FROM 1;')
        """
        rows = [row for row in self if all(row[c] != value for c, value in unwanted.items())]
        conditions = (
            f'"{column}" IS DISTINCT FROM {literal(value)}' for column, value in unwanted.items()
        )
        return Rows(rows, self._text, (*self._conditions, *conditions))

    def only(self, is_wanted: Callable[[Row], object]) -> Rows:
        """Return the rows that a function accepts. The query in ``sql`` still returns all rows."""
        return Rows(filter(is_wanted, self), self._text, self._conditions)

    def groups(self, *columns: str) -> list[Rows]:
        """Group the rows by ``columns``. Groups come in the order of their first rows."""
        keys = dict.fromkeys(tuple(row[c] for c in columns) for row in self)
        return [self.where(**dict(zip(columns, key, strict=True))) for key in keys]


def same(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    """Return the given columns of a row as a dict, for use in ``Rows.where``.

    >>> same({"model": "m", "value": 0.5}, ["model"])
    {'model': 'm'}
    """
    return {column: row[column] for column in columns}


def sides(row: Row) -> tuple[str, str]:
    """Split a row's column ``groups`` into the group of sentence a and the group of sentence b.

    >>> sides({"groups": "she/they"})
    ('she', 'they')
    """
    a, _, b = str(row["groups"]).partition("/")
    return a, b


def set_name(row: Row) -> str:
    """Return the name of a row's benchmark. Adds its groups unless they are female/male or empty.

    >>> set_name({"benchmark": "mine", "groups": "she/they"})
    'mine (she/they)'
    >>> set_name({"benchmark": "use-5", "groups": "female/male"})
    'use-5'
    """
    groups = row["groups"]
    return str(row["benchmark"]) if groups in ("", _USUAL) else f"{row['benchmark']} ({groups})"


def corpus_name(row: Row) -> str | None:
    """Return the name of a row's corpus. Adds the contrast unless it is she/he or empty.

    Returns ``None`` if the row has no corpus.

    >>> corpus_name({"corpus": "novels", "contrast": "old/young"})
    'novels (old/young)'
    >>> corpus_name({"corpus": "pile", "contrast": "she/he"})
    'the Pile'
    """
    if not row["corpus"]:
        return None
    text, contrast = text_name(row["corpus"]), row["contrast"]
    return text if contrast in ("", None, "she/he") else f"{text} ({contrast})"


def brief(model: str, models: Sequence[str]) -> str:
    """Return a model's name without its owner, unless two of ``models`` would have that name.

    >>> [brief(name, ["a/x", "b/x", "b/y"]) for name in ("a/x", "b/y")]
    ['a/x', 'y']
    """
    short = model.rpartition("/")[2]
    return short if [m.rpartition("/")[2] for m in models].count(short) == 1 else model


def parts(a: Sequence[str], b: Sequence[str]) -> list[str | list[str]]:
    """Split sentences ``a`` and ``b``. Common parts are texts; other parts are [from a, from b].

    >>> parts("She lost her own key".split(), "He lost his key".split())
    [['She', 'He'], 'lost', ['her own', 'his'], 'key']
    """
    found = list[str | list[str]]()
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        text = " ".join(a[i:j])
        found.append(text if kind == "equal" else [text, " ".join(b[k:m])])
    return found


def both(a: str, b: str) -> str:
    """Return two sentences as one text, with "/" between their differing parts.

    >>> both("She lost her key", "He lost his key")
    'She/He lost her/his key'
    """
    differing = parts(a.split(), b.split())
    return " ".join(part if isinstance(part, str) else "/".join(part) for part in differing)


def by_set(rows: Rows) -> list[Rows]:
    return rows.groups("benchmark", "groups")


def with_ends(column: str) -> tuple[str, str, str]:
    """Return a column's name, and the names of the columns with the ends of its interval.

    >>> with_ends("us")
    ('us', 'us_low', 'us_high')
    """
    return column, f"{column}_low", f"{column}_high"


def filled(text: str, params: Mapping[str, object]) -> str:
    """Replace a query's parameters, such as ``$top``, with values, so that users can run it.

    Parameters in comments aren't replaced. Raises ``KeyError`` if a parameter has no value.

    >>> filled("-- $top a side\\nFROM t WHERE n <= $top;", {"top": 5})
    '-- $top a side\\nFROM t WHERE n <= 5;'
    """
    lines = []
    for line in text.strip().split("\n"):
        code, dashes, comment = line.partition("--")
        code = _PARAMETER.sub(lambda match: literal(params[match[1]]), code)
        lines.append(code + dashes + comment)
    return "\n".join(lines)


def _condition(column: str, value: object) -> str:
    if value is None:
        return f'"{column}" IS NULL'
    if isinstance(value, tuple):
        among_values = f'"{column}" IN ({", ".join(literal(v) for v in value if v is not None)})'
        return f'({among_values} OR "{column}" IS NULL)' if None in value else among_values
    return f'"{column}" = {literal(value)}'


def literal(value: object) -> str:
    """Return a value as an SQL literal for DuckDB: text in quotes, a list in brackets.

    >>> literal("it's"), literal(0.5), literal(None), literal([True])
    ("'it''s'", '0.5', 'NULL', '[true]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return sql_text(str(value))
