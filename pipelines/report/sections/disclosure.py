"""Disclosure of gender: GAS, GLD and ADD by set, model and topic; tuned adapters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plumbline.eval_workers.training.model_card import tuned_by
from plumbline.pipelines.report.charts import disclosure_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved
from plumbline.pipelines.report.model import (
    Cell,
    Column,
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    digits_of,
    estimate,
    interval,
    number,
    shown,
    stem,
    table,
)
from plumbline.pipelines.report.rows import Row, Rows

PLACE = 600
NAMES = ("disclosure",)
_TITLE = "Disclosure of gender"
_MEANING = (
    "After prompts of unspecified gender (Dong et al., 2024): GAS is the share of greedy "
    "continuations that hold a gendered word. GLD is |p_f - p_m| / (p_f + p_m), p_f and p_m being "
    "the probabilities that a female and that a male word comes next: 0 where both are alike, 1 "
    "where it is always one gender. ADD, in nats, is the distance of each pair's two words, summed "
    "over the pairs; it also grows with how likely they are. Means over prompts; p_f above p_m "
    "makes the leaning positive. GAS (F) is the share of gendered continuations whose first "
    "gendered word is female, of the others it is male; Δ is the difference of the two shares, "
    "without its sign. A prompt is implicit where ADD of p_f and p_m, taken for one pair, is above "
    "0.005 nats. In SQL: views gas, gas_prompt and disclosed_continuation, "
    "disclosure(smoothing := e), disclosure_prompt(smoothing := e), "
    "disclosure_strategy(smoothing := e); here e = {smoothing:g}."
)
_TUNING = (
    "Adapters were tuned to lower L_d, which is ADD, L_g, the probability of all gendered words, "
    "and L_l, which is GLD. What they do after prompts that they were not tuned on says whether it "
    "was learned; what else they change, these figures do not tell."
)
#: The smoothing of the measures on the page, called e in ``_MEANING``.
_SMOOTHING = 0.0
#: Most prompts of a set listed one by one.
_LISTED = 100
#: Loss -> its columns at the start and at the end.
_LOSSES = {
    "L_d, nats": ("distance_start_nats", "distance_end_nats"),
    "L_g": ("total_start", "total_end"),
    "L_l": ("difference_start", "difference_end"),
}
#: Measure -> its name with its unit, and the factor into that unit.
_CHANGED = {
    "gas": ("GAS, %", 100),
    "gld": ("GLD", 1),
    "add_nats": ("ADD, nats", 1),
    "p_gendered": ("p_f + p_m", 1),
}


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """The section on disclosure, and on adapters tuned against it."""
    rows, tunings = facts.rows("disclosure", smoothing=_SMOOTHING), facts.rows("tuning")
    sweeps = list(_sweeps(facts))
    if not (rows or tunings or sweeps):
        yield Missing(_TITLE, "plumbline disclosure probe topics --model ID_OR_PATH")
        return
    pooled = facts.rows("disclosure_strategy", smoothing=_SMOOTHING)
    intro, figures, tables = [], [*_figures(rows, pooled), *sweeps], []
    if rows:
        intro.append(_MEANING.format(smoothing=_SMOOTHING))
        listed = facts.rows("disclosed_continuation", most=_LISTED)
        tables += [_measures(rows), *_prompt_tables(listed)]
    if tunings:
        intro.append(_TUNING)
        tables.append(_tunings(tunings))
        if effects := facts.rows("tuning_effect"):
            tables.append(_effects(effects))
        figures += [_losses(t, facts.rows("tuning_step")) for t in tunings]
    alerts = [
        f"Prompts of {probe_set} after which {model} gives no gendered word any probability, so "
        f"that they have no GLD: {n:,}."
        for n, probe_set, model in sorted(
            {(r["n_undefined"], r["probe_set"], r["model"]) for r in rows.where(topic=None)}
        )
        if n
    ]
    yield Section("disclosure", _TITLE, intro, alerts, figures, tables)


def leads(facts: Facts) -> Iterator[Lead]:
    """Disclosure on whole sets, and the effect of tuning on prompts or words it never saw.

    If there are several lists of words or lengths of continuations, only the first is described.
    """
    whole = facts.rows("disclosure", smoothing=_SMOOTHING).where(topic=None)
    groups = [group[0] for group in whole.groups("probe_set", "model_key")]
    groups.sort(key=lambda r: (r["probe_set"], r["model"], r["model_key"]))
    question = "Does it give people a gender that prompts leave open?"
    yield Lead(question, list(map(_sentence, groups)))
    effects = facts.rows("tuning_effect").where(measure=("gas", "gld"))
    unseen = effects.only(lambda r: False in (r["on_training_set"], r["on_training_list"]))
    question = "Does debias tuning hold for prompts or words that it never saw?"
    yield Lead(question, list(map(_effect_sentence, unseen)))


def _sentence(row: Row) -> str:
    """A sentence on GAS and GLD of one model and set.

    >>> row = {"probe_set": "s", "n_prompts": 2, "model": "m", "gas": None, "gld": 0, "leaning": 0}
    >>> _sentence(row)
    's: after 2 prompts; GLD of m is 0.000, on average towards neither side.'
    """
    start = f"{row['probe_set']}: after {row['n_prompts']:,} prompts"
    if row["gas"] is not None:
        words = ", ".join(
            f"a {kind} one in {shown(100 * row[name], 1)}%"
            for name, kind in (("gas_f_of_all", "female"), ("gas_m_of_all", "male"))
        )
        share = estimate(row, "gas").text.replace(" (", "% (", 1)
        share += "" if "(" in share else "%"
        start += f", {share} of {row['model']}'s continuations hold a gendered word, {words}"
    if row["gld"] is None:
        return f"{start}; no gendered word has any probability."
    leaning = row["leaning"]
    side = f"the {'female' if leaning > 0 else 'male'} words" if leaning else "neither side"
    gld = estimate(row, "gld").text
    return f"{start}; GLD of {row['model']} is {gld}, on average towards {side}."


def _effect_sentence(effect: Row) -> str:
    name, scale = _CHANGED[effect["measure"]]
    digits = 1 if scale == 100 else _digits(effect)
    before, after = (shown(scale * effect[c], digits) for c in ("base_mean", "tuned_mean"))
    where = f"{effect['tuning']}: {name} of {effect['probe_set']}, words {effect['word_list']},"
    ends = interval(effect, "difference", digits, scale=scale)
    ends = ends.replace("interval", "interval of the change")
    change = f"from {before} to {after}" + (f" ({ends})" if ends else "")
    return f"{where} {moved(finding(effect, 'difference'), 'is not shown to change,')} {change}."


def _measures(rows: Rows) -> PageTable:
    several = len({r["word_list"] for r in rows}) > 1
    columns: Columns = [
        ("prompts", lambda r: f"{r['probe_set']}: {r['topic']}" if r["topic"] else r["probe_set"]),
        "model",
        *([("words", "word_list")] if several else []),
        ("GAS %", "gas"),
        ("female %", "gas_f_of_all"),
        ("male %", "gas_m_of_all"),
        ("GAS (F) %", "gas_f_of_gendered"),
        ("Δ %", "gas_delta"),
        ("GLD", "gld"),
        ("ADD, nats", "add_nats"),
        "leaning",
        ("n", "n_prompts"),
        ("tokens", "max_new_tokens"),
    ]
    caption = (
        "GAS, GLD and ADD by set, model and topic, 95% intervals in brackets; female and male: of "
        "all continuations, GAS (F) and Δ: of the gendered ones; n is the number of prompts, "
        "tokens the most of a continuation"
    )
    return table(caption, rows, columns, folded=len(rows) > 40)


def _prompt_tables(rows: Rows) -> Iterator[PageTable]:
    """A table of prompts for each set, model, list of words and sampling."""
    columns: Columns = [
        "prompt",
        ("continued", "continuation"),
        ("P(female)", "p_f"),
        ("P(male)", "p_m"),
        ("P(female) among gendered", "share_f"),
        ("explicit", _verdict),
        ("implicit", lambda r: "yes" if r["implicit"] else "no"),
    ]
    for group in rows.groups("probe_set", "model_key", "word_list", "sampling_key"):
        probe_set, model, words, n_tokens = (
            group[0][c] for c in ("probe_set", "model", "word_list", "max_new_tokens")
        )
        more = f"; the {_LISTED} with the largest |p_f - p_m|" if len(group) == _LISTED else ""
        caption = (
            f"{probe_set} prompt by prompt, {model}, words {words}, {n_tokens:,} tokens at the "
            f"most: P of the next word{more}"
        )
        yield table(caption, group, columns, folded=True, searchable=True)


def _verdict(row: Row) -> str:
    if row["verdict"] == "gendered":
        return f"gendered: {'both sides' if row['gender'] == 'both' else row['gender']}"
    return row["verdict"] or "empty"


def _figures(rows: Rows, pooled: Rows) -> Iterator[Figure]:
    """Measures by strategy, then measures and gendered words by set, and by topic of each set."""
    for group in pooled.groups("word_list"):
        if {r["strategy"] for r in group} != {"template-based"}:  # which is a single set
            yield _measures_figure(group, "strategy", "", f"words {group[0]['word_list']}")
    for whole in rows.where(topic=None).groups("word_list"):
        words = whole[0]["word_list"]
        sets = {r["probe_set"] for r in whole}
        # A single set with topics is drawn by topic below.
        if len(sets) > 1 or not any(r["topic"] for r in rows.where(word_list=words)):
            yield from _measures_and_gas(whole, "probe_set", "", f"words {words}")
    for group in rows.groups("probe_set", "word_list"):
        if any(r["topic"] is not None for r in group):
            words = f"prompts {group[0]['probe_set']}, words {group[0]['word_list']}"
            yield from _measures_and_gas(group, "topic", group[0]["probe_set"], words)


#: Sweeps that the page draws, in the order of its charts.
_DECODINGS = """FROM decoding_sweep WHERE instruction_key = 'none'
ORDER BY probe_set, model, word_list, max_new_tokens, seed, parameter, setting;"""
_INSTRUCTIONS = """FROM instruction_sweep()
ORDER BY probe_set, model, word_list, max_new_tokens, instruction_key, measure;"""


def _sweeps(facts: Facts) -> Iterator[Figure]:
    """Charts of sweeps of decoding and of instructions, by set, model and list of words."""
    for rows in facts.query(_DECODINGS).groups("probe_set", "model_key", "word_list"):
        if len({r["sampling_key"] for r in rows} - {None}) > 2:
            caption = "GAS by setting of decoding, the others off; a ring marks the lowest"
            yield _sweep_figure(rows, "decoding", caption, charts.decoding(rows))
    for rows in facts.query(_INSTRUCTIONS).groups("probe_set", "model_key", "word_list"):
        if len({r["instruction_key"] for r in rows}) > 1:
            caption = "GAS, GLD and ADD under each instruction and without one"
            yield _sweep_figure(rows, "instruction", caption, charts.instructions(rows))


def _sweep_figure(rows: Rows, by: str, caption: str, chart: Any) -> Figure:
    where = f"{rows[0]['model']} on {rows[0]['probe_set']}, words {rows[0]['word_list']}"
    name = stem("disclosure", by, rows[0]["probe_set"], rows[0]["word_list"], rows[0]["model"])
    return Figure(name, f"{caption}: {where}.", f"{where}: {caption}.", chart, rows)


def _measures_and_gas(rows: Rows, by: str, probe_set: str, of_what: str) -> Iterator[Figure]:
    yield _measures_figure(rows, by, probe_set, of_what)
    continued = rows.only(lambda r: r["gas"] is not None)
    for model_rows in continued.groups("model_key", "sampling_key"):
        yield _gas_figure(model_rows, by, probe_set)


def _measures_figure(rows: Rows, by: str, probe_set: str, of_what: str) -> Figure:
    """A plot of GAS, GLD and ADD of all models, as in the paper's Figures 2 to 5 and 7."""
    what = {"probe_set": "set"}.get(by, by)
    about = probe_set or {"set": "all sets", "strategy": "all strategies"}[what]
    # If there are several lengths of continuations, draw the last that has a GAS.
    continued = rows.only(lambda r: r["gas"] is not None)
    drawn = Rows({(r["model_key"], r[by]): r for r in (*rows, *continued)}.values(), rows.sql)
    listed = (
        f"{r['model']}, {r[by] or 'all'}: {shown(r['gas'], 3)}, {shown(r['gld'], 3)}, "
        f"{shown(r['add_nats'], digits_of(r['add_nats']))}"
        for r in drawn
    )
    return Figure(
        stem("disclosure", "measures", about.replace(" ", "-"), rows[0]["word_list"]),
        f"GAS, GLD and ADD by {what} of {about}, with intervals. {'; '.join(listed)}.",
        f"GAS, GLD and ADD by {what}, {of_what}; lines are 95% intervals.",
        charts.measures(drawn, by),
        drawn,
    )


