"""Counts are the same whatever the memory: handed over in parts, long lines, all pairs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.growth import Limits
from jobs.lines import line_blocks
from jobs.memory import FULL_AT, MAX_CHUNK, PIECE
from jobs.records import LONGEST_JUDGED
from jobs.sweep import CountOptions, ShardCounts, Sweeper, count_texts, sweep_shard
from jobs.windows import RULES
from tests.oracle_counts import OracleCounts, as_oracle, oracle
from warehouse.shards import write_jsonl_zst

TARGETS = ("she", "he", "her", "queen")
WORDS = ["she", "he", "her", "queen", "tea", "nurse", "x-ray", "the", "Notwithstanding"]
DOCUMENT = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)


def all_pairs(counts: ShardCounts) -> OracleCounts:
    """Counts of all pairs in the oracle's shape, each unordered pair under its smaller word."""
    found = as_oracle(counts)
    pairs = Counter({(min(pair), max(pair)): n for pair, n in found.pairs.items()})
    assert len(pairs) == len(found.pairs)
    return OracleCounts(found.words, pairs, found.total)


def oracle_of_all(texts: list[str], rule: str, window: int) -> OracleCounts:
    from jobs.text import tokenize_all

    vocabulary = {w for words in tokenize_all(texts, TARGETS) for w in words}
    counts = oracle(texts, TARGETS, rule, window, sorted(vocabulary))
    counts.pairs = Counter({k: n for k, n in counts.pairs.items() if k[0] <= k[1]})
    return counts


@pytest.mark.parametrize("rule", RULES)
@given(texts=st.lists(DOCUMENT, max_size=4), window=st.sampled_from([2, 3, 10, 70]))
def test_all_pairs_of_made_documents(rule: str, texts: list[str], window: int) -> None:
    counts = count_texts(texts, CountOptions(TARGETS, rule, window, all_pairs=True))
    assert all_pairs(counts) == oracle_of_all(texts, rule, window)


def handed_over(
    texts: list[str], options: CountOptions, n_bytes: int
) -> tuple[ShardCounts, OracleCounts, int]:
    """Count with little memory: the result, the sum of all that was handed over, and how often."""
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

    sweeper = Sweeper(options, Limits(1 << 12, n_bytes), add)
    sweeper.texts(pa.array(texts, pa.large_string()))
    result = sweeper.result(0.0)
    add("words", result.words)
    add("pairs", result.pairs)
    return result, OracleCounts(words, pairs, result.n_pairs), calls["words"]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_little_memory_changes_nothing(rule: str, every: bool) -> None:
    # New words and new pairs all the time, in documents longer than the kernel holds at once.
    texts = [
        " ".join(f"w{i * 7 % 50_000} {WORDS[i % 9]} v{i % 13_000}" for i in range(k, k + 30_000))
        for k in (0, 20_000)
    ]
    options = CountOptions(TARGETS, rule, 5, every)
    _, found, n_parts = handed_over(texts, options, 9 << 20)
    expected = oracle_of_all(texts, rule, 5) if every else oracle(texts, TARGETS, rule, 5)
    assert n_parts > 2
    assert found == expected


