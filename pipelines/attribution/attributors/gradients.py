"""Influence functions of the model itself: EK-FAC, by kronfluence."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import reading
from plumbline.pipelines.attribution.contract import Floats, Progress, Query, Subject, silent
from plumbline.warehouse.distribution import install_line
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.storage.run_records import config_hash

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Tokens
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend
    from plumbline.eval_workers.training.influence import Items

DESCRIPTION = "influence functions of the model (EK-FAC, by kronfluence)"
UNIT = "nats, to first order at the end of training"
#: Tokens, BOS included, used of each document if it isn't known what the model read.
_MOST_TOKENS = 256

Ints = NDArray[np.int64]


def scores(queries: Sequence[Query], subject: Subject, progress: Progress = silent) -> Floats:
    """Influence of a document's tokens in each row, weighted by its share of all reads, summed.

    For a model that was trained elsewhere, the first tokens of every document count as one row.
    """
    if importlib.util.find_spec("kronfluence") is None:
        raise MissingComponent("kronfluence", "is not installed", install_line("attribution"))
    from plumbline.eval_workers.models.transformers_backend import TransformersBackend
    from plumbline.eval_workers.training.influence import N_FITTED, influence

    backend = TransformersBackend(subject.model, ModelOptions())
    if not backend.longest_in_tree:
        problem = f"{backend.config.model_type} can't be attributed by gradients"
        raise UsageProblem(f"model {subject.model}", problem, "give another --method")
    items, document, times = _items(subject, backend)
    if not len(items):
        raise UsageProblem(f"corpus {subject.text.corpus!r}", "holds nothing that the model read")
    drawn = np.random.default_rng(subject.seed).permutation(len(items))[:N_FITTED]
    preferences = [_tokens(query, backend) for query in queries]
    fitted_to = {"text": subject.text.evidence.corpus["run_id"], "seed": subject.seed}
    directory = subject.store.work_directory(
        "attribution", f"{backend.identity.key}-{config_hash(fitted_to)}"
    )
    item_scores = influence(
        backend,
        items.only(np.sort(drawn)),
        items,
        preferences,
        directory,
        config_hash({"queries": str(queries)}),
        seed=subject.seed,
        progress=progress,
    )
    n_reads = max(float(times.sum()), 1.0)
    per_document = np.zeros((len(queries), len(subject.text)))
    for row, of_items in zip(per_document, item_scores, strict=True):
        row += np.bincount(document, of_items * times / n_reads, len(subject.text))
    return per_document


def _tokens(query: Query, backend: TransformersBackend) -> list[tuple[Tokens, float]]:
    """The sentences of a query with the weights of their log-probabilities."""
    encoded, weighted = backend.encoded([text for text, _ in query.texts()]), []
    for tokens, (text, weight) in zip(encoded, query.texts(), strict=True):
        if isinstance(tokens, str):
            raise UsageProblem(f"sentence {text!r}", f"the model can't score it: {tokens}")
        weighted.append((tokens, weight))
    return weighted


def _items(subject: Subject, backend: TransformersBackend) -> tuple[Items, Ints, Ints]:
    """Training rows split by document: the items, each item's document and number of reads."""
    from plumbline.eval_workers.training.influence import NO_TARGET, Items

    text = subject.text
    if text.n_read is not None:
        read = reading(Path(subject.model), text.shards, text.evidence.form)
        document, rows = text.numbers(read.place), read.rows.astype(np.int64)
        row_times = read.n_times
    else:
        rows, document = _first_tokens(subject, backend)
        row_times = np.ones(len(rows), np.int64)
    # The target at a position is the next token.
    target = np.concatenate([rows[:, 1:], np.zeros((len(rows), 1), np.int64)], axis=1)
    target_document = np.concatenate([document[:, 1:], np.full((len(rows), 1), -1)], axis=1)
    cells = np.unique(
        np.stack([np.repeat(np.arange(len(rows)), rows.shape[1]), target_document.ravel()], axis=1),
        axis=0,
    )
    cells = cells[(cells[:, 1] >= 0) & (row_times[cells[:, 0]] > 0)]
    row, item_document = cells.T
    targets = np.where(target_document[row] == item_document[:, None], target[row], NO_TARGET)
    return Items(rows[row], targets), item_document, row_times[row]


def _first_tokens(subject: Subject, backend: TransformersBackend) -> tuple[Ints, Ints]:
    """A row per document (BOS, first tokens, padding); each token's document, -1 for padding."""
    texts = [text[: 8 * _MOST_TOKENS] for text in subject.text.texts()]
    rows = np.full((len(texts), _MOST_TOKENS), backend.identity.bos_token_id)
    document = np.full(rows.shape, -1)
    encoded = backend.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    for k, ids in enumerate(encoded):
        n = min(len(ids) + 1, _MOST_TOKENS)
        rows[k, 1:n] = ids[: n - 1]
        document[k, :n] = k
    return rows, document
