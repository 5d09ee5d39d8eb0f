"""Options of commands: those that many share, and commands whose options come from dataclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer

from plumbline.eval_workers.options import OF_SCORES, ModelOptions
from plumbline.warehouse import options
from plumbline.warehouse.options import Option
from plumbline.warehouse.storage.bucket import address

Warehouse = Annotated[
    Path,
    typer.Option(
        "--warehouse",
        envvar="PLUMBLINE_WAREHOUSE",
        help="Directory of the warehouse, or s3://BUCKET/DIR.",
        parser=lambda text: address(text) or Path(text),
        metavar="DIRECTORY",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(envvar="PLUMBLINE_DATA", help="Directory of released benchmarks and prompts."),
]
Models = Annotated[
    str | None,
    typer.Option(help="Instead of --model a list: a TOML file, or unstereoeval."),
]
WordListName = Annotated[
    str, typer.Option("--word-list", help="Pairs of gendered words: name, or path of a TOML file.")
]


class Without:
    """Names fields that are not options of a command: ``Annotated[Kind, Without("a", "b")]``."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields


#: How a model is loaded for anything but scores of whole sentences.
Loading = Annotated[ModelOptions, Without(*OF_SCORES)]


@dataclass(frozen=True)
class Given:
    """Marks a ``dict`` that receives the options of ``kind`` that were given, and no defaults.

    For commands that also take a file of options. ``only`` those fields, if any are named, and not
    those in ``without``.
    """

    kind: type
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the fields of a dataclass as options instead of the dataclass.

    Type, bounds, default and help of an option are those of the field. The command receives the
    dataclass, or where a parameter is marked ``Given`` a dict.

    >>> from plumbline.eval_workers.options import ModelOptions
    >>> def load(model: str, how: ModelOptions) -> None:
    ...     print(model, how.dtype)
    >>> expanded(load)(model="m", **{**vars(ModelOptions()), "dtype": "float16"})
    m float16
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    sources: dict[str, _Source] = {}
    for parameter in inspect.signature(command).parameters.values():
        source = _source(hints[parameter.name])
        if source is None:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
        else:
            sources[parameter.name] = source
            parameters += map(source.parameter, source.options)

    @wraps(command)
    def run(**values: Any) -> None:
        for name, source in sources.items():
            values[name] = source.value({o.name: values.pop(o.name) for o in source.options})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@dataclass(frozen=True)
class _Source:
    """A dataclass with ``options``; ``is_given``: of a dict instead of the class."""

    kind: type
    options: tuple[Option, ...]
    is_given: bool

    def parameter(self, option: Option) -> inspect.Parameter:
        """An option as a parameter of which Typer makes one."""
        kind, default = option.kind, option.default
        if kind == tuple[str, ...]:
            kind, default = str, ",".join(default)
        elif get_origin(kind) is tuple:
            kind = list[get_args(kind)[0]]  # type: ignore[misc]
        name = f"--{option.name.replace('_', '-')}"
        if kind is bool and (default is True or self.is_given):
            name = f"{name}/--no-{name[2:]}"
        shown: bool | str = default not in (None, "", False)
        if self.is_given:
            shown, kind, default = str(default) if shown else False, kind | None, None
        made = typer.Option(name, help=option.description, show_default=shown)
        return inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, made],
        )

    def value(self, given: dict[str, Any]) -> Any:
        """What the command receives for these values of the options."""
        for option in self.options:
            value = given[option.name]
            if get_origin(option.kind) is tuple and value is not None:
                parts = map(str.strip, value.split(",")) if isinstance(value, str) else value
                given[option.name] = tuple(part for part in parts if part != "")
        return given if self.is_given else options.make(self.kind, given)


def _source(hint: Any) -> _Source | None:
    """The dataclass that a parameter's type names, if it names one."""
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    for mark in marks:
        if isinstance(mark, Given):
            own = mark.kind.__annotations__  # before those that it inherits, and tables last
            listed = sorted(
                options.declared(mark.kind).values(),
                key=lambda option: (len(option.path), option.path[0] not in own),
            )
            chosen = [o for o in listed if not mark.only or o.name in mark.only]
            left = tuple(o for o in chosen if o.name not in mark.without)
            return _Source(mark.kind, left, is_given=True)
    if not is_dataclass(kind):
        return None
    without = {name for mark in marks if isinstance(mark, Without) for name in mark.fields}
    found = options.declared(cast(type, kind)).values()
    return _Source(cast(type, kind), tuple(o for o in found if o.name not in without), False)
