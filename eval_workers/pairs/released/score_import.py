"""Imports released log-probabilities of sentence pairs into ``pair_score``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill, template_problem
from plumbline.eval_workers.pairs.released.gather import Row, finite, gather
from plumbline.eval_workers.pairs.released.released_files import (
    N_PARAMETERS,
    ReleasedFile,
    grouped,
    model_id,
    score_files,
)
from plumbline.eval_workers.scoring.pair_scores import check_imported, text_id
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record
from plumbline.warehouse.storage.store import Store

_LOGPROBS = ("F_logprob", "M_logprob")
_N_TOKENS = ("F_num_tokens", "M_num_tokens")
_SENTENCES = ("template", "F_template", "M_template")
_COLUMNS = (*_SENTENCES, *_LOGPROBS, *_N_TOKENS)
#: Columns of ``pair_score`` that a row gives.
_SCORES = ("logprob_a_nats", "logprob_b_nats", "n_tokens_a", "n_tokens_b", "text_id")
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class ImportedScores:
    """Outcome for one model and benchmark: ``n_pairs = n_scored + n_missing``.

    ``n_pairs`` counts the benchmark's pairs. Imported logs of a harness (``pairs/harness``) have
    such outcomes too: there unnatural pairs count only with a score, and of several outcomes of one
    log only one has the log in ``files``. ``n_missing`` counts pairs without a score,
    ``n_rejected`` unused rows.
    """

    model: str
    benchmark: str
    n_pairs: int
    n_scored: int
    n_rejected: int
    n_missing: int
    files: tuple[str, ...]


def import_scores(
    store: Store, directory: Path, run_id: str, samples: Mapping[str, str] | None = None
) -> list[ImportedScores]:
    """Read every score file under a directory, replacing earlier imports.

    With ``samples``, which maps names of benchmarks to those of samples of them, reads only scores
    of the samples' pairs, unless they were read before. Writes ``model``, ``pair_score`` and
    ``reject`` (stage `import`), each benchmark in one commit; after an error, benchmarks that were
    already imported stay.

    Raises as ``score_files`` and ``check_imported``, and ``BadInput`` for a file that can't be read
    to its end, lacks a column or names another model than its file name.
    """
    files = score_files(directory)
    if samples is not None:
        files = [
            replace(file, benchmark=samples[file.benchmark])
            for file in files
            if file.benchmark in samples
        ]
        files = [file for file in files if not _is_imported(store, file)]
    check_imported(store, [file.benchmark for file in files])
    done = []
    for benchmark, benchmark_files in grouped(files, lambda f: f.benchmark).items():
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        with store.transaction(run_id, f"scores of {benchmark}"):
            for model_files in grouped(benchmark_files, lambda f: f.model).values():
                is_sample = samples is not None
                done.append(_import_model(store, pairs, model_files, run_id, is_sample))
    return done


def _is_imported(store: Store, file: ReleasedFile) -> bool:
    key = _identity(file.model, "")["model_key"]
    return bool(store.units("pair_score", benchmark=file.benchmark, model_key=key))


def _import_model(
    store: Store,
    pairs: Sequence[Row],
    files: Sequence[ReleasedFile],
    run_id: str,
    is_sample: bool,
) -> ImportedScores:
    """Import the files of one model and benchmark, which hold the benchmark's parts.

    Of a sample, lines about other pairs are no rejects.
    """
    model, benchmark = files[0].model, files[0].benchmark
    subject = f"{model}/{benchmark}"
    reject = {"subject": subject, "run_id": run_id}
    by_pair, rejects = gather(files, pairs, _COLUMNS, _figures, reject)
    rejects = [] if is_sample else rejects
    identity = _identity(model, run_id)
    key = identity["model_key"]
    common = {"model_key": key, "model": model, "benchmark": benchmark, "run_id": run_id}
    scores = [
        {"pair_id": pair_id, **common, **dict(zip(_SCORES, figures, strict=True))}
        for pair_id, figures in sorted(by_pair.items())
    ]
    store.publish("model", [identity], unit=key, run_id=run_id)
    store.replace("pair_score", scores, {"benchmark": benchmark, "model_key": key}, run_id)
    store.replace("reject", rejects, {"stage": "import", "subject": subject}, run_id)
    n_pairs, n_scored = len(pairs), len(by_pair)
    names = tuple(file.name for file in files)
    return ImportedScores(
        model, benchmark, n_pairs, n_scored, len(rejects), n_pairs - n_scored, names
    )


def _figures(file: ReleasedFile, row: Record) -> tuple[Any, ...] | str:
    """The values of ``_SCORES``, or the row's problem; ``BadInput`` if it names another model."""
    fields = row.fields
    name = fields.get("model")
    if name is not None and _model_id(name).lower() != file.model.lower():
        difference = f"its model is {name!r}, its file name says {file.model}"
        fix = "rename the file or mend the row"
        raise BadInput(f"{file.path}, row {row.number}", difference, fix)
    logprobs = []
    for column in _LOGPROBS:
        logprobs.append(value := finite(fields[column]))
        if value is None or value > 0:
            return f"{column} is {fields[column]!r}, expected a finite number, 0 or less"
    n_tokens = []
    for column in _N_TOKENS:
        text = fields[column]
        n_tokens.append(int(text) if text.isascii() and text.isdigit() else 0)
        if not n_tokens[-1]:
            return f"{column} is {fields[column]!r}, expected a whole number, 1 or more"
    identity, problem = _text_id(*map(fields.__getitem__, _SENTENCES))
    return problem or (*logprobs, *n_tokens, identity)


_model_id = lru_cache(maxsize=1 << 10)(model_id)  # a file's rows hold one name


# Cached, since all models score the same sentences.
@lru_cache(maxsize=1 << 15)
def _text_id(template: str, sentence_a: str, sentence_b: str) -> tuple[str, str | None]:
    """``text_id`` of a row's two sentences, and the problem with them, if any.

    Each must be the template with the pronouns of its column: exchanged columns would change the
    sign of every log ratio.
    """
    if problem := template_problem(template):
        return "", problem
    if not _is_filled(template, sentence_a, "f"):
        return "", "F_template is not the template with its female pronouns"
    if not _is_filled(template, sentence_b, "m"):
        return "", "M_template is not the template with its male pronouns"
    return text_id({"sentence_a": sentence_a, "sentence_b": sentence_b}), None


def _is_filled(template: str, sentence: str, gender: Gender) -> bool:
    """True if a sentence is the filled template, apart from case, punctuation and spaces.

    Released sentences are in lower case after the first letter, and some lost their quotes.

    >>> _is_filled("'{pronoun} met the CEO.'", "He met the ceo.", "m")
    True
    """
    filled, stored = (_SEPARATORS.sub("", t.lower()) for t in (fill(template, gender), sentence))
    return filled == stored


def _identity(model: str, run_id: str) -> Row:
    """The ``model`` row of released scores; ``n_parameters`` is that of UnStereoEval's models."""
    identity = {"backend": "released", "model": model}
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    more = {"text_form": "released", "n_parameters": N_PARAMETERS.get(model), **described(model)}
    return {"model_key": key, **identity, **more, "run_id": run_id}
