"""Seed words of a corpus: those that lean least, sampled into ``seed_word``."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.dataset as ds

from jobs.associate import corpus_row
from jobs.selection import neutral_interval, sample, within
from warehouse.errors import UsageProblem
from warehouse.runs import recorded
from warehouse.store import Store


@dataclass(frozen=True)
class Selected:
    """What was sampled: words with a delta, those in the interval (nats), and the sample."""

    n_defined: int
    n_within: int
    low_nats: float
    high_nats: float
    words: tuple[str, ...]


def select_seed_words(
    store: Store, corpus: str, n: int = 500, seed: int = 0, contrast: str = "she/he"
) -> Selected:
    """Sample ``n`` words from the interval of delta that holds 0 (see ``jobs/selection.py``).

    The sample replaces one of the same corpus, contrast and seed; others stay.

    Raises:
        UsageProblem: no such corpus, no delta of the contrast, or fewer than ``n`` words.
    """
    corpus_row(store, corpus)
    rows = store.read("word_delta", ds.field("contrast") == contrast, corpus=corpus).to_pylist()
    if not rows:
        known = sorted(set(store.read("word_delta", corpus=corpus)["contrast"].to_pylist()))
        problem = f"no word has a delta of {contrast}, the corpus has {', '.join(known) or 'none'}"
        fix = f"plumbline corpus associate --corpus {corpus}"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    of = {row["word"]: row for row in rows}
    deltas = {word: row["delta_nats"] for word, row in of.items()}
    low, high = interval = neutral_interval(deltas.values())
    inside = within(deltas, interval)
    chosen = sample(inside, n, seed)
    config = {"corpus": corpus, "contrast": contrast, "seed": seed}
    with recorded(store, "corpus words", {**config, "n": n}) as run_id:
        fixed = {**config, "low_nats": low, "high_nats": high, "run_id": run_id}
        sampled = [
            {**fixed, "position": k, **{c: of[word][c] for c in ("word", "n_word", "delta_nats")}}
            for k, word in enumerate(chosen, start=1)
        ]
        store.publish("seed_word", sampled, unit=f"{contrast} {seed}", run_id=run_id)
    return Selected(len(deltas), len(inside), low, high, tuple(chosen))
