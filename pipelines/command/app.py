"""The ``plumbline`` command. Its subcommands are the classes that ``registry`` lists.

A subcommand is imported only when it runs or shows its help. To update the tables in
docs/commands.md, run ``python -m plumbline.pipelines.command.app docs/commands.md``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

import plumbline
from plumbline.pipelines.command import registry
from plumbline.warehouse.text.escape import say


class CommandGroup(TyperGroup):
    """The group of all commands whose names begin with ``prefix``, such as "corpus ".

    >>> CommandGroup().get_command(None, "measure").name
    'measure'
    """

    prefix = ""

    def __init__(self, **attributes: Any) -> None:
        rest = [n[len(self.prefix) :] for n in registry.targets() if n.startswith(self.prefix)]
        names = dict.fromkeys(name.partition(" ")[0] for name in rest)
        stubs = {n: TyperCommand(n, help=registry.summary(self.prefix + n)) for n in names}
        super().__init__(**{**attributes, "commands": stubs})

    def get_command(self, ctx: Any, name: str) -> Any:
        return _command(self.prefix + name) if name in self.commands else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name. If `count` isn't found, the error suggests `corpus count`."""
        try:
            return super().resolve_command(ctx, args)
        except TyperException as e:
            elsewhere = [repr(name) for name in registry.targets() if name.endswith(f" {args[0]}")]
            if elsewhere:
                e.message = f"No such command {args[0]!r}. Did you mean {', '.join(elsewhere)}?"
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print a group's help from the summaries of its commands, without importing them."""
        names = ("name", "help", "epilog", "params", "rich_markup_mode", "commands")
        TyperGroup(**{name: getattr(self, name) for name in names}).format_help(ctx, formatter)


class GroupAndCommand(CommandGroup):
    """A command that also has subcommands, such as `plumbline report`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass everything after a subcommand's name to the subcommand."""
        is_subcommand = bool(args) and args[0] in self.commands
        ctx.allow_interspersed_args = not is_subcommand
        if is_subcommand:
            self.params = []
        return super().parse_args(ctx, args)


def _command(full_name: str) -> Any:
    name, below = full_name.split()[-1], {"prefix": f"{full_name} "}
    is_group = any(known.startswith(f"{full_name} ") for known in registry.targets())
    if full_name not in registry.targets():
        about = {"help": registry.summary(full_name), "no_args_is_help": True}
        return type("_Group", (CommandGroup,), below)(name=name, rich_markup_mode="rich", **about)
    from plumbline.pipelines.command.base import class_of
    from plumbline.pipelines.command.command_line import function_of

    function = function_of(class_of(full_name))
    kind = type("_Group", (GroupAndCommand,), below)
    made = typer.Typer(name=name, cls=kind, add_completion=False, rich_markup_mode="rich")
    if is_group:
        made.callback(invoke_without_command=True)(function)
    else:
        made.command(name)(function)
    return typer.main.get_command(made)


def _version(asked: bool) -> None:
    if asked:
        say(f"plumbline {plumbline.__version__}")
        raise typer.Exit


def _plumbline(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Handle the options that `plumbline` takes without a command, such as `--version`."""


app = typer.Typer(
    name="plumbline",
    cls=CommandGroup,
    callback=_plumbline,
    help="Measure gender preferences of language models, and trace them to the text they were "
    "trained on.",
    epilog="Start with: plumbline pipeline",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode="rich",
)

#: The first and last line of the generated part of docs/commands.md.
BEGIN, END = "<!-- commands: written -->", "<!-- commands: end -->"


def lists() -> Iterator[str]:
    """Yield lines for docs/commands.md: a Markdown table of the commands of each group.

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
    """Return ``page`` with the text between ``BEGIN`` and ``END`` replaced by ``lists()``."""
    text = "\n".join([BEGIN, *lists(), "", END])
    return re.sub(f"{BEGIN}.*{END}", lambda _: text, page, flags=re.S)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(written(target.read_text("utf-8")), "utf-8")
