"""Two commands that write the same thing: one names the other, or the last one stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.training.trained_models import MARKER, train_model
from plumbline.eval_workers.training.training_options import TrainOptions
from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.corpus_lookup import sole_writer
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.steps import another

#: A process that works on corpus `c` until its input ends.
_HOLDER = """
import sys
from plumbline.jobs.counting.corpus_lookup import sole_writer
from plumbline.warehouse.storage.store import Store
with sole_writer(Store.open(sys.argv[1]), "c"):
    print("in", flush=True)
    sys.stdin.read()
"""


COMMANDS = {
    "count": ("corpus", "count", "a.jsonl.zst", "--corpus", "c"),
    "associate": ("corpus", "associate", "--corpus", "c"),
    "constrain": ("benchmark", "constrain", "--corpus", "c", "--benchmark", "b"),
    "words": ("corpus", "words", "--corpus", "c", "--n", "2"),
    "vet": ("corpus", "words", "--corpus", "c", "--accept", "tea"),
}


def test_what_writes_a_corpus_is_told_of_who_does(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl_zst(tmp_path / "a.jsonl.zst", ["she has tea"])
    with another(_HOLDER, str(store.root)) as process:
        for name, arguments in COMMANDS.items():
            assert main([*arguments, "--warehouse", str(store.root)]) == 2, name
            (line,) = capsys.readouterr().err.strip().splitlines()
            said = f"corpus 'c': another command writes to it: process {process.pid} on "
            assert said in line, name
        with sole_writer(store, "d"):  # another corpus is free
            pass
    assert {*store.read("run")["status"].to_pylist()} == {"failed"}, "none of them began its work"
    with pytest.raises(UsageProblem, match="no corpus is in the warehouse"):
        associate(store, "c")  # a killed one holds nothing


_PIPELINE = """
import sys
from pathlib import Path
from plumbline.pipelines.commands.pipeline import Pipeline
with Pipeline(warehouse=Path(sys.argv[1]), out=Path(sys.argv[2])).sole():
    print("in", flush=True)
    sys.stdin.read()
"""


def test_two_pipelines_on_one_warehouse_or_output_are_told_of_each_other(tmp_path: Path) -> None:
    with another(_PIPELINE, str(tmp_path / "w"), str(tmp_path / "out")) as other:
        for warehouse, out, place in (("w", "out2", "warehouse"), ("w2", "out", "output")):
            named = f"^{place} .*another command.*process {other.pid} on "
            with (
                pytest.raises(UsageProblem, match=named),
                Pipeline(warehouse=tmp_path / warehouse, out=tmp_path / out).sole(),
            ):
                pass
    with Pipeline(warehouse=tmp_path / "w", out=tmp_path / "out").sole():
        assert Store.open(tmp_path / "w").root.exists()
    assert not list(tmp_path.rglob("*.claim"))


_TRAINER = """
import sys
from pathlib import Path
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.training_options import TrainOptions
def told(done, n, note):
    if done == 1:
        print("in", flush=True)
        sys.stdin.read()
options = TrainOptions(300, 16, 1, 2, 16, 4, 1e-3, max_tokens=600)
train_model([Path(sys.argv[1])], "m", "c", options, sys.argv[2], told)
"""


@pytest.mark.slow
def test_a_model_is_trained_by_one_command(tmp_path: Path) -> None:
    """The second is refused and spoils nothing; after the first is killed it trains to the end."""
    shard, out = tmp_path / "a.jsonl.zst", tmp_path / "out"
    write_jsonl_zst(shard, ["she has tea and he has coffee in the morning"] * 40)
    options = TrainOptions(300, 16, 1, 2, 16, 4, 1e-3, max_tokens=600)
    with another(_TRAINER, str(shard), str(out)) as process:
        before = sorted(out.rglob("*"))
        with pytest.raises(UsageProblem, match=f"model .*out/m: another.*process {process.pid} "):
            train_model([shard], "m", "c", options, out)
        assert sorted(out.rglob("*")) == before
    alone = train_model([shard], "m", "c", options, tmp_path / "alone")
    trained = train_model([shard], "m", "c", options, out)
    assert not trained.reused and train_model([shard], "m", "c", options, out).reused
    weights = [(m.path / "model.safetensors").read_bytes() for m in (alone, trained)]
    assert weights[0] == weights[1] and sorted(p.name for p in out.iterdir()) == ["m"]
    assert (out / "m" / MARKER).is_file()
