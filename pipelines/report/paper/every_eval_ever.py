"""Records of Every Eval Ever: a model's results on a benchmark with intervals, and its pairs.

``inspect_log`` writes the same results as logs of Inspect.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import plumbline
from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import fingerprint
from plumbline.eval_workers.pairs.harness.every_eval_ever_records import SAMPLES, SCORES
from plumbline.eval_workers.pairs.harness.plumbline_pairs import process_results
from plumbline.eval_workers.pairs.harness.samples import PREFIX
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.paper.data_sets import DataSet, data_sets
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.regular_files import stored_object
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import parsed

SCHEMA_VERSION = "0.3.0"
#: Metric with a term for each pair -> the term's name in ``process_results``.
_TERMS = {"us": "us", "pd": "pd", "stereotype score": "stereotype"}
#: Columns that identify a result, and columns of its details.
_RESULT_KEY = ("groups", "subset", "corpus", "contrast", "epsilon_nats", "eta_nats")
_DETAILS = (
    *("df", "n_clusters", "clusters", "cluster_values", "p", "q"),
    *("rank", "rank_low", "rank_high", "options"),
)
#: Columns of a pair in an instance's metadata, after those of its score.
_PAIR = ("item_id", "word", "group_a", "group_b", "category", "direction", "is_natural")
#: Backends that load a model's weights.
_WEIGHTS = ("transformers", "vllm", "ngram")
_UNUSABLE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)|(data|unknown|)$")


@dataclass(frozen=True)
class Evaluation:
    """A record: its files by path in the datastore, and its numbers of results and scored pairs."""

    model: str
    benchmark: str
    n_results: int
    n_pairs: int
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Measured:
    """A model's results on a benchmark, with all rows that a record of them needs.

    Attributes:
        model: its row of table ``model``; if there is none, its name, key and benchmark.
        results: rows of ``metric_value`` with a finite value.
        scored: each score with its pair; ``None`` for a pair that the benchmark no longer has.
        when: the row of query ``evaluation``: times and author.
        source: the data set, as records describe it.
    """

    model: Row
    benchmark: str
    results: Rows
    scored: list[tuple[Row | None, Row]]
    when: Row
    source: Row

    @property
    def at(self) -> str:
        """Time of the measurement, in seconds since 1970; the current time if it isn't known."""
        return _seconds(self.when["measured_at"]) or str(int(time.time()))

    def instances(self) -> Iterator[Row]:
        """The instances of all pairs that the benchmark still has (``_instances``)."""
        ids = _with_terms(self.results)
        for pair, score in self.scored:
            if pair:
                yield from _instances(pair, score, ids, str(self.model.get("measure") or ""))


def evaluations(
    store: Store, facts: Facts, form: Callable[[Measured], dict[str, bytes]] | None = None
) -> Iterator[Evaluation]:
    """A record for each model and benchmark of ``facts``: its metrics, and all its scored pairs.

    The same metrics and scores give the same files. ``form`` makes the files; by default they are
    records of Every Eval Ever. Raises ``UsageProblem`` if no model has a finite result.
    """
    rows = facts.rows("metric").only(lambda r: r["model_key"] and r["metric"] != "n")
    rows = rows.only(lambda r: _finite(r["value"]))
    if not rows:
        raise UsageProblem("records", "no model has results to write", "run `plumbline measure`")
    models = {row["model_key"]: row for row in store.read("model").to_pylist()}
    sets = data_sets(facts, {})
    for results in rows.groups("benchmark", "model_key"):
        first = results[0]
        key_columns = {"benchmark": first["benchmark"], "model_key": first["model_key"]}
        model = {**key_columns, "model": first["model"], **models.get(first["model_key"], {})}
        pairs = store.read("benchmark_pair", benchmark=key_columns["benchmark"]).to_pylist()
        scores = store.read("pair_score", **key_columns).sort_by("pair_id").to_pylist()
        source = _source(key_columns["benchmark"], pairs, sets.get(key_columns["benchmark"]))
        (when,) = facts.rows("evaluation").where(**key_columns)
        pair_by_id = {pair["pair_id"]: pair for pair in pairs}
        scored = [(pair_by_id.get(score["pair_id"]), score) for score in scores]
        measured = Measured(model, key_columns["benchmark"], results, scored, when, source)
        files = (form or _files)(measured)
        yield Evaluation(first["model"], key_columns["benchmark"], len(results), len(scores), files)


