"""The values of a command's options, and where each came from.

The first of these that has a value wins: the command line, the file of `--config`, an environment
variable, the settings file, the class's default. An empty string in a file or variable counts as
missing. `plumbline doctor --settings COMMAND` shows each value with its source.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from plumbline.eval_workers.models.model_lists import AMONG_OTHERS
from plumbline.pipelines.command.base import Command, class_of
from plumbline.pipelines.command.parameters import all_fields, parameters
from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.text.escape import is_unicode
from plumbline.warehouse.text.toml_file import read

#: The settings file that is read by default, if it exists.
DEFAULT_FILE = "plumbline.toml"
Made = TypeVar("Made", bound=Command)


class Value(NamedTuple):
    """A value and its source, which is empty for a value from the command line."""

    value: Any
    source: str = ""


Values = Mapping[str, Value]


def made(
    kind: type[Made],
    given: Mapping[str, object],
    config: Path | None = None,
    weaker: Values | None = None,
) -> Made:
    """Make a command; ``given`` values override those of a TOML file, which override ``weaker``.

    Raises ``UsageProblem``, with the source, for a value that the command can't take, and the
    errors of reading the file.
    """
    known = {p.name: p for p in all_fields(kind)}
    configured = read(config, f"config {config}") if config else {}
    values = {**(weaker or {})}
    values |= {n: Value(v, f"config {config}") for n, v in configured.items() if v != ""}
    values |= {n: Value(v) for n, v in given.items()}
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


def here(
    kind: type[Command],
    conf: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Value]:
    """Return the values that the settings file and the environment give a command.

    ``conf`` is the path of the settings file. Raises ``BadInput`` for a file that is not TOML,
    ``UsageProblem`` for a missing file or an unknown name.
    """
    environment = os.environ if environment is None else environment
    usual = DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else ""
    file = str(conf or environment.get("PLUMBLINE_CONF") or usual)
    content = read(Path(file), f"settings file {file}") if file else {}
    _check(content, file)
    table = _table(kind, content, file)
    where = "" if kind.at_top else f" [{_dotted(kind)}]"
    _refuse_unknown(table, [p.name for p in all_fields(kind)], f"{file}{where}: ")
    values = dict(_places(kind, content, file, environment))
    values |= {name: Value(value, file) for name, value in table.items() if value != ""}
    return values | dict(_of_environment(kind, environment))


def _dotted(kind: type[Command]) -> str:
    return name_of(kind).replace(" ", ".").replace("-", "_")


def _table(kind: type[Command], content: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return a command's options in a settings file: its table, without its subcommands' tables.

    A command with ``at_top`` takes the keys at the top of the file that are not tables, then those
    of `[pipeline]`. `[[model]]` is its list of models.
    """
    if kind.at_top:
        table = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
        table |= content.get("pipeline", {})
        if isinstance(table.get("model"), list) and dict in map(type, table["model"]):
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
    """Raise ``UsageProblem`` for a key, at the top or in a group, that no command takes."""
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


def _places(
    kind: type[Command], content: Mapping[str, Any], file: str, environment: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    """Yield values that a settings file's top sets for all commands: `data`, `warehouse`, `out`.

    PLUMBLINE_OUT overrides `out`, which moves the paths that are in out/ by default, except those
    that depend on another option.
    """
    out = Value(content.get("out"), file)
    if given := environment.get("PLUMBLINE_OUT"):
        out = Value(given, "PLUMBLINE_OUT")
    dependent = kind.usual({"out": ""})
    for p in parameters(kind):
        inside = p.default.parts if isinstance(p.default, Path) else ()
        if out.value and inside[1:] and inside[0] == "out" and p.name not in dependent:
            yield p.name, Value(str(Path(str(out.value), *inside[1:])), out.source)
        is_place = p.name == "data" or (p.name == "warehouse" and p.default == Command.warehouse)
        if is_place and isinstance(content.get(p.name), str) and content[p.name]:
            yield p.name, Value(content[p.name], file)


def _of_environment(
    kind: type[Command], environment: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    prefix = "" if kind.at_top else f"{_dotted(kind).replace('.', '_').upper()}_"
    for p in parameters(kind):
        variable = p.on.variable or f"PLUMBLINE_{prefix}{p.name.upper()}"
        if text := environment.get(variable):
            value = p.value(text.replace(",", " ").split() if p.is_list else text)
            with suppress(ValidationError):  # `made` reports the text, with the variable's name
                value = TypeAdapter(p.kind).validate_python(value)
            yield p.name, Value(value, variable)


def shown(name: str, conf: str | None) -> Iterator[str]:
    """Yield every option of a command as TOML, with its meaning and source as comments.

    Options without a value are commented out, as are defaults that depend on other options.
    Raises ``UsageProblem`` for an unknown command.
    """
    kind = class_of(name)
    values = here(kind, conf)
    usual = kind.usual({name: one.value for name, one in values.items()})
    if not kind.at_top:
        yield f"[{_dotted(kind)}]"
    for p in parameters(kind):
        default = Value(usual.get(p.name, p.default), "default")
        one = values.get(p.name, default)
        yield f"# {p.about} [{one.source}]"
        value = p.value(one.value)
        is_set = value not in (None, ...)
        text = json.dumps(value, ensure_ascii=False, default=str) if is_set else ""
        is_fixed = is_set and (p.name in values or p.name not in usual)
        yield f"{'' if is_fixed else '# '}{p.name} = {text}".rstrip()
