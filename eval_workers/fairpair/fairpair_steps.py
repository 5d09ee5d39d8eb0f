"""Steps of FairPair on a warehouse; each reads earlier results from tables and can be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.chat_session import Build, asking_bar
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.fairpair import closed_world_pairs, phi, probe_prompts
from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.fairpair_spec import RULES, FairPairSpec, SampledModel
from plumbline.eval_workers.fairpair.figures.calibration import CalibrationOptions, calibrate_set
from plumbline.eval_workers.fairpair.figures.convergence import ConvergenceOptions, converge_set
from plumbline.eval_workers.fairpair.figures.fairpair_set import score_set
from plumbline.eval_workers.fairpair.figures.text_groups import PerturbedSamples
from plumbline.eval_workers.fairpair.perturbation import chat_perturber, terms
from plumbline.eval_workers.fairpair.perturbation.perturbed_set import (
    check_counterparts,
    perturb_set,
    try_prompts,
)
from plumbline.eval_workers.fairpair.perturbation.perturber import RulePerturber
from plumbline.eval_workers.scoring.continuations import Continuations, SampleCounts
from plumbline.eval_workers.scoring.model_step import run_on_model
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

Row = Mapping[str, Any]

#: The paper's scoring functions.
_PAPER = ("jaccard", "vader")


def prompt_rows(store: Store | None, probe_set: str, spec: FairPairSpec) -> list[Row]:
    """Prompts of a set: from the spec's file, else the warehouse, else ``PROBE_SETS``.

    Raises ``UsageProblem`` for an unknown set and an invalid name, and as ``probe_prompts.load``.

    >>> len(prompt_rows(None, "common-sents", FairPairSpec()))
    60
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", probe_set):
        problem = "is not a valid name for a set of prompts"
        raise UsageProblem(f"probe set {probe_set!r}", problem, "use letters, digits, - _ and .")
    if spec.prompts:
        return [*probe_prompts.prompt_rows(probe_prompts.load(Path(spec.prompts)), probe_set, "")]
    if store and (rows := store.read("probe_prompt", probe_set=probe_set).to_pylist()):
        return [*rows]
    is_closed_world = probe_set == closed_world_pairs.PROBE_SET
    if is_closed_world and probe_prompts.PROBE_SETS.find(probe_set) is None:
        return [*closed_world_pairs.prompt_rows("")]
    return [*probe_prompts.prompt_rows(probe_prompts.load(probe_set), probe_set, "")]


def other_prompts(probe_set: str, rows: Sequence[Row], spec: FairPairSpec) -> Iterator[str]:
    """Yield a line if ``rows``, the prompts in the warehouse, differ from the installed set's."""
    if spec.prompts or probe_set not in probe_prompts.PROBE_SETS.names():
        return
    today = prompt_rows(None, probe_set, spec)
    if _contents(today) != _contents(rows):
        yield (
            f"{probe_set}: the prompts in the warehouse, such as {rows[0]['prompt']!r}; with "
            f"another --warehouse those of today, such as {today[0]['prompt']!r}"
        )


def check(spec: FairPairSpec, probe_set: str, rows: Sequence[Row]) -> None:
    """Raise errors of scoring functions, perturber and prompts before the run starts."""
    scoring_functions(spec, rows)
    check_counterparts(probe_set, rows)
    if spec.perturber == RULES:
        try_prompts(rows, _rules(spec))
    else:
        _ = spec.chat_wording()
        _ = spec.price(spec.perturber)


def scoring_functions(spec: FairPairSpec, rows: Sequence[Row]) -> tuple[str, ...]:
    """Names of the spec's scoring functions; by default the paper's that know the language.

    Raises ``UsageProblem`` for an unknown name, a function named twice, and one of the spec that
    doesn't know a language of the prompts.

    >>> scoring_functions(FairPairSpec(), [{"language": "de"}])
    ('jaccard',)
    """
    languages = {str(row["language"]) for row in rows}
    fitting = []
    for name in spec.phi or _PAPER:
        phi_languages = phi.find(name).LANGUAGES
        if phi_languages is None or languages <= set(phi_languages):
            fitting.append(name)
        elif spec.phi:
            unknown_languages = ", ".join(sorted(languages - set(phi_languages)))
            problem = f"knows {', '.join(phi_languages)}, the prompts are in {unknown_languages}"
            raise UsageProblem(f"scoring function {name!r}", problem, "leave it out of --phi")
    if twice := next((name for name in fitting if fitting.count(name) > 1), None):
        raise UsageProblem("--phi", f"names {twice} twice", "leave one out")
    return tuple(fitting)


def write_prompts(store: Store, probe_set: str, rows: Sequence[Row], run_id: str) -> int:
    """Publish a set's prompts unless the warehouse has the same ones; returns their number."""
    if _contents(store.read("probe_prompt", probe_set=probe_set).to_pylist()) != _contents(rows):
        new = [{**row, "run_id": run_id} for row in rows]
        store.replace("probe_prompt", new, {"probe_set": probe_set}, run_id)
    return len(rows)


