"""Columns that had other names in Plumbline 0.1, the one list of them.

From it come how older files are read (``storage``), the views of the schema ``v0_1`` in SQL
(``query/connection.py``) and ``docs/renamed.md``.
"""

from __future__ import annotations

import re

#: The schema of SQL in which tables, views and macros have the columns of Plumbline 0.1.
OLD_SCHEMA = "v0_1"

#: A line each table, view or macro, ``name: new (old), ...``; of several the first was of 0.1.
_TEXT = """
"""


def parsed(text: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """The names that columns had: by table, view or macro, then by today's name.

    >>> parsed("demo: x_low (ci_low), x_se (sd spread)")
    {'demo': {'x_low': ('ci_low',), 'x_se': ('sd', 'spread')}}
    """
    found = {}
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        name, _, columns = line.partition(": ")
        pairs = re.findall(r"(\w+) \(([\w ]+)\)", columns)
        found[name] = {new: tuple(old.split()) for new, old in pairs}
    return found


RENAMED = parsed(_TEXT)
