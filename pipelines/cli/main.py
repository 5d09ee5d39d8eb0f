"""The ``plumbline`` command: which function each command is, and errors as one line.

Importing this module imports no command: its module is loaded when it runs or its help is shown.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from plumbline.pipelines.cli.lazy import Commands, Group, LazyGroup
from plumbline.warehouse.errors import Interrupted, PlumblineError
from plumbline.warehouse.text.output import say

_EVAL, _PIPELINES = "plumbline.eval_workers", "plumbline.pipelines"
_CORPUS, _WORDS = f"{_PIPELINES}.cli.corpus", f"{_PIPELINES}.cli.words"
ENTRIES: Mapping[str, Group | str] = {
    "pipeline": f"{_PIPELINES}.cli.pipeline:pipeline",
    "config": f"{_PIPELINES}.cli.pipeline:config",
    "corpus": Group(
        "Corpora: count shards, compute associations, list what exists.",
        {
            "count": f"{_CORPUS}:count",
            "split": f"{_CORPUS}:split",
            "associate": f"{_CORPUS}:associate",
            "list": f"{_CORPUS}:list_",
            "status": f"{_CORPUS}:status",
            "verify": f"{_CORPUS}:verify",
            "pack": f"{_CORPUS}:pack",
            "import": f"{_CORPUS}:import_",
            "words": f"{_WORDS}:words",
            "vocabulary": f"{_WORDS}:vocabulary",
            "vet": f"{_WORDS}:vet",
        },
    ),
    "word": f"{_WORDS}:word",
    "benchmark": Group(
        "Sentence pairs: import released benchmarks, build new ones, list and show them.",
        {
            "import": f"{_EVAL}.cli:import_",
            "list": f"{_EVAL}.cli:list_",
            "show": f"{_EVAL}.cli:show",
            "card": f"{_EVAL}.cli:card",
            "build": f"{_PIPELINES}.build_cli:build",
        },
    ),
    "constrain": f"{_WORDS}:constrain",
    "score": f"{_EVAL}.score_cli:score",
    "import-scores": f"{_EVAL}.release.cli:import_scores",
    "train": f"{_EVAL}.model_cli:train",
    "demo": Group(
        "The closed world: a corpus whose associations are planted and known.",
        {"write": f"{_EVAL}.model_cli:write_demo"},
    ),
    "fairpair": Group(
        "Counterfactual continuations and their sampling noise: do John's and Jane's differ?",
        {
            "run": f"{_PIPELINES}.fairpair_cli:run",
            "score": f"{_PIPELINES}.fairpair_cli:score",
            "report": f"{_PIPELINES}.fairpair_cli:report",
        },
    ),
    "disclosure": Group(
        "What a model assumes about people of unspecified gender, and how to make it assume less.",
        {
            "prompts": f"{_PIPELINES}.disclosure_cli:prompts",
            "probe": f"{_PIPELINES}.disclosure_cli:probe",
            "tune": f"{_PIPELINES}.disclosure_cli:tune",
            "sweep": f"{_PIPELINES}.sweep_cli:sweep",
            "compare": f"{_PIPELINES}.compare_cli:compare",
        },
    ),
    "measure": f"{_PIPELINES}.measure:command",
    "report": f"{_PIPELINES}.report.cli:command",
    "reproduce": Group(
        "Compute published tables again: from the released data, or for a corpus of your own.",
        {
            "unstereoeval": f"{_PIPELINES}.reproduce.cli:unstereoeval",
            "lists": f"{_PIPELINES}.reproduce.cli:lists",
        },
    ),
    "sql": f"{_PIPELINES}.sql_cli:command",
    "doctor": f"{_PIPELINES}.doctor_cli:command",
    "runs": Group(
        "What was run, with which options and versions, and what it wrote.",
        {
            "list": f"{_PIPELINES}.runs_cli:list_runs",
            "show": f"{_PIPELINES}.runs_cli:show_run",
            "compare": f"{_PIPELINES}.runs_cli:compare",
        },
    ),
    "warehouse": Group(
        "Check a warehouse, compact it, migrate it to the current format, export and copy it.",
        {
            "check": f"{_PIPELINES}.warehouse_cli:check",
            "compact": f"{_PIPELINES}.warehouse_cli:compact",
            "migrate": f"{_PIPELINES}.warehouse_cli:migrate",
            "export": f"{_PIPELINES}.warehouse_cli:export",
            "push": f"{_PIPELINES}.mirror_cli:push",
            "pull": f"{_PIPELINES}.mirror_cli:pull",
        },
    ),
}


class _Plumbline(LazyGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": Commands(ENTRIES)})


app = typer.Typer(
    name="plumbline",
    cls=_Plumbline,
    callback=lambda: None,
    help="Which way does a language model lean, and does it follow the text it learned from?",
    epilog="Start with: plumbline pipeline",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
_RESUMABLE = "interrupted; run the same command again to resume"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; errors for the user are one line.

    Status 2: wrong usage, 3: bad input, 4: missing component, 5: interrupted and resumable.
    """
    try:
        result = app(None if arguments is None else list(arguments), standalone_mode=False)
    except PlumblineError as e:
        return _complain(str(e), e.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain(_RESUMABLE, Interrupted.exit_code)
    except typer.Exit as e:
        return e.exit_code
    except Exception as e:
        return _foreign(e)
    if result == 130:  # how the command line library reports an interrupt
        return _complain(_RESUMABLE, Interrupted.exit_code)
    return result if isinstance(result, int) else 0


def _foreign(error: Exception) -> int:
    """The status for an error that is not ours, or the error itself where it is a defect."""
    from plumbline.pipelines import disk, extras

    if (line := extras.missing(error) or disk.problem(error)) is not None:
        return _complain(str(line), line.exit_code)
    if not hasattr(error, "format_message"):  # not the command line's own usage error
        raise error
    return _complain(error.format_message(), getattr(error, "exit_code", 2))


def _complain(message: str, status: int) -> int:
    from rich.console import Console

    Console(stderr=True).print("[bold red]error:[/] ", end="")
    say(message or "wrong usage; add --help", err=True)
    return status


def entry() -> None:
    """The console script; of a warning it shows what it says, not where it was raised."""
    from plumbline.pipelines.stages import sigterm_interrupts

    sigterm_interrupts()
    warnings.showwarning = lambda message, *_: say(f"warning: {message}", err=True)
    sys.exit(main())
