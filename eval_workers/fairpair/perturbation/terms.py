"""Words that the rule-based perturber exchanges, read from TOML; see ``gender_en.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Text, Words, one_of, toml_table

_SHIPPED = "gender_en.toml"
_CLASSES = (
    *("copulas", "bare", "as", "between", "determiners", "adverbs", "stops", "joins", "ends"),
    *("owners", "neutral_titles", "kinds", "speech"),
)


def _different(groups: tuple[str, str]) -> tuple[str, str]:
    if groups[0] == groups[1]:
        raise ValueError(f"{groups[0]} is there twice")
    return groups


#: The two groups of a file.
Groups: TypeAlias = Annotated[
    tuple[Text, Text],
    AfterValidator(_different),
]


def _each_in_one(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if both := {first for first, _ in pairs} & {second for _, second in pairs}:
        raise ValueError(f"expected each word in one group; {min(both)!r} is in both")
    return pairs


_Pairs: TypeAlias = Annotated[
    tuple[tuple[Text, Text], ...],
    AfterValidator(_each_in_one),
]


@toml_table
class Terms:
    """Words by group, and the word classes of the grammar, as in ``gender_en.toml``.

    ``generic`` are nouns that are also used for the other group, and then stay unchanged.
    ``titles`` have their capitals and no full stop; ``first_names`` are names of other people.
    """

    file: str
    version: Text
    language: Text
    axis: Text
    groups: Groups
    description: Text = "none"
    pronouns: bool = False
    nouns: _Pairs = ()
    generic: Words = frozenset()
    titles: _Pairs = ()
    first_names: Mapping[str, Words] = field(default_factory=dict)
    grammar: Mapping[Annotated[str, one_of(*_CLASSES)], Words] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.pronouns and set(self.groups) != {"m", "f"}:
            raise ValueError('pronouns has to be false where the groups are not "m" and "f"')
        if wrong := sorted(set(self.first_names) - set(self.groups)):
            groups = " and ".join(self.groups)
            raise ValueError(f"first_names.{wrong[0]}: is not one of the groups {groups}")

    @cached_property
    def noun_of(self) -> dict[str, dict[str, str]]:
        """Group -> noun -> its counterpart in the other group.

        >>> load().noun_of["m"]["dad"], load().noun_of["f"]["mum"]
        ('mom', 'dad')
        """
        return self._both_ways(self.nouns)

    @cached_property
    def title_of(self) -> dict[str, dict[str, str]]:
        """Group -> title -> its counterpart in the other group."""
        return self._both_ways(self.titles)

    def _both_ways(self, pairs: _Pairs) -> dict[str, dict[str, str]]:
        to_second = dict(reversed(pairs))  # of several pairs with a word, the first one counts
        to_first = {second: first for first, second in reversed(pairs)}
        return dict(zip(self.groups, (to_second, to_first), strict=True))

    @cached_property
    def classes(self) -> dict[str, frozenset[str]]:
        """Word class -> its words."""
        return {name: self.grammar.get(name, frozenset()) for name in _CLASSES}


def load(path: Path | None = None) -> Terms:
    """Read a list of terms; by default the packaged English one for gender.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` for a wrong value or an unknown
    key.
    """
    file = path or resources.files(__package__) / _SHIPPED
    return toml_file.load(Terms, file, str(path or _SHIPPED), file=file.name)
