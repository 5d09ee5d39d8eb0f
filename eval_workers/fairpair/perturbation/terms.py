"""The words that the rule-based perturber exchanges, read from TOML; see ``gender_en.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from plumbline.warehouse.text.toml_file import Section, read

_SHIPPED = "gender_en.toml"
_CLASSES = (
    *("copulas", "bare", "as", "between", "determiners", "adverbs", "stops", "joins", "ends"),
    *("owners", "neutral_titles", "kinds", "speech"),
)
_ABBREVIATED = frozenset(["Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Jr", "Sr"])


@dataclass(frozen=True)
class Terms:
    """Words by group, and the word classes of the grammar.

    Attributes:
        nouns: group -> word -> its counterpart in the other group.
        generic: nouns that are said of the other group too, and stay there.
        titles: the same of titles, as written, without a full stop.
        first_names: group -> names that name somebody else.
        classes: name of a word class -> its words.
    """

    file: str
    version: str
    language: str
    axis: str
    groups: tuple[str, str]
    pronouns: bool
    nouns: Mapping[str, Mapping[str, str]]
    generic: frozenset[str]
    titles: Mapping[str, Mapping[str, str]]
    first_names: Mapping[str, frozenset[str]]
    classes: Mapping[str, frozenset[str]]

    def other(self, group: str) -> str:
        """The other group of the two.

        >>> load().other("m")
        'f'
        """
        return self.groups[1] if group == self.groups[0] else self.groups[0]

    @property
    def abbreviated(self) -> frozenset[str]:
        """Words whose full stop ends no sentence."""
        return _ABBREVIATED


def load(path: Path | None = None) -> Terms:
    """Read a list of terms, or the English one for gender that comes with Plumbline.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the file, the key and
    what was expected; unknown keys are refused.

    >>> terms = load()
    >>> terms.nouns["m"]["dad"], terms.nouns["f"]["mum"], terms.titles["f"]["Mrs"]
    ('mom', 'dad', 'Mr')
    """
    what, file = str(path or _SHIPPED), path or resources.files(__package__) / _SHIPPED
    top = Section(what, read(file, what))
    top.only(
        *("description", "version", "language", "axis", "groups", "pronouns", "nouns", "titles"),
        "generic",
        *("first_names", "grammar"),
    )
    top.text("description", "none")
    groups = top.texts("groups")
    if len(groups) != 2 or len(set(groups)) != 2:
        raise top.fault("groups", 'two names, such as ["m", "f"]')
    pronouns = top.flag("pronouns", False)
    if pronouns and set(groups) != {"m", "f"}:
        raise top.fault("pronouns", 'false where the groups are not "m" and "f"')
    grammar = top.section("grammar")
    grammar.only(*_CLASSES)
    names = top.section("first_names")
    names.only(*groups)
    return Terms(
        file=path.name if path else _SHIPPED,
        version=top.text("version"),
        language=top.text("language"),
        axis=top.text("axis"),
        groups=(groups[0], groups[1]),
        pronouns=pronouns,
        nouns=_both_ways(top, "nouns", groups),
        generic=top.words("generic"),
        titles=_both_ways(top, "titles", groups),
        first_names={group: names.words(group) for group in groups},
        classes={name: grammar.words(name) for name in _CLASSES},
    )


def _both_ways(top: Section, key: str, groups: tuple[str, ...]) -> dict[str, dict[str, str]]:
    first, second = groups
    pairs = top.pairs(key, f"pairs of words, of {first} and of {second}")
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for word, counterpart in pairs:
        there.setdefault(word, counterpart)
        back.setdefault(counterpart, word)
    if both := sorted(set(there) & set(back)):
        raise top.fault(key, f"each word in one group; {both[0]!r} is in both")
    return {first: there, second: back}
