"""Languages, one TOML file per language: in this directory, or at a path that a user gives.

docs/corpora.md describes the file. English has no file, because its rules are compiled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter

from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Text, Words, WordsInOrder, read_text, toml_table
from plumbline.warehouse.wordlists import WordList, WordListFile

ENGLISH = "en"


@dataclass(frozen=True)
class TokenRules:
    """All token rules of a language. Its tokens also depend on spaCy's version.

    Attributes:
        spacy: spaCy's code of the language.
        kept: spaCy's stop words that still count.
        added: further stop words.
    """

    spacy: str
    kept: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The rules as JSON; equal rules give equal text.

        >>> TokenRules("sv", added=("är",)).text
        '{"spacy":"sv","added":["är"]}'
        """
        rules = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(rules, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> TokenRules:
        """Make the rules from the JSON of :attr:`text`."""
        return TypeAdapter(cls).validate_json(text)


@toml_table
class PairTemplates:
    """Sentences with placeholders for the forms of the two groups and for words that fit both.

    Code can't tell if a word agrees with its subject, so every word that keeps its form has to be
    listed: in ``invariable``, or among the words that fill a placeholder.

    Attributes:
        templates: the sentences, with ``{name}`` as a placeholder.
        forms: female and male form of each placeholder that differs between the groups.
        fill: words for each other placeholder; each combination makes a pair of sentences.
        invariable: all other words of the templates, in lowercase.
    """

    templates: Annotated[tuple[str, ...], Field(min_length=1)]
    forms: Annotated[Mapping[str, tuple[Text, Text]], Field(min_length=1)]
    fill: Mapping[str, WordsInOrder] = field(default_factory=dict)
    invariable: Annotated[Words, AfterValidator(lambda x: frozenset(map(str.lower, x)))] = (
        frozenset()
    )


@toml_table
class _StopWords:
    kept: Words = frozenset()
    added: Words = frozenset()

    def __post_init__(self) -> None:
        if both := self.kept & self.added:
            raise ValueError(f"stop word {min(both)} is both kept and added")


@toml_table
class _LanguageFile:
    description: Text
    source: Text
    spacy: Text
    lists: Annotated[Mapping[str, WordListFile], Field(min_length=1)]
    note: str = ""
    stop_words: _StopWords = field(default_factory=_StopWords)
    pairs: PairTemplates | None = None


@dataclass(frozen=True)
class Language:
    """A language: its code or its file's stem, the file's content, and the file's text.

    For English, ``rules`` is None, and ``lists`` and ``text`` are empty.
    """

    name: str
    description: str
    note: str
    rules: TokenRules | None
    lists: tuple[WordList, ...]
    text: str
    pairs: PairTemplates | None = None

    @property
    def token_rules(self) -> str:
        """The rules as JSON, for the counting kernel; empty for English."""
        return self.rules.text if self.rules else ""

    def word_list(self, name: str) -> WordList:
        """Return the language's list ``name``; for a path or English, ``wordlists.load(name)``.

        Raises the errors of ``load``, and ``UsageProblem`` for a list that the language lacks.

        >>> load("fr").word_list("gendered").pairs[0].contrast
        'elle/il'
        """
        for listed in self.lists:
            if listed.name == name:
                return listed
        if not self.rules or name.endswith(".toml"):
            return wordlists.load(name)
        fix = f"it has {', '.join(x.name for x in self.lists)}; or give the path of a .toml file"
        raise UsageProblem(f"word list {name!r}", f"unknown in language {self.name}", fix)


LANGUAGES = Registry(
    *("language", __name__, ".toml"), made=(ENGLISH,), instead="give the path of a .toml file"
)


def load(name: str) -> Language:
    """Load a language by its code, or from a TOML file, whose stem is then its name.

    Raises ``UsageProblem`` for an unknown code or file, and for a file whose stem is the code of a
    language. Raises ``BadInput``, with the key and the reason, for an invalid file.
    """
    if name == ENGLISH:
        return Language(ENGLISH, "English", "", None, (), "")
    path = Path(name)
    if path.suffix != ".toml":
        return parse(name, LANGUAGES.text(name))
    text = read_text(path, f"language {path}")
    if path.stem in LANGUAGES.names():
        raise UsageProblem(f"language {path}", f"the code {path.stem} is taken", "rename it")
    return parse(path.stem, text, f"language {path}")


def parse(name: str, text: str, what: str = "") -> Language:
    """Make a language from the text of its file. Raises ``BadInput`` for invalid text."""
    what = what or f"language {name}"
    content = toml_file.parsed(text, what)
    if isinstance(listed := content.get("lists"), dict):
        content["lists"] = {key: wordlists.neutral(table) for key, table in listed.items()}
    file = toml_file.checked(_LanguageFile, content, what)
    words = (tuple(sorted(x)) for x in (file.stop_words.kept, file.stop_words.added))
    rules = TokenRules(file.spacy, *words)
    lists = tuple(list_file.named(key) for key, list_file in file.lists.items())
    return Language(name, file.description, file.note, rules, lists, text, file.pairs)