def _gas_figure(rows: Rows, by: str, probe_set: str) -> Figure:
    model, words, n_tokens = (rows[0][c] for c in ("model", "word_list", "max_new_tokens"))
    about, what = (probe_set, "topic") if probe_set else ("all sets", "set")
    listed = "; ".join(
        f"{r[by] or 'all'}: female {shown(100 * r['gas_f_of_all'], 1)}%, male "
        f"{shown(100 * r['gas_m_of_all'], 1)}%"
        for r in rows
    )
    return Figure(
        stem("disclosure", "gas", probe_set or f"all-sets {words}", model),
        f"Greedy continuations of {model} with gendered words, {about}. {listed}.",
        f"Greedy continuations of {model}, {n_tokens:,} tokens at the most, that hold a "
        f"female or a male word, by {what}, {about}; lines are 95% intervals.",
        charts.gas(rows, by),
        rows,
    )


def _tunings(tunings: Rows) -> PageTable:
    def loss(start: str, end: str) -> Column:
        weight = f"{start.split('_')[0]}_weight"
        return lambda t: Cell(f"{t[weight]:g}, {_ends(t, start, end)}", t[end], True)

    columns: Columns = [
        ("adapter", "tuning"),
        "base",
        ("tuned on", "probe_sets"),
        ("compared with", "test_sets"),
        ("prompts", "n_prompts"),
        ("left out", "n_left_out"),
        ("leaks", "n_leaks"),
        ("way", tuned_by),
        *((f"{name}: weight, start to end", loss(*names)) for name, names in _LOSSES.items()),
        "rank",
        ("rate", lambda t: Cell(f"{t['learning_rate']:g}", t["learning_rate"], True)),
        ("steps", "n_steps"),
        *([("chosen step", "chosen_step")] if any(t["dev_sets"] for t in tunings) else []),
        ("prompts a step", "batch_prompts"),
    ]
    return table("Adapters tuned: mean losses of the first and of the last steps", tunings, columns)


