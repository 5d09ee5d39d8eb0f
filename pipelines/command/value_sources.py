"""The sources of a command's values, strongest first.

The command line, the file of `--config`, an environment variable, the settings file, the class's
default. An empty text in a file or variable is a value only where a text has to be. For a path, a
number or an optional text it counts as missing, and the next source decides. A typed path can't be
empty. `plumbline doctor --settings COMMAND` shows each value with its source.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from plumbline.pipelines.command.base import Command, Parameter, all_fields, class_of, parameters
from plumbline.pipelines.command.registry import name_of, targets
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.text.toml_file import read

#: Settings file that is read by default if it exists.
DEFAULT_FILE = "plumbline.toml"
#: Settings files that come with Plumbline, in ``spark_conf``, and are named without a path.
SHIPPED = ("cluster",)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
Made = TypeVar("Made", bound=Command)


@dataclass(frozen=True)
class Value:
    """A value and its source; the source of a typed value is empty."""

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

    Raises ``UsageProblem`` for a value that the command doesn't take, and the errors of
    ``of_config``; both name the source.
    """
    known = {p.name: p for p in all_fields(kind)}
    typed = {name: Value(value) for name, value in given.items()}
    configured = _set(of_config(config), known) if config else {}
    values = {**(weaker or {}), **configured, **typed}
    converted = {}
    for name, sourced in values.items():
        with _naming(sourced.source):
            if name not in known:
                _refuse_unknown([name], [p.name for p in parameters(kind)], "")
            if known[name].is_path and sourced.value == "":
                raise UsageProblem(name, "is empty", "give a value, or leave it out")
            converted[name] = known[name].value(sourced.value)
            text = str(converted[name])
            if not text.isprintable() and _LONE_SURROGATE.search(text):
                raise UsageProblem(f"{name} {text!r}", "is not Unicode")
    fields = dict(kind.usual(converted))
    for name, value in converted.items():
        table, inner = known[name].path[0], known[name].path[1:]
        if inner:
            with _naming(values[name].source):
                whole = fields.get(table, getattr(kind, table))
                value = options.changed(whole, {inner[0]: value}, f"[{table}] ")
        fields[table] = value
    try:
        return options.make(kind, fields)
    except UsageProblem as e:
        name = re.split(r"\W+", e.args[0].lstrip("-").replace("-", "_"), maxsplit=1)[0]
        with _naming(values[name].source if name in values else ""):
            raise


def here(
    kind: type[Command],
    conf: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Value]:
    """Values of a command from the settings file and the environment.

    ``conf`` is a path, or ``cluster`` for a file that comes with Plumbline. Raises ``BadInput`` for
    a file that is not TOML, ``UsageProblem`` for a missing file, an unknown name or a variable with
    an open quote.
    """
    environment = os.environ if environment is None else environment
    file = conf or environment.get("PLUMBLINE_CONF")
    if not file and Path(DEFAULT_FILE).is_file():
        file = DEFAULT_FILE
    content = _read(file) if file else {}
    known = {p.name: p for p in parameters(kind)}
    # A command with its options at the top takes them from there; its `usual` has the places.
    places = {} if kind.at_top else dict(_places(content, str(file), environment, known))
    # A place that follows from `out` also follows from a typed one.
    following = kind.usual({"out": places["out"].value}) if "out" in places else ()
    values = {name: value for name, value in places.items() if name not in following}
    if content:
        _check_top(content, str(file))
        settings = kind.of_settings(content, str(file))
        table = "" if kind.at_top else f" [{_table(kind)}]"
        _refuse_unknown(settings, known, f"{file}{table}: ")
        values |= _set({n: Value(value, str(file)) for n, value in settings.items()}, known)
    return values | dict(_of_environment(kind, known.values(), environment))


def _set(values: Values, known: Mapping[str, Parameter]) -> dict[str, Value]:
    """The values of a file without empty ones for options that need no text."""
    return {
        name: value
        for name, value in values.items()
        if value.value != "" or name not in known or known[name].needs_text
    }


def _table(kind: type[Command]) -> str:
    return name_of(kind).replace(" ", ".").replace("-", "_")


