"""Every command, from its class: wrong values and dry runs. No command is known by name."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import Parameter, class_of, has_plan, parameters
from plumbline.pipelines.command.main import main
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


def words_of(name: str) -> list[str]:
    """A command line that gives a command what it needs."""
    kind = class_of(name)
    own = OTHERWISE.get(name, {})
    words = name.split()
    for one in parameters(kind):
        if one.name in own or one.default is ...:
            value = own.get(one.name) or VALUES[one.name]
            value = value.replace("COMMAND", name.replace(" ", "-"))
            values = value.split() if one.is_list else [value]
            words += values if one.on.positional else [one.option, value]
    if any(one.name == "warehouse" for one in parameters(kind)):
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
