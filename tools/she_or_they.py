"""How often German *sie* and Dutch *ze* mean she, they or the formal you, by rule.

``python -m tools.she_or_they de SHARDS``, or ``nl``: no parser. A verb right after the pronoun
decides, *sie sprach* (she) from *sie sprachen* (they), by its form alone; German *Sie* inside a
sentence is the formal you. A verb before it does not: in *er nahm sie* it is the object, her or
them. All else is undecided.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.input.shards import documents

_WORD = re.compile(r"\w+|[^\w\s]")
_SENTENCE_ENDS = {*".!?:;»«„“\"'"}


@dataclass(frozen=True)
class Rules:
    """The pronoun of a language, and how its verbs end.

    Attributes:
        pronouns: the pronoun, in lowercase.
        she, they: finite verbs of the third person that don't follow the rule, and common ones.
        not_verbs: words that look like verbs and are none.
        she_ends, they_ends: what verbs of either number end with.
        formal: with a capital inside a sentence the pronoun is the formal you.
    """

    pronoun: str
    she: frozenset[str]
    they: frozenset[str]
    not_verbs: frozenset[str]
    she_ends: tuple[str, ...]
    they_ends: tuple[str, ...]
    formal: bool = False

    def number(self, word: str) -> str:
        """The reading that a verb after the pronoun decides: ``she``, ``they``, or ``""``.

        >>> [RULES["de"].number(word) for word in ("sprachen", "sprach", "sagte", "Brunnen")]
        ['they', 'she', 'she', '']
        >>> [RULES["nl"].number(word) for word in ("werken", "werkte", "werkten", "niet")]
        ['they', 'she', 'they', '']
        """
        if word in self.she:
            return "she"
        if word in self.they:
            return "they"
        if not word.islower() or len(word) < 4 or word in self.not_verbs:
            return ""
        if word.endswith(self.they_ends):
            return "they"
        return "she" if word.endswith(self.she_ends) else ""

    def readings(self, text: str) -> Iterator[str]:
        """The reading of each pronoun of a text: she, they, you or undecided.

        >>> [*RULES["nl"].readings("Ze lacht. Toen ze werkten, zag hij ze.")]
        ['she', 'they', 'undecided']
        """
        words = _WORD.findall(text)
        for at, word in enumerate(words):
            if word not in (self.pronoun, self.pronoun.capitalize()):
                continue
            before = words[at - 1] if at else "."
            after = words[at + 1] if at + 1 < len(words) else "."
            if self.formal and word[0].isupper() and before not in _SENTENCE_ENDS:
                yield "you"
            else:
                yield self.number(after) or "undecided"


RULES = {
    "de": Rules(
        "sie",
        frozenset(
            """
            ist war hat hatte wird wurde ward kann konnte muß muss mußte musste will wollte soll
            sollte darf mag sei habe wäre hätte würde sprach ging kam gab nahm sah stand starb
            gebar ließ liess hieß trug fand rief aß trank lag saß fiel schrie schlief weiß zog
            hielt hub hob warf lief las goß floh
            """.split()  # noqa: SIM905  (a table of words)
        ),
        frozenset(
            """
            sind waren haben hatten werden wurden können konnten müssen mußten mussten wollen
            wollten sollen sollten dürfen mögen seien wären hätten würden sprachen gingen kamen
            gaben nahmen sahen standen starben ließen hießen trugen fanden riefen aßen tranken
            lagen saßen fielen zogen hielten hoben warfen liefen wußten
            """.split()  # noqa: SIM905
        ),
        frozenset(
            """
            mit nicht seit erst fast gut dort sonst selbst jetzt bitte heute alte erste ihren
            seinen einen keinen meinen deinen den denen wegen gegen neben zwischen eben oben
            unten innen außen allen beiden andern anderen guten morgen zusammen drinnen
            """.split()  # noqa: SIM905
        ),
        ("te", "t"),
        ("ten", "en"),
        formal=True,
    ),
    "nl": Rules(
        "ze",
        frozenset(
            """
            is was heeft had wordt werd kan kon moet moest wil wilde wou zal zou mag mocht gaat
            ging komt kwam ziet zag zegt zei staat stond doet deed ligt lag weet wist geeft gaf
            neemt nam krijgt kreeg houdt hield laat liet vindt vond denkt dacht brengt bracht
            loopt liep zit zat sprak riep at dronk sliep bleef blijft leek lijkt heet heette
            droeg las schreef viel trok keek sloeg won verloor begon beviel stierf baarde
            """.split()  # noqa: SIM905
        ),
        frozenset(
            """
            zijn waren hebben hadden worden werden kunnen konden moeten moesten willen wilden
            wouden zullen zouden mogen mochten gaan gingen komen kwamen zien zagen zeggen zeiden
            staan stonden doen deden liggen lagen weten wisten geven gaven nemen namen krijgen
            kregen houden hielden laten lieten vinden vonden denken dachten brengen brachten
            """.split()  # noqa: SIM905
        ),
        frozenset(
            """
            niet dat met uit wat tot het iets veel eerst laatst soms vast dicht recht direct
            echt bijna goed altijd reeds toch nog want nooit ooit alleen samen binnen buiten
            tussen tegen even eigen allen beiden anderen morgen gisteren boven onder achteren
            voren beneden zeven tien mensen een geen haren hunnen elkaar zelden steeds onlangs
            beide goede rede einde aarde vrede waarde hoofd tijd bed kind hand land grote beste
            laatste eerste kleine juist immers achteraf trouwens zojuist meteen opeens ineens
            overigens sindsdien vandaag langzaam helemaal meestal kennelijk apart zonet pas
            vooruit achteruit
            """.split()  # noqa: SIM905
        ),
        ("te", "de", "t"),
        ("en",),
    ),
}


def main(language: str, *shards: str) -> None:
    """Print how often each reading occurs."""
    rules = RULES[language]
    found = Counter(
        r for shard in shards for text in documents(Path(shard)) for r in rules.readings(text)
    )
    n = found.total()
    for reading in ("she", "they", "you", "undecided"):
        print(f"{reading:<10} {found[reading]:5,} {found[reading] / max(n, 1):6.1%}")
    print(f"{'all':<10} {n:5,}")


if __name__ == "__main__":
    main(*sys.argv[1:])
