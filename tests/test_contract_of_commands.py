"""Every command, from its class: help, wrong values, dry runs and warehouses that can't be written.

Nothing here knows a command by name, unless it is one that says no for a reason given here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import class_of, has_plan
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.parameters import Parameter, parameters
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair
from tests.prompt_rows import put_prompts
from tests.test_constrain import filled
from tests.tiny_models import save

#: An address at which nobody listens.
NOBODY = "http://127.0.0.1:9/v1"
COMMANDS = tuple(registry.targets())
#: A value by the name of the field that needs one, for any command.
VALUES: dict[str, str] = {
    **dict.fromkeys(("shards", "texts", "text", "file", "files"), "texts.jsonl.zst"),
    **dict.fromkeys(("corpus", "a", "b", "before", "after"), "c"),
    **dict.fromkeys(("name", "names", "benchmark"), "d"),
    **dict.fromkeys(("model", "base", "tuned"), "model"),
    **dict.fromkeys(("probe_set", "sets"), "prompts"),
    **dict.fromkeys(("data", "evals", "directory"), "data"),
    **dict.fromkeys(("run_id", "first", "second"), "RUN"),
    **{
        "out": "new/COMMAND",
        "repo": "me/d",
        "recipe": "crows-pairs",
        "uri": "elsewhere",
        "version": "1",
        "path": "FILE",
    },
}
#: What some commands need beside, or otherwise.
OTHERWISE: dict[str, dict[str, str]] = {
    "corpus count": {"corpus": "new"},
    "corpus concordance": {"queries": "tea"},
    "corpus words": {"corpus": "c", "accept": "tea"},
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


def place_of(directory: Path) -> Path:
    """A working directory with a warehouse `w` that has something of what commands start from."""
    write_jsonl_zst(directory / "texts.jsonl.zst", ["she has tea and he has coffee"] * 40)
    (directory / "data").mkdir()
    save("gpt2", directory / "model")
    store = filled(Store.open(directory / "w"))
    counts = [{"corpus": "c", "word": w, "n_word": 4} for w in ("tea", "she", "he")]
    store.publish("word_count", counts, unit="a", run_id="r")
    counted = {"corpus": "c", "rule": "pairs", "window_tokens": 10, "word": "tea"}
    pairs = [{**counted, "target": w, "n_pair": 2} for w in ("she", "he")]
    store.publish("pair_count", pairs, unit="a", run_id="r")
    fill(store, "benchmark_pair", [pair("d", "1", sentence_a="She ran.", sentence_b="He ran.")])
    put_prompts(store, "prompts", ["The clerk said", "The nurse said"])
    (row,) = store.read("corpus").to_pylist()
    row |= {"n_kept_tokens": 12, "n_pairs": 9, "rule": "pairs", "window_tokens": 10}
    store.publish("corpus", [row], unit="corpus", run_id="r")
    with recorded(store, "corpus list", {}):
        pass
    return directory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place_of(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def words_of(name: str, where: Path) -> list[str]:
    """A command line that gives a command what it needs."""
    kind = class_of(name)
    own = OTHERWISE.get(name, {})
    words = name.split()
    store = Store.open(where / "w", create=False)
    (run,) = store.read("run")["run_id"].to_pylist()
    (file,) = store.snapshot().files("word_count")
    marks = {"RUN": run, "FILE": f"w/{file.path}", "COMMAND": name.replace(" ", "-")}
    for one in parameters(kind):
        if one.name in own or one.default is ...:
            value = own.get(one.name) or VALUES[one.name]
            for mark, text in marks.items():
                value = value.replace(mark, text)
            values = value.split() if one.is_list else [value]
            words += values if one.on.positional else [one.option, value]
    if any(one.name == "warehouse" for one in parameters(kind)):
        words += ["--warehouse", "w"]
    return words


def content(where: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    found = ((path, path.stat()) for path in sorted(where.rglob("*")))
    return {str(path): (about.st_size, about.st_mtime_ns) for path, about in found}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_every_option_and_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    kind = class_of(name)
    assert main([*name.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"Example: plumbline {name}" in shown
    for one in parameters(kind):
        assert one.about and (one.on.positional or f"{one.option} " in shown), one.name
    own = [one.option for one in parameters(kind)]
    assert ("--dry-run" in shown) == (has_plan(kind) or "--dry-run" in own)


def wrong(one: Parameter) -> str | None:
    """A text that is no value of a field's type; ``None`` where any is."""
    kinds = [*get_args(one.kind), one.kind]
    inner = [kind for kind in kinds if get_origin(kind) is Literal]
    if inner:
        return "no-such-thing"
    return "two" if {int, float} & {*kinds} and str not in kinds else None


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_value_is_one_line(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, before = words_of(name, here), content(here)
    for one in parameters(class_of(name)):
        if (value := wrong(one)) is not None and not one.on.positional:
            assert main([*words, one.option, value]) == 2, one.option
            (line,) = capsys.readouterr().err.strip().splitlines()
            assert one.option in line or f"{one.name} = " in line, line
    assert main([*words, "--no-such-option"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--no-such-option" in line
    assert content(here) == before


@pytest.mark.parametrize("name", [name for name in COMMANDS if has_plan(class_of(name))])
def test_a_dry_run_writes_nothing(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, before = words_of(name, here), content(here)
    status = main([*words, "--dry-run", "--format", "json"])
    out, err = capsys.readouterr()
    assert content(here) == before
    assert status == 0, err
    owns = [one.name for one in parameters(class_of(name))]
    assert out if "format" in owns else isinstance(json.loads(out), list)
