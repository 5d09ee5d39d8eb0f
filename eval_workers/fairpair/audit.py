"""The steps of FairPair on a warehouse, with a bar where they are long; each may be called again.

Prompts, samples, perturbations, figures, convergence: what comes later reads what came before from
the tables, so that each may also be done alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.chat.spending_bar import asking_bar
from plumbline.eval_workers.fairpair import closed_world, phi, prompts
from plumbline.eval_workers.fairpair.classifiers import ClassifierPhi
from plumbline.eval_workers.fairpair.figures.calibration import CalibrationOptions, calibrate_set
from plumbline.eval_workers.fairpair.figures.convergence import ConvergenceOptions, converge_set
from plumbline.eval_workers.fairpair.figures.fairpair_set import score_set
from plumbline.eval_workers.fairpair.figures.texts import Sampled, read_groups
from plumbline.eval_workers.fairpair.options import FigureOptions
from plumbline.eval_workers.fairpair.perturbation import chat_perturber as perturb_llm
from plumbline.eval_workers.fairpair.perturbation import terms
from plumbline.eval_workers.fairpair.perturbation.perturbed_set import (
    check_counterparts,
    perturb_set,
    try_prompts,
)
from plumbline.eval_workers.fairpair.perturbation.perturber import Perturber, RulePerturber
from plumbline.eval_workers.fairpair.spec import RULES, FairPairSpec, Target
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.work.continuations import Continuations
from plumbline.eval_workers.work.continuations import Sampled as Drawn
from plumbline.eval_workers.work.runner import run_steps
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

Row = Mapping[str, Any]

#: The paper's scoring functions.
_PAPER = ("jaccard", "vader")


def prompt_rows(store: Store | None, probe_set: str, spec: FairPairSpec) -> list[Row]:
    """The prompts of a set: of the spec's file, else of the warehouse, else of a set that comes
    with Plumbline or another package (``prompts.PROBE_SETS``).

    Raises ``UsageProblem`` for a set that is in none of them, and for a name that can't be one; as
    ``prompts.load`` for the file.

    >>> len(prompt_rows(None, "common-sents", FairPairSpec()))
    60
    """
    if not probe_set or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in probe_set):
        problem = "is not a valid name for a set of prompts"
        raise UsageProblem(f"probe set {probe_set!r}", problem, "use letters, digits, - _ and .")
    if spec.prompts:
        return list(prompts.prompt_rows(prompts.load(Path(spec.prompts)), probe_set, ""))
    if store and (held := store.read("probe_prompt", probe_set=probe_set).to_pylist()):
        return list(held)
    if prompts.PROBE_SETS.find(probe_set) is None and probe_set == closed_world.PROBE_SET:
        return list(closed_world.prompt_rows(""))
    return list(prompts.prompt_rows(prompts.load(probe_set), probe_set, ""))


def other_prompts(probe_set: str, rows: Sequence[Row], spec: FairPairSpec) -> Iterator[str]:
    """A line where a warehouse holds other prompts than the set of that name has today.

    These stay: samples were drawn after them.
    """
    if spec.prompts or probe_set not in prompts.PROBE_SETS.names():
        return
    today = prompt_rows(None, probe_set, spec)
    if _contents(today) != _contents(rows):
        yield (
            f"{probe_set}: the prompts in the warehouse, such as {rows[0]['prompt']!r}; with "
            f"another --warehouse those of today, such as {today[0]['prompt']!r}"
        )


def check(spec: FairPairSpec, probe_set: str, rows: Sequence[Row]) -> None:
    """Raise what is wrong with scoring functions, perturber and prompts, before time is spent."""
    scoring_functions(spec, rows)
    check_counterparts(probe_set, rows)
    if spec.perturber == RULES:
        try_prompts(rows, _rules(spec))
    else:
        _ = spec.chat_wording()
        _ = spec.price(spec.perturber)


def check_classifiers(phi_names: Sequence[str]) -> None:
    """Raise what is wrong with the models of classifiers, without their weights."""
    for name in phi_names:
        found = phi.find(name)
        if isinstance(found, ClassifierPhi):
            _ = found.classifier


def scoring_functions(spec: FairPairSpec, rows: Sequence[Row]) -> tuple[str, ...]:
    """Names of the scoring functions for these prompts: those asked for, or the paper's that fit.

    Raises ``UsageProblem`` for an unknown one, and for one that doesn't know a prompt's language.

    >>> scoring_functions(FairPairSpec(), [{"language": "de"}])
    ('jaccard',)
    """
    languages = {str(row["language"]) for row in rows}
    fitting = []
    for name in spec.phi or _PAPER:
        known = phi.find(name).LANGUAGES
        others = sorted(languages - set(known)) if known is not None else []
        if not others:
            fitting.append(name)
        elif spec.phi:
            problem = f"knows {', '.join(known or ())}, the prompts are in {', '.join(others)}"
            raise UsageProblem(f"scoring function {name!r}", problem, "leave it out of --phi")
    columns = [phi.column(name) for name in fitting]
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise UsageProblem("--phi", f"names {twice} twice", "rename one of the files")
    return tuple(fitting)


def write_prompts(store: Store, probe_set: str, rows: Sequence[Row], run_id: str) -> int:
    """Publish the prompts of a set, unless the warehouse holds just these; their number."""
    held = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    if _contents(held) != _contents(rows):
        new = [{**row, "run_id": run_id} for row in rows]
        store.replace("probe_prompt", new, {"probe_set": probe_set}, run_id)
    return len(rows)


def _contents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    known = [{k: v for k, v in row.items() if k != "run_id" and v is not None} for row in rows]
    return sorted(known, key=lambda row: str(row["prompt_id"]))


def draw(store: Store, probe_set: str, target: Target, spec: FairPairSpec, run_id: str) -> Drawn:
    """The samples that are missing, from the model itself or its server.

    Raises ``BadInput`` when not one prompt could be continued; else as ``run_steps`` and
    ``sample_from_server``.
    """
    from plumbline.eval_workers.work.served_samples import sample_from_server

    sampling = spec.sampling()
    if target.served is not None:
        with progress(f"sample {target.model}", "samples") as update:
            done = sample_from_server(
                *(store, probe_set, target.served, spec.server(spec.base_url), sampling, spec.n),
                *(run_id, spec.budget(), spec.price(target.model), update),
            )
    else:
        assert target.options is not None, "a target is loaded here or served"
        step = Continuations(probe_set, sampling, spec.n)
        (done,) = run_steps(store, target.model, target.options, [step], run_id)
    if not done.n_samples:
        subject = f"{done.model_key}/{probe_set}/{done.sampling_key}"
        rejects = store.read("reject", stage="sample", subject=subject).to_pylist()
        first = f", the first: {rejects[0]['reason']}" if rejects else ""
        problem = f"none of the prompts could be continued{first}"
        raise BadInput(f"model {target.model}", problem, "such as with other --max-new-tokens")
    return done


@dataclass(frozen=True)
class Continued:
    """Whose samples of a set the warehouse holds, and how many."""

    model: str
    model_key: str
    sampling_key: str
    n: int


def continued(store: Store, probe_set: str, spec: FairPairSpec) -> list[Continued]:
    """Models and ways to decode that a set has samples of, by name; only those of ``spec.model``.

    Its names or keys are parted by commas; empty: all. Raises ``UsageProblem`` if there aren't any.
    """
    wanted = {name.strip() for name in spec.model.split(",") if name.strip()}
    query = (
        "SELECT model, model_key, sampling_key, count(*) AS n FROM continuation "
        "WHERE probe_set = $probe_set GROUP BY ALL ORDER BY ALL"
    )
    all_of_set = [Continued(**r) for r in rows_of(store.root, query, {"probe_set": probe_set})]
    found = [one for one in all_of_set if not wanted or wanted & {one.model, one.model_key}]
    for name in sorted(wanted):
        if not any(name in (one.model, one.model_key) for one in all_of_set):
            held = ", ".join(dict.fromkeys(one.model for one in all_of_set)) or "no model"
            problem = f"has no samples of {name}"
            raise UsageProblem(f"probe set {probe_set!r}", problem, f"there are those of {held}")
    if not found:
        fix = f"run plumbline fairpair run {probe_set} --model ID_OR_PATH"
        raise UsageProblem(f"probe set {probe_set!r}", "has no samples", fix)
    return found


def perturb(
    store: Store, probe_set: str, model_key: str, sampling_key: str, spec: FairPairSpec, run_id: str
) -> Sampled:
    """Perturb all continuations of a model and a way to decode; whose rows they are.

    A chat perturber is asked only what its ledger does not hold. Raises as ``perturb_set``.
    """
    keys = (probe_set, model_key, sampling_key)
    with _perturber(store, probe_set, spec, run_id) as perturber:
        if spec.perturber == RULES:
            with progress("perturb", "texts") as tell:
                perturb_set(store, *keys, perturber, run_id, tell=tell)
        else:
            perturb_set(store, *keys, perturber, run_id)
        return Sampled(*keys, perturber.name)


@contextmanager
def _perturber(
    store: Store, probe_set: str, spec: FairPairSpec, run_id: str
) -> Iterator[Perturber]:
    if spec.perturber == RULES:
        yield _rules(spec)
        return
    price, ledger = spec.price(spec.perturber), perturb_llm.ledger_name(probe_set)
    with asking_bar("texts", price.currency if price else None) as tell:
        server, budget = spec.perturber_server(), spec.budget()
        build = Build(store, ledger, run_id, server, budget, price, tell)
        yield perturb_llm.LlmPerturber(build, spec.chat_perturber(), spec.chat_wording())


def _rules(spec: FairPairSpec) -> RulePerturber:
    return RulePerturber(terms.load(Path(spec.terms)) if spec.terms else None)


def open_phi(
    store: Store, sampled: Sampled, phi_name: str, spec: FairPairSpec, run_id: str
) -> phi.Phi:
    """A scoring function; a classifier has seen all texts of the set then, each of them once.

    Raises as ``find`` and ``ClassifierPhi.classifier``.
    """
    found = phi.find(phi_name)
    if not isinstance(found, ClassifierPhi):
        return found
    opened = found.opened(part(ModelOptions, spec), store, run_id)
    groups = read_groups(store, sampled, spec.as_published)
    opened.items([text for group in groups for text in group.pg + group.gp])
    return opened


def score(store: Store, sampled: Sampled, phi_name: str, spec: FairPairSpec, run_id: str) -> None:
    """B, V and F by one scoring function; see ``score_set``."""
    opened = open_phi(store, sampled, phi_name, spec, run_id)
    score_set(store, sampled, phi.column(phi_name), part(FigureOptions, spec), run_id, opened)


def converge(
    store: Store, sampled: Sampled, phi_name: str, spec: FairPairSpec, run_id: str
) -> None:
    """How they settle as samples grow; see ``converge_set``."""
    opened = open_phi(store, sampled, phi_name, spec, run_id)
    options = ConvergenceOptions(seed=spec.seed, as_published=spec.as_published)
    converge_set(store, sampled, phi.column(phi_name), options, run_id, opened)


def calibrate(
    store: Store, sampled: Sampled, phi_name: str, spec: FairPairSpec, run_id: str
) -> None:
    """What is found where nothing is: halves of one side's own samples; see ``calibrate_set``."""
    opened = open_phi(store, sampled, phi_name, spec, run_id)
    options = CalibrationOptions()
    measure = replace(
        options.measure, folds=spec.folds, seed=spec.seed, as_published=spec.as_published
    )
    options = replace(options, measure=measure)
    calibrate_set(store, sampled, phi.column(phi_name), options, run_id, opened)
