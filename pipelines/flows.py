"""Commands as Prefect's flows: what `prefect.yaml` deploys, and `plumbline pipeline --prefect`.

The flow of a deployable command is an attribute of this module: the command's name with
underscores, such as ``corpus_count``. Its parameters are the command's options. A missing value is
taken from ``config``, then from the worker's ``PLUMBLINE_*`` variables, then from the settings
file (``conf``), as in the commands. Paths are relative to ``worker_directory``.

A ``PlumblineError`` fails the run, with the error's line as message. Errors that ``check`` raises
come before any work; those of unreadable shards after all other work.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, getdoc
from pathlib import Path
from typing import Any, TypeVar, get_origin

from prefect import Flow, Task, flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.deployments import run_deployment
from prefect.states import Completed, Failed

from plumbline.jobs.counting.verify import shard_states, update_command
from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import (
    Command,
    Context,
    Done,
    Row,
    class_of,
    execute,
    has_plan,
    parameters,
    plan_of,
)
from plumbline.pipelines.command.failures import ShardsFailed
from plumbline.pipelines.command.stop_signals import sigterm_interrupts
from plumbline.pipelines.command.value_sources import here, made
from plumbline.pipelines.pipeline_options import PipelineOptions
from plumbline.pipelines.pipeline_plan import CorpusPlan, make_plan
from plumbline.pipelines.report.plain import markdown_answer
from plumbline.pipelines.stages import RETRY, Stages, with_retries
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    PlumblineError,
    UsageProblem,
    is_outage,
)
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

#: Name of the state of a run that did everything except unreadable shards.
SHARDS_FAILED = "Shards failed"
#: Parameters of flows besides options, and their meaning; ``dry_run`` only if there is a plan.
_GENERAL = {
    "conf": "settings file; empty: plumbline.toml, if there is one",
    "config": "TOML file with any of these options",
    "dry_run": "only say what it would take",
}
_POLL_S = 2.0
_Result = TypeVar("_Result")


class TaskStages(Stages):
    """Runs each stage as a task of the current flow; the task run has the stage's name."""

    def _result(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        return self._task(name, work)(*args)

    def _retried_result(self, name: str, work: Callable[..., _Result], *args: Any) -> _Result:
        return self._task(name, work, **RETRY)(*args)

    def _task(self, name: str, work: Callable[..., _Result], **more: Any) -> Callable[..., _Result]:
        # Prefect fills in parameters between braces.
        shown = name.replace("{", "{{").replace("}", "}}")
        more |= {"name": getattr(work, "__name__", "work"), "task_run_name": shown}
        return Task(fn=work, cache_policy=NO_CACHE, **more)


def server_address() -> str:
    """PREFECT_API_URL. Raises ``UsageProblem`` if it isn't set, since no server is started."""
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        fix = "run `prefect server start` and set PREFECT_API_URL=http://127.0.0.1:4200/api"
        raise UsageProblem("PREFECT_API_URL", "is not set", fix)
    return address


def here_as_flow(out: Path, work: Callable[[Context], Done], context: Context) -> Done:
    """Run a pipeline as a flow on the server of PREFECT_API_URL, whose address is printed."""
    say(f"Prefect server: {server_address()}")

    @flow(name="plumbline", flow_run_name=f"pipeline into {out}")
    def plumbline() -> Done:
        sigterm_interrupts()
        return work(Context(context.store, context.run_id, TaskStages()))

    return plumbline()


def flow_of(kind: type[Command], name: str = "", **preset: Any) -> Flow[..., Any]:
    """The flow of a command: its parameters are the class's fields; lists may be given as text.

    Fields in ``preset`` have a fixed value and aren't parameters.
    """

    def run(dry_run: bool = False, **given: Any) -> Any:
        command = _made(kind, {**given, **preset})
        return _planned(command) if dry_run else _run(command)

    return _flow(kind, name or registry.name_of(kind), run, *preset)


def _flow(
    kind: type[Command], name: str, work: Callable[..., Any], *without: str, about: str = ""
) -> Flow[..., Any]:
    """A flow whose parameters are a command's options, except ``without``.

    A ``PlumblineError`` fails the run; a stop by the user is raised.
    """

    def run(**values: Any) -> Any:
        given = {name: value for name, value in values.items() if value not in (None, "")}
        try:
            return work(**given)
        except PlumblineError as e:
            if isinstance(e, Interrupted) and not is_outage(e):
                raise
            return Failed(message=str(e))

    hints: dict[str, tuple[Any, str]] = {n: (str, _GENERAL[n]) for n in ("conf", "config")}
    if has_plan(kind):
        hints["dry_run"] = bool, _GENERAL["dry_run"]
    for option in parameters(kind):
        if option.name not in without:
            hint = option.kind | str if get_origin(option.kind) is tuple else option.kind
            # A path is given as text, since an empty one isn't the path ".".
            hints[option.name] = str if option.is_path else hint, option.about
    # No parameter is required: the settings file may have the value; otherwise the class raises.
    signature = [
        Parameter(n, Parameter.KEYWORD_ONLY, default=None, annotation=hint | None)
        for n, (hint, _) in hints.items()
    ]
    run.__signature__ = Signature(signature)  # type: ignore[attr-defined]
    lines = [f"    {name}: {text}" for name, (_, text) in hints.items()]
    run.__doc__ = "\n".join([about or getdoc(kind) or "", "", "Args:", *lines])
    run.__name__ = name.replace(" ", "_").replace("-", "_")
    return flow(name=name.replace(" ", "-"))(run)


def _made(kind: type[Command], given: Mapping[str, Any]) -> Any:
    """The command with a flow's parameters and this worker's settings."""
    values = {name: value for name, value in given.items() if name not in _GENERAL}
    config = Path(given["config"]) if given.get("config") else None
    return made(kind, values, config, here(kind, given.get("conf")))


#: The steps of a pipeline that have flows of their own: `weekly` runs them on two machines.
_PARTS = ("corpus", "evaluate", "report")


def __getattr__(name: str) -> Flow[..., Any]:
    """The flow `weekly`, one of its parts, or a deployable command's, such as `corpus_count`."""
    if name in _PARTS:
        return flow_of(class_of("pipeline"), name, steps=(name,))
    if name == "weekly":
        return _flow(class_of("pipeline"), name, _weekly, "steps", about=_weekly.__doc__ or "")
    for command in registry.targets():
        if command.replace(" ", "_").replace("-", "_") == name:
            kind = class_of(command)
            if kind.deployable:
                return flow_of(kind)
    raise AttributeError(f"module {__name__!r} has no flow {name!r}")


def _weekly(**given: Any) -> Any:
    """The whole pipeline on two machines: check the models, then corpus, evaluate and report.

    `corpus` and `report` run in this flow, `evaluate` in a flow on the machine of the models.
    Both machines see `conf` and `out` under the same paths.
    """
    kind = class_of("pipeline")
    _made(kind, given).check()
    corpus, report = (flow_of(kind, part, steps=(part,)) for part in ("corpus", "report"))
    _evaluate_elsewhere({**given, "dry_run": True})
    # Not as another run: in the pool `spark` it would wait for this run to end.
    failed = _failed_shards("corpus", corpus(**given, return_state=True))
    _evaluate_elsewhere(given)
    _failed_shards("report", report(**given, return_state=True))
    if failed:
        return Failed(name=SHARDS_FAILED, message="; ".join(failed))
    return Completed(message="corpus, evaluate and report are done")


def _evaluate_elsewhere(parameters: dict[str, Any]) -> None:
    """Run the deployment `evaluate` on a worker of its pool, and wait for its end."""
    # An empty `conf` replaces the deployment's. In an event loop the call returns an awaitable.
    given = {"conf": "", **parameters}
    run: Any = run_deployment("evaluate/evaluate", parameters=given, poll_interval=_POLL_S)
    _failed_shards(f"evaluate, run {run.name!r}", run.state)


def _failed_shards(name: str, state: Any) -> list[str]:
    """[message] if only shards failed, [] for success. Raises ``BadInput`` for other failures."""
    if state.is_completed():
        return []
    if state.name == SHARDS_FAILED:
        return [state.message]
    raise BadInput(f"{name}: {state.name}", state.message or "")


def _planned(command: Command) -> Any:
    with_retries(command.check)
    rows = list(plan_of(command))
    _attach_done(registry.name_of(type(command)), Done(rows=rows))
    return Completed(message=f"{len(rows)} rows of a plan, nothing was done")


def _run(command: Command) -> Any:
    """Run a command's stages as tasks, and attach its results as artifacts."""
    with_retries(command.check)
    try:
        done = execute(command, TaskStages())
    except BadInput:
        _attach(command, Done())  # a table of the shards that can't be read
        raise
    failed = _attach(command, done)
    if isinstance(done.failed, ShardsFailed):
        return Failed(name=SHARDS_FAILED, message="; ".join(failed) or str(done.failed))
    if done.failed is not None:
        return Failed(message=str(done.failed))
    wrote = ", ".join((*done.wrote, *done.files))
    return Completed(message=f"wrote {wrote}" if wrote else "done")


def _attach(command: Command, done: Done) -> list[str]:
    """Attach a command's results as artifacts; returns a line per corpus with unreadable shards."""
    lines: list[str] = []
    if isinstance(command, PipelineOptions) and "corpus" in command.steps:
        lines = _attach_failed_shards(Store.open(command.warehouse), make_plan(command).corpora)
    rows_of: dict[str, list[Row]] = {}
    for name, part in done.parts:
        rows_of.setdefault(name, []).extend(part.rows)
    for name, rows in rows_of.items():
        _attach_done(name, Done(rows=rows))
    _attach_done(registry.name_of(type(command)), done)
    return lines


def _attach_failed_shards(store: Store, corpora: Sequence[CorpusPlan]) -> list[str]:
    """Attach a table of unreadable shards, if there are any, with reasons and commands.

    Returns one line per corpus that has such shards.
    """
    rows, lines = [], []
    for corpus in corpora:
        ledger = store.read("corpus_shard", corpus=corpus.name).to_pylist()
        failed = [r for r in ledger if r["status"] == "failed"]
        if failed and store.units("corpus", corpus=corpus.name):
            shards = expand_shards(corpus.patterns) if corpus.patterns else []
            states = shard_states(store, corpus.name, shards)
            command = update_command(store, corpus.name, states, corpus.patterns)
            again = f"{command} --warehouse {store.root}"
            rows += [
                {"shard": r["shard"], "reason": r["error"] or "", "repair it, then": again}
                for r in failed
            ]
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            lines.append(f"{failed[0]['error']}{more}; repair it, then: {again}")
    if rows:
        create_table_artifact(key="failed-shards", table=rows, description="Not in the counts")
    return lines


def _attach_done(command: str, done: Done) -> None:
    """Attach a command's rows as a table, its lines as text, and its report page's answer."""
    key = command.replace(" ", "-")
    if done.rows:
        table = [dict(row) for row in done.rows]
        create_table_artifact(key=key, table=table, description="Rows of the run")
    if done.said:
        text = "\n".join(f"    {line}" for line in done.said)
        create_markdown_artifact(
            key=f"{key}-lines", markdown=text, description="Closing lines of the run"
        )
    for page in (Path(file) for file in done.files if file.endswith(".html")):
        # No link: browsers don't follow one from a server's page to a file.
        where = f"{socket.gethostname()}:{page.resolve()}"
        words = [*markdown_answer(page.read_text(encoding="utf-8")), f"The page: `{where}`"]
        create_markdown_artifact(key="report", markdown="\n\n".join(words), description="Report")
