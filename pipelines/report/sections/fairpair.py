"""FairPair: one section for each probe set, model, sampling and perturber."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from plumbline.pipelines.report.charts import fairpair_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import of_groups
from plumbline.pipelines.report.model import (
    Cell,
    Column,
    Columns,
    Figure,
    Lead,
    Missing,
    PageTable,
    Section,
    count,
    estimate,
    shown,
    stem,
    table,
    text,
)
from plumbline.pipelines.report.ngrams import KEY, ngram_parts
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.finding import ALPHA

PLACE = 500
NAMES = ("fairpair",)
_TITLE = "Counterfactual continuations"
_MEANING = (
    "FairPair (Dwivedi-Yu et al., 2024) continues a prompt about one person and, in other samples, "
    "about another; the first texts, changed to be about the other, p(g(x)), and the second, "
    "g(p(x)), are then about the same person. B is the mean distance between the two groups, V_pg"
    " and V_gp the mean distance of two samples of one group, F = B² / (V_pg V_gp): 1 where the "
    "groups differ as two samples of one prompt do. Distance jaccard is the share of words that "
    "two texts do not have in common, vader the difference of their sentiment. p is of a test "
    "that exchanges the two groups within each prompt; p of the paper's t-test compares B with "
    "V_pg. Distances are of continuations without their prompts, unless a measure says otherwise."
)
_FAILURES = (
    "Texts whose perturbation failed are left out, of p(g(x)) and of g(p(x)) alike: a group that "
    "is filtered by what its texts say differs from one that is not. Figures as published leave "
    "them out of p(g(x)) alone, as the paper does. What is measured is the rest."
)
#: The texts of a measure -> their wording. The default texts (`filtered`) aren't mentioned.
_TEXTS = {"as-published": "as published"}
#: The level of the paper's t-test.
_T_LEVEL = 0.001
#: F within this distance of 1 is shown with three decimals, else with two.
_NEAR = 0.1
#: Most prompts in a table, most prompts in a sentence, most models of a set described singly.
_LISTED, _NAMED, _ONE_BY_ONE = 200, 5, 4
#: Least number of prompts for a histogram over prompts.
_ENOUGH = 5
_IN = {"jaccard": "in words", "vader": "in sentiment"}
#: Columns that identify one measure of one set.
_MEASURE = (*KEY, "phi", "texts", "n_folds", "side")
_QUANTITIES = {"bias_b": "B", "variability_pg": "V_pg", "variability_gp": "V_gp"}


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A section for each sampled and perturbed set."""
    sets, success = _sets(facts), facts.rows("fairpair_success")
    if not sets:
        more = "score" if success else "run common-sents --model ID_OR_PATH"
        yield Missing(_TITLE, f"plumbline fairpair {more}")
        return
    for place, rows in enumerate(sets.groups(*KEY), 1):
        everything = rows.where(subset="all")
        first, leading = everything[0], _main_rows(everything)
        set_key = {column: first[column] for column in KEY}
        outcomes = success.where(**set_key)
        rows_with_prompts = [
            (row, _with_same(facts.rows("fairpair_prompt"), row, _MEASURE)) for row in leading
        ]
        intro = [f"{verdict(row)} {_which(prompts)}".strip() for row, prompts in rows_with_prompts]
        intro.append(
            f"{first['probe_set']}, sampling {first['sampling_key'][:12]}, perturbed by "
            f"{first['perturber']}. {_MEANING}"
        )
        if any(r["reason"] != "valid" and r["n"] for r in outcomes):
            intro.append(_FAILURES)
        figures = [
            *(figure for row, prompts in rows_with_prompts for figure in _by_prompt(row, prompts)),
            *(figure for row, prompts in rows_with_prompts for figure in _spread(row, prompts)),
            *(figure for row in leading for figure in _convergence(facts, row)),
        ]
        tables = [
            _over_prompts(everything),
            _by_subset(rows.but(subset="all")),
            _success(outcomes, everything),
            _sizes(facts.rows("fairpair_compared_length").where(**set_key), first),
            *(_each_prompt(row, prompts) for row, prompts in rows_with_prompts),
        ]
        if ngrams := ngram_parts(facts, min(everything, key=lambda r: r["side"])):
            figures.append(ngrams[0])
            tables.append(ngrams[1])
        tables.append(_calibration(facts.rows("fairpair_calibration").where(**set_key), first))
        left_out = {(r["n_left_out"], _measure(r), _whom(r)) for r in everything if r["n_left_out"]}
        alerts = [
            f"Prompts without B or V, in no figure of the set: {n:,} ({measure}, about {people})."
            for n, measure, people in sorted(left_out)
        ]
        anchor = "fairpair" if place == 1 else f"fairpair-{place}"
        title = f"{_TITLE}: {first['model']}, {first['probe_set']}"
        yield Section(anchor, title, intro, alerts, figures, [t for t in tables if t.rows])


