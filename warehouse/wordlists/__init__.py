"""Word lists, one TOML file per list: ours are here, any other file is given by its path.

A list names contrasts (female word, male word) with weights for their mean, and may name further
words to count without a contrast. Other packages add theirs by entry points: see docs/extend.md.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Amount, Text, read_text, toml_table


def _one_word(word: str) -> str:
    if not word or word != word.strip().lower() or "/" in word:
        raise ValueError(f"{word!r} is not one lowercase word")
    return word


Word: TypeAlias = Annotated[str, AfterValidator(_one_word)]


@toml_table
class WordPair:
    """A female and a male word and the pair's weight >= 0 in the list's mean."""

    female: Word
    male: Word
    weight: Amount = 1.0

    def __post_init__(self) -> None:
        if self.female == self.male:
            raise ValueError(f"male is {self.male}, as female is")

    @property
    def contrast(self) -> str:
        """Name of the contrast, such as ``she/he``."""
        return f"{self.female}/{self.male}"


@dataclass(frozen=True)
class WordList:
    """A named list of pairs, and of words without one, and where it comes from."""

    name: str
    description: str
    source: str
    pairs: tuple[WordPair, ...]
    unpaired: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """All words of the list, each once, in order of first mention.

        >>> load("she-he").targets
        ('she', 'he')
        """
        paired = (w for p in self.pairs for w in (p.female, p.male))
        return tuple(dict.fromkeys([*paired, *self.unpaired]))

    @property
    def hash(self) -> str:
        """Twelve hex digits that change with the words, their order or weights; not with the name.

        >>> a = WordList("a", "", "", (WordPair("she", "he"),))
        >>> a.hash == WordList("b", "other", "", (WordPair("she", "he"),)).hash
        True
        >>> a.hash == WordList("a", "", "", (WordPair("she", "he", 2.0),)).hash
        False
        """
        content = [[(p.female, p.male, p.weight) for p in self.pairs], self.unpaired]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    def rows(self, corpus: str) -> list[dict[str, object]]:
        """The rows of table `word_list` for a corpus counted with this list."""
        fixed = {"corpus": corpus, "word_list": self.name, "source": self.source}
        entries: list[dict[str, object]] = [
            {"female": p.female, "male": p.male, "weight": p.weight} for p in self.pairs
        ]
        entries += [{"unpaired": w} for w in self.unpaired]
        return [{**fixed, "position": k, **entry} for k, entry in enumerate(entries, 1)]


def from_rows(rows: Iterable[Mapping[str, object]]) -> WordList:
    """The list that `WordList.rows` wrote; rows in any order, at least one.

    >>> from_rows(load("neutral").rows("novels")).hash == load("neutral").hash
    True
    """
    ordered = sorted(rows, key=lambda r: int(str(r["position"])))
    pairs = tuple(
        WordPair(str(r["female"]), str(r["male"]), float(str(r["weight"])))
        for r in ordered
        if r.get("female") is not None
    )
    unpaired = tuple(str(r["unpaired"]) for r in ordered if r.get("unpaired") is not None)
    return WordList(str(ordered[0]["word_list"]), "", str(ordered[0]["source"]), pairs, unpaired)


LISTS = Registry(
    *("word list", __name__, ".toml", "plumbline.word_lists"),
    instead="give the path of a .toml file",
)


@toml_table
class WordListFile:
    """The content of a list's file."""

    description: Text
    source: Text
    pairs: Annotated[
        tuple[WordPair, ...], Field(min_length=1, title="pairs of a female and a male word")
    ]
    targets: Annotated[tuple[Word, ...], Field(title="a list of texts")] = ()

    def __post_init__(self) -> None:
        counts = Counter(p.contrast for p in self.pairs) + Counter(self.targets)
        if repeated := [word for word, n in counts.items() if n > 1]:
            raise ValueError(f"{repeated[0]} is listed twice")

    def named(self, name: str) -> WordList:
        """The list under a name."""
        return WordList(name, self.description, self.source, self.pairs, self.targets)


def load(name: str) -> WordList:
    """Read a list by name, or by the path of a TOML file; a file's list has the file's name.

    Raises ``UsageProblem`` for an unknown list, a file with the name of a list, and a name that
    several packages give; ``BadInput`` that names the entry and the reason for one not valid.

    >>> [p.contrast for p in load("gendered").pairs][:2]
    ['she/he', 'her/his']
    """
    path = Path(name)
    if path.suffix != ".toml":
        return toml_file.load(WordListFile, LISTS.text(name), f"word list {name}").named(name)
    text = read_text(path, f"word list {path}")
    if path.stem in LISTS.names():
        raise UsageProblem(f"word list {path}", f"{path.stem} is the name of a list", "rename it")
    return toml_file.load(WordListFile, text, f"word list {path}").named(path.stem)
