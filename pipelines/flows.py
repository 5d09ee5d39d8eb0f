"""The same functions as Prefect's flows and tasks: those `prefect.yaml` deploys, and `--prefect`.

Parameters are the settings of the commands. One that is not given is the settings file's
(``conf``), then ``PLUMBLINE_*`` of the worker, as in the commands. Paths are relative to the
directory that the worker was started in.

Errors for the user fail a run with their one line as its message, before anything has started where
they can be seen then. Shards that can't be read fail it too, once everything else is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Any, TypeVar

from prefect import Flow, Task, flow
from prefect.cache_policies import NO_CACHE
from prefect.deployments import run_deployment
from prefect.states import Completed, Failed

from plumbline.eval_workers.generation import spec as build_spec
from plumbline.eval_workers.options import OF_SCORES, ModelOptions, of_loading
from plumbline.pipelines import prefect_artifacts
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import Command, Done, class_of, execute, made, parameters
from plumbline.pipelines.commands import fairpair as pairing
from plumbline.pipelines.process.stop_signals import sigterm_interrupts
from plumbline.pipelines.requests import benchmark as building
from plumbline.pipelines.requests import disclosure as disclosing
from plumbline.pipelines.requests import pipeline as parts
from plumbline.pipelines.requests.disclosure import messages
from plumbline.pipelines.requests.plan import Plan, make_plan
from plumbline.pipelines.settings import Settings, load
from plumbline.pipelines.stages import Stages
from plumbline.pipelines.task_retries import RETRY, patiently
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    PlumblineError,
    UsageProblem,
    is_outage,
)
from plumbline.warehouse.options import declared, part
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say

#: Name of the state of a run that did everything but the shards that can't be read.
SHARDS_FAILED = "Shards failed"
_POLL_S = 2.0
_Result = TypeVar("_Result")


class TaskStages(Stages):
    """Runs each stage as a task of the flow that is running, named by the stage."""

    def _result(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        return self._task(name, work)(*given)

    def _retried_result(self, name: str, work: Callable[..., _Result], *given: Any) -> _Result:
        return self._task(name, work, **RETRY)(*given)

    def _task(self, name: str, work: Callable[..., _Result], **more: Any) -> Callable[..., _Result]:
        # Prefect fills in parameters between braces.
        shown = name.replace("{", "{{").replace("}", "}}")
        given = {"name": work.__name__, "task_run_name": shown, "cache_policy": NO_CACHE, **more}
        return Task(fn=work, **given)


def as_flow(settings: Settings, _stages: Stages) -> tuple[Path, list[str]]:
    """The pipeline as a flow on the server of PREFECT_API_URL, whose address is printed.

    Raises ``UsageProblem`` without that address: no server is started, and no profile's is used.
    """
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        fix = "run `prefect server start` and set PREFECT_API_URL=http://127.0.0.1:4200/api"
        raise UsageProblem("PREFECT_API_URL", "is not set", fix)
    say(f"Prefect server: {address}")

    @flow(name="plumbline", flow_run_name=f"pipeline into {settings.out}")
    def plumbline() -> tuple[Path, list[str]]:
        sigterm_interrupts()
        return parts.pipeline(settings, TaskStages())

    return plumbline()


def _deployed(*settings: str) -> Callable[[Callable[..., Any]], Flow[..., Any]]:
    """Make a flow of a function, with ``conf`` and these settings as further parameters.

    The function receives those that were given as its first argument, ``given``. It ends in the
    state that it returns, or for an error of the user in one with its line.
    """
    known = declared(Settings)
    hints = {"conf": str, **{name: known[name].kind for name in settings}}
    said = {"conf": "Settings file (TOML)."}
    said |= {name: known[name].description for name in settings}

    def flow_of(work: Callable[..., Any]) -> Flow[..., Any]:
        @wraps(work)
        def run(**values: Any) -> Any:
            chosen = {name: values.pop(name, None) for name in said}
            given = {name: value for name, value in chosen.items() if value not in (None, "")}
            return _state(partial(work, given, **values))

        kind = Parameter.KEYWORD_ONLY
        own = list(signature(work, eval_str=True).parameters.values())[1:]
        taken = [p.replace(kind=kind) for p in own]
        taken += [Parameter(n, kind, default=None, annotation=h | None) for n, h in hints.items()]
        run.__signature__ = Signature(taken)  # type: ignore[attr-defined]
        about = getdoc(work) or ""
        lines = [f"    {name}: {text}" for name, text in said.items()]
        run.__doc__ = "\n".join([about, *([] if "Args:" in about else ["", "Args:"]), *lines])
        return flow(name=work.__name__)(run)

    return flow_of


#: What a pipeline takes: every setting but whether it is a flow.
_ALL = tuple(name for name in declared(Settings) if name != "prefect")
_PLACES = ("out", "warehouse")
#: How a model is loaded for anything but scores of whole sentences.
_LOADING = tuple(name for name in declared(ModelOptions) if name not in OF_SCORES)
_PROBING = tuple(name for name in _ALL if name.startswith("disclosure_"))
_METRICS = tuple(name for name in _ALL if name.startswith("measure_"))


@_deployed(*_ALL)
def corpus(given: dict[str, Any]) -> Any:
    """Count and associate the corpus, import the benchmarks and constrain them by it."""
    settings = _settings(given)
    plan = parts.checked_plan(settings)
    store = Store.open(settings.warehouse_path())
    with _attaching_failures(store, plan) as failed:
        parts.prepare(settings, plan, TaskStages())
    prefect_artifacts.attach_corpora(store, plan.corpora)
    return _outcome(failed, f"{len(plan.corpora)} corpora, {len(plan.scored())} benchmarks")


@contextmanager
def _attaching_failures(store: Store, plan: Plan) -> Iterator[list[str]]:
    """Fill the list with failed shards at the end of the block, also when it raises."""
    failed: list[str] = []
    try:
        yield failed
    finally:
        failed += prefect_artifacts.attach_failed_shards(store, plan.corpora)


@_deployed(*_ALL)
def evaluate(given: dict[str, Any], check_only: bool = False) -> Any:
    """Score the models on benchmarks that are in the warehouse.

    Args:
        check_only: only look whether the models can be loaded
    """
    from plumbline.eval_workers.scoring.pair_scores import check_imported

    settings = _settings(given)
    plan = make_plan(settings)
    if not (plan.models and plan.scored()):
        missing = "benchmarks" if plan.models else "model"
        raise UsageProblem(missing, "is not given", "name some in the settings or as parameter")
    for model in plan.models:
        if not model.preset:
            patiently(partial(_check_model, model.location, model.options))
    if check_only:
        return Completed(message=f"{len(plan.models)} models can be loaded")
    store = Store.open(settings.warehouse_path(), create=False)
    check_imported(store, plan.scored())
    failed = parts.evaluate(settings, plan, TaskStages())
    prefect_artifacts.attach_scores(store, plan.scored())
    if failed:
        return Failed(message="; ".join(failed))
    return Completed(message=f"{len(plan.models)} models on {len(plan.scored())} benchmarks")


def _check_model(location: str, how: ModelOptions) -> None:
    from plumbline.eval_workers.backends import open_backend

    _ = open_backend(location, how).identity


@_deployed(*_ALL)
def audit(given: dict[str, Any]) -> Any:
    """The whole pipeline on one machine: count, write benchmarks, score, sample, probe, report."""
    settings = _settings(given)
    plan = parts.checked_plan(settings)
    out = Path(settings.out)
    with parts.alone(settings.warehouse_path(), out):
        store = Store.open(settings.warehouse_path())
        with _attaching_failures(store, plan) as failed:
            page, lines = parts.pipeline(settings, TaskStages())
    prefect_artifacts.attach_corpora(store, plan.corpora)
    prefect_artifacts.attach_scores(store, plan.scored())
    prefect_artifacts.attach_metrics(store)
    prefect_artifacts.attach_report(page)
    if lines and not failed:
        return Failed(message="; ".join(lines))
    return _outcome(failed, f"{len(plan.models)} models on {len(plan.scored())} benchmarks")


@_deployed(*_PLACES, *_METRICS)
def report(given: dict[str, Any]) -> Any:
    """Every metric of the warehouse, and the report."""
    settings = _settings(given)
    store = Store.open(settings.warehouse_path(), create=False)
    page = parts.conclude(settings, TaskStages())
    prefect_artifacts.attach_metrics(store)
    prefect_artifacts.attach_report(page)
    return Completed(message=str(page))


@_deployed(*_PLACES)
def benchmark(
    given: dict[str, Any], name: str, config: str = "", replay: bool = False, offline: bool = False
) -> Any:
    """Build a benchmark, as `plumbline benchmark build NAME --config CONFIG`.

    Args:
        name: name of the benchmark
        config: TOML file with any of the keys of docs/generation.md
        replay: take all replies from the ledger, ask nothing
        offline: write sentences of fixed frames, ask nothing
    """
    settings, spec = _settings(given), build_spec.load(Path(config) if config else None, {})
    warehouse, card = settings.warehouse_path(), Path(settings.out) / "cards" / name
    wanted = building.BuildRequest(name, spec, warehouse, card, replay=replay, offline=offline)
    building.checked_request(wanted)
    building.check_key(wanted)
    built = building.benchmark(wanted, TaskStages())
    prefect_artifacts.attach_lines(
        "benchmark", building.after(wanted, built, Store.open(warehouse))
    )
    return Completed(message=f"benchmark {name}")


@_deployed(*_PLACES)
def fairpair(
    given: dict[str, Any], probe_set: str = "common-sents", model: str = "", config: str = ""
) -> Any:
    """Measure a set of prompts, as `plumbline fairpair run PROBE_SET --config CONFIG`.

    Args:
        probe_set: set of prompts
        model: hub ids, directories or served names, separated by commas
        config: TOML file with any of the keys of docs/fairpair.md
    """
    settings = _settings(given)
    places = {"warehouse": settings.warehouse_path(), "out": Path(settings.out) / "report"}
    named = {"probe_set": probe_set, **({"model": model} if model else {}), **places}
    return _run(made(pairing.Run, named, Path(config) if config else None))


@_deployed(*_PLACES, *_LOADING, *_PROBING)
def disclosure(given: dict[str, Any], sets: str = "topics", model: str = "") -> Any:
    """GAS, GLD and ADD of sets of prompts, as `plumbline disclosure probe SETS`.

    Args:
        sets: sets of prompts, separated by commas
        model: hub ids or directories, separated by commas; empty: those of the settings
    """
    settings = _settings(given)
    warehouse, page = settings.warehouse_path(), Path(settings.out) / "report"
    names = tuple(dict.fromkeys(name.strip() for name in sets.split(",") if name.strip()))
    if not names:
        raise UsageProblem("sets", "are not given", "name some, such as topics")
    how = of_loading(part(ModelOptions, settings))
    models = "" if model else settings.models
    who = disclosing.subjects(model or settings.model, models, how)
    wanted = disclosing.DisclosureRequest(
        names, who, settings.disclosure, warehouse, page, data=settings.data
    )
    patiently(partial(disclosing.check_means, wanted))
    store = Store.open(warehouse)
    outcome = disclosing.disclosure(wanted, TaskStages())
    prefect_artifacts.attach_lines("disclosure", messages.after_probe(wanted, outcome, store))
    return _audited(outcome, f"{', '.join(names)} under {len(who)} models")


@_deployed(*_ALL)
def weekly(given: dict[str, Any]) -> Any:
    """The whole, over two machines: check the models, then the flows corpus, evaluate, report.

    `corpus` and `report` run inside this run, `evaluate` as a run of its own where the models are.
    Both machines see `conf` and `out` under the same paths.
    """
    parts.checked_plan(_settings(given))
    given = {"conf": "", **given}  # an empty one replaces that of the deployment
    _evaluate_elsewhere({**given, "check_only": True})
    # Inside this run: another one of the pool `spark` would wait for the place that this one has.
    failed = _failed_shards("corpus", corpus(**given, return_state=True))
    _evaluate_elsewhere(given)
    shown = {name: given[name] for name in ("conf", *_PLACES, *_METRICS) if name in given}
    _failed_shards("report", report(**shown, return_state=True))
    return _outcome(failed, "corpus, evaluate and report are done")


def flow_of(kind: type[Command]) -> Flow[..., Any]:
    """The flow of a command: its parameters are the class's fields, typed as there."""

    def run(config: str = "", **values: Any) -> Any:
        given = {name: value for name, value in values.items() if value is not None}
        return _state(lambda: _run(made(kind, given, Path(config) if config else None)))

    name = registry.name_of(kind)
    taken = [Parameter("config", Parameter.KEYWORD_ONLY, default="", annotation=str)]
    lines = ["    config: TOML file with any of these options."]
    for one in parameters(kind):
        required = one.default is ...
        default = Parameter.empty if required else None
        hint = one.kind if required else one.kind | None
        taken.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint))
        lines.append(f"    {one.name}: {one.about}")
    run.__signature__ = Signature(sorted(taken, key=lambda p: p.default is not Parameter.empty))  # type: ignore[attr-defined]
    run.__doc__ = "\n".join([getdoc(kind) or "", "", "Args:", *lines])
    run.__name__ = name.replace(" ", "_").replace("-", "_")
    return flow(name=name.replace(" ", "-"))(run)


