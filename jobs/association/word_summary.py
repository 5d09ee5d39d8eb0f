"""One word's counts, PMI and lean as lines of text."""

from __future__ import annotations

from typing import Any

import duckdb

from plumbline.jobs.association.associations import sides_of
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
SELECT delta_nats, delta_nats_low, delta_nats_high, over FROM word_lean
WHERE corpus = $corpus AND word = $word AND contrast = $contrast
"""


def describe_word(store: Store, corpus: str, word: str, contrast: str = "she/he") -> list[str]:
    """Lines with a word's count, its PMI with both words of a contrast, and its lean.

    A word leans if the 95% interval of its lean excludes 0, even if it co-occurs with one side only
    and so has no delta. Words of imported statistics may have no interval.

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
    lines = [f"{corpus}: `{word}` occurs {count[0]:,} times"]
    targets = connection.execute(_TARGETS, {**key, "targets": contrast.split("/")}).fetchall()
    lines += [
        f"  with {target}: {n_pair:,} co-occurrences ({n_target:,} {target}), PMI {pmi:+.3f} nats"
        for target, n_target, n_pair, pmi in targets
    ]
    lean = connection.execute(_LEAN, {**key, "contrast": contrast}).fetchone()
    if lean is None:
        why = f"its counts with {contrast} are 0, or none"
        return [*lines, f"  no lean: {why}; plumbline corpus associate --corpus {corpus}"]
    delta, low, high, over = lean
    figure = "no delta" if delta is None else f"delta {delta:+.3f} nats"
    interval = "no interval"
    if low is not None:
        interval = f"95% interval over {over} {low:+.3f} to {high:+.3f}"
    estimate = min(low, high, key=abs) if delta is None and low is not None else delta
    verdict = Finding(word, "delta", estimate, low, high, unit="nats").pick(
        above=f"leans to {sides[0]}", below=f"leans to {sides[1]}", untold="no clear lean"
    )
    return [*lines, f"  {contrast}: {figure}, {interval}: {verdict}"]


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
    words = f"similar words: {', '.join(w for (w,) in similar)}"
    return UsageProblem(
        f"word {word!r}", problem, words if similar else "docs/corpora.md#what-is-a-token"
    )
