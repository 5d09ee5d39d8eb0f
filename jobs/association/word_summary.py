"""One word's counts, PMI and lean as lines of text."""

from __future__ import annotations

from typing import Any

import duckdb

from plumbline.jobs.association.associations import contrasts_of, sides_of
from plumbline.jobs.counting.corpus_lookup import corpus_contrast, corpus_row
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
    """Return lines with a word's count, its PMI with both words of a contrast, and its lean.

    A word leans if the 95% interval of its lean excludes 0, even if it co-occurs with one side only
    and so has no delta. Words from imported statistics may have no interval.

    Raises:
        UsageProblem: the corpus or contrast is unknown, or the word is not in the corpus; the
            message suggests similar words.
    """
    row, contrast = corpus_row(store, corpus), corpus_contrast(store, corpus, contrast)
    _check_contrast(store, row, contrast)
    sides = sides_of(store, row, contrast)
    connection = connect(store.root, _COUNT + _SIMILAR + _TARGETS + _LEAN)
    key = {"corpus": corpus, "word": word}
    count = connection.execute(_COUNT, key).fetchone()
    if count is None:
        raise _unknown(connection, corpus, word)
    lines = [f"{corpus}: `{word}` occurs {count[0]:,} times"]
    targets = connection.execute(_TARGETS, {**key, "targets": contrast.split("/")}).fetchall()
    lines += [
        f"  with {target}: {n_pair:,} co-occurrences ({n_target:,} {target}), PMI {pmi:+.3f} nats"
        for target, n_target, n_pair, pmi in targets
    ]
    lean = connection.execute(_LEAN, {**key, "contrast": contrast}).fetchone()
    if lean is None:
        why = f"it is a word of {contrast}, or near none of them"
        return [*lines, f"  no lean: {why}; or run plumbline corpus associate --corpus {corpus}"]
    delta, low, high, over = lean
    figure = "no delta" if delta is None else f"delta {delta:+.3f} nats"
    interval = "no interval"
    if low is not None:
        interval = f"95% interval over {over} {low:+.3f} to {high:+.3f}"
    estimate = min(low, high, key=abs) if delta is None and low is not None else delta
    verdict = Finding(estimate, low, high).pick(
        above=f"leans to {sides[0]}", below=f"leans to {sides[1]}", untold="no clear lean"
    )
    return [*lines, f"  {contrast}: {figure}, {interval}: {verdict}"]


def _check_contrast(store: Store, row: dict[str, Any], contrast: str) -> None:
    """Raise ``UsageProblem`` for a contrast that the corpus does not have."""
    known = set(store.read("word_delta", corpus=row["corpus"])["contrast"].to_pylist())
    known |= contrasts_of(store, row).keys() if row["targets"] else set()
    if contrast not in known:
        problem = f"is not one of corpus {row['corpus']}"
        raise UsageProblem(f"contrast {contrast!r}", problem, f"one of {', '.join(sorted(known))}")


def _unknown(connection: duckdb.DuckDBPyConnection, corpus: str, word: str) -> UsageProblem:
    """Return the error for a word that is not in a corpus. It names similar words."""
    similar = connection.execute(_SIMILAR, {"corpus": corpus, "word": word}).fetchall()
    words = f"similar words: {', '.join(w for (w,) in similar)}"
    fix = words if similar else "docs/corpora.md#what-is-a-token"
    problem = f"is not a counted word of corpus {corpus}: it doesn't occur, or was left out"
    return UsageProblem(f"word {word!r}", problem, fix)
