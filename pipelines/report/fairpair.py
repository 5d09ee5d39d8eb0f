"""The sections of FairPair: one for each probe set, model, sampling and perturber."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plumbline.pipelines.report import draw_fairpair as draw
from plumbline.pipelines.report import fairpair_tables as tables
from plumbline.pipelines.report.corpora import stem
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.fairpair_ngrams import NGrams, read_ngrams
from plumbline.pipelines.report.fairpair_words import (
    ALPHA,
    MEASURE,
    SET,
    main_rows,
    measure,
    same,
    verdict,
    which,
    whom,
)
from plumbline.pipelines.report.model import (
    Figure,
    Missing,
    Row,
    Section,
    Table,
    shown,
)

_TITLE = "Counterfactual continuations"
_MEANING = (
    "FairPair (Dwivedi-Yu et al., 2024) continues a prompt about one and, in another sample, "
    "about the other; the first texts, turned into the other's terms, p(g(x)), and the second, "
    "g(p(x)), are then about the same person. B is the mean distance between the two groups, V_pg"
    " and V_gp the mean distance of two samples of one group, F = B² / (V_pg V_gp): 1 where the "
    "groups differ as two samples of one prompt do. Distance jaccard is the share of words that "
    "two texts do not have in common, vader the difference of their sentiment. p is of a test "
    "that exchanges the two groups within each prompt."
)
_FAILURES = (
    "Texts whose perturbation failed are left out, of p(g(x)) and of g(p(x)) alike: a group that "
    "is sifted by what its texts say differs from one that is not. What is measured is the rest."
)


def sections(facts: Facts) -> Sequence[Section | Missing]:
    """A section a sampled and perturbed set; what to run where there is none."""
    rows = facts.ask("fairpair_set")
    success = facts.ask("fairpair_success")
    if not rows:
        if success:
            return [Missing(_TITLE, "plumbline fairpair score")]
        return [Missing(_TITLE, "plumbline fairpair run common-sents --model ID_OR_PATH")]
    names = ("prompt", "convergence", "calibration")
    more = {"success": success} | {name: facts.ask(f"fairpair_{name}") for name in names}
    ngrams = read_ngrams(facts, [r for r in rows if r["subset"] == "all"])
    keys = dict.fromkeys(tuple(r[c] for c in SET) for r in rows)
    found = []
    for place, key in enumerate(keys, 1):
        whose = dict(zip(SET, key, strict=True))
        own = {name: [r for r in of if same(r, whose)] for name, of in more.items()}
        own["set"] = [r for r in rows if same(r, whose)]
        found.append(
            _section(facts, own, ngrams.get(key), "fairpair" if place == 1 else f"fairpair-{place}")
        )
    return found


def _section(
    facts: Facts, own: Mapping[str, Sequence[Row]], ngrams: NGrams | None, anchor: str
) -> Section:
    everything = [r for r in own["set"] if r["subset"] == "all"]
    leading, first = main_rows(everything), everything[0]
    intro = []
    for row in leading:
        prompts = [p for p in own["prompt"] if same(p, row, MEASURE)]
        intro.append(f"{verdict(row)} {which(prompts)}".strip())
    intro += [
        f"{first['probe_set']}, sampling {first['sampling_key'][:12]}, perturbed by "
        f"{first['perturber']}. {_MEANING}"
    ]
    if any(r["reason"] != "valid" and r["n"] for r in own["success"]):
        intro.append(_FAILURES)
    figures = [figure for row in leading for figure in _prompt_figures(facts, own, row)]
    figures += [figure for row in leading for figure in _convergence_figures(facts, own, row)]
    whose = {c: first[c] for c in SET}
    subsets = [r for r in own["set"] if r["subset"] != "all"]

    def asked(name: str, found: Sequence[Table], **more: object) -> list[Table]:
        return [replace(t, sql=facts.sql(f"fairpair_{name}", {**whose, **more})) for t in found]

    made = [
        *asked("set", [tables.over_prompts(everything)], subset="all"),
        *asked("set", tables.by_subset(subsets)),
        *asked("success", [tables.success(own["success"], everything)]),
    ]
    for row in leading:
        made += asked("prompt", tables.by_prompt(own["prompt"], [row]), **_of(row))
    if ngrams:
        query = ngrams.sql(facts, whose)
        figures.append(replace(ngrams.figure(first), sql=query))
        made += [replace(t, sql=query) for t in ngrams.tables()]
    made += asked("calibration", tables.calibration(own["calibration"], everything))
    title = f"{_TITLE}: {first['model']}, {first['probe_set']}"
    return Section(anchor, title, intro, _alerts(everything), figures, made)


def _alerts(rows: Sequence[Row]) -> list[str]:
    left_out = {(r["n_left_out"], measure(r), whom(r)) for r in rows if r["n_left_out"]}
    return [
        f"Prompts without B or V, in no figure of the set: {n:,} ({how}, about {about})."
        for n, how, about in sorted(left_out)
    ]


def _of(row: Row) -> dict[str, object]:
    return {c: row[c] for c in MEASURE}


def _prompt_figures(facts: Facts, own: Mapping[str, Sequence[Row]], row: Row) -> list[Figure]:
    prompts, how = [p for p in own["prompt"] if same(p, row, MEASURE)], measure(row)
    drawn = draw.chosen(prompts)
    if not drawn:
        return []
    alt = f"F of each prompt with its interval, {how}, {row['model']}. {which(prompts)}".strip()
    caption = (
        f"F of each prompt, {how}, texts about {whom(row)}: at 1, the dotted line, the groups "
        "differ as two samples do. Lines are bootstrap intervals over samples."
    )
    if None in drawn:
        caption += f" Drawn are the {draw.TOP} largest and the {draw.BOTTOM} smallest."
    name = stem("fairpair", "prompts", how, row["probe_set"], row["model"])
    plot = draw.by_prompt(prompts, ALPHA, f"F of each prompt ({how})")
    query = facts.sql("fairpair_prompt", _of(row))
    return [Figure(name, alt, caption, plot, prompts, query)]


def _convergence_figures(facts: Facts, own: Mapping[str, Sequence[Row]], row: Row) -> list[Figure]:
    """One against samples and one against folds, for the row of single samples."""
    figures, phi = list[Figure](), row["phi"]
    grown = [r for r in own["convergence"] if same(r, row, (*SET, "phi", "side"))]
    for by, what in (("n_samples", "samples"), ("n_folds", "folds")):
        of = [r for r in grown if bool(r["n_folds"]) == (by == "n_folds")]
        # Sizes that fewer prompts have are about other prompts: a step there is no convergence.
        n_prompts = max((r["n_prompts"] for r in of), default=0)
        of = [r for r in of if r["n_prompts"] == n_prompts]
        if row["n_folds"] or len({r[by] for r in of}) < 2:
            continue
        ends = {r["quantity"]: shown(100 * r["mean"], 1) for r in of}
        names = {"bias_b": "B", "variability_pg": "V_pg", "variability_gp": "V_gp"}
        last = ", ".join(f"{name} {ends[k]}%" for k, name in names.items() if k in ends)
        alt = f"Means of B, V_pg and V_gp against {what}, {phi}; at the most {what}: {last}."
        caption = (
            f"Mean B, V_pg and V_gp of {n_prompts:,} prompts against {what} ({phi}); bands are one "
            f"standard deviation over random draws to either side. At the most {what}: {last}."
        )
        plot = draw.convergence(of, f"B and V against the number of {what} ({phi})", by)
        name = stem("fairpair", what, phi, row["probe_set"], row["model"])
        key = {c: row[c] for c in (*SET, "phi", "side")}
        if by == "n_samples":
            query = facts.sql("fairpair_convergence", {**key, "n_folds": 0})
        else:
            query = facts.sql("fairpair_convergence", key, {"n_folds": 0})
        figures.append(Figure(name, alt, caption, plot, of, query))
    return figures
