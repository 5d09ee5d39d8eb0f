"""Registries of parts (backends, metrics, ...): Plumbline's own and other packages' entry points.

A name that several packages register can't be used: so installing a package never changes the
meaning of a name. See docs/extend.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from plumbline.warehouse.errors import BadInput, PlumblineError, UsageProblem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable


@dataclass(frozen=True)
class Registry:
    """All parts of one kind, by name.

    Args:
        noun: name of a part in messages, such as ``benchmark``.
        package: Plumbline's package with one file per part; files named ``_...`` are not parts.
        suffix: suffix of these files, such as ``.py`` or ``.sql``.
        group: group of entry points; if empty, other packages can't add parts.
        contract: protocol; a part of another package must have all its public members.
        made: names of Plumbline's parts that code makes, without a file.
        instead: advice after the list of names, in the message about an unknown name.

    >>> lists = Registry("word list", "plumbline.warehouse.wordlists", ".toml")
    >>> "she-he" in lists.names(), lists.text("she-he").count("pairs")
    (True, 1)
    >>> lists.text("shes")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: word list 'shes': unknown (there are gendered, ...)
    """

    noun: str
    package: str
    suffix: str = ".py"
    group: str = ""
    contract: type = object
    made: tuple[str, ...] = ()
    instead: str = ""

    def names(self) -> list[str]:
        """Names of all parts, sorted; no part is imported."""
        return sorted({*self._own_names, *(entry.name for entry in self._other_entries())})

    def find(self, name: str) -> EntryPoint | None:
        """The entry point of the part ``name``; ``None`` if the part is one of Plumbline's.

        Raises ``UsageProblem`` if no package or several packages register the name.
        """
        entries = [entry for entry in self._other_entries() if entry.name == name]
        holders = [*(["plumbline"] if name in self._own_names else []), *map(_package, entries)]
        if not holders:
            advice = f"there are {', '.join(self.names())}{self.instead and f'; or {self.instead}'}"
            raise UsageProblem(f"{self.noun} {name!r}", "unknown", advice)
        if len(holders) > 1:
            problem = f"{' and '.join(holders)} each have one of this name"
            raise UsageProblem(f"{self.noun} {name!r}", problem, "rename or uninstall one")
        return entries[0] if entries else None

    def load(self, name: str) -> Any:
        """The module of a part, or the object that its entry point names.

        Raises what ``find`` raises, and ``BadInput`` for a part of another package that can't be
        imported or lacks a member of the contract.
        """
        if (entry := self.find(name)) is None:
            return import_module(f"{self.package}.{name}{self.suffix.removesuffix('.py')}")
        members = {*vars(self.contract), *getattr(self.contract, "__annotations__", ())}
        expected = sorted(member for member in members if not member.startswith("_"))
        with self._one_line(entry, f"expected {', '.join(expected)} there"):
            part = entry.load()
            if lacking := [member for member in expected if not hasattr(part, member)]:
                raise AttributeError(f"it has no {', '.join(lacking)}")
        return part

    def text(self, name: str) -> str:
        """The text of a part's file. Raises as ``find``; ``BadInput`` if a package lacks it."""
        file = f"{name}{self.suffix}"
        if (entry := self.find(name)) is None:
            return (self._folder() / file).read_text("utf-8")
        with self._one_line(entry, f"expected a package that holds {file}"):
            package = import_module(entry.module).__package__ or entry.module
            return (resources.files(package) / file).read_text("utf-8")

    def _folder(self) -> Traversable:
        return resources.files("plumbline").joinpath(*self.package.split(".")[1:])

    @cached_property
    def _own_names(self) -> frozenset[str]:
        names = (file.name for file in self._folder().iterdir() if file.name[0] != "_")
        stems = (name.removesuffix(self.suffix) for name in names if name.endswith(self.suffix))
        return frozenset((*stems, *self.made))

    def _other_entries(self) -> tuple[EntryPoint, ...]:
        return _entry_points(self.group, tuple(sys.path)) if self.group else ()

    @contextmanager
    def _one_line(self, entry: EntryPoint, expected: str) -> Iterator[None]:
        """Turn an error of another package's part inside the block into ``BadInput``."""
        try:
            yield
        except PlumblineError:
            raise
        except Exception as e:
            what = f"{self.noun} {entry.name!r} of {_package(entry)}"
            problem = f"{entry.value} can't be loaded: {type(e).__name__}: {e}"
            raise BadInput(what, problem, expected) from e


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of a group; ``path`` is ``sys.path``, whose change invalidates the cache."""
    from importlib.metadata import entry_points  # slower to import than all else here

    return tuple(entry_points(group=group))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
