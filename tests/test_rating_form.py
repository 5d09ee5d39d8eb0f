"""The rating form in a real browser: keys, what it keeps, the file it gives, no traffic."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.ratings.answers import import_answers
from plumbline.eval_workers.pairs.ratings.questions import load
from plumbline.eval_workers.pairs.ratings.sheets import RatingDesign, make
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser, browser, program
from tests.metric_rows import fill, pair

NASTY = '</script><script>alert(1)</script> & "x" <img src=http://127.0.0.1/a onerror=alert(2)>'
needs_browser = pytest.mark.skipif(
    program() is None, reason="no Chromium: apt-get install chromium"
)


@pytest.fixture
def form(store: Store, tmp_path: Path) -> Path:
    """The form of one rater with three pairs, one of them hostile."""
    names = ("She", f"She {NASTY}", "She, \u202eand")
    rows = [
        pair("b", str(k), sentence_a=f"{a} ran.", sentence_b=f"He ran {k}.")
        for k, a in enumerate(names)
    ]
    fill(store, "benchmark_pair", rows)
    make(store, "b", RatingDesign(3, ("ana",)), load(), tmp_path / "out", "run")
    return tmp_path / "out" / "ana.html"


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as started:
        yield started


def test_foreign_text_is_escaped(form: Path) -> None:
    text = form.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == 1 and "<img" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text and "\\u202eand" in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "http" not in re.sub(r"http-equiv|http://127\.0\.0\.1/a", "", text)


def press(page: Browser, key: str, code: int) -> None:
    for kind in ("keyDown", "keyUp"):
        text = {" ": " ", "Enter": "\r"}.get(key, "")
        page.call(
            *("Input.dispatchKeyEvent",),
            **{"type": kind, "key": key, "windowsVirtualKeyCode": code},
            **({"text": text} if text and kind == "keyDown" else {}),
        )


@needs_browser
def test_a_rater_fills_it_in_with_keys(
    driven: Browser, form: Path, store: Store, tmp_path: Path
) -> None:
    driven.open(form)
    told = "document.getElementById('told').textContent"
    assert driven.ask(told) == "0 of 6 answered"
    shown = "[...document.querySelectorAll('q')].map(q => q.textContent)"
    assert any(NASTY in text for text in driven.ask(shown)), "as text"
    driven.ask("document.querySelector('input').focus()")
    for _ in range(3):  # yes, by the arrow key, then to the next question
        press(driven, "ArrowRight", 39)
        press(driven, "Enter", 13)
    assert driven.ask(told) == "3 of 6 answered"
    for _ in range(20):  # closed and opened again; what was answered is stored a moment later
        time.sleep(0.2)
        driven.open(form)
        if driven.ask(told) != "0 of 6 answered":
            break
    assert driven.ask(told) == "3 of 6 answered"
    driven.ask("document.getElementById('next').focus()")
    press(driven, "Enter", 13)
    for _ in range(3):  # no, by the space bar
        press(driven, " ", 32)
        press(driven, "Enter", 13)
    assert driven.ask(told) == "6 of 6 answered"
    assert driven.ask("document.activeElement.id") == "download"
    driven.ask("URL.createObjectURL = (blob) => { window.given = blob; return '#' }")
    press(driven, "Enter", 13)
    assert driven.ask("document.querySelectorAll('.done').length") == 3
    back = tmp_path / "ana.csv"
    back.write_text(driven.ask("window.given.text()"), encoding="utf-8")
    [one] = import_answers(store, [back], "run")
    assert one.rejects == [] and [row["answer"] for row in one.rows] == ["yes"] * 3 + ["no"] * 3
    asked = [e for e in driven.events if e["method"] == "Network.requestWillBeSent"]
    urls = {e["params"]["request"]["url"].split(":")[0] for e in asked}
    assert urls <= {"file", "data"}
    for kind in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
        assert [e for e in driven.events if e["method"] == kind] == []


@needs_browser
def test_it_fits_a_phone_and_says_when_nothing_is_kept(driven: Browser, form: Path) -> None:
    driven.resize(360)
    driven.open(form)
    assert driven.ask("document.documentElement.scrollWidth") <= 360
    assert driven.ask("document.getElementById('unsaved').hidden") is True
    driven.ask("Storage.prototype.setItem = () => { throw new Error('full') }")
    driven.ask("document.querySelector('input').click()")
    assert driven.ask("document.getElementById('unsaved').hidden") is False
