"""Which models were scored, which runs wrote to the warehouse, and with which versions."""

from __future__ import annotations

import json
from collections.abc import Iterator

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Columns, Missing, Section, number, table, text

PLACE = 1200


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """Models, then runs."""
    yield _models(facts)
    yield from _runs(facts)


def _models(facts: Facts) -> Section | Missing:
    rows = facts.rows("model")
    if not rows:
        return Missing("Models", "plumbline score --model ID_OR_PATH --benchmark NAME")
    columns: Columns = [
        "model",
        ("key", "model_key"),
        *("revision", "backend", "dtype", "quantisation", "adapter"),
        ("text form", "text_form"),
        ("BOS", "bos_policy"),
        ("parameters", "n_parameters"),
        ("trained on", "trained_on"),
        ("seed", lambda r: text(r["seed"])),
        ("tokens seen", "n_tokens"),
        ("loss at start", lambda r: number(r["loss_start_nats"])),
        ("loss at end", lambda r: number(r["loss_end_nats"])),
    ]
    return Section("models", "Models", tables=[table("Models scored", rows, columns)])


def _runs(facts: Facts) -> Iterator[Section]:
    rows = facts.rows("run")
    if not rows:
        return
    packages = json.loads(rows[-1]["packages"])
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    intro = [f"Versions of the last run: {versions}."]
    if metric_runs := sorted({r["run_id"] for r in facts.rows("metric")}):
        intro.append(f"Metrics on this page are of run {', '.join(metric_runs)}.")
    columns: Columns = [
        ("run", "run_id"),
        ("step", "command"),
        "status",
        ("started (UTC)", lambda r: text(f"{r['started_at']:%Y-%m-%d %H:%M:%S}")),
        ("seconds", lambda r: number(r["seconds"], 1)),
        ("commit", lambda r: text((r["git_commit"] or "–")[:12])),
        "error",
    ]
    runs = table(f"Runs ({len(rows)})", rows, columns, folded=len(rows) > 15)
    yield Section("runs", "Runs and versions", intro, tables=[runs])
