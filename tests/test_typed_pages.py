"""The commands of docs/cluster.md and docs/schedule.md as the pages have them, but for places."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from packaging.utils import canonicalize_name

from plumbline.pipelines.command.main import main
from plumbline.pipelines.deployment import write_dist
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests import prefect_server
from tests.conftest import REPOSITORY
from tests.released_files import as_csv
from tests.test_cluster import environment, spark_home, standalone_cluster
from tests.test_count_kill import contents
from tests.test_docs import ROOT, arguments, in_blocks, parse
from tests.test_pages import blocks
from tests.tiny_models import save

BIN = Path(sys.executable).parent
TEXTS = ["She lost her key and he drank tea.", "He saw the nurse. She saw the baker."] * 20


def commands(block: str) -> list[str]:
    return [line.strip() for line in in_blocks(f"```\n{block}```") if line.strip()]


def parsed(block: str, dist: Path) -> bool:
    """True if a block needs what isn't here: its options and names are checked."""
    lines = commands(block)
    if "venv-pack" in block:  # an environment
        (names,) = re.findall(r"pip install -c \S*requirements\.lock (.*)", "\n".join(lines))
        lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
        pinned = {canonicalize_name(name) for name in re.findall(r"(?m)^(.+)==", lock)}
        assert {*map(canonicalize_name, names.split())} - {"venv-pack"} <= pinned
    elif re.search(r"--master (yarn|k8s)", block):
        check_submitted(next(line for line in lines if line.startswith("spark-submit ")), dist)
    elif "s3://" not in block and "audit/audit" not in block and lines[0][:4] != "ssh ":
        return False  # those three: tests/test_bucket.py, vLLM, a tunnel
    for line in lines:
        if (words := arguments(line)) is not None:
            parse(ROOT, words)
    return True


def check_submitted(line: str, dist: Path) -> None:
    """Spark's launcher takes the options and passes the program on; it runs nothing."""
    home = Path(pyspark.__file__).parent
    java = Path(environment(home)["JAVA_HOME"]) / "bin/java"
    main_class, program = "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"
    command = [str(java), "-cp", f"{home}/jars/*", main_class, program, *shlex.split(line)[1:]]
    told = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    done = subprocess.run(command, cwd=dist.parent, env=told, capture_output=True, text=True)
    assert not done.returncode and "Error" not in done.stderr, done.stderr
    assert "submit.py\0corpus\0count\0" in done.stdout


def typed(text: str, cwd: Path, env: dict[str, str]) -> str:
    """What a terminal prints of a block; its last status has to be 0."""
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


def released(data: Path) -> None:
    """Released files of two benchmarks, with a pair or two."""
    raw = data / "unstereo-eval/data/datasets/raw"
    raw.mkdir(parents=True)
    row = {"": "0", "word": "tea", "template": "{pronoun} drank tea."}
    (raw / "USE-5.csv").write_text(as_csv([row | {"is_natural": "True"}]))
    for part in ("dev", "test"):
        file = raw / f"coref__Winobias__templates.{part}.csv"
        file.write_text(as_csv([row | {"stereotype": "True"}]))


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_standalone_master_cannot_run_is_parsed(tmp_path: Path) -> None:
    dist = write_dist(tmp_path / "dist")[0].parent
    assert sum(parsed(block, dist) for block in blocks("docs/cluster.md")) == 4
    with pytest.raises(AssertionError, match="Unrecognized option"):
        check_submitted("spark-submit --num-executor 2 dist/submit.py corpus count x", dist)


