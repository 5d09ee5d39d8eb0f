"""Settings of the pipeline: defaults, then a TOML file, then ``PLUMBLINE_*``, then the command.

This is the only place that knows a setting's name and default; ``plumbline config`` prints them
with where each value came from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import Annotated, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.options import ModelOptions
from plumbline.jobs.options import CorpusOptions
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.text.toml_file import read

#: File read when no other is named, if it exists.
DEFAULT_FILE = "plumbline.toml"
#: Settings files that come with Plumbline, in ``spark_conf``, and are named without a path.
SHIPPED = ("cluster",)


@dataclass(frozen=True, config=STRICT)
class Settings(ModelOptions, CorpusOptions):
    """What a pipeline runs on, how it counts and how its models are loaded. Paths are relative to
    the working directory.

    >>> Settings(benchmarks="winobias, use-5").benchmark_names()
    ['winobias', 'use-5']
    """

    data: Annotated[
        str, Field(description="directory of the reference data (benchmarks as released)")
    ] = ""
    out: Annotated[str, Field(description="directory for everything that is written")] = "out"
    warehouse: Annotated[
        str, Field(description="warehouse directory; empty: `<out>/warehouse`")
    ] = ""
    corpus: Annotated[
        str, Field(description="shards to count: paths or globs, separated by spaces")
    ] = ""
    corpus_name: Annotated[
        str, Field(description="name of the corpus; empty: the shards' directory")
    ] = ""
    contrast: Annotated[str, Field(description="contrast that constrains the benchmarks")] = (
        "she/he"
    )
    benchmarks: Annotated[str, Field(description="benchmarks, separated by commas")] = ""
    model: Annotated[
        str, Field(description="hub ids, paths or train:small, separated by commas")
    ] = ""
    models: Annotated[
        str, Field(description="instead of `model` a list: a TOML file, or unstereoeval")
    ] = ""
    seed: Annotated[int, Field(description="seed of corpus writing and training")] = 0
    demo_tokens: Annotated[int, Field(description="size of each closed-world corpus in tokens")] = (
        3_000_000
    )
    twin: Annotated[
        bool, Field(description="closed world: also train on the text with she and he exchanged")
    ] = False
    train_tokens: Annotated[
        int, Field(description="limit on the tokens a model is trained on; 0: the preset's")
    ] = 0
    master: Annotated[
        str, Field(description="Spark master; empty: what `spark_conf` says, or this machine")
    ] = ""
    spark_conf: Annotated[
        str, Field(description="Spark settings: local, cluster or a .conf; empty: by master")
    ] = ""
    spark_submit: Annotated[
        str, Field(description="spark-submit that counts; empty: this process does")
    ] = ""
    spark_options: Annotated[
        str, Field(description="further options for spark-submit, as on its line")
    ] = ""
    dist: Annotated[
        str, Field(description="what `make dist` wrote, for spark-submit; empty: written anew")
    ] = ""
    prefect: Annotated[
        bool, Field(description="run as a flow on the Prefect server of PREFECT_API_URL")
    ] = False
    score_workers: Annotated[
        int, Field(description="scoring processes here; 0: wait for those of others")
    ] = 1

    def warehouse_path(self) -> Path:
        """The warehouse directory."""
        return Path(self.warehouse) if self.warehouse else Path(self.out) / "warehouse"

    def benchmark_names(self) -> list[str]:
        """The benchmarks in order, without blanks."""
        return _split(self.benchmarks)

    def model_names(self) -> list[str]:
        """The models in order, without blanks."""
        return _split(self.model)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def load(
    file: str | Path | None = None,
    overrides: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Settings, and for each one where its value came from.

    ``file`` is a path, or ``cluster`` for the file of that name that comes with Plumbline.
    ``overrides`` are the command's own options; ``None`` values count as not given. Raises
    ``BadInput`` for a file that is not TOML, ``UsageProblem`` for an unknown name or a value of
    another type.

    >>> settings, origin = load(None, {"window": 5}, {"PLUMBLINE_SEED": "7"})
    >>> settings.window, settings.seed, origin["seed"], origin["rule"]
    (5, 7, 'PLUMBLINE_SEED', 'default')
    >>> load("cluster", None, {})[0].spark_conf
    'cluster'
    """
    environment = os.environ if environment is None else environment
    values: dict[str, object] = {}
    origin = {f.name: "default" for f in fields(Settings)}
    for name, value, source in _given(file, overrides or {}, environment):
        if name not in origin:
            known = ", ".join(origin)
            raise UsageProblem(source, f"no setting named {name!r}", f"there are {known}")
        values[name] = _typed(name, value, source)
        origin[name] = source
    return options.make(Settings, values), origin


def _given(
    file: str | Path | None, overrides: Mapping[str, object], environment: Mapping[str, str]
) -> list[tuple[str, object, str]]:
    """Every setting given anywhere as (name, value, source), weakest source first."""
    file = file or environment.get("PLUMBLINE_CONF") or _default_file()
    given: list[tuple[str, object, str]] = []
    if file:
        given += [(name, value, str(file)) for name, value in _read_toml(file).items()]
    for f in fields(Settings):
        variable = f"PLUMBLINE_{f.name.upper()}"
        if environment.get(variable):
            given.append((f.name, environment[variable], variable))
    given += [(n, v, "command line") for n, v in overrides.items() if v is not None]
    return given


def _default_file() -> str | None:
    return DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else None


def _read_toml(path: str | Path) -> dict[str, object]:
    file, what = Path(path), f"settings file {path}"
    if file.is_file() or str(path) not in SHIPPED:
        return read(file, what, f"give a path, or one of those shipped: {', '.join(SHIPPED)}")
    return read(resources.files("plumbline.spark_conf") / f"{path}.toml", what)


def _typed(name: str, value: object, source: str) -> object:
    """A value as its setting's type; text of the environment is read as one."""
    if isinstance(value, list):
        value = (" " if name == "corpus" else ",").join(map(str, value))
    if source.startswith("PLUMBLINE_"):
        kind: TypeAdapter[object] = TypeAdapter(get_type_hints(Settings)[name])
        with suppress(ValidationError):  # `make` says what is wrong with it
            value = kind.validate_strings(value)
    return getattr(options.make(Settings, {name: value}, f"{source}: "), name)


def as_toml(settings: Settings, origin: Mapping[str, str]) -> str:
    """The settings as a TOML file with meaning and origin as comments."""
    lines = []
    for f in fields(Settings):
        value = asdict(settings)[f.name]
        shown = str(value).lower() if isinstance(value, int) else '"' + _escape(str(value)) + '"'
        line = f"# {f.name} =" if value is None else f"{f.name} = {shown}"
        lines.append(f"# {options.description(Settings, f.name)} [{origin[f.name]}]\n{line}")
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
