"""For the hub: a model's results as `.eval_results/*.yaml`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

import plumbline
from plumbline.eval_workers.pairs.benchmarks.own.pushed import fingerprint
from plumbline.eval_workers.writing.sharing.dataset import task_id
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.paper.data_sets import DataSet
from plumbline.pipelines.report.paper.model_card import chosen
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

#: The limit on log ratios that a task's US has.
_EPSILON_NATS = math.log(1.65)


@dataclass(frozen=True)
class HubResults:
    """Files for a model's repository, what they say line by line, and what has no result, why."""

    files: Mapping[str, bytes]
    said: Sequence[str]
    skipped: Sequence[str]


def eval_results(store: Store, model: str, sets: Mapping[str, DataSet]) -> HubResults:
    """A model's results in the form that the hub reads: a file for each data set.

    A result is US in percent, as the task of ``eval.yaml`` says; its interval, PD and the number of
    pairs are in its notes. ``model`` is as for ``model_card``. A benchmark whose pairs are others
    than on the hub, or that wasn't measured over the same pairs, is skipped. Raises
    ``UsageProblem`` as ``model_card``, and where no result is left.
    """
    from huggingface_hub import CardData, EvalResultEntry, eval_result_entries_to_yaml

    facts = Facts(store)
    row = chosen(facts.rows("model"), model)
    rows = facts.rows("metric").where(model_key=row["model_key"], metric=("us", "pd"))
    files, said, skipped = {}, list[str](), list[str]()
    for benchmark in sorted({r["benchmark"] for r in rows}):
        if benchmark not in sets:
            fix = f"`plumbline benchmark push {benchmark}`, or --dataset {benchmark}=NAME"
            skipped.append(f"{benchmark}: no data set of it is known: {fix}")
            continue
        to, of = sets[benchmark], rows.where(benchmark=benchmark)
        if fingerprint(store.read("benchmark_pair", benchmark=benchmark).to_pylist()) != (
            to.fingerprint
        ):
            skipped.append(f"{benchmark}: {to.repository} has other pairs: push it again")
            continue
        entries = []
        for groups, us, pd, n_test in _measured(of, to):
            notes = _notes(row, groups, us, pd, n_test)
            entry = EvalResultEntry(
                to.repository,
                task_id(groups, len(to.n_pairs)),
                round(100 * us["value"], 2),
                date=_scored_at(facts, row["model_key"], benchmark),
                notes=notes,
            )
            entries.append(entry)
            said.append(f"{benchmark} ({to.repository}): {notes}")
        if entries:
            name = re.sub(r"[^\w.-]+", "_", benchmark, flags=re.ASCII)
            listed = [CardData(**one).to_yaml() for one in eval_result_entries_to_yaml(entries)]
            text = "".join(f"- {indent(one, '  ')[2:]}\n" for one in listed)
            files[f".eval_results/plumbline-{name}.yaml"] = text.encode()
        else:
            fix = "run `plumbline measure`, with the same --eta"
            skipped.append(f"{benchmark}: no US and PD of the pairs of {to.repository}: {fix}")
    if not files:
        reasons = "; ".join(skipped) or "no US and PD of it are there: run `plumbline measure`"
        raise UsageProblem(f"model {model}", f"has no result for the hub: {reasons}")
    return HubResults(files, said, skipped)


def _measured(rows: Rows, to: DataSet) -> Iterator[tuple[str, Row, Row, int]]:
    """Groups, US, PD and number of pairs of the data set, where both are of these pairs."""
    limit = to.limit or {"subset": "all", "corpus": ""}
    for groups, n_test in sorted(to.n_pairs.items()):
        of = rows.where(groups=groups, **limit).only(lambda r: r["value"] is not None)
        of = of.only(lambda r: math.isclose(r["epsilon_nats"] or 0, _EPSILON_NATS))
        metrics = [of.where(metric=metric) for metric in ("us", "pd")]
        if all(len(one) == 1 for one in metrics) and metrics[0][0]["n"] <= n_test:
            yield groups, metrics[0][0], metrics[1][0], n_test


def _notes(model: Row, groups: str, us: Row, pd: Row, n_test: int) -> str:
    """The interval, PD and how it was measured, as one line of plain characters."""

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
    """The day on which the last of the scores was computed; ``None`` for those from elsewhere."""
    (row,) = facts.rows("evaluation").where(model_key=model_key, benchmark=benchmark)
    return f"{row['scored_at']:%Y-%m-%d}" if row["scored_at"] else None
