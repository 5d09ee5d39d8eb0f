"""Made-up warehouse rows for the tests of metrics, SQL and report; intervals of means by numpy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
#: Log ratios of two versions: the later one prefers sentence a where the first had no preference.
BEFORE = [0.0] * 30 + [1.0] * 12 + [-1.0] * 18
AFTER = [0.0] * 15 + [1.0] * 30 + [-1.0] * 15


def corpus_row(**given: object) -> Row:
    """A `corpus` row of a failed shard and a counted one."""
    row: Row = {
        "corpus": "novels",
        "source": "counted",
        "rule": "pairs",
        "window_tokens": 10,
        "targets": "gendered",
        "n_shards": 1,
        "n_shards_failed": 1,
        "n_documents": 5,
        "n_rejected": 2,
        **dict.fromkeys(("n_tokens", "n_kept_tokens", "n_words", "n_words_kept", "n_pairs"), 10),
        "min_count": 1,
        "n_tokens_pruned": 0,
        "run_id": "r",
    }
    return {**row, **given}


def shard_row(**given: object) -> Row:
    """A `corpus_shard` row of the counted shard."""
    row: Row = {
        "corpus": "novels",
        "shard": "a.jsonl.zst",
        "fingerprint": "f",
        "status": "counted",
        "error": None,
        "n_documents_in": 7,
        "n_documents": 5,
        "n_rejected": 2,
        **dict.fromkeys(("n_bytes", "n_tokens", "n_kept_tokens", "n_pairs"), 10),
        "seconds": 1.0,
        "run_id": "r",
    }
    return {**row, **given}


def pair(benchmark: str, pair_id: str, **given: object) -> Row:
    """A `benchmark_pair` row with ``given`` columns; without a word it is its own cluster."""
    row: Row = {
        "benchmark": benchmark,
        "pair_id": pair_id,
        "item_id": pair_id,
        "template": "The nurse said {pronoun} left.",
        "sentence_a": "The nurse said she left.",
        "sentence_b": "The nurse said he left.",
        "group_a": "female",
        "group_b": "male",
        "pronoun_first": False,
        "source_file": "made.csv",
        "source_row": 1,
    }
    own = {} if "word" in given else {"cluster": f"pair: {pair_id}"}
    return {**row, **own, **given}


def score(benchmark: str, pair_id: str, ratio: float, model: str = "m", key: str = "") -> Row:
    """A `pair_score` row whose log ratio (a minus b) is exactly ``ratio``."""
    return {
        "model_key": key or f"key-{model}",
        "model": model,
        "benchmark": benchmark,
        "pair_id": pair_id,
        "text_id": "t",
        "logprob_a_nats": ratio,
        "logprob_b_nats": 0.0,
        "n_tokens_a": 5,
        "n_tokens_b": 5,
        "run_id": "r",
    }


def association(benchmark: str, pair_id: str, max_pmi: float | None, corpus: str = "c") -> Row:
    """A `pair_association` row."""
    return {
        "corpus": corpus,
        "contrast": "she/he",
        "benchmark": benchmark,
        "pair_id": pair_id,
        "max_pmi_nats": max_pmi,
        "max_pmi_word": None if max_pmi is None else "nurse",
        "n_words": 3,
        "n_words_defined": 0 if max_pmi is None else 1,
    }


def delta(word: str, value: float, corpus: str = "c") -> Row:
    """A `word_delta` row of the contrast she/he."""
    return {
        "corpus": corpus,
        "contrast": "she/he",
        "word": word,
        "n_word": 100,
        "n_pair_f": 10,
        "n_pair_m": 10,
        "n_defined": 1,
        "delta_nats": value,
    }


def planted(word: str, value: float, corpus: str = "c", world: str = "straight") -> Row:
    """A `planted_word` row."""
    return {
        "corpus": corpus,
        "world": world,
        "word": word,
        "word_class": "noun",
        "planted_delta_nats": value,
    }


def trained(model: str, corpus: str) -> Row:
    """A `trained_model` row."""
    return {
        "model": model,
        "revision": f"revision-{model}",
        "path": f"models/{model}",
        "corpus": corpus,
        "seed": 1,
        "n_parameters": 10,
        "n_steps": 10,
        "n_tokens": 100,
        "loss_start_nats": 6.0,
        "loss_end_nats": 3.0,
        "seconds": 1.0,
        "run_id": "r",
    }


def scored_by(model: str, key: str = "") -> Row:
    """A `model` row: the identity under which ``score`` and ``trained`` know the same model."""
    return {
        "model_key": key or f"key-{model}",
        "model": model,
        "revision": f"revision-{model}",
        "backend": "transformers",
        "backend_version": "1",
        "dtype": "float32",
        "bos_policy": "given",
        "bos_token_id": 0,
        "n_parameters": 10,
        "run_id": "r",
    }


def fill(
    store: Store, table: str, rows: Iterable[Mapping[str, object]], unit: str = "test"
) -> None:
    """Publish rows of one partition as one unit."""
    store.publish(table, list(rows), unit=unit, run_id="r")


def version(store: Store, benchmark: str, key: str, ratios: Iterable[float]) -> None:
    """A version of the model named `mine` with a log ratio for each pair, scored by a new run."""
    pairs = dict(enumerate(ratios))
    pair_ids = set(store.read("benchmark_pair", benchmark=benchmark)["pair_id"].to_pylist())
    if not pair_ids:
        rows = [pair(benchmark, f"p{k}") for k in pairs]
        store.publish("benchmark_pair", rows, unit=benchmark, run_id="r")
    scores = [score(benchmark, f"p{k}", ratio, "tiny", key) for k, ratio in pairs.items()]
    with recorded(store, "score", {}) as run_id:
        model = scored_by("tiny", key) | {"revision": key, "name": "mine", "run_id": run_id}
        store.publish("model", [model], unit=key, run_id=run_id)
        store.publish("pair_score", scores, unit=f"{benchmark} {key}", run_id=run_id)


def error(figures: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float]:
    """Student's point and the jackknife's standard error of the mean."""
    n = len(figures)
    return float(stats.t.ppf(0.975, n - 1)), float(stats.sem(figures)) * math.sqrt(n / (n - 1))


def interval(
    figures: Sequence[float] | np.ndarray[Any, Any],
    ends: tuple[float, float] | None = None,
    most: float = math.inf,
) -> tuple[float, float, float]:
    """Lower end, mean and upper end of the 95% interval as `clustered` has them.

    Of five figures or more, each a cluster of its own. Student's, or on a range with two ``ends``
    those means that the figures are t errors away from, by the means' own errors, as if of ``most``
    rows at most.
    """
    (t, se), mean = error(figures), float(np.mean(figures))
    if ends is None:
        return mean - t * se, mean, mean + t * se
    lowest, highest = ends
    n = min((mean - lowest) * (highest - mean) / se**2 if se > 1e-9 else math.inf, most)
    p = (mean - lowest) / (highest - lowest)
    roots = np.roots([1 + t * t / n, -(2 * p + t * t / n), p * p]).real
    low, high = (lowest + (highest - lowest) * float(root) for root in np.sort(roots))
    return low, mean, high
