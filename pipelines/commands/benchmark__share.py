"""`plumbline benchmark card`, `export` and `push`: share a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.pairs.sharing.benchmark_card import Constraint, write_card
from plumbline.eval_workers.pairs.sharing.dataset import LEFT_OUT, dataset
from plumbline.eval_workers.pairs.sharing.harness_export import write_task
from plumbline.eval_workers.pairs.sharing.upload import Repository, push, written
from plumbline.pipelines.command.base import Command, Context, Done
from plumbline.pipelines.command.fields import BenchmarkName, ContrastOption, OutputDirectory
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import segment
from plumbline.warehouse.storage.run_records import recorded


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
    """Write a benchmark as a task of lm-evaluation-harness or Inspect.

    lm-eval: log-likelihoods, US and PD, as `score` and `measure` compute them.

    inspect: the same for servers that give the log-probabilities of a prompt, such as vLLM's; and
    which sentence a model names, as `score choose` asks.

    A benchmark that was built with a corpus keeps its corpus and eta unless --corpus is given.

    `score import --logs lm-eval` (inspect) reads the logs back (docs/harness.md).

    Example: plumbline benchmark export use-5 --to lm-eval --out tasks/use-5
    """

    records = False

    to: Annotated[Literal["lm-eval", "inspect"], Field(description="Harness for the task.")] = (
        "lm-eval"
    )
    out: Annotated[
        OutputDirectory | None, Field(description="Directory; default: out/tasks/NAME.")
    ] = None

    def run(self, context: Context) -> Done:
        out = self.out or Path("out/tasks") / segment(self.name)
        done = write_task(context.store, self.name, out, self.constraint(), self.to)
        counts = {"n_pairs": done.n_pairs, "n_left_out": done.n_left_out, "limit": done.limit}
        return Done(
            rows=[{"benchmark": self.name, **counts}],
            files=tuple(map(str, done.paths)),
            next=done.run_line(self.to),
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BenchmarkPush(_WithMaxPMI, Command):
    """Push a benchmark to the hub as a data set: card, Parquet, eval.yaml.

    One commit. The token is HF_TOKEN, or that of `hf auth login`. Pairs that metrics leave out are
    in a split of their own: `benchmark import` of the address gives the same benchmark
    (docs/hub.md).

    Example: plumbline benchmark push use-5 --repo me/use-5 --license cc-by-4.0 --dry-run out/hub
    """

    records = False  # ``run`` itself records a push, but not a dry run

    repo: Annotated[str, Field(description="Data set of the hub, OWNER/NAME.")]
    private: Annotated[bool, Field(description="Only the owner can see a new data set.")] = False
    dry_run: Annotated[
        OutputDirectory | None,
        Field(description="Write the files to this directory, push nothing."),
    ] = None
    license: _License = None
    language: Annotated[
        str, Field(description="Code of the sentences' language, where it isn't known.")
    ] = ""

    def run(self, context: Context) -> Done:
        to, store, name = Repository("dataset", self.repo), context.store, self.name
        arguments = (self.license, self.language, self.constraint())
        made = dataset(store, name, self.repo, *arguments)
        counts = {"benchmark": name, "n_pairs": sum(made.n_pairs.values())}
        rows = [{**counts, "n_left_out": made.n_left_out, "fingerprint": made.fingerprint[:12]}]
        said = [*made.warnings()]
        if self.dry_run:
            files = tuple(map(str, written(made.files, self.dry_run)))
            again = "the same command without --dry-run, which pushes them"
            return Done(rows=rows, said=said, files=files, next=again)
        with recorded(store, "benchmark push", made.facts(name, self.repo)):
            done = push(to, made.files, name, [LEFT_OUT], private=self.private)
        changed = f"commit {done.commit[:12]}" if done.is_new else "which held the same already"
        said.append(f"Pushed to {done.url}, {changed}")
        again = f"plumbline benchmark import hf://datasets/{self.repo}"
        return Done(rows=rows, said=said, next=again)
