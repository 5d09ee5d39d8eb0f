"""The options of a command with their values and where each came from, as TOML."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from plumbline.pipelines.command.base import Command, class_of, parameters
from plumbline.pipelines.command.registry import targets
from plumbline.pipelines.command.value_sources import Value, Values, here
from plumbline.warehouse.errors import UsageProblem


def shown_settings(name: str, conf: str | None) -> list[str]:
    """Lines on every option of a command. Raises ``UsageProblem`` for an unknown command."""
    if name not in targets():
        raise UsageProblem(f"command {name}", "is unknown", f"there is {', '.join(targets())}")
    kind = class_of(name)
    table = "" if kind.at_top else name.replace(" ", ".").replace("-", "_")
    return list(_as_toml(kind, here(kind, conf), table))


def _as_toml(kind: type[Command], values: Values, table: str) -> Iterator[str]:
    """Every option, its meaning and source as comments.

    Commented out are those without a value, and defaults that depend on other options.
    """
    usual = kind.usual({name: option.value for name, option in values.items()})
    if table:
        yield f"[{table}]"
    inside = ""
    for option in parameters(kind):
        field, *inner = option.path
        if inner and field != inside:
            inside = field
            yield f"\n[{'.'.join(filter(None, (table, field)))}]"
        default = reduce(getattr, inner, usual[field]) if field in usual else option.default
        chosen = values.get(option.name, Value(default, "default"))
        yield f"# {option.about} [{chosen.source}]"
        key, value = option.path[-1], option.value(chosen.value)
        shown = "" if value is None or value is ... else f" {_in_toml(value)}"
        is_fixed = shown and (option.name in values or field not in usual)
        yield f"{key} ={shown}" if is_fixed else f"# {key} ={shown}"


def _in_toml(value: object) -> str:
    """A value in TOML.

    >>> _in_toml((0.5, 1.0)), _in_toml(True), _in_toml("a\\\\b")
    ('[0.5, 1.0]', 'true', '"a\\\\\\\\b"')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(_in_toml, value))}]"
    if isinstance(value, int | float):
        return str(value).lower()
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
