"""Share a benchmark as a folder, and import people's ratings of its pairs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from plumbline.eval_workers.pairs.export import Constraint, export
from plumbline.eval_workers.pairs.human_ratings import import_answers, people_say
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import BenchmarkName, ContrastOption, OutputDirectory
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.paths import segment
from plumbline.warehouse.query.connection import rows_of


class BenchmarkExport(ContrastOption, Command):
    """Write a benchmark as a folder to share: its pairs, a card, and a harness task.

    The pairs are in Parquet and the card is README.md. In lm-evaluation-harness the task computes
    log-likelihoods, US and PD as `score` and `measure` do; `score import DIR` reads the harness's
    logs (docs/benchmarks.md). A benchmark that was built with a corpus keeps its corpus
    and eta unless you give --corpus.

    Example: plumbline benchmark export use-5 --license cc-by-4.0 --corpus pile --eta 0.65
    """

    reads: ClassVar[str] = "benchmark_pair"
    records = False

    name: BenchmarkName
    corpus: Annotated[str | None, Field(description="Add each pair's MaxPMI in this corpus.")] = (
        None
    )
    eta: Annotated[
        float | None,
        Field(ge=0, le=1_000, description="Leave out pairs whose |MaxPMI| exceeds this, in nats."),
    ] = None
    out: Annotated[
        OutputDirectory | None, Field(description="Directory; default: out/benchmarks/NAME.")
    ] = None
    license: Annotated[str | None, Field(description="Licence identifier, such as cc-by-4.0.")] = (
        None
    )

    def __post_init__(self) -> None:
        if self.eta is not None and not self.corpus:
            problem = "is a limit on the MaxPMI in a corpus"
            raise UsageProblem("--eta", problem, "give --corpus NAME")

    def run(self, context: Context) -> Done:
        out = self.out or Path("out/benchmarks") / segment(self.name)
        within = Constraint(self.corpus, self.contrast, self.eta) if self.corpus else None
        done = export(context.store, self.name, out, self.license, constraint=within)
        counts = {"n_pairs": done.data.num_rows, "n_left_out": done.n_unnatural + done.n_beyond}
        limit = str(done.constraint or "")
        share = f"fill in what only you know, then hf upload REPOSITORY {out} --repo-type dataset"
        return Done(
            rows=[{"benchmark": self.name, **counts, "limit": limit}],
            said=[f"To share it, read {done.paths[0]} and {share}"],
            files=tuple(map(str, done.paths)),
            next="lm_eval run --model hf --model_args pretrained=ID_OR_PATH,dtype=float32 "
            f"--include_path {shlex.quote(str(out))} --tasks {','.join(done.tasks)} --log_samples "
            "--output_path logs",
        )


class ImportRatings(Command):
    """Import raters' answers. Unusable answers go to table `reject`, with the reason.

    A file has the columns benchmark and pair_id, and a yes/no column for each question. It
    replaces earlier answers of the same rater (docs/generation.md).

    Example: plumbline benchmark import-ratings back/rater-1.csv back/rater-2.csv
    """

    reads = "benchmark_pair"

    files: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="CSV files, one for each rater."),
        On(positional=True),
    ]

    def run(self, context: Context) -> Done:
        store = context.store
        files = [Path(file) for file in self.files]
        imported = import_answers(store, files, context.run_id)
        said = list(map(str, imported))
        benchmarks = list(dict.fromkeys(one.benchmark for one in imported))
        for name in benchmarks:
            said += [": ".join(line) for line in people_say(store.root, name).items()]
        params = {"benchmarks": benchmarks}
        return Done(
            rows=rows_of(store.root, _AGREEMENT, params),
            said=said,
            next=f"plumbline benchmark export {shlex.quote(benchmarks[0])}",
            query=_AGREEMENT,
            params=params,
        )


_AGREEMENT = """
SELECT benchmark, question, rater, n_answers, yes_share, equal_share
FROM rater_agreement WHERE list_contains($benchmarks, benchmark)
ORDER BY benchmark, question, rater
"""