def _ends(tuning: Row, start: str, end: str) -> str:
    return " to ".join(shown(tuning[c], digits_of(tuning[c])) for c in (start, end))


def _losses(tuning: Row, steps: Rows) -> Figure:
    ends = ", ".join(f"{name} {_ends(tuning, *columns)}" for name, columns in _LOSSES.items())
    tuning_steps, chosen = steps.where(tuning=tuning["tuning"]), tuning["chosen_step"]
    dev = f", on {tuning['dev_sets']} after a step (dots)" if chosen is not None else ""
    return Figure(
        stem("disclosure", "losses", tuning["tuning"]),
        f"The three losses of {tuning['tuning']} against the step: {ends}.",
        f"Losses of tuning {tuning['tuning']} for {tuning['base']}, on the prompts of each step, "
        f"as means of up to {charts.SMOOTHED} steps{dev}: {ends}.",
        charts.losses(tuning_steps, chosen),
        tuning_steps,
    )


def _effects(effects: Rows) -> PageTable:
    def mean(column: str) -> Column:
        return lambda e: number(_scale(e) * e[column], _digits(e))

    columns: Columns = [
        ("adapter", "tuning"),
        ("prompts", "probe_set"),
        ("words", "word_list"),
        ("seen while tuning", _seen),
        ("measure", lambda e: _CHANGED[e["measure"]][0]),
        ("base", mean("base_mean")),
        ("tuned", mean("tuned_mean")),
        ("difference", lambda e: estimate(e, "difference", _digits(e), scale=_scale(e))),
        ("it", "verdict"),
        ("n", "n_prompts"),
    ]
    caption = "What tuning changed, paired by prompt, with 95% intervals of the differences"
    return table(caption, effects, columns, folded=len(effects) > 40)


def _scale(effect: Row) -> int:
    return _CHANGED[effect["measure"]][1]


def _digits(effect: Row) -> int:
    return digits_of(_scale(effect) * max(effect["base_mean"], effect["tuned_mean"]))


def _seen(effect: Row) -> str:
    """What tuning saw of a row's prompts and words: `prompts and words`, `neither`, ..."""
    words = {True: ["words"], False: [], None: ["perhaps words"]}[effect["on_training_list"]]
    prompts = ["prompts"] if effect["on_training_set"] else []
    return " and ".join([*prompts, *words]) or "neither"
