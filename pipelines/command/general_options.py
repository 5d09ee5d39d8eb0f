"""General options: `--dry-run` (with a plan), `--config` or `--conf`, and `--format`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from plumbline.pipelines.command.base import Command, Parameter, has_plan, parameters
from plumbline.pipelines.command.value_sources import of_config

#: Names of the general options. A command may have an option of its own by such a name.
GENERAL = ("config", "conf", "dry_run", "format")


def general_options(kind: type[Command]) -> Iterator[inspect.Parameter]:
    """The general options of a command, without those that its own options replace."""
    about: list[tuple[str, Any, Any, str]] = [
        ("conf", Path | None, None, "Settings file (TOML), or cluster.")
        if kind.at_top
        else ("config", Path | None, None, "TOML file with any of these options."),
        ("format", str, "table", "table, json or csv."),
    ]
    if has_plan(kind):
        text = "Say what it would take; do and write nothing."
        about.insert(0, ("dry_run", bool, False, text))
    own = {p.name for p in parameters(kind)}
    for name, hint, default, text in about:
        if name in own:  # such as `why --format markdown`
            continue
        option = typer.Option(
            f"--{name.replace('_', '-')}",
            help=text,
            show_default=bool(default),
            show_envvar=False,
            callback=_taken_from(kind) if name == "config" else None,
            is_eager=name == "config",
        )
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[hint, option],
        )


def _taken_from(kind: type[Command]) -> Callable[..., Path | None]:
    """Typer's callback for `--config`: the file can give required options, but not arguments."""
    known = {p.name: p for p in parameters(kind) if not p.on.positional}

    def taken(ctx: typer.Context, config: Path | None) -> Path | None:
        settings = of_config(config) if config and config.exists() else {}  # `made` reports it
        values = {n: as_typed(known[n], one.value) for n, one in settings.items() if n in known}
        given = {name: value for name, value in values.items() if value is not None}
        ctx.default_map = {**(ctx.default_map or {}), **given}
        return config

    return taken


def as_typed(parameter: Parameter, value: Any) -> Any:
    """A value of a file or variable as it would be typed; ``None`` if its type is wrong.

    ``value_sources.made`` later raises an error that names the value's source.
    """
    if parameter.is_list:
        return [str(v) for v in (value if isinstance(value, list | tuple) else [value])]
    if isinstance(value, list | tuple) and get_origin(parameter.kind) is tuple:
        return parameter.on.separator.join(map(str, value))
    kinds = {parameter.kind, *get_args(parameter.kind)}
    is_path = Path in kinds and isinstance(value, str | Path)
    return value if str in kinds or is_path or type(value) in kinds else None
