"""README, the notebook, and pages on pairs, tutorial, clusters and schedules run as they are."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pyspark
import pytest
from nbclient import NotebookClient
from packaging.utils import canonicalize_name

from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, write_world
from plumbline.eval_workers.training import training_options as training
from plumbline.pipelines.command.main import main
from plumbline.pipelines.deployment import write_dist
from plumbline.warehouse.input.shards import documents, write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests import prefect_server
from tests.conftest import REPOSITORY
from tests.released_files import write_csv, write_use_5
from tests.test_cluster import environment, spark_home, standalone_cluster
from tests.test_count_kill import contents
from tests.test_docs import ROOT, arguments, in_blocks, parse
from tests.tiny_models import save


def blocks(page: str, language: str = "") -> list[str]:
    """The blocks of a page that are in a language; a shell's may name none."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in found if name == language]


def run(block: str) -> None:
    for line in block.replace("\\\n", " ").splitlines():
        assert main(shlex.split(line)[1:]) == 0, line


def write_texts(directory: Path) -> None:
    directory.mkdir()
    for k in range(30):
        text = f"She wept. He was the captain of the ship, old and good at {'no ' * k}phone. "
        (directory / f"{k}.txt").write_text(text * 3, encoding="utf-8")


def text_of(page: str) -> str:
    """What a reader sees, without queries, scripts and the folded definitions of methods."""
    for element in ("script", "style", "pre", "details"):
        page = re.sub(rf"<{element}\b.*?</{element}>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", page)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of the page that need no released file, on its files and some texts."""
    directory = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        for name, text in zip(("pairs", "pronouns"), blocks("docs/pairs.md", "csv"), strict=True):
            Path(f"{name}.csv").write_text(text, encoding="utf-8")
        Path("recipe.toml").write_text(blocks("docs/pairs.md", "toml")[0], encoding="utf-8")
        write_texts(Path("texts"))
        for block in blocks("docs/pairs.md", "sh"):
            run(block)
    return directory


def test_readme_from_texts_to_a_preference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) < 90
    write_texts(Path("novels"))
    install, why, train = blocks("README.md", "sh")
    assert install.startswith("pip install .")
    run(why)
    assert "“wept”" in capsys.readouterr().out
    run(train)
    (python,) = blocks("README.md", "python")
    capsys.readouterr()
    exec(python, {})
    heading, *rows = capsys.readouterr().out.splitlines()
    headings = [line.split() for line in readme.splitlines()]
    assert heading.split() in headings and [row.split()[1] for row in rows] == ["pd", "us"]


def test_the_report_names_these_groups_and_no_others(ran: Path) -> None:
    text = text_of((ran / "out/report/index.html").read_text(encoding="utf-8"))
    assert "old" in text and "young" in text
    assert not re.search(r"\b(fe)?male\b", text)
    plots = [path.read_text(encoding="utf-8") for path in (ran / "out/report").glob("*.vl.json")]
    assert plots and not any(re.search(r"\b(fe)?male\b", plot) for plot in plots)
    assert any("young < 0 < old" in plot for plot in plots)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a Jupyter without ipywidgets, as `pip install jupyterlab` alone may leave it."""
    path = REPOSITORY / "docs/notebooks/own-pairs.ipynb"
    hidden = "import sys\nsys.modules['ipywidgets'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(REPOSITORY))))
    notebook = nbformat.read(path, as_version=4)
    kept = [shown(cell) for cell in notebook.cells]
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    for cell, before in zip(notebook.cells, kept, strict=True):
        said = "".join(output.get("text", "") for output in cell.get("outputs", []))
        is_warned = '"broken"' in cell["source"]  # of rows that can't be used
        assert "error:" not in said and ("Warning" in said) is is_warned, (cell["source"], said)
        # tables are the same again: texts, models and draws are by seed
        assert shown(cell) == before, cell["source"]


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """The frames that a cell shows, as text; what progress leaves behind is empty."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [d["text/plain"] for d in data if "text/html" in d and d["text/plain"]]


#: A model and continuations that take no time. The page says nothing about either size.
TINY = training.TrainOptions(600, 32, 1, 2, 64, 16, 3e-3, max_tokens=6_000)


def write_world_texts(directory: Path) -> int:
    """Texts of a closed world as files of 20 documents each; returns how many files."""
    options = WorldOptions(20_000, 1, n_shards=1)
    (shard,), _, _ = write_world(options, directory.parent / "world")
    texts = list(documents(shard))
    directory.mkdir()
    for k in range(0, len(texts), 20):
        (directory / f"{k:05}.txt").write_text("\n\n".join(texts[k : k + 20]), encoding="utf-8")
    return len(range(0, len(texts), 20))


@pytest.mark.spark
@pytest.mark.slow
def test_the_tutorial_leads_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.setitem(training.PRESETS, "small", TINY)
    monkeypatch.setenv("PLUMBLINE_DISCLOSURE_MAX_NEW_TOKENS", "2")
    n_files = write_world_texts(tmp_path / "texts")
    for block in blocks("docs/tutorial.md", "toml"):
        Path(re.match(r"# ([\w-]+\.toml)", block)[1]).write_text(block, encoding="utf-8")
    lines = "".join(blocks("docs/tutorial.md", "sh")).replace("\\\n", " ").splitlines()
    run_here = [shlex.split(line, comments=True)[1:] for line in lines]
    assert len(run_here) == 5
    said = {}
    for command in run_here:
        assert main(command) == 0, (command, capfd.readouterr().err)
        said[command[0]] = capfd.readouterr().out
    store = Store.open("out/warehouse")
    (corpus,) = store.read("corpus").to_pylist()
    assert corpus["n_documents"] == n_files and corpus["targets"] == "family"
    pairs = store.read("benchmark_pair").to_pylist()
    assert {p["benchmark"] for p in pairs} == {"my-texts-frames"}
    words = {str(p["word"]) for p in pairs}
    assert len(pairs) == 10 * len(words) and len(words) == 50
    assert all(re.fullmatch("[a-z]+", word) for word in words)
    leans = {r["word"]: r for r in store.read("seed_word").to_pylist()}
    assert all(
        leans[w]["low_nats"] <= leans[w]["delta_nats"] <= leans[w]["high_nats"] for w in words
    )
    scored = store.read("pair_score").to_pylist()
    assert {s["model"] for s in scored} == {"small-my-texts"} and len(scored) == len(pairs)
    probed = store.read("pronoun_probability", probe_set="topics").to_pylist()
    assert len({r["prompt_id"] for r in probed}) == 160
    assert "fixed frames" in said["pipeline"]
    pages = [
        Path("out/report", name).read_text("utf-8") for name in ("index.html", "appendix.html")
    ]
    assert "A frame may favour a side by itself" in pages[0]
    (headline,) = re.findall('<section id="answer".*?<p>(.*?)</p>', pages[0], re.DOTALL)
    assert "it was trained on" in headline and "prefers" not in headline
    assert all(word in "".join(pages) for word in ("my-texts-frames", "fixed frames", "topics"))


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
    raw = write_use_5(data / "unstereo-eval", ["{pronoun} drank tea."]).parent
    row = {"": "0", "word": "tea", "template": "{pronoun} drank tea.", "stereotype": "True"}
    for part in ("dev", "test"):
        write_csv(raw / f"coref__Winobias__templates.{part}.csv", [row])


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
        assert runs.count("COMPLETED") >= 3 and "FAILED" not in runs
    finally:
        prefect_server.stop(started)
    store = Store.open(work / "out/warehouse", create=False)
    (row,) = store.read("corpus").to_pylist()
    assert row["n_documents"] == 40
    models = {r["model"] for r in store.read("model").to_pylist()}
    assert models == {"my-model", "other"}, "of the audit and of the run with a parameter"
