"""Word lists, one TOML file per list: ours are here, any other file is given by its path.

Other packages add theirs, by name, through entry points of ``plumbline.word_lists``: see
``docs/extend.md``.

A list names contrasts (female word, male word) with weights for the weighted mean of Eq. 4, and
may name further words to count without a contrast, such as a third group. Its targets are all
words in it, in order of first mention::

    description = "what the list is"
    source = "where its words come from"
    pairs = [{ female = "she", male = "he", weight = 1.0 }]
    targets = ["they", "them"]  # optional
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.toml_file import parsed, read_text


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


def load(name: str) -> WordList:
    """Read a list by name, or by the path of a TOML file; a file's list has the file's name.

    Raises:
        UsageProblem: there is no such list or file, a file has the name of a list, or several
            packages have a list of this name.
        BadInput: the file is not a valid list; the message names the entry and the reason.

    >>> [p.contrast for p in load("gendered").pairs][:2]
    ['she/he', 'her/his']
    """
    path = Path(name)
    if path.suffix != ".toml":
        return _parse(name, LISTS.text(name), f"word list {name}")
    text = read_text(path, f"word list {path}")
    if path.stem in LISTS.names():
        raise UsageProblem(f"word list {path}", f"{path.stem} is the name of a list", "rename it")
    return _parse(path.stem, text, f"word list {path}")


def _parse(name: str, text: str, what: str) -> WordList:
    content = parsed(text, what)
    try:
        _check_keys(content, {"description", "source", "pairs", "targets"}, "the file")
        for key in ("description", "source"):
            if not isinstance(content.get(key), str) or not content[key]:
                raise ValueError(f'needs a line {key} = "..."')
        for key in ("pairs", "targets"):
            if not isinstance(content.setdefault(key, []), list):
                raise ValueError(f"{key} must be a list, not {content[key]!r}")
        pairs = tuple(_pair(k, p) for k, p in enumerate(content["pairs"], 1))
        unpaired = tuple(_word(w, f"target {k}") for k, w in enumerate(content["targets"], 1))
        counts = Counter(p.contrast for p in pairs) + Counter(unpaired)
        if repeated := [word for word, n in counts.items() if n > 1]:
            raise ValueError(f"{repeated[0]} is listed twice")
    except ValueError as e:
        fix = 'as in pairs = [{ female = "she", male = "he" }]'
        raise BadInput(what, str(e), fix) from e
    if not pairs:
        raise BadInput(what, "has no pairs", "a lean needs a female and a male word")
    return WordList(name, content["description"], content["source"], pairs, unpaired)


def _pair(position: int, entry: object) -> WordPair:
    where = f"pair {position}"
    if not isinstance(entry, dict):
        raise ValueError(f"{where} must be a table with female and male, not {entry!r}")
    _check_keys(entry, {"female", "male", "weight"}, where)
    female, male = (_word(entry.get(side), f"{where}, {side}") for side in ("female", "male"))
    weight = entry.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise ValueError(f"{where}: weight must be a number, not {weight!r}")
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"{where}: weight must be 0 or more, not {weight}")
    if female == male:
        raise ValueError(f"{where}: {female} is on both sides")
    return WordPair(female, male, float(weight))


def _word(value: object, where: str) -> str:
    if not isinstance(value, str) or not value or value != value.strip().lower() or "/" in value:
        raise ValueError(f"{where}: expected one lowercase word, not {value!r}")
    return value


def _check_keys(found: Mapping[str, object], known: set[str], where: str) -> None:
    if unknown := sorted(set(found) - known):
        raise ValueError(f"{where} has {unknown[0]!r}, known are {', '.join(sorted(known))}")
