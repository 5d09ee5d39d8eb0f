"""Rows that were made from rows that changed are deleted in the same commit, and no others."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
CONTRASTS = ("she/he", "queen/king")


def delta(corpus: str, contrast: str, word: str, nats: float) -> Row:
    key = {"corpus": corpus, "contrast": contrast, "word": word}
    return {**key, "n_defined": 1, "delta_nats": nats}


def seed_word(corpus: str, contrast: str, word: str) -> Row:
    key = {"corpus": corpus, "contrast": contrast, "word": word, "seed": 0}
    return {
        **key,
        "position": 1,
        "delta_nats": 0.0,
        "low_nats": 0.0,
        "high_nats": 0.0,
        "run_id": "r",
    }


@pytest.mark.parametrize("seed", range(8))
def test_seed_words_go_with_the_deltas_of_their_contrast(store: Store, seed: int) -> None:
    """As an independent account of every row says, through merged files and several corpora."""
    draw = random.Random(seed)
    deltas: dict[tuple[str, str], dict[str, float]] = {
        (corpus, contrast): {word: draw.random() for word in "abc"}
        for corpus in "xy"
        for contrast in CONTRASTS
    }

    def write(corpus: str) -> None:
        rows = [
            delta(c, contrast, word, nats)
            for (c, contrast), of_word in deltas.items()
            for word, nats in of_word.items()
            if c == corpus
        ]
        draw.shuffle(rows)
        store.replace("word_delta", rows, {"corpus": corpus}, f"run-{draw.random()}")

    for corpus in "xy":
        write(corpus)
    expected: set[tuple[str, str]] = set()
    for _ in range(12):
        corpus, contrast = draw.choice("xy"), draw.choice(CONTRASTS)
        action = draw.choice(["sample", "change", "add", "same", "drop", "compact"])
        if action == "sample" and deltas[corpus, contrast]:
            rows = [seed_word(corpus, contrast, "a")]
            store.publish("seed_word", rows, unit=f"{contrast} 0", run_id="r")
            expected.add((corpus, contrast))
        elif action == "change" and deltas[corpus, contrast]:
            deltas[corpus, contrast][draw.choice([*deltas[corpus, contrast]])] += 1.0
            expected.discard((corpus, contrast))
        elif action == "add":
            deltas[corpus, contrast][f"new{draw.random()}"] = 1.0
            expected.discard((corpus, contrast))
        elif action == "drop":
            expected.discard((corpus, contrast))
            deltas[corpus, contrast] = {}
        elif action == "compact":
            compact(store, "r")
        write(corpus)
        found = store.read("seed_word").to_pylist()
        assert {(row["corpus"], row["contrast"]) for row in found} == expected


def test_deletions_pass_on(store: Store) -> None:
    """Counts take deltas, and these seed words; what came first stays."""
    store.publish("seed_word", [seed_word("c", "she/he", "a")], unit="u", run_id="r")
    store.replace("word_count", [{"corpus": "c", "word": "a", "n_word": 2}], {"corpus": "c"}, "r")
    store.replace("word_delta", [delta("c", "she/he", "a", 0.0)], {"corpus": "c"}, "r")
    store.replace("word_count", [{"corpus": "c", "word": "a", "n_word": 2}], {"corpus": "c"}, "s")
    assert store.read("seed_word").num_rows == 1, "nothing has changed"
    store.drop("word_count", {"corpus": "c"})
    assert not store.read("word_delta").num_rows and not store.read("seed_word").num_rows
