"""What a report is about: the benchmarks, models and corpora that patterns name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On
from plumbline.pipelines.report.rows import Row
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.pipelines.report.facts import Facts

#: Patterns of benchmarks.
Benchmarks: TypeAlias = Annotated[
    tuple[str, ...],
    Field(description="Only these benchmarks, a pattern such as 'ages*'; repeatable."),
    On(repeated=True, metavar="PATTERN"),
]
#: The columns of reports' rows that hold what an option names.
_COLUMNS = {
    "benchmark": ("benchmark",),
    "model": ("model_key", "reference_key"),
    "corpus": ("corpus", "corpus_a", "corpus_b"),
}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Scope:
    """Which part of a warehouse; without patterns all of it."""

    benchmark: Benchmarks = ()
    model: Annotated[
        tuple[str, ...],
        Field(description="Only these models, with or without owner, as 'pythia-*'; repeatable."),
        On(repeated=True, metavar="PATTERN"),
    ] = ()
    corpus: Annotated[
        tuple[str, ...],
        Field(description="Only these corpora, a pattern; repeatable."),
        On(repeated=True, metavar="PATTERN"),
    ] = ()

    def narrowed(self, facts: Facts) -> Facts:
        """Facts about what the patterns name. Raises ``UsageProblem`` for one that names nothing.

        What is of no benchmark, model or corpus stays, such as figures that need no text.
        """
        wanted: dict[str, object] = {}
        for option, columns in _COLUMNS.items():
            if patterns := getattr(self, option):
                keys = named(option, patterns, facts.rows("named"))
                wanted |= dict.fromkeys(columns, (*keys, "", None))
        return facts.within(**wanted)


def named(option: str, patterns: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """The keys of what an option's patterns name, of rows of ``sql/report/named.sql``.

    Raises ``UsageProblem``, with what there is, for a pattern that names nothing.
    """
    names = {str(r["key"]): str(r["name"]) for r in rows if r["option"] == option}
    found = list[str]()
    for pattern in patterns:
        of = [key for key, name in names.items() if _is_named(name, pattern)]
        if not of:
            there = ", ".join(names.values()) or "none yet"
            raise UsageProblem(f"--{option} {pattern}", "names nothing here", f"there is {there}")
        found += of
    return tuple(dict.fromkeys(found))


def _is_named(name: str, pattern: str) -> bool:
    """Whether a pattern names something; an owner before the name may be left out.

    >>> _is_named("EleutherAI/pythia-70m", "pythia-*"), _is_named("a/gpt2", "a/*")
    (True, True)
    """
    return fnmatchcase(name, pattern) or fnmatchcase(name.rpartition("/")[2], pattern)
