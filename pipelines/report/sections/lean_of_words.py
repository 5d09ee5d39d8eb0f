"""How the words of each corpus lean."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Missing,
    PageTable,
    Section,
    count,
    estimate,
    stem,
    text,
)
from plumbline.pipelines.report.plots.svg import NEUTRAL, Panel, looks, short, svg
from plumbline.pipelines.report.rows import Row, Rows

PLACE = 1000
#: Words listed for each side.
TOP_WORDS = 15
#: A word's delta is shown when it was seen this often with the words of either gender.
MIN_PAIRS = 5
_TITLE = "How words lean"
_MEANING = (
    "delta is the PMI of a word with the female minus that with the male words of a contrast, "
    f"in nats: above 0 leans female. The plots leave out words seen fewer than {MIN_PAIRS} "
    "times with either side; no metric leaves them out. The tables rank words by the bound of "
    "the 95% interval of delta nearer 0, and list none whose interval holds 0."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """The distribution of delta, and the words that lean most."""
    words, deltas = facts.rows("word", top=TOP_WORDS), facts.rows("delta", min_pairs=MIN_PAIRS)
    if not words and not deltas:
        yield Missing(_TITLE, "plumbline corpus associate --corpus NAME")
        return
    figures = [_figure(of) for of in deltas.groups("contrast")]
    groups = words.groups("corpus", "contrast")
    tables = [_table(of, folded=of is not groups[0]) for of in groups]
    yield Section("words", _TITLE, [_MEANING], (), figures, tables)


def _figure(rows: Rows) -> Figure:
    """Share of a corpus's words in each bin of 0.1 nats of delta, one line per corpus."""
    contrast = rows[0]["contrast"]
    panel = Panel("delta in nats (male < 0 < female)", "% of words in 0.1 nats")
    groups = rows.groups("corpus")
    for of, look in zip(groups, looks(len(groups)), strict=True):
        bins = range(min(r["bin"] for r in of), max(r["bin"] for r in of) + 1)
        n = sum(r["n_words"] for r in of)
        share = dict.fromkeys(bins, 0.0) | {r["bin"]: 100 * r["n_words"] / n for r in of}
        xs = [0.1 * edge for b in bins for edge in (b, b + 1)]
        ys = [share[b] for b in bins for _ in "ab"]
        label = f"{short(of[0]['corpus'])} (n = {n:,} words)"
        panel.line([xs[0], *xs, xs[-1]], [0, *ys, 0], label=label, **look)
    panel.rule(x=0, color=NEUTRAL)
    panel.y.low = 0
    n = sum(r["n_words"] for r in rows)
    return Figure(
        stem("delta", contrast),
        f"Distribution of delta for the contrast {contrast}, a line for each corpus.",
        f"Share of words in each tenth of a nat of delta ({contrast}); {n:,} words seen at "
        f"least {MIN_PAIRS} times with each side. At +0.69 a word co-occurs with the "
        "female words twice as strongly as with the male ones.",
        svg(f"How words lean: delta ({short(contrast)})", [panel]),
        rows,
    )


def _table(words: Rows, *, folded: bool) -> PageTable:
    """Place by place, a female and a male word side by side."""
    found = {(r["place"], r["delta_nats"] > 0): r for r in words}
    headings = ["place", "female", "delta", "counts f / m", "male", "delta", "counts f / m"]
    lines = [
        [count(place), *_word(found.get((place, True))), *_word(found.get((place, False)))]
        for place in sorted({place for place, _ in found})
    ]
    corpus, contrast = words[0]["corpus"], words[0]["contrast"]
    caption = f"Words of {corpus} that lean most ({contrast}), 95% intervals in brackets"
    return PageTable(caption, headings, lines, folded, words.sql, searchable=True)


def _word(row: Row | None) -> list[Cell]:
    if row is None:
        return [text(""), text(""), text("")]
    pairs = "–" if row["n_pair_f"] is None else f"{row['n_pair_f']:,} / {row['n_pair_m']:,}"
    ends = ("delta_nats", "delta_low_nats", "delta_high_nats")
    return [text(row["word"]), estimate(row, 2, signed=True, of=ends), Cell(pairs, None, True)]