def _sets(facts: Facts) -> Rows:
    """Rows of ``fairpair_set``; runs of one model are named after the settings that differ."""
    rows = facts.rows("fairpair_set")
    names = (f"{r['model']} ({r['told_apart']})" if r["told_apart"] else r["model"] for r in rows)
    return Rows(({**r, "model": name} for r, name in zip(rows, names, strict=True)), rows.sql)


def _with_same(rows: Rows, row: Row, columns: Sequence[str]) -> Rows:
    return rows.where(**{column: row[column] for column in columns})


def leads(facts: Facts) -> Iterator[Lead]:
    """A verdict for each set and measure."""
    rows = _main_rows(_sets(facts).where(subset="all"))
    measure = ("probe_set", "phi", "texts", "n_folds")
    groups = rows.groups(*measure)
    groups.sort(key=lambda group: [*min(map(_place, group)), *(group[0][c] for c in measure)])
    sentences = []
    for group in groups:
        if len(group) > _ONE_BY_ONE:
            sentences.append(_summed_up(group))
        else:
            for row in group:
                prompts = _with_same(facts.rows("fairpair_prompt"), row, _MEASURE)
                sentences.append(f"{row['probe_set']}: {verdict(row)} {_which(prompts)}".strip())
        sentences += t_tested(group)
    yield Lead("Is one name written of differently than the other?", sentences)


def _main_rows(rows: Rows) -> Rows:
    """One row per set and measure, of the side `original` if that was measured.

    Rows with a permutation p-value come first, then rows of the default texts.
    """
    groups = rows.groups(*_MEASURE[:-1])
    preferred = [min(group, key=lambda r: str(r["side"])) for group in groups]
    main = rows.only(lambda r: any(r is row for row in preferred))
    main.sort(key=_place)
    return main


def _place(row: Row) -> tuple[bool, bool]:
    return row["p_permutation"] is None, row["texts"] != "filtered"


def t_tested(rows: Sequence[Row]) -> list[str]:
    """A sentence on the models that differ by the paper's t-test; none without p-values.

    ``rows`` are of one probe set and one measure.

    >>> measure = {"probe_set": "s", "phi": "jaccard", "texts": "filtered", "n_folds": 0}
    >>> t_tested([{**measure, "model": m, "p_t": p} for m, p in (("a", 0.0004), ("b", 0.02))])
    ["s (jaccard): by the paper's t-test of B against V_pg at 0.001, a (p = 0.0004) differs; \
b (p = 0.02) is not shown to differ."]
    """
    tested = sorted((r for r in rows if r["p_t"] is not None), key=lambda r: (r["p_t"], r["model"]))
    if not tested:
        return []
    parts = []
    for differ, singular, plural in (
        (True, "differs", "differ"),
        (False, "is not shown to differ", "are not shown to differ"),
    ):
        named = [r for r in tested if (r["p_t"] < _T_LEVEL) == differ]
        names = ", ".join(f"{r['model']} (p = {_probability(r['p_t'])})" for r in named)
        parts += [f"{names} {singular if len(named) == 1 else plural}"] if named else []
    where = f"{rows[0]['probe_set']} ({_measure(rows[0])})"
    verdicts = "; ".join(parts)
    return [f"{where}: by the paper's t-test of B against V_pg at {_T_LEVEL:g}, {verdicts}."]


def _differs(row: Row) -> bool:
    return of_groups(row, "p_permutation").verdict == "above"


