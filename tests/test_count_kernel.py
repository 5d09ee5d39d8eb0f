"""The counting kernel equals brute force, whatever the rule, window, order and cutting."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.kernel.cooccurrences import RULES, TargetPairs
from plumbline.jobs.kernel.counter import Counter, ShardCounts
from plumbline.jobs.kernel.memory import SLACK, Limits
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents, write_jsonl_zst
from plumbline.warehouse.wordlists import load
from tests.oracle_counts import DOCUMENT, TARGETS, Tables, as_oracle, bare, count_texts, oracle


@pytest.mark.parametrize("rule", RULES)
@given(texts=st.lists(DOCUMENT, max_size=4), window=st.sampled_from([2, 3, 10, 70]))
def test_made_documents(rule: str, texts: list[str], window: int) -> None:
    counts, tables = count_texts(texts, Targets(TARGETS), bare(rule, window))
    assert as_oracle(counts, tables) == oracle(texts, TARGETS, rule, window)
    assert counts.n_documents == len(texts)


@given(DOCUMENT, st.integers(2, 12))
def test_total_of_pairs_has_a_closed_form(text: str, window: int) -> None:
    counts, _ = count_texts([text], Targets(TARGETS), bare("pairs", window))
    by_distance = [max(counts.n_kept_tokens - d, 0) for d in range(1, window)]
    assert counts.n_pairs == sum(by_distance)


@pytest.mark.reference
@pytest.mark.parametrize("rule", RULES)
def test_real_documents(data: Path, rule: str) -> None:
    targets = load("gendered").targets
    shards = ["gutenberg/01.jsonl.zst", "nltk/00.jsonl.zst"]
    texts = [t for s in shards for t in itertools.islice(documents(data / "corpora" / s), 30)]
    counts, tables = count_texts(texts, Targets(targets), bare(rule, 10))
    assert len(texts) == 60
    assert as_oracle(counts, tables) == oracle(texts, targets, rule, 10)


def test_hand_checked_document() -> None:
    text = "She saw nurse she"
    pairs = as_oracle(*count_texts([text], Targets(("she", "he")), bare("pairs", 3))).pairs
    assert dict(pairs) == {("saw", "she"): 2, ("nurse", "she"): 2}
    windows = as_oracle(*count_texts([text], Targets(("she", "he")), bare("windows", 10)))
    assert dict(windows.pairs) == {("saw", "she"): 1, ("nurse", "she"): 1, ("she", "she"): 1}
    assert windows.total == 4


def test_counts_beyond_32_bits() -> None:
    text = "she tea he cup " * 50
    once = as_oracle(*count_texts([text], Targets(TARGETS), bare())).pairs
    tables = Tables()
    counter = Counter(Targets(TARGETS), bare(), tables)
    counter.feed_texts([text])
    counter._count()
    pairs = counter._pairs
    assert isinstance(pairs, TargetPairs)
    more = np.uint32((1 << 32) - 1 - pairs._dense.max())
    pairs._dense[pairs._dense > 0] += more
    pairs._most_in_a_cell = (1 << 32) - 1
    counter.feed_texts([text])
    counter.result()
    handed_over = [
        {(row["word"], row["target"]): row["n_pair"] for row in table.to_pylist()}
        for table in tables["pairs"]
    ]
    assert handed_over == [{pair: n + int(more) for pair, n in once.items()}, once]


def test_a_batch_counted_in_many_calls_is_handed_over_once() -> None:
    text = " ".join(f"w{i} she" if i % 40 == 0 else f"w{i}" for i in range(1 << 15))
    _, tables = count_texts([text], Targets(TARGETS), bare("pairs", 1000))
    assert len(tables["words"]) == 1


def test_emptied_chunk_cache_changes_nothing() -> None:
    texts = [" ".join(f"she's-a{i % 9000}" for i in range(k, k + 30_000)) for k in range(2)]
    tables = Tables()
    counter = Counter(Targets(TARGETS), bare(), tables, Limits(cache_slots=1 << 12))
    counter.feed_texts(texts)
    assert as_oracle(counter.result(), tables) == oracle(texts, TARGETS, "pairs", 10)


def sweep_lines(lines: list[bytes], cuts: list[int] | None = None) -> tuple[ShardCounts, Tables]:
    tables = Tables()
    counter = Counter(Targets(TARGETS), bare(), tables)
    for first, last in itertools.pairwise([0, *(cuts or []), len(lines)]):
        block = b"".join(line + b"\n" for line in lines[first:last])
        buf = np.frombuffer(block + bytes(SLACK), np.uint8).copy()
        counter.feed_lines(buf, len(block))
    return counter.result(), tables


LINES = [
    b'{"text": "She likes tea"}',
    b"",
    b"junk \xff",
    b'{"t\\u0065xt": "He drinks \\u0000 tea with her"}',
    b'{"text": 7}',
    b'{"text": "queen queen queen", "x": NaN}',
    b"   ",
    b'{"meta": {"text": "he"}, "text": "x-ray \\ud83d\\ude00 she"}',
    b'{"text": "\\ud800"}',
]


@given(st.lists(st.integers(0, len(LINES)), max_size=4).map(sorted))
def test_rejects_and_block_cuts(cuts: list[int]) -> None:
    counts, tables = sweep_lines(LINES, cuts)
    rejects = tables.of("rejects").to_pylist()
    assert [(r["source_row"], r["reason"].split()[0]) for r in rejects] == [
        (3, "invalid"),
        (5, "`text`"),
        (9, "`text`"),
    ]
    assert (counts.n_documents_in, counts.n_documents) == (7, 4)
    assert rejects[0]["excerpt"] == "junk \\xff"
    good = ["She likes tea", "He drinks \x00 tea with her", "queen queen queen", "x-ray 😀 she"]
    assert as_oracle(counts, tables) == oracle(good, TARGETS, "pairs", 10)


def test_parquet_rejects(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bad = pa.array([b"she", b"\xff", None, b"he"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": bad}), tmp_path / "a.parquet")
    for _ in range(2):  # the next shard of a process has the same counter, from 0 again
        tables = Tables()
        counts = count_shard(tmp_path / "a.parquet", Targets(TARGETS), bare(), tables)
        rejects = tables.of("rejects").to_pylist()
        assert [(r["source_row"], r["reason"]) for r in rejects] == [
            (2, "invalid UTF-8"),
            (3, "`text` is NULL"),
        ]
        assert (counts.n_documents, counts.n_rejected, counts.n_kept_tokens) == (2, 2, 2)


@pytest.mark.parametrize("read_ahead", [False, True])
def test_truncated_shard_is_an_error(tmp_path: Path, read_ahead: bool) -> None:
    path = tmp_path / "a.jsonl.zst"
    write_jsonl_zst(path, [json.dumps(list(range(k, k + 500))) for k in range(500)])
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(BadInput, match="ended before"):
        count_shard(path, Targets(TARGETS), bare(), Tables(), read_ahead=read_ahead)


COMPILE = """
from plumbline.jobs.kernel.memory import rehash
rehash(0, 0, 0, 0)
stats = rehash.dispatcher.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_one_process_compiles_what_several_need(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", COMPILE], env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = sorted(tuple(p.communicate()[0].split()) for p in started)
    assert said == [(b"0", b"1"), (b"0", b"1"), (b"1", b"0")]
