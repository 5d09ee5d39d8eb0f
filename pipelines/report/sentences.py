"""Put findings into words, for all pages and commands. Verdicts come from ``finding``.

Sentences have no full stop, so that callers can add to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from plumbline.pipelines.report.estimates import finding, over_families, side
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.model import counted, estimate, interval, one_end, shown
from plumbline.pipelines.report.rows import Row, Rows, corpus_name, set_name, sides, with_ends
from plumbline.warehouse.errors import ModelChanged
from plumbline.warehouse.finding import LEAST_CLUSTERS, Verdict

#: Named models that have an earlier version.
_LATEST = "FROM model_version WHERE is_latest AND previous_key IS NOT NULL ORDER BY name;"
#: Maximum number of models to name with their figures.
_NAMED = 3
#: What to print if a model clearly prefers neither group.
UNTOLD = "no clear preference"


def word_leans(row: Row, first: str, second: str, where: str = "") -> str:
    """Say which way a word leans, with its ``delta_nats`` and interval.

    The returned text continues a sentence that begins with the word.

    Args:
        first, second: names of the sides, such as she (above 0) and he (below 0).
        where: text to insert after the verb, such as " in novels".

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
    """Say how a word without a delta leans. If it is near one side only, give a bound on the lean.

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


def sureness(row: Row) -> str:
    """Return the interval of a ``metric_value`` row in words, or say why there is no interval.

    >>> row = {"value": 2.0, "value_low": 1.0, "value_high": 3.0, "clusters": "word"}
    >>> without = {**row, "value_low": None, "value_high": None, "n_clusters": 3}
    >>> sureness({**row, "n_clusters": 40}), sureness(without)
    ('95% interval 1.00 to 3.00 over 40 words', 'too few words: 3')
    """
    result, ends = finding(row), interval(row)
    if result.lack or not ends:
        return result.lack or "no interval"
    return f"{ends} over {result.over}" if result.over else ends


def prefers(row: Row) -> str:
    """Say which sentences of a benchmark a model prefers. ``row`` has the model's PD.

    >>> row = {"benchmark": "b", "groups": "she/they", "model": "m", "metric": "pd", "unit": ""}
    >>> row |= {"value": 2.0, "value_low": 1.0, "value_high": 3.0}
    >>> prefers(row)
    'm prefers the she sentences of b (she/they): PD +2.0 points (95% interval +1.0 to +3.0)'
    >>> prefers({**row, "value_low": -1.0})
    'm shows no clear preference on b (she/they): PD +2.0 points (95% interval −1.0 to +3.0)'
    >>> prefers({**row, "n_clusters": 4, "clusters": "word"})
    "whether m prefers a sentence of b (she/they) can't be told (too few words: 4): PD +2.0 points"
    """
    name, preferred, figure = set_name(row), side(row), shown(row["value"], 1, signed=True)
    if why := lack(row):
        what = f"prefers a sentence of {name} can't be told{why}"
        return f"whether {row['model']} {what}: PD {figure} points"
    what = f"prefers the {preferred} sentences of" if preferred else f"shows {UNTOLD} on"
    return f"{row['model']} {what} {name}: PD {figure} points ({sureness(row)})"


def unscored(row: Row) -> str:
    """Say why pairs have no score. ``row`` comes from the query ``report/score``.

    >>> unscored({"n_missing": 2, "n_rejected": 2})
    '2 were rejected (the reasons are in `reject`)'
    >>> unscored({"n_missing": 3, "n_rejected": 0})
    '`plumbline score` scores the others'
    """
    n, n_rejected = row["n_missing"], row["n_rejected"]
    why = f"{n_rejected:,} were rejected (the reasons are in `reject`)" if n_rejected else ""
    return "; ".join(filter(None, [why, "`plumbline score` scores the others" * (n > n_rejected)]))


def set_about(row: Row) -> str:
    """Name a benchmark and say what it holds. ``row`` comes from the query ``report/benchmark``.

    >>> set_about({"benchmark": "b", "groups": "female/male", "n_pairs": 9, "n_words": 3})
    'b (9 pairs of sentences about 3 words)'
    """
    about = f" about {counted(row['n_words'], 'word')}" if row["n_words"] else ""
    return f"{set_name(row)} ({counted(row['n_pairs'], 'pair')} of sentences{about})"


def preferences(rows: Rows) -> str:
    """Say which sentences of a benchmark models prefer, without figures. ``rows`` are PD rows."""
    if len(rows) == 1:
        return prefers(rows[0]).partition(": PD")[0]
    name, n, n_by_side = set_name(rows[0]), len(rows), Counter(map(side, rows))
    named = sorted(((n_by_side[s], s) for s in sides(rows[0]) if n_by_side[s]), reverse=True)
    if not named and (why := lack(rows[0])):
        return f"whether {n} models prefer a sentence of {name} can't be told{why}"
    if not named:
        return f"{n} models show {UNTOLD} on {name}"
    k, group = named[0]
    who = "both" if k == n == 2 else f"all {n}" if k == n else f"{k} of {n}"
    sentence = f"{who} models prefer{'s' * (k == 1)} the {group} sentences of {name}"
    sentence += "".join(f", {k} the {group} ones" for k, group in named[1:])
    if n_unclear := n_by_side[""]:
        sentence += f"; {n_unclear} show{'s' * (n_unclear == 1)} {UNTOLD}"
    return sentence


def average(texts: TrainingTexts, rows: Rows, unit: str) -> str:
    """Say what a metric's mean over model families is, with its interval.

    The mean leaves out models whose family is unknown, and the text says how many. With fewer than
    ``LEAST_CLUSTERS`` families, the text has no mean. Instead it gives each model's value and
    interval or, for more than three models, only the smallest and the largest value.
    """

    def figure(value: float | None) -> str:
        return estimate({**metric, "value": value}).text

    metric = {name: rows[0][name] for name in ("metric", "unit")}
    families = texts.families(rows)
    if len(rows) == 1:
        return f"{figure(rows[0]['value'])}{unit} ({sureness(rows[0])})"
    n_without = len(families.pop("", ()))
    if len(families) < LEAST_CLUSTERS:
        ordered = sorted(rows, key=itemgetter("value"))
        if len(rows) > _NAMED:
            least, most = (
                f"{figure(r['value'])}{unit} ({r['model']})" for r in ordered[:: len(rows) - 1]
            )
            return f"between {least} and {most}"
        named = [
            f"{figure(r['value'])}{unit} for {r['model']} "
            f"({finding(r).lack or interval(r) or 'no interval'})"
            for r in ordered
        ]
        return f"{', '.join(named[:-1])} and {named[-1]}"
    mean = over_families((name, r["value"]) for name, of in families.items() for r in of)
    row = {**metric, "value": mean.estimate, "value_low": mean.low, "value_high": mean.high}
    over = f"on average over {mean.over} ({interval(row) or 'no interval'})"
    without = f", without {counted(n_without, 'model')} of no known family" if n_without else ""
    return f"{figure(mean.estimate)}{unit} {over}{without}"


def following(texts: TrainingTexts, rows: Rows) -> str:
    """Say how many models follow a corpus on a benchmark. ``rows`` have the models' slopes.

    Only models trained on the corpus are said to "follow" it. Other models "agree with" it.
    """
    own = rows.only(lambda r: texts.relation(r) == "same")
    others = rows.only(lambda r: texts.relation(r) != "same")
    text, names = str(corpus_name(rows[0])), ", ".join(filter(None, texts.families(own)))
    kind = f"models trained on all of {text}{f' ({names})' if names else ''}"
    name = f"word by word on {set_name(rows[0])}"
    if not own:
        return _on_text(others, "agree with", text, "models", name)
    said = _on_text(
        own, "follow", "it" if len(own) > 1 else f"{text}, the text it was trained on,", kind, name
    )
    return f"{said}; {_on_text(others, 'agree with', 'it', 'other models')}" if others else said


_THIRD_PERSON = {"follow": "follows", "agree with": "agrees with"}


def _on_text(rows: Rows, verb: str, text: str, kind: str, where: str = "") -> str:
    """Say how many models have a slope above 0. ``verb`` is "follow" or "agree with"."""
    n, ways = len(rows), Counter(finding(row).verdict for row in rows)
    k, text = ways["above"], f"{text} {where}".rstrip()
    if n == 1:
        does, model = _THIRD_PERSON[verb], rows[0]["model"]
        return finding(rows[0]).pick(
            above=f"{model} {does} {text}",
            below=f"{model} runs against {text}",
            untold=f"whether {model} {does} {text} can't be told{lack(rows[0])}",
        )
    if ways["cannot be told"] == n:
        return f"whether any of {n} {kind} {verb} {text} can't be told"
    rest: dict[Verdict, str] = {"below": "run against it", "cannot be told": "can't be told"}
    rest_of = ", ".join(f"{ways[way]} {what}" for way, what in rest.items() if ways[way])
    who = f"all {n}" if k == n else f"{k or 'none'} of {n}"
    return f"{who} {kind} {verb} {text}{f' ({rest_of})' if rest_of else ''}"


def capital(sentence: str) -> str:
    """Capitalise a sentence, unless it might begin with a model's name.

    >>> capital("all 3 models"), capital("gpt2 follows")
    ('All 3 models', 'gpt2 follows')
    """
    is_no_name = sentence.partition(" ")[0] in ("all", "both", "none", "whether", "the")
    return sentence[0].upper() + sentence[1:] if is_no_name else sentence


def of_different_measures(models: Sequence[Row]) -> str:
    """Warn if models were scored with different measures; otherwise return an empty string.

    >>> of_different_measures([{"measure": "b"}, {"measure": "a"}]).partition(":")[0]
    'Models with different measures are compared here (a, b)'
    >>> of_different_measures([{"measure": "a"}, {"measure": "a"}])
    ''
    """
    measures = sorted({row["measure"] for row in models})
    if len(measures) < 2:
        return ""
    return (
        f"Models with different measures are compared here ({', '.join(measures)}): a threshold "
        "in nats means something else for each, so a difference in US says little about the models."
    )


def lack(row: Row) -> str:
    """If a row has too few clusters for a verdict, return " (too few ...)"; otherwise return "".

    >>> row = {"value": 2.0, "value_low": None, "value_high": None, "clusters": "word"}
    >>> lack({**row, "n_clusters": 3}), lack({**row, "n_clusters": 40})
    (' (too few words: 3)', '')
    """
    why = finding(row).lack
    return f" ({why})" if why else ""


def version_changes(facts: Facts) -> list[Row]:
    """For each named model and benchmark, return how PD changed since the previous version.

    Each row has the columns of ``report/version_change.sql`` and of view `model_version`. Only
    pairs that both versions scored are compared. Models with a single version, or without metrics,
    have no row. Clear changes come before other changes, and larger changes before smaller ones.
    """
    latest = {row["model_key"]: row for row in facts.query(_LATEST)}
    measured = facts.metrics("pd", subset="all").where(model_key=tuple(latest)) if latest else []
    changes = [
        {**latest[pd["model_key"]], **change}
        for pd in measured
        for change in facts.rows(
            "version_change",
            epsilon=pd["epsilon_nats"],
            previous_key=latest[pd["model_key"]]["previous_key"],
            **{name: pd[name] for name in ("model_key", "benchmark", "groups")},
        )
    ]
    return sorted(changes, key=lambda row: (not is_clear(row), -abs(row["change"])))


def is_clear(row: Row) -> bool:
    """Return whether PD clearly changed. ``row`` comes from ``version_changes``."""
    return finding(row, "change").verdict in ("above", "below")


def version_changed(row: Row) -> str:
    """Say how PD changed since the previous version. ``row`` comes from ``version_changes``.

    >>> from datetime import datetime
    >>> row = {"model": "mine", "benchmark": "b", "groups": "female/male", "change": 7.0, "pd": 9.0,
    ...        "change_low": 6.0, "change_high": 8.0,
    ...        "previous_scored_at": datetime(2026, 1, 31, 8, 30)}
    >>> version_changed(row)
    'mine on b since 2026-01-31 08:30: PD rose: +7.0 points (95% interval +6.0 to +8.0), now +9.0'
    """
    by, now = (shown(row[name], 1, signed=True) for name in ("change", "pd"))
    ends = interval(row, "change", 1, signed=True) or "no interval"
    change = finding(row, "change")
    verb = change.pick(above="rose", below="fell", untold="is not shown to change")
    what = f"{row['model']} on {set_name(row)} since {row['previous_scored_at']:%F %R}"
    return f"{what}: PD {verb}: {by} points ({ends}), now {now}"


def check_changes(
    changes: Sequence[Row], most_points: float
) -> tuple[list[str], ModelChanged | None]:
    """Return an error if PD clearly rose or fell by more than ``most_points``, and other lines.

    A change is clear if its whole interval is beyond the limit. Without a clear change, there is no
    error. The lines are about changes of which only the estimate is beyond the limit.
    """
    beyond = [row for row in changes if abs(row["change"]) > most_points]
    sure = [
        row
        for row in beyond
        if finding(row, "change", null=most_points).verdict == "above"
        or finding(row, "change", null=-most_points).verdict == "below"
    ]
    limit = f"more than {most_points:g} point{'s' * (most_points != 1)}"
    if sure:
        return [], ModelChanged("; ".join(map(version_changed, sure)), limit)
    return [f"{version_changed(row)}: perhaps {limit}" for row in beyond], None