def verdict(row: Row) -> str:
    """A row of ``fairpair_set`` (subset `all`) as a sentence."""
    where = f"the same prompt about {_whom(row)}"
    n_prompts, kind = row["n_prompts"], _IN.get(row["phi"], f"by {row['phi']}")
    if row["p_permutation"] is None:
        return (
            f"Nothing can be said of {row['model']} after {where} ({_measure(row)}): none of "
            f"{row['n_left_out']:,} prompts has {row['n_folds'] or 'two'} valid samples on each "
            "side."
        )
    result = f"{'differ' if _differs(row) else 'are not shown to differ'} more {kind} than"
    f = f"F = {_f_in_words(row)}" if row["fairpair_f"] is not None else "F not defined"
    notes = [f"{n_prompts:,} prompt{'' if n_prompts == 1 else 's'}"]
    if row["fairpair_f_high"] is not None:
        level = json.loads(row["options"]).get("level", 0.95)
        notes.append(f"{100 * level:g}% interval")
    return (
        f"After {where}, {row['model']}'s continuations {result} two continuations of the "
        f"same prompt do ({_measure(row)}: {f}; p = {_probability(row['p_permutation'])}; "
        f"{', '.join(notes)})."
    )


def _which(prompts: Sequence[Row]) -> str:
    """The number of prompts that differ after correction, and those of them with the largest F.

    ``prompts`` are rows of one set, measure and side. Rows without a corrected p don't count. The
    text is empty if no row has one.
    """
    tested = [row for row in prompts if row["q_permutation"] is not None]
    if not tested:
        return ""
    differ = [row for row in tested if of_groups(row, "q_permutation").verdict == "above"]
    differ.sort(key=lambda r: (-(r["fairpair_f"] or 0), r["prompt_id"]))
    count = f"{len(differ):,} of {len(tested):,} prompts differ after correction"
    count += f" (Benjamini-Hochberg at {100 * ALPHA:g}%)"
    if not differ:
        return f"{count}."
    named = ", ".join(f"{r['prompt']} (F = {shown(r['fairpair_f'])})" for r in differ[:_NAMED])
    return f"{count}{', most of all' if len(differ) > _NAMED else ':'} {named}."


def _summed_up(rows: Sequence[Row]) -> str:
    furthest = max(rows, key=lambda r: r["fairpair_f"] or 0)
    return (
        f"{rows[0]['probe_set']} ({_measure(rows[0])}): continuations about {_whom(rows[0])} "
        f"differ more than two of the same prompt in {sum(map(_differs, rows))} of {len(rows)} "
        f"samplings; the largest estimate is {furthest['model']}'s (F = {_f_in_words(furthest)})."
    )


def _by_prompt(row: Row, prompts: Rows) -> list[Figure]:
    """A plot of the F of each prompt; none if no prompt has one."""
    measure, drawn = _measure(row), charts.chosen(prompts)
    if not drawn:
        return []
    has_ends = any(r["fairpair_f_low"] is not None for r in prompts)
    lines = (
        "Lines are bootstrap intervals over samples."
        if has_ends
        else "No intervals: a group has fewer than four samples, or folds, to resample."
    )
    with_ends = " with its interval" if has_ends else ""
    alt = f"F of each prompt{with_ends}, {measure}, {row['model']}. {_which(prompts)}".strip()
    caption = (
        f"F of each prompt, {measure}, texts about {_whom(row)}: at 1, the dotted line, the groups "
        f"differ as two samples do. {lines}"
    )
    if len(drawn) == charts.TOP + charts.BOTTOM:
        caption += f" Drawn are the {charts.TOP} largest and the {charts.BOTTOM} smallest."
    name = stem("fairpair", "prompts", measure, row["probe_set"], row["model"])
    plot = charts.by_prompt(prompts)
    return [Figure(name, alt, caption, plot, prompts)]


def _spread(row: Row, prompts: Rows) -> Iterator[Figure]:
    """Histograms of B and V over prompts (the paper's Figure 5); none below ``_ENOUGH`` prompts."""
    measured, measure = charts.measured_prompts(prompts), _measure(row)
    if len(measured) < _ENOUGH:
        return
    ranges = {
        symbol: [shown(100 * pick(r[name] for r in measured), 1) for pick in (min, max)]
        for name, symbol in _QUANTITIES.items()
    }
    ends = ", ".join(f"{symbol} from {low} to {high}%" for symbol, (low, high) in ranges.items())
    yield Figure(
        stem("fairpair", "distributions", measure, row["probe_set"], row["model"]),
        f"Histograms of B, V_pg and V_gp over {len(measured):,} prompts, {measure}: {ends}.",
        f"B, V_pg and V_gp of {len(measured):,} prompts ({measure}): {ends}. Where the name adds "
        "nothing, their means are the same; B, a mean over more pairs of texts, spreads less.",
        charts.distributions(measured),
        measured,
    )


