"""One word's counts, PMI and lean as lines of text."""

from __future__ import annotations

import math
from typing import Any

import duckdb

from plumbline.jobs.association.associations import contrasts_of, sides_of
from plumbline.jobs.association.measures import summed_list
from plumbline.jobs.counting.corpus_lookup import (
    corpus_contrast,
    corpus_language,
    corpus_list,
    corpus_row,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.finding import Finding
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store

_COUNT = "SELECT n_word FROM word_count WHERE corpus = $corpus AND word = $word"
_SIMILAR = """
SELECT word FROM word_count WHERE corpus = $corpus AND jaro_winkler_similarity(word, $word) > 0.85
ORDER BY damerau_levenshtein(word, $word), n_word DESC, word LIMIT 3
"""
_TARGETS = """
SELECT target, n_target, n_pair, pmi_nats FROM word_association
WHERE corpus = $corpus AND word = $word AND list_contains($targets, target)
ORDER BY list_position($targets, target)
"""
_LEAN = """
WITH ranked AS (
    SELECT
        *,
        sign(lean_bound_nats) AS side,
        rank() OVER (PARTITION BY side ORDER BY abs(lean_bound_nats) DESC) AS lean_rank,
        count(*) OVER (PARTITION BY side) AS n
    FROM word_lean WHERE corpus = $corpus AND contrast = $contrast
)
SELECT n_pair_f, n_pair_m, n_defined, delta_nats, delta_nats_low, delta_nats_high, over, side,
    lean_rank, n
FROM ranked WHERE word = $word
"""


def describe_word(store: Store, corpus: str, word: str, contrast: str = "she/he") -> list[str]:
    """Lines with a word's count, its PMI with both words of a contrast, its lean and its rank.

    A word leans if the 95% interval of its lean excludes 0, even if it co-occurs with one side only
    and so has no delta. Words that lean the same way are ranked by the bound nearer 0; other words
    have no rank. Words of imported statistics have no interval and are ranked by delta. If a word
    has neither a delta nor a lean, the last line says why.

    Raises:
        UsageProblem: the corpus is unknown, or the word is not in it; the message says why, and
            suggests similar words.
    """
    row, contrast = corpus_row(store, corpus), corpus_contrast(store, corpus, contrast)
    sides = sides_of(store, row, contrast)
    connection = connect(store.root, _COUNT + _SIMILAR + _TARGETS + _LEAN)
    key = {"corpus": corpus, "word": word}
    count = connection.execute(_COUNT, key).fetchone()
    if count is None:
        raise _unknown(store, connection, row, word)
    targets = contrast.split("/")
    lines = [f"{corpus}: `{word}` occurs {count[0]:,} times"]
    rows = connection.execute(_TARGETS, {**key, "targets": targets}).fetchall()
    lines += [
        f"  with {target}: {n_pair:,} co-occurrences ({n_target:,} {target}), PMI {pmi:+.3f} nats"
        for target, n_target, n_pair, pmi in rows
    ]
    lean = connection.execute(_LEAN, {**key, "contrast": contrast}).fetchone()
    if lean is None:
        return [*lines, f"  no delta for {contrast}: {_why_none(store, row, word, contrast)}"]
    n_f, n_m, n_defined, delta, low, high, over, side, lean_rank, n = lean
    estimate = delta if delta is not None else low if side and side > 0 else high
    finding = Finding(word, "delta", estimate, low, high, unit="nats")
    name = "no delta for" if delta is None else "delta"
    figure = f"{contrast}: a count is 0" if delta is None else f"{contrast} {delta:+.3f} nats"
    if len(targets) == 1:
        lines.append(
            f"  {n_defined or 0} pairs defined; co-occurrences: {n_f:,} with {sides[0]} and "
            f"{n_m:,} with {sides[1]}"
        )
    lines.append(f"  {name} {figure}, {_interval(low, high, over)}")
    if low is None and side == 0:
        return [*lines, f"  no clear lean: it is near the contrast in fewer than five {over}"]
    if side == 0:
        return [*lines, "  no clear lean: the interval holds 0"]
    side_name = sides[0] if side > 0 else sides[1]
    ranked = f"rank {lean_rank:,} of the {n:,} words"
    leans = f"leans to {side_name}: {ranked} that do"
    untold = f"{ranked} whose estimate is to {side_name}; without an interval no lean is certain"
    return [*lines, f"  {finding.pick(above=leans, below=leans, untold=untold)}"]


def _why_none(store: Store, row: dict[str, Any], word: str, contrast: str) -> str:
    """The reason why a word has neither a delta nor a lean for a contrast."""
    corpus = row["corpus"]
    if not store.units("word_delta", corpus=corpus):
        return f"run plumbline corpus associate --corpus {corpus}"
    if row["n_pairs"] is None:
        names = sorted(set(store.read("word_delta", corpus=corpus)["contrast"].to_pylist()))
        others = [] if contrast in names else names
        return f"the imported statistics have {'only ' + ', '.join(others) if others else 'none'}"
    by_name = contrasts_of(store, row)
    list_name = summed_list(contrast, by_name)
    pairs = by_name.get(list_name or contrast)
    if pairs is None:
        return f"it is not a contrast of corpus {corpus}, which has {', '.join(by_name)}"
    if word in (w for pair in pairs for w in (pair.a, pair.b)):
        return f"`{word}` is a word of the contrast"
    return "no pair has both counts" if list_name else "it co-occurs with neither side"


def _interval(low: float | None, high: float | None, over: str) -> str:
    """An interval in words.

    >>> _interval(None, None, "co-occurrences"), _interval(-math.inf, -1.9, "sources")
    ('standard error unknown', '95% interval over sources up to -1.900')
    """
    if low is None or high is None:
        return "standard error unknown"
    if math.isinf(low):
        return f"95% interval over {over} up to {high:+.3f}"
    if math.isinf(high):
        return f"95% interval over {over} from {low:+.3f}"
    return f"95% interval over {over} {low:+.3f} to {high:+.3f}"


def _unknown(
    store: Store, connection: duckdb.DuckDBPyConnection, row: dict[str, Any], word: str
) -> UsageProblem:
    """The error for a word that is not in a corpus: the reason, and similar words."""
    corpus = row["corpus"]
    if row["source"] == "counted":
        from plumbline.jobs.kernel.tokens.tokenizer import tokenize

        tokens = tokenize(word, corpus_list(store, row).targets, corpus_language(row).token_rules)
        problem = f"does not occur in corpus {corpus}"
        if not tokens:
            problem = f"is not counted in corpus {corpus}: a stop word, or without letters"
        elif tokens != [word]:
            problem = f"is counted in corpus {corpus} as {' '.join(tokens)}"
        elif row["min_count"] > 1:
            problem += f", or fewer than {row['min_count']:,} times and was pruned (--min-count)"
    else:
        problem = f"is not among the {row['n_words_kept']:,} imported words of corpus {corpus}"
    similar = connection.execute(_SIMILAR, {"corpus": corpus, "word": word}).fetchall()
    fix = (
        f"similar words: {', '.join(w for (w,) in similar)}"
        if similar
        else "docs/corpora.md#what-is-a-token"
    )
    return UsageProblem(f"word {word!r}", problem, fix)
