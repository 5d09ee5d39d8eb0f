"""The report in a real browser: links, sorting, search, downloads, phone width, no traffic."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Page
from plumbline.pipelines.report.write import make_page, publish
from plumbline.warehouse.query.connection import lock
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser
from tests.metric_rows import fill
from tests.page_queries import check_page
from tests.test_report import build_world, corpus, shard


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """A small closed world with a name in it that needs quoting."""
    store = Store.open(tmp_path_factory.mktemp("browsed") / "warehouse")
    build_world(store, name="it's $top")
    fill(store, "corpus", [corpus()])
    fill(store, "corpus_shard", [shard()])
    return Facts(store.root)


@pytest.fixture(scope="module")
def page(facts: Facts) -> Page:
    return make_page(facts)


@pytest.fixture(scope="module")
def index(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(page, tmp_path_factory.mktemp("browsed") / "report")


@pytest.mark.slow
def test_every_query_gives_what_stands_above_it(facts: Facts, index: Path) -> None:
    lock(facts.connection)
    names = check_page(index, facts.connection)
    assert len(names) > 15 and len(set(names)) == len(names)


def test_the_policy_allows_this_script_and_style_only(index: Path) -> None:
    text = index.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert re.findall(r"(\S+)-src (?=\S)", policy.replace("'self' ", "")) == [
        *("default", "img", "style", "script"),
    ]
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_nothing_is_asked_for_and_nothing_complains(driven: Browser, index: Path) -> None:
    driven.open(index)
    broken = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a =>"
    assert driven.ask(f"{broken} !document.getElementById(a.hash.slice(1))).length") == 0
    asked = [e["params"]["request"]["url"] for e in _events(driven, "Network.requestWillBeSent")]
    own = {path.resolve().as_uri() for path in (index, index.with_name("vega.js"))}
    assert {url for url in asked if not url.startswith("data:")} == own
    drawn = "document.querySelectorAll('.chart svg').length"
    assert driven.ask(drawn) == driven.ask("document.querySelectorAll('.chart').length") > 10
    for kind in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
        assert _events(driven, kind) == []


def _events(driven: Browser, method: str) -> list[dict[str, Any]]:
    return [event for event in driven.events if event["method"] == method]


_PAIRS = "document.querySelector('#pairs table')"


def _column(driven: Browser, i: int) -> list[Any]:
    return list(
        driven.ask(
            f"[...{_PAIRS}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[{i}]"
            ".dataset.value ?? r.cells["
            f"{i}].textContent)"
        )
    )


def test_a_heading_sorts(driven: Browser, index: Path) -> None:
    driven.open(index)
    before = [float(v) for v in _column(driven, 1)]
    heading = f"{_PAIRS}.tHead.rows[0].cells[1]"
    driven.ask(f"{heading}.querySelector('button').focus()")
    for expected, said in ((sorted(before), "ascending"), (sorted(before)[::-1], "descending")):
        for kind in ("keyDown", "keyUp"):
            enter: dict[str, object] = {"key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}
            driven.call("Input.dispatchKeyEvent", type=kind, **enter)
        assert [float(v) for v in _column(driven, 1)] == expected != before
        assert driven.ask(f"{heading}.getAttribute('aria-sort')") == said
    driven.ask(f"{_PAIRS}.tHead.rows[0].cells[2].querySelector('button').click()")
    words = _column(driven, 2)
    assert words == sorted(
        words, key=lambda w: [int(p) if p.isdigit() else p.lower() for p in re.split(r"(\d+)", w)]
    )
    assert driven.ask(f"{heading}.getAttribute('aria-sort')") is None


def test_search_filters_and_says_how_many(driven: Browser, index: Path) -> None:
    driven.open(index)
    n = len(_column(driven, 0))
    search = "document.querySelector('#pairs input')"
    driven.ask(f"{search}.value = 'MODEL-SWAPPED'; {search}.dispatchEvent(new Event('input'))")
    left = _column(driven, 0)
    assert 0 < len(left) < n and set(left) == {"model-swapped"}
    told = "document.querySelector('#pairs [role=status]').textContent"
    assert driven.ask(told) == f"{len(left)} of {n} rows"
    driven.ask(f"{search}.value = ''; {search}.dispatchEvent(new Event('input'))")
    assert len(_column(driven, 0)) == n and driven.ask(told) == ""
