"""What a deployed run leaves on its page in Prefect: tables, failed shards, the report's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)

from plumbline.jobs.counting.verify import shard_states, update_command
from plumbline.pipelines.command.base import Done
from plumbline.pipelines.report.metrics import measured
from plumbline.pipelines.requests.plan import CorpusPlan
from plumbline.warehouse.query.connection import connect, model_labels, query, sql
from plumbline.warehouse.shards import expand_shards
from plumbline.warehouse.storage.store import Store


def attach_corpora(store: Store, corpora: Sequence[CorpusPlan]) -> None:
    """A row a corpus: shards, documents, tokens."""
    columns = ("corpus", "n_shards", "n_shards_failed", "n_documents", "n_rejected", "n_tokens")
    rows = [r for c in corpora for r in store.read("corpus", corpus=c.name).to_pylist()]
    if rows:
        table = [{name: row[name] for name in columns} for row in rows]
        create_table_artifact(key="corpora", table=table, description="Corpora as counted")


def attach_failed_shards(store: Store, corpora: Sequence[CorpusPlan]) -> list[str]:
    """The shards that can't be read, each with its reason, and the commands that count them again.

    Returns one line per corpus that has such shards; nothing is attached if none has.
    """
    rows, lines = [], []
    for corpus in corpora:
        ledger = store.read("corpus_shard", corpus=corpus.name).to_pylist()
        failed = [r for r in ledger if r["status"] == "failed"]
        if failed and store.units("corpus", corpus=corpus.name):
            again = _again(store, corpus)
            rows += [
                {"shard": r["shard"], "reason": r["error"] or "", "repair it, then": again}
                for r in failed
            ]
            lines.append(f"{failed[0]['error']}{_more(failed)}; repair it, then: {again}")
    if rows:
        create_table_artifact(key="failed-shards", table=rows, description="Not in the counts")
    return lines


def _more(failed: Sequence[object]) -> str:
    return f" and {len(failed) - 1} more" if len(failed) > 1 else ""


def _again(store: Store, corpus: CorpusPlan) -> str:
    given = expand_shards(corpus.patterns) if corpus.patterns else []
    states = shard_states(store, corpus.name, given)
    command = update_command(store, corpus.name, states, corpus.patterns)
    return f"{command} --warehouse {store.root}"


def attach_scores(store: Store, benchmarks: Sequence[str]) -> None:
    """A row a benchmark and model: how many pairs have a score."""
    n_scored: Counter[tuple[str, str]] = Counter()
    for benchmark in benchmarks:
        models = store.read("pair_score", benchmark=benchmark)["model"].to_pylist()
        n_scored.update((benchmark, model) for model in models)
    table = [{"benchmark": b, "model": m, "pairs": n} for (b, m), n in sorted(n_scored.items())]
    if table:
        create_table_artifact(key="scores", table=table, description="Pairs with a score")


def attach_metrics(store: Store) -> None:
    """The tables that `plumbline measure` prints, where they have rows."""
    connection = connect(store.root, "model_label " + sql("report/metric"))
    metrics, controls = query(connection, "report/metric"), store.read("control")
    labels = model_labels(connection)
    for key, (names, lines) in measured(metrics, controls, labels).items():
        table = [dict(zip(names, line, strict=True)) for line in lines]
        about = "Metrics over all pairs, in brackets: 95% intervals; ranks: 95% sets"
        create_table_artifact(key=key, table=table, description=about)


def attach_report(page: Path) -> None:
    """Where the report lies; browsers follow such a link only from a page of the same machine."""
    create_link_artifact(
        key="report", link=page.resolve().as_uri(), link_text=str(page), description="Report"
    )


def attach_done(command: str, done: Done) -> None:
    """What a command did: its rows as a table, its lines as they are."""
    key = command.replace(" ", "-")
    if done.rows:
        create_table_artifact(
            key=key, table=[dict(row) for row in done.rows], description="Rows of the run"
        )
    if done.said:
        attach_lines(f"{key}-lines", done.said)


def attach_lines(key: str, lines: Iterable[str]) -> None:
    """What the command prints at its end, as it is."""
    text = "\n".join(f"    {line}" for line in lines)
    create_markdown_artifact(key=key, markdown=text, description="Closing lines of the run")
