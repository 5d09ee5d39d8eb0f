"""The report in a real browser, from the disk: links, sorting, search, phone width, no traffic."""

import base64
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.query.connection import connect, lock
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser, violations
from tests.metric_rows import corpus_row, fill, shard_row
from tests.page_queries import check_page
from tests.test_explorer import explored
from tests.test_report import build_world

_COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
_SAID = "document.getElementById('shown-').textContent"
_TOLD = "document.getElementById('told-').textContent"
_LISTED = "[...document.querySelectorAll('#list- a')].map(a => a.textContent)"
_WORDS = "document.querySelector('#words table')"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A small closed world with a name in it that needs quoting."""
    store = Store.open(tmp_path_factory.mktemp("browsed") / "warehouse")
    build_world(store, name="it's $top")
    fill(store, "corpus", [corpus_row()])
    fill(store, "corpus_shard", [shard_row()])
    return store


@pytest.fixture(scope="module")
def index(warehouse: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(warehouse, tmp_path_factory.mktemp("browsed") / "report")[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The searches of words and pairs."""
    store = explored(tmp_path_factory.mktemp("explored"))
    return write_report(store, tmp_path_factory.mktemp("site") / "site")[0].parent


def _asked(driven: Browser) -> set[str]:
    """Names of the files that the open page asked for; nothing complained."""
    assert not [event for event in driven.events if event["method"] in _COMPLAINTS]
    asked = [e["params"] for e in driven.events if e["method"] == "Network.requestWillBeSent"]
    urls = {one["request"]["url"].split("#")[0] for one in asked}
    assert all(url.startswith(("data:", "file:")) for url in urls)
    return {url.rpartition("/")[2] for url in urls if not url.startswith("data:")}


@pytest.mark.slow
def test_every_query_gives_what_stands_above_it(warehouse: Store, index: Path) -> None:
    with connect(warehouse) as connection:
        lock(connection)
        first = check_page(index, connection)
        names = check_page(index.with_name("appendix.html"), connection)
    assert len(first) >= 6 and any(name.startswith("lean-") for name in first)
    assert len(names) > 15 and len(set(names)) == len(names)


def test_the_policy_allows_this_script_and_style_only(index: Path) -> None:
    text = index.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert re.findall(r"(\S+)-src (?=\S)", policy.replace("'self' ", "")) == [
        *("default", "img", "style", "script")
    ]
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


@pytest.mark.parametrize("name", ["index.html", "appendix.html"])
def test_a_page_asks_for_nothing_and_its_links_lead_somewhere(
    driven: Browser, index: Path, name: str
) -> None:
    driven.resize(1280, 900)
    driven.open(index.with_name(name))
    drawn = driven.ask("document.querySelectorAll('.chart svg').length")
    assert drawn == driven.ask("document.querySelectorAll('.chart').length") >= 4
    assert _asked(driven) == {name, "vega.js"}
    links = "[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))"
    for link in driven.ask(links):
        page, _, anchor = link.partition("#")
        path = index.with_name(page or name)
        assert path.is_file() and (not anchor or f'id="{anchor}"' in path.read_text("utf-8")), link
    if name == "index.html":
        assert index.stat().st_size < 400_000
        assert driven.ask(r"document.body.innerText.split(/\s+/).length") < 1500
        assert driven.ask("document.documentElement.scrollHeight") < 3.6 * 900


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_pages_fit_and_axe_finds_nothing(
    driven: Browser, index: Path, site: Path, scheme: str, width: int
) -> None:
    driven.resize(width, 844)
    driven.colours(scheme)
    searched = [site / f"{page}#{key}" for page, key in (("words.html", "tea"), ("pairs.html", ""))]
    for page in (index, index.with_name("appendix.html"), *searched):
        path, _, key = str(page).partition("#")
        driven.open(Path(path))
        if key:
            go(driven, key)
            shown_thing(driven, key)
        driven.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert driven.ask("document.documentElement.scrollWidth") <= width
        assert violations(driven) == [], (page, scheme, width)
        assert not driven.ask("document.querySelectorAll('.chart svg > rect[fill=white]').length")
    driven.ask("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\">')")
    assert {found.partition(":")[0] for found in violations(driven)} >= {"image-alt"}


def test_a_point_says_what_it_is_and_leads_to_its_word(driven: Browser, index: Path) -> None:
    driven.resize(1280, 900)
    driven.open(index)
    point = "document.querySelector('.chart .mark-symbol path')"
    driven.ask(f"{point}.scrollIntoView({{block: 'center'}})")
    centre = f"(b => [b.x + b.width / 2, b.y + b.height / 2])({point}.getBoundingClientRect())"
    x, y = driven.ask(centre)
    driven.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    driven.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 0.5, y=y)
    tip = str(driven.ask("document.getElementById('vg-tooltip-element').textContent"))
    assert re.search(r"word\d+.*x_nats.*y_nats", tip, re.DOTALL)
    for kind in ("mousePressed", "mouseReleased"):
        driven.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    wait(driven, r"/words\.html#word\d+$/.test(location.href)")


