"""`docs/pairs.md`, `docs/tutorial.md`, README and the notebook run as they are written there."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.training import training_options as training
from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY


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
        Path("pairs.csv").write_text(blocks("docs/pairs.md", "csv")[0], encoding="utf-8")
        Path("recipe.toml").write_text(blocks("docs/pairs.md", "toml")[0], encoding="utf-8")
        write_texts(Path("texts"))
        own = [block for block in blocks("docs/pairs.md", "sh") if "git clone" not in block]
        assert len(own) == 4
        for block in own:
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
    assert f"\n{heading}\n" in readme and [row.split()[1] for row in rows] == ["pd", "us"]


@pytest.mark.slow
def test_every_row_is_a_pair_with_figures(ran: Path) -> None:
    rows = rows_of(
        ran / "out/warehouse",
        "SELECT subset, groups, n FROM metric_value WHERE metric = 'us' ORDER BY subset",
    )
    assert {r["groups"] for r in rows} == {"old/young"}
    assert {r["subset"]: r["n"] for r in rows} == {
        **{"all": 3, "category: memory": 1, "category: skills": 2},
        **{"first word differs": 1, "later word differs": 2},
    }


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
    world = write_world(WorldOptions(20_000, 1, "straight", 1), directory.parent / "world")
    texts = list(documents(world.shards[0]))
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
    typed = [shlex.split(line, comments=True)[1:] for line in lines]
    assert len(typed) == 5
    said = {}
    for command in typed:
        assert main(command) == 0, (command, capfd.readouterr().err)
        said[command[0]] = capfd.readouterr().out
    store = Store.open("out/warehouse")
    (corpus,) = store.read("corpus").to_pylist()
    assert corpus["n_documents"] == n_files and corpus["targets"] == "family"
    pairs = store.read("benchmark_pair").to_pylist()
    assert {p["benchmark"] for p in pairs} == {"my-texts-offline"}
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
    assert all(word in "".join(pages) for word in ("my-texts-offline", "fixed frames", "topics"))
