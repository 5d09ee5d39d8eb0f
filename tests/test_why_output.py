"""What `plumbline why` prints and writes, with and without documents, and for unknown words."""

import json
import re
import shlex
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
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.corpus_tables import ANSWERS
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill
from tests.test_association import counted
from tests.test_why import write

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
def asked(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Corpus c with its documents; bare without them; far, whose documents are elsewhere; pile."""
    top = tmp_path_factory.mktemp("asked")
    store, some = Store.open(top / "w"), [*texts(np.random.default_rng(0), 90)]
    path = write(top / "a.jsonl", some, [SOURCES[k % 3] for k in range(90)])
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


def test_json_and_tables(asked: Store) -> None:
    found = json.loads(why(asked, "tea", "rum", "--corpus", "c", "--format", "json").stdout)
    assert [row["word"] for row in found["rows"]] == ["tea", "rum"]
    stored = asked.read("word_evidence", corpus="c").to_pylist()
    assert all(row in stored for row in found["rows"])
    assert set(ANSWERS) <= set(found["wrote"])
    # Words asked about earlier stay; those asked about again are replaced.
    why(asked, "rum", "--corpus", "c", "--seed", "5")
    after = asked.read("word_snippet", corpus="c").to_pylist()
    assert {(r["word"], r["seed"]) for r in after} == {("tea", 0), ("rum", 5)}


def test_json_has_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    """A word that only he has nearby leans at most so far: the other end is not finite."""
    store = Store.open(tmp_path / "w")
    some = [f"he met army{k} and the army. {'x ' * 20} she" for k in range(9)]
    count_corpus(store, "c", (write(tmp_path / "a.jsonl", some),))
    associate(store, "c")
    shown = why(store, "army", "--format", "json").stdout
    assert "Infinity" not in shown and "NaN" not in shown
    (row,) = json.loads(shown)["rows"]
    (stored,) = store.read("word_evidence", corpus="c").to_pylist()
    assert stored["delta_nats_low"] == -float("inf") and row["delta_nats_low"] is None


def test_a_list_says_its_groups_names(tmp_path: Path) -> None:
    """On every page and in the tables; nothing calls a group female that isn't."""
    store, shard, listed = (tmp_path / name for name in ("w", "a.jsonl", "age.toml"))
    some = ["young merchant youthful he she saw tea"]
    some += ["young sailor youthful he she saw tea"] * 19
    write(shard, [*some, *["aged merchant elderly she saw tea"] * 20])
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
    ("command", "message"),
    [
        ("why tea --corpus no", "no"),
        ("why 'tea NEAR' --corpus c", "query 'tea NEAR': is not complete (give words on"),
        ("why tea --corpus c --contrast cat/dog", "contrast 'cat/dog'"),
        ("why --corpus c", "none given"),
        ("why teas --corpus c", "or was left out (similar words: tea)"),
        ("why xqzt --corpus c", "or was left out (docs/corpora.md#what-is-a-token)"),
        ("corpus concordance xqzt --corpus c", "word 'xqzt': 'xqzt' is not a counted word of c"),
        ("corpus concordance 'tea xqzt' --corpus c", "phrase 'tea xqzt': 'xqzt' is not a counted"),
        ("corpus concordance 'tea rum tea rum tea rum' --corpus c", "has more than 5 words"),
        ("corpus concordance 'tea NEAR she xqzt' --corpus c", "(give counted words, or F"),
        ("corpus concordance 'NEAR she' --corpus c", "is not complete"),
        ("corpus concordance ' ' --corpus c", "is not complete"),
    ],
)
def test_errors_are_one_line(
    command: str,
    message: str,
    asked: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(command), "--warehouse", str(asked.root)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert message in lines[-1] and len([x for x in lines if "shards/s" not in x]) == 1


def test_spanish_words_near_he_are_not_ranked(store: Store) -> None:
    rows = [delta(word, nats) for word, nats in (("nurse", 1.0), ("que", -4.6), ("también", 2.0))]
    fill(store, "word_delta", rows + [{**row, "contrast": "her/him"} for row in rows])
    ranked = rows_of(store.root, "FROM word_lean WHERE is_ranked")
    assert {r["word"] for r in ranked if r["contrast"] == "she/he"} == {"nurse"}
    assert sum(r["contrast"] == "her/him" for r in ranked) == len(rows)


def test_without_documents_a_word_of_the_contrast_and_an_unknown_contrast_are_told(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    counted(store)
    fill(store, "word_delta", [delta("tea", 1.0)])
    (row,) = store.read("corpus").to_pylist()
    where = ["--warehouse", str(store.root)]
    for targets in ("gendered", None):  # counted, and imported
        store.replace("corpus", [{**row, "targets": targets}], {"corpus": "c"}, "r")
        assert main(["why", "tea", "--contrast", "foo/bar", *where]) == 2
        assert "no word has a delta of 'foo/bar', only of she/he" in capsys.readouterr().err
        assert main(["why", "she", *where]) == 0
        assert "has no lean in c: it is a word of she/he, or doesn't" in capsys.readouterr().out


def test_without_documents_a_word_leans_by_its_own_interval(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by q, which is for all words of the contrast."""
    counted(store)
    word = {"corpus": "c", "contrast": "she/he", "word": "tea", "n_word": 9}
    bound = {"sides_nats": 1.0, "sides_nats_low": 0.1, "sides_nats_high": 1.9, "p": 0.03, "q": 0.3}
    fill(store, "word_bound", [{**word, **bound, "n_pair_f": 8, "n_pair_m": 1}])
    fill(store, "word_delta", [delta("tea", 1.0)])
    assert main(["why", "tea", "--warehouse", str(store.root)]) == 0
    assert "“tea” leans to she in c: +1.00 nats" in capsys.readouterr().out