def _column(driven: Browser, i: int) -> list[Any]:
    rows = f"[...{_WORDS}.tBodies[0].rows].filter(r => !r.hidden)"
    cell = f"r.cells[{i}].dataset.value ?? r.cells[{i}].textContent"
    return list(driven.ask(f"{rows}.map(r => {cell})"))


def test_a_heading_sorts_and_a_search_filters(driven: Browser, index: Path) -> None:
    driven.open(index.with_name("appendix.html"))
    before = [float(v) for v in _column(driven, 2)]
    heading = f"{_WORDS}.tHead.rows[0].cells[2]"
    driven.ask(f"{heading}.querySelector('button').focus()")
    for expected, said in ((sorted(before), "ascending"), (sorted(before)[::-1], "descending")):
        press_enter(driven)
        assert [float(v) for v in _column(driven, 2)] == expected
        assert driven.ask(f"{heading}.getAttribute('aria-sort')") == said
    driven.ask(f"{_WORDS}.tHead.rows[0].cells[1].querySelector('button').click()")
    words = _column(driven, 1)
    assert words == sorted(words, key=lambda word: int(word.removeprefix("word")))
    assert driven.ask(f"{heading}.getAttribute('aria-sort')") is None
    search = "document.querySelector('#words input')"
    told = "document.querySelector('#words [role=status]').textContent"
    for typed, left in (("WORD1", [w for w in words if w.startswith("word1")]), ("", words)):
        driven.ask(f"{search}.value = '{typed}'; {search}.dispatchEvent(new Event('input'))")
        assert _column(driven, 1) == left
        assert driven.ask(told) == (f"{len(left)} of {len(words)} rows" if typed else "")


def wait(driven: Browser, expression: str) -> None:
    """Until an expression holds on a page that is loaded."""
    end = time.monotonic() + 20
    while not driven.ask(f"document.readyState === 'complete' && ({expression})"):
        assert time.monotonic() < end, expression
        time.sleep(0.02)


def shown_thing(driven: Browser, key: str) -> str:
    """What the page shows of a thing, once it does."""
    is_open = "!document.getElementById('shown-').hidden"
    wait(driven, f"{is_open} && {_SAID}.startsWith({json.dumps(key)})")
    return str(driven.ask(_SAID))


def go(driven: Browser, address: str) -> None:
    driven.ask(f"location.hash = {json.dumps(address)}")


def typed(driven: Browser, text: str, told: str) -> None:
    """Type a text in the empty field, and wait until the page has told ``told``."""
    field = "document.getElementById('search-')"
    driven.ask(f"{field}.focus(); {field}.value = ''")
    driven.call("Input.insertText", text=text)
    wait(driven, f"{_TOLD} === {json.dumps(told)}")


def press_enter(driven: Browser) -> None:
    enter: dict[str, object] = {"key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}
    for kind in ("keyDown", "keyUp"):
        driven.call("Input.dispatchKeyEvent", type=kind, **enter)


def test_links_open_things_from_the_disk(driven: Browser, site: Path) -> None:
    for page, key, said in (
        ("words.html", "été", r"(leans to|no clear lean).*over \d+ documents"),
        ("pairs.html", "plain/3", r"no score"),
    ):
        driven.open(site / page)
        go(driven, quote(key, safe=""))
        text = shown_thing(driven, key)
        assert re.search(said, text) and r"\x1b[2J" in text and "<b>" in text
        assert driven.ask("document.querySelectorAll('#shown- script, #shown- b').length") == 0
        assert driven.ask("document.activeElement.id") == "shown-"
        assert _asked(driven) == {page, "0.js"}


def test_what_is_typed_filters_the_list_and_opens_the_thing_it_names(
    driven: Browser, site: Path
) -> None:
    driven.open(site / "words.html")
    typed(driven, "WORD1", "2 other words")  # words that begin so, in any case
    shown_thing(driven, "word1")
    assert driven.ask(_LISTED) == ["word10", "word11"]
    assert driven.ask("document.activeElement.id") == "search-"
    go(driven, "%zz")
    driven.ask("document.activeElement.blur()")
    typed(driven, "zebra", "No words with “zebra” here")
    assert driven.ask("document.getElementById('shown-').hidden") is True
    driven.open(site / "pairs.html")
    typed(driven, "NURSE le", "2 pairs")
    typed(driven, "art", "2 pairs")  # art, whole, before artist
    assert [text[:10] for text in driven.ask(_LISTED)] == ["Art is wha", "The artist"]
    typed(driven, "nurse other", "1 pair")
    press_enter(driven)
    shown_thing(driven, "other/0 she/they")
    assert driven.ask("location.hash") == "#other%2F0%20she%2Fthey"
    driven.ask("document.querySelector('#shown- a').click()")  # to the word, and back to its pairs
    wait(driven, "location.href.endsWith('words.html#nurse')")
    shown_thing(driven, "nurse")
    driven.ask("document.querySelector('#shown- a[href^=pairs]').click()")
    wait(driven, f"location.href.includes('pairs.html') && {_TOLD}.endsWith('pairs')")
    assert driven.ask("document.getElementById('search-').value") == "nurse"
