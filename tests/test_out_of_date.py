"""Rows that were made from rows that changed are deleted in the same commit, and no others."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.out_of_date import to_make_again
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


def test_origins_are_earlier_tables_with_the_same_columns() -> None:
    names = list(TABLES)
    for table in TABLES.values():
        for origin in table.made_from:
            source = TABLES[origin.table]
            assert names.index(source.name) < names.index(table.name), "data flows one way"
            assert {*origin.by} <= {*source.names} & {*table.names}, table.name
            assert {*origin.columns} <= {*source.names}, table.name


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


def test_rows_of_the_same_commit_stay(store: Store) -> None:
    """A commit may change an origin and write what is made from it, in any order."""
    for nats in (0.0, 1.0):
        with store.transaction("r"):
            store.publish("seed_word", [seed_word("c", "she/he", "a")], unit="u", run_id="r")
            store.replace("word_delta", [delta("c", "she/he", "a", nats)], {"corpus": "c"}, "r")
        assert store.read("seed_word").num_rows == 1
    assert not store.snapshot().out_of_date


def test_deletions_are_noted_until_rows_are_written_again(store: Store) -> None:
    def write(nats: float) -> None:
        store.replace("word_delta", [delta("c", "she/he", "a", nats)], {"corpus": "c"}, "r")

    write(0.0)
    for seed in range(3):
        row = seed_word("c", "she/he", "a") | {"seed": seed}
        store.publish("seed_word", [row], unit=f"u{seed}", run_id="r")
    version = store.snapshot().version
    write(1.0)
    for _ in range(2):
        assert store.snapshot().out_of_date == {"seed_word/corpus=c": 3}
        compact(store, "r")
    deleted = store.snapshot().version
    store.restore(version, "r")
    assert not store.snapshot().out_of_date and store.read("seed_word").num_rows == 3
    store.restore(deleted, "r")
    (line,) = to_make_again(store.snapshot().out_of_date)
    assert line.startswith("deleted 3 rows of `seed_word`, made from rows that changed; again: ")
    assert not to_make_again(store.snapshot().out_of_date, store.snapshot().out_of_date)
    store.publish("seed_word", [seed_word("c", "she/he", "a")], unit="u", run_id="r")
    assert not store.snapshot().out_of_date


def test_deletions_pass_on(store: Store) -> None:
    """Counts take deltas, and these seed words; what came first stays."""
    store.publish("seed_word", [seed_word("c", "she/he", "a")], unit="u", run_id="r")
    store.replace("word_count", [{"corpus": "c", "word": "a", "n_word": 2}], {"corpus": "c"}, "r")
    store.replace("word_delta", [delta("c", "she/he", "a", 0.0)], {"corpus": "c"}, "r")
    store.replace("word_count", [{"corpus": "c", "word": "a", "n_word": 2}], {"corpus": "c"}, "s")
    assert store.read("seed_word").num_rows == 1, "nothing has changed"
    store.drop("word_count", {"corpus": "c"})
    assert not store.read("word_delta").num_rows and not store.read("seed_word").num_rows
