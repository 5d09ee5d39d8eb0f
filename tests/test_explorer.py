"""The word explorer: its figures against the tables, and the page in a browser, from a disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from scipy import stats

from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import count_corpus
from plumbline.jobs.evidence.explanation import explain, explain_candidates, explain_top
from plumbline.pipelines.report.explorer.explored_words import Explorer, explorer
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.words import clear_words
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser, browser, program, violations
from tests.metric_rows import delta, fill, pair, score, scored_by
from tests.test_report_browser import _events
from tests.test_why_output import SOURCES, texts

needs_browser = pytest.mark.skipif(
    program() is None, reason="no Chromium: apt-get install chromium"
)


def build(store: Store, n_words: int) -> None:
    """Two models' scores of pairs with each word, and its lean in a corpus without documents.

    `word3` has six pairs, enough for an interval, the others two.
    """
    rng, words = np.random.default_rng(11), [f"word{k}" for k in range(n_words)]
    n_of = {"word3": 6}
    pairs = [pair("made", f"{w}-{i}", word=w) for w in words for i in range(n_of.get(w, 2))]
    fill(store, "benchmark_pair", pairs)
    fill(store, "word_delta", [delta(word, rng.normal(), "text-straight") for word in words])
    for model in ("model-straight", "model-swapped"):
        fill(store, "model", [scored_by(model)], unit=model)
        made = [score("made", str(p["pair_id"]), rng.normal(), model) for p in pairs]
        fill(store, "pair_score", made)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Scored pairs for words, their corpora without documents, and a corpus c of nasty text."""
    top = tmp_path_factory.mktemp("explored")
    store, path = Store.open(top / "w"), top / "a.jsonl"
    build(store, 12)
    with path.open("w") as file:
        for k, text in enumerate(texts(np.random.default_rng(0), 90)):
            # Some words of the benchmark are in the text, too.
            record = {"text": f"{text} word3 she", "meta": {"pile_set_name": SOURCES[k % 3]}}
            file.write(json.dumps(record) + "\n")
    count_corpus(store, "c", (path,))
    associate(store, "c")
    explain_top(store, "c", 40, n_with_sentences=30)
    explain_candidates(store, "c")
    explain(store, "c", ["tea"])
    return store


@pytest.fixture(scope="module")
def found(store: Store) -> Explorer:
    made = explorer(Facts(store))
    assert made is not None
    return made


