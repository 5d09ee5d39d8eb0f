"""Two commands that write the same thing: one names the other, or the last one stays."""

from pathlib import Path

import pytest

from plumbline.jobs.association.associations import associate
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store
from tests.steps import another

#: A process that works on corpus `c` until its input ends.
_HOLDER = """
import sys
from plumbline.warehouse.storage.locks import lock
from plumbline.warehouse.storage.store import Store
with lock(Store.open(sys.argv[1]), "corpus c", "corpus 'c'"):
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
    write_jsonl_zst(tmp_path / "a.jsonl.zst", ["she has tea", "he has tea"])
    for name in ("count", "associate"):
        assert main([*COMMANDS[name], "--warehouse", str(store.root)]) == 0, name
    capsys.readouterr()
    with another(_HOLDER, str(store.root)) as process:
        for name, arguments in COMMANDS.items():
            assert main([*arguments, "--warehouse", str(store.root)]) == 2, name
            (line,) = capsys.readouterr().err.strip().splitlines()
            said = f"corpus 'c': another command writes to it: process {process.pid} on "
            assert said in line, name
        with lock(store, "corpus d", "corpus 'd'"):  # another corpus is free
            pass
    status = store.read("run")["status"].to_pylist()
    assert status.count("failed") == len(COMMANDS), "none of them began its work"
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
