"""Fills templates with pronouns and words for several groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import USUAL, Row, pair_row
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import (
    capital_at,
    fill,
    fill_for,
    forms,
    template_problem,
)
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Text, Texts, toml_table

GROUP_WORDS = Registry(
    *("list of words by group", "plumbline.eval_workers.pairs.benchmarks.own.words", ".toml"),
    instead="give a word list or the path of a .toml file",
)
_PRONOUN_OF = {"female": "she", "male": "he"}
_SLOT = re.compile(r"(?:\b([Aa])n? )?\{(\w+)\}")
_NAMED = re.compile(r"\{([a-z]\w*)\}")
#: The beginning of a word that takes the article *an*.
_VOWEL = re.compile(
    r"(?!uni|use|usu|eu|one\b|once\b|ut[io])[aeiou]|hon(?:est|our|or)|hour|heir", re.I
)


@toml_table
class GroupWords:
    """The words of a group, and the name of its pronouns in ``forms.toml``, if the list gives one.

    The k-th words of all groups are counterparts, so all groups have the same number of words.
    """

    words: Annotated[Texts, Field(min_length=1)]
    pronoun: Annotated[
        str | None, AfterValidator(lambda group: group and forms(group) and group)
    ] = None


@toml_table
class _GroupWordsFile:
    about: Text
    source: Text
    groups: Annotated[
        Mapping[Annotated[str, Field(pattern="^[^/]+$")], GroupWords],
        Field(min_length=2),
    ]

    def __post_init__(self) -> None:
        if len({len(group.words) for group in self.groups.values()}) > 1:
            raise ValueError("every group needs as many words as the others")


@dataclass(frozen=True)
class Filler:
    """Fills templates for groups; ``words`` maps each placeholder's name to its words by group."""

    groups: tuple[str, ...] = USUAL
    words: Mapping[str, Mapping[str, GroupWords]] = field(default_factory=dict)

    def pairs(self, template: str, identifier: str, **columns: object) -> list[Row]:
        """Return a pair for every two groups and each position in the template's word lists.

        The pairs from one position are one item. If the template can't be filled for every group,
        raises ``ValueError`` with the reason.

        >>> pairs = Filler(("she", "he", "they")).pairs("Ann said {pronoun} was late.", "1")
        >>> [(pair["pair_id"], pair["sentence_b"]) for pair in pairs[:2]]
        [('1 she/he', 'Ann said he was late.'), ('1 she/they', 'Ann said they were late.')]
        """
        for name in _NAMED.findall(PLACEHOLDER.sub("", template)):
            if name not in self.words:
                raise ValueError(f"{{{name}}} has no words (give them by --fill {name}=LIST)")
        word_lists = [self.words[name] for _, name in _SLOT.findall(template) if name in self.words]
        sizes = [len(of_group.words) for by_group in word_lists for of_group in by_group.values()]
        n_items, pairs = min(sizes, default=1), []
        for k in range(n_items):
            item_id = identifier if n_items == 1 else f"{identifier}:{k + 1:02d}"
            filled = {group: self._filled(template, group, k) for group in self.groups}
            for a, b in combinations(self.groups, 2):
                pair_id = item_id if len(self.groups) == 2 else f"{item_id} {a}/{b}"
                sentences = filled[a], filled[b]
                item = {"item_id": item_id, **columns}
                pairs.append(pair_row(pair_id, template, sentences, (a, b), **item))
        return pairs

    def _filled(self, template: str, group: str, k: int) -> str:
        """Fill the template with the k-th words of a group, then with the group's pronouns."""

        def put(match: re.Match[str]) -> str:
            article, name = match[1], match[2]
            if name not in self.words:
                return match[0]
            word = self.words[name][group].words[k]
            if article:
                return f"{article}{'n' if _VOWEL.match(word) else ''} {word}"
            return capital_at(template, match.start(), word)

        text = _SLOT.sub(put, template)
        if text == template or PLACEHOLDER.search(text):
            return self._pronouns(text, group)
        if brace := re.search(r"[{}]", text):
            raise ValueError(f"the template holds {brace.group()!r}, which is not a placeholder")
        return text

    def _pronouns(self, template: str, group: str) -> str:
        if self.groups == USUAL and not self.words:
            if problem := template_problem(template):
                raise ValueError(problem)
            return fill(template, "f" if group == "female" else "m")
        listed = [by_group[group].pronoun for by_group in self.words.values()]
        pronoun = next(filter(None, reversed(listed)), None)
        return fill_for(template, pronoun or _PRONOUN_OF.get(group, group))


def filler(groups: Sequence[str] = (), fills: Sequence[str] = ()) -> Filler:
    """Return a filler for groups and for ``fills``, texts like ``placeholder=list``.

    The default groups are those of the first list, or female and male if there are no lists. Raises
    what ``load_words`` raises. Also raises ``UsageProblem`` if there are fewer than two groups, if
    a group is repeated or missing in a list, or if there are no lists and it has no pronouns.

    >>> filler(["she", "he", "they"]).groups
    ('she', 'he', 'they')
    >>> filler(fills=["kin=kinship"]).groups
    ('female', 'male', 'neutral')
    """
    words: dict[str, Mapping[str, GroupWords]] = {}
    for text in fills:
        name, equals, list_name = text.partition("=")
        if not equals or not re.fullmatch(r"[a-z]\w*", name) or name.startswith("pronoun"):
            raise UsageProblem(f"--fill {text}", "is not PLACEHOLDER=LIST", "such as kin=kinship")
        words[name] = load_words(list_name, is_name=name == "name")
    chosen = tuple(groups) or (tuple(next(iter(words.values()))) if words else USUAL)
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        option = f"--groups {','.join(chosen)}"
        raise UsageProblem(option, "is not two or more different groups", "such as she,he,they")
    for group in chosen:
        for name, by_group in words.items():
            if group not in by_group:
                fix = f"there are {', '.join(by_group)}"
                raise UsageProblem(f"group {group!r}", f"has no words for {{{name}}}", fix)
        if not words:
            forms(_PRONOUN_OF.get(group, group))
    return Filler(chosen, words)


def load_words(name: str, *, is_name: bool = False) -> Mapping[str, GroupWords]:
    """Load words by group; ``name`` is in ``GROUP_WORDS``, a word list, or a TOML file's path.

    The words of a word list are lowercase; ``is_name`` capitalises them. Raises ``UsageProblem``
    for an unknown name, and ``BadInput`` for a file that is not a list of words by group.

    >>> load_words("kinship")["neutral"].words[0]
    'parent'
    >>> load_words("names", is_name=True)["male"].words[0]
    'James'
    """
    if name not in GROUP_WORDS.names() and name in wordlists.LISTS.names():
        cased = str.capitalize if is_name else str
        word_list = wordlists.load(name)
        sides = zip(*((cased(p.a), cased(p.b)) for p in word_list.pairs), strict=True)
        named = zip(word_list.groups or USUAL, map(tuple, sides), strict=True)
        return {group: GroupWords(words) for group, words in named}
    source = Path(name) if name.endswith(".toml") else GROUP_WORDS.text(name)
    return toml_file.load(_GroupWordsFile, source, f"words {name}").groups
