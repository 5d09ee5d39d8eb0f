"""`docs/extend.md`: the package on the page is installed, its commands run, its tests pass."""

import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

# Building and installing a package takes most of a minute.
pytestmark = pytest.mark.slow

PAGE = (REPOSITORY / "docs" / "extend.md").read_text(encoding="utf-8")
#: The first half of the page is a whole package.
FIRST = PAGE.partition("\n## Parts of other kinds\n")[0]


def files_of(page: str) -> dict[str, str]:
    """The files on a page by name; a file that has several blocks is all of them."""
    files: dict[str, str] = {}
    for name, text in re.findall(r"^`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```", page, re.M | re.S):
        files[name] = files.get(name, "") + text
    return files


FILES = files_of(PAGE)
#: Two lines can be scored, the third has a word that the text lacks, the fourth is no pair.
LINES = "{pronoun} ran.\n{pronoun} saw {pronoun2}.\n{pronoun} knit.\nRain fell.\n"
TEXT = "she she she he ran saw her her him"
#: One command scores samples, which the page's backend can't draw.
RUN = """
import json, sys
from plumbline.eval_workers.fairpair.perturbed_set import PerturbedSamples
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import sampled_set
for command in json.loads(sys.argv[1]):
    if command[:2] == ["fairpair", "score"]:
        sampled = PerturbedSamples("harbour", "key-m", "s", "rules-1")
        sampled_set(Store.open("out/warehouse"), n_samples=4, sampled=sampled)
    print(command[0], main(command), flush=True)
import pytest
pytest.main(["-q", "-p", "no:cacheprovider", "tests"])
"""
NOVEL = ["The queen saw tea.", "The king and they saw tea."]


def commands() -> list[list[str]]:
    lines = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
    return [shlex.split(line)[1:] for line in "".join(lines).splitlines()]


def run(here: Path, *words: str) -> str:
    """What a Python says where the page's package is installed beside this checkout."""
    path = os.pathsep.join([str(REPOSITORY), str(here / "installed")])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=here,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the page's package and, in ``installed``, its installation."""
    here = tmp_path_factory.mktemp("extend")
    for name, content in {**FILES, "my_parts/__init__.py": ""}.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(content, encoding="utf-8")
    without = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    run(here, "-m", "pip", "install", "--quiet", *without, "--target", "installed", ".")
    (here / "my_parts").rename(here / "sources")  # what is imported is what was installed
    return here


@pytest.fixture(scope="module")
def ran(installed: Path) -> tuple[Path, str]:
    """Where the page's commands and tests ran, and what they said."""
    (installed / "weather.txt").write_text(LINES)
    (installed / "topics.txt").write_text("tools: saw hammer\n")
    (installed / "novel.txt").write_text(TEXT)
    (installed / "novels").mkdir()
    lines = (json.dumps({"text": text}) + "\n" for text in NOVEL)
    (installed / "novels" / "a.jsonl").write_text("".join(lines))
    order = ["topics", "benchmark", "score", "measure", "report", "sql", "corpus"]
    order += ["disclosure", "fairpair"]
    steps = sorted(commands(), key=lambda command: (order.index(command[0]), command[1:2]))
    return installed, run(installed, "-c", RUN, json.dumps(steps))


def test_the_page_has_a_file_of_each_kind() -> None:
    kinds = re.findall(r'^"plumbline\.(\w+)" = \{ "?([a-z_]+)', FILES["pyproject.toml"], re.M)
    stems = {Path(name).stem for name in FILES if name.startswith("my_parts/")}
    assert stems - {"strength_chart"} == {name for _, name in kinds}
    assert {kind for kind, _ in kinds} == {
        *("tables", "views", "commands", "metrics", "report_sections", "benchmarks", "backends"),
        *("word_lists", "scoring_functions", "fairpair_prompts", "disclosure_prompts"),
    }


def test_every_command_succeeds_and_its_own_tests_pass(ran: tuple[Path, str]) -> None:
    _, said = ran
    statuses = re.findall(r"^(\w+) (\d)$", said, re.M)
    assert len(statuses) == len(commands()) and {status for _, status in statuses} == {"0"}, said
    assert re.search(r"\b2 passed", said), said


def test_benchmark_backend_and_metric_work_together(ran: tuple[Path, str]) -> None:
    """By hand: of nine words 3 are she and 1 he, 2 her and 1 him: ln 3 and ln 3 + ln 2."""
    here, _ = ran
    store = Store.open(here / "out/warehouse")
    pairs = store.read("benchmark_pair", benchmark="weather").to_pylist()
    assert [p["template"] for p in pairs] == LINES.splitlines()[:3]
    scores = {
        r["pair_id"]: r["logprob_a_nats"] - r["logprob_b_nats"]
        for r in store.read("pair_score").to_pylist()
    }
    assert scores == {"1": pytest.approx(math.log(3)), "2": pytest.approx(math.log(6))}
    rows = [r for r in store.read("metric_value").to_pylist() if r["metric"] == "female share"]
    (all_pairs,) = (r for r in rows if r["subset"] == "all")
    assert (all_pairs["value"], all_pairs["n"], all_pairs["model"]) == (1.0, 2, "novel")


def test_metric_and_section_are_on_the_page_and_the_metric_is_printed(
    ran: tuple[Path, str],
) -> None:
    here, said = ran
    page = (here / "out/report/appendix.html").read_text(encoding="utf-8")
    assert "female share %" in page and "female share %" in said
    by_word = [math.log(3), math.log(6)]
    half = 1.96 * statistics.stdev(by_word) / math.sqrt(2)
    mean = statistics.fmean(by_word)
    figure = f"{mean:.2f} ({mean - half:.2f} to {mean + half:.2f})"
    assert f"novel prefers strongly on weather: {figure} nats." in page
    assert f">{figure}<" in page, "the table's cell"
    chart = (here / "out/report/strength.vl.json").read_text(encoding="utf-8")
    assert '"novel"' in chart and (here / "out/report/strength.csv").is_file()
    assert len(FILES["my_parts/strength.jinja"].splitlines()) < 60
    anchors = re.findall(r'<section id="(\w+)"', page)
    assert anchors.index("preference") < anchors.index("strength"), "after ours"
    first = (here / "out/report/index.html").read_text(encoding="utf-8")
    assert '<a href="appendix.html#strength">How strong preferences are</a>' in first


def test_word_list_prompts_and_scoring_function_are_used(ran: tuple[Path, str]) -> None:
    here, said = ran
    store = Store.open(here / "out/warehouse")
    rows = store.read("pair_count", corpus="novels").to_pylist()
    counts = {(r["word"], r["target"]): r["n_pair"] for r in rows}
    assert [counts["tea", target] for target in ("queen", "king", "they")] == [1, 1, 1]
    prompts = store.read("probe_prompt", probe_set="hobbies").to_pylist()
    assert [p["prompt_id"] for p in prompts] == ["hobby-chess", "hobby-fishing", "hobby-opera"]
    assert {r["phi"] for r in store.read("fairpair_set").to_pylist()} == {"exclamations"}
    cells = " ".join(said.replace("│", " ").split())
    assert "harbour prompts with a counterpart 2 " in cells
