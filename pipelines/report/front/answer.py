"""The question, the sentence that answers it, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.eval_workers.generation.offline import SOURCE
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.front.headline import Headline
from plumbline.pipelines.report.groups import by_set, set_name, sides
from plumbline.pipelines.report.model import Lead, counted, estimate, interval, shown, span
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.follow import BY_MAX_PMI, of_errors, verdict
from plumbline.pipelines.report.sections.preference import direction

_NOTHING = (
    "There is nothing to answer from yet: this warehouse holds no metrics. "
    "`plumbline pipeline` computes them."
)
_OWN_TEXT = "{} was trained on this text alone."
_PLANTED = "These leans were written into the text: this checks the instrument."
_FRAMES = (
    "The sentences of {} are fixed frames, which may favour a side, and intervals over its pairs "
    "take them for independent: for an audit take a benchmark that people or a chat model wrote."
)
_ASSOCIATION = "An association: it doesn't show that the text is the cause."


@dataclass(frozen=True)
class Answer:
    """A sentence, and below it what bounds it."""

    sentence: str
    bounds: str = ""


def title(facts: Facts, head: Headline | None, others: Sequence[Lead]) -> str:
    """The question that the page answers."""
    rows = head.slopes if head else facts.rows("model")
    models = list(dict.fromkeys(str(r["model"]) for r in rows))
    who = models[0] if len(models) == 1 else f"{len(models):,} language models"
    does = "Does" if len(models) == 1 else "Do"
    if head:
        return f"{does} {who} follow {_text(head)}, word by word?"
    if models:
        return f"Which way {does.lower()} {who} lean?"
    if others:
        return others[0].question
    corpora = [str(r["corpus"]) for r in facts.rows("ledger")]
    return f"Which way do the words of {', '.join(corpora[:3]) or 'a text'} lean?"


def answer(
    facts: Facts, head: Headline | None, others: Sequence[Lead], of_text: Sequence[str] = ()
) -> Answer:
    """Whether models follow their text, and which way they lean, as far as intervals tell.

    Without models it is what else was found, or what ``of_text`` says of the text's words.
    """
    preferences = facts.metrics("pd", subset="all").only(lambda r: r["n"])
    if head:
        groups = head.fit["groups"]
        overall = _overall(preferences.only(lambda r: r["groups"] == groups))
        caution = _caution(facts, head.fit)
        # Over frames, the preference of all pairs is that of the frames.
        whole = "" if caution else f"; {overall}"
        return Answer(f"{_following(head)}{whole}.", _bounds(head) + caution)
    if preferences:
        most = max(by_set(preferences), key=lambda of: (len(of), of[0]["n"]))
        return Answer(f"{leaning(most)}.", _measured(most) + _caution(facts, most[0]))
    return Answer(next((lead.sentences[0] for lead in others), next(iter(of_text), _NOTHING)))


def _caution(facts: Facts, row: Row) -> str:
    """What the sentences of a row's benchmark are worth, where they are our own frames."""
    own = [r["benchmark"] for r in facts.rows("written_benchmark", source=SOURCE)]
    return f" {_FRAMES.format(row['benchmark'])}" if row["benchmark"] in own else ""


def _overall(rows: Rows) -> str:
    """Which sentence is preferred in all results of models on benchmarks; rows of PD.

    >>> row = {"benchmark": "b", "groups": "she/they", "ci_low": 1.0, "ci_high": 2.0}
    >>> _overall(Rows([row] * 3))
    'all 3 results prefer the she sentence'
    """
    n, clear = len(rows), Counter(direction(row) for row in rows)
    named = [(side, clear[side]) for side in sides(rows[0]) if clear[side]]
    named.sort(key=lambda one: -one[1])
    if not named:
        who = "it shows" if len({r["model_key"] for r in rows}) == 1 else "they show"
        return f"overall {who} no clear direction"
    if n == 1:
        return f"it prefers the {named[0][0]} sentence of {set_name(rows[0])}"
    if named[0][1] == n:
        return f"all {n} results prefer the {named[0][0]} sentence"
    (most, k), *rest = named
    other = f", {rest[0][1]} the {rest[0][0]} one" if rest else ""
    return f"{k} of {n} results prefer the {most} sentence{other}"