def _contents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    filled = [{k: v for k, v in row.items() if k != "run_id" and v is not None} for row in rows]
    return sorted(filled, key=lambda row: str(row["prompt_id"]))


def draw(
    store: Store, probe_set: str, target: SampledModel, spec: FairPairSpec, run_id: str
) -> SampleCounts:
    """Draw the missing samples from a model loaded here, or from its server.

    Raises ``BadInput`` if no prompt could be continued, and as the sampler.
    """
    from plumbline.eval_workers.scoring.served_samples import sample_from_server

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
        (done,) = run_on_model(store, target.model, target.options, [step], run_id)
    if not done.n_samples:
        subject = f"{done.model_key}/{probe_set}/{done.sampling_key}"
        rejects = store.read("reject", stage="sample", subject=subject).to_pylist()
        first = f", the first: {rejects[0]['reason']}" if rejects else ""
        problem = f"none of the prompts could be continued{first}"
        raise BadInput(f"model {target.model}", problem, "try another --max-new-tokens")
    return done


@dataclass(frozen=True)
class Continued:
    """A model and a decoding that continued a set, and the number ``n`` of their samples."""

    model: str
    model_key: str
    sampling_key: str
    n: int


def continued(store: Store, probe_set: str, spec: FairPairSpec) -> list[Continued]:
    """Models and decodings that have samples of a set, sorted by model name.

    ``spec.model`` limits them to names or keys. Raises ``UsageProblem`` without any, and for a name
    without samples.
    """
    query = (
        "SELECT model, model_key, sampling_key, count(*) AS n FROM continuation "
        "WHERE probe_set = $probe_set GROUP BY ALL ORDER BY ALL"
    )
    rows = [Continued(**row) for row in rows_of(store.root, query, {"probe_set": probe_set})]
    names = {name.strip() for name in spec.model.split(",") if name.strip()}
    for name in sorted(names):
        if not any(name in (row.model, row.model_key) for row in rows):
            models = ", ".join(dict.fromkeys(row.model for row in rows)) or "no model"
            problem = f"has no samples of {name}"
            raise UsageProblem(f"probe set {probe_set!r}", problem, f"there are those of {models}")
    chosen = [row for row in rows if not names or names & {row.model, row.model_key}]
    if not chosen:
        fix = f"run plumbline fairpair run {probe_set} --model ID_OR_PATH"
        raise UsageProblem(f"probe set {probe_set!r}", "has no samples", fix)
    return chosen


def perturb(
    store: Store, probe_set: str, model_key: str, sampling_key: str, spec: FairPairSpec, run_id: str
) -> PerturbedSamples:
    """Perturb all continuations of a model and a decoding; returns the key of the new rows.

    A chat perturber sends only requests without a reply in its ledger. Raises as ``perturb_set``.
    """
    keys, text_filter = (probe_set, model_key, sampling_key), spec.text_filter()
    if spec.perturber == RULES:
        rules = _rules(spec)
        with progress("perturb", "texts") as tell:
            name = perturb_set(store, *keys, rules, run_id, text_filter=text_filter, tell=tell)
        return PerturbedSamples(*keys, name)
    price, ledger = spec.price(spec.perturber), chat_perturber.ledger_name(probe_set)
    with asking_bar("texts", price.currency if price else None) as spend:
        server, budget = spec.perturber_server(), spec.budget()
        build = Build(store, ledger, run_id, server, budget, price, spend)
        model = ChatModel(spec.perturber, token_limit=spec.token_limit)
        chat = chat_perturber.LlmPerturber(build, model, spec.chat_wording())
        name = perturb_set(store, *keys, chat, run_id, text_filter=text_filter)
    return PerturbedSamples(*keys, name)


def _rules(spec: FairPairSpec) -> RulePerturber:
    return RulePerturber(terms.load(Path(spec.terms)) if spec.terms else None)


def score(
    store: Store, sampled: PerturbedSamples, phi_name: str, spec: FairPairSpec, run_id: str
) -> None:
    """Compute B, V and F by one scoring function; see ``score_set``."""
    score_set(store, sampled, phi_name, part(FigureOptions, spec), run_id)


def converge(
    store: Store, sampled: PerturbedSamples, phi_name: str, spec: FairPairSpec, run_id: str
) -> None:
    """Compute how B, V and F converge with the number of samples; see ``converge_set``."""
    options = ConvergenceOptions(seed=spec.seed, as_published=spec.as_published)
    converge_set(store, sampled, phi_name, options, run_id)


def calibrate(
    store: Store, sampled: PerturbedSamples, phi_name: str, spec: FairPairSpec, run_id: str
) -> None:
    """Calibrate on random halves of each prompt's samples; see ``calibrate_set``."""
    options = CalibrationOptions()
    measure = replace(
        options.measure,
        folds=spec.folds,
        seed=spec.seed,
        as_published=spec.as_published,
        filter_limit=spec.filter_limit,
        filter_unit=spec.filter_unit,
    )
    options = replace(options, measure=measure)
    calibrate_set(store, sampled, phi_name, options, run_id)
