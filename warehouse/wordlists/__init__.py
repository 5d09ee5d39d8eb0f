"""Load word lists from TOML files, in this directory or at a path that a user gives.

A list has pairs of words, such as she/he. The two words of a pair belong to two groups, such as
female and male. Each pair has a weight, which is used when pairs are averaged. A list may also have
unpaired words, which are counted too. docs/extend.md says how other packages can add lists.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field

from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Amount, Text, toml_table


def one_word(word: str) -> str:
    """Return ``word`` if it is one lowercase word without ``/``. Otherwise raise ``ValueError``."""
    if word.split() != [word] or word != word.lower() or "/" in word:
        raise ValueError(f"{word!r} is not one lowercase word")
    return word


Word: TypeAlias = Annotated[str, AfterValidator(one_word)]


@toml_table
class WordPair:
    """Two words, one from each group. ``weight`` (at least 0) is used when pairs are averaged."""

    a: Word
    b: Word
    weight: Amount = 1.0

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise ValueError(f"both words are {self.a}")

    @property
    def contrast(self) -> str:
        """Name for the comparison of the two words, such as ``she/he``."""
        return f"{self.a}/{self.b}"


#: Names of the groups of a contrast whose list is missing or names no groups.
GENDERS = ("female", "male")


@toml_table
class WordList:
    """A named list of word pairs and unpaired words, with its source.

    ``groups`` has two names: one for the first words of all pairs, one for the second words.
    """

    name: str
    description: str
    source: Text
    pairs: Annotated[tuple[WordPair, ...], Field(min_length=1)]
    unpaired: tuple[Word, ...] = ()
    groups: tuple[Text, Text] | None = None

    def __post_init__(self) -> None:
        counts = Counter(p.contrast for p in self.pairs) + Counter(self.unpaired)
        if repeated := [word for word, n in counts.items() if n > 1]:
            raise ValueError(f"{repeated[0]} is listed twice")
        if self.has_mean and not self.groups:
            raise ValueError('groups is missing: name both sides, as groups = ["old", "young"]')

    @property
    def has_mean(self) -> bool:
        """Whether there are at least two pairs, and no word is in both groups."""
        firsts, seconds = ({getattr(p, side) for p in self.pairs} for side in "ab")
        return len(self.pairs) > 1 and firsts.isdisjoint(seconds)

    @property
    def targets(self) -> tuple[str, ...]:
        """All words of the list, each once: first those of pairs, then the unpaired words."""
        paired = (w for p in self.pairs for w in (p.a, p.b))
        return tuple(dict.fromkeys([*paired, *self.unpaired]))

    @property
    def hash(self) -> str:
        """Hash (12 hex digits) of the words and weights. The order matters, the name doesn't."""
        content = [[(p.a, p.b, p.weight) for p in self.pairs], self.unpaired]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    def rows(self, corpus: str) -> list[dict[str, object]]:
        """Return this list as rows of the table ``word_list``, for the corpus ``corpus``."""
        fixed = {"corpus": corpus, "word_list": self.name, "source": self.source}
        groups = dict(zip(("group_a", "group_b"), self.groups or (), strict=False))
        entries: list[dict[str, object]] = [
            {"word_a": p.a, "word_b": p.b, "weight": p.weight, **groups} for p in self.pairs
        ]
        entries += [{"unpaired": w} for w in self.unpaired]
        return [{**fixed, "position": k, **entry} for k, entry in enumerate(entries, 1)]


def from_rows(rows: Iterable[Mapping[str, Any]]) -> WordList:
    """Make a list from one or more rows that `WordList.rows` returned, in any order."""
    ordered = sorted(rows, key=lambda r: r["position"])
    pairs = tuple(
        WordPair(r["word_a"], r["word_b"], r["weight"]) for r in ordered if r.get("word_a")
    )
    unpaired = tuple(r["unpaired"] for r in ordered if r.get("unpaired"))
    groups = next(((r["group_a"], r["group_b"]) for r in ordered if r.get("group_a")), None)
    return WordList(ordered[0]["word_list"], "", ordered[0]["source"], pairs, unpaired, groups)


def side_names(contrast: str, lists: Iterable[WordList]) -> tuple[str, str]:
    """Return names for the two sides of a contrast. A positive lean is towards the first side.

    For a pair such as ``she/he``, the sides are its words. For a contrast over a word list, such as
    ``gendered-sum``, the sides are the list's groups. If the list isn't in ``lists`` or has no
    groups, the sides are ``GENDERS``.

    >>> side_names("old/young", []), side_names("gendered-sum", [load("gendered")])
    (('old', 'young'), ('female words', 'male words'))
    """
    first, is_pair, second = contrast.partition("/")
    if is_pair:
        return first, second
    name = f"{contrast}-"
    named_after = [x for x in lists if name.startswith(f"{x.name}-")]
    # Both lists "a" and "a-b" fit the contrast "a-b-sum". The longest name is the right one.
    nearest = max(named_after, key=lambda x: len(x.name), default=None)
    first, second = (nearest.groups if nearest else None) or GENDERS
    return f"{first} words", f"{second} words"


LISTS = Registry(
    *("word list", __name__, ".toml", "plumbline.word_lists"),
    instead="give the path of a .toml file",
)


def load(name: str) -> WordList:
    """Load a list by its name, or from a TOML file, whose stem becomes the list's name.

    Raises ``UsageProblem`` for an unknown name or file, and for a name that several packages
    register. Also raises it for a file whose stem is the name of another list. Raises ``BadInput``,
    with the entry and the reason, for an invalid file.

    >>> [p.contrast for p in load("gendered").pairs][:2]
    ['she/he', 'her/his']
    """
    stem, text, what = toml_file.named_text(LISTS, name)
    return toml_file.checked(WordList, toml_file.parsed(text, what), what, name=stem)