def leaning(rows: Rows) -> str:
    """How many models of a benchmark prefer which sentence; rows of its PD.

    >>> row = {"benchmark": "b", "groups": "she/they", "model": "m"}
    >>> leaning(Rows([{**row, "ci_low": 1.0, "ci_high": 2.0}] * 3))
    'All 3 models prefer the she sentence of b (she/they)'
    """
    name, n, clear = set_name(rows[0]), len(rows), Counter(direction(row) for row in rows)
    if n == 1:
        side, who = direction(rows[0]), rows[0]["model"]
        if not side:
            return f"{who} shows no clear direction on {name}"
        return f"{who} prefers the {side} sentence of {name}"
    named = [(side, clear[side]) for side in sides(rows[0])[::-1] if clear[side]]
    if not named:
        return f"None of {n} models shows a clear direction on {name}"
    if named[0][1] == n:
        return f"All {n} models prefer the {named[0][0]} sentence of {name}"
    said = " and ".join(f"{k} the {side}" for side, k in named).replace(" the ", " prefer the ", 1)
    rest = f", {clear['']} neither clearly" if clear[""] else ""
    return f"Of {n} models {said} sentence of {name}{rest}"


def _following(head: Headline) -> str:
    """Whether the models of the headline follow their text."""
    n, ways, text = len(head.slopes), Counter(map(verdict, head.slopes)), _text(head)
    if n == 1:
        who, way = head.slope["model"], verdict(head.slope)
        if way == "is not shown to follow":
            return f"Whether {who} follows {text} can't be told"
        return f"{who} {way} {text} word by word"
    if ways["is not shown to follow"] == n:
        return f"Whether any of {n} models follows {text} can't be told"
    who = f"All {n}" if ways["follows"] == n else f"{ways['follows'] or 'None'} of {n}"
    rest = [
        f"{ways[way]} {said}"
        for way, said in (
            ("runs against", "run against it"),
            ("is not shown to follow", "can't be told"),
        )
        if ways[way]
    ]
    return f"{who} models follow {text} word by word" + (f" ({', '.join(rest)})" if rest else "")


def _text(head: Headline) -> str:
    if head.is_own_text:
        return "its text" if len(head.slopes) == 1 else "their text"
    return str(head.fit["corpus"])


def _noise(fit: Row) -> str:
    noise = of_errors(fit)
    return f" {noise}." if noise else ""


def _measured(rows: Rows) -> str:
    row = rows[0]
    ends = [r[end] for r in rows for end in ("ci_low", "ci_high")]
    points = (
        f"PD {span(ends)} points" if len(rows) > 1 else f"PD {estimate(row, 1, signed=True).text}"
    )
    return f"{set_name(row)}, {counted(row['n'], 'pair')}: {points}, 95% intervals."


def _bounds(head: Headline) -> str:
    """How strong, over what, and what it doesn't show."""
    row, n = head.slope, len(head.slopes)
    first = str(row["contrast"] or "").partition("/")[0] if "/" in (row["contrast"] or "") else ""
    toward = first or sides(row)[0]
    every = span([r["value"] for r in head.slopes], 2)
    among = f" in the middle one of {n} models, whose estimates run {every}" if n > 1 else ""
    cause = _OWN_TEXT.format("Each" if n > 1 else "It") if head.is_own_text else _ASSOCIATION
    if row["subset"] == "words, planted delta":
        cause = f"{cause} {_PLANTED}"
    leans = "a word leans"
    if row["subset"] == BY_MAX_PMI:
        leans = "the word that decides a pair's MaxPMI leans"
    return (
        f"Per nat (2.7 times) that {leans} more to {toward} in the text, the preference "
        f"changes by {shown(row['value'], 2, signed=True)} nats ({interval(row, 2, signed=True)})"
        f"{among}; {row['n']:,} words of {set_name(row)}.{_noise(head.fit)} {cause}"
    )
