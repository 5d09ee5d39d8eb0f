"""The common words of two sentences, as a template with a placeholder where they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

#: The placeholder where the sentences differ; it is left out when words are counted.
DIFFERS = "{differs}"
_NO_BRACES = str.maketrans("{}", "  ")
_PARTS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def shared_template(a: str, b: str) -> str:
    """The words and marks that both sentences have in the same order, as sentence a writes them.

    This is a longest common subsequence, compared without case, with one ``{differs}`` wherever
    either sentence has something else. Braces in the sentences are left out.

    >>> shared_template("Old men can't code.", "Young women can't code.")
    "{differs} can't code."
    >>> shared_template("We hired Ann, the nurse.", "We hired the nurse.")
    'We hired {differs} the nurse.'
    >>> shared_template("Yes", "no")
    '{differs}'
    """
    a, b = (text.translate(_NO_BRACES) for text in (a, b))
    parts, words_b = list(_PARTS.finditer(a)), [m.group().lower() for m in _PARTS.finditer(b)]
    matches = _common_subsequence([m.group().lower() for m in parts], words_b)
    text, end, i, j = "", 0, 0, 0
    for k, n in [*matches, (len(parts), len(words_b))]:
        if k > i or n > j:
            text += f"{' ' * bool(text and text[-1] != ' ')}{DIFFERS}"
        if k < len(parts):
            token = parts[k].group()
            is_apart = token[0].isalnum() or a[: parts[k].start()].endswith(" ")
            text += a[end : parts[k].end()] if k == i and n == j else f"{' ' * is_apart}{token}"
            end = parts[k].end()
        i, j = k + 1, n + 1
    return re.sub(r"\s+", " ", text).strip()


def _common_subsequence(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Positions, in a and in b, of the elements of a longest common subsequence, in order.

    >>> _common_subsequence("abcbdab", "bdcaba")
    [(1, 0), (4, 1), (5, 3), (6, 4)]
    """
    n_first = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, n_first - 1, -1):
        for j in range(len(b) - 1, n_first - 1, -1):
            skipped = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = longest[i + 1][j + 1] + 1 if a[i] == b[j] else skipped
    matches, i, j = [(k, k) for k in range(n_first)], n_first, n_first
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            matches.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return matches
