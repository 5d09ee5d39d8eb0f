"""Pairs that a limit on MaxPMI keeps, and the models' preferences on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from plumbline.pipelines.report.charts import model_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import moved, sureness
from plumbline.pipelines.report.model import Figure, Lead, Missing, Section, shown, span, stem
from plumbline.pipelines.report.rows import Row, Rows, set_name

PLACE = 300
NAMES = ("constraint", "kept")
_TITLE = "Pairs whose words hardly lean"
_MEANING = (
    "MaxPMI is the largest lean among the words of a pair's template. A pair is kept at eta "
    "when its MaxPMI is at most eta to either side and every word is known; what a model prefers "
    "there cannot come from single words that lean more in this text. It is dropped when one leans "
    "more, and undecided when a word that co-occurs too rarely with either side could lean more."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A plot for each text: the share of pairs kept against the limit on MaxPMI."""
    figures = [_figure(text_rows) for text_rows in facts.rows("kept").groups("corpus", "contrast")]
    if figures:
        yield Section("constraint", _TITLE, [_MEANING], figures=figures)
    else:
        yield Missing(_TITLE, "plumbline benchmark constrain --corpus NAME --benchmark NAME")


def _figure(rows: Rows) -> Figure:
    corpus, contrast = rows[0]["corpus"], rows[0]["contrast"]
    at_half_nat = [_verdicts(r) for r in rows if r["eta_nats"] == 0.5]
    return Figure(
        stem("kept", corpus, contrast),
        f"Share of pairs with |MaxPMI| up to eta, against eta, by the words of {corpus}.",
        f"Share of pairs kept, by {corpus} ({contrast}). At 0.5: {'; '.join(at_half_nat)}.",
        charts.kept(rows, [f"{set_name(r)} (n = {r['n']:,})" for r in rows]),
        rows,
    )


def _verdicts(row: Row) -> str:
    """Shares of pairs kept and undecided, and of words with enough co-occurrences, in one set."""
    kept, undecided = (
        shown(100 * row[f"n_{outcome}"] / row["n"], 1) for outcome in ("kept", "undecided")
    )
    text = f"{set_name(row)} {kept}% kept, {undecided}% undecided"
    if row["least_count"] is None or row["known_share"] is None:
        return text
    counted_share = shown(100 * row["known_share"], 1)
    least = f"{row['least_count']} or more co-occurrences on both sides"
    return f"{text} ({counted_share}% of the words have {least})"


def leads(facts: Facts) -> Iterator[Lead]:
    """The change of US on pairs whose words hardly lean, at the tightest limit that keeps any."""
    gaps = facts.metrics("gap").only(lambda r: r["eta_nats"] is not None and r["n"])
    groups = gaps.groups("benchmark", "groups", "corpus", "contrast")
    yield Lead("And without words that lean in the text?", list(map(_sentence, groups)))


def _sentence(gaps: Rows) -> str:
    tightest = gaps.where(eta_nats=min(r["eta_nats"] for r in gaps))
    first = tightest[0]
    return (
        f"{set_name(first)}, the {first['n']:,} pairs whose words lean at most "
        f"{first['eta_nats']:g} nats in {first['corpus']}: US, the share of pairs "
        f"without a preference, changes by {_change(tightest)}."
    )


def _change(gaps: Rows) -> str:
    """One model's gap with its interval; for several models, the range, rises and falls."""
    change = span([100 * r["value"] for r in gaps])
    if len(gaps) == 1:
        return f"{change} points ({sureness(gaps[0])})"
    ways = Counter(moved(finding(row)) for row in gaps)
    return (
        f"{change} points; it clearly rose for {ways['rose']} and fell for {ways['fell']} of "
        f"{len(gaps)} models"
    )
