"""Training steps at which the lean appears: curves over checkpoints, and words by onset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.metric_tables import corpus_name
from plumbline.pipelines.report.model import (
    Cell,
    Column,
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    estimate,
    interval,
    number,
    shown,
    stem,
    table,
    text,
)
from plumbline.pipelines.report.plots.svg import FEMALE, INK, MALE, Panel, grid, looks, short
from plumbline.pipelines.report.rows import Row, Rows, set_name, sides, with_ends

PLACE = 203
NAMES = ("checkpoints", "onset")
#: Least checkpoints of a curve.
LEAST_STEPS = 3
#: Most words drawn.
MOST_WORDS = 6
#: Largest p at which a change is marked.
ALPHA = 0.05
_TITLE = "When in training does the lean appear?"
_MEANING = (
    "The pairs and words are the same at every checkpoint. A mark is filled if its value moved "
    "since the checkpoint before by more than the scatter of its words explains (Holm's p of at "
    "most 5% over all steps and curves). Values go up and down while a model learns: a move says "
    "nothing about later steps. A dashed line is a lasting change: the means before and after it "
    "differ by more than autocorrelation explains, for all curves together. A test with a power "
    "below 30% gives no verdict. No test is over several trainings: see docs/cause.md."
)
_WORDS = (
    "A word leans if its pairs lean more than those of other words, in the same sentence frames or "
    "else in the benchmark: a drift that all words share isn't a lean. It begins to lean at "
    "the step from which it leans to one side until the last checkpoint. Of the words listed, at "
    "most 5% are expected to be wrong."
)
#: Measure -> its name on the plots, factor, digits.
_CURVES = {
    "us": ("US, %", 100, 1),
    "pd": ("PD, points", 1, 1),
    "slope": ("slope on the text's lean", 1, 2),
    "explained variance": ("variance explained by it, %", 100, 1),
    "mean log ratio": ("mean log ratio, nats", 1, 2),
}
_DRAWN = tuple(_CURVES)[:4]
#: The columns of a test, all NULL, for a checkpoint without a test.
_NO_TEST = dict.fromkeys(("q_moved", "shift", "q_lasting", "power"))
_MODEL = ("series", "setting", "benchmark", "groups")
_CURVE = (*_MODEL, "corpus", "contrast", "measure")


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A plot and table of curves for each model and benchmark, and of words if any has an onset."""
    curves = _curves(facts)
    if not curves:
        if facts.rows("score"):
            more = "--checkpoints 8; plumbline score --model DIRECTORY --revisions all"
            yield Missing(_TITLE, f"plumbline train SHARDS --name NAME --corpus NAME {more}")
        return
    tests = {_key(row): row for row in facts.query("FROM change_point")}
    figures, tables = [], []
    for model_rows in curves:
        figures.append(_figure(model_rows, tests))
        tables.append(_table(model_rows, tests))
        onsets = _onsets(facts, model_rows[0])
        if onsets:
            figures.append(_words(facts, model_rows, onsets))
            tables.append(_word_table(onsets))
    yield Section("checkpoints", _TITLE, [_MEANING, _WORDS], figures=figures, tables=tables)


def leads(facts: Facts) -> Iterator[Lead]:
    """US and slope at the first and at the last checkpoint, and the first word to lean."""
    sentences = [_sentence(facts, model_rows) for model_rows in _curves(facts)]
    yield Lead(_TITLE, sentences)


def _curves(facts: Facts) -> list[Rows]:
    groups = facts.query("FROM checkpoint_curve ORDER BY ALL").groups(*_MODEL)
    return [
        model_rows for model_rows in groups if len({r["step"] for r in model_rows}) >= LEAST_STEPS
    ]


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[c] for c in (*_CURVE, "step"))


def _is_significant(p: float | None) -> bool:
    return p is not None and p <= ALPHA


