"""What `plumbline why` prints and writes, and what it says where it has no answer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from plumbline.jobs.association.associations import associate
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.schema.corpus_tables import ANSWERS
from plumbline.warehouse.storage.store import Store

#: What a terminal obeys, a page runs, and Markdown and a spreadsheet read as their own.
NASTY = "\x1b[31m <script>alert(1)</script> | *not* ` &lt; \u202e\x9b"
SOURCES = ("Pile-CC", "<b>\x1b[2J|", "=cmd")
WORDS = ("tea", "rum", "été", "ete", "ôtô")


def texts(rng: np.random.Generator, n: int) -> Iterator[str]:
    for k in range(n):
        parts = [
            f"{rng.choice(WORDS)} v{rng.integers(60)} {NASTY if k % 3 == 0 else ''} "
            f"{rng.choice(['she', 'he', 'queen', 'king'])} w{rng.integers(60)} x{k}"
            for _ in range(6)
        ]
        yield " ".join(parts)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Corpus c with its documents; bare without them; far, whose documents are elsewhere; pile."""
    top = tmp_path_factory.mktemp("asked")
    store, path = Store.open(top / "w"), top / "a.jsonl"
    with path.open("w") as file:
        for k, text in enumerate(texts(np.random.default_rng(0), 90)):
            record = {"text": text, "meta": {"pile_set_name": SOURCES[k % 3]}}
            file.write(json.dumps(record) + "\n")
    # Another window, since corpora counted alike share what was kept.
    count_corpus(store, "far", (path,), CorpusOptions(window=5))
    shutil.rmtree(store.root / "_work")
    count_corpus(store, "c", (path,))
    count_corpus(store, "bare", (path,), CorpusOptions(evidence=False))
    for corpus in ("c", "bare", "far"):
        associate(store, corpus)
    (row,) = store.read("corpus", corpus="c").to_pylist()
    pile = {**row, "corpus": "pile", "source": "imported", "source_field": None}
    store.publish("corpus", [pile], unit="pile", run_id="r")
    counts = [{"corpus": "pile", "word": "tea", "n_word": 5}]
    store.replace("word_count", counts, {"corpus": "pile"}, "r")
    return store


def why(store: Store, *arguments: str) -> Result:
    done = CliRunner().invoke(app, ["why", *arguments, "--warehouse", str(store.root)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def test_json_and_tables(store: Store) -> None:
    found = json.loads(why(store, "tea", "rum", "--corpus", "c", "--format", "json").stdout)
    assert [row["word"] for row in found["rows"]] == ["tea", "rum"]
    stored = store.read("word_evidence", corpus="c").to_pylist()
    assert all(row in stored for row in found["rows"])
    assert set(ANSWERS) <= set(found["wrote"])
    # Words asked about earlier stay; those asked about again are replaced.
    why(store, "rum", "--corpus", "c", "--seed", "5")
    after = store.read("word_snippet", corpus="c").to_pylist()
    assert {(r["word"], r["seed"]) for r in after} == {("tea", 0), ("rum", 5)}


def test_json_has_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    """A word that only he has nearby leans at most so far: the other end is not finite."""
    store, path = Store.open(tmp_path / "w"), tmp_path / "a.jsonl"
    lines = (
        json.dumps({"text": f"he met army{k} and the army. {'x ' * 20} she"}) for k in range(9)
    )
    path.write_text("\n".join(lines))
    count_corpus(store, "c", (path,))
    associate(store, "c")
    shown = why(store, "army", "--format", "json").stdout
    assert "Infinity" not in shown and "NaN" not in shown
    (row,) = json.loads(shown)["rows"]
    (stored,) = store.read("word_evidence", corpus="c").to_pylist()
    assert stored["delta_nats_low"] == -float("inf") and row["delta_nats_low"] is None


def test_a_list_says_its_groups_names(tmp_path: Path) -> None:
    """On every page and in the tables; nothing calls a group female that isn't."""
    store, shard, listed = (tmp_path / name for name in ("w", "a.jsonl", "age.toml"))
    with shard.open("w") as file:
        for k in range(40):
            who = "sailor" if k else "merchant"
            text = f"young {who} youthful he" if k % 2 == 0 else "aged merchant elderly"
            file.write(json.dumps({"text": f"{text} she saw tea"}) + "\n")
    pairs = '[{ a = "aged", b = "young" }, { a = "elderly", b = "youthful" }]'
    named = f'groups = ["older", "younger"]\npairs = {pairs}\n'
    listed.write_text(f'description = "d"\nsource = "s"\n{named}')
    warehouse = Store.open(store)
    count_corpus(warehouse, "c", (shard,), CorpusOptions(targets=str(listed)))
    associate(warehouse, "c")
    shown = why(warehouse, "merchant", "--corpus", "c", "--contrast", "age").stdout
    assert "Text near older words" in shown and "Text near younger words" in shown
    (row,) = warehouse.read("word_evidence").to_pylist()
    assert (row["side_a"], row["side_b"]) == ("older words", "younger words")
    assert set(warehouse.read("word_snippet")["side"].to_pylist()) == {"a", "b"}
    write_report(warehouse, tmp_path / "page")
    for name in ("appendix.html", "words/0.js"):
        page = (tmp_path / "page" / name).read_text()
        assert "older words" in page and "younger words" in page
        assert not re.search(r"\b(fe)?male words|leans? (fe)?male", page)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["tea", "--corpus", "no"], 2, "no"),
        (["tea NEAR", "--corpus", "c"], 2, "query 'tea NEAR': is not complete (give words on"),
        (["tea", "--corpus", "c", "--contrast", "cat/dog"], 2, "contrast 'cat/dog'"),
        (["--corpus", "c"], 2, "none given"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    status: int,
    message: str,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["why", *arguments, "--warehouse", str(store.root)]) == status
    lines = capsys.readouterr().err.strip().splitlines()
    assert message in lines[-1] and len([x for x in lines if "shards/s" not in x]) == 1