def _files(measured: Measured) -> dict[str, bytes]:
    """Files by path: the record and, if it has any, its instances."""
    model, results, when, at = measured.model, measured.results, measured.when, measured.at
    name, who, key = _part(PREFIX + measured.benchmark), _model_info(model), model["model_key"]
    shared = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{name}/{_part(who['id'])}-{key}/{at}",
    }
    instance_columns = {**shared, "model_id": who["id"], "evaluation_name": name}
    instances = [_json({**instance_columns, **instance}) for instance in measured.instances()]
    content = "".join(f"{line}\n" for line in instances).encode()
    owner, _, rest = who["id"].partition("/")
    parts = map(_part, (owner, rest) if rest else (who["developer"], owner))
    unique = uuid.UUID(bytes=hashlib.sha256(f"{name}/{key}".encode()).digest()[:16], version=4)
    stem = "/".join(("data", name, *parts, str(unique)))
    record = {
        **shared,
        "evaluation_timestamp": _seconds(when["scored_at"]),
        "retrieved_timestamp": at,
        "source_metadata": {
            "source_name": _words()["text"]["source"],
            "source_type": "evaluation_run",
            "source_organization_name": author(when),
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "plumbline", "version": plumbline.__version__},
        "model_info": who,
        "evaluation_results": [result(row, name, measured.source) for row in results],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": stem + SAMPLES,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(instances),
        },
    }
    if not instances:
        del record["detailed_evaluation_results"]
    files = {f"{stem}.json": f"{_json(_without_none(record), indent=2)}\n".encode()}
    return {**files, stem + SAMPLES: content} if instances else files


def _model_info(model: Row) -> Row:
    """The model as records describe it, with all columns: reading scores back needs the key."""
    is_ours = model.get("backend") in _WEIGHTS
    is_of_hub = is_ours and "/" in model["model"]
    columns = {k: _text(v) for k, v in columns_of(model).items()}
    kinds = {
        "deployment_type": "self_deployed" if is_ours else "unknown",
        "model_availability": "open_weights" if is_of_hub else "unknown",
    }
    engine = {"name": model.get("backend"), "version": model.get("backend_version")}
    return _without_none(
        {
            "name": model["model"],
            "id": model["model"],
            "developer": None if "/" in model["model"] else _words()["text"]["developer"],
            "inference_engine": _without_none(engine) or None,
            "additional_details": {**kinds, **columns},
        }
    )


_NOT_OF_MODEL = ("model", "benchmark", "run_id")


def columns_of(model: Row) -> Row:
    """A model's columns that aren't NULL, except for its name, benchmark and run."""
    return {k: v for k, v in _without_none(model).items() if k not in _NOT_OF_MODEL}


def author(when: Row) -> str:
    """Author of the measurement, or if unknown, the organisation that records name."""
    return str(when["author"] or _words()["text"]["organization"])


def _source(benchmark: str, pairs: list[Row], on_hub: DataSet | None) -> Row:
    """The data set as records describe it: on the hub only if the hub has exactly these pairs."""
    pairs_fingerprint = fingerprint(pairs)
    source = {"dataset_name": benchmark, "additional_details": {"fingerprint": pairs_fingerprint}}
    if on_hub is None or on_hub.fingerprint != pairs_fingerprint:
        return {**source, "source_type": "other"}
    n_pairs = sum(on_hub.n_pairs.values())
    where = {"hf_repo": on_hub.repository, "hf_split": "test", "samples_number": n_pairs}
    return {**source, "source_type": "hf_dataset", **where}


def result(row: Row, name: str, source: Row) -> Row:
    """A row of ``metric_value`` as a result of a record, without loss."""
    words = _about(row["metric"])
    value, low, high = row["value"], words.get("low"), words.get("high")
    return {
        "evaluation_result_id": _result_id(row),
        "evaluation_name": name,
        "source_data": source,
        "metric_config": {
            "evaluation_description": words["about"],
            "metric_id": f"plumbline.{row['metric'].replace(' ', '_')}",
            "metric_name": words["name"],
            "metric_kind": row["metric"],
            "metric_unit": row["unit"],
            "metric_parameters": {c: row[c] for c in _RESULT_KEY if row[c] not in (None, "")},
            "lower_is_better": words.get("lower_is_better", False),
            "score_type": "continuous",
            "min_score": "-Infinity" if low is None else min(low, value),
            "max_score": "Infinity" if high is None else max(high, value),
            "additional_details": {"better_end": words["ends"]},
        },
        "score_details": {
            "score": value,
            "uncertainty": _uncertainty(row),
            "details": {c: _text(row[c]) for c in _DETAILS if row[c] not in (None, "", "{}")},
        },
    }


