"""The section of disclosure: figures by set, model and topic, and tuned adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumbline.pipelines.report import disclosure_tuned as tuned
from plumbline.pipelines.report import draw_disclosure as draw
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
    digits_of,
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
#: e of ADD on the page.
SMOOTHING = 0.0


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
        intro.append(tuned.MEANING)
        tables += tuned.tables(facts)
        figures += tuned.figures(facts)
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
    return [*shares, _interval(row, "gld", 3), _interval(row, "add", digits_of(row["add_nats"]))]


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
