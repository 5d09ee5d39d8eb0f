"""`plumbline reproduce`: recompute a paper's tables, or compare them with your own runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import InputDirectory
from plumbline.warehouse.errors import BadInput, PlumblineError, UsageProblem
from plumbline.warehouse.storage.store import Store

#: Maximum number of rows to print in a terminal.
_MOST = 30
#: Papers with released scores, which are imported into a warehouse of their own.
_RELEASED, _RELEASE_WAREHOUSE = ("unstereoeval", "anatomy"), Path("out/released")
#: Name of the corpus with the released word statistics.
_CORPUS = "pile"


class Reproduce(Command):
    """Recompute a paper's printed figures, or compare them with your own runs.

    `unstereoeval` recomputes Tables 1-3 and 8-22 from the released scores in --data, and counts the
    figures that agree. The exit status is 1 if a figure differs by more than 0.011 or if scores are
    missing. `anatomy` shows which properties of pairs explain the preferences of the paper's 28
    models. Examples are sentence length and the leans of words in the training text.

    `fairpair` and `disclosure` compare the printed tables with the runs in your warehouse. For
    each run, they show intervals, settings that differ from the paper's, and the claims of the
    paper that the run supports. These papers released no results, so the exit status is 0 even if
    figures differ.

    Example: plumbline reproduce unstereoeval --data unstereo-eval
    """

    makes_warehouse = True

    paper: Annotated[
        Literal["unstereoeval", "anatomy", "fairpair", "disclosure"],
        Field(description="What to reproduce: unstereoeval, anatomy, fairpair or disclosure."),
        On(positional=True),
    ]
    data: Annotated[
        InputDirectory | None,
        Field(description="For unstereoeval and anatomy: directory of UnStereoEval's release."),
    ] = None
    eta: Annotated[
        float | None,
        Field(ge=0, le=1_000, description="For anatomy: leave out pairs with |MaxPMI| above this."),
    ] = None
    same_as: Annotated[
        tuple[str, ...],
        Field(description="Compare your MODEL with the paper's PRINTED model. Can be repeated."),
        On(name="as", repeated=True, metavar="PRINTED=MODEL"),
    ] = ()

    @classmethod
    def usual(cls, given: Mapping[str, object]) -> Mapping[str, object]:
        """Make out/released the default warehouse for papers that released scores."""
        return {"warehouse": _RELEASE_WAREHOUSE} if given.get("paper") in _RELEASED else {}

    @property
    def opens_warehouse(self) -> bool:  # type: ignore[override]
        """True if the paper released scores. These scores are imported into the warehouse."""
        return self.paper in _RELEASED

    @property
    def records(self) -> bool:  # type: ignore[override]
        """True if the paper released scores. For other papers, the command writes no table."""
        return self.paper in _RELEASED

    def __post_init__(self) -> None:
        if self.paper in _RELEASED and self.data is None:
            raise UsageProblem("--data", "is missing", "give the folder of the release")
        if self.paper not in _RELEASED and self.data is not None:
            raise UsageProblem("--data", "is for unstereoeval and anatomy", "leave it out")
        if self.eta is not None and self.paper != "anatomy":
            raise UsageProblem("--eta", "is for anatomy", "leave it out")
        if self.same_as and self.paper in _RELEASED:
            raise UsageProblem("--as", "is for fairpair and disclosure", "leave it out")

    def check(self) -> None:
        from plumbline.pipelines.reproduce.unstereoeval import Release

        if self.data is not None:
            Release.at(self.data)

    def run(self, context: Context) -> Done:
        if self.data is not None:
            of_release = self._anatomy if self.paper == "anatomy" else self._unstereoeval
            return of_release(context, self.data)
        return self._compare_runs()

    def _unstereoeval(self, context: Context, data: Path) -> Done:
        from plumbline.pipelines.reproduce import claims, unstereoeval

        printed = claims.figures("unstereoeval")
        arguments = (context.store, data, printed, _CORPUS, context.run_id)
        result = unstereoeval.reproduce(*arguments)
        counts = Counter((row["table"], row["outcome"]) for row in result.compared)
        by_table = [
            {
                "table": table,
                **{outcome: counts[table, outcome] for outcome in unstereoeval.OUTCOMES},
            }
            for table in dict.fromkeys(table for table, _ in counts)
        ]
        differ = (unstereoeval.OFF, unstereoeval.CONTRADICTED)
        n_off = sum(row["outcome"] == unstereoeval.OFF for row in result.compared)
        failed = None
        if n_off or result.incomplete:
            problem = f"{n_off:,} differ, {len(result.incomplete):,} sets of scores are incomplete"
            failed = PlumblineError("printed figures", problem)
        return Done(
            rows=[
                *by_table,
                *(row for row in result.compared if row["outcome"] in differ),
                *sorted(result.claims, key=lambda row: row["outcome"] not in differ),
            ],
            most=_MOST,
            table=[*result.compared, *result.claims],
            said=list(result.lines()),
            next="plumbline sql",
            query="FROM metric_value ORDER BY ALL",
            failed=failed,
        )

    def _anatomy(self, context: Context, data: Path) -> Done:
        from plumbline.pipelines.reproduce import anatomy, unstereoeval

        store = context.store
        if next(anatomy.tables(store, _CORPUS), None) is None:
            given = unstereoeval.Release.at(data)
            unstereoeval.import_release(store, given, _CORPUS, context.run_id)
        eta = math.inf if self.eta is None else self.eta
        found = list(anatomy.anatomies(store, _CORPUS, eta))
        if not found:
            problem = "has no benchmark that a model scored whole, or none with pairs within --eta"
            raise BadInput(f"{data}", problem, "give a larger --eta, or the whole release")
        rows = [row for one in found for row in one.shares]
        return Done(
            rows=rows,
            most=_MOST,
            said=[line for one in found for line in anatomy.lines(one)],
            next="read what the parts are and how far to trust them: docs/reproduce.md",
        )

    def _compare_runs(self) -> Done:
        from plumbline.pipelines.reproduce import claims, runs_compared

        store, paper = Store.existing(self.warehouse), runs_compared.PAPERS[self.paper]
        printed = claims.figures(self.paper)
        figures, runs = runs_compared.measured(paper, store, printed, self.same_as)
        lines = [line for run in runs for line in run.lines()]
        lines += [*paper.remarks, *claims.misprints(printed, paper.n_prompts)]
        lines += claims.counted(claims.claims_of(self.paper), printed)
        is_missing = any(
            row["run"] is None and row["model"] != runs_compared.AVERAGE for row in figures
        )
        return Done(
            rows=runs_compared.shown_rows(figures),
            most=_MOST,
            table=figures,
            said=[*lines, *runs_compared.tally(figures)],
            next=paper.command if is_missing else "plumbline report",
        )


class Lists(Command):
    """Compare the word pairs of a list, such as she/he and her/his, on your corpus.

    For each pair, shows how many words have a delta. For every two pairs, shows whether they rank
    words in the same order. The Pile's figures are shown for comparison (UnStereoEval, App. A:
    Table 4, Figures 4 and 5).

    Example: plumbline reproduce lists --corpus novels --list gendered
    """

    reads = "corpus"
    records = False

    corpus: Annotated[str, Field(description="Name of the corpus.")]
    word_list: Annotated[
        str, Field(description="Word list: its name, or a TOML file."), On(name="list")
    ] = "gendered"

    def run(self, context: Context) -> Done:
        from plumbline.pipelines.reproduce.word_lists import compare_list

        rows, said = compare_list(context.store, self.corpus, self.word_list)
        about = (
            "A word with a delta co-occurs with both words of a pair. Percent is of all words; for "
            "the Pile, of its 120,339 English words (Table 4, App. B)"
        )
        why = f"plumbline why WORD --corpus {self.corpus}"
        return Done(rows=rows, most=_MOST, said=[about, *said], next=why)
