"""`plumbline benchmark card` and `export`: share a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.pairs.sharing.benchmark_card import Constraint, write_card
from plumbline.eval_workers.pairs.sharing.harness_export import write_task
from plumbline.pipelines.command.base import Command, Context, Done
from plumbline.pipelines.command.fields import BenchmarkName, ContrastOption, OutputDirectory
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import segment


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _WithMaxPMI(ContrastOption):
    """Options of commands that share a benchmark: MaxPMI of its pairs, and a limit on it."""

    reads: ClassVar[str] = "benchmark_pair"

    name: BenchmarkName
    corpus: Annotated[str | None, Field(description="Give each pair its MaxPMI in a corpus.")] = (
        None
    )
    eta: Annotated[
        float | None,
        Field(
            ge=0,
            le=1_000,
            description="Leave out pairs whose |MaxPMI| is larger, in nats.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.eta is not None and not self.corpus:
            problem = "is a limit on the MaxPMI in a corpus"
            raise UsageProblem("--eta", problem, "give --corpus NAME")

    def constraint(self) -> Constraint | None:
        """The corpus and the limit; ``None`` without a corpus."""
        return Constraint(self.corpus, self.contrast, self.eta) if self.corpus else None


_License = Annotated[str | None, Field(description="Licence identifier, such as cc-by-4.0.")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BenchmarkCard(_WithMaxPMI, Command):
    """Write a benchmark as a dataset to share: a card with statistics, Parquet and JSON lines.

    A benchmark that was built with a corpus keeps its corpus and eta unless --corpus is given.

    Example: plumbline benchmark card use-5 --license cc-by-4.0 --corpus pile --eta 0.65
    """

    records = False

    out: Annotated[
        OutputDirectory | None, Field(description="Directory; default: out/cards/NAME.")
    ] = None
    license: _License = None

    def run(self, context: Context) -> Done:
        directory = self.out or Path("out/cards") / segment(self.name)
        arguments = (directory, self.license)
        done = write_card(context.store, self.name, *arguments, constraint=self.constraint())
        return Done(
            rows=[{"benchmark": self.name, "n_pairs": done.n_pairs}],
            files=tuple(map(str, done.paths)),
            next=f"read {done.paths[0]} and fill in what only you know, then share {directory}",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BenchmarkExport(_WithMaxPMI, Command):
    """Write a benchmark as a task of lm-evaluation-harness.

    It gives log-likelihoods, US and PD, as `score` and `measure` compute them.

    A benchmark that was built with a corpus keeps its corpus and eta unless --corpus is given.

    `score import --logs lm-eval` reads the logs back (docs/harness.md).

    Example: plumbline benchmark export use-5 --out tasks/use-5
    """

    records = False

    out: Annotated[
        OutputDirectory | None, Field(description="Directory; default: out/tasks/NAME.")
    ] = None

    def run(self, context: Context) -> Done:
        out = self.out or Path("out/tasks") / segment(self.name)
        done = write_task(context.store, self.name, out, self.constraint())
        counts = {"n_pairs": done.n_pairs, "n_left_out": done.n_left_out, "limit": done.limit}
        return Done(
            rows=[{"benchmark": self.name, **counts}],
            files=tuple(map(str, done.paths)),
            next=done.run_line(),
        )