@pytest.fixture(scope="module")
def site(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(store, tmp_path_factory.mktemp("site") / "site").parent


@pytest.fixture(scope="module")
def page(site: Path) -> Path:
    return site / "words.html"


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as started:
        started.resize(1200)
        yield started


def test_leans_and_preferences_are_those_of_the_tables(store: Store, found: Explorer) -> None:
    of = {word.word: word for word in found.words}
    assert len(of) == len(found.words)
    (c,) = (k for k, text in enumerate(found.texts) if text.corpus == "c")
    for row in store.read("word_evidence", corpus="c").to_pylist():
        lean = of[row["word"]].leans[c]
        for name in ("n_word", "delta_nats", "delta_nats_low", "n_pair_f", "clusters"):
            assert lean[name] == row[name], (row["word"], name)
    assert {w for w in of if w.startswith("word")} >= {f"word{k}" for k in range(12)}
    query = "SELECT model, lower(word) AS word, log_ratio_nats AS x FROM scored_pair"
    pairs = rows_of(store, query)
    for word in (of["word3"], of["word7"]):
        assert len(word.preferences) == 2
        for model, benchmark, mean, low, high, n in word.preferences:
            own = [
                p["x"] for p in pairs if (p["model"], p["word"]) == (found.models[model], word.word)
            ]
            expected = stats.t.interval(0.95, len(own) - 1, np.mean(own), stats.sem(own))
            assert n == len(own) and found.benchmarks[benchmark][0] == "made"
            assert mean == pytest.approx(np.mean(own))
            assert (low, high) == (pytest.approx(expected, rel=1e-4) if n > 2 else (None, None))


def test_the_words_that_lean_furthest_do_so_clearly(store: Store, found: Explorer) -> None:
    (text,) = (text for text in found.texts if text.corpus == "c")
    leans = {r["word"]: r for r in store.read("word_evidence", corpus="c").to_pylist()}
    up, down = text.furthest
    assert text.is_clear and up and all(leans[w]["delta_nats_low"] > 0 for w, _ in up)
    assert all(leans[w]["delta_nats_high"] < 0 for w, _ in down)
    assert not {"she", "he"} & {w for w, _ in up + down}
    surest = sorted((-(r["delta_nats_low"] or 0), w) for w, r in leans.items())
    clear = [w for low, w in surest if low < 0 and w not in ("she", "he")]
    q = {r["word"]: r["q"] for r in rows_of(store, "FROM word_lean WHERE corpus = 'c'")}
    assert [w for w, _ in up] == sorted(clear, key=lambda w: not (q[w] or 0) < 0.05)[:15]
    (counted,) = Facts(store).rows("lean_count").where(corpus="c")
    assert counted["n_first"] == len(clear)
    said = clear_words(Facts(store), counted)
    assert f"Of the words of c {len(clear):,} lean to she" in said and "over documents" in said


def index_of(page: Path) -> dict[str, Any]:
    """What a page of an explorer searches."""
    (text,) = re.findall(r'id="index-">(.*?)</script>', page.read_text(), re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def records(page: Path, keys: str = "words") -> dict[str, Any]:
    """What the files beside the page hold of each word or pair."""
    index, held = index_of(page), list[Any]()
    for k in range(-(-len(index[keys]) // index["size"])):
        script = (page.parent / page.stem / f"{k}.js").read_text()
        called = re.fullmatch(rf"plumblineRecords\({k}, (.*)\);\n", script, re.DOTALL)
        assert called and "<" not in script
        held += json.loads(called[1])
    return dict(zip(index[keys], held, strict=True))


def test_files_hold_every_word(found: Explorer, page: Path) -> None:
    held = records(page)
    assert list(held) == [word.word for word in found.words]
    for word in found.words:
        assert held[word.word]["leans"].keys() == {str(k) for k in word.leans}
        for k, row in word.leans.items():
            if row["delta_nats"] is not None:
                assert held[word.word]["leans"][str(k)]["lean"][0] == round(row["delta_nats"], 5)


def test_an_empty_warehouse_has_no_explorer(tmp_path: Path) -> None:
    """And the files of an earlier report go."""
    full, out = Store.open(tmp_path / "full"), tmp_path / "report"
    build(full, 3)
    for warehouse, is_there in ((full, True), (Store.open(tmp_path / "empty"), False)):
        index = write_report(warehouse, out)
        for name in ("words.html", "words/0.js", "pairs.html", "pairs/0.js"):
            assert (out / name).is_file() == is_there
        for name in ("words.html", "pairs.html"):
            assert (name in index.read_text()) == is_there


_SAID = "document.getElementById('shown-').textContent"


def wait(driven: Browser, expression: str) -> None:
    """Until an expression holds; the browser awaits it."""
    again = f"const again = () => ({expression}) ? done() : setTimeout(again, 20); again();"
    driven.ask(f"new Promise((done) => {{ {again} }})")


def open_word(driven: Browser, page: Path, word: str) -> None:
    driven.open(page)
    driven.ask(f"location.hash = {json.dumps(quote(word))}")
    wait(
        driven,
        f"!document.getElementById('shown-').hidden && {_SAID}.startsWith({json.dumps(word)})",
    )


@needs_browser
def test_a_link_opens_a_word_from_the_disk(driven: Browser, page: Path) -> None:
    for word in ("tea", "été"):
        open_word(driven, page, word)
        assert re.search(r"(leans to|no clear lean).*over \d+ documents", driven.ask(_SAID))
        assert r"<b>\x1b[2J|" in driven.ask(_SAID)
    assert driven.ask("document.querySelectorAll('#shown- script, #shown- img').length") == 0
    marks = driven.ask("[...document.querySelectorAll('#shown- mark')].map(m => m.textContent)")
    assert len(marks) == 6 and set(marks) == {"été"}
    asked = {e["params"]["request"]["url"] for e in _events(driven, "Network.requestWillBeSent")}
    here = page.parent.resolve().as_uri()
    assert {url.removeprefix(here).split("#")[0] for url in asked if url.startswith("file")} == {
        "/words.html",
        "/words/0.js",
    }
    for kind in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
        assert _events(driven, kind) == []


def press(driven: Browser, key: str, **more: object) -> None:
    for kind in ("keyDown", "keyUp"):
        driven.call("Input.dispatchKeyEvent", type=kind, key=key, **more)


@needs_browser
def test_search_by_keyboard(driven: Browser, page: Path) -> None:
    driven.open(page)
    driven.ask("document.getElementById('word-').focus()")
    driven.call("Input.insertText", text="ORD1")
    said = "document.getElementById('told-').textContent"
    assert driven.ask(said) == "3 words"  # word1, word10, word11: inside a word, in any case
    options = "[...document.querySelectorAll('[role=option]')]"
    assert driven.ask(f"{options}.map(o => o.firstChild.textContent)") == [
        "word1",
        "word10",
        "word11",
    ]
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        press(driven, key)
    active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    assert driven.ask(f"{active}.firstChild.textContent") == "word10"
    assert driven.ask(f"{active}.getAttribute('aria-selected')") == "true"
    press(driven, "Enter", text="\r", windowsVirtualKeyCode=13)
    wait(driven, f"{_SAID}.startsWith('word10')")
    assert driven.ask("location.hash") == "#word10"
    assert driven.ask("document.activeElement.getAttribute('aria-expanded')") == "false"
    table = driven.ask("document.querySelector('#shown- .matrix').textContent")
    assert "model-straight" in table and "model-swapped" in table
    how = "plumbline why word10 --corpus text-straight"
    assert how in driven.ask(_SAID)
    driven.ask("location.hash = '%zz'")
    wait(driven, f"{said} === '“%zz” is not among these words.'")
    assert driven.ask("document.getElementById('shown-').hidden") is True


@pytest.mark.slow
@needs_browser
def test_it_fits_and_axe_finds_nothing(driven: Browser, page: Path) -> None:
    for scheme, width in (("light", 1200), ("dark", 390)):
        driven.colours(scheme)
        driven.resize(width)
        for word in ("", "tea", "word3"):
            if word:
                open_word(driven, page, word)
            else:
                driven.open(page)
            assert driven.ask("document.documentElement.scrollWidth") <= width, (word, width)
            assert violations(driven) == [], (word, scheme)
    driven.colours("light")
    driven.resize(1200)
