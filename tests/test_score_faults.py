"""Scoring on disks that fail: one line, and running the same command again resumes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from plumbline.eval_workers.models.base import TextScore
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.scoring import pair_scores
from plumbline.eval_workers.work import runner
from plumbline.eval_workers.work.chunk_plan import write_results
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.steps import shown
from tests.test_score import TEMPLATES, _pairs, _rows, _score
from tests.tiny_models import save


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("neox", tmp_path_factory.mktemp("models") / "tiny-neox")


@pytest.fixture
def undisturbed(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A warehouse scored without faults, in small chunks."""
    monkeypatch.setattr(pair_scores, "CHUNK_TEXTS", 16)
    store = Store.open(tmp_path / "undisturbed")
    _pairs(store, TEMPLATES)
    _score(store, model)
    return store


@pytest.fixture
def texts_scored(undisturbed: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that reaches the model from now on."""
    seen: list[str] = []
    compute = TransformersBackend.score

    def watched(self: TransformersBackend, texts: Sequence[str]) -> list[TextScore]:
        seen.extend(texts)
        return compute(self, texts)

    monkeypatch.setattr(TransformersBackend, "score", watched)
    return seen


#: The ``score`` command on a disk that, from some call on, takes no file of more than 500 bytes.
_FULL = """
import resource, sys
from plumbline.eval_workers.scoring import pair_scores
from plumbline.eval_workers.work import runner
from plumbline.eval_workers.work import chunk_plan as chunks
from plumbline.pipelines.command.main import main

pair_scores.CHUNK_TEXTS = 16
calls, name = [], sys.argv[1]
module = runner if name == "publish" else chunks
function = getattr(module, name)

def full(*arguments):
    calls.append(name)
    if len(calls) == int(sys.argv[2]):
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    return function(*arguments)

setattr(module, name, full)
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("where", "call", "n_lost"), [("write_results", 3, 50), ("publish", 1, 0)])
def test_a_full_disk_is_one_line_and_loses_nothing(
    store: Store,
    model: Path,
    undisturbed: Store,
    texts_scored: list[str],
    where: str,
    call: int,
    n_lost: int,
) -> None:
    _pairs(store, TEMPLATES)
    arguments = ["score", "--model", str(model), "--benchmark", "demo"]
    arguments += ["--warehouse", str(store.root)]
    command = [sys.executable, "-c", _FULL, where, str(call), *arguments]
    full = subprocess.run(command, capture_output=True, text=True, check=False)
    assert full.returncode == 3, full.stderr
    last = full.stderr.strip().splitlines()[-1]
    assert f"{store.root}: File too large" in last and "run the same command again" in last
    assert "Traceback" not in full.stderr
    assert _rows(store) == [] and not list(store.root.rglob("*.tmp"))
    assert main(arguments) == 0
    assert len(texts_scored) == n_lost  # 82 texts in chunks of 16: two were done, or all
    assert _rows(store) == _rows(undisturbed)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def of_another_chunk(path: Path) -> None:
    write_results(path, [TextScore(-1.0, (5,), (-1.0,))], TextScore)


@pytest.mark.parametrize("damage", [cut_short, emptied, of_another_chunk])
def test_a_damaged_chunk_is_computed_again(
    store: Store,
    model: Path,
    undisturbed: Store,
    texts_scored: list[str],
    monkeypatch: pytest.MonkeyPatch,
    damage: object,
) -> None:
    _pairs(store, TEMPLATES)
    with monkeypatch.context() as stopped:
        stopped.setattr(runner, "publish", lambda *_: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            _score(store, model)
    files = sorted((store.root / "_work").rglob("*.parquet"))
    assert len(files) == 6 and len(texts_scored) == 82
    texts_scored.clear()
    damage(files[2])  # type: ignore[operator]
    assert _score(store, model).n_new == 42
    assert 0 < len(texts_scored) <= 16
    assert _rows(store) == _rows(undisturbed)


def test_a_work_directory_that_cannot_be_written_is_one_line(
    store: Store, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in its place: what refuses the directory, for every user."""
    _pairs(store, TEMPLATES)
    (store.root / "_work").write_text("in the way")
    arguments = ["score", "--model", str(model), "--benchmark", "demo"]
    assert main([*arguments, "--warehouse", str(store.root)]) == 3
    error = capsys.readouterr().err
    assert f"{store.root / '_work'}" in error and "Not a directory" in error
    assert error.count("\n") == 1
    (run,) = store.read("run").to_pylist()
    assert run["status"] == "failed" and "Not a directory" in run["error"]


def test_progress_counts_pairs(
    store: Store, model: Path, undisturbed: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

    _pairs(store, TEMPLATES)
    _pairs(store, TEMPLATES[:3], "other")
    told = shown(monkeypatch, runner)
    done = score_benchmarks(store, str(model), ["demo", "other"], ModelOptions(), "run")
    assert told[0] == ("demo", 0, 45) and told[-1] == ("other", 45, 45)
    steps = [n for name, n, _ in told if name == "demo"]
    assert steps == sorted(steps) and len(set(steps)) > 3 and steps[-1] == 42
    assert all(one.pairs_per_s and one.pairs_per_s > 0 for one in done)
    again = score_benchmarks(store, str(model), ["demo"], ModelOptions(), "run")
    assert again[0].pairs_per_s is None
