"""Files, columns and settings that aren't what they should be: one line, no hang, no traceback."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.eval_workers.chat.client import checked_url
from plumbline.eval_workers.models.local import loading
from plumbline.eval_workers.models.local.source import Source, find_source
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.work.chunk_plan import Chunk, ChunkPlan
from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.partials import _read
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.write import _write, write_report
from plumbline.pipelines.sql import shell
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.regular_files import content, json_object
from plumbline.warehouse.storage.compaction import plan
from plumbline.warehouse.storage.locks import temporary_directory
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import toml_file
from tests.conftest import REPOSITORY
from tests.metric_rows import association, delta, fill, pair, score, scored_by
from tests.test_safety_text import is_harmless

WORDS = [f"word{k}" for k in range(20)]


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """Whatever waits for a pipe is interrupted."""
    signal.alarm(60)
    yield
    signal.alarm(0)


def filled(store: Store) -> Store:
    """A warehouse with the tables that commands read."""
    counts = ("n_shards", "n_shards_failed", "n_documents", "n_rejected", "n_tokens", "n_pairs")
    row: dict[str, object] = dict.fromkeys((*counts, "n_kept_tokens", "n_tokens_pruned"), 0)
    row |= {"corpus": "c", "source": "counted", "targets": "she-he", "run_id": "r"}
    row |= {"n_words": 20, "n_words_kept": 20, "min_count": 1, "rule": "pairs", "window": 10}
    with recorded(store, "fill", {}):
        fill(store, "corpus", [row])
        fill(store, "word_count", [{"corpus": "c", "word": w, "n_word": 9} for w in WORDS])
        fill(store, "word_delta", [delta(w, k - 9.5) for k, w in enumerate(WORDS)])
        fill(store, "benchmark_pair", [pair("b", w, word=w) for w in WORDS])
        fill(store, "pair_association", [association("b", w, 0.5) for w in WORDS])
        fill(store, "pair_score", [score("b", w, 0.5, "m", "k") for w in WORDS])
        fill(store, "model", [scored_by("m", key="k")])
    return store


def spoilt(path: Path, damage: str) -> None:
    """Make a file what nobody expects there."""
    whole = path.read_bytes()
    path.unlink()
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "directory":
        path.mkdir()
    elif damage == "circle":
        path.symlink_to(path)
    elif damage == "cut":
        path.write_bytes(whole[:-40])
    elif damage == "flipped":
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    elif damage != "gone":
        path.write_bytes(damage.encode("latin-1"))


DAMAGES = [
    ["cut", "gone", "circle"],
    pytest.param(["flipped", "", "pipe", "directory"], marks=pytest.mark.slow),
]
READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "measure": ("pair_score", ("measure",)),
    "report": ("word_delta", ("report", "--out", "out")),
    "benchmark list": ("benchmark_pair", ("benchmark", "list")),
    "constrain": ("word_delta", ("benchmark", "constrain", "--benchmark", "b", "--corpus", "c")),
    "runs list": ("run", ("runs", "list")),
    "corpus list": ("corpus", ("corpus", "list")),
    "corpus verify": ("word_count", ("corpus", "verify", "--corpus", "c")),
    "warehouse compact": ("run", ("warehouse", "compact")),
    "warehouse check": ("pair_score", ("warehouse", "check")),
    "warehouse export": ("word_count", ("warehouse", "export", "--out", "out")),
    "sql": ("pair_score", ("sql", "FROM pair_score")),
}


@pytest.mark.parametrize("damages", DAMAGES)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_names_a_damaged_file_and_the_way_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damages: list[str],
) -> None:
    table, command = READERS[name]
    monkeypatch.chdir(tmp_path)
    whole = filled(Store.open(tmp_path / "whole")).root
    for k, damage in enumerate(damages):
        root = tmp_path / f"w{k}"
        shutil.copytree(whole, root)
        (file, *_) = Store.open(root).snapshot().files(table)
        spoilt(root / file.path, damage)
        capsys.readouterr()
        assert main([*command, "--warehouse", str(root)]) == 3, damage
        out, err = capsys.readouterr()
        told = out if name == "warehouse check" else err
        assert str(root / file.path) in told, damage
        # Only bytes that were read, and differ, may be forgotten.
        assert "get it from a copy" in told or name == "warehouse check", damage
        assert ("warehouse forget" in told) == (damage in ("cut", "flipped", "")), damage
        assert name == "warehouse check" or len(err.strip().splitlines()) == 1, err


#: What a small JSON file may hold instead of what we wrote.
CONTENTS = ["null", "[]", "{}", "[" * 100_000, "\xff\xfe", "7" * 5000, '{"files": [3]}']
ODD = ["pipe", "directory", "circle", *CONTENTS]


@pytest.mark.parametrize("damage", ODD)
def test_a_ledger_that_is_none_is_named(store: Store, damage: str) -> None:
    directory = store.work_directory("count", "x")
    path = directory / "mark.json"
    path.write_text("{}")
    spoilt(path, damage)
    with pytest.raises(BadInput, match="its shard is counted again then"):
        _read(path)
    with pytest.raises(BadInput, match="its shard is counted again then"):
        if damage == '{"files": [3]}':  # of a shard, as far as compaction needs to know
            _read(path)
        plan(store)


@pytest.mark.parametrize("damage", ["pipe", "circle", "", "x" * 99])
def test_a_chunk_that_is_none_is_computed_again(tmp_path: Path, damage: str) -> None:
    from plumbline.eval_workers.models.sampling_contract import Sample

    work = ChunkPlan.of([Chunk(["a"], 1)], tmp_path, Sample)
    (path,) = work.chunks
    path.write_text("x")
    spoilt(path, damage)
    assert work.results() is None and work.todo() == [path]


@pytest.mark.parametrize("damage", ["pipe", "directory", "circle", "\xff"])
def test_settings_and_lists_that_are_no_files(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text("")
    spoilt(path, damage)
    with pytest.raises(BadInput, match="can't be read"):
        toml_file.read(path)
    assert main(["config", "--conf", str(path)]) == 3


@pytest.mark.parametrize("damage", ODD)
def test_a_marker_that_is_none(store: Store, damage: str) -> None:
    spoilt(store.root / "plumbline.json", damage)
    with pytest.raises(BadInput, match=r"plumbline\.json"):
        Store.open(store.root)


def test_a_device_is_not_read_without_end() -> None:
    for path in (Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match="not a regular file"):
            content(path)
    with pytest.raises(OSError, match="not a regular file"):
        json_object(Path("/dev/zero"))


@pytest.mark.parametrize("text", ["null", "[]", "[" * 100_000, "no JSON"])
@pytest.mark.parametrize("column", ["config", "packages"])
def test_options_of_runs_that_are_none(
    store: Store, capsys: pytest.CaptureFixture[str], text: str, column: str
) -> None:
    with recorded(store, "one", {}) as run_id:
        pass
    row = store.read("run").to_pylist()[0] | {column: text}
    store.publish("run", [row], unit=run_id, run_id=run_id)
    assert main(["runs", "show", run_id, "--warehouse", str(store.root)]) == 3
    assert f"column {column} of run {run_id}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a" * 5000, "a" * 97, "o/" + "a" * 95])
def test_a_name_that_no_hub_has_is_refused_before_the_hub_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "load", pytest.fail)
    options = ModelOptions(adapter=name)
    with pytest.raises((BadInput, OSError), match=r"neither a directory nor|name too long"):
        TransformersBackend("gpt2", options)
    with pytest.raises((BadInput, OSError), match=r"neither a directory nor|name too long"):
        TransformersBackend(name, ModelOptions())


def test_shards_are_regular_files_with_names_in_utf_8(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "circle.jsonl").symlink_to("circle.jsonl")
    for name in ("pipe", "circle"):
        with pytest.raises(BadInput, match="is not a regular file"):
            expand_shards([str(tmp_path / f"{name}.jsonl")])
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")
    Path(odd).write_text("")
    with pytest.raises(BadInput, match="not in UTF-8"):
        expand_shards([odd])


@pytest.mark.parametrize("damage", ["pipe", "directory", "circle"])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_weights_that_are_no_files(tmp_path: Path, damage: str, name: str) -> None:
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / file).write_text("{}")
    spoilt(tmp_path / name, damage)
    with pytest.raises(BadInput, match="not a regular file"):
        find_source(str(tmp_path), None)


@pytest.mark.parametrize(
    "said",
    [
        {"num_hidden_layers": 10**6},
        {"n_layer": 10**12},
        {"text_config": {"num_local_experts": 10**6}},
    ],
)
def test_a_configuration_without_end_is_refused_before_anything_is_built(
    tmp_path: Path, said: dict[str, object]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"} | said))
    with pytest.raises(BadInput, match="more than 4,096"):
        loading.check_configuration(Source("m", str(tmp_path), "r", is_local=True))


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999/v1", "http://h:x", "http://a\nb/v1", "http://a b/"]
)
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(UsageProblem, match="is not an http"):
        checked_url(url)


@pytest.mark.parametrize("arguments", [("config", "--conf"), ("corpus", "list", "--warehouse")])
def test_a_path_too_long_is_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "a" * 5000]) in (2, 3)
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError()])
def test_a_machine_that_is_too_small_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from plumbline.pipelines.command import app

    def raising(*_: object, **__: object) -> None:
        raise ValueError("reading failed") from error

    monkeypatch.setattr(app, "app", raising)
    assert main(["measure"]) == 3
    assert "run the same command again" in capsys.readouterr().err


_MEASURE = """
import sys
from plumbline.pipelines.command.main import main
sys.exit(main(["measure", "--warehouse", sys.argv[1]]))
"""


def test_few_file_handles_are_one_line(store: Store) -> None:
    filled(store)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(store.root)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3) and "Traceback" not in done.stderr


# Queries


def sql(store: Store, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(store.root)])


@pytest.mark.parametrize("kind", ["table", "csv", "json", "jsonl"])
def test_a_query_without_a_statement_is_one_line(
    store: Store, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    for text in (";", " ;; ", "/* tea */", "SELECT '\udcff'"):
        assert sql(store, text, "--format", kind) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "value", ["union_value(a := 1)", "[union_value(a := 1)]", "INTERVAL 3 DAY"]
)
def test_types_that_parquet_has_not_are_one_line(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    assert sql(store, f"SELECT {value} AS v", "--out", str(tmp_path / "v.parquet")) == 2
    assert "format parquet" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["warehouse"]


STEERS = "\x1b[2J\x9b31m\u202e"


def test_names_of_columns_do_not_steer_a_terminal(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, "word_count", [{"corpus": "c", "word": STEERS, "n_word": 9}])
    pivot = "PIVOT word_count ON word USING sum(n_word) GROUP BY corpus"
    monkeypatch.setenv("COLUMNS", "200")
    assert sql(store, pivot) == 0
    out = capsys.readouterr().out
    assert is_harmless(out) and "\\x1b[2J" in out
    typed = f"CREATE TABLE t AS ({pivot});\n.schema t\nFROM t;\n.tables\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert sql(store) == 0
    out, err = capsys.readouterr()
    assert is_harmless(out + err) and out.count("\\x1b[2J") == 2
    with connect(store) as connection:
        connection.execute(f'CREATE TABLE "z{STEERS}" AS SELECT 1 AS "z{STEERS}"')
        assert all(map(str.isprintable, shell.completions(connection, "SELECT z")))


def test_a_byte_that_is_not_utf_8_is_one_bad_query(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = io.BytesIO(b"SELECT '\xff';\nSELECT 41 + 1 AS n;\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed, encoding="utf-8"))
    assert sql(store) == 0
    out = capsys.readouterr().out
    assert "is not Unicode" in out and "42" in out


# What killed processes leave


_SLEEP = "\nprint('in', flush=True)\nimport time; time.sleep(60)"


def killed(code: str, *arguments: str) -> None:
    """Run code until it prints, then kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", code + _SLEEP, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    process.kill()
    process.wait()


