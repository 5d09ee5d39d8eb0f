"""Rare words pruned after the merge: what goes, what stays as it was, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.verify import run_checks
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse import wordlists
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import OracleCounts, oracle

Row = dict[str, Any]
N = 5
TARGETS = wordlists.load("gendered").targets


def texts() -> list[str]:
    """Words of all frequencies, common targets, and a rare one (queen) that meets itself once."""
    rng = np.random.default_rng(3)
    rank = np.minimum(rng.zipf(1.4, (240, 12)), 400)
    words = [[f"word{k}" for k in row] for row in rank]
    for row, pronoun in zip(words, rng.choice(["she", "he", "her", "his"], (240, 2)), strict=True):
        row[2], row[7] = pronoun
    return [" ".join(row) for row in words] + ["queen word1 queen word2 word399999"]


def kept(counts: OracleCounts, least: int) -> set[str]:
    return {w for w, n in counts.words.items() if n >= least or w in TARGETS}


def rows(store: Store, table: str, corpus: str) -> list[Row]:
    """A corpus's rows, sorted; without the corpus and the run."""
    found = store.read(table, corpus=corpus)
    found = found.drop_columns([c for c in ("corpus", "run_id") if c in found.column_names])
    return found.sort_by([(c, "ascending") for c in found.column_names]).to_pylist()


def holds(store: Store, corpus: str) -> bool:
    return not any(c.n_violations for c in run_checks(store, corpus))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("shards")
    paths = [place / f"{k}.jsonl.zst" for k in range(6)]
    for k, path in enumerate(paths):
        write_jsonl_zst(path, texts()[k::6])
    return paths


@pytest.fixture(scope="module", params=["pairs", "windows"])
def both(request: pytest.FixtureRequest, shards: list[Path], tmp_path_factory: Any) -> Store:
    """Corpus `all` with every word and `some` without the rare ones, associated."""
    store = Store.open(tmp_path_factory.mktemp("both") / "w")
    for corpus, least in (("all", 1), ("some", N)):
        count_corpus(
            store, corpus, tuple(shards), CorpusOptions(rule=request.param, min_count=least)
        )
        associate(store, corpus)
    return store


@pytest.mark.slow
def test_the_tables_are_those_of_brute_force(both: Store) -> None:
    rule = both.read("corpus", corpus="some")["rule"][0].as_py()
    counts = oracle(texts(), TARGETS, rule, 10)
    for corpus, least in (("all", 1), ("some", N)):
        stay = kept(counts, least)
        words = {r["word"]: r["n_word"] for r in rows(both, "word_count", corpus)}
        pairs = {(r["word"], r["target"]): r["n_pair"] for r in rows(both, "pair_count", corpus)}
        assert words == {w: n for w, n in counts.words.items() if w in stay}
        assert pairs == {p: n for p, n in counts.pairs.items() if p[0] in stay}
        (row,) = rows(both, "corpus", corpus)
        assert row["n_kept_tokens"] == sum(counts.words.values()) and row["min_count"] == least
        assert row["n_words"] == len(counts.words) and row["n_words_kept"] == len(stay)
        assert row["n_tokens_pruned"] == sum(counts.words.values()) - sum(words.values())
        assert row["n_pairs"] == counts.total
        assert holds(both, corpus)
    assert words["queen"] == 2 and pairs["queen", "queen"] == 1, "a target, and rare"
    by_shard = [oracle(texts()[k::6], TARGETS, rule, 10).words for k in range(6)]
    frequent = {w for words in by_shard for w, n in words.items() if n >= N}
    assert stay - frequent - set(TARGETS), "words that are rare in every shard, not in all"
    assert len(stay) < len(counts.words)


@pytest.mark.parametrize("rule", ["pairs", "windows"])
def test_all_pairs_lose_rare_words_on_either_side(
    store: Store, shards: list[Path], rule: str
) -> None:
    count_corpus(store, "c", shards, CorpusOptions(targets="all", rule=rule, min_count=N))
    counts = oracle(texts(), TARGETS, rule, 10, list(oracle(texts(), TARGETS, rule, 10).words))
    stay = kept(counts, N)
    pairs = {(r["word"], r["target"]): r["n_pair"] for r in rows(store, "pair_count", "c")}
    assert pairs == {p: n for p, n in counts.pairs.items() if stay.issuperset(p)}
    assert 0 < len(pairs) < len(counts.pairs) and holds(store, "c")


def damage(
    table: str, corpus: str, change: Callable[[list[Row]], list[Row]], store: Store
) -> set[str]:
    """Names of the checks that fail once rows were changed; everything is put back."""
    before = store.read(table, corpus=corpus).to_pylist()
    changed = change([dict(r) for r in before])
    assert changed != before
    store.replace(table, changed, {"corpus": corpus}, "r")
    try:
        return {c.name for c in run_checks(store, corpus) if c.n_violations}
    finally:
        store.replace(table, before, {"corpus": corpus}, "r")


def add(column: str, n: int) -> Callable[[list[Row]], list[Row]]:
    return lambda found: [{**found[0], column: found[0][column] + n}, *found[1:]]


def but(word: str) -> Callable[[list[Row]], list[Row]]:
    return lambda found: [r for r in found if r["word"] != word]


def and_also(**values: Any) -> Callable[[list[Row]], list[Row]]:
    return lambda found: [*found, {**found[0], **values}]


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("word_count", add("n_word", 1), {"word_total"}),
        ("word_count", but("word1"), {"word_total", "pair_word"}),
        ("word_count", but("queen"), {"word_total", "pair_word"}),
        ("word_count", and_also(word="word399999", n_word=1), {"word_total", "word_rare"}),
        ("pair_count", and_also(word="word399999", target="queen", n_pair=2), {"pair_word"}),
        ("pair_count", and_also(word="word1", n_pair=10**9), {"pair_key", "pair_total"}),
        ("corpus", add("n_words", 1000), {"word_pruned"}),
        ("corpus", add("n_words", -200), {"word_pruned"}),
        ("corpus", add("n_words_kept", 1), {"word_total"}),
        ("corpus", add("n_tokens_pruned", 1), {"word_total"}),
        ("corpus", add("min_count", 1 - N), {"word_pruned"}),
        ("corpus", add("min_count", 10), {"word_rare"}),
        ("corpus_shard", add("n_kept_tokens", -1), {"corpus_total", "word_total"}),
    ],
)
def test_damage_to_a_pruned_corpus_is_seen(
    both: Store, table: str, change: Callable[[list[Row]], list[Row]], expected: set[str]
) -> None:
    assert damage(table, "some", change, both) == expected
