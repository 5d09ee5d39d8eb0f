"""The ``plumbline`` command: which function each command is.

Importing this module imports no command: its module is loaded when it runs or its help is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module, util
from inspect import cleandoc, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import plumbline
from plumbline.pipelines.command import registry
from plumbline.warehouse.text.output import say

_COMMANDS = "plumbline.pipelines.cli"
#: In the place of a function: the command is a class that ``registry`` finds.
CLASS = "class"
#: Help of a group that only other packages have commands in.
_OTHERS = "Commands of other packages."


@dataclass(frozen=True)
class Group:
    """A named set of commands and further groups.

    Attributes:
        help: its line in the help of the group above; that of ``alone`` where there is one.
        entries: name to a group, or to a command, as ``module:function`` of this package.
        alone: what the group's name does by itself, as ``module:function``.
    """

    help: str
    entries: Mapping[str, Group | str]
    alone: str = ""


class Commands(Mapping[str, Any]):
    """The commands of a group by name; looking one up imports its module.

    To the ``entries`` come the commands that are classes and whose names begin with ``prefix``.

    >>> commands = Commands({"sql": "sql:command"}, "nothing ")
    >>> commands["sql"].name, list(commands)
    ('sql', ['sql'])
    """

    def __init__(self, entries: Mapping[str, Group | str], prefix: str = "") -> None:
        names = [n.removeprefix(prefix) for n in registry.targets() if n.startswith(prefix)]
        groups = {n.partition(" ")[0]: Group(_OTHERS, {}) for n in names if " " in n}
        classes = {n: CLASS for n in names if " " not in n and n not in groups}
        self.entries: Mapping[str, Group | str] = {**entries, **classes} | {
            name: group for name, group in groups.items() if name not in entries
        }
        self._prefix = prefix
        self._old = {n.removeprefix(prefix) for n in registry.OLD if n.startswith(prefix)}

    def help(self, name: str) -> str:
        """The line of a command or group in the help of its group."""
        entry = self.entries[name]
        if entry == CLASS or self._prefix + name in registry.targets():
            return registry.summary(self._prefix + name)
        if isinstance(entry, Group):
            return summary(entry.alone) if entry.alone else entry.help
        return summary(entry)

    def __getitem__(self, name: str) -> Any:
        if name not in self.entries and registry.current(self._prefix + name) in registry.targets():
            return _of_class(registry.current(self._prefix + name))
        if name not in self.entries and any(old.startswith(f"{name} ") for old in self._old):
            return LazyGroup(name=name, commands=Commands({}, f"{self._prefix}{name} "))
        entry = self.entries[name]
        if entry == CLASS:
            return _of_class(self._prefix + name)
        if isinstance(entry, Group) and (entry.alone or self._prefix + name in registry.targets()):
            inside = Commands(entry.entries, f"{self._prefix}{name} ")

            class Both(LazyGroup):
                def __init__(self, **attributes: Any) -> None:
                    super().__init__(**{**attributes, "commands": inside})

            both = typer.Typer(name=name, cls=Both, add_completion=False, rich_markup_mode="rich")
            if entry.alone:
                function = _function(entry.alone)
                settings = _settings(function)
            else:
                function, settings = _class_function(self._prefix + name)
            both.callback(invoke_without_command=True, context_settings=settings)(function)
            return typer.main.get_command(both)
        if isinstance(entry, Group):
            return LazyGroup(
                name=name,
                help=entry.help,
                commands=Commands(entry.entries, f"{self._prefix}{name} "),
                no_args_is_help=True,
                rich_markup_mode="rich",
            )
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        function = _function(entry)
        app.command(name, context_settings=_settings(function))(function)
        return typer.main.get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _of_class(name: str) -> Any:
    """The command that a class is."""
    function, settings = _class_function(name)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name.split()[-1], context_settings=settings)(function)
    return typer.main.get_command(app)


def _class_function(name: str) -> tuple[Any, dict[str, Any]]:
    """A class's function and what gives it its defaults."""
    from plumbline.pipelines.command import line
    from plumbline.pipelines.command.base import class_of

    kind = class_of(name)
    return line.function_of(kind), line.context_settings(kind)


def _function(target: str) -> Any:
    module, function = target.split(":")
    return getattr(import_module(f"{_COMMANDS}.{module}"), function)


def _settings(function: Any) -> dict[str, Any]:
    """A command's defaults where the settings file has others.

    Not for commands with an option for that file, which read all of it, nor for a warehouse of the
    command's own.
    """
    from plumbline.pipelines import settings
    from plumbline.pipelines.requests import DEFAULT_WAREHOUSE

    given = signature(function).parameters
    wanted = {"data"} & given.keys()
    if "warehouse" in given and given["warehouse"].default == DEFAULT_WAREHOUSE:
        wanted.add("warehouse")
    if "conf" in given or not wanted:
        return {}
    found = settings.of_every_command()
    return {"default_map": {name: found[name] for name in wanted & found.keys()}}


class LazyGroup(TyperGroup):
    """A group that takes the help of its commands from their source, without importing them."""

    commands: Commands  # type: ignore[assignment]

    def __init__(self, *, commands: Commands, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = commands

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the registry's order."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help of a group with the same texts, whose commands can do nothing."""
        texts = {name: self.commands.help(name) for name in self.commands}
        TyperGroup(
            name=self.name,
            help=self.help,
            epilog=self.epilog,
            params=self.params,
            rich_markup_mode=self.rich_markup_mode,
            commands={name: TyperCommand(name, help=text) for name, text in texts.items()},
        ).format_help(ctx, formatter)


def summary(target: str) -> str:
    """The first paragraph of a function's docstring, read from the source of its module.

    >>> summary("app:summary")
    "The first paragraph of a function's docstring, read from the source of its module."
    """
    module, function = target.split(":")
    spec = util.find_spec(f"{_COMMANDS}.{module}")
    source: str = spec.loader.get_source(spec.name)  # type: ignore[union-attr]
    # Parsing a dozen modules takes a tenth of a second, a search nothing.
    found = re.search(rf'^def {function}\(.*?^    """(.*?)(?:\n\n|""")', source, re.M | re.S)
    assert found is not None, f"{target} has no docstring"
    return cleandoc(found[1])


#: Each command's function, as ``module:function`` of this package.
ENTRIES: Mapping[str, Group | str] = {
    "pipeline": "pipeline:pipeline",
    "config": "pipeline:config",
    "corpus": Group(
        "Corpora: count shards, compute associations, list what exists.",
        {
            "count": CLASS,
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
    "score": CLASS,
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
            "run": CLASS,
            "score": CLASS,
            "report": CLASS,
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
            "anatomy": "reproduce:anatomy",
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
            "replay": CLASS,
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
