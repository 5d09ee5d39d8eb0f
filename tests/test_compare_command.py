"""`plumbline disclosure compare` on a tiny tuned model, from the command to the page."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.fairpair import probe_prompts as prompts
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.mitigation.tune import tune
from plumbline.eval_workers.training.mitigation.tuning_options import TuneOptions
from plumbline.pipelines.command.app import app
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.query.guard import lock
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair
from tests.page_queries import check_page
from tests.prompt_rows import list_file, put_prompts
from tests.tiny_models import SENTENCES, save, save_calm

PROMPTS = [
    f"{subject} {action}, and"
    for subject in ("The clerk", "The nurse", "The crowd", "A technician", "The CEO")
    for action in ("drank tea", "lost the key", "asked for cash", "wrote a report", "waited")
]
WORDS = (("she", "he"), ("her", "his"), ("herself", "himself"))
#: Long enough that a name and two pronouns are less than 15% of the words.
FAIRPAIR = r'''
language = "en"
axis = "gender"
groups = ["m", "f"]
names = [["John", "Jane"]]
occupations = ["nurse", "clerk"]

[templates]
plain = """{name} the {occupation} asked the CEO to produce a report that the crowd who had \
waited could justify in cash."""
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with sets, a benchmark, a base, another one of its shape, and an adapter."""
    root = tmp_path_factory.mktemp("compare")
    base = save_calm(root / "tiny")
    save("neox", root / "other", seed=9)
    store = Store.open(root / "warehouse")
    put_prompts(store, "train", PROMPTS[:15])
    held_out = PROMPTS[15:]
    put_prompts(store, "a<b>", held_out, topics=[f"work & <b> {i}" for i in range(len(held_out))])
    words = list_file(root / "mine.toml", WORDS)
    sides = zip(SENTENCES[0::2], SENTENCES[1::2], strict=True)
    pairs = [pair("mini", f"{i}", sentence_a=f, sentence_b=m) for i, (f, m) in enumerate(sides)]
    fill(store, "benchmark_pair", pairs)
    texts = "\n".join(json.dumps({"text": text}) for text in (*SENTENCES, "<|endoftext|>"))
    (root / "held.jsonl").write_text(texts)
    options = TuneOptions(
        rank=4,
        alpha=8,
        learning_rate=5e-3,
        batch_prompts=8,
        steps=24,
        word_list=words,
    )
    how = (ModelOptions(), options, "run")
    tune(store, str(base), *how, sets=["train"], name="calm", out=root / "adapters")
    shutil.copytree(root / "warehouse", root / "unmeasured")
    return root


def run(root: Path, *more: str, base: str = "tiny", warehouse: str = "warehouse") -> None:
    where = ["--warehouse", str(root / warehouse), "--out", str(root / "page")]
    where += ["--word-list", str(root / "mine.toml"), "--gas-tokens", "6"]
    both = [str(root / base), str(root / "adapters" / "calm")]
    app(["disclosure", "compare", *both, *where, *more], standalone_mode=False)


def checked(root: Path, warehouse: str = "warehouse") -> list[str]:
    """The tables and plots of the page, each compared with its query."""
    connection = connect(root / warehouse)
    lock(connection)
    return check_page(root / "page" / "index.html", connection)