def _onsets(facts: Facts, subject: Row) -> Rows:
    """Words with an onset for the model and benchmark of ``subject``, by onset, then by lean."""
    rows = facts.query(
        "FROM word_onset WHERE onset_step IS NOT NULL AND relative_nats IS NOT NULL "
        "ORDER BY onset_step, abs(relative_nats) DESC, word"
    )
    return rows.where(**{column: subject[column] for column in _MODEL})


def _name(row: Row) -> str:
    return f"{row['series']} on {set_name(row)}"


def _sentence(facts: Facts, model_rows: Rows) -> str:
    parts = []
    for curve in model_rows.where(measure=("us", "slope")).groups("measure", "corpus", "contrast"):
        label, scale, digits = _CURVES[curve[0]["measure"]]
        if curve[0]["corpus"]:
            label = f"slope on the lean of {curve[0]['corpus']}"
        first, last = curve[0], curve[-1]
        ends = interval(last, digits=digits, scale=scale)
        parts.append(
            f"{label} from {shown(scale * first['value'], digits)} to "
            f"{shown(scale * last['value'], digits)} ({ends})"
        )
    onsets = _onsets(facts, model_rows[0])
    words = f"{len(onsets):,} words show when they begin to lean more than others"
    if onsets:
        first = onsets[0]
        words += f", first {first['word']}, at step {first['onset_step']:,}"
    steps = sorted({r["step"] for r in model_rows})
    return (
        f"{_name(model_rows[0])}, step {steps[0]:,} to {steps[-1]:,}: {'; '.join(parts)}. "
        f"{words if onsets else 'No word shows when it begins to lean more than others'}."
    )


