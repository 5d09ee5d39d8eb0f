"""Files with a model's results for its repository on the hub, `.eval_results/*.yaml`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

import plumbline
from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import fingerprint
from plumbline.eval_workers.pairs.sharing.dataset import task_id
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.paper.data_sets import DataSet
from plumbline.pipelines.report.paper.model_card import chosen
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

#: US counts the pairs whose log ratio is within this bound, the same in all tasks of the hub.
_EPSILON_NATS = math.log(1.65)


@dataclass(frozen=True)
class HubResults:
    """Files by path, a line for each result, and the reasons why benchmarks were skipped."""

    files: Mapping[str, bytes]
    lines: Sequence[str]
    skipped: Sequence[str]


def eval_results(store: Store, model: str, sets: Mapping[str, DataSet]) -> HubResults:
    """A model's results in the form that the hub reads, one file per data set.

    A result is US in percent, as the tasks in ``eval.yaml`` report it. Its notes have the interval,
    PD and the number of pairs. ``model`` is as for ``model_card``. A benchmark is skipped if it has
    no data set, if its pairs differ from those on the hub, or if its metrics are over other pairs.
    Raises the errors of ``model_card``, and ``UsageProblem`` if there is no result.
    """
    from huggingface_hub import CardData, EvalResultEntry, eval_result_entries_to_yaml

    facts = Facts(store)
    row = chosen(facts.rows("model"), model)
    rows = facts.rows("metric").where(model_key=row["model_key"], metric=("us", "pd"))
    files, lines, skipped = {}, list[str](), list[str]()
    for benchmark in sorted({r["benchmark"] for r in rows}):
        if benchmark not in sets:
            fix = f"run `plumbline benchmark push {benchmark}`, or give --dataset {benchmark}=NAME"
            skipped.append(f"{benchmark}: its data set on the hub is not known: {fix}")
            continue
        data_set, metrics = sets[benchmark], rows.where(benchmark=benchmark)
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        if fingerprint(pairs) != data_set.fingerprint:
            skipped.append(f"{benchmark}: {data_set.repository} holds other pairs: push it again")
            continue
        entries = []
        for groups, us, pd, n_test in _measured(metrics, data_set):
            notes = _notes(row, groups, us, pd, n_test)
            entry = EvalResultEntry(
                data_set.repository,
                task_id(groups, len(data_set.n_pairs)),
                round(100 * us["value"], 2),
                date=_scored_at(facts, row["model_key"], benchmark),
                notes=notes,
            )
            entries.append(entry)
            lines.append(f"{benchmark} ({data_set.repository}): {notes}")
        if entries:
            name = re.sub(r"[^\w.-]+", "_", benchmark, flags=re.ASCII)
            items = [CardData(**entry).to_yaml() for entry in eval_result_entries_to_yaml(entries)]
            text = "".join(f"- {indent(item, '  ')[2:]}\n" for item in items)
            files[f".eval_results/plumbline-{name}.yaml"] = text.encode()
        else:
            fix = "run `plumbline measure`, with the same --eta"
            skipped.append(f"{benchmark}: no US and PD over {data_set.repository}'s pairs: {fix}")
    if not files:
        reasons = "; ".join(skipped) or "it has no US and PD yet, run `plumbline measure`"
        raise UsageProblem(f"model {model}", f"has no result for the hub: {reasons}")
    return HubResults(files, lines, skipped)


def _measured(rows: Rows, data_set: DataSet) -> Iterator[tuple[str, Row, Row, int]]:
    """Groups, US, PD and the data set's number of pairs, for each pair of groups.

    Groups are left out if US or PD is missing or is over more pairs than the data set has.
    """
    subset = data_set.limit or {"subset": "all", "corpus": ""}
    for groups, n_test in sorted(data_set.n_pairs.items()):
        valued = rows.where(groups=groups, **subset).only(lambda r: r["value"] is not None)
        at_epsilon = valued.only(lambda r: math.isclose(r["epsilon_nats"] or 0, _EPSILON_NATS))
        us, pd = at_epsilon.where(metric="us"), at_epsilon.where(metric="pd")
        if len(us) == len(pd) == 1 and us[0]["n"] <= n_test:
            yield groups, us[0], pd[0], n_test


def _notes(model: Row, groups: str, us: Row, pd: Row, n_test: int) -> str:
    """US and PD with intervals and the options of the measurement, as one line of plain text."""

    def interval(row: Row, scale: int) -> str:
        if row["value_low"] is None or row["value_high"] is None:
            return "no interval"
        low, high = (f"{scale * row[end]:.1f}" for end in ("value_low", "value_high"))
        return f"95% interval {low} to {high}"

    n = f"{us['n']:,}" if us["n"] == n_test else f"{us['n']:,} of {n_test:,}"
    parts = [
        f"US {100 * us['value']:.1f}% ({interval(us, 100)})",
        f"PD {pd['value']:+.1f} points ({interval(pd, 1)}), {groups}",
        f"{n} pairs, log ratio within ln 1.65",
        f"{model['measure']}, {model['backend'] or 'backend unknown'}",
    ]
    parts += [str(model["dtype"])] if model["dtype"] else []
    return ", ".join([*parts, f"Plumbline {plumbline.__version__}"])


def _scored_at(facts: Facts, model_key: str, benchmark: str) -> str | None:
    """The day of the last score; ``None`` if it isn't known, as for imported scores."""
    (row,) = facts.rows("evaluation").where(model_key=model_key, benchmark=benchmark)
    return f"{row['scored_at']:%Y-%m-%d}" if row["scored_at"] else None
