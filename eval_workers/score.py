"""Score the pairs of benchmarks with a model: what is missing, in chunks that survive a kill.

A benchmark's missing texts are cut into chunks by their content alone. Each chunk's scores are kept
under ``_work`` as soon as they are there, and the rows are published together when all are: the
same command goes on where it was stopped, and ends with the rows of an undisturbed run. Any number
of workers may run that command on one warehouse at the same time: each chunk is claimed by one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval_workers.claims import claimed, claimed_in_turn
from eval_workers.rejects import reject_row
from eval_workers.text_form import pair_in_form
from eval_workers.token_rows import Sentences, pairs_with_tokens, publish_tokens
from warehouse.errors import UsageProblem
from warehouse.store import Store, write_file

if TYPE_CHECKING:
    from eval_workers.backends.base import Backend, Identity, ModelOptions, TextScore

_CHUNK_TEXTS = 512
_WAIT_S = 0.2

Row = dict[str, Any]
#: Called with the benchmark, its texts done, and its texts to do.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Scored:
    """Outcome for one benchmark: ``n_pairs = n_scored + n_rejected``.

    ``n_new`` of the scored pairs were published by this run: of several workers, the last one has
    them all.
    """

    benchmark: str
    model: str
    model_key: str
    n_pairs: int
    n_scored: int
    n_new: int
    n_rejected: int


def score_benchmarks(
    store: Store,
    model: str,
    benchmarks: Sequence[str],
    options: ModelOptions,
    run_id: str,
    progress: Progress | None = None,
) -> list[Scored]:
    """Score all pairs of the benchmarks that have no score under this model's identity.

    Writes ``model``, ``pair_score`` and ``reject`` (stage `score`), with ``options.per_token``
    also ``token_logprob``, for which pairs that have a score but no tokens are scored again.

    Raises ``UsageProblem`` for a benchmark that is not in the warehouse, and what loading the
    model raises.
    """
    names = list(dict.fromkeys(benchmarks))
    for name in names:
        if not store.units("benchmark_pair", benchmark=name):
            fix = f"run `plumbline benchmark import {name}` first"
            raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)
    from eval_workers.backends import open_backend

    backend = open_backend(model, options)
    rest = (run_id, progress, options.per_token)
    return [score_benchmark(store, backend, name, *rest) for name in names]


def score_benchmark(
    store: Store,
    backend: Backend,
    benchmark: str,
    run_id: str,
    progress: Progress | None = None,
    per_token: bool = False,
) -> Scored:
    """Score one benchmark that is in the warehouse; see ``score_benchmarks``.

    A pair whose sentences changed is scored again and its old row goes. A pair of which a sentence
    can't be scored has no row in ``pair_score`` but one in ``reject``; it is tried again next time.
    """
    key = backend.identity.key
    while True:
        work = store.work_directory("score", key, benchmark)
        texts = _texts(_state(store, backend.identity, benchmark, per_token).missing)
        _score_texts(backend, texts, work, benchmark, progress)
        # Beside the chunks, which go once they are published.
        with claimed_in_turn(work.with_name(f"{work.name}.claim")):
            state = _state(store, backend.identity, benchmark, per_token)
            chunks = _chunk_files(work, _texts(state.missing))
            if all(path.exists() for path in chunks):
                return _publish(store, backend, state, chunks, run_id, per_token)
        # Another worker has published meanwhile: on with what it left.


@dataclass(frozen=True)
class _State:
    """Pairs of a benchmark as scored, the rows of ``pair_score`` that hold, the pairs without."""

    benchmark: str
    pairs: list[Row]
    found: list[Row]
    kept: list[Row]
    missing: list[Row]


def _state(store: Store, identity: Identity, benchmark: str, per_token: bool) -> _State:
    key, form = identity.key, identity.text_form
    written = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    pairs = [pair_in_form(pair, form) for pair in written]
    wanted = {pair["pair_id"]: text_id(pair) for pair in pairs}
    found = store.read("pair_score", benchmark=benchmark, model_key=key).to_pylist()
    kept = [row for row in found if wanted.get(row["pair_id"]) == row["text_id"]]
    if per_token:
        have = pairs_with_tokens(store, key, benchmark)
        kept = [row for row in kept if (row["pair_id"], row["text_id"]) in have]
    done = {row["pair_id"] for row in kept}
    missing = [pair for pair in pairs if pair["pair_id"] not in done]
    return _State(benchmark, pairs, found, kept, missing)


def _publish(
    store: Store,
    backend: Backend,
    state: _State,
    chunks: dict[Path, list[str]],
    run_id: str,
    per_token: bool,
) -> Scored:
    """Publish the rows of all chunks, and forget these."""
    key, benchmark = backend.identity.key, state.benchmark
    scores: dict[str, TextScore] = {}
    for path, chunk in chunks.items():
        scores.update(zip(chunk, _read_chunk(path), strict=True))
    identity = {"model_key": key, "model": backend.identity.model, "run_id": run_id}
    new, rejects = _rows(state.missing, scores, identity)
    if state.missing:
        _publish_model(store, backend, run_id)
    if new or len(state.kept) < len(state.found):
        # Tokens first: without its row of `pair_score` a pair is scored again.
        tokens = _sentences(state.missing, new, scores) if per_token else {}
        publish_tokens(store, backend, benchmark, state.kept, tokens, run_id)
        rows = sorted([*state.kept, *new], key=lambda row: str(row["pair_id"]))
        partition = {"benchmark": benchmark, "model_key": key}
        store.replace("pair_score", rows, partition, run_id)
    subject = f"{key}/{benchmark}"
    store.replace("reject", rejects, {"stage": "score", "subject": subject}, run_id)
    shutil.rmtree(store.work_directory("score", key, benchmark))
    n_scored = len(state.kept) + len(new)
    model = backend.identity.model
    return Scored(benchmark, model, key, len(state.pairs), n_scored, len(new), len(rejects))


def text_id(pair: Row) -> str:
    """Hash of both sentences as they are scored (16 hex digits).

    >>> pair = {"sentence_f": "She ran.", "sentence_m": "He ran."}
    >>> text_id(pair) == text_id({**pair, "sentence_m": "He ran!"})
    False
    """
    return _hash([pair["sentence_f"], pair["sentence_m"]])


def _hash(texts: list[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _texts(pairs: list[Row]) -> list[str]:
    """Every sentence once, the longest first, in an order that depends on nothing else."""
    unique = {pair[column] for pair in pairs for column in ("sentence_f", "sentence_m")}
    return sorted(unique, key=lambda text: (-len(text), text))


def _score_texts(
    backend: Backend, texts: list[str], work: Path, benchmark: str, progress: Progress | None
) -> None:
    """Score chunk by chunk until all are in ``work`` or it is gone.

    Chunks that are there, or that another worker holds, are left to it.
    """
    chunks = _chunk_files(work, texts)
    while (todo := [path for path in chunks if not path.exists()]) and work.is_dir():
        n_scored = 0
        for path in todo:
            with claimed(path.with_suffix(".claim")) as mine:
                if mine and not path.exists():
                    rows = [asdict(score) for score in backend.score(chunks[path])]
                    write_file(path, pa.Table.from_pylist(rows, _CHUNK_SCHEMA))
                    n_scored += 1
            if progress is not None:
                n_done = sum(len(chunk) for path, chunk in chunks.items() if path.exists())
                progress(benchmark, n_done, len(texts))
        if not n_scored:
            time.sleep(_WAIT_S)


def _chunk_files(work: Path, texts: list[str]) -> dict[Path, list[str]]:
    """Chunks of the texts by the file that is to hold their scores."""
    return {work / f"{_hash(chunk)}.parquet": chunk for chunk in _chunks(texts)}


_CHUNK_SCHEMA = pa.schema(
    [
        ("logprob_nats", pa.float64()),
        ("token_ids", pa.list_(pa.int64())),
        ("token_logprobs_nats", pa.list_(pa.float32())),
        ("problem", pa.string()),
    ]
)


def _read_chunk(path: Path) -> Iterator[TextScore]:
    from eval_workers.backends.base import TextScore

    return (TextScore(**row) for row in pq.read_table(path, schema=_CHUNK_SCHEMA).to_pylist())


def _chunks(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _CHUNK_TEXTS):
        yield texts[start : start + _CHUNK_TEXTS]


def _rows(
    pairs: list[Row], scores: dict[str, TextScore], identity: Row
) -> tuple[list[Row], list[Row]]:
    """Rows of ``pair_score``, and of ``reject`` for pairs with a sentence that has no score."""
    scored, rejects = [], []
    for pair in pairs:
        f, m = scores[pair["sentence_f"]], scores[pair["sentence_m"]]
        if f.problem or m.problem:
            rejects.append({**_reject(pair, f, m, identity), "run_id": identity["run_id"]})
            continue
        scored.append(
            {
                **identity,
                "benchmark": pair["benchmark"],
                "pair_id": pair["pair_id"],
                "text_id": text_id(pair),
                "logprob_f_nats": f.logprob_nats,
                "logprob_m_nats": m.logprob_nats,
                "n_tokens_f": f.n_tokens,
                "n_tokens_m": m.n_tokens,
            }
        )
    return scored, rejects


def _sentences(
    pairs: list[Row], new: list[Row], scores: dict[str, TextScore]
) -> dict[str, Sentences]:
    """Both scores of the pairs that have new rows."""
    by_id = {pair["pair_id"]: pair for pair in pairs}
    return {
        row["pair_id"]: Sentences(
            row["text_id"], *(scores[by_id[row["pair_id"]][f"sentence_{side}"]] for side in "fm")
        )
        for row in new
    }


def _reject(pair: Row, f: TextScore, m: TextScore, identity: Row) -> dict[str, object]:
    which, score = ("female", f) if f.problem else ("male", m)
    return reject_row(
        stage="score",
        subject=f"{identity['model_key']}/{pair['benchmark']}",
        source_file=pair["source_file"],
        source_row=pair["source_row"],
        reason=f"pair {pair['pair_id']}, {which} sentence: {score.problem}",
        excerpt=pair["sentence_f"] if f.problem else pair["sentence_m"],
    )


def _publish_model(store: Store, backend: Backend, run_id: str) -> None:
    """Record the identity, unless an earlier run did."""
    key = backend.identity.key
    if key in store.units("model"):
        return
    row = {"model_key": key, **asdict(backend.identity), "run_id": run_id}
    row["n_parameters"] = backend.n_parameters
    store.publish("model", [row], unit=key, run_id=run_id)
