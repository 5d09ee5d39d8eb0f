"""`plumbline fairpair run` and `score`: prompts, samples, perturbations, B, V and F."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from plumbline.eval_workers.backends.sampling import Draw
from plumbline.eval_workers.chat.budget import Price, money
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.fairpair import audit as steps
from plumbline.eval_workers.fairpair.figures.texts import Sampled
from plumbline.eval_workers.fairpair.options import FigureOptions, texts_of
from plumbline.eval_workers.fairpair.phi import column
from plumbline.eval_workers.fairpair.spec import RULES, FairPairSpec, Target, load
from plumbline.eval_workers.generation.forecast import FRAME_TOKENS
from plumbline.eval_workers.sampling.continuations import Continuations
from plumbline.eval_workers.sampling.continuations import Sampled as Drawn
from plumbline.eval_workers.sampling.served import ledger_name
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.report.write import write_report
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE, command_path
from plumbline.pipelines.requests.failures import Failures
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import PlumblineError, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True)
class FairPairRequest:
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
class FairPairOutcome:
    """Models that were measured, lines of those that failed, and the report's page."""

    audited: tuple[Audited, ...]
    failures: Failures
    page: Path | None


def checked_request(
    probe_set: str, config: Path | None, given: Mapping[str, object], warehouse: Path, out: Path
) -> tuple[FairPairRequest, list[Mapping[str, Any]]]:
    """The request of a configuration and what is given beside it, and its prompts; nothing is made.

    Raises ``UsageProblem`` or ``BadInput`` for what can be seen without a model or a server.
    """
    spec = load(config, given)
    if spec.folds > spec.n:
        raise UsageProblem(f"folds {spec.folds}", f"are more than {spec.n} samples", "raise --n")
    targets = spec.targets()
    rows = steps.prompt_rows(Store.existing(warehouse), probe_set, spec)
    steps.check(spec, probe_set, rows)
    chosen = steps.scoring_functions(spec, rows)
    return FairPairRequest(probe_set, spec, targets, chosen, warehouse, out), rows


def check_means(request: FairPairRequest) -> None:
    """Keys of servers, then a single model without its weights, before anything starts.

    Of several models, one that fails is reported when it is its turn. Classifiers are looked for.
    """
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.chat.client import find_key

    if request.spec.base_url:
        find_key(request.spec.base_url)
    if request.spec.perturber != RULES:
        find_key(request.spec.perturber_server().base_url)
    steps.check_classifiers(request.phi)
    if len(request.targets) == 1 and request.targets[0].options is not None:
        _ = open_backend(request.targets[0].model, request.targets[0].options).identity


def before(request: FairPairRequest, rows: Sequence[Row], store: Store | None) -> Iterator[str]:
    """Lines of ``--dry-run``; the model's weights are not read, nobody is asked.

    Of several models, one that can't be had is a line, as in the run.
    """
    spec = request.spec
    n = f"{len(rows):,} prompts with a counterpart"
    yield f"{request.probe_set}: {n}, {spec.n:,} samples per side"
    for target in request.targets:
        try:
            yield from (
                _served(request, target, rows, store)
                if target.served
                else _here(request, target, rows, store)
            )
        except PlumblineError as e:
            if len(request.targets) == 1:
                raise
            yield f"{target.model} would fail: {e}"
    yield from _perturbing(request, rows)
    yield f"measured by {', '.join(request.phi)}; texts {texts_of(spec.as_published)}"


def _missing(
    request: FairPairRequest, rows: Sequence[Row], store: Store | None, model_key: str
) -> Sequence[Draw]:
    sampling = request.spec.sampling()
    whose = {"probe_set": request.probe_set, "model_key": model_key, "sampling_key": sampling.key}
    found = store.read("continuation", **whose).to_pylist() if store else []
    step = Continuations(request.probe_set, sampling, request.spec.n)
    return step.state_of(rows, found, sampling.full_instruction.prefix).missing


def _here(
    request: FairPairRequest, target: Target, rows: Sequence[Row], store: Store | None
) -> Iterator[str]:
    from plumbline.eval_workers.backends.prospect import chosen_device, prospect, seconds_per_token
    from plumbline.eval_workers.scoring.dry_run import duration

    assert target.options is not None, "a target is loaded here or served"
    model = prospect(target.model, target.options)
    missing = _missing(request, rows, store, model.identity.key)
    texts = sorted({draw.text for draw in missing})
    encoded = model.encoded(texts)
    n_prompt = sum(len(ids) for ids in encoded if not isinstance(ids, str))
    n_new = len(missing) * request.spec.max_new_tokens
    yield (
        f"{target.model}, key {model.identity.key}: {len(missing):,} samples to draw after "
        f"{len(texts):,} texts, at most {n_new:,} new tokens"
    )
    refused = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    if refused:
        yield f"  {len(refused):,} texts can't be continued, the first: {refused[0]}"
    if not missing:
        return
    seconds = (n_new + n_prompt) * seconds_per_token(model.size, target.options)
    yield (
        f"  time: about {duration(seconds)} at the most, from matrix products measured on "
        f"{chosen_device(target.options)}; reading the weights and attention come on top"
    )


