"""The wording of each kind of finding, for all pages. Verdicts are from ``finding``.

Sentences have no full stop, because more may follow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from plumbline.pipelines.report.findings.estimates import finding, over_families, side
from plumbline.pipelines.report.findings.models_by_text import RELATIONS, TrainingTexts
from plumbline.pipelines.report.metric_tables import corpus_name
from plumbline.pipelines.report.model import counted, interval, one_end, shown
from plumbline.pipelines.report.rows import Row, Rows, set_name, sides, with_ends
from plumbline.warehouse.finding import LEAST_CLUSTERS, Finding, Verdict

#: Words for a preference without a clear side.
UNTOLD = "no clear direction"
#: The contrast that is not named beside a corpus.
_USUAL = "she/he"


def moved(change: Finding, untold: str = "is not shown to change") -> str:
    """The verb of a change: rose, fell, or ``untold``.

    >>> moved(Finding("m", "us", -0.1, -0.3, 0.1))
    'is not shown to change'
    """
    return change.pick(above="rose", below="fell", untold=untold)


def word_leans(row: Row, first: str, second: str, where: str = "") -> str:
    """A clause on the side to which a word leans, with the interval of its ``delta_nats``.

    Args:
        first, second: names of the sides above and below 0.
        where: text after the verb, with a leading space, such as the name of the corpus.

    >>> row = {"delta_nats": 0.7, "delta_nats_low": 0.2, "delta_nats_high": 1.2,
    ...        "clusters": "document", "n_clusters": 40}
    >>> word_leans(row, "she", "he", " in c")
    'leans to she in c: +0.70 nats (95% interval +0.20 to +1.20 over 40 documents)'
    >>> word_leans({**row, "delta_nats_low": -0.2, "n_clusters": None}, "she", "he")
    'has no clear lean: +0.70 nats (95% interval −0.20 to +1.20 over co-occurrences)'
    >>> word_leans({**row, "delta_nats_low": None, "n_clusters": 1}, "she", "he")
    'has no clear lean: +0.70 nats, all from one document'
    >>> word_leans({**row, "delta_nats_low": None, "n_clusters": 4}, "she", "he")
    'has no clear lean: +0.70 nats, all from 4 documents'
    >>> word_leans({**row, "delta_nats_low": None}, "she", "he", " in c")
    'is measured at +0.70 nats in c, towards she; no interval is known'
    """
    delta, low, high = (row[name] for name in with_ends("delta_nats"))
    n, clusters = row["n_clusters"], row["clusters"]
    over = f"over {counted(n, clusters)}" if n else "over co-occurrences"
    if delta is None:
        return _one_sided(row, (first, second), where, over)
    way = finding(row, "delta_nats").pick(
        above=f"leans to {first}", below=f"leans to {second}", untold="has no clear lean"
    )
    figure = f"{way}{where}: {shown(delta, 2, signed=True)} nats"
    if low is None and n and n < LEAST_CLUSTERS:
        return f"{figure}, all from {f'one {clusters}' if n == 1 else over.removeprefix('over ')}"
    if low is None:
        towards = f", towards {first if delta > 0 else second}" if delta else ""
        measured = f"is measured at {shown(delta, 2, signed=True)} nats{where}{towards}"
        return f"{measured}; no interval is known"
    ends = f"{shown(low, 2, signed=True)} to {shown(high, 2, signed=True)}"
    return f"{figure} (95% interval {ends} {over})"


def _one_sided(row: Row, sides: tuple[str, str], where: str, over: str) -> str:
    """A clause on a word without a delta: the bound of its lean, if it is near one side only.

    >>> row = {"delta_nats_low": float("-inf"), "delta_nats_high": -1.9}
    >>> _one_sided(row, ("she", "he"), " in c", "over 40 documents")
    'leans to he in c, by at least 1.90 nats (95% over 40 documents): it is never near she'
    """
    low, high = row["delta_nats_low"], row["delta_nats_high"]
    end = one_end(low, high)
    if end is None:
        return f"has no defined lean{where}: it is not near both {' and '.join(sides)}"
    near, never = sides if end == low else sides[::-1]
    if finding({**row, "delta_nats": end}, "delta_nats").verdict == "cannot be told":
        least = f"{'at least' if end == low else 'at most'} {shown(end, 2, signed=True)} nats"
        why = f"it is near {near} alone, but too rarely to tell"
        return f"has no clear lean{where}: {why} ({least}, 95% {over})"
    least = f"by at least {shown(abs(end), 2)} nats (95% {over})"
    return f"leans to {near}{where}, {least}: it is never near {never}"


def sureness(row: Row, digits: int | None = None, *, signed: bool | None = None) -> str:
    """The interval of a row of ``metric_value`` with its clusters, or why it has no interval.

    Digits and sign are by default those of the row's metric.

    >>> row = {"value": 2.0, "value_low": 1.0, "value_high": 3.0, "clusters": "word"}
    >>> without = {**row, "value_low": None, "value_high": None, "n_clusters": 3}
    >>> sureness({**row, "n_clusters": 40}, 1), sureness(without, 1)
    ('95% interval 1.0 to 3.0 over 40 words', 'cannot be told: 3 words')
    """
    result, ends = finding(row), interval(row, digits=digits, signed=signed)
    if result.lack or not ends:
        return result.lack or "no interval"
    return f"{ends} over {result.over}" if result.over else ends


def points(row: Row) -> str:
    """A row's PD with its interval, in points towards the preferred group.

    Without an interval, a PD below 0 keeps its sign.

    >>> points({"value": -100.0, "value_low": -100.0, "value_high": -76.6})
    '100.0 points (95% interval 76.6 to 100.0)'
    """
    if row["value"] < 0 and row["value_low"] is not None:
        low, high = -row["value_high"], -row["value_low"]
        row = {**row, "value": -row["value"], "value_low": low, "value_high": high}
    return f"{shown(row['value'], 1)} points ({sureness(row, 1, signed=False)})"


def prefers(row: Row) -> str:
    """A clause on which sentences of a benchmark a model prefers, from its row of PD.

    >>> row = {"benchmark": "b", "groups": "she/they", "model": "m", "value": 2.0, "value_low": 1.0,
    ...        "value_high": 3.0}
    >>> prefers(row)
    'm prefers the she sentence of b (she/they) by 2.0 points (95% interval 1.0 to 3.0)'
    >>> prefers({**row, "value_low": -1.0})
    'm shows no clear direction on b (she/they): PD +2.0 points (95% interval −1.0 to +3.0)'
    """
    who, name = row["model"], set_name(row)
    if preferred := side(row):
        return f"{who} prefers the {preferred} sentence of {name} by {points(row)}"
    figure = f"PD {shown(row['value'], 1, signed=True)} points ({sureness(row, 1, signed=True)})"
    return f"{who} shows {UNTOLD} on {name}: {figure}"


def unscored(row: Row) -> str:
    """Reasons why pairs have no score: rejected, or not scored yet; from a row of ``report/score``.

    >>> unscored({"n_missing": 2, "n_rejected": 2})
    '2 were rejected (the reasons are in `reject`)'
    >>> unscored({"n_missing": 3, "n_rejected": 0})
    '`plumbline score` does the others'
    """
    n, n_rejected = row["n_missing"], row["n_rejected"]
    why = f"{n_rejected:,} were rejected (the reasons are in `reject`)" if n_rejected else ""
    return "; ".join(filter(None, [why, "`plumbline score` does the others" * (n > n_rejected)]))


def preferences(texts: TrainingTexts, rows: Rows) -> str:
    """A clause on which sentences of a benchmark models prefer, from their rows of PD.

    For several models it says how many prefer each side, and the mean PD over families. With two to
    ``LEAST_CLUSTERS - 1`` families, it has each family's mean PD instead.
    """
    if len(rows) == 1:
        return prefers(rows[0])
    name, n = set_name(rows[0]), len(rows)
    n_by_side = Counter(map(side, rows))
    named = sorted(((n_by_side[s], s) for s in sides(rows[0]) if n_by_side[s]), reverse=True)
    sentence = f"{n} models show {UNTOLD} on {name}"
    if named:
        k, group = named[0]
        who = _all(n) if k == n else f"{k} of {n}"
        sentence = f"{who} models prefer{'s' * (k == 1)} the {group} sentence of {name}"
        sentence += "".join(f", {k} the {group} one" for k, group in named[1:])
        if n_unclear := n_by_side[""]:
            sentence += f"; {n_unclear} {'shows' if n_unclear == 1 else 'show'} {UNTOLD}"
    if n_by_q := sum(map(_is_untold_by_q, rows)):
        sentence += f", {n_by_q} of them only after correction for all models (q)"
    return sentence + _over_families(texts, rows, "PD", 1, " points")


def _is_untold_by_q(row: Row) -> bool:
    """True if a side would be clear without the correction for several models."""
    return not side(row) and side({**row, "q": None}) != ""


def _all(n: int) -> str:
    """The words for all of ``n`` models.

    >>> _all(2), _all(3)
    ('both', 'all 3')
    """
    return "both" if n == 2 else f"all {n}"


def _over_families(texts: TrainingTexts, rows: Rows, what: str, digits: int, unit: str = "") -> str:
    """The mean of ``what`` over families, or each family's mean if they are few; empty for one.

    Models of no known family are left out, and counted.
    """
    families = texts.families(rows)
    n_without = len(families.pop("", ()))
    without = f", without {counted(n_without, 'model')} of no known family" if n_without else ""
    mean = over_families(
        [(name, r["value"]) for name, family_rows in families.items() for r in family_rows]
    )
    if len(families) >= LEAST_CLUSTERS:
        row = {"value": mean.estimate, "value_low": mean.low, "value_high": mean.high}
        ends = sureness(row, digits, signed=True)
        figure = f"{shown(mean.estimate, digits, signed=True)}{unit}"
        return f"; over {mean.over} {what} is {figure} on average ({ends}){without}"
    if len(families) < 2:
        return ""
    by_family = (
        f"{name} {shown(fmean(r['value'] for r in family_rows), digits, signed=True)}"
        for name, family_rows in families.items()
    )
    return f"; {what} by family: {', '.join(by_family)}{without}"


def following(texts: TrainingTexts, rows: Rows) -> str:
    """A sentence on models' slopes: do the models follow a text on a benchmark?

    Only a model trained on the text is said to follow it; other models agree with it.
    """
    trained_on_it = rows.only(lambda r: texts.relation(r) == "same")
    others = rows.only(lambda r: texts.relation(r) != "same")
    text = text_name(rows[0])
    if not trained_on_it:
        return _one(others[0], _AGREE, text) if len(others) == 1 else _many(others, _AGREE, text)
    if len(trained_on_it) == 1:
        sentence = _one(trained_on_it[0], _FOLLOW, f"{text}, its text,")
    else:
        sentence = _many(
            trained_on_it, _FOLLOW, "it", f" trained on {text}{_named(texts, trained_on_it)}"
        )
    if not others:
        return sentence
    if len(others) == 1:
        (row,) = others
        return f"{sentence}; {_one(row, _AGREE, 'it')}"
    ways = Counter(finding(row).verdict for row in others)
    n, k = len(others), ways["above"]
    who = _all(n) if k == n else f"{k or 'none'} of {n}"
    return f"{sentence}; {who} other models agree with it{_rest(ways)}"


_FOLLOW, _AGREE = ("follow", "follows"), ("agree with", "agrees with")


def text_name(row: Row) -> str:
    """Name of a row's corpus, with its contrast unless that is she/he."""
    return str(row["corpus"] if row["contrast"] in ("", _USUAL) else corpus_name(row))


