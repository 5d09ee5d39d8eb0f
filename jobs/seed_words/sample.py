"""Draw seed words from a corpus's most neutral words, and record a person's verdicts on them."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from plumbline.jobs.counting.corpus_lookup import (
    corpus_contrast,
    corpus_deltas,
    corpus_row,
    writes_corpus,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

ACCEPTED, REJECTED = "accepted", "rejected"


def verdicts(store: Store, corpus: str) -> dict[str, dict[str, Any]]:
    """Return a corpus's rows of ``seed_verdict``, as {word: row}."""
    return {row["word"]: row for row in store.read("seed_verdict", corpus=corpus).to_pylist()}


@writes_corpus
def vet(
    store: Store, corpus: str, accept: Sequence[str], reject: Sequence[str], why: str, run_id: str
) -> Counter[str]:
    """Accept and reject words for the reason ``why``.

    A new verdict replaces an old one on the same word. Words are compared in lower case. Return how
    many words of the corpus now have each verdict.

    Raises:
        UsageProblem: the corpus is unknown, a word is both accepted and rejected, or a word is not
            in the corpus. In these cases nothing is recorded.
    """
    corpus_row(store, corpus)
    accepted, rejected = ([word.lower() for word in words] for words in (accept, reject))
    known = set(store.read("word_count", corpus=corpus)["word"].to_pylist())
    for word in accepted + rejected:
        if word in accepted and word in rejected:
            raise UsageProblem(f"word {word!r}", "is both accepted and rejected")
        if word not in known:
            raise UsageProblem(f"word {word!r}", f"is not in corpus {corpus!r}")
    now = datetime.now(timezone.utc)
    fixed = {"corpus": corpus, "why": why or None, "vetted_at": now, "run_id": run_id}
    rows = verdicts(store, corpus)
    for words, verdict in ((accepted, ACCEPTED), (rejected, REJECTED)):
        rows |= {word: {**fixed, "word": word, "verdict": verdict} for word in words}
    store.replace("seed_verdict", rows.values(), {"corpus": corpus}, run_id)
    return Counter(row["verdict"] for row in rows.values())


#: Number of edges of equal intervals of delta. It is even, so that no edge is 0.
N_EDGES = 20


def neutral_interval(deltas: Iterable[float]) -> tuple[float, float]:
    """Divide the range of deltas into 19 equal intervals. Return the ends of the middle interval.

    The range goes from -m to m, where m is the largest absolute delta, rounded up to a whole nat.
    So the middle interval is -m/19 to m/19. It is (0, 0) if there are no deltas or all are 0.

    >>> low, high = neutral_interval([-4.7, 3.2])
    >>> round(low, 4), round(high, 4)  # 5 / 19
    (-0.2632, 0.2632)
    """
    values = np.fromiter(deltas, np.float64)
    largest = math.ceil(np.abs(values).max(initial=0.0))
    edges = np.linspace(-largest, largest, N_EDGES)
    return float(edges[edges <= 0].max()), float(edges[edges >= 0].min())


def sample(words: Collection[str], n: int, seed: int) -> list[str]:
    """Draw ``n`` words at random.

    Words are ranked by a hash of seed and word. So a sample is the same on any machine, and a
    smaller sample is the start of a larger one.

    Raises ``UsageProblem`` if there are no words, or fewer than ``n``.

    >>> drawn = sample(["tea", "rum", "ale"], 3, seed=0)
    >>> sorted(drawn), sample(["rum", "ale", "tea"], 2, seed=0) == drawn[:2]
    (['ale', 'rum', 'tea'], True)
    """
    if n > len(words) or not words:
        problem = f"only {len(words):,} words of the interval around 0 are left"
        raise UsageProblem(f"{n:,} seed words", problem, "give a lower --n, or exclude fewer words")

    def rank(word: str) -> tuple[bytes, str]:
        return hashlib.sha256(f"{seed} {word}".encode()).digest(), word

    return sorted(words, key=rank)[:n]


@writes_corpus
def select_seed_words(
    store: Store,
    corpus: str,
    n: int | None = 500,
    seed: int = 0,
    contrast: str = "she/he",
    exclude: Collection[str] = (),
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Sample ``n`` words whose delta is near 0, in the interval of :func:`neutral_interval`.

    If the corpus has rows in ``vocabulary``, only words that are kept there are used. In a closed
    world (a corpus with planted words), the words of the sentence frames are excluded, since no
    frame has a slot for such a word. Excluded and rejected words help to determine the interval,
    but are never sampled. The sample replaces an earlier one of this corpus, contrast and seed.

    Args:
        n: sample size, or ``None`` for all words. A smaller sample is the start of a larger one.
        exclude: words not to sample.

    Returns:
        A dictionary of numbers, and the rows of ``seed_word`` in order, with the columns
        ``verdict`` and ``why`` added. The dictionary has the ends of the interval, ``low_nats`` and
        ``high_nats``. ``n_defined`` words have a delta, and ``n_within`` of them are in the
        interval. Of the words in the interval, ``n_excluded`` are in ``exclude`` or in sentence
        frames, and ``n_rejected`` others were rejected by a person.

    Raises:
        UsageProblem: the corpus is unknown or has no delta for the contrast, or the interval has
            fewer than ``n`` words to sample, or none.
    """
    contrast = corpus_contrast(store, corpus, contrast)
    by_word = {row["word"]: row for row in corpus_deltas(store, corpus, contrast).to_pylist()}
    vocabulary, usable = store.read("vocabulary", corpus=corpus), by_word
    if vocabulary.num_rows:
        kept = set(vocabulary.filter(vocabulary["is_kept"])["word"].to_pylist())
        usable = {word: row for word, row in by_word.items() if word in kept}
    if not usable:
        problem = f"no word of its vocabulary has a delta of {contrast}"
        raise UsageProblem(f"corpus {corpus!r}", problem)
    low, high = neutral_interval(row["delta_nats"] for row in usable.values())
    inside = {word for word, row in usable.items() if low <= row["delta_nats"] <= high}
    frames = store.read("planted_word", ds.field("word_class") == "frame", corpus=corpus)
    excluded = inside & {*exclude, *frames["word"].to_pylist()}
    vetted = verdicts(store, corpus)
    rejected = {w for w in inside if w in vetted and vetted[w]["verdict"] == REJECTED} - excluded
    left = inside - excluded - rejected
    n = len(left) if n is None else n
    chosen = sample(left, n, seed)
    config = {"corpus": corpus, "contrast": contrast, "seed": seed}
    vocabulary_run = str(vocabulary["run_id"][0]) if vocabulary.num_rows else None
    options = {"n": n, "vocabulary": vocabulary_run}
    left_out = {"excluded": sorted(excluded), "rejected": sorted(rejected)}
    with recorded(store, "corpus words", {**config, **options, **left_out}) as run_id:
        fixed = {**config, "low_nats": low, "high_nats": high, "run_id": run_id}
        columns = ("word", "n_word", "delta_nats")
        rows = [
            {**fixed, "position": k, **{column: by_word[word][column] for column in columns}}
            for k, word in enumerate(chosen, start=1)
        ]
        store.publish("seed_word", rows, unit=f"{contrast} {seed}", run_id=run_id)
    from_words = {
        **{"n_defined": len(usable), "n_within": len(inside), "low_nats": low, "high_nats": high},
        **{"n_excluded": len(excluded), "n_rejected": len(rejected)},
    }
    of_word = {word: {"verdict": row["verdict"], "why": row["why"]} for word, row in vetted.items()}
    unvetted = {"verdict": None, "why": None}
    return from_words, [row | of_word.get(row["word"], unvetted) for row in rows]
