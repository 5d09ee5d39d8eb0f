"""Associations: by hand, against the counts they come from, and on the reference novels."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.associate import associate, corpus_row, usable_lists
from jobs.association import Counts, ListDelta, association_rows, delta_rows, pmi_nats
from jobs.sweep import CountOptions, sweep_shard
from warehouse import wordlists
from warehouse.errors import UsageProblem
from warehouse.store import Store
from warehouse.wordlists import WordList, WordPair

WORDS = {"she": 10, "he": 20, "queen": 5, "king": 4, "tea": 8, "army": 6, "rare": 1}
PAIRS = {
    ("tea", "she"): 6,
    ("tea", "he"): 3,
    ("tea", "queen"): 2,
    ("tea", "king"): 1,
    ("army", "he"): 5,
    ("army", "king"): 2,
    ("army", "queen"): 1,
    ("rare", "she"): 1,
    ("she", "she"): 2,
}
KEPT, TOTAL = 100, 400
LIST = WordList("two", "", "", (WordPair("she", "he", 1.0), WordPair("queen", "king", 3.0)))


def counts() -> Counts:
    words = pa.table({"word": list(WORDS), "n_word": list(WORDS.values())})
    pairs = pa.table(
        {
            "word": [w for w, _ in PAIRS],
            "target": [t for _, t in PAIRS],
            "n_pair": list(PAIRS.values()),
        }
    )
    return Counts(words, pairs, KEPT, TOTAL)


def pmi(word: str, target: str) -> float:
    joint = PAIRS[word, target] / TOTAL
    return math.log(joint / (WORDS[word] / KEPT * WORDS[target] / KEPT))


def test_every_pair_that_occurs_has_its_pmi() -> None:
    tables = pa.concat_tables(association_rows(counts(), LIST.targets))
    rows = {(r["word"], r["target"]): r for r in tables.to_pylist()}
    assert rows.keys() == PAIRS.keys()
    for (word, target), row in rows.items():
        assert row["pmi_nats"] == pytest.approx(pmi(word, target), abs=1e-12)
        n = (row["n_word"], row["n_target"], row["n_pair"])
        assert n == (WORDS[word], WORDS[target], PAIRS[word, target])


def test_deltas_of_pairs_and_of_the_list() -> None:
    rows = {
        (r["contrast"], r["word"]): r
        for t in delta_rows(counts(), {"two": LIST})
        for r in t.to_pylist()
    }
    assert set(rows) == {
        ("she/he", "tea"),
        ("queen/king", "tea"),
        ("queen/king", "army"),
        ("two", "tea"),
        ("two", "army"),
    }
    pronouns = pmi("tea", "she") - pmi("tea", "he")
    nobles = pmi("tea", "queen") - pmi("tea", "king")
    assert rows["she/he", "tea"]["delta_nats"] == pytest.approx(pronouns, abs=1e-12)
    assert pronouns == pytest.approx(math.log(6 / 3) - math.log(10 / 20), abs=1e-12)
    mean = rows["two", "tea"]
    assert mean["delta_nats"] == pytest.approx((pronouns + 3 * nobles) / 4, abs=1e-12)
    assert (mean["n_defined"], mean["n_pair_f"], mean["n_pair_m"]) == (2, 8, 4)
    assert rows["two", "army"]["delta_nats"] == rows["queen/king", "army"]["delta_nats"]
    assert rows["two", "army"]["n_defined"] == 1


def test_no_counts_no_rows() -> None:
    empty = Counts(
        pa.table({"word": pa.array([], pa.string()), "n_word": pa.array([], pa.int64())}),
        pa.table(
            {
                "word": pa.array([], pa.string()),
                "target": pa.array([], pa.string()),
                "n_pair": pa.array([], pa.int64()),
            }
        ),
        0,
        0,
    )
    assert all(t.num_rows == 0 for t in delta_rows(empty, {"two": LIST}))
    assert all(t.num_rows == 0 for t in association_rows(empty, LIST.targets))


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_pmi_is_zero_under_independence(n_word: int, n_target: int, scale: int) -> None:
    # p(w,g) = p(w) p(g) exactly, whatever the totals.
    n_pair = np.array([n_word * n_target])
    value = pmi_nats(n_pair, np.array([n_word * scale]), n_target * scale, 100 * scale, 10_000)
    assert value[0] == pytest.approx(0.0, abs=1e-12)


def test_weights_that_sum_to_zero_define_nothing() -> None:
    mean = ListDelta.of(1)
    one = np.array([1])
    mean.add(np.array([2.0]), one, one, weight=0.0)
    assert np.isnan(mean.value()[0])


def counted(store: Store, targets: str = "gendered", source: str = "counted") -> None:
    row = {name: 0 for name in ("n_shards", "n_shards_failed", "n_documents", "n_rejected")}
    row |= {"n_tokens": 150, "n_kept_tokens": KEPT, "n_words": len(WORDS), "n_pairs": TOTAL}
    made = {"corpus": "c", "source": source, "targets": targets, "run_id": "r"}
    store.publish("corpus", [row | made], unit="corpus", run_id="r")
    words = [{"corpus": "c", "word": w, "n_word": n} for w, n in WORDS.items()]
    store.publish("word_count", words, unit="a", run_id="r")
    fixed = {"corpus": "c", "rule": "pairs", "window": 10}
    pairs = [{**fixed, "word": w, "target": t, "n_pair": n} for (w, t), n in PAIRS.items()]
    store.publish("pair_count", pairs, unit="a", run_id="r")


def test_associate_writes_both_tables(store: Store) -> None:
    counted(store)
    done = associate(store, "c")
    assert done.contrasts[0] == "she/he" and "gendered" in done.contrasts
    assert store.read("word_association", corpus="c").num_rows == done.n_associations == len(PAIRS)
    rows = store.read("word_delta", corpus="c").to_pylist()
    assert len(rows) == done.n_deltas
    found = {(r["contrast"], r["word"]): r["delta_nats"] for r in rows}
    assert found["she/he", "tea"] == pytest.approx(math.log(4), abs=1e-12)
    assert ("gendered", "tea") in found and "she-he" not in done.contrasts
    again = associate(store, "c")
    assert again == done
    assert store.read("word_delta", corpus="c").num_rows == done.n_deltas


def test_associate_needs_a_counted_corpus(store: Store) -> None:
    with pytest.raises(UsageProblem, match="no corpus is in the warehouse"):
        associate(store, "c")
    counted(store, source="imported")
    with pytest.raises(UsageProblem, match="imported"):
        associate(store, "c")
    with pytest.raises(UsageProblem, match="only c"):
        corpus_row(store, "d")


def test_word_lists() -> None:
    gendered = wordlists.load("gendered")
    assert len(gendered.pairs) == 38
    assert len({w for p in gendered.pairs for w in (p.female, p.male)}) == len(gendered.targets)
    assert all(p.weight == 1.0 for p in gendered.pairs)
    CountOptions(gendered.targets)
    with pytest.raises(UsageProblem, match="only gendered, she-he"):
        wordlists.load("nobody")
    assert list(usable_lists("she-he")) == ["she-he"]


@pytest.mark.reference
def test_leans_of_one_shard_of_novels(data: Path) -> None:
    targets = wordlists.load("she-he")
    path = data / "corpora" / "gutenberg" / "01.jsonl.zst"
    got = sweep_shard(path, CountOptions(targets.targets))
    made = Counts(got.words, got.pairs, got.n_kept_tokens, got.n_pairs)
    (table,) = delta_rows(made, {"she-he": targets})
    delta = {r["word"]: r["delta_nats"] for r in table.to_pylist()}
    assert all(delta[w] > 0.2 for w in ("mother", "dress", "wept"))
    assert all(delta[w] < -0.2 for w in ("captain", "army"))
