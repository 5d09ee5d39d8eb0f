"""Sources of the figures: the text that was counted, the models, the runs."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Columns, Missing, Section, table
from plumbline.pipelines.report.rows import Row
from plumbline.warehouse.storage.run_records import recorded_versions

PLACE = 1100
NAMES = ("text", "benchmarks", "models", "runs")
#: Facts from the recipes of imported benchmarks.
_BENCHMARKS = """
SELECT
    benchmark,
    any_value(said) FILTER (fact = 'Source') AS source,
    any_value(said) FILTER (fact = 'Licence') AS licence,
    any_value(said) FILTER (fact = 'Language') AS language,
    any_value(pairs.groups) AS groups
FROM benchmark_fact
JOIN (
    SELECT benchmark, string_agg(DISTINCT group_a || '/' || group_b, ', ') AS groups
    FROM benchmark_pair GROUP BY benchmark
) AS pairs USING (benchmark)
GROUP BY benchmark HAVING source IS NOT NULL ORDER BY benchmark
"""


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Text, benchmarks, models, runs."""
    yield _text(facts)
    if rows := facts.query(_BENCHMARKS):
        columns: Columns = ["benchmark", "source", "licence", "language"]
        title = "Where the sentence pairs come from"
        intro = ["As the recipes say."]
        yield Section("benchmarks", title, intro, tables=[table(title, rows, columns)])
    yield _models(facts)
    yield from _runs(facts)


def _text(facts: Facts) -> Section | Missing:
    """Ledgers of corpora and rejects. Alerts: failed shards, and ledgers that don't add up."""
    title = "The text that was counted"
    ledger, rejects, failed = map(facts.rows, ("ledger", "reject", "failed_shard"))
    if not (ledger or rejects or failed):
        return Missing(title, "plumbline corpus count SHARDS... --corpus NAME")
    alerts = [
        f"A shard of {r['corpus']} failed and is not in its counts: {r['shard']} ({r['error']})"
        for r in failed
    ]
    alerts += [
        f"The ledger of {r['corpus']} does not add up: count it again."
        for r in ledger
        if r["n_in"] is not None and r["n_in"] != r["n_counted"] + r["n_rejected"]
    ]
    columns: Columns = [
        "corpus",
        ("how", _counting_rules),
        ("shards counted", "n_shards"),
        ("shards failed", "n_shards_failed"),
        ("documents in", "n_in"),
        ("counted", "n_counted"),
        ("rejected", "n_rejected"),
        ("tokens", "n_tokens"),
        ("kept tokens", "n_kept_tokens"),
        ("distinct words", "n_words"),
        ("co-occurrences", "n_pairs"),
    ]
    tables = [table("Ledger of each corpus", ledger, columns)]
    columns = ["stage", ("of", "subject"), "reason", ("rows", "n"), ("first one", "example")]
    is_long = len(rejects) > 12
    tables.append(table("Input that was not used", rejects, columns, folded=is_long))
    intro = [
        "Documents in = counted + rejected, for every shard. A shard that cannot be read to "
        "its end is failed as a whole, never counted in part."
    ]
    return Section("text", title, intro, alerts, (), [t for t in tables if t.rows])


def _counting_rules(row: Row) -> str:
    if row["source"] != "counted":
        return str(row["source"])
    rare = f", words counted fewer than {row['min_count']:,} times pruned"
    rules = f"rule {row['rule']}, window of {row['window_tokens']}, targets {row['targets']}"
    return rules + (rare if row["min_count"] > 1 else "")


def _models(facts: Facts) -> Section | Missing:
    rows = facts.rows("model")
    if not rows:
        return Missing("Models", "plumbline score --model ID_OR_PATH --benchmark NAME")
    columns: Columns = [
        "model",
        ("key", "model_key"),
        *("revision", "backend", "dtype", "quantisation", "adapter"),
        "measure",
        ("text form", "text_form"),
        ("BOS", "bos_policy"),
        ("parameters", "n_parameters"),
        ("trained on", "trained_on"),
        ("seed", lambda r: r["seed"]),
        ("tokens seen", "n_tokens"),
        ("loss at start", "loss_start_nats"),
        ("loss at end", "loss_end_nats"),
    ]
    return Section("models", "Models", tables=[table("Models scored", rows, columns)])


def _runs(facts: Facts) -> Iterator[Section]:
    rows = facts.rows("run")
    if not rows:
        return
    packages = recorded_versions(rows[-1])
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    intro = [f"Versions of the last run: {versions}."]
    if metric_runs := sorted({r["run_id"] for r in facts.rows("metric")}):
        intro.append(f"Metrics on this page are of run {', '.join(metric_runs)}.")
    columns: Columns = [
        ("run", "run_id"),
        ("step", "command"),
        "status",
        ("started (UTC)", "started"),
        "seconds",
        ("commit", lambda r: (r["git_commit"] or "–")[:12]),
        "error",
    ]
    runs = table(f"Runs ({len(rows)})", rows, columns, folded=len(rows) > 15)
    yield Section("runs", "Runs and versions", intro, tables=[runs])