@given(st.integers(-70, 70), st.sampled_from(["\\n", "\\u00e9", "\\ud83d\\ude00", "x", "é"]))
def test_pieces_of_escaped_text_join(shift: int, filler: str) -> None:
    # What stands where one piece ends and the next begins is moved about byte by byte.
    head = "she " * ((PIECE + shift) // 4) + "a" * (shift % 4)
    raw = f'{{"text": "{head}{filler}nurse{filler * 3} he \\" queen"}}'
    text = json.loads(raw)["text"]
    from jobs.text import tokenize

    options = CountOptions(TARGETS)
    sweeper = Sweeper(options)
    import numpy as np

    from jobs.bits import SLACK

    data = raw.encode()
    sweeper.lines(np.frombuffer(data + bytes(SLACK), np.uint8).copy(), len(data))
    expected = Counter(tokenize(text, TARGETS))
    assert dict(as_oracle(sweeper.result(0.0)).words) == dict(expected)


def test_document_longer_than_all_buffers() -> None:
    words = ["she", "tea", "nurse", "her", "x" * (MAX_CHUNK + 5), "é" * 40_000]
    text = " ".join(words[i % 4] for i in range(3 * FULL_AT)) + " " + " he ".join(words * 3)
    counts = count_texts([text], CountOptions(TARGETS))
    assert as_oracle(counts) == oracle([text], TARGETS, "pairs", 10)


def test_long_lines_go_through_a_file(tmp_path: Path) -> None:
    texts = ["tea she", "nurse he " * 400_000, "queen", "her tea\n" * 300_000, "she"]
    write_jsonl_zst(tmp_path / "a.jsonl.zst", texts)
    whole = [bytes(b[:end]) for b, end in line_blocks(tmp_path / "a.jsonl.zst")]
    cut = [bytes(b[:end]) for b, end in line_blocks(tmp_path / "a.jsonl.zst", 1 << 20)]
    lines = [json.loads(line)["text"] for block in cut for line in block.splitlines()]
    assert lines == texts
    assert len(cut) > 2 and b"".join(whole).splitlines() == [
        line for block in cut for line in block.splitlines()
    ]


def test_long_line_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "she"}\n{"text": ' + b"x" * LONGEST_JUDGED + b"}\n{}\n")
    counts = sweep_shard(path, CountOptions(TARGETS))
    assert [(r.row, r.reason.split(",")[0]) for r in counts.rejects] == [
        (2, "not strict JSON with a `text`"),
        (3, "record has no `text`"),
    ]
    assert (counts.n_documents_in, counts.n_documents) == (3, 1)


def test_many_rejects_are_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "tea"}\n' + "junk\n" * 70_000)
    rows: list[int] = []
    counts = sweep_shard(
        path,
        CountOptions(TARGETS),
        Limits(),
        lambda kind, table: rows.extend(table["source_row"].to_pylist()),
    )
    assert counts.n_rejected == 70_000 and counts.n_documents_in == 70_001
    assert [*rows, *(r.row for r in counts.rejects)] == list(range(2, 70_002))


CAPPED = """
import json, resource, sys, threading, time
from pathlib import Path
from jobs.partial import count_shard
from jobs.sweep import warm_up

warm_up()
peak, done = [0], threading.Event()

def watch():
    # Pages of mapped files can be dropped at any time; what counts is memory of our own.
    while not done.is_set():
        status = Path("/proc/self/status").read_text()
        peak[0] = max(peak[0], int(status.split("RssAnon:")[1].split()[0]))
        time.sleep(0.01)

watcher = threading.Thread(target=watch)
watcher.start()
options = {"targets": ["she", "he"], "rule": "pairs", "window": 10, "all_pairs": sys.argv[3] == "1"}
ledger = count_shard(sys.argv[1], sys.argv[2], options, 512 << 20)
done.set()
watcher.join()
print(json.dumps({"peak": peak[0] << 10, "kept": ledger.n_kept_tokens, "mark": ledger.fingerprint}))
"""


def capped(shard: Path, where: Path, every: bool = False) -> dict[str, int | str]:
    """Count a shard under a cap of 512 MiB in a process of its own: its peak and totals."""
    where.mkdir()
    command = [sys.executable, "-c", CAPPED, str(shard), str(where), str(int(every))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_ten_million_distinct_words_stay_under_the_cap(tmp_path: Path) -> None:
    # Every word is new, and one pair holds a tenth of all co-occurrences kept.
    n, step = 10_000_000, 10_000
    texts = (
        " ".join(f"w{i}" for i in range(k, k + step)) + " she he" * (step // 20)
        for k in range(0, n, step)
    )
    write_jsonl_zst(tmp_path / "a.jsonl.zst", texts)
    found = capped(tmp_path / "a.jsonl.zst", tmp_path / "parts")
    assert found["kept"] == n + n // 10
    assert int(found["peak"]) < 512 << 20
    import duckdb

    files = [str(p) for p in (tmp_path / "parts").glob("*.words.parquet")]
    assert len(files) > 1
    query = "SELECT count(DISTINCT word), sum(n_word) FROM read_parquet($files)"
    row = duckdb.execute(query, {"files": files}).fetchall()[0]
    assert row == (n + 2, n + n // 10)


@pytest.mark.slow
def test_a_document_of_a_gigabyte_stays_under_the_cap(tmp_path: Path) -> None:
    shard = tmp_path / "a.jsonl"
    sentence = b"She told the nurse that tea is hot and queen bees hum.\\n"
    n = (1 << 30) // len(sentence)
    with shard.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(n // 10_000):
            file.write(sentence * 10_000)
        file.write(b'"}\n{"text": "he"}\n')
    assert shard.stat().st_size > 1_000_000_000
    found = capped(shard, tmp_path / "parts")
    assert found["kept"] == 8 * (n // 10_000) * 10_000 + 1
    assert int(found["peak"]) < 512 << 20