def _served(
    request: FairPairRequest, target: Target, rows: Sequence[Row], store: Store | None
) -> Iterator[str]:
    spec, sampling, served = request.spec, request.spec.sampling(), target.served
    assert served is not None, "a target is loaded here or served"
    key = served.identity.key
    missing = _missing(request, rows, store, key)
    held = look(store, ledger_name(request.probe_set, key)).replies if store else {}
    unanswered = [d for d in missing if served.request(d, sampling).request_id not in held]
    n_in = sum(_tokens(draw.text) for draw in unanswered)
    n_out = len(unanswered) * spec.max_new_tokens
    answered = len(missing) - len(unanswered)
    known = f", {answered:,} more are answered already" if answered else ""
    yield (
        f"{target.model} at {spec.base_url}: {len(unanswered):,} requests, a sample each{known}; "
        f"about {n_in:,} tokens in, at most {n_out:,} out"
    )
    yield f"  {_cost(spec.price(target.model), n_in, n_out)}"


def _perturbing(request: FairPairRequest, rows: Sequence[Row]) -> Iterator[str]:
    spec = request.spec
    n_texts = 2 * len(rows) * spec.n * len(request.targets)
    if spec.perturber == RULES:
        yield f"perturbed by rules, which asks nobody: {n_texts:,} texts"
        return
    wording = _tokens(spec.chat_wording().text)
    texts = sum(
        _tokens(row[side]) + spec.max_new_tokens
        for row in rows
        for side in ("prompt", "perturbed_prompt")
    )
    n_out = texts * spec.n * len(request.targets)
    n_in = n_out + n_texts * wording
    yield (
        f"perturbed by {spec.perturber}: at most {n_texts:,} requests, one a different text; about "
        f"{n_in:,} tokens in, {n_out:,} out"
    )
    yield f"  {_cost(spec.price(spec.perturber), n_in, n_out)}"


