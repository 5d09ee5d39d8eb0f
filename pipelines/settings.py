"""Settings of the pipeline: defaults, then a TOML file, then ``PLUMBLINE_*``, then the command.

This is the only place that knows a setting's name and default; ``plumbline config`` prints them
with where each value came from.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from importlib import resources
from pathlib import Path
from typing import Annotated, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure.options import ProbeOptions
from plumbline.eval_workers.fairpair.options import CLOSED_WORLD, FairPairOptions
from plumbline.eval_workers.model_lists import AMONG_OTHERS
from plumbline.eval_workers.options import ModelOptions
from plumbline.jobs.options import CorpusOptions
from plumbline.pipelines.command import registry
from plumbline.warehouse import options
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT, Option
from plumbline.warehouse.storage.bucket import address
from plumbline.warehouse.text.toml_file import read

#: File read when no other is named, if it exists.
DEFAULT_FILE = "plumbline.toml"
#: Settings files that come with Plumbline, in ``spark_conf``, and are named without a path.
SHIPPED = ("cluster",)


@dataclass(frozen=True, config=STRICT)
class MeasureOptions:
    """What the metrics' ``$params`` are set to.

    ln 1.65 is UnStereoEval's epsilon. Besides the constraints ``eta`` there is every subset with a
    defined MaxPMI. Their Table 19 has AuFC by the logarithm of base 10, their Tables 8-11 print all
    standard deviations of US with the number of pairs of one benchmark.

    Raises ``UsageProblem`` for values that are not finite, negative, a base of 1 or less, or
    fewer than one pair.

    >>> round(MeasureOptions().epsilon, 4)
    0.5008
    """

    epsilon: Annotated[
        float,
        Field(description="Largest |log ratio| that doesn't count as a preference, in nats."),
    ] = math.log(1.65)
    eta: Annotated[
        tuple[float, ...],
        Field(description="Constraint on |MaxPMI| in nats; repeat for several."),
    ] = (0.5, 0.65, 0.8, 1.0)
    log_base: Annotated[
        tuple[float, ...],
        Field(description="Base of AuFC's log ratios; repeat for several."),
    ] = (math.e,)

    def __post_init__(self) -> None:
        for name, value in [("epsilon", self.epsilon), *(("eta", eta) for eta in self.eta)]:
            if not (math.isfinite(value) and value >= 0):
                raise UsageProblem(f"{name} {value}", "expected a number of nats, 0 or more")
        for base in self.log_base:
            if not (math.isfinite(base) and base > 1):
                raise UsageProblem(f"log base {base}", "expected a number above 1")

    def params(self) -> dict[str, object]:
        """The options as DuckDB parameters; repeated etas count once, in ascending order.

        >>> MeasureOptions(eta=(0.8, 0.5, 0.8)).params()["etas"]
        [0.5, 0.8]
        """
        return {
            "epsilon_nats": self.epsilon,
            "etas": sorted(set(self.eta)),
            "log_bases": sorted(set(self.log_base)),
        }


@dataclass(frozen=True, config=STRICT)
class Settings(ModelOptions, CorpusOptions):
    """What a pipeline runs on, how it counts and how its models are loaded. Paths are relative to
    the working directory. A table of the file has the options of the command of its name.

    >>> Settings(benchmarks="winobias, use-5").benchmark_names()
    ['winobias', 'use-5']
    """

    data: Annotated[
        str, Field(description="directory of the reference data (benchmarks as released)")
    ] = ""
    out: Annotated[str, Field(description="directory for everything that is written")] = "out"
    warehouse: Annotated[
        str, Field(description="warehouse directory or s3:// address; empty: `<out>/warehouse`")
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
    why: Annotated[
        str,
        Field(description="words to explain, by commas; empty: the two that lean most each way"),
    ] = ""
    benchmarks: Annotated[
        str, Field(description="benchmarks, separated by commas; empty: all of `data`, or our own")
    ] = ""
    model: Annotated[
        str, Field(description="hub ids, paths or train:small, separated by commas")
    ] = ""
    build: Annotated[
        str, Field(description="benchmark that a chat model is to write: its TOML file")
    ] = ""
    probe_set: Annotated[str, Field(description="prompts that FairPair continues")] = ""
    prompt_sets: Annotated[
        str, Field(description="prompts that disclosure is measured on, separated by commas")
    ] = ""
    models: Annotated[
        str,
        Field(description="instead of `model` a list: a TOML file, or unstereoeval"),
    ] = ""
    seed: Annotated[int, Field(description="seed of corpus writing, training and samples")] = 0
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

    fairpair: Annotated[FairPairOptions, Field(description="FairPair of the models")] = CLOSED_WORLD
    disclosure: Annotated[ProbeOptions, Field(description="disclosure of other models")] = (
        ProbeOptions()
    )
    measure: Annotated[MeasureOptions, Field(description="metrics")] = MeasureOptions()

    def warehouse_path(self) -> Path:
        """The warehouse directory."""
        given = address(self.warehouse) or Path(self.warehouse)
        return given if self.warehouse else Path(self.out) / "warehouse"

    def benchmark_names(self) -> list[str]:
        """The benchmarks in order, without blanks."""
        return _split(self.benchmarks)

    def prompt_set_names(self) -> list[str]:
        """The sets of prompts for disclosure in order, without blanks."""
        return _split(self.prompt_sets)

    def is_given(self) -> bool:
        """Whether there is anything to work on; without it the closed world is."""
        return any(getattr(self, name) for name in _WORK)

    def model_names(self) -> list[str]:
        """The models in order, without blanks."""
        return _split(self.model)


#: Settings that say what to work on.
_WORK = ("corpus", "benchmarks", "build", "model", "models")


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
    known = options.declared(Settings)
    origin = dict.fromkeys(known, "default")
    given = _given(file, overrides or {}, environment)
    if any(value for name, value, _ in given if name in _WORK):
        values["fairpair"] = FairPairOptions()  # its own defaults, not the closed world's
    for name, value, source in given:
        if name not in known:
            there = f"there are {', '.join(known)}"
            raise UsageProblem(source, f"no setting named {name!r}", there)
        values |= _with(values, known[name], value, source)
        origin[name] = source
    return options.make(Settings, values), origin


def of_every_command() -> dict[str, str]:
    """What the settings file says for the options that many commands have: data and warehouse.

    An option or its variable is stronger. Raises as ``load``.
    """
    named = {name: os.environ.get(name, "") for name in ("PLUMBLINE_CONF", "PLUMBLINE_OUT")}
    chosen, origin = load(None, None, named)
    found = {"data": chosen.data, "warehouse": str(chosen.warehouse_path())}
    if {origin["out"], origin["warehouse"]} == {"default"}:
        del found["warehouse"]
    return {name: value for name, value in found.items() if value}


def of_command(name: str, file: str | Path | None = None) -> dict[str, object]:
    """The table that the settings file has for a command, such as `[corpus.count]`.

    None where its group is a setting, as of `corpus = "texts.jsonl"`. Raises ``UsageProblem`` where
    there is something else of its own name.
    """
    file = file or os.environ.get("PLUMBLINE_CONF") or _default_file()
    found: object = _read_toml(file) if file else {}
    for word in name.split():
        found = found.get(word.replace("-", "_"), {}) if isinstance(found, dict) else {}
    if not isinstance(found, dict):
        raise UsageProblem(f"{file}: {name}", "is no table", f"write [{name.replace(' ', '.')}]")
    return found


def _given(
    file: str | Path | None, overrides: Mapping[str, object], environment: Mapping[str, str]
) -> list[tuple[str, object, str]]:
    """Every setting given anywhere as (name, value, source), weakest source first."""
    file = file or environment.get("PLUMBLINE_CONF") or _default_file()
    given: list[tuple[str, object, str]] = []
    commands = registry.targets()
    if file:
        for name, value in _read_toml(file).items():
            if name == "model" and isinstance(value, list) and dict in map(type, value):
                given.append(("models", f"{file}{AMONG_OTHERS}", str(file)))
                continue
            table = value.items() if isinstance(value, dict) and name not in commands else ()
            given += [
                (f"{name}_{key}", one, str(file))
                for key, one in table
                if f"{name} {key}".replace("_", "-") not in commands
            ]
            given += [] if isinstance(value, dict) else [(name, value, str(file))]
    for name in options.declared(Settings):
        variable = f"PLUMBLINE_{name.upper()}"
        if environment.get(variable):
            given.append((name, environment[variable], variable))
    given += [(n, v, "command line") for n, v in overrides.items() if v is not None]
    return given


def _default_file() -> str | None:
    return DEFAULT_FILE if Path(DEFAULT_FILE).is_file() else None


def _read_toml(path: str | Path) -> dict[str, object]:
    file, what = Path(path), f"settings file {path}"
    if file.is_file() or str(path) not in SHIPPED:
        return read(file, what, f"give a path, or one of those shipped: {', '.join(SHIPPED)}")
    return read(resources.files("plumbline.spark_conf") / f"{path}.toml", what)


def _with(
    values: Mapping[str, object], option: Option, value: object, source: str
) -> dict[str, object]:
    """A field of the settings with a value checked; text of the environment is read as its type."""
    is_tuple = get_origin(option.kind) is tuple
    if source.startswith("PLUMBLINE_"):
        kind: TypeAdapter[object] = TypeAdapter(option.kind)
        with suppress(ValidationError):  # `make` says what is wrong with it
            value = kind.validate_python(_split(str(value)) if is_tuple else value)
    if isinstance(value, list):
        joined = " " if option.name == "corpus" else ","
        value = tuple(value) if is_tuple else joined.join(map(str, value))
    first, *rest = option.path
    where = f"{source}: "
    if rest:
        table = values.get(first, getattr(Settings, first))
        value = options.changed(table, {rest[0]: value}, f"{where}[{first}] ")
    return {first: getattr(options.make(Settings, {first: value}, where), first)}


def as_toml(settings: Settings, origin: Mapping[str, str]) -> str:
    """The settings as a TOML file with meaning and origin as comments."""
    lines, table = [], ""
    for option in sorted(options.declared(Settings).values(), key=lambda o: len(o.path)):
        value: object = reduce(getattr, option.path, settings)
        *tables, name = option.path
        if tables and tables[0] != table:
            table = tables[0]
            lines.append(f"\n[{table}]")
        lines.append(f"# {option.description} [{origin[option.name]}]")
        lines.append(f"# {name} =" if value is None else f"{name} = {_shown(value)}")
    return "\n".join(lines)


def _shown(value: object) -> str:
    """A value as TOML has it.

    >>> _shown((0.5, 1.0)), _shown(True), _shown("a\\\\b")
    ('[0.5, 1.0]', 'true', '"a\\\\\\\\b"')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, int | float):
        return str(value).lower()
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
