"""A section for a model's card: its results with intervals and limits, and its `model-index`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import plumbline
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.metric_tables import (
    IN_BRACKETS,
    by_metric,
    metric_columns,
    of_fits,
    of_pairs,
)
from plumbline.pipelines.report.model import Columns, Section, estimate, shown, table
from plumbline.pipelines.report.paper.data_sets import DataSet, data_sets
from plumbline.pipelines.report.plain import markdown
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.follow import LEANS
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.opening import OpenWarehouse

_SAME = ("benchmark", "groups", "contrast", "corpus", "subset", "options")
_MEANING = (
    "US is the share of pairs of sentences that the model finds about equally likely ({epsilon}); "
    "PD the share of pairs that prefer the first group's sentence minus the share that prefer the "
    "second's, in percentage points; AuFC the area under US as that limit rises from 0 to 6. "
    "The first group is female where none is named."
)
_TEXT = (
    "Slope: how many nats the log ratio of a word's pairs moves with a nat of the word's lean in "
    "the text. An interval that contains 0 means that no slope was shown, not that it is 0."
)
_LIMITS = (
    "The figures are of the benchmarks named, in their language, and of the groups that they "
    "compare; they say nothing of other groups, languages or kinds of text.",
    "The intervals are of the sampling of pairs or words, not of how a benchmark was made: another "
    "set of sentences may give other figures.",
    "How likely a model finds a sentence is not what it writes when asked, and not what an "
    "application built on it does.",
)
_NOT = (
    "A high US or a PD near 0 doesn't mean that the model is unbiased or safe to use.",
    "A slope or correlation doesn't show that the text caused the preference.",
    "Two models aren't ranked by figures whose intervals overlap: compare them pair by pair.",
)


def model_card(warehouse: str | Path | OpenWarehouse, model: str) -> str:
    """Markdown for a model's card: figures and their meaning, limits, what not to conclude.

    It begins with the figures over pairs, if any, as front matter (``model_index``), which the
    model's page on the hub shows. ``model`` is a name as the report shows it, the model's
    directory, or the start of its key (eight characters or more). All figures are from
    ``metric_value``, over all pairs of a benchmark, or of fits of its pairs on the lean of a text.
    Raises ``UsageProblem`` if no model, or more than one, matches ``model``, or if the model has no
    metrics.
    """
    facts = Facts(warehouse)
    row = chosen(facts.rows("model"), model)
    rows = facts.rows("metric").where(model_key=row["model_key"])
    if not rows:
        raise UsageProblem(
            f"model {model}", "nothing was measured of it", "run `plumbline measure`"
        )
    sections = [
        _figures(row, of_pairs(rows).where(subset="all")),
        *_fits(of_fits(rows).where(subset=tuple(LEANS))),
        Section("limits", "Limits", _LIMITS),
        Section("not", "What not to conclude", _NOT),
    ]
    lines = [line for section in sections for line in markdown(section)]
    lines = ["#" + line if line.startswith("## ") and i else line for i, line in enumerate(lines)]
    sets = data_sets(facts, {})
    before = model_index(row["model"], of_pairs(rows).where(subset="all"), sets)
    return "\n".join([*before, *lines])


def chosen(models: Rows, name: str) -> Row:
    """The row of the model with this name, directory or start of its key, as in ``model_card``."""
    matches = models.where(model=name)
    if not matches and Path(name).is_dir():
        matches = models.where(model=Path(name).resolve().name)
    if not matches and len(name) >= 8:
        matches = models.only(lambda r: r["model_key"].startswith(name))
    if len(matches) == 1:
        return matches[0]
    if matches:
        keys = ", ".join(r["model_key"][:12] for r in matches)
        raise UsageProblem(f"model {name}", "matches more than one model", f"give a key: {keys}")
    names = ", ".join(sorted(r["model"] for r in models)[:5])
    listed = "scored are, among others," if len(models) > 5 else "scored are"
    fix = f"{listed} {names}" if names else "run `plumbline score` first, docs/scoring.md"
    raise UsageProblem(f"model {name}", "no such model has scores here", fix)


def _figures(model: Row, rows: Rows) -> Section:
    epsilon = sorted({r["epsilon_nats"] for r in rows if r["epsilon_nats"] is not None})
    within = " or ".join(f"log ratio within {shown(e)} nats" for e in epsilon)
    intro = [_measured(model), _MEANING.format(epsilon=within or "see epsilon")]
    lines = by_metric(rows, "benchmark", "groups")
    columns: Columns = ["benchmark", "n", *metric_columns(rows)]
    pairs = table(f"All pairs of each benchmark, {IN_BRACKETS}", lines, columns)
    return Section("gender", "Which way the model leans", intro, tables=[pairs] if rows else [])


def _measured(model: Row) -> str:
    settings = [
        f"{name} {model[column]}"
        for column, name in (
            *(("revision", "revision"), ("backend", "by"), ("dtype", "in")),
            *(("quantisation", "quantised"), ("adapter", "with the adapter")),
            ("trained_on", "trained on"),
        )
        if model[column]
    ]
    settings_text = f" ({', '.join(settings)})" if settings else ""
    by = f"Plumbline {plumbline.__version__}"
    return f"Measured with {by}: {model['model']}{settings_text}, {model['measure']}."


def _fits(rows: Rows) -> Iterator[Section]:
    if not rows:
        return
    lines = by_metric(rows, *_SAME)
    columns: Columns = ["benchmark", "corpus", ("against", "subset"), "n", *metric_columns(rows)]
    fits = table(f"Log ratio on the lean of the text, {IN_BRACKETS}", lines, columns)
    yield Section("text", "Does it follow the text", [_TEXT], tables=[fits])


def model_index(model: str, rows: Rows, sets: Mapping[str, DataSet]) -> Iterator[str]:
    """Lines of YAML with one model's results over all pairs; none without results.

    The type of a data set is its repository on the hub, or the benchmark's name if it wasn't
    pushed. Metrics have the units of the report's tables. A metric's name has its interval, because
    the model's page shows the name.
    """
    lines = by_metric(rows, "benchmark", "groups")
    if not lines:
        return
    yield from ("---", "model-index:", f"- name: {_quoted(model)}", "  results:")
    for line in lines:
        benchmark = line["benchmark"]
        data_set = sets[benchmark].repository if benchmark in sets else benchmark
        yield "  - task: {type: text-generation}"
        yield f"    dataset: {{name: {_quoted(benchmark)}, type: {_quoted(data_set)}}}"
        yield "    metrics:"
        for heading, row in line["metrics"].items():
            yield from _metric(heading, row, line["n"])
    yield from ("---", "")


def _metric(heading: str, row: Row, n_pairs: int) -> Iterator[str]:
    shown = estimate(row)
    if row["value"] is None or shown.value is None:
        return
    interval = shown.text.partition("(")[2].rstrip(")") or "none"
    name = f"{heading}, {row['groups']}, {n_pairs} pairs, 95% interval {interval}"
    labels = f"type: {_quoted(row['metric'])}, name: {_quoted(name)}"
    yield f"    - {{{labels}, value: {round(shown.value, 4)}}}"


def _quoted(text: str) -> str:
    """A string as JSON, which is also YAML."""
    return json.dumps(text)