def _axis(panel: Panel, steps: Sequence[int]) -> list[float]:
    """Set the ticks of x; returns the steps' places on x, logarithmic if their range is wide."""
    is_log = len(steps) > 2 and steps[-1] > 50 * max(steps[1] - steps[0], 1)
    places = [log2(1 + step) if is_log else float(step) for step in steps]
    n = len(steps) - 1
    chosen = sorted({0, n // 2, n})
    panel.x.ticks = [(places[k], _short_step(steps[k])) for k in chosen]
    return places


def _short_step(step: int) -> str:
    """A step as the label of a tick.

    >>> _short_step(512), _short_step(143000)
    ('512', '143k')
    """
    return f"{step / 1000:.4g}k" if step >= 10000 else f"{step:,}"


def _figure(model_rows: Rows, tests: dict[tuple[object, ...], Row]) -> Figure:
    rows, panels = model_rows.where(measure=_DRAWN), []
    for measure in _DRAWN:
        panel, (label, scale, _) = Panel(), _CURVES[measure]
        curves = rows.where(measure=measure).groups("corpus", "contrast")
        for curve, look in zip(curves, looks(len(curves)), strict=True):
            _draw(panel, curve, tests, scale, look["color"])
        if curves:
            panels.append((label, panel))
    subject = model_rows[0]
    name = _name(subject)
    return Figure(
        stem("checkpoints", subject["series"], set_name(subject), subject["setting"]),
        f"US, PD, slope and explained variance of {name} by the step of training, with intervals.",
        f"{name} by the step of training; bands are 95% intervals. Filled: moved since the "
        "checkpoint before; dashed: a lasting change.",
        grid(short(name, 66), panels, 2),
        rows,
    )


def _draw(
    panel: Panel, curve: Rows, tests: dict[tuple[object, ...], Row], scale: float, color: str
) -> None:
    at = _axis(panel, [r["step"] for r in curve])
    value, low, high = (
        [scale * (r["value"] if r[c] is None else r[c]) for r in curve] for c in with_ends("value")
    )
    panel.band(at, low, high, color)
    label = f"{curve[0]['corpus']} ({curve[0]['contrast']})" if curve[0]["corpus"] else ""
    panel.line(at, value, color, label=short(label))
    for x, y, row in zip(at, value, curve, strict=True):
        test = tests.get(_key(row), {})
        panel.marks([x], [y], color, "o" if _is_significant(test.get("q_moved")) else "O", 6)
        if _is_significant(test.get("q_lasting")):
            panel.rule(x=x, linestyle="--", color=INK)


def _words(facts: Facts, model_rows: Rows, onsets: Rows) -> Figure:
    chosen = [row["word"] for row in onsets[:MOST_WORDS]]
    word_rows = facts.query("FROM checkpoint_word ORDER BY ALL")
    rows = word_rows.where(**{c: model_rows[0][c] for c in _MODEL}, word=tuple(chosen))
    reach = 1.1 * max(abs(r[c] or 0) for r in rows for c in with_ends("relative_nats")[1:])
    panels = []
    for word, onset in zip(chosen, onsets, strict=False):
        panel, curve = Panel(), rows.where(word=word)
        panel.y.low, panel.y.high = -reach, reach
        at = _axis(panel, [r["step"] for r in curve])
        color = FEMALE if onset["relative_nats"] > 0 else MALE
        mean = [r["relative_nats"] for r in curve]
        low, high = (
            [r[c] if r[c] is not None else m for r, m in zip(curve, mean, strict=True)]
            for c in with_ends("relative_nats")[1:]
        )
        panel.rule(y=0, width=0.7)
        panel.band(at, low, high, color)
        panel.line(at, mean, color)
        is_on = [r["step"] >= onset["onset_step"] for r in curve]
        for x, y, filled in zip(at, mean, is_on, strict=True):
            panel.marks([x], [y], color, "o" if filled else "O", 6)
        panels.append((f"{short(word, 18)}: step {onset['onset_step']:,}", panel))
    name, (first, second) = _name(model_rows[0]), sides(model_rows[0])
    return Figure(
        stem("onset", model_rows[0]["series"], set_name(model_rows[0]), model_rows[0]["setting"]),
        f"Log ratio of words of {name}, less that of others, by the step of training.",
        f"{name}: the first words to lean, log ratio less that of other words in nats (above 0: "
        f"{first}, below: {second}) by step; filled from where they lean on. Bands are 95% "
        "intervals, uncorrected.",
        grid(short(f"Words that begin to lean: {name}", 66), panels, 3),
        rows,
    )


def _table(model_rows: Rows, tests: dict[tuple[object, ...], Row]) -> PageTable:
    def figure(column: str, signed: bool) -> Column:
        def cell(row: Row) -> Cell:
            _, scale, digits = _CURVES[row["measure"]]
            return estimate(row, column, digits + 1, scale=scale, signed=signed)

        return cell

    rows = Rows(
        ({**_NO_TEST, **tests.get(_key(row), {}), **row} for row in model_rows), model_rows.sql
    )
    columns: Columns = [
        ("curve", lambda r: _CURVES[r["measure"]][0]),
        ("text", lambda r: corpus_name(r) or None),
        "step",
        ("value", figure("value", False)),
        ("change since the step before", figure("change", True)),
        ("p of no move", lambda r: number(r["q_moved"], 4)),
        ("lasting shift", figure("shift", True)),
        ("p of no lasting change", _p_lasting),
        ("its power", lambda r: number(r["power"])),
        "n",
    ]
    caption = f"{_name(model_rows[0])} ({model_rows[0]['setting']}), 95% intervals in brackets"
    return table(caption, rows, columns, folded=True)


def _p_lasting(row: Row) -> Cell:
    p = row["q_lasting"]
    return text("no verdict") if p is None and row["power"] is not None else number(p, 4)


def _word_table(onsets: Rows) -> PageTable:
    columns: Columns = [
        "word",
        ("leans from step", "onset_step"),
        ("log ratio at the last step", "last_nats"),
        ("less that of other words", "relative_nats"),
        "q",
        ("pairs", "n_pairs"),
    ]
    caption = f"Words that lean at the last checkpoint: {_name(onsets[0])}"
    return table(caption, onsets, columns, folded=len(onsets) > 30, searchable=True)
