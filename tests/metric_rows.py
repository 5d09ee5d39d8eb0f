"""Made-up warehouse rows for the tests of metrics, SQL and report; intervals of means by numpy."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store

Row = dict[str, object]
#: Log ratios of two versions: the later one prefers sentence a where the first had no preference.
BEFORE = [0.0] * 30 + [1.0] * 12 + [-1.0] * 18
AFTER = [0.0] * 15 + [1.0] * 30 + [-1.0] * 15


def made_row(table: str, **given: object) -> Row:
    """A row of a table; a column not given is `x`, false or 1, or NULL where that may be."""
    blanks = {"text": "x", "bool": False}
    columns = [column for column in TABLES[table].columns if not column.nullable]
    return {column.name: blanks.get(column.kind, 1) for column in columns} | given


def corpus_row(**given: object) -> Row:
    """A `corpus` row of a failed shard and a counted one."""
    counts = ("n_tokens", "n_kept_tokens", "n_words", "n_words_kept", "n_pairs")
    row = {"corpus": "novels", "source": "counted", "rule": "pairs", "window_tokens": 10}
    row |= {"targets": "gendered", "n_documents": 5, "n_rejected": 2, "min_count": 1}
    return made_row("corpus", **row, **dict.fromkeys(counts, 10), n_tokens_pruned=0) | given


def shard_row(**given: object) -> Row:
    """A `corpus_shard` row of the counted shard."""
    row = {"corpus": "novels", "shard": "a.jsonl.zst", "status": "counted", "n_documents_in": 7}
    row |= {"n_documents": 5, "n_rejected": 2}
    return made_row("corpus_shard", **row | given)


def pair(benchmark: str, pair_id: str, **given: object) -> Row:
    """A `benchmark_pair` row with ``given`` columns; without a word it is its own cluster."""
    row = {"benchmark": benchmark, "pair_id": pair_id, "item_id": pair_id}
    row |= {"group_a": "female", "group_b": "male", "template": "The nurse said {pronoun} left."}
    row |= {"sentence_a": "The nurse said she left.", "sentence_b": "The nurse said he left."}
    row |= {"source_file": "made.csv"}
    own = {} if "word" in given else {"cluster": f"pair: {pair_id}"}
    return made_row("benchmark_pair", **row | own | given)


def score(benchmark: str, pair_id: str, ratio: float, model: str = "m", key: str = "") -> Row:
    """A `pair_score` row whose log ratio (a minus b) is exactly ``ratio``."""
    row = {"model_key": key or f"key-{model}", "model": model, "benchmark": benchmark}
    row |= {"pair_id": pair_id, "text_id": "t", "n_tokens_a": 5, "n_tokens_b": 5, "run_id": "r"}
    return {**row, "logprob_a_nats": ratio, "logprob_b_nats": 0.0}


def association(benchmark: str, pair_id: str, max_pmi: float | None, corpus: str = "c") -> Row:
    """A `pair_association` row."""
    row = {"corpus": corpus, "contrast": "she/he", "benchmark": benchmark, "pair_id": pair_id}
    known = {} if max_pmi is None else {"max_pmi_nats": max_pmi, "max_pmi_word": "nurse"}
    return {**row, **known, "n_words": 3, "n_words_defined": len(known) // 2}


def delta(word: str, value: float, corpus: str = "c") -> Row:
    """A `word_delta` row of the contrast she/he."""
    row = {"corpus": corpus, "contrast": "she/he", "word": word, "delta_nats": value}
    return {**row, "n_word": 100, "n_pair_f": 10, "n_pair_m": 10, "n_defined": 1}


def planted(word: str, value: float, corpus: str = "c", world: str = "straight") -> Row:
    """A `planted_word` row."""
    row = {"corpus": corpus, "world": world, "word": word, "word_class": "noun"}
    return {**row, "planted_delta_nats": value}


def trained(model: str, corpus: str) -> Row:
    """A `trained_model` row."""
    row = {"model": model, "revision": f"revision-{model}", "corpus": corpus, "run_id": "r"}
    return made_row("trained_model", **row, path=f"models/{model}", n_parameters=10)


def scored_by(model: str, key: str = "") -> Row:
    """A `model` row: the identity under which ``score`` and ``trained`` know the same model."""
    row = {"model_key": key or f"key-{model}", "model": model, "revision": f"revision-{model}"}
    row |= {"backend": "transformers", "backend_version": "1", "dtype": "float32", "run_id": "r"}
    return {**row, "bos_policy": "given", "bos_token_id": 0, "n_parameters": 10}


def fill(
    store: Store, table: str, rows: Iterable[Mapping[str, object]], unit: str = "test"
) -> None:
    """Publish rows, completed by ``made_row``, as one unit of each partition."""
    parts: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        whole = made_row(table, **row)
        parts.setdefault(tuple(whole[c] for c in TABLES[table].partitions), []).append(whole)
    for part in parts.values():
        store.publish(table, part, unit=unit, run_id="r")


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
    times: float = 1.0,
) -> tuple[float, float, float]:
    """The 95% interval, low, mean and high, of five or more figures, each its own cluster.

    Student's, or Wilson's on a range with two ``ends``, as if of ``most`` rows at most; the point
    of t is taken ``times``.
    """
    (t, se), mean = error(figures), float(np.mean(figures))
    t *= times
    if ends is None:
        return mean - t * se, mean, mean + t * se
    lowest, highest = ends
    n = min((mean - lowest) * (highest - mean) / se**2 if se > 1e-9 else math.inf, most)
    p = (mean - lowest) / (highest - lowest)
    roots = np.roots([1 + t * t / n, -(2 * p + t * t / n), p * p]).real
    low, high = (lowest + (highest - lowest) * float(root) for root in np.sort(roots))
    return low, mean, high
