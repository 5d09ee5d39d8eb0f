"""Running FairPair: prompts, samples, perturbations, figures, convergence, report."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.fairpair import steps
from plumbline.eval_workers.fairpair.spec import Target
from plumbline.eval_workers.fairpair.texts import Sampled
from plumbline.eval_workers.sampling.continuations import Sampled as Drawn
from plumbline.pipelines.fairpair_order import Audited, Order, Outcome
from plumbline.pipelines.report.write import write_report
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say


def prompts(order: Order, run_id: str) -> None:
    """The set of prompts, of its file or as it is."""
    rows = steps.prompt_rows(_store(order), order.probe_set, order.spec)
    steps.write_prompts(_store(order), order.probe_set, rows, run_id)


def sample(order: Order, target: Target, run_id: str) -> Drawn:
    """The samples that are missing."""
    return steps.draw(_store(order), order.probe_set, target, order.spec, run_id)


def perturb(order: Order, drawn: Drawn, run_id: str) -> Sampled:
    """Every continuation about the counterpart, checked."""
    whose = (drawn.probe_set, drawn.model_key, drawn.sampling_key)
    return steps.perturb(_store(order), *whose, order.spec, run_id)


def score(order: Order, sampled: Sampled, phi: str, run_id: str) -> None:
    """B, V and F of prompts and set, both sides, by one scoring function."""
    steps.score(_store(order), sampled, phi, order.spec, run_id)


def convergence(order: Order, sampled: Sampled, phi: str, run_id: str) -> None:
    """How they settle as samples and folds grow."""
    steps.converge(_store(order), sampled, phi, order.spec, run_id)


def calibration(order: Order, sampled: Sampled, phi: str, run_id: str) -> None:
    """What is found between halves of one side's own samples."""
    steps.calibrate(_store(order), sampled, phi, order.spec, run_id)


def report(order: Order) -> Path:
    """The HTML page and its plots; returns the page's path."""
    return write_report(order.warehouse, order.out)


def fairpair(order: Order, stages: Stages) -> Outcome:
    """Measure a set of prompts under each model; of several, one that fails stops no other."""
    audited: list[Audited] = []
    failures: list[str] = []
    for target in order.targets:
        try:
            audited.append(audit(order, target, stages))
        except Interrupted:
            raise
        except PlumblineError as e:
            if len(order.targets) == 1:
                raise
            failures.append(f"{target.model}: {e}")
            say(f"failed: {failures[-1]}")
    page = None
    if audited:
        page = stages.run("report", report, order)
    return Outcome(tuple(audited), tuple(failures), page)


def audit(order: Order, target: Target, stages: Stages) -> Audited:
    """Measure the set under one model."""
    with recorded(_store(order), "fairpair run", order.config(target)) as run_id:
        stages.run("prompts", prompts, order, run_id)
        drawn = stages.retried(f"sample {target.model}", sample, order, target, run_id)
        sampled = stages.run("perturb", perturb, order, drawn, run_id)
        for phi in order.phi:
            stages.run(f"score by {phi}", score, order, sampled, phi, run_id)
            stages.run(f"convergence by {phi}", convergence, order, sampled, phi, run_id)
            stages.run(f"calibration by {phi}", calibration, order, sampled, phi, run_id)
    return Audited(drawn, sampled)


def _store(order: Order) -> Store:
    return Store.open(order.warehouse)
