"""`plumbline reproduce`: published tables from published scores or beside your runs; studies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned, values_of
from plumbline.pipelines.command.fields import (
    InputDirectory,
    InputFile,
    OutputDirectory,
    OutputFile,
)
from plumbline.warehouse.errors import BadInput, PlumblineError, disk_problems
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress

#: Most rows that a terminal shows.
_MOST = 30
#: Progress goes to standard error, where it doesn't mix with results.
_announce = partial(say, err=True)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Figures:
    """The option of a file for all figures."""

    out: Annotated[OutputFile | None, Field(description="CSV file for all figures.")] = None

    def written(self, rows: Sequence[Row]) -> list[str]:
        """Write rows to ``out``, if given, with the columns of all of them; returns its path."""
        if self.out is None:
            return []
        names = dict.fromkeys(name for row in rows for name in row)
        rows = [{name: row.get(name) for name in names} for row in rows]
        with disk_problems(self.out):
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(as_csv(rows), encoding="utf-8", newline="")
        return [str(self.out)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Release:
    """The release of UnStereoEval, and the warehouse it is imported to."""

    makes_warehouse: ClassVar[bool] = True

    data: Annotated[
        InputDirectory, Field(description="Folder of the release: `data` and `results`.")
    ]
    corpus: Annotated[str, Field(description="Name for the released word statistics.")] = "pile"
    warehouse: Annotated[
        Path,
        Field(description="Warehouse for the release; its metrics are replaced."),
        On(metavar="DIRECTORY"),
    ] = Path("out/released")

    def check(self) -> None:
        """Raise for a folder that holds no release."""
        from plumbline.pipelines.reproduce.run import Release

        Release.at(self.data)

    def import_release(self, store: Store, run_id: str) -> None:
        """Import all that the folder holds."""
        from plumbline.pipelines.reproduce.run import Release, import_release

        import_release(store, Release.at(self.data), self.corpus, run_id, _announce)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Published:
    """The option to replace the printed figures that come with Plumbline."""

    published: Annotated[
        InputFile | None,
        Field(description="CSV of printed figures instead of Plumbline's own."),
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Unstereoeval(_Release, _Published, _Figures, Command):
    """Compute the tables of UnStereoEval from its released scores and count what agrees.

    Prints outcomes of all figures of Tables 1-3 and 8-22 by table, then figures that differ; --out
    has all. Figures of models without scores are `not run`. The status is 1 if a figure differs by
    more than 0.011, or scores are incomplete.

    Example: plumbline reproduce unstereoeval --data unstereo-eval --warehouse out/released
    """

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce import printed_figures, run
        from plumbline.pipelines.reproduce.compare import OFF
        from plumbline.pipelines.reproduce.unstereoeval import claims

        printed = (
            printed_figures.read(self.published) if self.published else printed_figures.packaged()
        )
        arguments = (printed, self.corpus, _announce, context.run_id)
        outcome = run.reproduce(context.store, self.data, *arguments)
        n_off = sum(c.outcome == OFF for c in outcome.compared)
        failed = None
        if n_off or outcome.incomplete:
            problem = f"{n_off:,} differ, {len(outcome.incomplete):,} sets of scores are incomplete"
            failed = PlumblineError("printed figures", problem)
        own = run.own_rows(outcome)
        rows = [*run.as_rows(outcome), *claims.as_rows(outcome.claims), *own]
        return Done(
            rows=[*run.shown_rows(outcome), *own],
            most=_MOST,
            said=list(run.lines(outcome)),
            files=self.written(rows),
            wrote=("benchmark_pair", "pair_score", "metric_value"),
            next="plumbline sql",
            query="FROM metric_value ORDER BY ALL",
            failed=failed,
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Atlas(_Release, Command):
    """Write the release as a site to look at: every model, word, pair and study, and the files.

    Imports and measures it, computes the published figures again, and writes static pages that
    need no server and no network. Each page lists the files behind it with their SHA-256.

    Example: plumbline reproduce atlas --data unstereo-eval --out out/atlas
    """

    out: Annotated[OutputDirectory, Field(description="Directory of the site.")] = Path("out/atlas")
    docs: Annotated[
        str,
        Field(description="Path from the site to the first page of the documentation, to link it."),
    ] = ""

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.report.write import write_report
        from plumbline.pipelines.reproduce import atlas, printed_figures, run

        store, arguments = context.store, (self.corpus, _announce, context.run_id)
        files = atlas.files(self.data)
        outcome = run.reproduce(store, self.data, printed_figures.packaged(), *arguments)
        _announce("what the lean goes with")
        command = f"plumbline reproduce atlas --data {self.data.name}"
        site = atlas.site(store, outcome, files, self.corpus, command, self.docs)
        page = write_report(store, self.out, site=site)
        sizes = {path: path.stat().st_size for path in self.out.rglob("*") if path.is_file()}
        n_pages = sum(path.suffix == ".html" for path in sizes)
        said = f"{n_pages:,} pages, {len(sizes):,} files, {sum(sizes.values()) / 1e6:.0f} MB"
        return Done(
            said=[said, "Open the first page in a browser, or copy the directory to any host"],
            files=[str(page)],
            wrote=("benchmark_pair", "pair_score", "metric_value"),
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Beside(_Published, _Figures, Command):
    """Printed figures beside the runs of a warehouse."""

    paper: ClassVar[str]
    records: ClassVar[bool] = False
    opens_warehouse: ClassVar[bool] = False  # printed figures and claims about them need none

    same_as: Annotated[
        tuple[str, ...],
        Field(description="Model that stands for a printed one."),
        On(name="as", repeated=True, metavar="PRINTED=MODEL"),
    ] = ()

    def run(self, context: Context) -> Done:
        """Compare the printed figures with the runs, if there are any; writes nothing."""
        from plumbline.pipelines.reproduce import beside_runs, papers

        store, paper = Store.existing(self.warehouse), papers.PAPERS[self.paper]
        printed = papers.figures(paper, self.published)
        found = papers.measured(paper, store, printed, self.same_as)
        lines = [line for one in found.runs for line in beside_runs.lines(one)]
        lines += [*found.claims, *paper.remarks, *paper.misfits(printed)]
        compared = sorted(found.beside, key=beside_runs.shown_first)
        return Done(
            rows=[beside_runs.shown_row(figure) for figure in compared],
            most=_MOST,
            said=[*lines, *beside_runs.tally(compared), *found.how_to_run],
            files=self.written(
                [*beside_runs.as_rows(found.beside), *({"note": line} for line in lines)]
            ),
            next=paper.command if found.n_missing else "plumbline report",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Fairpair(_Beside, Command):
    """Put Tables 1 and 3 of FairPair beside the runs of a warehouse: printed, measured, interval.

    Also how each run differs from the paper, and which of the paper's claims hold. Without runs it
    shows the printed figures, and the claims that they can check. The paper released no results,
    so nothing has to agree: the status is 0 whatever the outcome.

    Example: plumbline reproduce fairpair --as "GPT2=models/small-novels"
    """

    paper = "fairpair"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Disclosure(_Beside, Command):
    """Put Tables 1-3, 9 and 10 of the paper on disclosure beside the runs of a warehouse.

    Printed and measured figures with intervals, and how each run differs from the paper. Then the
    paper's claims about its tables, counted in its own figures, which needs no run. The paper
    released no results, so nothing has to agree: the status is 0 whatever the outcome.

    Example: plumbline reproduce disclosure --as "LLaMA2 7B=EleutherAI/pythia-70m"
    """

    paper = "disclosure"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Lists(Command):
    """Compare the pairs of a word list: how many words have a delta, and if pairs rank them alike.

    These are the figures of App. A of UnStereoEval on the Pile (Table 4, Figures 4 and 5), beside
    those of your own corpus.

    Example: plumbline reproduce lists --corpus novels --list gendered
    """

    reads = "corpus"
    records = False

    corpus: Annotated[str, Field(description="Name of the corpus.")]
    word_list: Annotated[
        str, Field(description="Word list: name or TOML file."), On(name="list")
    ] = "gendered"
    out: Annotated[OutputDirectory, Field(description="Directory for CSV and PNG.")] = Path(
        "out/lists"
    )

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce.word_lists import alike, compare_list, write_compared

        with progress("draw documents again", "resamples") as update:
            compared = compare_list(context.store, self.corpus, self.word_list, update)
        said = [
            "Words with a delta co-occur with both words of a pair; percent is of all words, in "
            "the Pile of its 120,339 English words (Table 4, App. B)",
            *filter(None, [compared.near]),
            *alike(compared.agreements),
            f"  {compared.intervals}",
        ]
        return Done(
            rows=compared.coverage,
            most=_MOST,
            said=said,
            files=[*map(str, write_compared(compared, self.out))],
            next=f"plumbline why WORD --corpus {self.corpus}",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Pythia(_Release, _Figures, Command):
    """Show what the released Pythia figures could resolve: CrowS-Pairs and Plumbline's measures.

    The smallest change that a 5% test finds with power 80%, also as a share of pronouns exchanged.

    Example: plumbline reproduce pythia --evals pythia_bias_evals.csv --data unstereo-eval
    """

    evals: Annotated[InputFile, Field(description="CSV of Pythia's released CrowS-Pairs figures.")]

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce import pythia as released
        from plumbline.pipelines.reproduce.resolution import of_pythia

        checkpoints, n_other = released.read(self.evals)
        crows = released.of_crows_pairs(checkpoints)
        self.import_release(context.store, context.run_id)
        ours = of_pythia(context.store, self.corpus)
        if not ours:
            problem = "holds no scores of a Pythia model and its -deduped twin on the same pairs"
            raise BadInput(f"{self.data}", problem, "give --data the whole release")
        read = f"{len(checkpoints)} checkpoints, {n_other} rows of other tasks or metrics"
        noise = map(asdict, released.noise(checkpoints))
        return Done(
            rows=[*noise, *released.as_rows(crows), *released.over_sizes(ours)],
            most=_MOST,
            said=[f"{self.evals}: {read}", *released.lines(checkpoints), *released.LIMITS],
            files=self.written(released.as_rows([*crows, *ours])),
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Anatomy(_Release, Command):
    """Split the lean of the released models into parts; with --eta, on sentences that hardly lean.

    Parts are a constant of the model, pronoun first, number and form of pronouns, the text's delta,
    length, word and pair: the share of each, and US after subtracting it.

    Example: plumbline reproduce anatomy --data unstereo-eval --eta 0.65
    """

    records = False  # ``run`` itself records the import

    eta: Annotated[
        float | None,
        Field(
            ge=0,
            le=1_000,
            description="Only pairs whose MaxPMI is within this of 0, in nats.",
        ),
    ] = None
    out: Annotated[OutputDirectory, Field(description="Directory for CSV and PNG.")] = Path(
        "out/anatomy"
    )

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce.anatomy import anatomy_tables as tables
        from plumbline.pipelines.reproduce.anatomy import benchmark_anatomy

        store = context.store
        sets = list(benchmark_anatomy.tables(store, self.corpus))
        if not sets:
            with recorded(store, "reproduce anatomy", values_of(self)) as run_id:
                self.import_release(store, run_id)
            sets = list(benchmark_anatomy.tables(store, self.corpus))
        eta = math.inf if self.eta is None else self.eta
        within_eta = [
            (name, models, benchmark_anatomy.within(table, eta)) for name, models, table in sets
        ]
        anatomies = [benchmark_anatomy.anatomy(*one) for one in within_eta if len(one[-1].y)]
        if not anatomies:
            problem = "holds no pairs with a MaxPMI of that size and scores of all of them"
            raise BadInput(f"{self.data}", problem, "give a larger --eta, or the whole release")
        return Done(
            rows=list(tables.shown_rows(anatomies)),
            most=_MOST,
            said=[line for anatomy in anatomies for line in tables.lines(anatomy)],
            files=[*map(str, tables.write(anatomies, self.out))],
            next="read what the parts are and how far to trust them: docs/anatomy.md",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Planned:
    """A pre-specified study: its design, and the data that it reads."""

    makes_warehouse: ClassVar[bool] = True

    data: Annotated[
        InputDirectory,
        Field(description="Folder that holds the design's shards."),
        On(variable="PLUMBLINE_DATA"),
    ]
    design: Annotated[
        InputFile | None, Field(description="TOML file of a study instead of the packaged one.")
    ] = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cause(_Planned, Command):
    """Run the pre-specified study: does the text make the lean? (docs/cause-study.md)

    Counts the text, changes it by doses, trains and scores every arm, and compares each prediction
    with its outcome. The packaged study takes about an hour on two cores; after an interruption
    run the same command again to resume. The status is 0 whatever the outcome.

    Example: plumbline reproduce cause --data data --out out/cause
    """

    out: Annotated[
        OutputDirectory, Field(description="Directory of texts, models and cause.csv.")
    ] = Path("out/cause")
    warehouse: Annotated[
        Path,
        Field(description="Directory of the warehouse, or s3://BUCKET/DIR."),
        On(variable="PLUMBLINE_WAREHOUSE", metavar="DIRECTORY"),
    ] = Path("out/cause/warehouse")

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The shards it reads, the pairs it scores, and its predictions."""
        from plumbline.pipelines.reproduce.cause import read_design, shards_of

        study = read_design(self.design)
        for path in shards_of(study, self.data):
            yield planned(str(path), "bytes to count and train on", path.stat().st_size, "bytes")
        made = study.benchmark
        yield planned(made.name, "pairs", len(made.templates) * len(made.words))
        for p in study.prediction:
            yield planned(p.name, "expected", p.expected, "", f"{p.column} of {p.view}")

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce.cause import as_rows, read_design, run, shown_row

        study = read_design(self.design)
        _announce(f"design {study.sha256}: {study.question}")
        figures = run(study, self.data, self.out, self.warehouse, context.stages)
        path = self.out / "cause.csv"
        path.write_text(as_csv(as_rows(figures)), encoding="utf-8", newline="")
        return Done(
            rows=[*map(shown_row, figures)],
            said=["More in the views `dose_response`, `window_response` and `intervention_lean`"],
            files=[str(path)],
            next='plumbline sql "FROM intervention_lean"',
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Attribution(_Planned, Command):
    """Run the pre-specified study: is an attribution right? (docs/attribution-study.md)

    Trains on random halves of a text's documents, and compares the preference of each model with
    the prediction of every attribution method for its half. Then the same in a closed world, in
    which words lean in one source only. After an interruption run the same command again to resume.

    Example: plumbline reproduce attribution --data data --out out/attribution
    """

    out: Annotated[
        OutputDirectory, Field(description="Directory of texts, models and results.")
    ] = Path("out/attribution")
    warehouse: Annotated[
        Path,
        Field(description="Directory of the warehouse, or s3://BUCKET/DIR."),
        On(variable="PLUMBLINE_WAREHOUSE", metavar="DIRECTORY"),
    ] = Path("out/attribution/warehouse")

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The trainings, the methods and the predictions."""
        from plumbline.pipelines.reproduce.retraining.design import read_design

        study = read_design(self.design)
        for text in study.texts:
            made = text.trainings
            yield planned(text.corpus, "trainings", len(made.runs()) + 1)
            yield planned(text.corpus, "tokens of each", made.max_tokens, "tokens", "at most")
        for method in study.methods:
            yield planned(method, "words to attribute", sum(len(t.words) for t in study.texts))
        for p in study.prediction:
            where = f"{p.column} of {p.method}, {p.outcome}, {p.corpus}"
            yield planned(p.name, "expected", p.expected, "", where)

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce.retraining import conclusions
        from plumbline.pipelines.reproduce.retraining.design import read_design
        from plumbline.pipelines.reproduce.retraining.retraining_study import run

        design = read_design(self.design)
        _announce(f"design {design.sha256}: {design.question}")
        arguments = (self.data, self.out, context.store, context.run_id, context.stages, _announce)
        rows = run(design, *arguments)
        page = self.out / "attribution.md"
        page.write_text(conclusions.page(design, rows), encoding="utf-8", newline="")
        return Done(
            rows=[*map(conclusions.shown_row, rows)],
            said=conclusions.lines(design, rows),
            files=[*_Figures(out=self.out / "attribution.csv").written(rows), str(page)],
            wrote=("datamodelling_score", "trained_model", "pair_score"),
            query="FROM datamodelling_score ORDER BY ALL",
            next='plumbline sql "FROM datamodelling_score"',
        )
