"""Counts are the same whatever the memory: handed over in parts, long lines, all pairs."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import MonkeyPatch

from plumbline.jobs.counting.shard import count_shard, line_blocks
from plumbline.jobs.kernel import counter
from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import BATCH_BYTES, ShardCounts
from plumbline.jobs.kernel.counter import Counter as Kernel
from plumbline.jobs.kernel.line_verdict import LONGEST_JUDGED
from plumbline.jobs.kernel.memory import SLACK, Limits
from plumbline.jobs.kernel.tokens.chunk_words import MAX_CHUNK
from plumbline.jobs.kernel.tokens.tokenizer import Targets, tokenize, tokenize_all
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.oracle_counts import (
    DOCUMENT,
    TARGETS,
    WORDS,
    OracleCounts,
    Tables,
    as_oracle,
    bare,
    count_texts,
    oracle,
)


def all_pairs(counts: ShardCounts, tables: Tables) -> OracleCounts:
    """Counts of all pairs in the oracle's shape, each unordered pair under its smaller word."""
    found = as_oracle(counts, tables)
    pairs = Counter({(min(pair), max(pair)): n for pair, n in found.pairs.items()})
    assert len(pairs) == len(found.pairs)
    return OracleCounts(found.words, pairs, found.total)


def oracle_of_all(texts: list[str], rule: str, window: int) -> OracleCounts:
    vocabulary = {w for words in tokenize_all(texts, TARGETS) for w in words}
    counts = oracle(texts, TARGETS, rule, window, sorted(vocabulary))
    counts.pairs = Counter({k: n for k, n in counts.pairs.items() if k[0] <= k[1]})
    return counts


@pytest.mark.parametrize("rule", RULES)
@given(texts=st.lists(DOCUMENT, max_size=4), window=st.sampled_from([2, 3, 10, 70]))
def test_all_pairs_of_made_documents(rule: str, texts: list[str], window: int) -> None:
    counts, tables = count_texts(texts, Targets(TARGETS), bare(rule, window, targets="all"))
    assert all_pairs(counts, tables) == oracle_of_all(texts, rule, window)


