"""The ``plumbline`` command, whose subcommands are the classes that ``registry`` lists.

Importing this module imports no subcommand; that happens when one is run or shows its help.
``python -m plumbline.pipelines.command.app docs/commands.md`` writes the lists of that page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

import plumbline
from plumbline.pipelines.command import registry
from plumbline.warehouse.text.escape import say


class Commands(Mapping[str, Any]):
    """The commands and groups whose names begin with ``prefix``; looking one up imports its module.

    >>> commands = Commands("fairpair ")
    >>> commands["run"].name, list(commands)
    ('run', ['run', 'score'])
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._names = tuple(
            dict.fromkeys(
                name.removeprefix(prefix).partition(" ")[0]
                for name in registry.targets()
                if name.startswith(prefix)
            )
        )

    def help(self, name: str) -> str:
        """The line about a command or group in its group's help."""
        return registry.summary(self._prefix + name)

    def __getitem__(self, name: str) -> Any:
        full_name, prefix = self._prefix + name, f"{self._prefix}{name} "
        is_group = any(full.startswith(prefix) for full in registry.targets())
        if full_name in registry.targets():
            return _command(full_name, name, Commands(prefix) if is_group else None)
        if not is_group:
            raise KeyError(name)
        style: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "rich"}
        return LazyGroup(name=name, help=self.help(name), commands=Commands(prefix), **style)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _command(full_name: str, name: str, subcommands: Commands | None) -> Any:
    """Typer's command ``name`` for ``full_name``; with ``subcommands`` it is also their group."""
    from plumbline.pipelines.command import command_line
    from plumbline.pipelines.command.base import class_of

    kind = class_of(full_name)
    function = command_line.function_of(kind)
    if subcommands is None:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        app.command(name)(function)
        return typer.main.get_command(app)
    commands = subcommands

    class Both(LazyGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**{**attributes, "commands": commands})

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            is_subcommand = bool(args) and args[0] in commands
            ctx.allow_interspersed_args = not is_subcommand
            if is_subcommand:  # all that follows belongs to it
                self.params = []
            return super().parse_args(ctx, args)

    app = typer.Typer(name=name, cls=Both, add_completion=False, rich_markup_mode="rich")
    app.callback(invoke_without_command=True)(function)
    return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """A group that takes the help of its commands from their source, without importing them."""

    commands: Commands  # type: ignore[assignment]

    def __init__(self, *, commands: Commands, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = commands

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the registry's order."""
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; the error for an unknown name lists commands of that name elsewhere."""
        try:
            return super().resolve_command(ctx, args)
        except TyperException as e:
            elsewhere = [repr(name) for name in registry.targets() if name.endswith(f" {args[0]}")]
            if elsewhere:
                e.message = f"No such command {args[0]!r}. Did you mean {', '.join(elsewhere)}?"
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help of a group with the same texts, whose commands do nothing."""
        texts = {name: self.commands.help(name) for name in self.commands}
        TyperGroup(
            name=self.name,
            help=self.help,
            epilog=self.epilog,
            params=self.params,
            rich_markup_mode=self.rich_markup_mode,
            commands={name: TyperCommand(name, help=text) for name, text in texts.items()},
        ).format_help(ctx, formatter)


class _Plumbline(LazyGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": Commands()})


def _version(asked: bool) -> None:
    if asked:
        say(f"plumbline {plumbline.__version__}")
        raise typer.Exit


def _plumbline(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="The installed version."),
    ] = False,
) -> None:
    """Take the options of the program itself."""


app = typer.Typer(
    name="plumbline",
    cls=_Plumbline,
    callback=_plumbline,
    help="Which way does a language model lean, and does it follow the text it learned from?",
    epilog="Start with: plumbline pipeline",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode="rich",
)

#: The first and last line of the page's part that is generated.
BEGIN, END = "<!-- commands: written -->", "<!-- commands: end -->"


def lists() -> Iterator[str]:
    """A table per group: its commands, what they do, and whether they have a plan.

    >>> next(line for line in lists() if line.startswith("| `corpus count`"))
    '| `corpus count` | Count words and their co-occurrences with target words. | plan |'
    """
    from plumbline.pipelines.command.base import class_of, has_plan

    group = ""
    for name in registry.targets():
        first = name.split()[0]
        if first != group:
            group = first
            yield from ("", f"### {group}", "", "| command | does | has |", "|---|---|---|")
        kind = class_of(name)
        has = "plan" if has_plan(kind) else ""
        about = " ".join(registry.summary(name).split()).replace("|", "\\|")
        yield f"| `{name}` | {about} | {has} |"


def written(page: str) -> str:
    """A page with the current lists between ``BEGIN`` and ``END``."""
    text = "\n".join([BEGIN, *lists(), "", END])
    return re.sub(f"{BEGIN}.*{END}", lambda _: text, page, flags=re.S)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(written(target.read_text("utf-8")), "utf-8")
