"""Checks of third-party regular expressions, some of which take for ever to match.

Python's matcher tries every way to match a pattern. There are too many ways if a repeated part can
itself match in several ways, as in ``(a+)+`` and ``(a|a)*``, or if many consecutive parts can.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_IN_RE = sys.version_info >= (3, 11)
ops: Any = import_module("re._constants" if _IN_RE else "sre_constants")
parser: Any = import_module("re._parser" if _IN_RE else "sre_parse")

_LONGEST = 2000
#: Limits on consecutive parts: in a name of 60 letters, five repeats match in millions of ways.
_MOST_REPEATS = 5
_MOST_CHOICES = 12
#: Parts that match at most one character, in one way.
_PLAIN = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN, ops.AT)


def why_refused(pattern: str) -> str:
    """The reason to refuse a third party's pattern; empty if matching it with names is quick.

    >>> why_refused(r".*\\.layers\\.\\d+\\.(q|k|v)_proj")
    ''
    >>> why_refused("(a+)+$"), why_refused("(a|a)*b"), why_refused("(")[:12]
    ('repeats an ambiguous part', 'repeats an ambiguous part', 'is not a pat')
    """
    if len(pattern) > _LONGEST:
        return f"has {len(pattern):,} characters, more than {_LONGEST:,}"
    try:
        n_repeats, n_choices = _ways(parser.parse(pattern))
    except (re.error, OverflowError, RecursionError) as e:
        return f"is not a pattern: {str(e) or type(e).__name__}"
    except _Ambiguous:
        return "repeats an ambiguous part"
    if n_repeats > _MOST_REPEATS or n_choices > _MOST_CHOICES:
        return f"has more than {_MOST_REPEATS} repeats or {_MOST_CHOICES} choices in a row"
    return ""


class _Ambiguous(Exception):
    """A repeated part can be matched in several ways."""


def _ways(parts: Iterable[tuple[Any, Any]]) -> tuple[int, int]:
    """Numbers of repeats and choices among consecutive parts; raises ``_Ambiguous``."""
    n_repeats = n_choices = 0
    for op, value in parts:
        within = (0, 0)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            within = _repeated(*value)
        elif op is ops.BRANCH:
            each = [_ways(branch) for branch in value[1]]
            within = max(r for r, _ in each), 1 + max(c for _, c in each)
        elif op is ops.SUBPATTERN:
            within = _ways(value[-1])
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            within = _ways(value[1])
        elif op not in _PLAIN:  # back-references, conditions
            raise _Ambiguous
        n_repeats, n_choices = n_repeats + within[0], n_choices + within[1]
    return n_repeats, n_choices


def _repeated(_: int, most: Any, body: Any) -> tuple[int, int]:
    """``_ways`` of a part that is repeated at most ``most`` times."""
    n_repeats, n_choices = _ways(body)
    if most == 1:  # a part that may be left out
        return n_repeats + 1, n_choices
    if n_repeats or n_choices:
        raise _Ambiguous
    return 1, 0
