"""`plumbline reproduce`: published tables from published scores or beside your runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.pipelines.command.base import Command, Context, Done, On, Row, values_of
from plumbline.pipelines.command.fields import (
    InputDirectory,
    OutputDirectory,
    OutputFile,
)
from plumbline.warehouse.errors import BadInput, PlumblineError, disk_problems
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import as_csv, say
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
        from plumbline.pipelines.reproduce.release import Release

        Release.at(self.data)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Unstereoeval(_Release, _Figures, Command):
    """Compute the tables of UnStereoEval from its released scores and count what agrees.

    Prints outcomes of all figures of Tables 1-3 and 8-22 by table, then figures that differ; --out
    has all. Figures of models without scores are `not run`. The status is 1 if a figure differs by
    more than 0.011, or scores are incomplete.

    Example: plumbline reproduce unstereoeval --data unstereo-eval --warehouse out/released
    """

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce import printed_figures, unstereoeval

        printed = printed_figures.figures("unstereoeval")
        arguments = (printed, self.corpus, _announce, context.run_id)
        result = unstereoeval.reproduce(context.store, self.data, *arguments)
        n_off = sum(row["outcome"] == unstereoeval.OFF for row in result.compared)
        failed = None
        if n_off or result.incomplete:
            problem = f"{n_off:,} differ, {len(result.incomplete):,} sets of scores are incomplete"
            failed = PlumblineError("printed figures", problem)
        return Done(
            rows=list(result.shown_rows()),
            most=_MOST,
            said=list(result.lines()),
            files=self.written(result.rows()),
            wrote=("benchmark_pair", "pair_score", "metric_value"),
            next="plumbline sql",
            query="FROM metric_value ORDER BY ALL",
            failed=failed,
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Beside(_Figures, Command):
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
        from plumbline.pipelines.reproduce import claims, runs_compared
        from plumbline.pipelines.reproduce.papers import PAPERS
        from plumbline.pipelines.reproduce.printed_figures import figures

        store, paper = Store.existing(self.warehouse), PAPERS[self.paper]
        printed = figures(self.paper)
        found = runs_compared.measured(paper, store, printed, self.same_as)
        lines = [line for run in found.runs for line in run.lines()]
        lines += [*found.claims, *paper.remarks, *claims.misprints(printed, paper.n_prompts)]
        lines += claims.counted(claims.claims_of(self.paper), printed)
        rows = [{k: v for k, v in row.items() if k != "note"} for row in found.figures]
        return Done(
            rows=runs_compared.shown_rows(found.figures),
            most=_MOST,
            said=[*lines, *runs_compared.tally(found.figures), *found.how_to_run],
            files=self.written([*rows, *({"note": line} for line in lines)]),
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
        from plumbline.pipelines.reproduce import anatomy, release

        store = context.store
        if next(anatomy.tables(store, self.corpus), None) is None:
            with recorded(store, "reproduce anatomy", values_of(self)) as run_id:
                given = release.Release.at(self.data)
                release.import_release(store, given, self.corpus, run_id, _announce)
        eta = math.inf if self.eta is None else self.eta
        found = list(anatomy.anatomies(store, self.corpus, eta))
        if not found:
            problem = "holds no pairs with a MaxPMI of that size and scores of all of them"
            raise BadInput(f"{self.data}", problem, "give a larger --eta, or the whole release")
        return Done(
            rows=list(anatomy.shown_rows(found)),
            most=_MOST,
            said=[line for one in found for line in anatomy.lines(one)],
            files=[*map(str, anatomy.write(found, self.out))],
            next="read what the parts are and how far to trust them: docs/reproduce.md",
        )
