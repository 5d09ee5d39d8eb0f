"""Tuned adapters on the page: their losses, and what they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumbline.pipelines.report import draw_disclosure as draw
from plumbline.pipelines.report.corpora import stem
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Lead,
    Row,
    Table,
    count,
    digits_of,
    estimate,
    shown,
    text,
)

MEANING = (
    "Adapters were tuned to lower L_d, which is ADD, L_g, the probability of all gendered words, "
    "and L_l, which is GLD. What they do after prompts that they were not tuned on says whether it "
    "was learned; what else they change, these figures do not tell."
)
_LOSSES = (("L_d, nats", "distance", "_nats"), ("L_g", "total", ""), ("L_l", "difference", ""))
#: Measure -> how it is called, in what unit, times what.
_CHANGED = {
    "gas": ("GAS, %", 100),
    "gld": ("GLD", 1),
    "add_nats": ("ADD, nats", 1),
    "p_gendered": ("p_f + p_m", 1),
}


def tables(facts: Facts) -> list[Table]:
    """Adapters with their losses, and what they changed where base and adapter were measured."""
    made = replace(_tunings(facts.ask("tuning")), sql=facts.sql("tuning"))
    query = facts.sql("tuning_effect")
    return [made, *(replace(t, sql=query) for t in _effects(facts.ask("tuning_effect")))]


def figures(facts: Facts) -> list[Figure]:
    """The losses of each adapter against the step."""
    steps = facts.ask("tuning_step")
    return [
        replace(
            _loss_figure(t, [s for s in steps if s["tuning"] == t["tuning"]]),
            sql=facts.sql("tuning_step", {"tuning": t["tuning"]}),
        )
        for t in facts.ask("tuning")
    ]


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
    said = " to ".join(shown(v, digits_of(v)) for v in (start, end))
    return Cell(f"{tuning[f'{name}_weight']:g}, {said}", end, True)


def _effects(effects: Sequence[Row]) -> list[Table]:
    """What tuning changed, paired by prompt; nothing where base and adapter were not measured."""
    headings = ["adapter", "prompts", "words", "seen while tuning", "measure", "base", "tuned"]
    headings += ["difference", "it", "n"]
    cells = []
    for e in effects:
        name, scale = _CHANGED[e["measure"]]
        digits = digits_of(scale * max(e["base_mean"], e["tuned_mean"]))
        cells.append(
            [
                *(text(e[c]) for c in ("tuning", "probe_set", "word_list")),
                text(_seen(e)),
                text(name),
                *(
                    Cell(shown(scale * e[c], digits), scale * e[c], True)
                    for c in ("base_mean", "tuned_mean")
                ),
                _difference(e, digits, scale),
                text(e["verdict"]),
                count(e["n_prompts"]),
            ]
        )
    if not cells:
        return []
    caption = "What tuning changed, paired by prompt, with 95% intervals of the differences"
    return [Table(caption, headings, cells, folded=len(cells) > 40)]


def _seen(effect: Row) -> str:
    """What tuning saw of a set and a list of words."""
    seen = [
        name
        for name, column in (("prompts", "on_training_set"), ("words", "on_training_list"))
        if effect[column]
    ]
    return " and ".join(seen) or "neither"


def _difference(effect: Row, digits: int, scale: float) -> Cell:
    names = {"value": "difference", "ci_low": "low", "ci_high": "high"}
    found = {name: effect[column] for name, column in names.items()}
    return estimate(found, digits, scale=scale, signed=True)


def lead(facts: Facts) -> Lead:
    """Whether tuning holds for what it never saw, for the opening; GAS and GLD of each adapter."""
    told = [
        _effect_sentence(e)
        for e in facts.ask("tuning_effect")
        if e["measure"] in ("gas", "gld") and not (e["on_training_set"] and e["on_training_list"])
    ]
    return Lead("Does debias tuning hold for prompts and words that it never saw?", told)


def _effect_sentence(effect: Row) -> str:
    name, scale = _CHANGED[effect["measure"]]
    digits = 1 if scale == 100 else 3
    before, after = (shown(scale * effect[c], digits) for c in ("base_mean", "tuned_mean"))
    where = f"{effect['tuning']}: {name} of {effect['probe_set']}, words {effect['word_list']},"
    change = f"from {before} to {after}"
    if effect["low"] is not None:
        ends = [shown(scale * effect[c], digits, signed=True) for c in ("low", "high")]
        change += f" (95% interval of the change {ends[0]} to {ends[1]})"
    says = {"fell": "fell", "rose": "rose", "unclear": "did not clearly fall:"}
    return f"{where} {says[effect['verdict']]} {change}."


def _loss_figure(tuning: Row, steps: Sequence[Row]) -> Figure:
    ends = ", ".join(
        f"{name} {shown(s, digits_of(s))} to {shown(e, digits_of(e))}"
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
