"""Every command, from its class: wrong and hostile values, and dry runs."""

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from plumbline.pipelines.command import registry, settings
from plumbline.pipelines.command.base import Parameter, class_of, has_plan, parameters
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import corpus_row, fill, pair
from tests.prompt_rows import put_prompts
from tests.test_constrain import filled
from tests.tiny_models import save

#: An address at which nobody listens.
NOBODY = "http://127.0.0.1:9/v1"
COMMANDS = tuple(registry.targets())
#: A value by the name of the field that needs one, for any command.
VALUES: dict[str, str] = {
    **dict.fromkeys(("shards", "texts", "file", "files"), "texts.jsonl.zst"),
    **dict.fromkeys(("name", "benchmark"), "d"),
    **dict.fromkeys(("probe_set", "sets"), "prompts"),
    **{"corpus": "c", "model": "model", "directory": "data", "out": "new/COMMAND"},
}
#: What some commands need beside, or otherwise.
OTHERWISE: dict[str, dict[str, str]] = {
    "corpus count": {"corpus": "new"},
    "corpus concordance": {"queries": "tea"},
    "corpus words": {"accept": "tea"},
    "reproduce": {"paper": "anatomy", "data": "data"},
    "warehouse restore": {"version": "1"},
    "why": {"words": "tea"},
    "benchmark import": {"names": "closed-world"},
    "benchmark build": {"name": "mine", "words": "tea,cook", "model": "m"},
    "score": {"model": "model"},
    "score choose": {"model": "m", "base_url": NOBODY},
    "disclosure prompts": {"probe_set": "topics"},
    "disclosure probe": {"model": "model"},
    "disclosure sweep": {"by": "decoding"},
    "fairpair run": {"probe_set": "common-sents", "model": "model"},
    "sql": {"query": "FROM corpus"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a warehouse `w` that has something of what commands start from."""
    directory = tmp_path_factory.mktemp("commands")
    write_jsonl_zst(directory / "texts.jsonl.zst", ["she has tea and he has coffee"] * 40)
    (directory / "data").mkdir()
    save("gpt2", directory / "model")
    put_prompts(with_counts(directory / "w"), "prompts", ["The clerk said", "The nurse said"])
    return directory


def with_counts(root: Path) -> Store:
    """A warehouse with a corpus `c` that can be associated, and a benchmark `d` of one pair."""
    store = filled(Store.open(root))
    counts = [{"corpus": "c", "word": w, "n_word": 4} for w in ("tea", "she", "he")]
    store.publish("word_count", counts, unit="a", run_id="r")
    counted = {"corpus": "c", "rule": "pairs", "window_tokens": 10}
    pairs = [{**counted, "word": "tea", "target": w, "n_pair": 2} for w in ("she", "he")]
    store.publish("pair_count", pairs, unit="a", run_id="r")
    fill(store, "benchmark_pair", [pair("d", "1", sentence_a="She ran.", sentence_b="He ran.")])
    row = corpus_row(**counted, n_kept_tokens=12, n_pairs=9)
    store.publish("corpus", [row], unit="corpus", run_id="r")
    return store


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def needed(name: str) -> dict[str, str]:
    """What a command needs, by the names of its fields."""
    given = VALUES | OTHERWISE.get(name, {})
    own = OTHERWISE.get(name, {}).keys()
    fields = [p.name for p in parameters(class_of(name)) if p.name in own or p.default is ...]
    return {field: given[field].replace("COMMAND", name.replace(" ", "-")) for field in fields}


def words_of(name: str) -> list[str]:
    """A command line that gives a command what it needs."""
    words, given = name.split(), needed(name)
    for one in parameters(class_of(name)):
        if one.name in given:
            value = given[one.name]
            values = value.split() if one.is_list else [value]
            words += values if one.on.positional else [one.option, value]
        elif one.name == "warehouse":
            words += ["--warehouse", "w"]
    return words


def content(where: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    found = ((path, path.stat()) for path in sorted(where.rglob("*")))
    return {str(path): (about.st_size, about.st_mtime_ns) for path, about in found}


def wrong(one: Parameter) -> Iterator[str]:
    """Texts that are no values of a field: of another type, and a number out of its bounds."""
    kinds = [*get_args(one.kind), one.kind]
    if any(get_origin(kind) is Literal for kind in kinds):
        yield "no-such-thing"
    elif {int, float} & {*kinds} and str not in kinds:
        yield from ("two", "-1e400" if float in kinds else str(-(10**15)))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_value_is_one_line(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, before = words_of(name), content(here)
    for one in parameters(class_of(name)):
        for value in wrong(one) if not one.on.positional else ():
            assert main([*words, one.option, value]) == 2, (one.option, value)
            (line,) = capsys.readouterr().err.strip().splitlines()
            assert one.option in line or line.startswith(f"error: {one.name} "), line
    assert main([*words, "--no-such-option"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--no-such-option" in line
    assert content(here) == before


@pytest.mark.parametrize("name", [name for name in COMMANDS if has_plan(class_of(name))])
def test_a_dry_run_writes_nothing(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, before = words_of(name), content(here)
    status = main([*words, "--dry-run", "--format", "json"])
    out, err = capsys.readouterr()
    assert content(here) == before
    assert status == 0, err
    owns = [one.name for one in parameters(class_of(name))]
    assert out if "format" in owns else isinstance(json.loads(out), list)


NUMBERS = (10**20, -(10**20), int("9" * 400), math.inf, -math.inf, math.nan, 1e300, -1e300)
TEXTS = ("", " ", "\0", "\ud800", "\x1b[2J", "a" * 100_000, "9" * 5_000, "/proc", "-1", "nan,inf")
OTHER = (None, True, 1, 0.5, b"a", [], [[]], {}, ["a", None], {"a": 1}, object())
PLACES = ("/proc", "/proc/none", "/sys/none", "/dev/null", "/", "a" * 5_000)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file, a pipe, a directory, a link to nowhere, and paths where no file can be."""
    where = tmp_path_factory.mktemp("places")
    (where / "file").write_text('{"text": "She is a nurse."}\n')
    os.mkfifo(where / "pipe")
    (where / "directory").mkdir()
    (where / "link").symlink_to("nowhere")
    names = ("file", "pipe", "directory", "link", "none", "file/below")
    return [*(where / name for name in names), *map(Path, PLACES)]


def hostile(one: Parameter, places: list[Path]) -> Iterator[Any]:
    """Values for a parameter that nobody should give; for a list also as parts of it."""
    kinds = {*get_args(one.kind), *get_args(next(iter(get_args(one.kind)), None)), one.kind}
    values: list[Any] = [*NUMBERS, *TEXTS, *OTHER]
    if Path in kinds:
        values += [*places, *map(str, places), "s3://", "s3://bucket", "nothing://a"]
    yield from values
    if get_origin(one.kind) is tuple:
        yield from ((value,) for value in values)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_value_is_a_defect(
    name: str, made: Path, places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    kind = class_of(name)
    given = {k: int(v) if v.isdigit() else v for k, v in needed(name).items()}
    settings.made(kind, given)  # else a refusal below may be that of what is taken for valid
    for one in parameters(kind):
        n_refused = 0
        for value in hostile(one, places):
            try:
                settings.made(kind, given | {one.name: value})
            except PlumblineError:
                n_refused += 1
            except Exception as e:
                pytest.fail(f"{one.name} = {value!r:.80}: {type(e).__name__}: {e!s:.300}")
        assert n_refused, f"{one.name}: an object is no value of any"
