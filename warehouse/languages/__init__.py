"""Load languages from TOML files, in this directory or at a path that a user gives.

docs/corpora.md describes these files. English has no file: its rules are in compiled code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter

from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Text, Words, WordsInOrder, toml_table
from plumbline.warehouse.wordlists import WordList

ENGLISH = "en"


#: Words, which the file has as one text. They are sorted, and repeats are removed.
_SortedWords: TypeAlias = Annotated[WordsInOrder, AfterValidator(lambda x: tuple(sorted(set(x))))]


@toml_table
class TokenRules:
    """How to split a language's text into tokens. Results also depend on spaCy's version.

    Attributes:
        spacy: spaCy's code for the language.
        kept: stop words of spaCy that are counted anyway.
        added: words that are not counted, in addition to spaCy's stop words.
    """

    spacy: Text
    kept: _SortedWords = ()
    added: _SortedWords = ()

    def __post_init__(self) -> None:
        if both := set(self.kept) & set(self.added):
            raise ValueError(f"stop word {min(both)} is both kept and added")

    @property
    def text(self) -> str:
        """The rules as JSON. Equal rules have the same JSON.

        >>> TokenRules("sv", added=("är",)).text
        '{"spacy":"sv","added":["är"]}'
        """
        rules = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(rules, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> TokenRules:
        return TypeAdapter(cls).validate_json(text, strict=False)  # JSON has lists, not tuples


@toml_table
class PairTemplates:
    """Templates for pairs of sentences that differ only in gender.

    Code can't tell which words change with gender. So each word that doesn't change must be
    listed, in ``fill`` or in ``invariable``.

    Attributes:
        templates: sentences with placeholders, such as ``{name}``.
        forms: the female and male form for each placeholder that changes with gender.
        fill: words for each other placeholder. Each combination of words makes a pair.
        invariable: all words of the templates outside placeholders, in lowercase.
    """

    templates: Annotated[tuple[str, ...], Field(min_length=1)]
    forms: Annotated[Mapping[str, tuple[Text, Text]], Field(min_length=1)]
    fill: Mapping[str, WordsInOrder] = field(default_factory=dict)
    invariable: Annotated[Words, AfterValidator(lambda x: frozenset(map(str.lower, x)))] = (
        frozenset()
    )


@toml_table
class Language:
    """A language, read from its TOML file. ``text`` is the content of the file.

    ``name`` is the language's code or, for a user's file, the name of the file without ``.toml``.
    For English, ``rules`` is None, and ``lists`` and ``text`` are empty.
    """

    name: str
    text: str
    description: Text
    source: Text
    rules: TokenRules | None
    lists: Mapping[str, WordList]
    note: str = ""
    pairs: PairTemplates | None = None

    def __post_init__(self) -> None:
        if self.rules and not self.lists:
            raise ValueError("lists is empty: add a list of words, as [lists.gendered]")

    @property
    def token_rules(self) -> str:
        """The language's token rules as JSON, for the counting kernel. Empty for English."""
        return self.rules.text if self.rules else ""

    def word_list(self, name: str) -> WordList:
        """Return a word list of this language, or load one if ``name`` is a path to a TOML file.

        Raises the errors of ``wordlists.load``, and ``UsageProblem`` if the language has no list of
        this name.

        >>> load("fr").word_list("gendered").pairs[0].contrast
        'elle/il'
        """
        if name in self.lists:
            return self.lists[name]
        if not self.rules or name.endswith(".toml"):
            return wordlists.load(name)
        fix = f"it has {', '.join(self.lists)}; or give the path of a .toml file"
        raise UsageProblem(f"word list {name!r}", f"unknown in language {self.name}", fix)


LANGUAGES = Registry(
    *("language", __name__, ".toml"), made=(ENGLISH,), instead="give the path of a .toml file"
)


def load(name: str) -> Language:
    """Load a language by its code, or from a TOML file, whose stem becomes the language's name.

    Raises ``UsageProblem`` for an unknown code or file, and for a file whose stem is a language's
    code. Raises ``BadInput``, with the key and the reason, for an invalid file.
    """
    if name == ENGLISH:
        return Language(ENGLISH, "", "English", "spaCy's rules", None, {})
    return parse(*toml_file.named_text(LANGUAGES, name))


def parse(name: str, text: str, what: str = "") -> Language:
    """Make a language from the text of its TOML file. Raises ``BadInput`` if it is invalid."""
    what = what or f"language {name}"
    content = toml_file.parsed(text, what)
    if isinstance(lists := content.get("lists"), dict):
        content["lists"] = {
            key: {**table, "name": key} if isinstance(table, dict) else table
            for key, table in lists.items()
        }
    return toml_file.checked(Language, content, what, name=name, text=text)
