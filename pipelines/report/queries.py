"""The queries behind tables and plots as text that ``plumbline sql`` runs as it stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from plumbline.warehouse.query.connection import sql
from plumbline.warehouse.text.escape import sql_text

_PARAMETER = re.compile(r"\$([a-z_]+)")


def as_sql(
    name: str,
    params: Mapping[str, object] | None = None,
    where: Mapping[str, object] | None = None,
    but: Mapping[str, object] | None = None,
) -> str:
    """Text of ``sql/report/<name>.sql`` with values in place of its parameters.

    ``where`` narrows the result to rows whose columns equal a value, or are one of a tuple of
    values; ``but`` leaves out rows that equal a value. Raises ``UsageProblem`` for an unknown name
    and ``KeyError`` for a parameter without a value.
    """
    return narrowed(filled(sql(f"report/{name}"), params or {}), where or {}, but or {})


def filled(text: str, params: Mapping[str, object]) -> str:
    """A query with values for its parameters; comments keep the names.

    >>> filled("-- $top a side\\nFROM t WHERE n <= $top;", {"top": 5})
    '-- $top a side\\nFROM t WHERE n <= 5;'
    """
    lines = []
    for line in text.strip().split("\n"):
        code, dashes, comment = line.partition("--")
        code = _PARAMETER.sub(lambda found: literal(params[found[1]]), code)
        lines.append(code + dashes + comment)
    return "\n".join(lines)


def narrowed(text: str, where: Mapping[str, object], but: Mapping[str, object]) -> str:
    """A query, and of its rows those wanted; with nothing to narrow it is left as it is.

    >>> print(narrowed("SELECT 1 AS a;", {"a": (1, 2)}, {}))
    FROM (
    SELECT 1 AS a
    )
    WHERE "a" IN (1, 2);
    """
    conditions = [_is(column, value) for column, value in where.items()]
    conditions += [f'"{column}" <> {literal(value)}' for column, value in but.items()]
    if not conditions:
        return text
    inner = text.rstrip().removesuffix(";")
    return f"FROM (\n{inner}\n)\nWHERE {' AND '.join(conditions)};"


def _is(column: str, value: object) -> str:
    if value is None:
        return f'"{column}" IS NULL'
    if isinstance(value, tuple):
        return f'"{column}" IN ({", ".join(map(literal, value))})'
    return f'"{column}" = {literal(value)}'


def literal(value: object) -> str:
    """A value as DuckDB reads it: text in quotes, a list in brackets.

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
