"""Lists of gendered word pairs, one TOML file a list; a file added here is a list one may name.

A list names contrasts (female word, male word) with weights for the weighted mean of Eq. 4. Its
targets are all words in it, in order of first mention.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import resources

from warehouse.errors import BadInput, UsageProblem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class WordPair:
    """A female and a male word and their weight v(w) >= 0 in the list's mean."""

    female: str
    male: str
    weight: float = 1.0

    @property
    def contrast(self) -> str:
        """Name of the contrast, such as ``she/he``."""
        return f"{self.female}/{self.male}"


@dataclass(frozen=True)
class WordList:
    """A named list of pairs with a description and where it comes from."""

    name: str
    description: str
    source: str
    pairs: tuple[WordPair, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """All words of the list, each once, in order of first mention.

        >>> load("she-he").targets
        ('she', 'he')
        """
        return tuple(dict.fromkeys(w for p in self.pairs for w in (p.female, p.male)))


def names() -> list[str]:
    """Names of the lists there are, sorted.

    >>> names()
    ['gendered', 'she-he']
    """
    files = resources.files("warehouse.wordlists").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def load(name: str) -> WordList:
    """Read a list by name.

    Raises:
        UsageProblem: there is no such list; the message names those that exist.
        BadInput: the file is no valid list.

    >>> [p.contrast for p in load("gendered").pairs][:2]
    ['she/he', 'her/his']
    """
    if name not in names():
        raise UsageProblem(f"target list {name!r}", f"there is none, only {', '.join(names())}")
    text = resources.files("warehouse.wordlists").joinpath(f"{name}.toml").read_text("utf-8")
    try:
        content = tomllib.loads(text)
        pairs = tuple(_pair(p) for p in content["pairs"])
        parsed = WordList(name, str(content["description"]), str(content["source"]), pairs)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as e:
        raise BadInput(f"word list {name}", f"{type(e).__name__}: {e}") from e
    if not parsed.pairs or len({p.contrast for p in parsed.pairs}) != len(parsed.pairs):
        raise BadInput(f"word list {name}", "needs distinct pairs, at least one")
    return parsed


def _pair(entry: dict[str, object]) -> WordPair:
    weight = float(str(entry.get("weight", 1.0)))
    female, male = str(entry["female"]), str(entry["male"])
    if not weight >= 0 or female == male or not female or not male:
        raise ValueError(f"pair {female}/{male} with weight {weight}")
    return WordPair(female, male, weight)