def _check_top(content: Mapping[str, object], file: str) -> None:
    """Raise ``UsageProblem`` for a key that no command takes, such as a misspelt one."""
    top = class_of("pipeline")
    groups = {name.split()[0].replace("-", "_") for name in targets()}
    known = dict.fromkeys([*sorted(groups), *(p.name for p in parameters(top))])
    _refuse_unknown(top.of_settings(content, file), known, f"{file}: ")
    option_tables = {p.path[0] for p in parameters(top) if p.path[1:]}
    for group in {name.split()[0] for name in targets()} - {*targets(), *option_tables}:
        inside = [n.split()[1].replace("-", "_") for n in targets() if n.startswith(f"{group} ")]
        table = content.get(group.replace("-", "_"))
        _refuse_unknown(table if isinstance(table, dict) else (), inside, f"{file} [{group}]: ")


def _refuse_unknown(names: Iterable[str], known: Iterable[str], where: str) -> None:
    for name in names:
        if name not in known:
            fix = did_you_mean(name, known, f"known: {', '.join(known)}")
            raise UsageProblem(f"{where}key {name!r}", "is unknown", fix)


def _places(
    content: Mapping[str, object],
    file: str,
    environment: Mapping[str, str],
    known: Mapping[str, Parameter],
) -> Iterator[tuple[str, Value]]:
    """Values for all commands at the top of a settings file: `data`, `warehouse`, paths in `out`.

    PLUMBLINE_OUT overrides `out`. ``known`` has the command's parameters by name.
    """
    out, source = content.get("out"), file
    if environment.get("PLUMBLINE_OUT"):
        out, source = environment["PLUMBLINE_OUT"], "PLUMBLINE_OUT"
    for name, p in known.items():
        if out and isinstance(p.default, Path) and p.default.parts[:-1][:1] == ("out",):
            yield name, Value(str(Path(str(out), *p.default.parts[1:])), source)
    is_usual = "warehouse" in known and known["warehouse"].default == Command.warehouse
    place = content.get("warehouse")
    if is_usual and place and not isinstance(place, dict):  # [warehouse.compact] is a command's
        yield "warehouse", Value(place, file)
    if "data" in known and content.get("data"):
        yield "data", Value(content["data"], file)


def _of_environment(
    kind: type[Command], known: Any, environment: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    prefixes = [f"PLUMBLINE_{_table(kind).replace('.', '_').upper()}_"]
    prefixes += ["PLUMBLINE_"] if kind.at_top else []
    for parameter in known:
        own_variable, name = parameter.on.variable, parameter.name.upper()
        for variable in [own_variable] if own_variable else [p + name for p in prefixes]:
            if text := environment.get(variable):
                yield parameter.name, Value(_parsed(parameter, text, variable), variable)
                break


def _parsed(parameter: Parameter, text: str, variable: str) -> Any:
    """A variable's text as the field's type, or unconverted for ``made`` to report.

    Raises ``UsageProblem`` for an open quote.
    """
    is_text = parameter.is_list and str in get_args(parameter.kind)
    try:
        parts = shlex.split(text) if is_text else text.replace(",", " ").split()
    except ValueError as e:
        fix = "close the quote, or put a backslash before it"
        raise UsageProblem(variable, f"isn't a list of words: {str(e).lower()}", fix) from e
    value = parameter.value(parts if parameter.is_list else text)
    adapter: TypeAdapter[object] = TypeAdapter(parameter.kind)
    with suppress(ValidationError):
        return adapter.validate_python(value)
    return value


def of_config(config: Path) -> dict[str, Value]:
    """Values in the file of `--config`. Raises ``read``'s errors; ``UsageProblem`` for a table."""
    source = f"config {config}"
    content = read(config, source)
    for name, value in content.items():
        if isinstance(value, dict):
            fix = "write the options at the top, not in a table"
            raise UsageProblem(f"{source}: {name}", "is a table", fix)
    return {name: Value(value, source) for name, value in content.items()}


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Put a source before the text of a ``UsageProblem`` that the block raises."""
    try:
        yield
    except UsageProblem as e:
        if not source:
            raise
        what, problem, fix = e.args
        raise UsageProblem(f"{source}: {what}", problem, fix) from None


def _read(path: str | Path) -> dict[str, object]:
    file, what = Path(path), f"settings file {path}"
    if file.is_file() or str(path) not in SHIPPED:
        return read(file, what, f"give a path, or one of those shipped: {', '.join(SHIPPED)}")
    return read(resources.files("plumbline.spark_conf") / f"{path}.toml", what)
