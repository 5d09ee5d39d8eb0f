"""`docs/tutorial.md`: its files are written, its commands run in their order, in small sizes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.training import training_options as training
from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")
#: A model and continuations that take no time. The page says nothing about either size.
TINY = training.TrainOptions(600, 32, 1, 2, 64, 16, 3e-3, max_tokens=6_000)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    lines = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines]


def write_texts(directory: Path) -> int:
    """Texts of a closed world as files of 20 documents each; returns how many files."""
    world = write_world(WorldOptions(20_000, 1, "straight", 1), directory.parent / "world")
    texts = list(documents(world.shards[0]))
    directory.mkdir()
    for k in range(0, len(texts), 20):
        (directory / f"{k:05}.txt").write_text("\n\n".join(texts[k : k + 20]), encoding="utf-8")
    return len(range(0, len(texts), 20))


def test_the_page_leads_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.setitem(training.PRESETS, "small", TINY)
    monkeypatch.setenv("PLUMBLINE_DISCLOSURE_MAX_NEW_TOKENS", "2")
    n_files = write_texts(tmp_path / "texts")
    for block in blocks("toml"):
        Path(re.match(r"# ([\w-]+\.toml)", block)[1]).write_text(block, encoding="utf-8")
    said = {}
    for command in commands():
        assert main(command) == 0, (command, capfd.readouterr().err)
        said[command[0]] = capfd.readouterr().out
    assert len(commands()) == 5
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
