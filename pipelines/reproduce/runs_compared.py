"""Compare printed figures with a warehouse's runs, for papers that released no results.

A row of ``warehouse/sql/reproduce/<paper>.sql`` is a run's figure, with the run's settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.model_lists import load
from plumbline.pipelines.reproduce.papers import AVERAGE, NOT_KNOWN, Paper
from plumbline.pipelines.reproduce.printed_figures import Row
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

#: Columns of the query that belong to a figure; all others, except ``Paper.by_set``, identify its
#: run.
_OF_A_FIGURE = ("inputs", "method", "metric", "measured", "low", "high")
#: Outcomes: the interval holds the printed figure, doesn't hold it, or why that is not known.
OUTCOMES = (HOLDS, OUTSIDE, NO_INTERVAL, NOT_DEFINED, NOT_MEASURED) = (
    *("agrees", "outside", "no interval"),
    *("not defined", "not run"),
)
#: Level of the paper's t-test.
_T_LEVEL = 0.001


@dataclass(frozen=True)
class MeasuredRun:
    """A numbered run, and settings that differ from the paper's or that the paper doesn't give."""

    number: int
    printed_model: str
    model: str
    differs: tuple[str, ...]
    unknown: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Lines on the run's settings."""
        differs = "; ".join(self.differs) or "nothing that is known"
        model = f"{self.printed_model} by {self.model}"
        yield f"run {self.number}, {model}: differs in {differs}"
        if self.unknown:
            yield f"  settings that the paper doesn't give: {'; '.join(self.unknown)}"


@dataclass(frozen=True)
class Comparison:
    """Every printed figure with the runs of a warehouse.

    Attributes:
        figures: rows of ``compare``, and ``runs``.
        claims: lines on claims that only runs can check; empty without runs.
        how_to_run: without runs, how to get some; else empty.
    """

    figures: list[dict[str, Any]]
    runs: list[MeasuredRun]
    claims: list[str]
    how_to_run: list[str]

    @property
    def n_missing(self) -> int:
        """Number of figures without a run, not counting means over the paper's models."""
        return sum(row["run"] is None and row["model"] != AVERAGE for row in self.figures)


def measured(
    paper: Paper, store: Store | None, printed: Sequence[Row], given: Iterable[str]
) -> Comparison:
    """Compare printed figures with the runs of a warehouse, see ``compare``; writes nothing.

    No warehouse is the same as one without runs: no figure is measured.
    """
    names = printed_names(paper, printed, given)
    rows = rows_of(store.root, sql(f"reproduce/{paper.name}")) if store else []
    figures, runs = compare(paper, printed, rows, names)
    if store and runs:
        claims = fairpair_claims(store, names) if paper.name == "fairpair" else []
        return Comparison(figures, runs, claims, [])
    name = next((row["model"] for row in printed), "PRINTED")
    where = f"{store.root}" if store else "no warehouse yet"
    own = min((row["model"] for row in rows), default="MODEL")
    lines = [
        f"No run of the paper's models and sets ({where}): the next line makes some",
        f'Or compare a model of your own with a printed one, as in --as "{name}={own}"',
    ]
    return Comparison(figures, runs, [], lines)


def printed_names(paper: Paper, printed: Iterable[Row], given: Iterable[str]) -> dict[str, str]:
    """The name that the paper prints, by the name of a model in the warehouse.

    Names are those of the paper's list of models, and of ``given``, which has texts PRINTED=MODEL.
    Raises ``UsageProblem`` for a text of another form and for a name that isn't printed.

    >>> from plumbline.pipelines.reproduce.papers import FAIRPAIR
    >>> printed_names(FAIRPAIR, [{"model": "GPT2"}], ["gpt2=models/tiny"])["tiny"]
    'GPT2'
    """
    spelled = {row["model"].casefold(): row["model"] for row in printed}
    listed = {m.id: m.name.casefold() for m in load(paper.name)}
    names = {model: spelled[name] for model, name in listed.items() if name in spelled}
    for option in given:
        name, equals, model = option.partition("=")
        if not (equals and model and name.strip().casefold() in spelled):
            printed_models = ", ".join(sorted(set(spelled.values()) - {AVERAGE}))
            fix = f"give PRINTED=MODEL, printed are {printed_models}"
            raise UsageProblem(f"--as {option}", "doesn't map a printed name to a model", fix)
        for place in (model.strip(), Path(model.strip()).name):
            names[place] = spelled[name.strip().casefold()]
    return names


def fairpair_claims(store: Store, names: Mapping[str, str]) -> list[str]:
    """Lines on the t-test and the lengths of texts in section 4.1; none without runs."""
    rows = [
        {**row, "model": names[row["model"]]}
        for row in rows_of(store.root, sql("reproduce/fairpair_claim"))
        if row["model"] in names
    ]
    if not rows:
        return []
    lines = ["Section 4.1: B differs from V_pg for all models but GPT2"]
    for row in (row for row in rows if row["kind"] == "B"):
        differs = "differs" if row["p"] < _T_LEVEL else "is not shown to differ"
        lines.append(
            f"  {row['probe_set']} ({row['measure']}): by the paper's t-test of B against V_pg at "
            f"{_T_LEVEL:g}, {row['model']} (p = {row['p']:.2g}) {differs}"
        )
    lines.append(
        "Section 4.1: lengths of p(g(x)) and g(p(x)) don't differ (here: both groups filtered)"
    )
    for row in (row for row in rows if row["kind"] == "length"):
        low, high = row["difference_low"], row["difference_high"]
        ends = "no interval" if low is None else f"{low:+.2f} to {high:+.2f}"
        lines.append(
            f"  {row['probe_set']}, {row['model']}: p(g(x)) less g(p(x)) "
            f"{row['difference']:+.2f} ({ends}) words"
        )
    return lines