def handed_over(texts: list[str], options: CorpusOptions) -> tuple[OracleCounts, int]:
    """Count with little memory: the sum of all that was handed over, and how often."""
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    calls: Counter[str] = Counter()

    def add(kind: str, table: pa.Table) -> None:
        calls[kind] += 1
        for row in table.to_pylist():
            if kind == "words":
                words[row["word"]] += row["n_word"]
            elif kind == "pairs":
                pair = row["word"], row["target"]
                pairs[(min(pair), max(pair)) if options.all_pairs else pair] += row["n_pair"]

    counter = Kernel(Targets(TARGETS), options, add, Limits(1 << 20, 1 << 12))
    counter.feed_texts(texts)
    return OracleCounts(words, pairs, counter.result().n_pairs), calls["words"]


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_little_memory_changes_nothing(rule: str, every: bool, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(counter, "BATCH_BYTES", 1 << 15)
    # New words and new pairs all the time, in documents longer than the kernel holds at once.
    n = 9_000 if every else 14_000
    texts = [
        " ".join(f"w{i * 7 % 50_000} {WORDS[i % 9]} v{i % 13_000}" for i in range(k, k + n))
        for k in (0, n // 2)
    ]
    options = bare(rule, 5, targets="all" if every else "gendered")
    found, n_parts = handed_over(texts, options)
    expected = oracle_of_all(texts, rule, 5) if every else oracle(texts, TARGETS, rule, 5)
    assert n_parts > 3
    assert found == expected


@given(st.integers(-70, 70), st.sampled_from(["\\n", "\\u00e9", "\\ud83d\\ude00", "x", "é"]))
def test_pieces_of_escaped_text_join(shift: int, filler: str) -> None:
    # What stands where one piece ends and the next begins is moved about byte by byte.
    n_she = (BATCH_BYTES + shift) // 4
    tail = f'{"a" * (shift % 4)}{filler}nurse{filler * 3} he \\" queen'
    raw = f'{{"text": "{"she " * n_she}{tail}"}}'
    tables = Tables()
    counter = Kernel(Targets(TARGETS), bare(), tables)
    data = raw.encode()
    counter.feed_lines(np.frombuffer(data + bytes(SLACK), np.uint8).copy(), len(data))
    expected = Counter(she=n_she) + Counter(tokenize(json.loads(f'"{tail}"'), TARGETS))
    assert dict(as_oracle(counter.result(), tables).words) == dict(expected)


def test_document_longer_than_all_buffers() -> None:
    words = ["she", "tea", "nurse", "her", "x" * (MAX_CHUNK + 5), "é" * 40_000]
    text = " ".join(words[i % 4] for i in range(BATCH_BYTES)) + " " + " he ".join(words * 3)
    counts, tables = count_texts([text], Targets(TARGETS), bare())
    assert as_oracle(counts, tables) == oracle([text], TARGETS, "pairs", 10)


@pytest.mark.parametrize("read_ahead", [False, True])
def test_long_lines_go_through_a_file(tmp_path: Path, read_ahead: bool) -> None:
    path = tmp_path / "a.jsonl.zst"
    texts = [
        "tea she",
        "nurse he " * 400_000,
        "queen",
        "her tea\n" * 300_000,
        "he",
        "x " * 2_000_000,
    ]
    write_jsonl_zst(path, texts)
    limit = 1 << 20
    blocks = [bytes(b[:end]) for b, end in line_blocks(path, limit, read_ahead)]
    assert [json.loads(line)["text"] for block in blocks for line in block.splitlines()] == texts
    # Each long line is a block of its own, without the newline that ends it.
    assert [len(json.loads(b)["text"]) for b in blocks if not b.endswith(b"\n")] == [
        len(text) for text in texts if len(text) > limit
    ]


def test_long_line_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "she"}\n{"text": ' + b"x" * LONGEST_JUDGED + b"}\n{}\n")
    tables = Tables()
    counts = count_shard(path, Targets(TARGETS), bare(), tables)
    rejects = tables.of("rejects").to_pylist()
    assert [(r["source_row"], r["reason"].split(";")[0]) for r in rejects] == [
        (2, "not strict JSON with a `text`"),
        (3, "record has no `text`"),
    ]
    assert (counts.n_documents_in, counts.n_documents) == (3, 1)


def test_many_rejects_are_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "tea"}\n' + "junk\n" * 70_000)
    tables = Tables()
    counts = count_shard(path, Targets(TARGETS), bare(), tables)
    assert counts.n_rejected == 70_000 and counts.n_documents_in == 70_001
    assert len(tables["rejects"]) > 2
    assert tables.of("rejects")["source_row"].to_pylist() == list(range(2, 70_002))


@pytest.mark.slow
def test_huge_shards_one_after_another_stay_under_the_cap(tmp_path: Path) -> None:
    # Five million words that are all new, one pair with a tenth of all co-occurrences kept; then a
    # document larger than the cap, in the same process.
    n, step = 5_000_000, 10_000
    texts = (
        " ".join(f"w{i}" for i in range(k, k + step)) + " she he" * (step // 20)
        for k in range(0, n, step)
    )
    words, long = tmp_path / "a.jsonl.zst", tmp_path / "b.jsonl"
    write_jsonl_zst(words, texts)
    sentence = b"She told the nurse that tea is hot and queen bees hum.\\n" * 10_000
    n_times = (576 << 20) // len(sentence)
    with long.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(n_times):
            file.write(sentence)
        file.write(b'"}\n{"text": "he"}\n')
    assert long.stat().st_size > 512 << 20
    where = tmp_path / "parts"
    where.mkdir()
    found = under_the_cap(where, [words, long], words=["she", "he"])
    kept = [ledger["n_kept_tokens"] for ledger in found["ledgers"]]
    assert kept == [n + n // 10, 8 * 10_000 * n_times + 1]
    import duckdb

    mark = found["ledgers"][0]["fingerprint"]
    files = [str(p) for p in (where / mark).glob("*.words.parquet")]
    assert len(files) > 1
    query = "SELECT count(DISTINCT word), sum(n_word) FROM read_parquet($files)"
    assert duckdb.execute(query, {"files": files}).fetchall() == [(n + 2, n + n // 10)]


def under_the_cap(where: Path, shards: list[Path], **options: Any) -> dict[str, Any]:
    """What a count with 512 MiB found, whose process stayed below that."""
    arguments = (str(where), "512", json.dumps(options), *map(str, shards))
    command = [sys.executable, "-m", "benchmarks.peak", *arguments]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    found: dict[str, Any] = json.loads(done.stdout)
    print(f"peak {found['peak_bytes'] >> 20} MiB of own memory in {found['seconds']:.1f} s")
    assert 100 << 20 < found["peak_bytes"] < 512 << 20
    return found
