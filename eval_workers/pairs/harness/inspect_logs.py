"""Reads log-probabilities from logs of Inspect (``.eval`` and ``.json``) into ``pair_score``.

A log has them if log-probabilities of the prompt were requested (``prompt_logprobs``, which vLLM's
completions give). Log-probabilities of replies are not read. Logs that ``plumbline report export``
wrote have them in the metadata of each pair's sample.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.benchmarks.own.file_rows import SourceRow
from plumbline.eval_workers.pairs.harness.documents import (
    at,
    json_document,
    logs_below,
    zipped_documents,
)
from plumbline.eval_workers.pairs.harness.every_eval_ever_records import import_own, model_row
from plumbline.eval_workers.pairs.harness.logged_pairs import PairLog
from plumbline.eval_workers.pairs.harness.logged_texts import (
    LoggedText,
    ScoredBy,
    identity,
    import_texts,
    logprob_of,
)
from plumbline.eval_workers.pairs.released.score_import import ImportedScores
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

#: Key of the benchmark's name in the metadata of our logs.
OURS = "plumbline_benchmark"
#: Parts of a sample that are read.
_READ = ("id", "input", "choices", "output", "metadata", "attachments")
_ATTACHED = "attachment://"
_NO_LOGPROBS = "the log holds no log-probability of a prompt"
_FIX = (
    "run plumbline_sentences.py of `plumbline benchmark export --to inspect` on a completions "
    "server, or ask with `plumbline score choose`"
)


def import_inspect(store: Store, directory: Path, run_id: str) -> list[ImportedScores]:
    """Read all logs below a directory, grouped by model. The package of Inspect is not needed.

    The model's key is a hash of its name, arguments and address, and of Inspect's version; the
    backend is `inspect`. Other JSON is skipped. Of logs that Plumbline wrote, the latest per model
    and benchmark counts. Raises as ``import_texts``; for logs that Plumbline wrote as
    ``import_records``; and ``BadInput`` without any log and for a file that can't be read.
    """
    models: dict[str, ScoredBy] = {}
    own_logs: dict[tuple[str, str], tuple[str, PairLog]] = {}  # creation time and log of the latest
    for path in logs_below(directory, ("*.eval", "*.json")):
        header, samples = _read(path)
        details = at(header, "eval")
        model = at(details, "model")
        if not isinstance(model, str):
            continue  # other JSON that lies beside logs, such as a task's
        name = path.relative_to(directory).as_posix()
        if (benchmark := at(details, "metadata", OURS)) and at(details, "model_args", "model_key"):
            dated = str(at(details, "created")), _own(path, name, details, samples)
            key = str(benchmark), str(dated[1].identity["model_key"])
            own_logs[key] = max(dated, own_logs.get(key, dated), key=lambda entry: entry[0])
            continue
        version = at(details, "packages", "inspect_ai")
        settings = {name: at(details, name) for name in ("model_args", "model_base_url")}
        row = identity("inspect", model, f"inspect_ai {version}" if version else None, **settings)
        texts = [LoggedText(name, 1, "", problem=_NO_LOGPROBS)]
        if any(_tokens(sample) for sample in samples):
            texts = [*_texts(name, samples)]
        earlier = models.get(row["model_key"], ScoredBy(row, []))
        models[row["model_key"]] = ScoredBy(row, [*earlier.texts, *texts])
    if not models and not own_logs:
        raise BadInput(f"{directory}", "holds no log of Inspect", "give the directory of its logs")
    done = import_own(store, [log for _, log in own_logs.values()], run_id)
    return [*done, *(import_texts(store, models.values(), run_id, _FIX) if models else [])]


def _own(path: Path, name: str, details: Any, samples: list[Any]) -> PairLog:
    """A log that Plumbline wrote, with its samples in the form of a record's instances."""
    if at(details, "metadata", "checksum") != checksum(samples):
        raise BadInput(f"{path}", "has other samples than were written", "get it again")
    rows = []
    for k, sample in enumerate(samples, start=1):
        choices, metadata = at(sample, "choices"), at(sample, "metadata") or {}
        texts = {name: x if isinstance(x, str) else json.dumps(x) for name, x in metadata.items()}
        fields = {"sample_id": at(sample, "id"), "input": {"choices": choices}, "metadata": texts}
        rows.append(SourceRow(name, k, fields))
    identity = {**model_row(at(details, "model_args") or {}), "model": at(details, "model")}
    return PairLog(path, name, str(at(details, "metadata", OURS)), identity, rows)


def checksum(samples: Sequence[Any]) -> str:
    """SHA-256 of the ids, sentences and figures of samples; their order does not matter."""
    parts = ([at(sample, name) for name in ("id", "choices", "metadata")] for sample in samples)
    texts = sorted(json.dumps(part, sort_keys=True) for part in parts)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _read(path: Path) -> tuple[Any, list[Any]]:
    """A log's header and samples; those of an archive are sorted by the names of their entries."""
    if path.suffix == ".json":
        whole = json_document(path)
        samples = at(whole, "samples")
        return whole, samples if isinstance(samples, list) else []
    header, samples = None, []
    for name, document in zipped_documents(path):
        if name == "header.json":
            header = document
        elif name.startswith("samples/"):  # without its events, the largest part
            samples.append({part: at(document, part) for part in _READ})
    return header, samples


def _tokens(sample: Any) -> list[Any]:
    tokens = at(sample, "output", "choices", 0, "prompt_logprobs", "content")
    return tokens if isinstance(tokens, list) else []


def _texts(file: str, samples: list[Any]) -> Iterator[LoggedText]:
    for k, sample in enumerate(samples, start=1):
        text = at(sample, "input")
        text = text if isinstance(text, str) else json.dumps(text)
        if text.startswith(_ATTACHED):
            text = str(at(sample, "attachments", text.removeprefix(_ATTACHED)))
        sentence = text.removeprefix(str(at(sample, "metadata", "bos") or ""))
        tokens = [(str(at(t, "token")), at(t, "logprob")) for t in _tokens(sample)]
        if not tokens or not all(isinstance(value, int | float) for _, value in tokens):
            problem = "the sample has no log-probability of its prompt"
            yield LoggedText(file, k, sentence, problem=problem)
        elif isinstance(result := logprob_of(sentence, tokens), str):
            yield LoggedText(file, k, sentence, problem=result)
        else:
            yield LoggedText(file, k, sentence, *result)
