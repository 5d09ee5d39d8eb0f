"""Prefect flows that run parts of a pipeline; `prefect.yaml` deploys them with schedules.

A flow looks for each option in its parameters, then in the file ``config``, then in the worker's
``PLUMBLINE_*`` variables, and last in the worker's plumbline.toml. Paths are relative to
``worker_directory``. If an option is wrong, the run fails before any task starts.
"""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.states import Completed, Failed

from plumbline.pipelines.command.base import WARNING, Command, Done, execute_on
from plumbline.pipelines.command.registry import name_of
from plumbline.pipelines.command.settings import configured, made
from plumbline.pipelines.commands.benchmark import BenchmarkBuild
from plumbline.pipelines.commands.corpus import REPAIR
from plumbline.pipelines.commands.pipeline import Parts, Pipeline
from plumbline.pipelines.commands.warehouse import Compact
from plumbline.pipelines.environment_errors import in_one_line
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.rows import with_ends
from plumbline.pipelines.report.sentences import version_changes
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, is_outage
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import terminal

#: States of a run that did all other work: some shards couldn't be read, some benchmarks or models
#: couldn't be used, or a model changed too much.
SHARDS_FAILED, SCORES_FAILED, MODEL_CHANGED = "Shards failed", "Scores failed", "Model changed"
_POLL_S = 2.0
Names = list[str] | None


def _can_retry(_task: object, _run: object, state: State[Any]) -> bool:
    """Return True if the network or a server failed, because then a retry can help."""
    error = state.result(raise_on_failure=False)
    return is_outage(error) and not isinstance(error, UsageProblem | MissingComponent)


@task(
    task_run_name="{name}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=5,
    retry_condition_fn=_can_retry,
)
def run_command(name: str, store: Store, command: Command) -> Done:
    """Run a command, and save its rows in Prefect. After an outage, Prefect runs it again."""
    done = execute_on(store, command)
    for line in done.said:
        if line.startswith(WARNING):
            get_run_logger().warning(line.removeprefix(WARNING))
    if rows := [dict(row) for row in done.rows]:
        key = name_of(type(command)).replace(" ", "-")
        create_table_artifact(key=key, table=rows, description=f"Rows of: {name}")
    return done


@flow(name="count")
def count(
    corpus: str = "", benchmarks: Names = None, model: str = "", out: str = "", config: str = ""
) -> State[None]:
    """Count a corpus, compute its words' leans, import benchmarks and compute their MaxPMI.

    Args:
        corpus: shards, as paths or globs separated by spaces.
        benchmarks: names of benchmarks; if empty, those in the settings.
        model: the models to be scored later; this flow only uses them to choose benchmarks.
        out: directory for all output.
        config: settings file that overrides plumbline.toml; may be empty.
    """
    pipeline = _pipeline(config, corpus=corpus, benchmarks=benchmarks, model=model, out=out)
    with pipeline.sole() as store:
        parts = Parts(pipeline, store, run_command)
        parts.do(parts.corpus())
    if parts.errors:
        message = f"{'; '.join(map(str, parts.errors))}; {REPAIR}"
        return Failed(name=SHARDS_FAILED, message=message)
    counted = parts.plan.corpus
    return Completed(message=f"counted {counted.name if counted else 'nothing'}")


@flow(name="build", flow_run_name="build {name}")
def build(name: str, corpus: str = "", warehouse: str = "", config: str = "") -> State[None]:
    """Build a benchmark from words with almost no gender lean, and compute its pairs' MaxPMI.

    Args:
        name: name of the benchmark; its options are in `[benchmark.build]` of the settings.
        corpus: the corpus whose words are used.
        warehouse: the warehouse; if empty, the one in the settings.
        config: settings file that overrides plumbline.toml; may be empty.
    """
    done = _run(BenchmarkBuild, config, name=name, corpus=corpus, warehouse=warehouse)
    return Completed(message=f"{name}: {done.rows[0]['n_pairs']} pairs")


@flow(name="score")
def score(
    corpus: str = "", benchmarks: Names = None, model: str = "", out: str = "", config: str = ""
) -> State[None]:
    """Score models on the benchmarks. Also run FairPair and disclosure if ``make_plan`` says so.

    `prefect.yaml` deploys this flow to the work pool for machines with GPUs.

    Args:
        corpus: the shards that were counted; needed only to train models on them.
        benchmarks: names of benchmarks; if empty, those in the settings.
        model: hub ids, paths or train:small, separated by commas; if empty, those in the settings.
        out: directory for all output.
        config: settings file that overrides plumbline.toml; may be empty.
    """
    pipeline = _pipeline(config, corpus=corpus, benchmarks=benchmarks, model=model, out=out)
    pipeline.check()
    with pipeline.sole() as store:
        parts = Parts(pipeline, store, run_command)
        parts.do(parts.evaluate())
    if parts.errors:
        return Failed(name=SCORES_FAILED, message="; ".join(map(str, parts.errors)))
    return Completed(message=f"scored {', '.join(m.name for m in parts.plan.models)}")