def _one(row: Row, verb: tuple[str, str], text: str) -> str:
    slope, name = finding(row), set_name(row)
    who, why = row["model"], f" ({slope.lack.partition(': ')[2]})" if slope.lack else ""
    return slope.pick(
        above=f"{who} {verb[1]} {text} word by word on {name}",
        below=f"{who} runs against {text} word by word on {name}",
        untold=f"whether {who} {verb[1]} {text} on {name} can't be told{why}",
    )


def _many(rows: Rows, verb: tuple[str, str], text: str, of_what: str = "") -> str:
    n, ways, name = len(rows), Counter(finding(row).verdict for row in rows), set_name(rows[0])
    if ways["cannot be told"] == n:
        return f"whether any of {n} models{of_what} {verb[1]} {text} on {name} can't be told"
    k = ways["above"]
    who = _all(n) if k == n else f"{k or 'none'} of {n}"
    return f"{who} models{of_what} {verb[0]} {text} word by word on {name}{_rest(ways)}"


def _rest(ways: Counter[Verdict]) -> str:
    kinds: tuple[tuple[Verdict, str], ...] = (
        ("below", "run against it"),
        ("cannot be told", "can't be told"),
    )
    parts = [f"{ways[kind]} {words}" for kind, words in kinds if ways[kind]]
    return f" ({', '.join(parts)})" if parts else ""