def _convergence(facts: Facts, row: Row) -> Iterator[Figure]:
    """Plots of B and V against numbers of samples and of folds; none for a measure by folds."""
    if row["n_folds"]:
        return
    measure = _measure(row)
    columns = (*KEY, "phi", "texts", "side")
    convergence = _with_same(facts.rows("fairpair_convergence"), row, columns)
    for by, size_rows in (
        ("n_samples", convergence.where(n_folds=0)),
        ("n_folds", convergence.but(n_folds=0)),
    ):
        # Keep the sizes with the most prompts: means over other prompts show no convergence.
        n_prompts = max((r["n_prompts"] for r in size_rows), default=0)
        size_rows = size_rows.where(n_prompts=n_prompts)
        if len({r[by] for r in size_rows}) < 2:
            continue
        what = by.removeprefix("n_")
        ends = {r["quantity"]: shown(100 * r["mean"], 1) for r in size_rows}
        last = ", ".join(f"{name} {ends[k]}%" for k, name in _QUANTITIES.items() if k in ends)
        yield Figure(
            stem("fairpair", what, measure, row["probe_set"], row["model"]),
            f"Means of B, V_pg and V_gp against {what}, {measure}; at the most {what}: {last}.",
            f"Mean B, V_pg and V_gp of {n_prompts:,} prompts against {what} ({measure}); bands are "
            f"one standard deviation over random draws to either side. At the most {what}: {last}.",
            charts.convergence(size_rows, by),
            size_rows,
        )


def _whom(row: Row) -> str:
    """The person that a side's texts are about after the exchange, and the one before it.

    >>> _whom({"side": "original", "entity": "John", "perturbed_entity": "Jane"})
    'Jane instead of John'
    >>> _whom({"side": "original", "entity": None, "perturbed_entity": None})
    'the counterpart instead of the one named'
    """
    pair = [row["entity"], row["perturbed_entity"]]
    if None in pair:
        pair = ["the one named", "the counterpart"]
    first, second = reversed(pair) if row["side"] == "original" else pair
    return f"{first} instead of {second}"


def _measure(row: Row) -> str:
    """The scoring function, texts and folds of a row, as in headings.

    >>> _measure({"phi": "jaccard", "texts": "filtered", "n_folds": 0})
    'jaccard'
    >>> _measure({"phi": "vader", "texts": "as-published", "n_folds": 20})
    'vader, as published, 20 folds'
    """
    folds = f"{row['n_folds']} folds" if row["n_folds"] else None
    return ", ".join(filter(None, (str(row["phi"]), _TEXTS.get(row["texts"]), folds)))


def _probability(p: float | None) -> str:
    """A p-value with two significant digits; ``None`` is a dash.

    >>> _probability(0.0312), _probability(0.4), _probability(None)
    ('0.031', '0.4', '–')
    """
    return "–" if p is None else f"{p:.2g}".replace("-", "−")


def _f(row: Row) -> Cell:
    """F and its interval with two decimals, or three near 1.

    >>> _f({"fairpair_f": 1.0, "fairpair_f_low": 0.9812, "fairpair_f_high": 1.02}).text
    '1.000 (0.981 to 1.020)'
    >>> _f({"fairpair_f": 1.5, "fairpair_f_low": None, "fairpair_f_high": None}).text
    '1.50'
    """
    is_near = row["fairpair_f"] is not None and abs(row["fairpair_f"] - 1) < _NEAR
    return estimate(row, "fairpair_f", 3 if is_near else 2)


def _f_in_words(row: Row) -> str:
    return _f(row).text.replace(" (", ", ").removesuffix(")")


def _p(column: str) -> Column:
    return lambda row: Cell(_probability(row[column]), row[column], True)


def _span(least: str, most: str) -> Column:
    def cell(row: Row) -> Cell:
        ends = [f"{row[c]:,}" for c in (least, most) if row[c] is not None]
        return Cell(" to ".join(dict.fromkeys(ends)) if len(ends) == 2 else "–", None, True)

    return cell


_SUBJECT: Columns = [("Phi", _measure), ("about", _whom)]
_FIGURES: Columns = ["bias_b", "variability_pg", "variability_gp", ("F", _f)]
_SAMPLES = ("samples p(g(x))", "samples g(p(x))")


