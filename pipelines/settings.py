"""Settings of the pipeline: defaults, then a TOML file, then ``PLUMBLINE_*``, then the command.

This is the only place that knows a setting's name and default; ``plumbline config`` prints them
with where each value came from.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path

from plumbline.warehouse.errors import BadInput, UsageProblem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: File read when no other is named, if it exists.
DEFAULT_FILE = "plumbline.toml"
#: Settings files that come with Plumbline, in ``spark_conf``, and are named without a path.
SHIPPED = ("cluster",)


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _setting(default: object, meaning: str) -> object:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """What a pipeline runs on. All paths are relative to the working directory.

    >>> Settings(benchmarks="winobias, use-5").benchmark_names()
    ['winobias', 'use-5']
    """

    data: str = _setting("", "directory of the reference data (benchmarks as released)")  # type: ignore[assignment]
    out: str = _setting("out", "directory for everything that is written")  # type: ignore[assignment]
    warehouse: str = _setting("", "warehouse directory; empty: `<out>/warehouse`")  # type: ignore[assignment]
    corpus: str = _setting("", "shards to count: paths or globs, separated by spaces")  # type: ignore[assignment]
    corpus_name: str = _setting("", "name of the corpus; empty: the shards' directory")  # type: ignore[assignment]
    targets: str = _setting("gendered", "target word list")  # type: ignore[assignment]
    rule: str = _setting("pairs", "counting rule: pairs or windows")  # type: ignore[assignment]
    window: int = _setting(10, "width of the window in kept tokens")  # type: ignore[assignment]
    min_count: int = _setting(1, "words counted fewer times are left out of a corpus's tables")  # type: ignore[assignment]
    memory: str = _setting("2g", "memory of a counting process, such as 512m or 4g")  # type: ignore[assignment]
    contrast: str = _setting("she/he", "contrast that constrains the benchmarks")  # type: ignore[assignment]
    benchmarks: str = _setting("", "benchmarks, separated by commas")  # type: ignore[assignment]
    model: str = _setting("", "hub ids, paths or train:small, separated by commas")  # type: ignore[assignment]
    seed: int = _setting(0, "seed of corpus writing and training")  # type: ignore[assignment]
    demo_tokens: int = _setting(3_000_000, "size of each closed-world corpus in tokens")  # type: ignore[assignment]
    twin: bool = _setting(False, "closed world: also train on the text with she and he exchanged")  # type: ignore[assignment]
    train_tokens: int = _setting(0, "limit on the tokens a model is trained on; 0: the preset's")  # type: ignore[assignment]
    master: str = _setting("", "Spark master; empty: what `spark_conf` says, or this machine")  # type: ignore[assignment]
    spark_conf: str = _setting("", "Spark settings: local, cluster or a .conf; empty: by master")  # type: ignore[assignment]
    spark_submit: str = _setting("", "spark-submit that counts; empty: this process does")  # type: ignore[assignment]
    spark_options: str = _setting("", "further options for spark-submit, as on its line")  # type: ignore[assignment]
    dist: str = _setting("", "what `make dist` wrote, for spark-submit; empty: written anew")  # type: ignore[assignment]
    prefect: bool = _setting(False, "run as a flow on the Prefect server of PREFECT_API_URL")  # type: ignore[assignment]
    score_workers: int = _setting(1, "scoring processes here; 0: wait for those of others")  # type: ignore[assignment]

    def warehouse_path(self) -> Path:
        """The warehouse directory."""
        return Path(self.warehouse) if self.warehouse else Path(self.out) / "warehouse"

    def benchmark_names(self) -> list[str]:
        """The benchmarks in order, without blanks."""
        return _split(self.benchmarks)

    def models(self) -> list[str]:
        """The models in order, without blanks."""
        return _split(self.model)


def memory_size(text: str) -> int:
    """Bytes of a size such as 512m or 4g (powers of 1,024).

    >>> memory_size("512m"), memory_size("4G")
    (536870912, 4294967296)
    """
    units = {"m": 20, "g": 30}
    number, unit = text[:-1], text[-1:].lower()
    if unit not in units or not number.isdecimal():
        raise UsageProblem(f"memory {text!r}", "is not a valid size", "give one such as 512m or 4g")
    return int(number) << units[unit]


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
    return replace(Settings(), **values), origin  # type: ignore[arg-type]


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
    try:
        return tomllib.loads(_text(path))
    except OSError as e:
        fix = f"give a path, or one of those shipped: {', '.join(SHIPPED)}"
        raise BadInput(f"settings file {path}", e.strerror or "cannot be read", fix) from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise BadInput(f"settings file {path}", f"not TOML: {e}") from e


def _text(path: str | Path) -> str:
    if str(path) in SHIPPED and not Path(path).is_file():
        return (
            resources.files("plumbline.spark_conf")
            .joinpath(f"{path}.toml")
            .read_text(encoding="utf-8")
        )
    return Path(path).read_text(encoding="utf-8")


def _typed(name: str, value: object, source: str) -> object:
    default = getattr(Settings(), name)
    if isinstance(default, bool):
        if str(value).lower() not in _TRUTH:
            raise UsageProblem(source, f"{name} should be true or false, not {value!r}")
        return _TRUTH[str(value).lower()]
    if isinstance(default, int):
        try:
            return int(str(value))
        except ValueError:
            raise UsageProblem(source, f"{name} should be a whole number, not {value!r}") from None
    if isinstance(value, list):
        return (" " if name == "corpus" else ",").join(map(str, value))
    if not isinstance(value, str):
        raise UsageProblem(source, f"{name} should be text, not {value!r}")
    return value


def as_toml(settings: Settings, origin: Mapping[str, str]) -> str:
    """The settings as a TOML file with meaning and origin as comments."""
    lines = []
    for f in fields(Settings):
        value = asdict(settings)[f.name]
        shown = str(value).lower() if isinstance(value, int) else '"' + _escape(str(value)) + '"'
        lines.append(f"# {f.metadata['meaning']} [{origin[f.name]}]\n{f.name} = {shown}")
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
