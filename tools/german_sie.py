"""How often German *sie* means she, they or the formal you: ``python -m tools.german_sie SHARDS``.

By rule, not by a parser: a capital inside a sentence is the formal you; otherwise a verb right
after the pronoun decides, *sie sprach* (she) from *sie sprachen* (they), by its form alone. A verb
before it does not: in *er nahm sie* it is the object, her or them. All else is undecided.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from plumbline.warehouse.input.shards import documents

_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE_ENDS = {*".!?:;»«„“\"'"}
#: Finite verbs of the third person that don't follow a rule, and common strong ones.
_SHE = frozenset(
    """
    ist war hat hatte wird wurde ward kann konnte muß muss mußte musste will wollte soll sollte darf
    mag sei habe wäre hätte würde sprach ging kam gab nahm sah stand starb gebar ließ liess hieß
    trug fand rief aß trank lag saß fiel schrie schlief weiß zog hielt hub hob warf lief las goß
    floh
    """.split()  # noqa: SIM905  (a table of words)
)
_THEY = frozenset(
    """
    sind waren haben hatten werden wurden können konnten müssen mußten mussten wollen wollten sollen
    sollten dürfen mögen seien wären hätten würden sprachen gingen kamen gaben nahmen sahen standen
    starben ließen hießen trugen fanden riefen aßen tranken lagen saßen fielen zogen hielten hoben
    warfen liefen wußten
    """.split()  # noqa: SIM905
)
#: Words that look like verbs of a number and are none.
_NOT_VERBS = frozenset(
    """
    mit nicht seit erst fast gut dort sonst selbst jetzt bitte heute alte erste ihren seinen einen
    keinen meinen deinen den denen wegen gegen neben zwischen eben oben unten innen außen allen
    beiden andern anderen guten morgen zusammen drinnen
    """.split()  # noqa: SIM905
)


def number(word: str) -> str:
    """The reading that a verb after *sie* decides: ``she``, ``they``, or ``""``.

    >>> number("sprachen"), number("sprach"), number("sagte"), number("Brunnen")
    ('they', 'she', 'she', '')
    """
    if word in _SHE:
        return "she"
    if word in _THEY:
        return "they"
    if not word.islower() or len(word) < 4 or word in _NOT_VERBS:
        return ""
    if word.endswith(("ten", "en")):
        return "they"
    return "she" if word.endswith(("te", "t")) else ""


def readings(text: str) -> Iterator[str]:
    """The reading of each *sie* of a text: she, they, you or undecided."""
    words = _WORD.findall(text)
    for at, word in enumerate(words):
        if word not in ("sie", "Sie"):
            continue
        before = words[at - 1] if at else "."
        after = words[at + 1] if at + 1 < len(words) else "."
        if word == "Sie" and before not in _SENTENCE_ENDS:
            yield "you"
        else:
            yield number(after) or "undecided"


def main(shards: list[str]) -> None:
    """Print how often each reading occurs."""
    found = Counter(
        r for shard in shards for text in documents(Path(shard)) for r in readings(text)
    )
    n = found.total()
    for reading in ("she", "they", "you", "undecided"):
        print(f"{reading:<10} {found[reading]:5,} {found[reading] / max(n, 1):6.1%}")
    print(f"{'all':<10} {n:5,}")


if __name__ == "__main__":
    main(sys.argv[1:])