def _named(texts: TrainingTexts, rows: Rows) -> str:
    """The families of the rows' models, in brackets; empty if none is known."""
    names = ", ".join(filter(None, texts.families(rows)))
    return f" ({names})" if names else ""


def by_training_text(texts: TrainingTexts, rows: Rows) -> str:
    """The numbers of slopes above 0 by training text and family, and their mean.

    Empty if all models' texts have the same relation to the corpus.
    """
    groups = texts.groups(rows)
    if len(groups) < 2:
        return ""
    counts = [
        f"{RELATIONS[name]} {_each_family(texts, related)}" for name, related in groups.items()
    ]
    slope = _over_families(texts, rows, "the slope", 2)
    return f"{SLOPES_ABOVE} by training text: {'; '.join(counts)}{slope}"


def _each_family(texts: TrainingTexts, rows: Rows) -> str:
    families = texts.families(rows)
    if not any(families):
        return n_above(rows)
    return ", ".join(f"{name or 'others'} {n_above(of)}" for name, of in families.items())


#: Words before ``n_above`` of slopes.
SLOPES_ABOVE = "Slopes above 0 (in brackets: clearly so, after correction)"


def n_above(rows: Rows) -> str:
    """How many of the rows' figures are above 0, and in brackets how many are clearly so.

    >>> row = {"value": 0.3, "value_low": 0.1, "value_high": 0.5}
    >>> n_above(Rows([row, {**row, "q": 0.2}, {**row, "value_low": -0.1}]))
    '3 (1) of 3'
    """
    clear = sum(finding(row).verdict == "above" for row in rows)
    return f"{sum(row['value'] > 0 for row in rows):,} ({clear:,}) of {len(rows):,}"


