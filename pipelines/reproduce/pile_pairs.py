"""What UnStereoEval prints of word pairs in the Pile (App. A), beside those of a corpus."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

from plumbline.pipelines.reproduce.tau import Agreement

#: Percent of the Pile's words that co-occur with *he*, with *she*, and with both (App. A, Fig. 4a).
NEAR_PRONOUNS = (66.11, 43.86, 42.22)
#: Two pairs whose deltas are strongly correlated, and signs of a pair's tau with others (App. A).
_STRONG = ("her/him", "her/his")
_SIGNS = (
    ("she/he", 1, "most"),
    ("mummy/daddy", -1, "most"),
    ("aunt/uncle", -1, "most"),
    ("wife/husband", -1, "several"),
    ("girlfriend/boyfriend", -1, "several"),
)


@cache
def printed() -> dict[str, tuple[int, float]]:
    """Table 4 by contrast: words of the Pile with a delta, and their percent of its vocabulary.

    >>> len(printed()), printed()["she/he"]
    (38, (55476, 46.1))
    """
    text = (resources.files(__package__) / "pile_pairs.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {r["contrast"]: (int(r["n_words"]), float(r["percent_of_vocabulary"])) for r in rows}


def near_pronouns(row: dict[str, Any]) -> str:
    """A corpus's row of ``sql/lists/near_pronouns.sql`` beside Figure 4a, in a line."""
    ours = (row[f"percent_{near}"] for near in ("he", "she", "both"))
    own, pile = (", ".join(f"{x:.2f}%" for x in of) for of in (ours, NEAR_PRONOUNS))
    return f"Words that co-occur with he, she, both: {own} (of the Pile {pile}, Figure 4)"


def claims(agreements: Sequence[Agreement]) -> Iterator[str]:
    """What App. A says of the Pile's pairs beside these, in lines; nothing without such pairs.

    ``agreements`` are those on enough words.

    >>> tau = [Agreement("she/he", "mummy/daddy", 90, -0.2, -0.3, -0.1),
    ...        Agreement("her/him", "mummy/daddy", 90, 0.1, -0.1, 0.3)]
    >>> print(*claims(tau), sep="\\n")
    What App. A says of pairs in the Pile, and Kendall's tau here
      she/he is positive with most: here with 0 of 1 (0 with the interval above 0)
      mummy/daddy is negative with most: here with 1 of 2 (1 with the interval below 0)
    """
    lines = []
    for a in agreements:
        if {a.contrast_a, a.contrast_b} == set(_STRONG):
            interval = f"95% interval {a.tau_low:.2f} to {a.tau_high:.2f}"
            strong = f"{_STRONG[0]} and {_STRONG[1]} are strongly positive"
            lines.append(f"  {strong}: here {a.tau_b:.2f} ({interval})")
    for contrast, sign, how_many in _SIGNS:
        own = [a for a in agreements if contrast in (a.contrast_a, a.contrast_b)]
        n = sum(sign * a.tau_b > 0 for a in own)
        n_clear = sum(min(sign * a.tau_low, sign * a.tau_high) > 0 for a in own)
        name, side = ("positive", "above") if sign > 0 else ("negative", "below")
        here = f"here with {n} of {len(own)} ({n_clear} with the interval {side} 0)"
        if own:
            lines.append(f"  {contrast} is {name} with {how_many}: {here}")
    if lines:
        yield "What App. A says of pairs in the Pile, and Kendall's tau here"
        yield from lines