def compare(
    paper: Paper, printed: Sequence[Row], rows: Sequence[Row], names: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[MeasuredRun]]:
    """Compare each printed figure with every run of its model; returns the runs, too.

    ``names``: printed name by the model's name in the warehouse. An interval holds a printed figure
    if it holds any value that rounds to it.

    Columns besides those of the printed figure: ``measured``, ``low``, ``high`` (None where
    undefined or infinite), ``outcome``, ``run`` (its number, None if there is none),
    ``measured_model``, ``differs`` and ``paper_unknown`` (settings of the run), ``note`` (settings
    of this figure alone).
    """
    of_a_figure = {*_OF_A_FIGURE, *paper.by_set}
    runs: dict[str, MeasuredRun] = {}
    found: dict[tuple[str, ...], list[tuple[MeasuredRun, Row]]] = {}
    for row in rows:
        if name := names.get(row["model"]):
            key = repr({column: v for column, v in row.items() if column not in of_a_figure})
            if key not in runs:
                settings = {c: v for c, v in paper.settings(row).items() if c not in of_a_figure}
                about = (_differences(row, settings), _unknown(row, settings))
                runs[key] = MeasuredRun(len(runs) + 1, name, row["model"], *about)
            found.setdefault(_cell({**row, "model": name}), []).append((runs[key], row))
    compared = []
    for figure in printed:
        beside = [{**figure, **_beside(paper, figure, *of)} for of in found.get(_cell(figure), [])]
        compared += beside or [{**figure, **_without_run(figure)}]
    return compared, list(runs.values())


def _cell(row: Row) -> tuple[str, ...]:
    return row["inputs"], row["method"], row["model"].casefold(), row["metric"]


def _beside(paper: Paper, figure: Row, run: MeasuredRun, row: Row) -> dict[str, Any]:
    low, high = (math.nan if row[end] is None else row[end] for end in ("low", "high"))
    half = paper.half_units.get(figure["metric"], 0.0) + 1e-9
    if row["measured"] is None:
        outcome = NOT_DEFINED
    elif math.isnan(low) or math.isnan(high):
        outcome = NO_INTERVAL
    else:
        outcome = HOLDS if low - half <= figure["value"] <= high + half else OUTSIDE
    settings = {c: v for c, v in paper.settings(row).items() if c in paper.by_set}
    counts = {column: value for column, value in settings.items() if row[column]}
    of_figure = [*_differences(row, settings), *_unknown(row, counts)]
    return {
        "measured": row["measured"],
        "low": _finite(low),
        "high": _finite(high),
        "outcome": outcome,
        "run": run.number,
        "measured_model": run.model,
        "differs": "; ".join([*run.differs, *filter(None, [", ".join(of_figure)])]),
        "paper_unknown": "; ".join(run.unknown),
        "note": ", ".join(of_figure),
    }


def _without_run(figure: Row) -> dict[str, Any]:
    note = "mean of the printed models" if figure["model"] == AVERAGE else ""
    none = dict.fromkeys(("run", "measured_model"))
    return {
        **dict.fromkeys(("measured", "low", "high")),
        **{"outcome": NOT_MEASURED, **none, "differs": note, "paper_unknown": "", "note": note},
    }


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _differences(row: Row, settings: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        f"{column} {_shown(row[column])} (paper: {_shown(value)})"
        for column, value in settings.items()
        if value is not NOT_KNOWN and not _same(row[column], value)
    )


def _unknown(row: Row, settings: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        f"{column} {_shown(row[column])}"
        for column, value in settings.items()
        if value is NOT_KNOWN and row[column] is not None
    )


def _same(value: object, expected: object) -> bool:
    if isinstance(value, str) and isinstance(expected, str):
        return value.startswith(expected)  # versions of libraries follow
    return value == expected


def _shown(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


def shown_rows(compared: Sequence[Row]) -> list[Row]:
    """Rows to print: figures outside of a run's interval, other measured ones, then the rest.

    Without settings of runs, which ``MeasuredRun.lines`` says once per run.
    """
    order = sorted(compared, key=lambda row: (row["run"] is None, row["outcome"] != OUTSIDE))
    long = ("measured_model", "differs", "paper_unknown")
    return [{name: v for name, v in row.items() if name not in long} for row in order]


def tally(compared: Sequence[Row]) -> Iterator[str]:
    """One line per outcome: numbers of distinct printed figures and of their runs.

    A figure with several runs counts for each of their outcomes.

    >>> one = {"table": 1, "inputs": "s", "method": "m", "model": "a", "metric": "GAS"}
    >>> list(tally([{**one, "outcome": HOLDS, "run": run} for run in (1, 2)]))
    ['1 figure in 2 runs: agrees']
    """
    for outcome in OUTCOMES:
        alike = [row for row in compared if row["outcome"] == outcome]
        n_runs = len({row["run"] for row in alike} - {None})
        n = len({(row["table"], *_cell(row)) for row in alike})
        where = f" in {n_runs:,} runs" if n_runs > 1 else ""
        if n:
            yield f"{n:,} figure{'' if n == 1 else 's'}{where}: {outcome}"