_TEMPORARY = """
import sys
from pathlib import Path
from plumbline.warehouse.storage.locks import temporary_directory
held = temporary_directory(Path(sys.argv[1]), "spark-")
(held.__enter__() / "libzstd.so").touch()
"""
_STAGED = """
import sys
from plumbline.warehouse.storage.store import Store
store = Store.open(sys.argv[1])
staged = store.stage("word_count", {"corpus": "c"}, "r")
(store.root / "_staging" / "half.parquet").touch()
"""


def test_the_next_process_removes_the_temporary_files_of_the_dead_alone(tmp_path: Path) -> None:
    (tmp_path / "spark-of-somebody").mkdir()
    with temporary_directory(tmp_path, "spark-") as living:
        (living / "a").touch()
        killed(_TEMPORARY, str(tmp_path))
        assert len(list(tmp_path.glob("spark-*/"))) >= 3
        with temporary_directory(tmp_path, "spark-") as mine:
            assert {p for p in tmp_path.glob("spark-*") if p.is_dir()} == {
                *(living, mine, tmp_path / "spark-of-somebody")
            }
            assert (living / "a").exists()


_SPARK = """
from plumbline.jobs.spark import spark_session as session
(session._temporary() / "libzstd.so").touch()
"""


def test_the_next_spark_removes_what_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed(_SPARK)
    (left,) = tmp_path.rglob("libzstd.so")
    killed(_SPARK)
    (now,) = tmp_path.rglob("libzstd.so")
    assert now != left and not left.parent.exists()