@pytest.mark.spark
@pytest.mark.slow
def test_the_commands_of_the_page_on_clusters(tmp_path: Path) -> None:
    """Each counts what one machine counts; the pipeline scores and writes a report."""
    released(tmp_path / "released")
    for place in ("data", "shared"):
        for name in ("a", "b"):
            write_jsonl_zst(tmp_path / place / f"pile/{name}.jsonl.zst", TEXTS)
    save("gpt2", tmp_path / "shared/models/m")
    alone = tmp_path / "alone"
    count = ["corpus", "count", f"{tmp_path}/data/pile/*.jsonl.zst", "--corpus", "pile"]
    assert main([*count, "--warehouse", str(alone)]) == 0
    dist = write_dist(tmp_path / "dist")[0].parent
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/plumbline").symlink_to(BIN / "plumbline")
    (tmp_path / "venv/.installed").touch()
    home, ran = spark_home(tmp_path), []
    env = environment(home, PLUMBLINE_DATA=str(tmp_path / "released"))
    env = {k: v for k, v in env.items() if k not in ("CONF", "OUT", "CORPUS", "MODEL", "MAKEFLAGS")}
    env["PATH"] = f"{BIN}:{home / 'bin'}:{env['PATH']}"
    with standalone_cluster(home, tmp_path) as master:
        for block in blocks("docs/cluster.md"):
            if parsed(block, dist):
                continue
            text = re.sub(r"/(data|shared)/", rf"{tmp_path}/\1/", block)
            text = text.replace("spark://host:7077", master)
            text = text.replace("make pipeline", f"make VENV={tmp_path / 'venv'} pipeline")
            ran.append(typed(text, REPOSITORY if "make " in block else tmp_path, env))
            if "corpus count" in block:
                assert contents(tmp_path / "data/warehouse") == contents(alone)
                shutil.rmtree(tmp_path / "data/warehouse")
    assert len(ran) == 4
    assert (tmp_path / "shared/study/report/index.html").is_file()
    study = Store.open(tmp_path / "shared/study/warehouse", create=False)
    (row,) = study.read("corpus").to_pylist()
    assert (row["corpus"], row["n_documents"]) == ("pile", 80)
    assert study.read("pair_score", benchmark="use-5").num_rows == 1


@pytest.mark.spark
@pytest.mark.slow
def test_the_commands_of_the_page_on_schedules(tmp_path: Path) -> None:
    """From nothing to a run, and a schedule resumed and paused."""
    port, work = prefect_server.free_port(), tmp_path / "work"
    for name in ("models/my-model", "models/other"):
        save("gpt2", work / name)
    released(work / "data")
    write_jsonl_zst(work / "shards/a.jsonl.zst", TEXTS)
    settings, audit = blocks("docs/schedule.md", "toml")
    (work / "plumbline.toml").write_text(settings)
    (work / "audit.toml").write_text(audit)
    env = prefect_server.environment(tmp_path / "prefect", work, "")
    env["PATH"] = f"{BIN}:{env['PATH']}"
    started: list[subprocess.Popen[bytes]] = []

    def start(line: str) -> None:
        """A command of a terminal of its own, which goes on."""
        with (tmp_path / f"{len(started)}.log").open("wb") as log:
            how = {"cwd": work, "env": env, "stdout": log, "stderr": log}
            started.append(subprocess.Popen(shlex.split(line), start_new_session=True, **how))  # type: ignore[call-overload]

    try:
        for block in blocks("docs/schedule.md"):
            text = block.replace("4200", str(port))
            if parsed(block, tmp_path):
                continue
            if "export " in text:
                said = typed(f"{text}\nenv -0", REPOSITORY, env)
                env |= dict(one.split("=", 1) for one in said.split("\0") if "=" in one)
                env["PWD"] = str(work)
            elif "prefect server" in text:
                start(text)
                with prefect_server.httpx.Client(base_url=env["PREFECT_API_URL"]) as client:
                    prefect_server.until_up(client, started[0])
            elif "worker start" in text:
                for line in commands(text):
                    start(line)
            elif "schedule resume" in text:
                listing, resume = commands(text)
                (found,) = re.findall("[0-9a-f-]{36}", typed(listing, work, env))
                typed(resume.replace(" ID", f" {found}"), work, env)
                typed(resume.replace(" ID", f" {found}").replace("resume", "pause"), work, env)
            else:
                typed(text, REPOSITORY if "deploy --all" in text else work, env)
        assert len(started) == 3
        runs = typed("COLUMNS=160 prefect flow-run ls", work, env)
        assert runs.count("COMPLETED") == 2 and "FAILED" not in runs
    finally:
        prefect_server.stop(started)
    store = Store.open(work / "out/warehouse", create=False)
    (row,) = store.read("corpus").to_pylist()
    assert row["n_documents"] == 40
    models = {r["model"] for r in store.read("model").to_pylist()}
    assert models == {"other"}, "a run's parameter comes before the settings"
