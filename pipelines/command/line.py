"""The command line of a command's class: its options, where their values come from, what it says.

A value is that of the command line, else of the file that `--config` names, else of an environment
variable, else of the command's table in the settings file, else the class's default.
"""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from rich.console import Console

from plumbline.pipelines.command.base import (
    DEFAULT_WAREHOUSE,
    Command,
    Done,
    Parameter,
    Row,
    execute,
    has_plan,
    line_of,
    made,
    parameters,
    plan_of,
)
from plumbline.pipelines.command.registry import name_of
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.bucket import address
from plumbline.warehouse.text.output import say

#: Options of every command that has none of its own by this name.
_GENERAL = ("config", "dry_run", "format")
#: How results are written.
FORMATS = ("table", "json")


def _declared(parameter: Parameter) -> inspect.Parameter:
    """A parameter as one of a function of which Typer makes an argument or option."""
    kind, default, on = parameter.kind, parameter.default, parameter.on
    if get_origin(kind) is tuple:
        kind = list[get_args(kind)[0]] if parameter.is_list else str  # type: ignore[misc]
        if default is not ...:
            default = list(default) if parameter.is_list else ",".join(default)
    more: dict[str, Any] = {"help": parameter.about, "show_envvar": bool(on.variable)}
    more |= {"envvar": on.variable} if on.variable else {}
    more |= {"metavar": on.metavar} if on.metavar else {}
    more |= (
        {"parser": lambda text: address(text) or Path(text)}
        if Path in (kind, *get_args(kind))
        else {}
    )
    if default is not ...:
        more["show_default"] = default not in (None, "", False, [])
    made = typer.Argument(**more) if on.positional else typer.Option(*_names(parameter), **more)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind, made],
    )


def _names(parameter: Parameter) -> tuple[str, ...]:
    name = parameter.option
    is_on = parameter.kind is bool and parameter.default
    return (f"{name}/--no-{name[2:]}",) if is_on else (name,)


def function_of(kind: type[Command]) -> Callable[..., None]:
    """The function of which Typer makes the command."""

    def run(ctx: typer.Context, **values: Any) -> None:
        if ctx.invoked_subcommand is not None:  # of a group that is a command, too
            return
        own = {p.name for p in parameters(kind)}
        given = {n: None if n in own else values.pop(n, None) for n in _GENERAL}
        if given["format"] not in (None, *FORMATS):
            problem = f"there is {', '.join(FORMATS)}"
            raise UsageProblem(f"--format {given['format']}", problem)
        there = {n: v for n, v in values.items() if v is not None}
        typed = {n: v for n, v in there.items() if origin(ctx, n) == "command line"}
        command = made(kind, typed, given["config"], there)
        if given["dry_run"]:
            command.check()
            _show_plan(command, given["format"] or "table")
            return
        from plumbline.pipelines.stages import CONSOLE, Stages

        out = Console(quiet=True, markup=False) if given["format"] in FORMATS[1:] else CONSOLE
        show(execute(command, Stages(out)), command, given["format"] or "table")

    signature = map(_declared, parameters(kind))
    run.__signature__ = inspect.Signature([_CONTEXT, *signature, *_general(kind)])  # type: ignore[attr-defined]
    run.__doc__ = inspect.getdoc(kind)
    run.__name__ = kind.__name__
    return run


_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def _general(kind: type[Command]) -> Iterator[inspect.Parameter]:
    """The options that every command has."""
    about: list[tuple[str, Any, Any, str]] = [
        ("config", Path | None, None, "TOML file with any of these options."),
        ("format", str, "table", "table or json."),
    ]
    if has_plan(kind):
        said = "Say what it would take; do and write nothing."
        about.insert(0, ("dry_run", bool, False, said))
    own = {p.name for p in parameters(kind)}
    for name, hint, default, text in about:
        if name in own:  # such as `why --format markdown`
            continue
        option = typer.Option(
            f"--{name.replace('_', '-')}",
            help=text,
            show_default=bool(default),
            show_envvar=False,
        )
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[hint, option],
        )


def origin(ctx: typer.Context, name: str) -> str:
    """Where a value came from: command line, environment, settings or default."""
    source = ctx.get_parameter_source(name)
    names = {
        "COMMANDLINE": "command line",
        "ENVIRONMENT": "environment",
        "DEFAULT_MAP": "settings",
    }
    return names.get(source.name if source else "", "default")


def context_settings(kind: type[Command]) -> dict[str, Any]:
    """What gives a command its defaults: its table of the settings file, and its variables."""
    from plumbline.pipelines import settings

    name = name_of(kind)
    variable = "PLUMBLINE_" + name.upper().replace(" ", "_").replace("-", "_")
    known = {p.name: p for p in parameters(kind)}
    table = settings.of_command(name)
    for key in table:
        if key not in known:
            fix = f"known: {', '.join(known)}"
            raise UsageProblem(
                f"settings [{name.replace(' ', '.')}]: key {key!r}", "is unknown", fix
            )
    general = {n: v for n, v in settings.of_every_command().items() if n in known}
    return {
        "default_map": general | {n: _as_default(known[n], v) for n, v in table.items()},
        "auto_envvar_prefix": variable,
    }


def _as_default(parameter: Parameter, value: object) -> object:
    """A value of the settings file as Typer takes it for a default."""
    if parameter.is_list:
        return [value] if isinstance(value, str) else value
    if isinstance(value, list) and get_origin(parameter.kind) is tuple:
        return ",".join(map(str, value))
    if isinstance(value, list | dict):
        problem = "should be one value, no list or table"
        raise UsageProblem(f"settings: {parameter.name} = {value!r}", problem)
    return value


def _show_plan(command: Command, form: str) -> None:
    _print_rows(list(plan_of(command)), form)
    if form == "table":
        say(f"Nothing was done or written. Next: {line_of(command)}")


def show(done: Done, command: Command, form: str) -> None:
    """Print what a command did; raise what made it fail."""
    if form == "json":
        names = ("rows", "said", "wrote", "files", "next")
        _print_json({name: getattr(done, name) for name in names})
    else:
        if done.rows:
            _print_rows(done.rows, form)
        for line in done.said:
            say(line)
        if done.wrote:
            say(f"Wrote {', '.join(done.wrote)} in {done.warehouse or command.warehouse}")
        for path in done.files:
            say(f"Wrote {path}")
        if done.next:
            say(f"Next: {_next(done, command)}")
    if done.failed is not None:
        raise done.failed


def _next(done: Done, command: Command) -> str:
    """The command that comes next, on the same warehouse."""
    where = done.warehouse or command.warehouse
    is_elsewhere = where != DEFAULT_WAREHOUSE and done.next.startswith("plumbline ")
    is_elsewhere = is_elsewhere and "--warehouse" not in done.next
    return done.next + (f" --warehouse {shlex.quote(str(where))}" if is_elsewhere else "")


def _print_rows(rows: Sequence[Row], form: str) -> None:
    if form == "json":
        _print_json(rows)
        return
    from plumbline.pipelines.cli.sql import show as show_table

    names = list(dict.fromkeys(name for row in rows for name in row))
    names = [n for n in names if any(row.get(n) not in (None, "") for row in rows)]
    console = Console(highlight=False, markup=False)
    show_table(console, names, [tuple(row.get(n) for n in names) for row in rows])


def _print_json(value: object) -> None:
    # Escapes whatever is not ASCII, control characters among them.
    print(json.dumps(value, indent=2, default=str))
