"""The lean of each corpus's words."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.charts import word_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import (
    Cell,
    Figure,
    Missing,
    PageTable,
    Section,
    count,
    estimate,
    probability,
    stem,
    text,
)
from plumbline.pipelines.report.rows import Row, Rows

PLACE = 1000
NAMES = ("words", "delta", "pmi")
#: Words listed for each side.
TOP_WORDS = 15
#: What the interval of a word is over that wasn't asked about.
OVER_COUNTS = "co-occurrences"
#: Least co-occurrences with a side for a word to be in the plots (of delta: with each side).
MIN_PAIRS = 5
_TITLE = "How words lean"
_MEANING = (
    "delta is the PMI of a word with the first minus that with the second side of a contrast, "
    "in nats: above 0 leans to the first. Plots of delta leave out words seen fewer than "
    f"{MIN_PAIRS} times with either side, plots of PMI with that side; no metric leaves them out. "
    "The tables rank words by the bound nearer 0 of their lean's 95% interval, those with q below "
    "5% first, and list none whose interval contains 0. A word near one side only has no delta, "
    "but a bound: ≤ −1.90 is at least "
    "1.90 nats to the second. The tables say what intervals are over: sources or documents, where "
    "the counted text was kept, else co-occurrences. q is the false discovery rate among words at "
    "least as clear (Benjamini and Hochberg)."
)


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """The distribution of delta, and the words that lean most."""
    words, deltas = facts.rows("word", top=TOP_WORDS), facts.rows("delta", min_pairs=MIN_PAIRS)
    if not words and not deltas:
        yield Missing(_TITLE, "plumbline corpus associate --corpus NAME")
        return
    figures = [distribution(facts, group) for group in deltas.groups("contrast")]
    pmi = facts.rows("pmi", min_pairs=MIN_PAIRS)
    figures += [_joint(group) for group in pmi.groups("corpus", "contrast")]
    groups = words.groups("corpus", "contrast")
    tables = [words_table(facts, group, folded=group is not groups[0]) for group in groups]
    intro = [_MEANING]
    intro += [sentence for row in facts.rows("lean_count") for sentence in clear_words(facts, row)]
    yield Section("words", _TITLE, intro, (), figures, tables)


def clear_words(facts: Facts, row: Row) -> Iterator[str]:
    """Sentences on how many words lean clearly to each side, and what their intervals are over."""
    corpus, over = row["corpus"], row["over"]
    first, second = facts.contrast_sides(corpus, row["contrast"])
    if not row["n_known"]:
        yield (
            f"{corpus} has a lean for {row['n_words']:,} words, without the counts that an "
            "interval needs."
        )
        return
    alone = f", {row['n_one_sided']:,} of them near one side only" if row["n_one_sided"] else ""
    if over != OVER_COUNTS:
        yield (
            f"In {corpus} {row['n_first']:,} words lean to {first} and {row['n_second']:,} to "
            f"{second}: their 95% intervals over {over} leave out 0. {row['n_corrected']:,} are "
            f"clear after correction for all {row['n_all']:,} words (q < 5%)."
        )
        yield (
            f"These are among the {row['n_words']:,} words that lean most by their counts alone or "
            "were asked about. Intervals of other words are over co-occurrences; over documents or "
            "sources most are wider."
        )
        return
    corrected = ""
    if row["n_tested"]:
        corrected = f"; {row['n_corrected']:,} are clear after correction for their number (q < 5%)"
    yield (
        f"Of {row['n_known']:,} words of {corpus} whose lean has a 95% interval over "
        f"co-occurrences{alone}, {row['n_first']:,} lean to {first} and {row['n_second']:,} to "
        f"{second}. If no word leaned, chance alone would make up to "
        f"{row['n_chance']:,.0f} look clear{corrected}. Over documents or sources most intervals "
        "are wider."
    )


def distribution(facts: Facts, rows: Rows) -> Figure:
    """A plot of the share of words in each bin of 0.1 nats of delta, one line per corpus."""
    contrast = rows[0]["contrast"]
    first, second = facts.contrast_sides(rows[0]["corpus"], contrast)
    by_corpus = {group[0]["corpus"]: group for group in rows.groups("corpus")}
    n, n_unknown = (sum(r[name] for r in rows) for name in ("n_words", "n_unknown"))
    unknown = f", and {n_unknown:,} of imported statistics without counts" if n_unknown else ""
    return Figure(
        stem("delta", contrast),
        f"Distribution of delta for the contrast {contrast}, a line for each corpus.",
        f"Share of words in each tenth of a nat of delta ({contrast}); {n - n_unknown:,} words "
        f"seen at least {MIN_PAIRS} times with each side{unknown}. At +0.69 a word co-occurs with "
        f"{first} twice as strongly as with {second}.",
        charts.distribution(by_corpus, (first, second)),
        rows,
    )


def _joint(rows: Rows) -> Figure:
    """A plot of words' PMI with each word of a contrast: both distributions, and the joint one."""
    corpus, contrast = rows[0]["corpus"], rows[0]["contrast"]
    first, second = contrast.split("/", 1)
    cells = rows.but(bin_f=None).but(bin_m=None)
    n, n_all = (sum(r["n_words"] for r in some) for some in (cells, rows))
    return Figure(
        stem("pmi", corpus, contrast),
        f"PMI of the words of {corpus} with {first} and with {second}: the distribution of each, "
        "and each word's PMI with one against that with the other.",
        f"{corpus}: PMI with {first} and with {second} of words seen with that side at least "
        f"{MIN_PAIRS} times: each (left), both (right: {n:,} of {n_all:,} words have both; more "
        "opaque: more words). A word's delta is its height over the dashed line.",
        charts.joint(rows, contrast),
        rows,
    )


def words_table(facts: Facts, words: Rows, *, folded: bool) -> PageTable:
    """A table of the words that lean most: a row per place, with a word for each side."""
    by_place = {(r["place"], r["lean_bound_nats"] > 0): r for r in words}
    corpus, contrast = words[0]["corpus"], words[0]["contrast"]
    first, second = facts.contrast_sides(corpus, contrast)
    side = ["lean", f"near {first} / {second}", "q"]
    headings = ["place", f"leans to {first}", *side, f"leans to {second}", *side]
    lines = [
        [count(place), *_word(by_place.get((place, True))), *_word(by_place.get((place, False)))]
        for place in sorted({place for place, _ in by_place})
    ]
    over = f" over {words[0]['over']}" if words[0]["delta_nats_low"] is not None else ""
    caption = f"Words of {corpus} that lean most ({contrast}), 95% intervals{over} in brackets"
    return PageTable(caption, headings, lines, folded, words.sql, searchable=True)


def _word(row: Row | None) -> list[Cell]:
    if row is None:
        return [text("")] * 4
    pairs = "–" if row["n_pair_f"] is None else f"{row['n_pair_f']:,} / {row['n_pair_m']:,}"
    lean = estimate(row, "delta_nats")
    return [text(row["word"]), lean, Cell(pairs, None, True), probability(row["q"])]
