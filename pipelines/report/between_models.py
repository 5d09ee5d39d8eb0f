"""Which models differ from each other on the same benchmark, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plumbline.pipelines.report import draw_between as draw
from plumbline.pipelines.report.corpora import stem
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Lead,
    Missing,
    Row,
    Section,
    Table,
    count,
    estimate,
    number,
    shown,
    text,
)

#: Up to this many models of a benchmark are compared two by two, more with the one in the middle.
TWO_BY_TWO = 4
_TITLE = "Comparisons: models"
_RULE = (
    "Differences are paired: of the pairs that both models scored, each with both of its scores, "
    "the model's figure less the reference's, with Student's 95% interval over pairs. A difference "
    "is clear where its interval leaves out 0. Pairs made for one word are alike, which the "
    "intervals do not know of."
)
_MIDDLE = (
    f"Up to {TWO_BY_TWO} models of a benchmark are compared two by two; more of them with one "
    "reference, the model in the middle by US of all pairs, so that chance did not pick it for an "
    "extreme. For any other two: preference_difference('KEY', 'KEY') in SQL."
)


@dataclass(frozen=True)
class _Compared:
    """Models of a benchmark: the rows, and what the query was asked, with one reference or none."""

    rows: Sequence[Row]
    asked: Mapping[str, object]

    @property
    def reference(self) -> str:
        """What the one reference is called; empty for models two by two."""
        return str(self.rows[0]["reference"]) if self.asked["reference_key"] else ""


def section(facts: Facts) -> Section | Missing:
    """Paired differences of models, a table a benchmark that two or more models scored."""
    found = _compared(facts)
    if not found:
        return Missing(_TITLE, "plumbline score --model ANOTHER_MODEL --benchmark NAME")
    intro = [*map(_said, found), _RULE]
    tables = []
    if any(of.reference for of in found):
        intro.append(_MIDDLE)
        tables.append(_counts(facts))
    figures = [_figure(facts, of) for of in found if of.reference]
    tables += [_table(facts, of) for of in found]
    return Section("compare-models", _TITLE, intro, (), figures, tables)


def lead(facts: Facts) -> Lead:
    """The same in sentences, for the opening."""
    return Lead("Do the models differ?", [_said(of) for of in _compared(facts)])


def _epsilon(facts: Facts) -> float | None:
    return next((r["epsilon_nats"] for r in facts.metrics("us")), None)


def _compared(facts: Facts) -> list[_Compared]:
    """Every benchmark of two or more models: many against the middle one, else two by two."""
    found = []
    for benchmark in sorted({r["benchmark"] for r in facts.metrics("us", subset="all")}):
        asked = {"benchmark": benchmark, "reference_key": _middle(facts, benchmark)}
        asked |= {"epsilon": _epsilon(facts)}
        rows = facts.ask("model_difference", **asked)
        if rows:
            found.append(_Compared(rows, asked))
    return found


def _middle(facts: Facts, benchmark: str) -> str:
    """The key of the model in the middle by US; empty for few models."""
    rows = [r for r in facts.metrics("us", subset="all", benchmark=benchmark) if r["n"]]
    if len(rows) <= TWO_BY_TWO:
        return ""
    rows = sorted(rows, key=lambda r: (r["value"], r["model"], r["model_key"]))
    return str(rows[len(rows) // 2]["model_key"])


def _said(of: _Compared) -> str:
    rows, benchmark = of.rows, of.asked["benchmark"]
    if not of.reference:
        return f"{benchmark}: {' '.join(map(_two, rows))}"
    more, less = (
        [r for r in rows if r["us_direction"] == direction] for direction in ("rose", "fell")
    )
    furthest = max(rows, key=lambda r: abs(r["us_difference"]))
    return (
        f"{benchmark}: of {len(rows)} models held against {of.reference}, the middle one "
        f"by US, {len(more)} are clearly more even, {len(less)} clearly less, and "
        f"{len(rows) - len(more) - len(less)} are not told apart from it. Furthest is "
        f"{furthest['model']}: {_points(furthest, 'us')} of US. {_leaning(rows)}"
    )


def _two(row: Row) -> str:
    """Two models in a sentence."""
    names = f"{row['model']} against {row['reference']}"
    verbs = {"rose": "more even", "fell": "less even"}
    how = verbs.get(row["us_direction"], "not shown to be more or less even")
    pd = {"rose": "further to female", "fell": "further to male"}
    side = pd.get(row["pd_direction"], "not shown to lean otherwise")
    return (
        f"{names}: {how}, {_points(row, 'us')} of US; {side}, {_points(row, 'pd')} of PD "
        f"({row['n_pairs']:,} pairs)."
    )


def _leaning(rows: Sequence[Row]) -> str:
    n = {d: sum(r["pd_direction"] == d for r in rows) for d in ("rose", "fell")}
    return f"By PD {n['rose']} lean clearly further to female and {n['fell']} further to male."


def _points(row: Row, measure: str) -> str:
    scale = 100 if measure == "us" else 1
    words = shown(scale * row[f"{measure}_difference"], 1, signed=True)
    if row[f"{measure}_low"] is None:
        return f"{words} points, no interval of one alone,"
    low, high = (shown(scale * row[f"{measure}_{end}"], 1, signed=True) for end in ("low", "high"))
    return f"{words} points (95% interval {low} to {high})"


def _counts(facts: Facts) -> Table:
    """How many of all pairs of models differ, by benchmark."""
    epsilon = _epsilon(facts)
    headings = ["benchmark", "models", "pairs of models", "differ in US", "differ in PD"]
    names = ("n_models", "n_model_pairs", "n_us_differ", "n_pd_differ")
    rows = [
        [text(r["benchmark"]), *(count(r[name]) for name in names)]
        for r in facts.ask("model_pair", epsilon=epsilon)
    ]
    caption = (
        "Of all pairs of models, those that differ clearly; chance alone makes about one in 20"
    )
    return Table(caption, headings, rows, sql=facts.sql("model_pair", epsilon=epsilon))


def _difference(row: Row, measure: str, scale: float) -> Cell:
    ends = {"value": "difference", "ci_low": "low", "ci_high": "high"}
    found = {name: row[f"{measure}_{column}"] for name, column in ends.items()}
    return estimate(found, 1, scale=scale, signed=True)


def _table(facts: Facts, of: _Compared) -> Table:
    headings = ["model", *([] if of.reference else ["reference"]), "US %", "reference's US %"]
    headings += ["difference in US points", "by US", "PD points", "reference's PD"]
    headings += ["difference in PD points", "by PD", "pairs"]
    us = {"rose": "more even", "fell": "less even"}
    pd = {"rose": "further to female", "fell": "further to male"}
    cells = [
        [
            text(r["model"]),
            *([] if of.reference else [text(r["reference"])]),
            *(number(100 * r[name], 1) for name in ("us_model", "us_reference")),
            _difference(r, "us", 100),
            text(us.get(r["us_direction"], "not clear")),
            *(number(r[name], 1, signed=True) for name in ("pd_model", "pd_reference")),
            _difference(r, "pd", 1),
            text(pd.get(r["pd_direction"], "not clear")),
            count(r["n_pairs"]),
        ]
        for r in of.rows
    ]
    how = f"models against {of.reference}" if of.reference else "models two by two"
    caption = f"{of.asked['benchmark']}, {how}; 95% intervals in brackets"
    query = facts.sql("model_difference", None, None, **of.asked)
    return Table(caption, headings, cells, sql=query, searchable=bool(of.reference))


def _figure(facts: Facts, of: _Compared) -> Figure:
    benchmark = str(of.asked["benchmark"])
    return Figure(
        stem("compare", benchmark),
        f"US of each model on {benchmark} less that of {of.reference}, with intervals; as in the "
        "table of this benchmark.",
        f"{benchmark}: US less that of {of.reference}, in points, over the pairs that both scored; "
        "lines are 95% intervals.",
        draw.against_reference(of.rows, f"{benchmark}: US against {of.reference}"),
        of.rows,
        facts.sql("model_difference", None, None, **of.asked),
    )