def __getattr__(name: str) -> Flow[..., Any]:
    """The flow of a deployable command, by its name with underscores, such as `corpus_count`."""
    for command in registry.targets():
        if command.replace(" ", "_").replace("-", "_") == name:
            kind = class_of(command)
            if kind.deployable:
                return flow_of(kind)
    raise AttributeError(f"module {__name__!r} has no flow {name!r}")


def _run(command: Command) -> Any:
    """Run a command's stages as tasks; its rows and lines become an artifact."""
    patiently(command.check)
    done = execute(command, TaskStages())
    prefect_artifacts.attach_done(registry.name_of(type(command)), done)
    if done.failed is not None:
        return Failed(message=str(done.failed))
    return Completed(message=_message(done))


def _message(done: Done) -> str:
    return f"wrote {', '.join((*done.wrote, *done.files))}"


def _evaluate_elsewhere(parameters: dict[str, Any]) -> None:
    """Run the deployment `evaluate` to its end, by a worker of its pool."""
    # Prefect gives an awaitable where a loop runs, here never.
    run: Any = run_deployment("evaluate/evaluate", parameters=parameters, poll_interval=_POLL_S)
    _failed_shards(f"evaluate, run {run.name!r}", run.state)


def _failed_shards(name: str, state: Any) -> list[str]:
    """What the state of a flow says of shards; raises ``BadInput`` when it failed otherwise."""
    if state.is_completed():
        return []
    if state.name == SHARDS_FAILED:
        return [state.message]
    raise BadInput(f"{name}: {state.name}", state.message or "")


def _settings(given: dict[str, Any]) -> Settings:
    return load(given.get("conf"), {k: v for k, v in given.items() if k != "conf"})[0]


def _audited(outcome: disclosing.DisclosureOutcome, message: str) -> Any:
    """Attach the report; the state is failed where a model failed."""
    if outcome.page is not None:
        prefect_artifacts.attach_report(outcome.page)
    if lines := outcome.failures.lines:
        return Failed(message="; ".join(lines))
    return Completed(message=message)


def _outcome(failed: list[str], message: str) -> Any:
    return (
        Failed(name=SHARDS_FAILED, message="; ".join(failed))
        if failed
        else Completed(message=message)
    )


def _state(work: Callable[[], Any]) -> Any:
    """The state that the work ends in; of an error for the user, its line."""
    try:
        return work()
    except PlumblineError as e:
        if isinstance(e, Interrupted) and not is_outage(e):
            raise
        return Failed(message=str(e))
