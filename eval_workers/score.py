"""Score the pairs of benchmarks with a model: what is missing, in chunks that survive a kill.

A benchmark's missing texts are cut into chunks by their content alone. Each chunk's scores are kept
under ``_work`` as soon as they are there, and the rows are published together when all are: the
same command goes on where it was stopped, and ends with the rows of an undisturbed run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eval_workers.rejects import reject_row
from warehouse.errors import UsageProblem
from warehouse.store import Store, write_file

if TYPE_CHECKING:
    from eval_workers.backends.base import Backend, ModelOptions, TextScore

_CHUNK_TEXTS = 512

Row = dict[str, Any]
#: Called with the benchmark, its texts done, and its texts to do.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Scored:
    """Outcome for one benchmark: ``n_pairs = n_scored + n_rejected``.

    ``n_new`` of the scored pairs were scored by this run.
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

    Writes ``model``, ``pair_score`` and ``reject`` (stage `score`). Raises ``UsageProblem`` for a
    benchmark that is not in the warehouse, and what loading the model raises.
    """
    names = list(dict.fromkeys(benchmarks))
    for name in names:
        if not store.units("benchmark_pair", benchmark=name):
            fix = f"run `plumbline benchmark import {name}` first"
            raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)
    from eval_workers.backends.transformers_backend import TransformersBackend

    backend = TransformersBackend(model, options)
    return [score_benchmark(store, backend, name, run_id, progress) for name in names]


def score_benchmark(
    store: Store, backend: Backend, benchmark: str, run_id: str, progress: Progress | None = None
) -> Scored:
    """Score one benchmark that is in the warehouse; see ``score_benchmarks``.

    A pair whose sentences changed is scored again and its old row goes. A pair of which a sentence
    can't be scored has no row in ``pair_score`` but one in ``reject``; it is tried again next time.
    """
    key = backend.identity.key
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    wanted = {pair["pair_id"]: text_id(pair) for pair in pairs}
    found = store.read("pair_score", benchmark=benchmark, model_key=key).to_pylist()
    kept = [row for row in found if wanted.get(row["pair_id"]) == row["text_id"]]
    done = {row["pair_id"] for row in kept}
    missing = [pair for pair in pairs if pair["pair_id"] not in done]
    work = store.work_directory("score", key, benchmark)
    scores = _score_texts(backend, _texts(missing), work, benchmark, progress)
    identity = {"model_key": key, "model": backend.identity.model, "run_id": run_id}
    new, rejects = _rows(missing, scores, identity)
    if missing:
        _publish_model(store, backend, run_id)
    if new or len(kept) < len(found):
        rows = sorted([*kept, *new], key=lambda row: str(row["pair_id"]))
        partition = {"benchmark": benchmark, "model_key": key}
        store.replace("pair_score", rows, partition, run_id)
    subject = f"{key}/{benchmark}"
    store.replace("reject", rejects, {"stage": "score", "subject": subject}, run_id)
    shutil.rmtree(work)
    n_scored = len(kept) + len(new)
    return Scored(
        benchmark, backend.identity.model, key, len(pairs), n_scored, len(new), len(rejects)
    )


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
) -> dict[str, TextScore]:
    """Scores of all texts, chunk by chunk; chunks that are in ``work`` are not scored again."""
    scores: dict[str, TextScore] = {}
    for chunk in _chunks(texts):
        path = work / f"{_hash(chunk)}.parquet"
        if not path.exists():
            rows = [asdict(score) for score in backend.score(chunk)]
            write_file(path, pa.Table.from_pylist(rows, _CHUNK_SCHEMA))
        scores.update(zip(chunk, _read_chunk(path), strict=True))
        if progress is not None:
            progress(benchmark, len(scores), len(texts))
    return scores


_CHUNK_SCHEMA = pa.schema(
    [("logprob_nats", pa.float64()), ("n_tokens", pa.int64()), ("problem", pa.string())]
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
