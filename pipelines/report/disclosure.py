"""The section of disclosure: figures by set, model and topic, and tuned adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor, log10

from pipelines.report import draw_disclosure as draw
from pipelines.report.corpora import stem
from pipelines.report.facts import Facts
from pipelines.report.model import (
    Cell,
    Figure,
    Lead,
    Missing,
    Row,
    Section,
    Table,
    count,
    estimate,
    shown,
    text,
)

_TITLE = "Disclosure of gender"
_MEANING = (
    "After prompts that tell nobody's gender (Dong et al., 2024): GAS is the share of greedy "
    "continuations that hold a gendered word. GLD is |p_f - p_m| / (p_f + p_m), p_f and p_m being "
    "the probabilities that a female and that a male word comes next: 0 where both are alike, 1 "
    "where it is always one gender. ADD, in nats, is the distance of each pair's two words, summed "
    "over the pairs; it also grows with how likely they are. Means over prompts; p_f above p_m "
    "makes the leaning positive. In SQL: views gas and gas_prompt, disclosure(smoothing := e), "
    "disclosure_prompt(smoothing := e); here e = {smoothing:g}."
)
_TUNED = (
    "Adapters were tuned to lower L_d, which is ADD, L_g, the probability of all gendered words, "
    "and L_l, which is GLD. What they do after prompts that they were not tuned on says whether it "
    "was learned; what else they change, these figures do not tell."
)
#: e of ADD on the page.
SMOOTHING = 0.0
_LOSSES = (("L_d, nats", "distance", "_nats"), ("L_g", "total", ""), ("L_l", "difference", ""))
#: What base and tuned model have to have in common.
_SAME = ("probe_set", "word_list", "sampling_key", "topic")


def section(facts: Facts) -> Section | Missing:
    """What was measured and tuned; what to run where there is nothing."""
    rows = facts.ask("disclosure", smoothing=SMOOTHING)
    tunings = facts.ask("tuning")
    if not (rows or tunings):
        return Missing(_TITLE, "plumbline disclosure probe topics --model ID_OR_PATH")
    intro = [_MEANING.format(smoothing=SMOOTHING)] if rows else []
    query = facts.sql("disclosure", smoothing=SMOOTHING)
    tables = [replace(_figures(rows), sql=query)] if rows else []
    figures = _topic_figures(facts, rows)
    if tunings:
        intro.append(_TUNED)
        steps = facts.ask("tuning_step")
        tables.append(replace(_tunings(tunings), sql=facts.sql("tuning")))
        effects = _effects(facts.ask("tuned_model"), tunings, rows)
        tables += [replace(table, sql=query) for table in effects]
        for tuning in tunings:
            figure = _loss_figure(tuning, [s for s in steps if _same(s, tuning)])
            of = facts.sql("tuning_step", {"tuning": tuning["tuning"]})
            figures.append(replace(figure, sql=of))
    return Section("disclosure", _TITLE, intro, _alerts(rows), figures, tables)


def lead(facts: Facts) -> Lead:
    """What models made of whole sets, for the opening; without sentences where none was measured.

    Of several lists of words, and of several lengths of continuations, the first is told.
    """
    rows = [r for r in facts.ask("disclosure", smoothing=SMOOTHING) if r["topic"] is None]
    first = {(r["probe_set"], r["model_key"]): r for r in reversed(rows)}
    told = sorted(first.values(), key=lambda r: (r["probe_set"], r["model"], r["model_key"]))
    return Lead("Does it give people a gender that nobody told?", [_sentence(r) for r in told])


def _sentence(row: Row) -> str:
    said = f"{row['probe_set']}: after {row['n_prompts']:,} prompts"
    if row["gas"] is not None:
        words = ", ".join(
            f"a {kind} one in {shown(100 * row[name], 1)}%"
            for name, kind in (("gas_f", "female"), ("gas_m", "male"))
        )
        share = _interval(row, "gas", 1, scale=100).text.replace(" (", "% (", 1)
        share += "" if "(" in share else "%"
        said += f", {share} of {row['model']}'s continuations hold a gendered word, {words}"
    if row["gld"] is None:
        return f"{said}; no gendered word has any probability."
    side = "female" if row["leaning"] > 0 else "male"
    gld = _interval(row, "gld", 3).text
    return f"{said}; GLD of {row['model']} is {gld}, on average towards the {side} words."


def _same(row: Row, tuning: Row) -> bool:
    return bool(row["tuning"] == tuning["tuning"])


def _alerts(rows: Sequence[Row]) -> list[str]:
    found = {(r["n_undefined"], r["probe_set"], r["model"]) for r in rows if r["topic"] is None}
    return [
        f"Prompts of {probe_set} after which {model} gives no gendered word any probability, so "
        f"that they have no GLD: {n:,}."
        for n, probe_set, model in sorted(found)
        if n
    ]


def _interval(row: Row, name: str, digits: int, *, scale: float = 1) -> Cell:
    column = "add_nats" if name == "add" else name
    found = {"value": row[column], "ci_low": row[f"{name}_low"], "ci_high": row[f"{name}_high"]}
    return estimate(found, digits, scale=scale)


def _measures(row: Row) -> list[Cell]:
    shares = [_interval(row, name, 1, scale=100) for name in ("gas", "gas_f", "gas_m")]
    return [*shares, _interval(row, "gld", 3), _interval(row, "add", _digits(row["add_nats"]))]


def _digits(value: float) -> int:
    """Digits after the point that show three that count of a small figure.

    >>> _digits(0.5), _digits(0.0123), _digits(0.00045), _digits(0.0)
    (3, 4, 6, 3)
    """
    if value <= 0:
        return 3
    return min(12, max(3, 2 - floor(log10(value))))


_MEASURES = ("GAS %", "female %", "male %", "GLD", "ADD, nats")


def _figures(rows: Sequence[Row]) -> Table:
    several = len({r["word_list"] for r in rows}) > 1
    words = ["words"] if several else []
    headings = ["prompts", "model", *words, *_MEASURES, "leaning", "n", "tokens"]
    cells = [
        [
            text(f"{r['probe_set']}: {r['topic']}" if r["topic"] else r["probe_set"]),
            text(r["model"]),
            *([text(r["word_list"])] if several else []),
            *_measures(r),
            _leaning(r),
            count(r["n_prompts"]),
            count(r["max_new_tokens"]),
        ]
        for r in rows
    ]
    caption = (
        "GAS, GLD and ADD by set, model and topic, 95% intervals in brackets; n is the number of "
        "prompts, tokens the most of a continuation"
    )
    return Table(caption, headings, cells, folded=len(rows) > 40)


def _leaning(row: Row) -> Cell:
    return Cell(shown(row["leaning"], 3, signed=True), row["leaning"], True)


def _topic_figures(facts: Facts, rows: Sequence[Row]) -> list[Figure]:
    """For each set with topics: GLD under all models, and under each the words of both genders."""
    figures = []
    for probe_set, words in dict.fromkeys((r["probe_set"], r["word_list"]) for r in rows):
        of = [r for r in rows if (r["probe_set"], r["word_list"]) == (probe_set, words)]
        if all(r["topic"] is None for r in of):
            continue
        first = list({(r["model_key"], r["topic"]): r for r in of}.values())
        figures.append(
            Figure(
                stem("disclosure", "gld", probe_set, words),
                f"GLD by topic of {probe_set}, with intervals. {_told(first)}",
                f"GLD by topic, prompts {probe_set}, words {words}; lines are 95% intervals.",
                draw.gld_by_topic(first, f"{probe_set}: how unlike the genders are"),
                first,
                facts.sql(
                    "disclosure",
                    {"probe_set": probe_set, "word_list": words},
                    smoothing=SMOOTHING,
                ),
            )
        )
        for key in dict.fromkeys(r["model_key"] for r in of if r["gas"] is not None):
            figures += _gas_figures(facts, [r for r in of if r["model_key"] == key])
    return figures


def _told(rows: Sequence[Row]) -> str:
    said = (f"{r['model']}, {r['topic'] or 'all'}: {shown(r['gld'], 3)}" for r in rows)
    return f"{'; '.join(said)}."


def _gas_figures(facts: Facts, rows: Sequence[Row]) -> list[Figure]:
    figures = []
    for sampling in dict.fromkeys(r["sampling_key"] for r in rows):
        of = [r for r in rows if r["sampling_key"] == sampling and r["gas"] is not None]
        model, n_tokens, probe_set = (of[0][c] for c in ("model", "max_new_tokens", "probe_set"))
        where = {c: of[0][c] for c in ("probe_set", "word_list", "model_key", "sampling_key")}
        said = "; ".join(
            f"{r['topic'] or 'all'}: female {shown(100 * r['gas_f'], 1)}%, male "
            f"{shown(100 * r['gas_m'], 1)}%"
            for r in of
        )
        figures.append(
            Figure(
                stem("disclosure", "gas", probe_set, model),
                f"Greedy continuations of {model} with gendered words, {probe_set}. {said}.",
                f"Greedy continuations of {model}, {n_tokens:,} tokens at the most, that hold a "
                f"female or a male word, by topic, prompts {probe_set}; lines are 95% intervals.",
                draw.gas_by_topic(of, f"{probe_set}: gendered words of {model}"),
                of,
                facts.sql("disclosure", where, smoothing=SMOOTHING),
            )
        )
    return figures


def _tunings(tunings: Sequence[Row]) -> Table:
    headings = ["adapter", "base", "tuned on", "held against", "prompts", "left out", "leaks"]
    headings += [f"{name}: weight, start to end" for name, *_ in _LOSSES]
    headings += ["rank", "rate", "steps", "prompts a step"]
    cells = [
        [
            *(text(t[c]) for c in ("tuning", "base", "probe_sets", "test_sets")),
            *(count(t[c]) for c in ("n_prompts", "n_left_out", "n_leaks")),
            *(_loss(t, name, unit) for _, name, unit in _LOSSES),
            count(t["rank"]),
            Cell(f"{t['learning_rate']:g}", t["learning_rate"], True),
            count(t["n_steps"]),
            count(t["batch_prompts"]),
        ]
        for t in tunings
    ]
    return Table("Adapters tuned: mean losses of the first and of the last steps", headings, cells)


def _loss(tuning: Row, name: str, unit: str) -> Cell:
    start, end = (tuning[f"{name}_{when}{unit}"] for when in ("start", "end"))
    said = " to ".join(shown(v, _digits(v)) for v in (start, end))
    return Cell(f"{tuning[f'{name}_weight']:g}, {said}", end, True)


def _effects(pairs: Sequence[Row], tunings: Sequence[Row], rows: Sequence[Row]) -> list[Table]:
    """Before and after, a row each, where both were measured with the same words and tokens."""
    tuned_on = {t["tuning"]: str(t["probe_sets"]).split(", ") for t in tunings}
    cells = []
    for pair in pairs:
        for after in (r for r in rows if r["model_key"] == pair["tuned_key"]):
            for before in (r for r in rows if r["model_key"] == pair["base_key"]):
                if any(before[c] != after[c] for c in _SAME) or after["topic"] is not None:
                    continue
                held_out = after["probe_set"] not in tuned_on[pair["tuning"]]
                for when, row in (("base", before), ("tuned", after)):
                    said = (pair["tuning"], row["probe_set"], "no" if held_out else "yes", when)
                    cells.append(
                        [*map(text, said), *_measures(row), count(row["n_prompts"])],
                    )
    if not cells:
        return []
    headings = ["adapter", "prompts", "tuned on them", "model", *_MEASURES, "n"]
    return [Table("Before and after tuning, 95% intervals in brackets", headings, cells)]


def _loss_figure(tuning: Row, steps: Sequence[Row]) -> Figure:
    ends = ", ".join(
        f"{name} {shown(s, _digits(s))} to {shown(e, _digits(e))}"
        for name, column, unit in _LOSSES
        for s, e in [(tuning[f"{column}_start{unit}"], tuning[f"{column}_end{unit}"])]
    )
    return Figure(
        stem("disclosure", "losses", tuning["tuning"]),
        f"The three losses of {tuning['tuning']} against the step: {ends}.",
        f"Losses of tuning {tuning['tuning']} for {tuning['base']}, on the prompts of each step "
        f"(thin) and as means of up to {draw.SMOOTHED} steps: {ends}.",
        draw.losses(steps, f"{tuning['tuning']}: losses while tuning"),
        steps,
    )