def _over_prompts(rows: Rows) -> PageTable:
    columns: Columns = [
        *_SUBJECT,
        *_FIGURES,
        ("p, permutation", _p("p_permutation")),
        ("p, t-test of B and V_pg", _p("p_t")),
        ("prompts", "n_prompts"),
        (_SAMPLES[0], _span("least_pg", "most_pg")),
        (_SAMPLES[1], _span("least_gp", "most_gp")),
    ]
    caption = "FairPair over all prompts; distances in percent, intervals in brackets"
    return table(caption, rows, columns)


def _by_subset(rows: Rows) -> PageTable:
    columns: Columns = [
        ("prompts with", "subset"),
        *_SUBJECT,
        *_FIGURES,
        ("p, permutation", _p("p_permutation")),
        ("prompts", "n_prompts"),
    ]
    return table("FairPair by kind of prompt", rows, columns, folded=True)


def _success(rows: Rows, sets: Sequence[Row]) -> PageTable:
    """Outcomes of perturbation by side; the valid ones with the sizes of both groups."""
    groups = {r["side"]: r for r in sets}

    def size(column: str) -> Column:
        def cell(row: Row) -> Cell:
            side_set = groups.get(row["side"]) if row["reason"] == "valid" else None
            return count(side_set[column]) if side_set else text("")

        return cell

    columns: Columns = [
        ("about", lambda r: _whom({**sets[0], "side": r["side"]})),
        ("outcome", "reason"),
        ("texts", "n"),
        ("% of the side's", "share"),
        ("in p(g(x))", size("n_pg")),
        ("in g(p(x))", size("n_gp")),
    ]
    return table("Perturbations: how many succeed, and why others fail", rows, columns)


def _sizes(rows: Rows, first: Row) -> PageTable:
    columns: Columns = [
        ("about", lambda r: _whom({**first, "side": r["side"]})),
        ("words of p(g(x))", "words_perturbed", 1),
        ("words of g(p(x))", "words_other", 1),
        ("difference", "difference", 1),
        ("prompts", "n_prompts"),
    ]
    caption = "Are the texts of both groups as long as each other? Those of both groups filtered"
    return table(caption, rows, columns, folded=True)


def _each_prompt(row: Row, prompts: Rows) -> PageTable:
    columns: Columns = [
        "prompt",
        *_FIGURES,
        ("p", _p("p_permutation")),
        ("p, corrected", _p("q_permutation")),
        (_SAMPLES[0], "n_pg"),
        (_SAMPLES[1], "n_gp"),
        ("no F because", "reason"),
    ]
    n, listed = len(prompts), Rows(prompts[:_LISTED], prompts.sql)
    which = f"the {_LISTED} of {n:,}" if n > _LISTED else f"all {n:,}"
    caption = f"Prompt by prompt, clearest difference first: {_measure(row)}, {which}"
    return table(caption, listed, columns, folded=True, searchable=True)


def _calibration(rows: Rows, first: Row) -> PageTable:
    """A table of F between random halves. Halves have fewer samples, so intervals are wider."""
    columns: Columns = [
        _SUBJECT[0],
        (
            "halves of texts about",
            lambda r: _whom({**first, "side": r["side"]}).split(" instead of ")[0],
        ),
        ("splits", "n_splits"),
        ("prompts", "n_prompts"),
        # F is so close to 1 that it needs four digits.
        ("F", "value", 4),
        (
            "splits whose interval holds 1",
            lambda r: f"{r['n_sets_holding']:,} of {r['n_sets_with']:,}",
        ),
        ("prompts with p at or below the level", _share("n_below", "n_tests")),
        ("level", "alpha"),
        ("after correction", "n_found"),
        ("prompts whose interval holds 1", _share("n_holding", "n_intervals")),
    ]
    caption = (
        "Calibration: what the method finds between random halves of one prompt's own samples, "
        "where nothing is to be found (F should be 1, the share of prompts the level)"
    )
    return table(caption, rows, columns)


def _share(n: str, total: str) -> Column:
    def cell(row: Row) -> Cell:
        if not row[total]:
            return Cell("–", None, True)
        percent = 100 * row[n] / row[total]
        return Cell(f"{shown(percent, 1)}% of {row[total]:,}", percent, True)

    return cell
