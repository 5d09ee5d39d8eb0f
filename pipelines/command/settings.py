"""Find the values of a command's options, and where each value comes from.

Values are looked up in this order: the command line, the `--config` file, environment variables,
plumbline.toml, and the default in the class. A `--config` file has the format of
plumbline.toml. An empty string in a file or variable counts as missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from plumbline.pipelines.command.base import Command, all_fields, class_of, parameters
from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.text.escape import is_unicode
from plumbline.warehouse.text.toml_file import read

#: The settings file that is read by default, if it exists.
DEFAULT_FILE = "plumbline.toml"
Made = TypeVar("Made", bound=Command)


class Value(NamedTuple):
    """A value. ``source`` names the settings file or variable that set the value, or is empty."""

    value: Any
    source: str = ""


Values = Mapping[str, Value]


def made(
    kind: type[Made],
    given: Mapping[str, object],
    weaker: Values | None = None,
) -> Made:
    """Make a command from option values. Values in ``given`` override values in ``weaker``.

    Raises ``UsageProblem`` for an invalid value. The error names the file or variable.
    """
    known = {p.name: p for p in all_fields(kind)}
    values = merged(weaker or {}, {name: Value(value) for name, value in given.items()})
    fields, source = dict[str, Any](), ""
    try:
        for name, one in values.items():
            source = one.source
            _refuse_unknown([name], known, "")
            if known[name].is_path and one.value == "":
                raise UsageProblem(name, "is empty", "give a value, or leave it out")
            fields[name] = known[name].value(one.value)
            if not is_unicode(str(fields[name])):
                raise UsageProblem(f"{name} {str(fields[name])!r}", "is not Unicode")
        source = ""
        return options.make(kind, {**kind.usual(fields), **fields})
    except UsageProblem as e:
        name = re.split(r"\W+", e.args[0].lstrip("-").replace("-", "_"), maxsplit=1)[0]
        source = source or values.get(name, Value(None)).source
        what, problem, fix = e.args
        raise UsageProblem(f"{source}: {what}" if source else what, problem, fix) from None


def configured(
    kind: type[Command],
    config: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Value]:
    """Return the values that settings files and environment variables set for a command.

    ``config`` is the path given with `--config`. Raises ``BadInput`` for a file that is not
    TOML, and ``UsageProblem`` for a missing file or an unknown key.
    """
    values = dict(_of_file(kind, DEFAULT_FILE)) if Path(DEFAULT_FILE).is_file() else {}
    environment = os.environ if environment is None else environment
    values = merged(values, dict(_of_environment(kind, environment)))
    config = config or values.get("config", Value(None)).value
    return merged(values, dict(_of_file(kind, str(config)))) if config else values


def merged(weaker: Values, stronger: Values) -> dict[str, Value]:
    """Merge option values; ``stronger`` wins. `model` and `models` count as the same option.

    >>> merged({"model": Value("gpt2"), "seed": Value(1)}, {"models": Value("unstereoeval")}).keys()
    dict_keys(['seed', 'models'])
    """
    models = {"model", "models"}
    if models & stronger.keys():
        weaker = {name: one for name, one in weaker.items() if name not in models}
    return {**weaker, **stronger}


def _of_file(kind: type[Command], file: str) -> Iterator[tuple[str, Value]]:
    """Yield the values that a settings file sets for a command.

    `data` and `warehouse` may also be at the top of the file, where they apply to all commands.
    """
    content = read(Path(file), f"settings file {file}")
    _check(content, file)
    table = _table(kind, content, file)
    where = "" if kind.at_top else f" [{_dotted(kind)}]"
    _refuse_unknown(table, [p.name for p in all_fields(kind)], f"{file}{where}: ")
    for p in parameters(kind):
        is_place = p.name == "data" or (p.name == "warehouse" and p.default == Command.warehouse)
        if is_place and isinstance(content.get(p.name), str):
            table.setdefault(p.name, content[p.name])
    yield from ((name, Value(value, file)) for name, value in table.items() if value != "")


def _dotted(kind: type[Command]) -> str:
    return name_of(kind).replace(" ", ".").replace("-", "_")


def _table(kind: type[Command], content: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return a command's table in a settings file, without the tables of its subcommands.

    A command with ``at_top`` reads the keys at the top of the file. Keys in `[pipeline]` override
    these keys. `[[model]]` tables become the option ``models``.
    """
    if kind.at_top:
        table = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
        table |= content.get("pipeline", {})
        if isinstance(table.get("model"), list) and dict in map(type, table["model"]):
            from plumbline.eval_workers.models.model_lists import AMONG_OTHERS

            table["models"] = f"{file}{AMONG_OTHERS}"
            del table["model"]
        return table
    table = dict(content)
    for word in _dotted(kind).split("."):
        table = table.get(word, {}) if isinstance(table, Mapping) else {}
    name = name_of(kind)
    if not isinstance(table, Mapping):
        raise UsageProblem(f"{file}: {name}", "isn't a table", f"write [{_dotted(kind)}]")
    return {k: v for k, v in table.items() if f"{name} {k}".replace("_", "-") not in targets()}


def _check(content: Mapping[str, Any], file: str) -> None:
    """Raise ``UsageProblem`` for unknown keys at the top of a file, or in tables like [corpus]."""
    groups = dict.fromkeys(name.split()[0] for name in targets())
    of_pipeline = [p.name for p in all_fields(class_of("pipeline"))]
    _refuse_unknown(content, [*groups, *of_pipeline], f"{file}: ")
    for group, table in content.items():
        inside = [n.split()[1].replace("-", "_") for n in targets() if n.startswith(f"{group} ")]
        if isinstance(table, Mapping) and group not in targets():
            _refuse_unknown(table, inside, f"{file} [{group}]: ")


def _refuse_unknown(names: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in names:
        if name not in known:
            fix = did_you_mean(name, known, f"known: {', '.join(known)}")
            raise UsageProblem(f"{where}key {name!r}", "is unknown", fix)


def _of_environment(
    kind: type[Command], environment: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    prefix = "" if kind.at_top else f"{_dotted(kind).replace('.', '_').upper()}_"
    for p in parameters(kind):
        variable = p.on.variable or f"PLUMBLINE_{prefix}{p.name.upper()}"
        if text := environment.get(variable):
            value = p.value(text.replace(",", " ").split() if p.is_list else text)
            with suppress(ValidationError):  # `made` raises the error for invalid values
                value = TypeAdapter(p.kind).validate_python(value)
            yield p.name, Value(value, variable)
