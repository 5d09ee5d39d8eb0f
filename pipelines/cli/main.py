"""The ``plumbline`` command: mounts each room's commands and turns errors into one line.

Importing this module imports neither Spark, torch nor Prefect: the commands do when they run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from plumbline.eval_workers import cli as eval_cli
from plumbline.eval_workers import model_cli, score_cli
from plumbline.eval_workers.release import cli as release_cli
from plumbline.pipelines import (
    build_cli,
    compare_cli,
    disclosure_cli,
    disk,
    doctor_cli,
    fairpair_cli,
    measure,
    mirror_cli,
    offline,
    runs_cli,
    settings,
    sql_cli,
    sweep_cli,
    warehouse_cli,
)
from plumbline.pipelines.cli import corpus as jobs_cli
from plumbline.pipelines.cli import corpus_pack as pack_cli
from plumbline.pipelines.cli import corpus_statistics as statistics_cli
from plumbline.pipelines.cli import corpus_vocabulary as vocabulary_cli
from plumbline.pipelines.report import cli as report_cli
from plumbline.pipelines.reproduce import cli as reproduce_cli
from plumbline.pipelines.stages import sigterm_interrupts
from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.text.output import say

app = typer.Typer(
    name="plumbline",
    help="Which way does a language model lean, and does it follow the text it learned from?",
    epilog="Start with: plumbline pipeline",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
jobs_cli.corpus_app.add_typer(pack_cli.pack_app)
jobs_cli.corpus_app.add_typer(statistics_cli.statistics_app)
jobs_cli.corpus_app.add_typer(vocabulary_cli.vocabulary_app)
app.add_typer(jobs_cli.corpus_app, name="corpus")
app.command("word")(jobs_cli.word)
eval_cli.benchmark_app.command("build")(build_cli.build)
app.add_typer(eval_cli.benchmark_app, name="benchmark")
app.command("constrain")(jobs_cli.constrain)
app.command("score")(score_cli.score)
app.command("import-scores")(release_cli.import_scores)
app.command("train")(model_cli.train)
app.add_typer(model_cli.demo_app, name="demo")
app.add_typer(fairpair_cli.fairpair_app, name="fairpair")
disclosure_cli.disclosure_app.command("sweep")(sweep_cli.sweep)
disclosure_cli.disclosure_app.command("compare")(compare_cli.compare)
app.add_typer(disclosure_cli.disclosure_app, name="disclosure")
app.command("measure")(measure.command)
app.command("report")(report_cli.command)
app.add_typer(reproduce_cli.reproduce_app, name="reproduce")
app.command("sql")(sql_cli.command)
app.command("doctor")(doctor_cli.command)
app.add_typer(runs_cli.runs_app, name="runs")
warehouse_cli.warehouse_app.command("push")(mirror_cli.push)
warehouse_cli.warehouse_app.command("pull")(mirror_cli.pull)
app.add_typer(warehouse_cli.warehouse_app, name="warehouse")


@app.command(epilog="Example: plumbline config --conf cluster")
def config(
    conf: Annotated[Path | None, typer.Option(help="Settings file (TOML), or cluster.")] = None,
) -> None:
    """Print every setting, its meaning and where its value came from, as TOML."""
    say(settings.as_toml(*settings.load(conf)))


@app.command(
    epilog="Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' "
    "--benchmarks winobias,use-5 --model train:small"
)
def pipeline(
    corpus: Annotated[str, typer.Option(help="Shards to count: paths or globs.")] = "",
    benchmarks: Annotated[str, typer.Option(help="Benchmarks, separated by commas.")] = "",
    model: Annotated[str, typer.Option(help="Hub ids, paths or train:small.")] = "",
    out: Annotated[str, typer.Option(help="Directory for everything written.")] = "",
    conf: Annotated[Path | None, typer.Option(help="Settings file (TOML), or cluster.")] = None,
    demo_tokens: Annotated[
        int | None, typer.Option(help="Size of each closed-world corpus in tokens.")
    ] = None,
    train_tokens: Annotated[
        int | None, typer.Option(help="Limit on the tokens a model is trained on.")
    ] = None,
) -> None:
    """Count, associate, constrain, score, measure and report; alone: the closed world.

    Without arguments it needs no data and no network: it writes a corpus whose associations are
    known, trains a model on it, and shows whether the model took up the lean of its text.
    With --corpus and --model alone it makes a benchmark of fixed frames around words of the corpus.
    """
    given: dict[str, object] = {"corpus": corpus, "benchmarks": benchmarks, "model": model}
    given |= {"out": out, "demo_tokens": demo_tokens, "train_tokens": train_tokens}
    chosen, _ = settings.load(conf, {k: v for k, v in given.items() if v not in ("", None)})
    offline.prepare(chosen.out)
    from plumbline.pipelines import flow

    flow.run(chosen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; errors for the user are one line.

    Status 2: wrong usage, 3: bad input, 4: missing component, 5: interrupted and resumable.
    """
    try:
        result = app(list(arguments) if arguments is not None else None, standalone_mode=False)
    except PlumblineError as e:
        return _complain(str(e), e.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted; the same command goes on from here", Interrupted.exit_code)
    except typer.Exit as e:
        return e.exit_code
    except Exception as e:
        if (full := disk.problem(e)) is not None:
            return _complain(str(full), full.exit_code)
        if not hasattr(e, "format_message"):  # not the command line's own usage error
            raise
        return _complain(e.format_message(), getattr(e, "exit_code", 2))
    if result == 130:  # how the command line library reports an interrupt
        return _complain("interrupted; the same command goes on from here", Interrupted.exit_code)
    return result if isinstance(result, int) else 0


def _complain(message: str, status: int) -> int:
    Console(stderr=True).print("[bold red]error:[/] ", end="")
    say(message or "wrong usage; add --help", err=True)
    return status


def entry() -> None:
    """The console script; of a warning it shows what it says, not where it was raised."""
    sigterm_interrupts()
    warnings.showwarning = lambda message, *_: say(f"warning: {message}", err=True)
    sys.exit(main())
