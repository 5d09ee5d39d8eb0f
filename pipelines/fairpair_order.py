"""What `plumbline fairpair run` was asked for, and what it and `score` say at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from plumbline.eval_workers.fairpair import steps
from plumbline.eval_workers.fairpair.spec import RULES, FairPairSpec, Target, load
from plumbline.eval_workers.fairpair.texts import Sampled
from plumbline.eval_workers.sampling.continuations import Sampled as Drawn
from plumbline.pipelines.cli.options import DEFAULT_WAREHOUSE
from plumbline.pipelines.order import held
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Order:
    """A probe set to measure under some models; ``phi`` names the scoring functions.

    ``out`` is the directory of the report.
    """

    probe_set: str
    spec: FairPairSpec
    targets: tuple[Target, ...]
    phi: tuple[str, ...]
    warehouse: Path
    out: Path

    def config(self, target: Target) -> dict[str, object]:
        """What is recorded of a model's run: every option that counts for it."""
        said = asdict(self.spec) | {"model": target.model, "models": "", "phi": self.phi}
        loaded = asdict(target.options) if target.options else {}
        return {"probe_set": self.probe_set, **said, **loaded}


@dataclass(frozen=True)
class Audited:
    """A model that was measured: what was drawn, and whose rows its figures are."""

    drawn: Drawn
    sampled: Sampled


@dataclass(frozen=True)
class Outcome:
    """Models that were measured, lines of those that failed, and the report's page."""

    audited: tuple[Audited, ...]
    failures: tuple[str, ...]
    page: Path | None


def checked_order(
    probe_set: str, config: Path | None, given: Mapping[str, object], warehouse: Path, out: Path
) -> tuple[Order, list[Mapping[str, Any]]]:
    """The order of a configuration and what is given beside it, and its prompts; nothing is made.

    Raises ``UsageProblem`` or ``BadInput`` for what can be seen without a model or a server.
    """
    spec = load(config, given)
    if spec.folds > spec.n:
        raise UsageProblem(f"folds {spec.folds}", f"are more than {spec.n} samples", "raise --n")
    targets = spec.targets()
    rows = steps.prompt_rows(held(warehouse), probe_set, spec)
    steps.check(spec, probe_set, rows)
    chosen = steps.scoring_functions(spec, rows)
    return Order(probe_set, spec, targets, chosen, warehouse, out), rows


def check_means(order: Order) -> None:
    """Keys of servers, then a single model without its weights, before anything starts.

    Of several models, one that fails is told when it is its turn.
    """
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.chat.client import find_key

    if order.spec.base_url:
        find_key(order.spec.base_url)
    if order.spec.perturber != RULES:
        find_key(order.spec.perturber_server().base_url)
    if len(order.targets) == 1 and order.targets[0].options is not None:
        _ = open_backend(order.targets[0].model, order.targets[0].options).identity


def after(order: Order, outcome: Outcome, store: Store) -> Iterator[str]:
    """Closing lines of a run: its figures, what was written, what to do next."""
    for one in outcome.audited:
        yield from _drawn_lines(one.drawn, store)
        yield from figures(store, one.sampled, order.phi, order.spec.folds)
    served = ["generation_request"] if order.spec.base_url else []
    yield f"Wrote {', '.join(('probe_prompt', 'continuation', *served, *TABLES))} in {store.root}"
    if outcome.page is not None:
        yield f"Wrote {outcome.page}"
    yield "Next: open the report, or " + _example(order.probe_set, store)


#: Tables that measuring writes.
TABLES = (
    *("perturbed_continuation", "fairpair_prompt", "fairpair_set"),
    *("fairpair_convergence", "fairpair_calibration"),
)


def _example(probe_set: str, store: Store) -> str:
    where = f" --warehouse {store.root}" if store.root != DEFAULT_WAREHOUSE else ""
    query = "FROM ngram_log_odds ORDER BY abs(z) DESC LIMIT 20"
    return f'plumbline sql{where} "{query}"'


def _drawn_lines(drawn: Drawn, store: Store) -> Iterator[str]:
    n_prompts = store.read("probe_prompt", probe_set=drawn.probe_set).num_rows
    rate = f", {drawn.samples_per_s:,.1f} samples/s" if drawn.samples_per_s else ""
    yield (
        f"{drawn.probe_set} by {drawn.model}, key {drawn.model_key}: {n_prompts:,} prompts, "
        f"{drawn.n_samples:,} samples, {drawn.n_new:,} new{rate}"
    )
    if drawn.n_rejected:
        sides = f"{drawn.n_rejected:,} of {drawn.n_texts:,} sides of prompts"
        yield f"  {sides} could not be continued (table `reject`)"
    if drawn.n_alike:
        sides = f"{drawn.n_alike:,} of {drawn.n_texts:,} sides of prompts"
        yield f"  {sides} have hardly any different samples"


def figures(store: Store, sampled: Sampled, phi: Sequence[str], n_folds: int) -> Iterator[str]:
    """Lines on perturbations by side, and on B, V and F by scoring function and side."""
    yield from _success_lines(store, sampled)
    for name in phi:
        where = (pc.field("n_folds") == n_folds) & (pc.field("subset") == "all")
        rows = store.read("fairpair_set", where, **asdict(sampled), phi=name).to_pylist()
        for row in sorted(rows, key=lambda row: str(row["side"])):
            yield f"  {name}{f', {n_folds} folds' if n_folds else ''}, {_figure_line(row)}"


def _figure_line(row: dict[str, Any]) -> str:
    values = (row["bias_b"], row["variability_pg"], row["variability_gp"], row["fairpair_f"])
    b, v_pg, v_gp, f = (_number(value) for value in values)
    line = f"{row['side']}: B {b}, V_pg {v_pg}, V_gp {v_gp}, F {f}"
    if row["ci_low"] is not None:
        line += f" [{row['ci_low']:.4f}, {row['ci_high']:.4f}]"
    tests = ((row["p_permutation"], "permutation"), (row["p_t"], "t-test"))
    said = [f"p {p:.3g} ({name})" for p, name in tests if p is not None]
    left = f", {row['n_left_out']:,} prompts left out" if row["n_left_out"] else ""
    return ", ".join((line, *said)) + left


def _number(value: float | None) -> str:
    """A figure with four digits.

    >>> _number(0.81234), _number(None)
    ('0.8123', 'undefined')
    """
    return "undefined" if value is None else f"{value:.4f}"


def _success_lines(store: Store, sampled: Sampled) -> Iterator[str]:
    keys = asdict(sampled)
    query = (
        "SELECT side, reason, n, n_side, share FROM perturbation_success "
        f"WHERE {' AND '.join(f'{name} = ${name}' for name in keys)} "
        "ORDER BY side, reason != 'valid', n DESC, reason"
    )
    with connect(store.root) as connection:
        rows = connection.execute(query, keys).fetchall()
    for side in dict.fromkeys(row[0] for row in rows):
        valid, *failed = [row for row in rows if row[0] == side]
        most = f'; most others: "{failed[0][1]}" ({failed[0][2]:,})' if failed else ""
        n_valid, n_side, share = valid[2:]
        yield (
            f"  {side}, perturbed by {sampled.perturber}: {n_valid:,} of {n_side:,} valid "
            f"({share:.1%}){most}"
        )
