"""The package as others have it: built, installed beside clashing packages, and run by make."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.distributions import build, clashing_packages, copy_sources, source_files
from tests.released_files import write_use_5
from tests.tiny_models import save

TEXTS = ["She met the nurse.", "He met the baker and drank tea.", "She drank tea."] * 20


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A fresh environment's Python with the wheel; other packages are those of this one."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, symlinks=True)
    found = directory / "bin" / "python"
    install = ["-m", "pip", "--python", str(found), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, *install, str(wheel)], check=True)
    # A line that names a directory puts it on the path and reads no .pth file there: the editable
    # installation of this checkout stays out.
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([found, "-c", where], capture_output=True, text=True, check=True)
    (Path(site.stdout.strip()) / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


@pytest.mark.slow
def test_the_sdist_holds_every_file_once_and_builds_the_wheel(tmp_path: Path, wheel: Path) -> None:
    sdist = build("sdist", copy_sources(tmp_path / "sources"), tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        names = [n.split("/", 1)[1] for n in archive.getnames() if "/" in n]
        archive.extractall(tmp_path / "unpacked", filter="data")
    files = [name for name in names if name.startswith("plumbline/") and "." in Path(name).name]
    assert len(files) == len(set(files))
    assert {name.removeprefix("plumbline/") for name in files} == source_files()
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    again = build("wheel", unpacked, tmp_path / "again")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


@pytest.mark.slow
@pytest.mark.spark
def test_it_counts_scores_and_reports_beside_clashing_packages(
    python: Path, tmp_path: Path
) -> None:
    """The directory with the other packages comes first on the path, as it does in a notebook."""
    clashing_packages(tmp_path)
    lines = (json.dumps({"text": text}) + "\n" for text in TEXTS)
    (tmp_path / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    write_use_5(tmp_path / "release", ["[{pronoun}] drank tea."])
    save("gpt2", tmp_path / "tiny")
    commands = [
        ["corpus", "count", "a.jsonl", "--corpus", "c"],
        ["corpus", "count", "a.jsonl", "--corpus", "s", "--master", "local-cluster[1,1,1024]"],
        ["corpus", "associate", "--corpus", "c"],
        ["benchmark", "import", "use-5", "--source", "release/data/datasets/raw"],
        ["benchmark", "constrain", "--corpus", "c", "--benchmark", "use-5"],
        ["score", "--model", "tiny", "--benchmark", "use-5"],
        ["measure"],
        ["report", "--out", "page"],
    ]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PLUMBLINE_"))}
    (tmp_path / "small.conf").write_text("spark.executor.memory 1g\nspark.executor.cores 1\n")
    environment = {**kept, "PYTHONPATH": "."}
    for command in commands:
        small = {"PLUMBLINE_SPARK_CONF": "small.conf"} if "--master" in command else {}
        done = subprocess.run(
            [python, python.with_name("plumbline"), *command],
            cwd=tmp_path,
            env={**environment, **small},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr[-3000:])
    store = Store.open(tmp_path / "out/warehouse")
    assert store.read("pair_score").num_rows == 1
    assert (tmp_path / "page/index.html").is_file()
    counts = [
        sorted((r["word"], r["n_word"]) for r in store.read("word_count", corpus=c).to_pylist())
        for c in ("c", "s")
    ]
    assert counts[0] == counts[1] and ("tea", 40) in counts[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["pipeline"]),
        (
            ["CORPUS=a b.jsonl.zst", "BENCHMARKS=use-5,winobias", "MODEL=train:small"],
            [
                *("pipeline", "--corpus", "a b.jsonl.zst", "--benchmarks", "use-5,winobias"),
                *("--model", "train:small"),
            ],
        ),
        (["CONF=own.toml", "OUT=there"], ["pipeline", "--out", "there", "--config", "own.toml"]),
    ],
)
def test_the_pipeline_gets_what_is_given_and_nothing_else(
    tmp_path: Path, given: list[str], expected: list[str]
) -> None:
    """An option that is empty would be a setting: the output would go to the empty path."""
    program = tmp_path / "venv" / "bin" / "plumbline"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    program.chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()
    unset = ("CORPUS", "BENCHMARKS", "MODEL", "OUT", "CONF", "GIVEN", "MAKEFLAGS", "MAKELEVEL")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    command = ["make", "--no-print-directory", "pipeline", f"VENV={tmp_path / 'venv'}", *given]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == expected
