"""The paragraph on methods for a paper, from the warehouse's records and a template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources

from jinja2 import Environment, StrictUndefined

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import counted, shown
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.query.history import flat
from plumbline.warehouse.storage.run_records import STEPS, recorded_versions

_CORPORA = """
SELECT c.*, l.hash
FROM corpus AS c
LEFT JOIN (
    SELECT corpus, sha256(string_agg(fingerprint, chr(10) ORDER BY fingerprint))[:16] AS hash
    FROM corpus_shard WHERE status = 'counted' GROUP BY corpus
) AS l USING (corpus)
ORDER BY corpus
"""
_BENCHMARKS = """
SELECT
    benchmark,
    array_to_string(list_sort(list(DISTINCT group_a || '/' || group_b)), ', ') AS groups,
    count(*) FILTER (is_natural IS NOT FALSE) AS n_pairs,
    count(*) FILTER (is_natural IS FALSE) AS n_unnatural,
    (
        SELECT any_value(said) FROM benchmark_fact
        WHERE fact = 'Source' AND benchmark = benchmark_pair.benchmark
    ) AS source
FROM benchmark_pair
WHERE benchmark IN (SELECT benchmark FROM pair_score UNION SELECT benchmark FROM pair_choice)
GROUP BY benchmark ORDER BY benchmark
"""
_MODELS = """
SELECT m.*, t.corpus AS trained_on, t.seed
FROM model AS m LEFT JOIN trained_key AS t USING (model_key)
ORDER BY m.model, m.revision, m.model_key
"""
_INTERVALS = """
SELECT DISTINCT interval, metric, benchmark, model_key, corpus
FROM metric_value WHERE interval NOT LIKE 'none%' ORDER BY interval, metric
"""
_REJECTED = """
SELECT stage, subject, count(*) AS n FROM reject GROUP BY ALL ORDER BY stage, subject
"""
_FAILED = "SELECT corpus, count(*) AS n FROM corpus_shard WHERE status = 'failed' GROUP BY corpus"
_RUNS = "FROM run WHERE status = 'finished' ORDER BY started_at, run_id"
#: Settings of models. Models with equal settings share a sentence.
_ALIKE = (
    *("backend", "backend_version", "dtype", "quantisation", "measure", "text_form"),
    "bos_policy",
)


def methods(facts: Facts) -> str:
    """Sentences, one per line, on corpora, benchmarks, models, rules, seeds, rejects and versions.

    A corpus's hash: the first 16 digits of the SHA-256 of its counted shards' sorted fingerprints.
    """
    metrics, runs = facts.rows("metric"), facts.query(_RUNS)
    epsilons, etas = (
        sorted({r[name] for r in metrics if r[name] is not None})
        for name in ("epsilon_nats", "eta_nats")
    )
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    words = (resources.files(__package__) / "methods.txt").read_text("utf-8")
    return environment.from_string(words).render(
        counted=counted,
        corpora=[{**row, "about": _about(row)} for row in facts.query(_CORPORA)],
        benchmarks=facts.query(_BENCHMARKS),
        models=list(_models(facts)),
        epsilons=[shown(epsilon, 4) for epsilon in epsilons],
        etas=[f"{eta:g}" for eta in etas],
        intervals=_by(facts.query(_INTERVALS), "interval", "metric"),
        seeds=list(_seeds(runs)),
        rejected=list(_rejected(facts)),
        n_runs=len(runs),
        versions=_versions(runs),
        commits=sorted({row["git_commit"] for row in runs if row["git_commit"]}),
    )


def _about(corpus: Row) -> list[str]:
    """Sizes of a corpus and the hash of its shards; an imported corpus lacks some of them."""
    sizes = [
        counted(n, noun) for noun in ("shard", "document", "token") if (n := corpus[f"n_{noun}s"])
    ]
    about = [", ".join(sizes)] if sizes else []
    if corpus["hash"]:
        about.append(f"SHA-256 of its shards' fingerprints {corpus['hash']}")
    return about


def _models(facts: Facts) -> Iterator[Row]:
    """A row for each combination of settings, with the ``names`` of its models."""
    names_by_settings: dict[tuple[object, ...], list[str]] = {}
    for row in facts.query(_MODELS):
        about = [f"revision {row['revision']}"] if row["revision"] else []
        if row["trained_on"]:
            about.append(f"trained on {row['trained_on']} with seed {row['seed']}")
        name = f"{row['model']} ({', '.join(about)})" if about else row["model"]
        names_by_settings.setdefault(tuple(row[c] for c in _ALIKE), []).append(name)
    for settings, names in names_by_settings.items():
        yield {**dict(zip(_ALIKE, settings, strict=True)), "names": names}


def _by(rows: Rows, name: str, other: str) -> dict[str, list[str]]:
    """Value of column ``name`` -> the distinct values of column ``other``."""
    values_by_key: dict[str, dict[str, None]] = {}
    for row in rows:
        values_by_key.setdefault(row[name], {})[row[other]] = None
    return {key: list(values) for key, values in values_by_key.items()}


def _seeds(runs: Rows) -> Iterator[str]:
    """Each command with the seeds in the settings of its runs, as text; none without seeds."""
    seeds_by_command: dict[str, set[str]] = {}
    for row in runs:
        options = json.loads(row["config"])
        further = options.get(STEPS)
        steps = further if isinstance(further, list) else []
        for step in (options, *steps):
            for name, value in flat(step).items():
                if name.split(".")[-1] == "seed" and value is not None:
                    seeds_by_command.setdefault(row["command"], set()).add(str(value))
    for command, seeds in sorted(seeds_by_command.items()):
        yield f"{command} {', '.join(sorted(seeds))}"


def _rejected(facts: Facts) -> Iterator[str]:
    for row in facts.query(_REJECTED):
        yield f"{counted(row['n'], 'row')} of {row['subject']} ({row['stage']})"
    for row in facts.query(_FAILED):
        yield f"{counted(row['n'], 'shard')} of {row['corpus']} (count)"


def _versions(runs: Rows) -> dict[str, list[str]]:
    by_package: dict[str, set[str]] = {}
    for row in runs:
        for name, version in recorded_versions(row).items():
            by_package.setdefault(str(name), set()).add(str(version))
    return {name: sorted(versions) for name, versions in sorted(by_package.items())}