def test_the_next_writer_removes_what_dead_writers_staged(store: Store) -> None:
    living = store.stage("word_count", {"corpus": "living"}, "r")
    killed(_STAGED, str(store.root))
    staging = store.root / "_staging"
    fill(store, "word_delta", [delta("a", 0.5)])
    assert len(list(staging.iterdir())) == 3, "somebody is writing"
    store.discard(living)
    fill(store, "word_delta", [delta("a", 0.5)])
    assert not list(staging.iterdir())


def test_a_report_leaves_nothing_half_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report"
    write_report(filled(store), out)
    before = {p.name for p in out.iterdir()}
    plot = next(name for name in before if name.endswith(".svg"))
    for name in (plot, "index.html", "plots.txt", "mine"):
        (out / f"{name}.tmp").touch()
    write_report(store, out)
    assert {p.name for p in out.iterdir()} == before | {"mine.tmp"}

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        _write(out / "a.svg", b"x")
    assert {p.name for p in out.iterdir()} == before | {"mine.tmp"}


# Tables that are emptied


def test_associate_says_what_it_drops(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = tmp_path / "a.jsonl"
    shard.write_text('{"text": "she met the nurse, he met the nurse"}\n' * 9)
    where = ["--corpus", "c", "--warehouse", str(store.root)]
    assert main(["corpus", "count", str(shard), *where]) == 0
    assert main(["corpus", "associate", *where]) == 0
    assert "dropped" not in capsys.readouterr().out
    weights = tmp_path / "row-sum.csv"
    weights.write_text("word,weight\nnurse,0.5\n")
    assert main(["corpus", "associate", *where, "--word-weights", str(weights)]) == 0
    summed = "gendered-sum-row-sum"
    fill(store, "pair_association", [association("b", "1", 0.5) | {"contrast": summed}])
    capsys.readouterr()
    assert main(["corpus", "associate", *where]) == 0
    out = capsys.readouterr().out
    assert f"No longer there: the contrasts {summed}" in out
    assert f"Warning: dropped 1 rows of `pair_association` ({summed}), whose deltas changed" in out
    assert "each contrast by --contrast: plumbline benchmark constrain" in out
    assert "seed_word" not in out
    again = associate(store, "c")
    assert again.dropped == {"pair_association": {}, "seed_word": {}} and not again.gone
