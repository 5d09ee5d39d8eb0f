"""Groups of commands whose modules are imported only when a command runs or its help is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module, util
from inspect import cleandoc, signature
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_COMMANDS = "plumbline.pipelines.cli"


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

    >>> commands = Commands({"sql": "sql:command"})
    >>> commands["sql"].name, list(commands)
    ('sql', ['sql'])
    """

    def __init__(self, entries: Mapping[str, Group | str]) -> None:
        self.entries = entries

    def __getitem__(self, name: str) -> Any:
        entry = self.entries[name]
        if isinstance(entry, Group) and entry.alone:
            inside = Commands(entry.entries)

            class Both(LazyGroup):
                def __init__(self, **attributes: Any) -> None:
                    super().__init__(**{**attributes, "commands": inside})

            both = typer.Typer(name=name, cls=Both, add_completion=False, rich_markup_mode="rich")
            function = _function(entry.alone)
            both.callback(invoke_without_command=True, context_settings=_settings(function))(
                function
            )
            return typer.main.get_command(both)
        if isinstance(entry, Group):
            return LazyGroup(
                name=name,
                help=entry.help,
                commands=Commands(entry.entries),
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
        texts = {name: _help(entry) for name, entry in self.commands.entries.items()}
        TyperGroup(
            name=self.name,
            help=self.help,
            epilog=self.epilog,
            params=self.params,
            rich_markup_mode=self.rich_markup_mode,
            commands={name: TyperCommand(name, help=text) for name, text in texts.items()},
        ).format_help(ctx, formatter)


def _help(entry: Group | str) -> str:
    if isinstance(entry, Group):
        return summary(entry.alone) if entry.alone else entry.help
    return summary(entry)


def summary(target: str) -> str:
    """The first paragraph of a function's docstring, read from the source of its module.

    >>> summary("lazy:summary")
    "The first paragraph of a function's docstring, read from the source of its module."
    """
    module, function = target.split(":")
    spec = util.find_spec(f"{_COMMANDS}.{module}")
    source: str = spec.loader.get_source(spec.name)  # type: ignore[union-attr]
    # Parsing a dozen modules takes a tenth of a second, a search nothing.
    found = re.search(rf'^def {function}\(.*?^    """(.*?)(?:\n\n|""")', source, re.M | re.S)
    assert found is not None, f"{target} has no docstring"
    return cleandoc(found[1])
