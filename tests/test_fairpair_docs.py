"""`docs/fairpair.md`: its commands, files and queries run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from plumbline.eval_workers.fairpair import fairpair_steps as steps
from plumbline.eval_workers.fairpair.fairpair_options import FairPairSpec, FigureOptions
from plumbline.eval_workers.fairpair.figures.fairpair_set import measure_set
from plumbline.pipelines.command.main import main
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.test_fairpair_command import PROMPTS
from tests.tiny_models import save

PAGE = (REPOSITORY / "docs" / "fairpair.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Every command line, without what sets its environment."""
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[words.index("plumbline") + 1 :] for words in split if words]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files and models, and a warehouse of a few samples, perturbed and measured."""
    monkeypatch.chdir(tmp_path)
    for block in blocks("toml"):
        Path(re.match(r"# ([\w-]+\.toml)", block)[1]).write_text(block, "utf-8")
    for name in ("small-novels", "other"):
        save("gpt2", Path("models") / name)
    Path("few.toml").write_text(PROMPTS)
    spec = FairPairSpec(
        model="models/small-novels", prompts="few.toml", n=12, max_new_tokens=8, n_permutations=9
    )
    store, name = Store.open("out/warehouse"), "common-sents"
    steps.write_prompts(store, name, steps.prompt_rows(store, name, spec), "r")
    drawn = steps.draw(store, name, spec.targets()[0], spec, "r")
    sampled = steps.perturb(store, name, drawn.model_key, drawn.sampling_key, spec, "r")
    for function in ("jaccard", "vader"):
        measure_set(store, sampled, function, part(FigureOptions, spec), "r")
    return tmp_path


@pytest.mark.slow
def test_everything_on_the_page_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would draw or ask is run as a dry run."""
    monkeypatch.setenv("PLUMBLINE_API_KEY", "none")
    assert len(commands()) == 13
    for command in commands():
        tried = [*command, "--dry-run"] if command[:2] == ["fairpair", "run"] else command
        assert main(tried) == 0, command
    store = Store.open("out/warehouse")
    rows = store.read("fairpair_set").to_pylist()
    of = {(r["phi"], r["n_folds"]) for r in rows if r["texts"] == "filtered"}
    assert of == {("jaccard", 0), ("jaccard", 20), ("vader", 0)}
    published = {r["phi"] for r in rows if r["texts"] == "as-published"}
    assert published == {"jaccard", "vader"}
    connection = connect("out/warehouse")
    assert len(blocks("sql")) == 2
    for query in (*blocks("sql"), *re.findall(r'plumbline sql "([^"]+)"', PAGE)):
        found = connection.execute(query).fetchall()
        assert found, query
