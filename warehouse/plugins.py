"""Find the parts (backends, tables, ...) that Plumbline and other installed packages provide.

A registry holds all parts of one kind. Other packages register parts as entry points. If several
packages register the same name, using it is an error. So installing a package never changes what a
name means. See docs/extend.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any

from plumbline.warehouse.errors import BadInput, PlumblineError, UsageProblem, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable


#: Plumbline's name on PyPI, where `plumbline` is another project.
NAME = "plumbline-lm"


@dataclass(frozen=True)
class Registry:
    """All parts of one kind, such as all backends, by name.

    Args:
        noun: what messages call one part, such as ``benchmark``.
        package: the package of Plumbline that has a file for each part. Files named ``_...`` are
            ignored. If empty, Plumbline has only the parts in ``made``.
        suffix: suffix of these files, such as ``.py`` or ``.sql``.
        group: entry-point group for parts of other packages. If empty, they can't add parts.
        contract: a protocol. Parts of other packages must have all public members of the protocol.
        made: names of Plumbline's parts that have no file of their own.
        instead: advice for an unknown name. The message shows it after the known names.
    """

    noun: str
    package: str = ""
    suffix: str = ".py"
    group: str = ""
    contract: type = object
    made: tuple[str, ...] = ()
    instead: str = ""

    def names(self) -> list[str]:
        """Return the sorted names of all parts, without importing any part."""
        return sorted({*self._own_names, *self.added})

    @property
    def added(self) -> list[str]:
        """Sorted names of the parts that other packages register. No part is imported."""
        return sorted({entry.name for entry in self._other_entries()})

    def source(self, name: str) -> str:
        """Return the package that adds a part, with its version, or "" for Plumbline's own part."""
        return next((_package(e) for e in self._other_entries() if e.name == name), "")

    def find(self, name: str) -> EntryPoint | None:
        """Return the entry point of the part ``name``, or ``None`` if the part is Plumbline's own.

        Raises ``UsageProblem`` if no package, or more than one, registers the name.
        """
        entries = [entry for entry in self._other_entries() if entry.name == name]
        holders = [*(["plumbline"] if name in self._own_names else []), *map(_package, entries)]
        if not holders:
            known = f"there are {', '.join(self.names())}{self.instead and f'; or {self.instead}'}"
            fix = did_you_mean(name, self.names(), known)
            raise UsageProblem(f"{self.noun} {name!r}", "unknown", fix)
        if len(holders) > 1:
            problem = f"{' and '.join(holders)} each have one of this name"
            raise UsageProblem(f"{self.noun} {name!r}", problem, "rename or uninstall one")
        return entries[0] if entries else None

    def load(self, name: str) -> Any:
        """Import a part: return its module, or the object that its entry point names.

        Raises the errors of ``find``, and ``BadInput`` if a part of another package can't be
        imported or lacks a public member of the protocol ``contract``.
        """
        if (entry := self.find(name)) is None:
            return import_module(f"{self.package}.{name}{self.suffix.removesuffix('.py')}")
        members = {*vars(self.contract), *getattr(self.contract, "__annotations__", ())}
        expected = sorted(member for member in members if not member.startswith("_"))
        with self.one_line(name, f"expected {', '.join(expected)} there"):
            part = entry.load()
            if lacking := [member for member in expected if not hasattr(part, member)]:
                raise AttributeError(f"it has no {', '.join(lacking)}")
        return part

    def text(self, name: str) -> str:
        """Read a part's file. Raises ``BadInput`` if it's missing, and the errors of ``find``."""
        file = f"{name}{self.suffix}"
        if (entry := self.find(name)) is None:
            return (self._folder() / file).read_text("utf-8")
        with self.one_line(name, f"expected a package that holds {file}"):
            package = import_module(entry.module).__package__ or entry.module
            return (resources.files(package) / file).read_text("utf-8")

    def _folder(self) -> Traversable:
        return resources.files("plumbline").joinpath(*self.package.split(".")[1:])

    @cached_property
    def _own_names(self) -> frozenset[str]:
        files = self._folder().iterdir() if self.package else ()
        names = (file.name for file in files if file.name[0] != "_")
        stems = (name.removesuffix(self.suffix) for name in names if name.endswith(self.suffix))
        return frozenset((*stems, *self.made))

    def _other_entries(self) -> tuple[EntryPoint, ...]:
        return _entry_points(self.group, tuple(sys.path)) if self.group else ()

    @contextmanager
    def one_line(self, name: str, expected: str) -> Iterator[None]:
        """Turn errors in the block into ``BadInput`` if the part belongs to another package."""
        try:
            yield
        except PlumblineError:
            raise
        except Exception as e:
            if (entry := self.find(name)) is None:
                raise
            what = f"{self.noun} {name!r} of {_package(entry)}"
            reason = " ".join(f"{type(e).__name__}: {e}".split())
            raise BadInput(what, f"{entry.value} can't be loaded: {reason}", expected) from e


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return a group's entry points. They are cached by ``path``, which must be ``sys.path``."""
    return tuple(_all_entry_points(path).select(group=group))


@cache
def _all_entry_points(path: tuple[str, ...]) -> Any:
    # Import this only when it's needed, because the import is slow.
    from importlib.metadata import entry_points

    return entry_points()


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def install_line(extra: str) -> str:
    return f"pip install '{NAME}[{extra}]'"
