"""The words that the rule-based perturber exchanges, read from ``gender_en.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache, cached_property
from importlib import resources
from typing import TypeAlias

from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Text, Words, toml_table

_SHIPPED = "gender_en.toml"
_CLASSES = (
    *("copulas", "bare", "as", "between", "determiners", "adverbs", "stops", "joins", "ends"),
    *("owners", "neutral_titles", "kinds", "speech"),
)
_Pairs: TypeAlias = tuple[tuple[Text, Text], ...]


@toml_table
class Terms:
    """Words by group, and the word classes of the grammar, as in ``gender_en.toml``.

    ``generic`` nouns can also be about the other group; then they stay unchanged. ``titles`` are
    capitalised, without full stops; ``first_names`` show that another person is mentioned.
    """

    version: str = ""
    language: str = ""
    axis: str = ""
    groups: tuple[str, str] = ("", "")
    description: str = ""
    pronouns: bool = False
    nouns: _Pairs = ()
    generic: Words = frozenset()
    titles: _Pairs = ()
    first_names: Mapping[str, Words] = field(default_factory=dict)
    grammar: Mapping[str, Words] = field(default_factory=dict)

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
        to_second = dict(reversed(pairs))  # if several pairs have a word, the first pair counts
        to_first = {second: first for first, second in reversed(pairs)}
        return dict(zip(self.groups, (to_second, to_first), strict=True))

    @cached_property
    def classes(self) -> dict[str, frozenset[str]]:
        """Word class -> its words."""
        return {name: self.grammar.get(name, frozenset()) for name in _CLASSES}


#: No words: only names are exchanged.
NO_TERMS = Terms()


@cache
def load() -> Terms:
    """Load the English words for gender."""
    return toml_file.load(Terms, resources.files(__package__) / _SHIPPED, _SHIPPED)
