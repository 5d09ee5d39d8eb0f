"""Options of what a report, or a measurement, is about."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import On
from plumbline.warehouse.options import STRICT

#: Patterns of benchmarks.
Benchmarks: TypeAlias = Annotated[
    tuple[str, ...],
    Field(description="Only these benchmarks, a pattern such as 'ages*'; repeatable."),
    On(repeated=True, metavar="PATTERN"),
]


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
