"""Measuring disclosure: prompts, what models disclose, an adapter that discloses less."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from plumbline.eval_workers.backends.devices import release
from plumbline.eval_workers.disclosure.measure import Disclosed, measure_sets
from plumbline.eval_workers.disclosure.probes import import_probe
from plumbline.eval_workers.mitigation.bar import tuning_bar
from plumbline.eval_workers.mitigation.tune import Tuned
from plumbline.eval_workers.mitigation.tune import tune as tune_adapter
from plumbline.pipelines.disclosure_order import Order, Outcome, Subject, missing_sets
from plumbline.pipelines.report.write import write_report
from plumbline.pipelines.stages import CONSOLE, Stages
from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


def prompts(order: Order, names: list[str]) -> None:
    """Import known sets that the warehouse lacks."""
    for name in names:
        with recorded(_store(order), "disclosure prompts", {"probe_set": name}) as run_id:
            import_probe(_store(order), name, None, run_id)


def measure(order: Order, subject: Subject, run_id: str) -> list[Disclosed]:
    """Probabilities and continuations that are missing, of all sets; the model is loaded once."""
    return measure_sets(
        *(_store(order), order.sets, subject.model, subject.options, run_id),
        word_list=order.word_list,
        max_new_tokens=order.max_new_tokens,
    )


def tune(order: Order, run_id: str) -> Tuned:
    """The adapter, from its last checkpoint on."""
    tuning, (base,) = order.tuning, order.subjects
    assert tuning is not None, "asked for nothing to tune"
    try:
        with tuning_bar(tuning.name) as progress:
            return tune_adapter(
                *(_store(order), base.model, base.options, tuning.options, run_id),
                sets=tuning.sets,
                name=tuning.name,
                out=tuning.out,
                test_sets=tuning.test_sets,
                progress=progress,
            )
    finally:
        release()


def report(order: Order) -> Path:
    """The HTML page and its plots; returns the page's path."""
    return write_report(order.warehouse, order.out)


def disclosure(order: Order, stages: Stages) -> Outcome:
    """Measure sets under each model, of which one that fails stops no other; tune and measure."""
    if missing := missing_sets(_store(order), order.wanted):
        stages.run(f"prompts {', '.join(missing)}", prompts, order, missing)
    measured: list[Disclosed] = []
    failures: list[str] = []
    for subject in order.subjects if order.sets else ():
        try:
            measured += audit(order, subject, stages)
        except Interrupted:
            raise
        except PlumblineError as e:
            if len(order.subjects) == 1:
                raise
            failures.append(f"{subject.model}: {e}")
            CONSOLE.print(f"failed: {failures[-1]}", markup=False)
    tuned = adapter(order, stages) if order.tuning else None
    if tuned and order.sets:
        (base,) = order.subjects
        options = replace(base.options, adapter=str(tuned.path))
        measured += audit(order, Subject(base.model, options), stages)
    page = None
    if measured or tuned:
        page = stages.run("report", report, order)
    name, reused = (tuned.tuning, tuned.reused) if tuned else ("", False)
    return Outcome(tuple(measured), name, reused, tuple(failures), page)


def audit(order: Order, subject: Subject, stages: Stages) -> list[Disclosed]:
    """Measure every set under one model."""
    with recorded(_store(order), "disclosure probe", order.config(subject)) as run_id:
        name = f"measure {', '.join(order.sets)} by {_called(subject)}"
        return stages.retried(name, measure, order, subject, run_id)


def adapter(order: Order, stages: Stages) -> Tuned:
    """Tune the adapter that is ordered."""
    assert order.tuning is not None, "asked for nothing to tune"
    (base,) = order.subjects
    said = {"model": base.model, **asdict(base.options), **asdict(order.tuning)}
    said["out"] = str(order.tuning.out)
    with recorded(_store(order), "disclosure tune", said) as run_id:
        return stages.run(f"tune {order.tuning.name} for {base.model}", tune, order, run_id)


def _called(subject: Subject) -> str:
    adapter = subject.options.adapter
    return f"{subject.model} with {adapter}" if adapter else subject.model


def _store(order: Order) -> Store:
    return Store.open(order.warehouse)
