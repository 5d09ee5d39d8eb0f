"""`docs/extend.md`: its files, put where the page says, are found, and its commands run."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "extend.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w/]+\.\w+)`:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S))
#: Two lines can be scored, the third has a word that the text lacks, the fourth is no pair.
LINES = "{pronoun} ran.\n{pronoun} saw {pronoun2}.\n{pronoun} knit.\nRain fell.\n"
TEXT = "she she she he ran saw her her him"
#: What the page's commands don't show without a corpus or samples.
SEEN = """
from plumbline.eval_workers.fairpair import phi
from plumbline.warehouse import wordlists
print(wordlists.load("nobles").pairs[1].weight, wordlists.names())
found = phi.find("exclamations")
print(found.distances(found.items(["a!", "b!!!"])).tolist())
"""


def commands() -> list[list[str]]:
    lines = re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
    return [shlex.split(line)[1:] for line in "".join(lines).splitlines()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where the page's commands ran on a copy of the packages with its files, and what it said."""
    here = tmp_path_factory.mktemp("extend")
    copy = here / "copy" / "plumbline"
    # The rooms are links there; a copy has their files.
    shutil.copytree(REPOSITORY / "plumbline", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in FILES.items():
        assert not (copy / name).exists()
        (copy / name).write_text(content, encoding="utf-8")
    (here / "weather.txt").write_text(LINES)
    (here / "novel.txt").write_text(TEXT)
    kinds = {
        command[0]: command for command in commands() if command[0] not in ("corpus", "fairpair")
    }
    steps = [kinds[kind] for kind in ("benchmark", "score", "measure", "sql")]
    code = "from plumbline.pipelines.cli.main import main\n"
    code += f"for c in {steps!r}: print(c[0], main(c))\n{SEEN}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(here / "copy"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return here, done.stdout


def test_the_page_has_a_file_of_each_kind() -> None:
    assert {Path(name).parent.as_posix() for name in FILES} == {
        *("warehouse/sql/metrics", "eval_workers/benchmarks", "eval_workers/backends"),
        *("warehouse/wordlists", "eval_workers/fairpair/phi"),
    }


def test_benchmark_backend_and_metric_work_together(ran: tuple[Path, str]) -> None:
    """By hand: of nine words 3 are she and 1 he, 2 her and 1 him: ln 3 and ln 3 + ln 2."""
    here, said = ran
    store = Store.open(here / "out/warehouse")
    pairs = store.read("benchmark_pair", benchmark="weather").to_pylist()
    assert [p["template"] for p in pairs] == LINES.splitlines()[:3]
    scores = {
        r["pair_id"]: r["logprob_f_nats"] - r["logprob_m_nats"]
        for r in store.read("pair_score").to_pylist()
    }
    assert scores == {"1": pytest.approx(math.log(3)), "2": pytest.approx(math.log(6))}
    rows = [r for r in store.read("metric_value").to_pylist() if r["metric"] == "female share"]
    (all_pairs,) = (r for r in rows if r["subset"] == "all")
    assert (all_pairs["value"], all_pairs["n"], all_pairs["model"]) == (1.0, 2, "novel")
    assert "measure 0" in said and "sql 0" in said


def test_list_and_scoring_function_are_found(ran: tuple[Path, str]) -> None:
    _, said = ran
    assert "2.0 ['gendered', 'names', 'neutral', 'nobles', 'pronouns', 'she-he']" in said
    assert "[[0.0, 2.0], [2.0, 0.0]]" in said