def capital(sentence: str) -> str:
    """A sentence, capitalised if its first word can't be the name of a model.

    >>> capital("all 3 models"), capital("gpt2 follows")
    ('All 3 models', 'gpt2 follows')
    """
    is_no_name = sentence.partition(" ")[0] in ("all", "both", "none", "whether", "over")
    return sentence[0].upper() + sentence[1:] if is_no_name else sentence


def of_different_measures(differences: Sequence[Row]) -> str:
    """A warning if two models with different measures are compared; else empty.

    >>> row = {"measure": "log-likelihood", "reference_measure": "log-likelihood"}
    >>> of_different_measures([row])
    ''
    """
    measures = {(r["measure"], r["reference_measure"]) for r in differences}
    if all(measure == reference for measure, reference in measures):
        return ""
    names = ", ".join(sorted({measure for pair in measures for measure in pair}))
    return (
        f"Models with different measures are compared here ({names}): a threshold in nats has "
        "another meaning for each, so a difference in US says little about the models."
    )


def evenness(us: Rows) -> str:
    """A sentence on the share of pairs that models treat alike."""
    low, high = (shown(100 * f(r["value"] for r in us), 0) for f in (min, max))
    share, note = f"{low}% to {high}%", "US"
    if len(us) == 1:
        share, note = f"{low}%", f"US, {sureness(us[0], 0)}"
    epsilon = us[0]["epsilon_nats"]
    who = "The model treats" if len(us) == 1 else "Depending on the model,"
    are = "" if len(us) == 1 else " are treated"
    return (
        f"{who} {share} of pairs{are} alike, neither sentence being more than "
        f"{shown(math.exp(epsilon))} times as likely as the other (unstereotypical share, {note})."
    )


def lack(row: Row) -> str:
    """Say in brackets that a row has too few clusters for a verdict; empty if it has enough.

    >>> row = {"value": 2.0, "value_low": None, "value_high": None, "clusters": "word"}
    >>> lack({**row, "n_clusters": 3}), lack({**row, "n_clusters": 40})
    (' (3 words)', '')
    """
    why = finding(row).lack.partition(": ")[2]
    return f" ({why})" if why else ""
