"""Associations: by hand, against the counts they come from, and on the reference novels."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.association.associations import associate
from plumbline.jobs.association.measures import (
    CorpusCounts,
    association_rows,
    contrasts,
    delta_rows,
    dispersion,
)
from plumbline.jobs.counting.kept_documents import evidence_of
from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import config_hash
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList, WordPair
from tests.metric_rows import corpus_row
from tests.oracle_counts import Tables, bare

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
LIST = WordList(
    *("two", "", "tests", (WordPair("she", "he", 1.0), WordPair("queen", "king", 3.0))),
    groups=("female", "male"),
)


def counts(times: int = 1) -> CorpusCounts:
    words = pa.table({"word": list(WORDS), "n_word": [times * n for n in WORDS.values()]})
    pairs = [{"word": w, "target": t, "n_pair": times * n} for (w, t), n in PAIRS.items()]
    return CorpusCounts(words, pa.Table.from_pylist(pairs), times * KEPT, times * TOTAL)


def pmi(word: str, target: str) -> float:
    joint = PAIRS[word, target] / TOTAL
    return math.log(joint / (WORDS[word] / KEPT * WORDS[target] / KEPT))


@pytest.mark.parametrize("times", [1, 10**9])
def test_every_pair_that_occurs_has_its_pmi(times: int) -> None:
    """The same in a corpus that says everything a billion times: no product overflows."""
    tables = pa.concat_tables(association_rows(counts(times), LIST.targets))
    rows = {(r["word"], r["target"]): r for r in tables.to_pylist()}
    assert rows.keys() == PAIRS.keys()
    for (word, target), row in rows.items():
        assert row["pmi_nats"] == pytest.approx(pmi(word, target), abs=1e-12)
        n = (WORDS[word], WORDS[target], PAIRS[word, target])
        assert (row["n_word"], row["n_target"], row["n_pair"]) == tuple(times * k for k in n)


PEOPLE = ("she", "her", "queen", "he", "his", "him", "king")


@given(
    st.lists(st.integers(0, 3), min_size=28, max_size=28),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=4, max_size=4),
)
def test_means_and_sums_of_pairs_against_a_loop(n: list[int], v: list[float]) -> None:
    """Zero counts in any place, words of several pairs, weights of 0: every sum written out."""
    kinds = [("she", "he"), ("her", "his"), ("her", "him"), ("queen", "king")]
    pairs = [WordPair(f, m, weight) for (f, m), weight in zip(kinds, v, strict=True)]
    met = {(f"w{k // 7}", PEOPLE[k % 7]): n_pair for k, n_pair in enumerate(n)}
    words = {**dict.fromkeys(("w0", "w1", "w2", "w3"), 9), **{p: 11 for p in PEOPLE}}
    seen = [{"word": w, "target": t, "n_pair": k} for (w, t), k in met.items() if k]
    kinds_of = [("word", pa.string()), ("target", pa.string()), ("n_pair", pa.int64())]
    table = pa.Table.from_pylist(seen, schema=pa.schema(kinds_of))
    named = {"word": list(words), "n_word": list(words.values())}
    made = CorpusCounts(pa.table(named), table, 500, 900)

    def value(word: str, target: str) -> float:
        return math.log(met[word, target] / 900 / (9 / 500 * 11 / 500))

    for word in ("w0", "w1", "w2", "w3"):
        there = [p for p in pairs if met[word, p.a] and met[word, p.b]]
        total = sum(p.weight for p in there)
        differences = [(p.weight, value(word, p.a) - value(word, p.b)) for p in there]
        expected = {"sum": 3 * sum(d for _, d in differences)} if there else {}
        if total > 0:
            expected["mean"] = sum(weight * d for weight, d in differences) / total
        for name, of_words in (("mean", None), ("sum", np.full(len(words), 3.0))):
            rows = {r["word"]: r for r in delta_rows(made, "x", pairs, of_words).to_pylist()}
            found = rows.get(word, {})
            assert found.get("delta_nats") == pytest.approx(expected.get(name), abs=1e-12)
            used = [p for p in there if p.weight or name == "sum"]
            for side, own in (("f", {p.a for p in used}), ("m", {p.b for p in used})):
                assert found.get(f"n_pair_{side}", 0) == sum(met[word, g] for g in own)
            assert found.get("n_defined", len(there)) == len(there)


def standard_errors(table: pa.Table, value: str) -> dict[tuple[str, str], float]:
    group = "target" if value == "pmi_nats_se" else "contrast"
    return {(r[group], r["word"]): r[value] for r in table.to_pylist()}


def all_delta_rows(made: CorpusCounts, word_list: WordList) -> list[pa.Table]:
    return [delta_rows(made, name, pairs) for name, pairs in contrasts([word_list]).items()]


def all_deltas(made: CorpusCounts, word_list: WordList) -> dict[tuple[str, str], float]:
    return standard_errors(pa.concat_tables(all_delta_rows(made, word_list)), "delta_nats_se")


def test_standard_errors_by_hand() -> None:
    # she meets itself 2 times in 10: D = 1 + 17/9 * 2/10; the others never do: D = 1.
    d_she = 1 + 17 / 9 * 0.2
    pmis = standard_errors(
        pa.concat_tables(association_rows(counts(), LIST.targets)), "pmi_nats_se"
    )
    assert pmis["she", "tea"] == pytest.approx(math.sqrt(d_she / 6), abs=1e-12)
    assert pmis["he", "army"] == pytest.approx(math.sqrt(1 / 5), abs=1e-12)
    found = all_deltas(counts(), LIST)
    pronouns, nobles = d_she / 6 + 1 / 3, 1 / 2 + 1 / 1
    assert found["she/he", "tea"] == pytest.approx(math.sqrt(pronouns), abs=1e-12)
    assert found["two", "tea"] == pytest.approx(math.sqrt(pronouns + 9 * nobles) / 4, abs=1e-12)
    assert found["two", "army"] == pytest.approx(found["queen/king", "army"], abs=1e-12)


def test_a_word_of_two_pairs_is_not_two_observations() -> None:
    # (ln she - ln he + ln she - ln king) / 2: the weight of she is 1, of he and king 1/2.
    pairs = WordPair("she", "he"), WordPair("she", "king")
    shared = WordList("s", "", "tests", pairs, groups=("female", "male"))
    variance = all_deltas(counts(), shared)["s", "tea"] ** 2
    assert variance == pytest.approx((1 + 17 / 9 * 0.2) / 6 + (1 / 3 + 1) / 4, abs=1e-12)


def test_dispersion_of_windows_is_that_of_the_windows_a_pair_lies_in() -> None:
    lies_in = [10 - d for d in range(1, 10)]
    expected = sum(k * k for k in lies_in) / sum(lies_in)
    assert dispersion(5, 50, "windows", 10) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("rule", ["pairs", pytest.param("windows", marks=pytest.mark.slow)])
def test_standard_errors_agree_with_the_spread_over_documents(
    data: Path, tmp_path: Path, rule: str
) -> None:
    """Jackknife over 60 blocks of passages against the formula, words seen often enough."""
    options = Targets(("she", "he")), bare(rule)
    lines = [
        line
        for shard in sorted((data / "corpora" / "gutenberg").glob("*.zst"))
        for line in zstandard.ZstdDecompressor()
        .stream_reader(shard.read_bytes())
        .read()
        .splitlines()
    ]
    blocks, tables = [], []
    for k in range(60):
        path = tmp_path / f"{k}.jsonl"
        path.write_bytes(b"\n".join(lines[k::60]))
        tables.append(Tables())
        blocks.append(count_shard(path, *options, tables[-1]))
    words = summed([t.of("words") for t in tables], ["word"], "n_word")
    pairs = summed([t.of("pairs") for t in tables], ["word", "target"], "n_pair")
    made = CorpusCounts(
        words, pairs, sum(b.n_kept_tokens for b in blocks), sum(b.n_pairs for b in blocks), rule
    )
    (table,) = all_delta_rows(made, wordlists.load("she-he"))
    rows = {r["word"]: r for r in table.to_pylist() if min(r["n_pair_f"], r["n_pair_m"]) >= 200}
    by_block = [
        {
            (r["word"], r["target"]): r["n_pair"]
            for r in t.of("pairs").to_pylist()
            if r["word"] in rows
        }
        for t in tables
    ]
    totals = [{r["word"]: r["n_word"] for r in t.of("words").to_pylist()} for t in tables]
    n_f, n_m = (sum(t.get(g, 0) for t in totals) for g in ("she", "he"))
    ratios = []
    for word, row in rows.items():
        left = [
            math.log((row["n_pair_f"] - c.get((word, "she"), 0)) / (n_f - t.get("she", 0)))
            - math.log((row["n_pair_m"] - c.get((word, "he"), 0)) / (n_m - t.get("he", 0)))
            for c, t in zip(by_block, totals, strict=True)
        ]
        ratios.append(math.sqrt(59 * float(np.var(left))) / row["delta_nats_se"])
    assert len(ratios) > 300
    assert 0.9 < float(np.median(ratios)) < 1.2


def summed(tables: list[pa.Table], keys: list[str], value: str) -> pa.Table:
    merged = (
        pa.concat_tables(tables).unify_dictionaries().group_by(keys).aggregate([(value, "sum")])
    )
    return merged.rename_columns([*keys, value])


def counted(store: Store) -> None:
    row = corpus_row(corpus="c", n_tokens=150, n_kept_tokens=KEPT, n_pairs=TOTAL)
    store.publish("corpus", [row], unit="corpus", run_id="r")
    words = [{"corpus": "c", "word": w, "n_word": n} for w, n in WORDS.items()]
    store.publish("word_count", words, unit="a", run_id="r")
    fixed = {"corpus": "c", "rule": "pairs", "window_tokens": 10}
    pairs = [{**fixed, "word": w, "target": t, "n_pair": n} for (w, t), n in PAIRS.items()]
    store.publish("pair_count", pairs, unit="a", run_id="r")


def test_what_a_corpus_lacks_is_refused(store: Store) -> None:
    counted(store)
    with pytest.raises(UsageProblem, match="was counted without keeping its documents"):
        evidence_of(store, "c")
    row = {**store.read("corpus").to_pylist()[0], "n_pairs": None}
    store.replace("corpus", [row], {"corpus": "c"}, "r")
    with pytest.raises(UsageProblem, match="was imported without"):
        associate(store, "c")


def test_associate_with_weights_of_words(store: Store, tmp_path: Path) -> None:
    """A contrast of its own, recorded with the hash of the weights; gone without the file."""
    counted(store)
    path = tmp_path / "toxicity.csv"
    path.write_text("word,weight\ntea,0.5\nunheard,9\n")
    done = associate(store, "c", word_weights=path)
    assert done["n_weighted"] == 1
    found = {
        r["contrast"]: r
        for r in store.read("word_delta", corpus="c").to_pylist()
        if r["word"] == "tea"
    }
    plain, weighted = found["gendered-sum"], found["gendered-sum-toxicity"]
    assert weighted["delta_nats"] == pytest.approx(plain["delta_nats"] / 2, abs=1e-12)
    assert weighted["n_defined"] == plain["n_defined"] == 2
    own = rows_of(store.root, "FROM word_lean WHERE contrast = 'gendered-sum-toxicity'")
    assert [r["word"] for r in own] == ["tea"], "army has no weight"
    se = own[0]["delta_nats_se"]
    assert own[0]["delta_nats_low"] == pytest.approx(own[0]["delta_nats"] - 1.959964 * se)
    config = json.loads(store.read("run").sort_by("started_at").to_pylist()[-1]["config"])
    assert config["word_weights_hash"] == config_hash({"tea": 0.5, "unheard": 9.0})
    with pytest.raises(BadInput, match=r"nowhere\.csv"):
        associate(store, "c", word_weights=tmp_path / "nowhere.csv")
    associate(store, "c")
    contrasts = store.read("word_delta", corpus="c")["contrast"].to_pylist()
    assert "gendered-sum" in contrasts and "gendered-sum-toxicity" not in contrasts
