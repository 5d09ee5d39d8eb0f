"""Rare words pruned after the merge: what goes, what stays as it was, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.corpus_lookup import run_checks
from plumbline.jobs.counting.partials import partials_directory
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


def test_another_min_count_is_merged_not_counted(store: Store, shards: list[Path]) -> None:
    count_corpus(store, "c", shards)
    partials = partials_directory(store, CorpusOptions().listed, CorpusOptions())
    made = {p: p.stat().st_mtime_ns for p in partials.iterdir()}
    counted = count_corpus(store, "c", shards, CorpusOptions(min_count=N))
    assert counted.changed and counted.row["n_words_kept"] < counted.row["n_words"]
    assert made == {p: p.stat().st_mtime_ns for p in partials.iterdir()}
    assert list(partials.parent.iterdir()) == [partials]
