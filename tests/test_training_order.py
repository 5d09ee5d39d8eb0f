"""Token files in the order of training: counts by block of steps against the same text by hand."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tokenizers import Tokenizer

from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.counting.verify import run_checks, shard_states, update_command
from plumbline.jobs.evidence.explanation import explain
from plumbline.jobs.kernel import Counter as Counter_
from plumbline.jobs.kernel import tokenize
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.input.token_files import write_sequences
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, score, scored_by
from tests.test_token_files import megatron, model  # noqa: F401  (a fixture)

#: Tokens of a sequence, sequences of a step, steps of a block.
LENGTH, STEP, BLOCK = 32, 3, 10
WINDOW, TARGETS = 10, ("she", "he")
_COMMAND = "from plumbline.pipelines.command.main import entry; entry()"
Counts = tuple[Counter[Any], Counter[Any]]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Documents of 2 to 60 words, in which *she* and *he* are frequent."""
    rng = np.random.default_rng(3)
    vocabulary = ["she", "he", "nurse", "captain", "tea", "house", "wept", "sailed", "naïve"]
    return [" ".join(rng.choice(vocabulary, rng.integers(2, 60))) for _ in range(90)]


def sequences_of(model: Path, texts: Sequence[str]) -> np.ndarray:  # noqa: F811
    """The texts end to end, each after an end of text, in sequences of one length."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokens = [token for text in texts for token in (0, *tokenizer.encode(text).ids)]
    n = len(tokens) // LENGTH
    return np.array(tokens[: n * LENGTH], np.uint16).reshape(n, LENGTH)


def pieces(model: Path, sequence: Sequence[int]) -> list[str]:  # noqa: F811
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    found: list[list[int]] = [[]]
    for token in sequence:
        if token:
            found[-1].append(int(token))
        else:
            found.append([])
    return [tokenizer.decode(ids, skip_special_tokens=False) for ids in found if ids]


def by_hand(texts: Sequence[str]) -> Counts:
    """Words, and their co-occurrences with targets: pairs of positions less than a window apart."""
    words: Counter[Any] = Counter()
    pairs: Counter[Any] = Counter()
    for text in texts:
        kept = tokenize(text, TARGETS)
        words.update(kept)
        for i, a in enumerate(kept):
            for b in kept[i + 1 : i + WINDOW]:
                if b in TARGETS:
                    pairs[a, b] += 1
                if a in TARGETS and a != b:
                    pairs[b, a] += 1
    return words, pairs


def count(where: Path, shards: Sequence[Path], model: Path, **options: Any) -> Store:  # noqa: F811
    store = Store.open(where)
    given = {"targets": "she-he", "tokenizer": str(model), "block_steps": BLOCK, **options}
    given.setdefault("step_sequences", STEP)
    count_corpus(store, CountRequest(corpus="c", shards=tuple(shards), **given))
    return store


def by_step(store: Store) -> dict[int, Counts]:
    found: dict[int, Counts] = {}
    for row in store.read("step_word_count").to_pylist():
        found.setdefault(row["end_step"], (Counter(), Counter()))[0][row["word"]] = row["n_word"]
    for row in store.read("step_pair_count").to_pylist():
        found[row["end_step"]][1][row["word"], row["target"]] = row["n_pair"]
    return found


def whole(store: Store) -> Counts:
    words = {r["word"]: r["n_word"] for r in store.read("word_count").to_pylist()}
    pairs = {(r["word"], r["target"]): r["n_pair"] for r in store.read("pair_count").to_pylist()}
    return Counter(words), Counter(pairs)


def expected(model: Path, read: Sequence[Sequence[int]]) -> dict[int, Counts]:  # noqa: F811
    """The counts by block of sequences in the order in which they are read."""
    n_steps, found = -(-len(read) // STEP), {}
    for start in range(0, len(read), STEP * BLOCK):
        some = read[start : start + STEP * BLOCK]
        end = min(start // STEP + BLOCK, n_steps)
        found[end] = by_hand([piece for sequence in some for piece in pieces(model, sequence)])
    return found


def test_megatron_by_step(model: Path, texts: list[str], tmp_path: Path) -> None:  # noqa: F811
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "text.bin", read)
    store = count(tmp_path / "w", [tmp_path / "text.bin"], model)
    blocks = by_step(store)
    assert blocks == expected(model, read) and len(blocks) > 5
    # All blocks are the corpus, and the corpus is the same pieces counted as documents.
    assert whole(store) == (
        sum((words for words, _ in blocks.values()), Counter()),
        sum((pairs for _, pairs in blocks.values()), Counter()),
    )
    lines = [{"text": piece} for sequence in read for piece in pieces(model, sequence)]
    (tmp_path / "pieces.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    plain = {"tokenizer": "", "step_sequences": 0}
    pieces_store = count(tmp_path / "p", [tmp_path / "pieces.jsonl"], model, **plain)
    assert whole(pieces_store) == whole(store)
    assert not pieces_store.read("step_word_count").num_rows
    (one,), (other,) = (s.read("corpus").to_pylist() for s in (store, pieces_store))
    for total in ("n_documents", "n_rejected", "n_tokens", "n_kept_tokens", "n_pairs"):
        assert one[total] == other[total]
    assert not any(check.n_violations for check in run_checks(store, "c"))
    # The same command again changes nothing, and the ledger knows how it was counted.
    states = shard_states(store, "c", [tmp_path / "text.bin", tmp_path / "pieces.jsonl"])
    command = update_command(store, "c", states)
    assert command and f"--step-sequences {STEP} --block-steps {BLOCK}" in command
    assert by_step(count(tmp_path / "w", [tmp_path / "text.bin"], model)) == blocks
    # Sources are blocks, and sentences are found where they stand.
    rows = explain(store, "c", ["nurse"])
    holding = {f"to step {k}" for k, (words, _) in blocks.items() if words["nurse"]}
    assert {r["source"] for r in rows["word_source"]} == holding
    assert all(r["is_text"] for r in rows["word_snippet"]) and rows["word_snippet"]


def test_a_cut_sequence_loses_the_pairs_across_it(
    model: Path,  # noqa: F811
    texts: list[str],
    tmp_path: Path,
) -> None:
    """Against whole documents: what lies on both sides of a cut no step saw together."""
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "text.bin", read)
    steps = whole(count(tmp_path / "w", [tmp_path / "text.bin"], model))
    documents = pieces(model, read.ravel())
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in documents))
    plain = {"tokenizer": "", "step_sequences": 0}
    lines = whole(count(tmp_path / "p", [tmp_path / "a.jsonl"], model, **plain))
    assert lines == by_hand(documents)
    cut = by_hand([piece for sequence in read for piece in pieces(model, sequence)])
    assert steps == cut
    share = 1 - sum(cut[1].values()) / sum(lines[1].values())
    assert 0.05 < share < 0.5, share  # of sequences as short as these


def test_limits_and_pruning(model: Path, texts: list[str], tmp_path: Path) -> None:  # noqa: F811
    """Parts, a limit of memory and rare words change no count of the words that stay."""
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "document.bin", read)
    data = (tmp_path / "document.bin").read_bytes()
    (tmp_path / "document.bin").unlink()
    size = len(data) // 3 | 1
    names = [tmp_path / f"document-{k:05}-of-00003.bin" for k in range(4)]
    for k, name in enumerate(names):
        name.write_bytes(data[k * size : (k + 1) * size])
    store = count(tmp_path / "w", names, model, min_count=200, evidence=False)
    kept = set(store.read("word_count")["word"].to_pylist())
    blocks = {
        step: (words, Counter({k: n for k, n in pairs.items() if k[0] in kept}))
        for step, (words, pairs) in expected(model, read).items()
    }
    assert by_step(store) == blocks
    assert 0 < len(kept) < len(next(iter(blocks.values()))[0])
    assert not any(check.n_violations for check in run_checks(store, "c"))


@pytest.mark.parametrize("with_header", [pytest.param(False, marks=pytest.mark.slow), True])
def test_arrays_in_an_order(
    model: Path,  # noqa: F811
    texts: list[str],
    tmp_path: Path,
    with_header: bool,
) -> None:
    """Several arrays and the order of their sequences, some twice and some never."""
    read = sequences_of(model, texts)
    order = np.random.default_rng(1).permutation(len(read))[:-7].astype(np.uint32)
    order[5] = order[50]
    parts = [read[:40], read[40:]]
    paths = [tmp_path / "a" / "part.npy", tmp_path / "b" / "part.npy"]
    for path, part in zip(paths, parts, strict=True):
        path.parent.mkdir()
        tail = np.append(part.ravel(), np.full(5, 7, np.uint16))  # too short to be read
        if with_header:
            np.save(path, tail)
        else:
            tail.tofile(path)
    index = tmp_path / "global_indices.npy"
    _ = np.save(index, order) if with_header else order.tofile(index)
    options = {"sequence_tokens": LENGTH, "order": str(index)}
    store = count(tmp_path / "w", paths, model, **options)
    assert by_step(store) == expected(model, read[order])
    assert not any(check.n_violations for check in run_checks(store, "c"))
    # Without an order they are read as they lie.
    del options["order"]
    assert by_step(count(tmp_path / "v", paths, model, **options)) == expected(model, read)
    with pytest.raises(UsageProblem, match="--replace"):
        count(tmp_path / "v", paths[::-1], model, **options)


def test_what_is_no_order(model: Path, texts: list[str], tmp_path: Path) -> None:  # noqa: F811
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "a.bin", read)
    write_sequences(tmp_path / "b.bin", read)
    read.tofile(tmp_path / "a.npy")
    read.tofile(tmp_path / "b.npy")
    (tmp_path / "a.jsonl").write_text('{"text": "she"}\n')
    np.array([0, len(read)], np.uint32).tofile(tmp_path / "order.npy")
    for names, options, problem in [
        (["a.bin", "b.bin"], {}, "several indexes"),
        (["a.bin", "a.npy"], {}, "shards must be all .bin or all .npy"),
        (["a.jsonl"], {}, "shards must be all .bin or all .npy"),
        (["a.bin"], {"order": str(tmp_path / "order.npy")}, "leave out --order"),
        (["a.npy"], {}, "give the training's --sequence-tokens"),
        (["a.npy"], {"sequence_tokens": LENGTH, "order": str(tmp_path / "order.npy")}, "entry 2"),
        (["a.npy"], {"sequence_tokens": LENGTH, "order": str(tmp_path / "no.npy")}, "no.npy"),
        (["a.npy", "b.npy"], {"sequence_tokens": LENGTH}, "has the content of"),
    ]:
        with pytest.raises((BadInput, UsageProblem), match=problem):
            count(tmp_path / "w", [tmp_path / name for name in names], model, **options)


def test_written_as_megatron_does(tmp_path: Path) -> None:
    read = np.arange(24, dtype=np.uint16).reshape(4, 6)
    write_sequences(tmp_path / "ours.bin", read)
    megatron(tmp_path / "theirs.bin", read.tolist(), range(5))
    for suffix in (".bin", ".idx"):
        ours, theirs = (tmp_path / f"{name}{suffix}" for name in ("ours", "theirs"))
        assert ours.read_bytes() == theirs.read_bytes()


def delta_of(found: Counts, word: str) -> float | None:
    words, pairs = found
    near_f, near_m = pairs[word, "she"], pairs[word, "he"]
    if not (near_f and near_m):
        return None
    return math.log(near_f / words["she"]) - math.log(near_m / words["he"])


def together(some: Sequence[Counts]) -> Counts:
    words, pairs = zip(*some, strict=True)
    return sum(words, Counter()), sum(pairs, Counter())


def test_lean_so_far_and_in_a_block(
    model: Path,  # noqa: F811
    texts: list[str],
    tmp_path: Path,
) -> None:
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "text.bin", read)
    store = count(tmp_path / "w", [tmp_path / "text.bin"], model)
    associate(store, "c")
    blocks, expected_rows = by_step(store), {}
    for n, step in enumerate(blocks, 1):
        for word in blocks[step][0]:
            so_far = together([blocks[k] for k in list(blocks)[:n]])
            expected_rows["block", step, word] = delta_of(blocks[step], word)
            expected_rows["so far", step, word] = delta_of(so_far, word)
    rows = rows_of(store.root, "FROM step_delta")
    found = {(r["span"], r["end_step"], r["word"]): r for r in rows}
    wanted = {key: delta for key, delta in expected_rows.items() if delta is not None}
    assert {k: found[k]["delta_nats"] for k in wanted} == pytest.approx(wanted, abs=1e-12)
    later = {k for k in found if k not in wanted}  # words that this block lacks
    assert all(k[0] == "so far" and k[2] not in blocks[k[1]][0] for k in later)
    # At the end of the text it is the lean of the corpus, with its error.
    last = {w: r for (span, step, w), r in found.items() if (span, step) == ("so far", max(blocks))}
    whole_rows = rows_of(store.root, "FROM word_delta WHERE contrast = 'she/he'")
    assert len(whole_rows) == len(last)
    for row in whole_rows:
        for name in ("n_pair_f", "n_pair_m", "delta_nats", "delta_nats_se"):
            assert last[row["word"]][name] == pytest.approx(row[name], abs=1e-12)


def partial_slopes(y: np.ndarray, before: np.ndarray, block: np.ndarray) -> list[float]:
    """Least squares on both at once: slopes, and the interval of their difference (HC1)."""
    x = np.column_stack([np.ones(len(y)), before, block])
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ x.T @ y
    meat = (x * (y - x @ beta)[:, None] ** 2).T @ x
    covariance = inverse @ meat @ inverse * len(y) / (len(y) - 3)
    contrast = np.array([0, -1, 1])
    half = stats.t.ppf(0.975, len(y) - 3) * np.sqrt(contrast @ covariance @ contrast)
    difference = contrast @ beta
    return [beta[1], beta[2], difference, difference - half, difference + half]


def test_does_a_checkpoint_follow_what_it_read_last(store: Store) -> None:
    """Against least squares; checkpoints between blocks have the last whole one."""
    rng = np.random.default_rng(8)
    words = [f"w{k}" for k in range(40)]
    counts = rng.integers(5, 40, (3, len(words), 2))  # block, word, target
    pairs = [
        {"corpus": "c", "end_step": 10 * b + 10, "word": w, "target": t, "n_pair": int(n)}
        for b, block in enumerate(counts)
        for w, row in zip(words, block, strict=True)
        for t, n in zip(TARGETS, row, strict=True)
    ]
    steps = [
        {"corpus": "c", "end_step": 10 * b + 10, "word": t, "n_word": 1000 * (b + 1) + 7 * k}
        for b in range(3)
        for k, t in enumerate(TARGETS)
    ]
    fill(store, "step_pair_count", pairs)
    fill(store, "step_word_count", steps)
    listed = {"word_list": "she-he", "position": 1, "word_a": "she", "word_b": "he", "weight": 1.0}
    fill(store, "word_list", [{"corpus": "c", "source": "made", **listed}])
    fill(store, "word_delta", [delta("w0", 0.5)])
    row = {c.name: None if c.nullable else 0 for c in TABLES["corpus"].columns}
    row |= {"corpus": "c", "source": "counted", "rule": "pairs", "window_tokens": 10, "run_id": "r"}
    fill(store, "corpus", [row])
    fill(store, "benchmark_pair", [pair("b", w, word=w) for w in words])
    ratio = rng.normal(0, 1, (3, len(words)))
    at = {9: 0, 20: 1, 25: 2}
    for step, n in at.items():
        key = f"key-{step}"
        fill(store, "model", [scored_by("m", f"step{step}", key) | {"step": step}], key)
        scores = [score("b", w, float(x), "m", key) for w, x in zip(words, ratio[n], strict=True)]
        fill(store, "pair_score", scores)
    near = counts.cumsum(axis=0)
    of_targets = np.array([row["n_word"] for row in steps]).reshape(3, 2)
    ends = of_targets.cumsum(axis=0)
    (alone, so_far) = (
        np.log(n[..., 0] / n[..., 1]) - np.log(of[:, 0] / of[:, 1])[:, None]
        for n, of in ((counts, of_targets), (near, ends))
    )
    found = {(r["step"], r["block"]): r for r in rows_of(store.root, "FROM step_lean")}
    # At step 9 no block has ended; before the first one there is no text.
    wanted = {(20, "last"): 1, (20, "next"): 2, (25, "last"): 1, (25, "next"): 2}
    assert found.keys() == wanted.keys()
    names = ("partial_before", "partial_block", "difference", "difference_low", "difference_high")
    for (step, block), b in wanted.items():
        row, y = found[step, block], ratio[at[step]]
        assert row["n_words"] == len(words)
        assert [row[n] for n in names] == pytest.approx(
            partial_slopes(y, so_far[b - 1], alone[b]), rel=2e-4
        )
        for name, x in {"before": so_far[b - 1], "block": alone[b]}.items():
            fit = stats.linregress(x, y)
            assert row[f"slope_{name}"] == pytest.approx(fit.slope)
            assert row[f"r_{name}"] == pytest.approx(fit.rvalue)


def test_a_stop_in_the_middle_leaves_no_trace(
    model: Path,  # noqa: F811
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "text.bin", read)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Counter_, "result", stop)  # blocks but the last have their files by then
        with pytest.raises(Interrupted):
            count(tmp_path / "w", [tmp_path / "text.bin"], model)
    left = list((tmp_path / "w").rglob("*.words.parquet"))
    assert len(left) > 3
    store = count(tmp_path / "w", [tmp_path / "text.bin"], model)
    assert by_step(store) == expected(model, read)
    assert not any(file.exists() for file in left)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_same_blocks(model: Path, texts: list[str], tmp_path: Path) -> None:  # noqa: F811
    read = sequences_of(model, texts)
    write_sequences(tmp_path / "text.bin", read)
    shard, where = str(tmp_path / "text.bin"), str(tmp_path / "spark")
    given = ["--tokenizer", str(model), "--targets", "she-he", "--step-sequences", str(STEP)]
    given += ["--block-steps", str(BLOCK), "--warehouse", where, "--master", "local[2]"]
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "corpus", "count", shard, "--corpus", "c", *given],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert by_step(Store.open(where)) == expected(model, read)