@flow(name="report")
def report(out: str = "", config: str = "") -> State[None]:
    """Compute all metrics, write the report, and show a summary of it in Prefect.

    Args:
        out: directory for all output.
        config: settings file that overrides plumbline.toml; may be empty.
    """
    pipeline = _pipeline(config, out=out)
    with pipeline.sole() as store:
        parts = Parts(pipeline, store, run_command)
        parts.do(parts.report())
    written = parts.results["report"]
    page = Path(written.files[0])
    _show_report(store, page, written.said)
    _show_changes(store)
    if parts.errors:
        return Failed(name=MODEL_CHANGED, message=str(parts.errors[0]))
    return Completed(message=f"wrote {page}")


@flow(name="compact")
def compact(warehouse: str = "", keep_days: float = 7.0, config: str = "") -> State[None]:
    """Merge small files; delete unused files, and versions older than ``keep_days`` days."""
    done = _run(Compact, config, warehouse=warehouse, keep_days=keep_days)
    (row,) = done.rows
    return Completed(message=", ".join(f"{name} {value}" for name, value in row.items()))


@flow(name="audit")
def audit(
    corpus: str = "",
    benchmarks: Names = None,
    model: str = "",
    out: str = "",
    config: str = "",
    score_here: bool = True,
) -> State[None]:
    """Run the flows `count`, `score` and `report`.

    If a shard, benchmark or one of several models can't be used, the flow does all other work
    and then fails.

    Args:
        corpus: shards, as paths or globs separated by spaces.
        benchmarks: names of benchmarks; if empty, those in the settings.
        model: hub ids, paths or train:small, separated by commas; if empty, those in the settings.
        out: directory for all output.
        config: settings file that overrides plumbline.toml; may be empty.
        score_here: if false, the deployment `score` scores the models on another worker. Both
            machines must see ``out`` and ``config`` under the same paths.
    """
    given: dict[str, Any] = {"corpus": corpus, "benchmarks": benchmarks, "model": model}
    given |= {"out": out, "config": config}
    _pipeline(**given).check()
    failed = [*_failed(count(**given, return_state=True))]
    if score_here:
        scored = score(**given, return_state=True)
    else:
        run: Any = run_deployment("score/score", parameters=given, poll_interval=_POLL_S)
        scored = run.state
    failed += _failed(scored)
    failed = [*_failed(report(out=out, config=config, return_state=True)), *failed]
    if failed:
        message = "; ".join(state.message or "" for state in failed)
        return Failed(name=failed[0].name, message=message)
    return Completed(message="audited")


def _failed(state: Any) -> list[State[None]]:
    """Return a flow's failed state in a list, or an empty list if the flow succeeded.

    Raises ``BadInput`` if the flow stopped early, before it did all the work that it could.
    """
    if state.is_completed():
        return []
    if state.name not in (SHARDS_FAILED, SCORES_FAILED, MODEL_CHANGED):
        reason = re.sub(r"^Flow run encountered an exception: (\w+: )?", "", state.message or "")
        raise BadInput(reason) if state.name == "Failed" else BadInput(state.name, reason)
    return [Failed(name=state.name, message=state.message)]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def _pipeline(config: str, **options: Any) -> Pipeline:
    given = _given({**options, "config": config})
    pipeline = made(Pipeline, given, configured(Pipeline, config))
    pipeline.check_inputs()
    return pipeline


def _run(kind: type[Command], config: str, **options: Any) -> Done:
    command = made(kind, _given(options), configured(kind, config))
    command.ready()
    command.check()
    with in_one_line():
        store = Store.open(command.warehouse, create=command.makes_warehouse)
        done = run_command(name_of(kind), store, command)
    if done.failed is not None:
        raise done.failed
    return done


def _show_report(store: Store, page: Path, said: Sequence[str]) -> None:
    """Show the report's first page in Prefect: its text, its first chart and its path."""
    # Print the path without a link: on a server's page, browsers block links to local files.
    where = f"The page: `{socket.gethostname()}:{page.resolve()}`"
    title, *answer = map(_escaped, said)
    words = [f"## {title}", *answer, *_chart(store), where]
    create_markdown_artifact(key="report", markdown="\n\n".join(words), description="Report")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", terminal(" ".join(text.split())))


def _chart(store: Store) -> list[str]:
    """Return the first chart as Markdown. Without a chart or the packages to draw it, return []."""
    from plumbline.pipelines.report.paper import figure_files, figures

    facts = Facts(store)
    try:
        first = next(iter(figures(facts).values()), None)
        if first is None:
            return []
        image = base64.b64encode(figure_files(facts, first.stem, "png", 6.0)[".png"]).decode()
    except (ModuleNotFoundError, MissingComponent):
        return []
    return [f"![{first.caption}](data:image/png;base64,{image})"]


def _show_changes(store: Store) -> None:
    names = ("name", "benchmark", "groups", "pd_before", "pd", *with_ends("change"))
    rows = [
        {name: row[name] for name in names}
        | {"version": f"{row['scored_at']:%F %R}", "before": f"{row['previous_scored_at']:%F %R}"}
        for row in version_changes(Facts(store))
    ]
    if rows:
        about = "Preference disparity of named models, in points, since their previous version"
        create_table_artifact(key="changes", table=rows, description=about)
    else:
        text = "No named model has an earlier version to compare with."
        create_markdown_artifact(key="changes", markdown=text, description="Model changes")
