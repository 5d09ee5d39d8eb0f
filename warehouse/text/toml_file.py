"""TOML files that users write: every fault is one line with file, key and what was expected."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.files import content

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable

    import tomllib
else:
    from importlib.abc import Traversable

    import tomli as tomllib


@dataclass(frozen=True)
class Section:
    """A table of a TOML file: ``what`` names the file, ``at`` the place in it (``""``: the top)."""

    what: str
    content: Mapping[str, Any]
    at: str = ""

    def only(self, *known: str) -> None:
        """Refuse keys that are not among the known ones.

        >>> Section("a.toml", {"naems": []}).only("names", "axis")
        Traceback (most recent call last):
        ...
        plumbline.warehouse.errors.BadInput: a.toml: unknown key naems (known here: names, axis)
        """
        for key in self.content:
            if key not in known:
                known_here = f"known here: {', '.join(known)}"
                raise BadInput(self.what, f"unknown key {self.at}{key}", known_here)

    def fault(self, key: str, expected: str) -> BadInput:
        """The error for a key that does not hold what was expected."""
        state = "does not fit" if key in self.content else "is missing"
        return BadInput(self.what, f"{self.at}{key} {state}", f"expected {expected}")

    def text(self, key: str, default: str | None = None, expected: str = "a text") -> str:
        """A text that is not empty; ``default`` where the key is missing."""
        value = self.content.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.fault(key, expected)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self.fault(key, "true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number of 0 or more.

        >>> Section("a.toml", {"weight": 2}).number("weight")
        2.0
        """
        value = self.content.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise self.fault(key, f"a number of 0 or more, not {value!r}")
        return float(value)

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts; may be empty."""
        value = self.content.get(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self.fault(key, "a list of texts")
        return tuple(value)

    def words(self, key: str) -> frozenset[str]:
        """Words of one text, parted by blanks; none where the key is missing."""
        if key not in self.content:
            return frozenset()
        return frozenset(self.text(key, expected="a text of words parted by blanks").split())

    def pairs(self, key: str, expected: str) -> tuple[tuple[str, str], ...]:
        """A list of pairs of texts that are not empty; none where the key is missing."""
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(map(_is_pair, value)):
            raise self.fault(key, expected)
        return tuple((first, second) for first, second in value)

    def section(self, key: str) -> Section:
        """A table within this one; empty where it is missing."""
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self.fault(key, f"a table, [{self.at}{key}]")
        return Section(self.what, value, f"{self.at}{key}.")

    def sections(self, key: str) -> Iterator[Section]:
        """The tables of a list, counted from 1; none where the key is missing.

        >>> [s.at for s in Section("a.toml", {"pairs": [{}, {}]}).sections("pairs")]
        ['pairs 1, ', 'pairs 2, ']
        """
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise self.fault(key, "a list of tables")
        for number, table in enumerate(value, 1):
            yield Section(self.what, table, f"{self.at}{key} {number}, ")


def _is_pair(value: object) -> bool:
    is_list = isinstance(value, list) and len(value) == 2
    return is_list and all(isinstance(v, str) and v for v in value)  # type: ignore[attr-defined]


def read(file: Path | Traversable, what: str = "", fix: str = "") -> dict[str, Any]:
    """The content of a TOML file; ``what`` names it in messages, ``fix`` helps if it's missing.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` when it isn't TOML in UTF-8.
    """
    what = what or str(file)
    return parsed(read_text(file, what, fix), what)


def read_text(file: Path | Traversable, what: str, fix: str = "") -> str:
    """The text of a file. Raises ``UsageProblem`` when it is missing, ``BadInput`` for no UTF-8."""
    try:
        return (content(file) if isinstance(file, Path) else file.read_bytes()).decode()
    except FileNotFoundError:
        raise UsageProblem(what, "no such file", fix) from None
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput(what, f"can't be read: {e}", "save it as UTF-8") from e


def parsed(text: str, what: str) -> dict[str, Any]:
    """The content of a TOML text. Raises ``BadInput`` when it isn't valid TOML.

    >>> parsed("axis = 'gender'", "a.toml")
    {'axis': 'gender'}
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as e:
        raise BadInput(what, f"is not valid TOML: {e}") from e