def plain(page: str) -> str:
    """The text of a page."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


@pytest.mark.slow
def test_an_adapter_is_compared_with_its_base(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(made)
    first = capsys.readouterr().out
    assert re.search(r"GLD fell on 1 of 1 set: a<b> fell from 0\.\d+ to 0\.\d+", first)
    assert "Next: plumbline disclosure compare" in first and "--text FILE" in first
    page = (made / "page" / "index.html").read_text()
    assert "<b>" not in page and "a&lt;b&gt;" in page
    assert "Not measured: Perplexity" in plain(page) and "Not measured: FairPair" in plain(page)
    store = Store.open(made / "warehouse")
    scores = Counter(row["model_key"] for row in store.read("pair_score").to_pylist())
    assert list(scores.values()) == [6, 6]
    probed = {row["probe_set"] for row in store.read("pronoun_probability").to_pylist()}
    assert probed == {"a<b>"}  # not what it was tuned on
    before = {
        t: sorted(map(str, store.read(t).to_pylist())) for t in ("pair_score", "continuation")
    }

    monkeypatch.setattr(TransformersBackend, "score", None)  # all there: nothing is scored again
    monkeypatch.setattr(TransformersBackend, "continue_", None)
    (made / "page" / "index.html").unlink()
    run(made, "--text", str(made / "held.jsonl"), "--window", "20")
    second = capsys.readouterr().out
    for table, rows in before.items():
        assert sorted(map(str, store.read(table).to_pylist())) == rows
    found = re.search(r"Perplexity on held .*? from ([\d.]+) to ([\d.]+) \(.*; (\d+) doc", second)
    assert found and found[3] == "12"
    texts: dict[str, list[dict[str, Any]]] = {}
    for row in store.read("perplexity").to_pylist():
        texts.setdefault(row["model_key"], []).append(row)
    keys = {row["model_key"]: row for row in store.read("model").to_pylist()}
    assert texts.keys() == keys.keys() == scores.keys()
    assert len({(row["dtype"], row["quantisation"]) for row in keys.values()}) == 1
    page = plain((made / "page" / "index.html").read_text())
    assert "float32, not quantised" in page and "Not measured: Perplexity" not in page
    for said in second.splitlines():
        if said.startswith(("GAS", "GLD", "ADD")):
            assert said in page
    assert {r["status"] for r in store.read("run").to_pylist()} == {"finished"}
    whole = ["The adapter", "before-after", "Whole sets", "By topic", "Held-out text", "Benchmarks"]
    assert checked(made) == whole
    order = re.findall(r'<section id="([^"]+)"', (made / "page" / "index.html").read_text())
    assert order[:5] == ["answer", "methods", "data", "limits", "disclosure"]
    assert order[-2:] == ["macros", "missing"]


@pytest.mark.slow
def test_a_set_that_was_tuned_on_is_marked_and_fairpair_is_of_both(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (made / "fair.toml").write_text(FAIRPAIR)
    store = Store.open(made / "unmeasured")
    rows = prompts.prompt_rows(prompts.load(made / "fair.toml"), "fair", "r")
    store.replace("probe_prompt", list(rows), {"probe_set": "fair"}, "r")
    counts = ("--n", "8", "--max-new-tokens", "6", "--benchmarks", "")
    run(made, "--sets", "train", "--fairpair", "fair", *counts, warehouse="unmeasured")
    said = capsys.readouterr().out
    assert re.search(r"FairPair, fair by jaccard: F is [\d.]+ .*before and [\d.]+ .*after", said)
    assert "No set that it wasn't tuned on was measured both before and after." in said
    page = plain((made / "page" / "index.html").read_text())
    assert "train: the adapter was, or may have been, tuned on 15 of these prompts" in page
    assert {"Whole sets", "F of each side"} <= set(checked(made, "unmeasured"))


def test_what_is_wrong_is_one_line_before_anything_is_measured(made: Path) -> None:
    store = Store.open(made / "warehouse")
    n_runs = store.read("run").num_rows
    with pytest.raises(BadInput, match=r"calm@\w+: was trained on .*tiny of revision .*, other is"):
        run(made, base="other")
    with pytest.raises(BadInput, match=r"nowhere\.txt: no such file"):
        run(made, "--text", str(made / "nowhere.txt"))
    with pytest.raises(UsageProblem, match=r"--sets nowhere: is not a set of neutral prompts"):
        run(made, "--sets", "nowhere")
    with pytest.raises(UsageProblem, match=r"benchmark 'nowhere': is not in the warehouse"):
        run(made, "--benchmarks", "nowhere")
    with pytest.raises(UsageProblem, match=r"--window 99: has to be 1 to 64"):
        run(made, "--text", str(made / "held.jsonl"), "--window", "99")
    with pytest.raises(UsageProblem, match="probe set 'nowhere'"):
        run(made, "--fairpair", "nowhere")
    assert store.read("run").num_rows == n_runs