def _tokens(text: str) -> int:
    """About how many tokens a text in English is, with what servers put around it.

    >>> _tokens("John is working as a clerk.")
    15
    """
    return FRAME_TOKENS + -(-len(text) // _CHARACTERS_A_TOKEN)


def _cost(price: Price | None, n_in: int, n_out: int) -> str:
    if price is None:
        return "cost: unknown without --prices FILE"
    return f"cost: about {money(price.cost(n_in, n_out), price.currency)} at the most"


def after(request: FairPairRequest, outcome: FairPairOutcome, store: Store) -> Iterator[str]:
    """Closing lines of a run: its figures, what was written, what to do next."""
    for one in outcome.audited:
        yield from _drawn_lines(one.drawn, store)
        yield from figures(store, one.sampled, request.phi, request.spec)
    served = ["generation_request"] if request.spec.base_url else []
    yield f"Wrote {', '.join(('probe_prompt', 'continuation', *served, *TABLES))} in {store.root}"
    if outcome.page is not None:
        yield f"Wrote {outcome.page}"
    yield "Next: open the report, or " + _example(request.probe_set, store)


#: Tables that measuring writes.
TABLES = (
    *("perturbed_continuation", "fairpair_prompt", "fairpair_set"),
    *("fairpair_convergence", "fairpair_length", "fairpair_calibration"),
)


def _example(probe_set: str, store: Store) -> str:
    where = command_path(store.root, DEFAULT_WAREHOUSE, "--warehouse")
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


def figures(
    store: Store, sampled: Sampled, phi: Sequence[str], measured: FigureOptions
) -> Iterator[str]:
    """Lines on perturbations by side, and on B, V and F by scoring function and side."""
    n_folds, texts = measured.folds, texts_of(measured.as_published)
    yield from _success_lines(store, sampled)
    for name in phi:
        where = (
            (pc.field("n_folds") == n_folds)
            & (pc.field("texts") == texts)
            & (pc.field("subset") == "all")
        )
        of = {**asdict(sampled), "phi": column(name)}
        rows = store.read("fairpair_set", where, **of).to_pylist()
        ends = {
            row["side"]: row
            for row in rows_of(store.root, _SPREAD, {**of, "n": n_folds, "texts": texts})
        }
        for row in sorted(rows, key=lambda row: str(row["side"])):
            row |= {**_NO_ENDS, **ends.get(row["side"], {})}
            folds = f", {n_folds} folds" if n_folds else ""
            yield f"  {column(name)}, {texts}{folds}, {_figure_line(row)}"


#: B and V with the ends of their intervals, which are of view `fairpair_spread`.
_MEANS = (
    ("bias_b", "bias_low", "bias_high"),
    ("variability_pg", "pg_low", "pg_high"),
    ("variability_gp", "gp_low", "gp_high"),
)
_NO_ENDS = {end: None for _, *ends in _MEANS for end in ends}
_SPREAD = (
    "FROM fairpair_spread WHERE probe_set = $probe_set AND model_key = $model_key "
    "AND sampling_key = $sampling_key AND perturber = $perturber AND phi = $phi AND texts = $texts "
    "AND n_folds = $n"
)


def _figure_line(row: dict[str, Any]) -> str:
    if not row["n_prompts"]:
        least = row["n_folds"] or 2
        why = f"none of {row['n_left_out']:,} prompts has {least} valid samples in both groups"
        return f"{row['side']}: no B, V or F: {why}"
    b, v_pg, v_gp = (estimate(row, 4, of=columns).text for columns in _MEANS)
    f = estimate(row, 4, of=("fairpair_f", "fairpair_f_low", "fairpair_f_high")).text
    line = f"{row['side']}: B {b}, V_pg {v_pg}, V_gp {v_gp}, F {f}"
    tests = ((row["p_permutation"], "permutation"), (row["p_t"], "t-test of B and V_pg"))
    said = [f"p {p:.3g} ({name})" for p, name in tests if p is not None]
    left = f", {row['n_left_out']:,} prompts left out" if row["n_left_out"] else ""
    return ", ".join((line, *said)) + left


def _success_lines(store: Store, sampled: Sampled) -> Iterator[str]:
    keys = asdict(sampled)
    query = (
        "SELECT side, reason, n, n_side, share FROM perturbation_success "
        f"WHERE {' AND '.join(f'{name} = ${name}' for name in keys)} "
        "ORDER BY side, reason != 'valid', n DESC, reason"
    )
    rows = rows_of(store.root, query, keys)
    for side in dict.fromkeys(row["side"] for row in rows):
        valid, *failed = [row for row in rows if row["side"] == side]
        most = f'; most others: "{failed[0]["reason"]}" ({failed[0]["n"]:,})' if failed else ""
        yield (
            f"  {side}, perturbed by {sampled.perturber}: {valid['n']:,} of {valid['n_side']:,} "
            f"valid ({valid['share']:.1%}){most}"
        )


def prompts(request: FairPairRequest, run_id: str) -> None:
    """The set of prompts, of its file or as it is."""
    rows = steps.prompt_rows(_store(request), request.probe_set, request.spec)
    steps.write_prompts(_store(request), request.probe_set, rows, run_id)


def sample(request: FairPairRequest, target: Target, run_id: str) -> Drawn:
    """The samples that are missing."""
    return steps.draw(_store(request), request.probe_set, target, request.spec, run_id)


def perturb(request: FairPairRequest, drawn: Drawn, run_id: str) -> Sampled:
    """Every continuation about the counterpart, checked."""
    whose = (drawn.probe_set, drawn.model_key, drawn.sampling_key)
    return steps.perturb(_store(request), *whose, request.spec, run_id)


def score(request: FairPairRequest, sampled: Sampled, phi: str, run_id: str) -> None:
    """B, V and F of prompts and set, both sides, by one scoring function."""
    steps.score(_store(request), sampled, phi, request.spec, run_id)


def convergence(request: FairPairRequest, sampled: Sampled, phi: str, run_id: str) -> None:
    """How they settle as samples and folds grow."""
    steps.converge(_store(request), sampled, phi, request.spec, run_id)


def lengths(request: FairPairRequest, sampled: Sampled, phi: str, run_id: str) -> None:
    """How F depends on the length of the samples."""
    steps.lengths(_store(request), sampled, phi, request.spec, run_id)


def calibration(request: FairPairRequest, sampled: Sampled, phi: str, run_id: str) -> None:
    """What is found between halves of one side's own samples."""
    steps.calibrate(_store(request), sampled, phi, request.spec, run_id)


def report(request: FairPairRequest) -> Path:
    """The HTML page and its plots; returns the page's path."""
    return write_report(request.warehouse, request.out)


def fairpair(request: FairPairRequest, stages: Stages) -> FairPairOutcome:
    """Measure a set of prompts under each model; of several, one that fails stops no other."""
    audited: list[Audited] = []
    failures = Failures(len(request.targets))
    for target in request.targets:
        with failures.collected(target.model):
            audited.append(audit(request, target, stages))
    page = None
    if audited:
        page = stages.run("report", report, request)
    return FairPairOutcome(tuple(audited), failures, page)


def audit(request: FairPairRequest, target: Target, stages: Stages) -> Audited:
    """Measure the set under one model."""
    with recorded(_store(request), "fairpair run", request.config(target)) as run_id:
        stages.run("prompts", prompts, request, run_id)
        drawn = stages.retried(f"sample {target.model}", sample, request, target, run_id)
        sampled = stages.run("perturb", perturb, request, drawn, run_id)
        for phi in request.phi:
            stages.run(f"score by {phi}", score, request, sampled, phi, run_id)
            stages.run(f"convergence by {phi}", convergence, request, sampled, phi, run_id)
            if steps.takes_lengths(phi):
                stages.run(f"lengths by {phi}", lengths, request, sampled, phi, run_id)
            stages.run(f"calibration by {phi}", calibration, request, sampled, phi, run_id)
    return Audited(drawn, sampled)


def _store(request: FairPairRequest) -> Store:
    return Store.open(request.warehouse)
