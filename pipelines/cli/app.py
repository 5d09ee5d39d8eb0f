"""The ``plumbline`` command: which function each command is.

Importing this module imports no command: its module is loaded when it runs or its help is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

import plumbline
from plumbline.pipelines.cli.lazy import Commands, Group, LazyGroup
from plumbline.warehouse.text.output import say

#: Each command's function, as ``module:function`` of this package.
ENTRIES: Mapping[str, Group | str] = {
    "pipeline": "pipeline:pipeline",
    "config": "pipeline:config",
    "corpus": Group(
        "Corpora: count shards, compute associations, list what exists.",
        {
            "count": "corpus:count",
            "split": "corpus:split",
            "associate": "corpus:associate",
            "compare": "corpus:compare",
            "filter": "corpus:filter_",
            "list": "corpus:list_",
            "status": "corpus:status",
            "verify": "corpus:verify",
            "pack": "corpus:pack",
            "import": "corpus:import_",
            "words": "words:words",
            "vocabulary": "words:vocabulary",
            "vet": "words:vet",
        },
    ),
    "why": "words:why",
    "benchmark": Group(
        "Sentence pairs: import released benchmarks, build new ones, list and show them.",
        {
            "import": "benchmark:import_",
            "list": "benchmark:list_",
            "show": "benchmark:show",
            "card": "benchmark:card",
            "export": "benchmark:export",
            "push": "benchmark:push",
            "build": "benchmark:build",
            "ratings": Group(
                "What people say of its pairs: sheets for raters, and their answers.",
                {"export": "benchmark:export_ratings", "import": "benchmark:import_ratings"},
            ),
            "compare": "benchmark:compare",
        },
    ),
    "constrain": "words:constrain",
    "score": "score:score",
    "choose": "choose:choose",
    "import-scores": "score:import_scores",
    "train": "training:train",
    "intervene": Group(
        "Change a text, train on it, and see whether the model's lean follows.",
        {
            "run": "training:intervene_run",
            "text": "training:intervene_text",
            "show": "training:intervene_show",
        },
    ),
    "demo": Group(
        "The closed world: a corpus whose associations are planted and known.",
        {"write": "training:write_demo"},
    ),
    "fairpair": Group(
        "Counterfactual continuations and their sampling noise: do John's and Jane's differ?",
        {
            "run": "fairpair:run",
            "score": "fairpair:score",
            "report": "fairpair:report",
        },
    ),
    "disclosure": Group(
        "What a model assumes about people of unspecified gender, and how to make it assume less.",
        {
            "prompts": "disclosure:prompts",
            "probe": "disclosure:probe",
            "tune": "disclosure:tune",
            "sweep": "sweep:sweep",
            "compare": "compare:compare",
        },
    ),
    "measure": "report:measure",
    "report": Group(
        "",
        {"push": "report:push"},
        alone="report:report",
    ),
    "figure": "report:figure",
    "table": "report:table",
    "card": "report:card",
    "cite": "report:cite",
    "reproduce": Group(
        "Compute published tables again: from the released data, or for a corpus of your own.",
        {
            "unstereoeval": "reproduce:unstereoeval",
            "fairpair": "reproduce:fairpair",
            "disclosure": "reproduce:disclosure",
            "lists": "reproduce:lists",
            "pythia": "reproduce:pythia",
            "cause": "reproduce:cause",
        },
    ),
    "sql": "sql:command",
    "doctor": "doctor:command",
    "runs": Group(
        "What was run, with which options and versions, and what it wrote.",
        {
            "list": "runs:list_runs",
            "show": "runs:show_run",
            "compare": "runs:compare",
        },
    ),
    "warehouse": Group(
        "Check a warehouse, compact it, migrate it to the current format, export and copy it.",
        {
            "check": "warehouse:check",
            "compact": "warehouse:compact",
            "migrate": "warehouse:migrate",
            "history": "warehouse:history",
            "restore": "warehouse:restore",
            "forget": "warehouse:forget",
            "export": "warehouse:export",
            "push": "warehouse:push",
            "pull": "warehouse:pull",
        },
    ),
}


class _Plumbline(LazyGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": Commands(ENTRIES)})


def _version(asked: bool) -> None:
    if asked:
        say(f"plumbline {plumbline.__version__}")
        raise typer.Exit


def _plumbline(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="The installed version."),
    ] = False,
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox",
            help="For a warehouse of somebody else: limited memory and time, no network.",
        ),
    ] = False,
) -> None:
    """``main`` has taken --sandbox before: it comes first."""


app = typer.Typer(
    name="plumbline",
    cls=_Plumbline,
    callback=_plumbline,
    help="Which way does a language model lean, and does it follow the text it learned from?",
    epilog="Start with: plumbline pipeline",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
