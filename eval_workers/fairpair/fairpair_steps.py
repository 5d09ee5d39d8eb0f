"""The steps of a FairPair run. Each step reads earlier results from tables and can be rerun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.fairpair import probe_prompts
from plumbline.eval_workers.fairpair.fairpair_options import RULES, FairPairSpec
from plumbline.eval_workers.fairpair.perturbed_set import (
    PerturbedSamples,
    check_counterparts,
    perturb_set,
)
from plumbline.eval_workers.fairpair.perturbers import (
    ChatPerturber,
    Perturber,
    RulePerturber,
    check_rules,
    ledger_name,
)
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.model_step import run_on_model
from plumbline.eval_workers.scoring.served_samples import ServedModel, sample_from_server
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import check_name
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]

#: The paper's scoring functions.
_PAPER = ("jaccard", "vader")


def prompt_rows(store: Store | None, probe_set: str, spec: FairPairSpec) -> list[Row]:
    """Return the prompts of a set.

    Reads the prompt file, if the spec names one. Otherwise reads the set from the warehouse, or
    from ``PROBE_SETS`` if it isn't in the warehouse.

    Raises ``UsageProblem`` for an invalid name, and what ``probe_prompts.load`` raises.

    >>> len(prompt_rows(None, "common-sents", FairPairSpec()))
    60
    """
    check_name(f"probe set {probe_set!r}", probe_set)
    rows = store.read("probe_prompt", probe_set=probe_set).to_pylist() if store else []
    if rows and not spec.prompts:
        return rows
    sets = probe_prompts.PROBE_SETS
    if not spec.prompts and probe_set in sets.made and sets.find(probe_set) is None:
        return [*probe_prompts.closed_world_rows()]
    file = probe_prompts.load(Path(spec.prompts) if spec.prompts else probe_set)
    return [*probe_prompts.prompt_rows(file, probe_set)]


def check(spec: FairPairSpec, probe_set: str, rows: Sequence[Row]) -> None:
    """Check the scoring functions, perturber and prompts before the run starts."""
    scoring_functions(spec, rows)
    check_counterparts(probe_set, rows)
    if spec.perturber == RULES:
        check_rules(rows)
    else:
        _ = spec.chat_wording()


def scoring_functions(spec: FairPairSpec, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the names of the spec's scoring functions, by default jaccard and vader.

    A default function is left out if it doesn't support all languages of the prompts. Raises
    ``UsageProblem`` if the spec names an unknown function or one that doesn't support them all.

    >>> scoring_functions(FairPairSpec(), [{"language": "de"}])
    ('jaccard',)
    """
    from plumbline.eval_workers.fairpair import phi

    languages = {str(row["language"]) for row in rows}
    fitting = []
    for name in dict.fromkeys(spec.phi or _PAPER):
        known = phi.SCORING_FUNCTIONS.load(name).LANGUAGES
        unknown = languages - set(known if known is not None else languages)
        if not unknown:
            fitting.append(name)
        elif spec.phi:
            listed = ", ".join(known or ())
            problem = f"knows {listed}, the prompts are in {', '.join(sorted(unknown))}"
            raise UsageProblem(f"scoring function {name!r}", problem, "leave it out of --phi")
    return tuple(fitting)


def write_prompts(store: Store, probe_set: str, rows: Sequence[Row], run_id: str) -> None:
    """Write a set's prompts, unless the warehouse already has the same prompts."""
    if _contents(store.read("probe_prompt", probe_set=probe_set).to_pylist()) != _contents(rows):
        store.replace("probe_prompt", rows, {"probe_set": probe_set}, run_id)


def _contents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    filled = [{k: v for k, v in row.items() if k != "run_id" and v is not None} for row in rows]
    return sorted(filled, key=lambda row: str(row["prompt_id"]))


def draw(store: Store, probe_set: str, model: str, spec: FairPairSpec, run_id: str) -> StepCounts:
    """Sample the missing continuations from a model, which is on a server or loaded from disk.

    Raises ``BadInput`` if no prompt could be continued. Also raises what the sampler raises.
    """
    sampling, target = spec.sampling(), spec.target(model)
    if isinstance(target, ServedModel):
        drawn = spec, sampling, spec.n, run_id
        done = sample_from_server(store, probe_set, target, *drawn)
    else:
        step = Continuations(probe_set, sampling, spec.n)
        (done,) = run_on_model(store, model, target, [step], run_id)
    if not done.n_done:
        subject = "/".join(done.partition.values())
        rejects = store.read("reject", stage="sample", subject=subject).to_pylist()
        first = f", the first: {rejects[0]['reason']}" if rejects else ""
        problem = f"none of the prompts could be continued{first}"
        raise BadInput(f"model {model}", problem, "try another --max-new-tokens")
    return done


def continued(store: Store, probe_set: str) -> list[tuple[str, str]]:
    """Return each (``model_key``, ``sampling_key``) that has samples of a set, sorted by model.

    Raises ``UsageProblem`` if the set has no samples.
    """
    query = (
        "SELECT DISTINCT model, model_key, sampling_key FROM continuation "
        "WHERE probe_set = $probe_set ORDER BY ALL"
    )
    rows = rows_of(store.root, query, {"probe_set": probe_set})
    if not rows:
        fix = f"run plumbline fairpair run {probe_set} --model ID_OR_PATH"
        raise UsageProblem(f"probe set {probe_set!r}", "has no samples", fix)
    return [(row["model_key"], row["sampling_key"]) for row in rows]


def perturb(
    store: Store, probe_set: str, model_key: str, sampling_key: str, spec: FairPairSpec, run_id: str
) -> PerturbedSamples:
    """Perturb a model's stored continuations of a set. Return the key columns of the new rows.

    A chat model only gets requests that have no stored reply. Raises what ``perturb_set`` raises.
    """
    perturber: Perturber = RulePerturber()
    if spec.perturber != RULES:
        build = Build(store, ledger_name(probe_set), run_id, spec.perturber_server())
        model = ChatModel(spec.perturber, token_limit=spec.token_limit)
        perturber = ChatPerturber(build, model, spec.chat_wording())
    keys = probe_set, model_key, sampling_key
    return perturb_set(store, *keys, perturber, run_id, text_filter=spec.text_filter())
