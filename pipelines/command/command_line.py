"""Turn a command's class into a command line, and print the results."""

from __future__ import annotations

import inspect
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

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
    parameters,
    plan_of,
)
from plumbline.pipelines.command.registry import name_of
from plumbline.pipelines.command.settings import configured, made
from plumbline.warehouse.errors import PlumblineError, UsageProblem
from plumbline.warehouse.paths import address
from plumbline.warehouse.text.escape import say

#: Options of every command: type, default and help. A command can redefine an option.
_GENERAL: dict[str, tuple[Any, Any, str]] = {
    "dry_run": (bool, False, "Show what would be done and what it would cost; write nothing."),
    "config": (Path | None, None, "Settings file (TOML); it overrides environment variables."),
    "format": (Literal["table", "json", "csv"], "table", "Format of the result."),
}


def _declared(parameter: Parameter) -> inspect.Parameter:
    """Declare a command's argument or option as a function parameter for Typer.

    All parameters are optional for Typer, because a settings file may give the value. ``made``
    raises the error if a required value is missing.
    """
    kind, default, on = parameter.kind, parameter.default, parameter.on
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        inner = str if get_origin(inner) is Literal else inner  # Typer can't handle list[Literal]
        kind = list[inner] if parameter.is_list else str  # type: ignore[valid-type]
        if default is not ...:
            default = list(default) if parameter.is_list else ",".join(default)
    about = parameter.about + " (required)" * (default is ...)
    more: dict[str, Any] = {"help": about, "show_envvar": bool(on.variable)}
    more |= {"envvar": on.variable or None, "metavar": on.metavar or None}
    if parameter.is_path:
        more["parser"] = lambda text: text and (address(text) or Path(text))  # `made` rejects ""
    default = None if default is ... else default
    more["show_default"] = default not in (None, "", []) and default is not False
    option = parameter.option
    if kind is bool and default:
        option += f"/--no-{option[2:]}"
    declared = typer.Argument(**more) if on.positional else typer.Option(option, **more)
    return _keyword(parameter.name, Annotated[kind, declared], default)


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    of_kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, of_kind, default=default, annotation=annotation)


def function_of(kind: type[Command]) -> Callable[..., None]:
    left_out = {p.name for p in parameters(kind)} | (set() if has_plan(kind) else {"dry_run"})
    general = [name for name in _GENERAL if name not in left_out]

    def run(ctx: typer.Context, **values: Any) -> None:
        if ctx.invoked_subcommand is not None:  # Typer runs the subcommand next
            return
        given = {name: values.pop(name) for name in general}
        _refuse_repeated(kind, ctx.find_root().obj or ())
        typed = {n: v for n, v in values.items() if v is not None and _is_typed(ctx, n)}
        config = given.get("config") or typed.get("config")
        command = made(kind, typed, configured(kind, config))
        form = given.get("format", "table")
        if given.get("dry_run"):
            command.check()
            _show_plan(command, form, ctx.find_root().obj)
            return
        show(execute(command), command, form)

    signature = [_keyword("ctx", typer.Context), *map(_declared, parameters(kind))]
    for name in general:
        annotation, default, about = _GENERAL[name]
        option = typer.Option(f"--{name.replace('_', '-')}", help=about, show_default=bool(default))
        signature.append(_keyword(name, Annotated[annotation, option], default))
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    run.__doc__ = inspect.getdoc(kind)
    run.__name__ = kind.__name__
    return run


def _refuse_repeated(kind: type[Command], words: Sequence[str]) -> None:
    """Raise ``UsageProblem`` if an option that isn't repeatable is given twice."""
    given = Counter(word.partition("=")[0] for word in words)
    for p in parameters(kind):
        if given[p.option] > 1 and not (p.is_list or p.on.positional):
            is_tuple = get_origin(p.kind) is tuple
            fix = "separate its values by commas" if is_tuple else "it takes one value"
            raise UsageProblem(p.option, f"is given {given[p.option]} times", fix)


def _is_typed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _show_plan(command: Command, form: str, typed: Sequence[str]) -> None:
    """Print a command's plan, then suggest the same command line without `--dry-run`."""
    rows: list[Row] = []
    try:
        rows.extend(plan_of(command))
    except PlumblineError:  # print the rows that came before the error
        if rows:
            _print_rows(rows, form)
        raise
    _print_rows(rows, form)
    if form == "table":
        line = shlex.join(["plumbline", *(word for word in typed if word != "--dry-run")])
        after = f"Nothing was done or written. Next: {line}"
        say(after if rows else "Nothing is left to do.")


def show(done: Done, command: Command, form: str) -> None:
    """Print the result of a command, then raise ``done.failed`` if it is set.

    JSON output is one object with rows, lines and files. With CSV, rows go to standard output,
    and everything else goes to standard error.
    """
    rows = done.rows if form == "table" else done.table or done.rows
    if form == "json":
        from plumbline.pipelines.result_output import print_json

        more = {name: getattr(done, name) for name in ("said", "wrote", "files")}
        print_json({"rows": rows, **more, "next": _next(done, command)})
    else:
        shown = rows[: done.most or None] if form == "table" else rows
        if shown:
            _print_rows(shown, form)
        if n_more := len(rows) - len(shown):
            say(f"and {n_more:,} more rows: give --format csv")
        for line in _lines(done, command):
            say(line, err=form != "table")
    if done.failed is not None:
        raise done.failed


def _lines(done: Done, command: Command) -> Iterator[str]:
    yield from done.said
    if done.wrote:
        yield f"Wrote {', '.join(done.wrote)} in {command.warehouse}"
    for path in done.files:
        yield f"Wrote {path}"
    if done.next:
        yield f"Next: {_next(done, command)}"


def _next(done: Done, command: Command) -> str:
    """Return ``done.next``, with ``--warehouse`` added if the warehouse isn't the default."""
    if command.warehouse == DEFAULT_WAREHOUSE:
        return done.next
    own = f"plumbline {name_of(type(command))} "
    if done.next.startswith(own) and command.warehouse == type(command).warehouse:
        return done.next
    place = f" --warehouse {shlex.quote(str(command.warehouse))}"
    lines = done.next.split(", or ")
    is_open = [line.startswith("plumbline ") and "--warehouse" not in line for line in lines]
    return ", or ".join(line + place * takes for line, takes in zip(lines, is_open, strict=True))


def _print_rows(rows: Sequence[Row], form: str) -> None:
    from plumbline.pipelines import result_output
    from plumbline.pipelines.report.model import rows_table

    if form == "json":
        result_output.print_json(rows)
        return
    if form == "csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        result_output.print_csv(names, ([row.get(name) for name in names] for row in rows))
        return
    console = Console(highlight=False, markup=False)
    for columns, group in groupby(rows, tuple):  # start a table when the columns change
        alike = list(group)
        names = [n for n in columns if any(row[n] not in (None, "") for row in alike)]
        rendered = rows_table(alike, names)
        cells = [[cell.text for cell in row] for row in rendered.rows]
        are_numbers = [cell.is_number for cell in rendered.rows[0]]
        result_output.show(console, rendered.headings, cells, are_numbers)