def _uncertainty(row: Row) -> Row:
    """The standard error and the 95% interval, if finite, and how they were computed."""
    method = row["interval"]
    if row["clusters"]:
        method = _words()["text"]["clustered"].format_map(row)
    uncertainty: dict[str, object] = {"num_samples": row["n"]}
    if _finite(row["value_se"]):
        uncertainty["standard_error"] = {"value": row["value_se"], "method": method}
    if _finite(row["value_low"]) and _finite(row["value_high"]):
        ends = {"lower": row["value_low"], "upper": row["value_high"]}
        uncertainty["confidence_interval"] = {**ends, "confidence_level": 0.95, "method": method}
    return uncertainty


def _with_terms(results: Rows) -> dict[str, dict[str, Row]]:
    """Groups -> metric -> its result over all pairs, for the metrics in ``_TERMS``."""
    by_groups: dict[str, dict[str, Row]] = {}
    for row in results.where(subset="all", corpus="", metric=tuple(_TERMS)):
        by_groups.setdefault(row["groups"], {})[row["metric"]] = row
    return by_groups


def _instances(
    pair: Row, score: Row, results: Mapping[str, Mapping[str, Row]], measure: str
) -> Iterator[Row]:
    """One instance for each result that uses the pair; if none does, one that names no result.

    A pair whose scores aren't finite has no instance. ``is_correct`` means that the model prefers
    neither sentence; for a stereotype score, that it doesn't prefer the stereotype.
    """
    metrics = results.get(f"{pair['group_a']}/{pair['group_b']}", {})
    log_ratios = [(score[f"logprob_{side}_nats"], False) for side in "ab"]
    epsilons = [row["epsilon_nats"] for row in metrics.values() if row["epsilon_nats"] is not None]
    terms = process_results(pair, log_ratios, *epsilons[:1])
    if not terms:
        return  # a score isn't finite
    both = [pair["sentence_a"], pair["sentence_b"]]
    likelier = both[log_ratios[1] > log_ratios[0]]
    properties = {c: score[c] for c in SCORES} | {c: pair[c] for c in _PAIR}
    attribution = {"turn_idx": 0, "source": "output.raw", "extracted_value": likelier}
    raw = "\n".join(both)
    common = {
        "sample_id": pair["pair_id"],
        "sample_hash": hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": [], "choices": both},
        "output": {"raw": [likelier]},
        "answer_attribution": [
            {**attribution, "extraction_method": measure or "log-likelihood", "is_terminal": True}
        ],
        "metadata": {c: _text(value) for c, value in properties.items() if value is not None},
    }
    is_used = pair["is_natural"] is not False
    used = [m for m in metrics if is_used and _TERMS[m] in terms]
    for metric in used or [""]:
        term = terms[_TERMS.get(metric, "us")]
        is_correct = not term if metric == "stereotype score" else bool(terms["us"])
        named = {"evaluation_result_id": _result_id(metrics[metric])} if metric else {}
        yield {**common, **named, "evaluation": {"score": term, "is_correct": is_correct}}


def _result_id(row: Row) -> str:
    options = [f"{name} {value}" for name, value in stored_object(row, "options").items()]
    parts = (row["metric"], row["groups"], row["subset"], row["corpus"], row["contrast"], *options)
    return "; ".join(part for part in parts if part)


def _about(metric: str) -> dict[str, Any]:
    metric_words: dict[str, Any] | None = _words()["metric"].get(metric)
    return metric_words or {k: text.format(metric=metric) for k, text in _words()["other"].items()}


@cache
def _words() -> dict[str, Any]:
    file = resources.files(__package__) / "every_eval_ever.toml"
    return parsed(file.read_text("utf-8"), file.name)


def _part(name: str) -> str:
    """A name as a part of a path that the datastore's validator accepts.

    >>> _part("me/gpt: 2."), _part("data"), _part("Con.x")
    ('me_gpt_ 2', '_data', '_Con.x')
    """
    part = _UNUSABLE.sub("_", name).rstrip(". ")
    return f"_{part}" if _RESERVED.match(part) else part


def _without_none(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _seconds(time: datetime | None) -> str | None:
    """A time in whole seconds since 1970, as text."""
    return str(int(time.timestamp())) if time else None


def _json(value: object, indent: int | None = None) -> str:
    # ASCII, because some readers end a line at Unicode's line separators.
    return json.dumps(value, allow_nan=False, indent=indent)
