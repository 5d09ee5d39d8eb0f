"""The search of sentence pairs: its figures against the tables, and the page in a browser."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from plumbline.pipelines.report.explorer import sentence_pairs as pairs_module
from plumbline.pipelines.report.explorer.sentence_pairs import SentencePairs, align, pairs
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.storage.store import Store
from tests.browser import Browser, browser, violations
from tests.metric_rows import association, delta, fill, pair, score, scored_by
from tests.test_explorer import index_of, needs_browser, press, records, wait
from tests.test_report_browser import _events

EPSILON = math.log(1.65)
MODELS = ("model-a", "model-b", "model-c")
#: Of the pair `plain/0`: a clear preference each way, and one just within epsilon, which three
#: digits would move over it.
RATIOS = (2.0, -1.25, EPSILON - 1e-4)
HOSTILE = "The <b>nurse</b> </script> \x1b[2J saw {0}."


def sentences(template: str, a: str = "she", b: str = "he") -> dict[str, object]:
    return {"sentence_a": template.format(a), "sentence_b": template.format(b)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two benchmarks under three models; tokens of one pair under one of them."""
    store = Store.open(tmp_path_factory.mktemp("pairs") / "w")
    plain = [
        pair("plain", "0", word="Nurse", **sentences("The nurse said {0} left.")),
        pair("plain", "1", is_natural=False, **sentences("The artist said {0} paid.")),
        pair("plain", "2", is_natural=True, **sentences("Art is what {0} paid for.")),
        pair("plain", "3", **sentences(HOSTILE)),
    ]
    groups = {"group_a": "she", "group_b": "they"}
    text = sentences("The nurse said {0} left.", "she", "that they")
    other = [pair("other", "0 she/they", word="nurse", **groups, **text)]
    fill(store, "benchmark_pair", plain, unit="plain")
    fill(store, "benchmark_pair", other, unit="other")
    rng = np.random.default_rng(3)
    for model, ratio in zip(MODELS, RATIOS, strict=True):
        fill(store, "model", [scored_by(model)], unit=model)
        scored = [
            score("plain", str(k), ratio if k == 0 else rng.normal(), model) for k in (0, 1, 2)
        ]
        scored.append(score("plain", "3", -math.inf, model))
        fill(store, "pair_score", scored, unit=f"plain {model}")
    fill(store, "pair_score", [score("other", "0 she/they", -3.0, MODELS[0])], unit="other")
    fill(store, "pair_association", [association("plain", "0", -0.75)])
    fill(store, "word_delta", [delta(word, 0.5) for word in ("nurse", "left", "art")])
    fill(store, "token_logprob", list(tokens()))
    return store


def tokens() -> Iterator[dict[str, object]]:
    """Of model-a and `plain/0`: `left.` is two tokens, and all sum to -10 and -12."""
    for side, said in (("a", " she"), ("b", " he")):
        spelled = ["The", " nurse", " said", said, " le", "ft."]
        values = (-1, -2, -1, -2, -1, -3) if side == "a" else (-1, -2, -1, -4.5, -1, -2.5)
        for k, (token, value) in enumerate(zip(spelled, values, strict=True)):
            of = {"model_key": f"key-{MODELS[0]}", "benchmark": "plain", "pair_id": "0"}
            of |= {"text_id": "t", "run_id": "r", "side": side}
            yield {**of, "position": k, "token_id": k, "token": token, "logprob_nats": value}


@pytest.fixture(scope="module")
def found(store: Store) -> SentencePairs:
    made = pairs(Facts(store))
    assert made is not None
    return made


@pytest.fixture(scope="module")
def page(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(store, tmp_path_factory.mktemp("report")).with_name("pairs.html")


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as started:
        started.resize(1200)
        yield started


def side(ratio: float) -> int:
    return int(np.sign(ratio)) if abs(ratio) > EPSILON else 0


def test_ratios_are_those_of_the_tables_and_stay_on_their_side(
    store: Store, found: SentencePairs, page: Path
) -> None:
    held, index = records(page, "keys"), index_of(page)
    assert list(held) == [one.key for one in found.pairs] and len(held) == 5
    scores: dict[str, dict[str, float]] = {key: {} for key in held}
    for row in store.read("pair_score").to_pylist():
        ratio = row["logprob_a_nats"] - row["logprob_b_nats"]
        scores[f"{row['benchmark']}/{row['pair_id']}"][row["model"]] = ratio
    for key, of_set, prefer in zip(held, index["set"], index["prefer"], strict=True):
        models = [index["models"][k] for k in index["set_models"][of_set]]
        assert set(models) == set(scores[key])
        finite = [r for r in scores[key].values() if math.isfinite(r)]
        assert prefer == [sum(side(r) == s for r in finite) for s in (1, -1)]
        for model, ratio in zip(models, held[key][0], strict=True):
            if math.isfinite(scores[key][model]):
                assert ratio == pytest.approx(scores[key][model], abs=5e-4)
                assert side(ratio) == side(scores[key][model])
            else:
                assert ratio is None
    assert index["epsilon"] == pytest.approx(EPSILON)
    assert round(RATIOS[2], 3) > EPSILON  # what rounding would do


def test_a_pair_says_what_is_known_of_it(found: SentencePairs, page: Path) -> None:
    held, index = records(page, "keys"), index_of(page)
    assert index["sets"] == [["other (she/they)", "she", "they"], ["plain", "female", "male"]]
    assert [record[1] for record in held.values()] == [None, None, False, True, None]
    assert held["plain/0"][2] == ["Nurse", "nurse"] and held["plain/1"][2] is None
    assert held["plain/0"][3] == [[0, -0.75, ["nurse", "nurse"]]] and index["texts"] == ["c"]
    parts = dict(zip(index["keys"], index["parts"], strict=True))
    assert parts["plain/0"] == ["The nurse said", "she", "he", "left."]
    assert parts["other/0 she/they"] == ["The nurse said", "she", "that they", "left."]
    assert parts["plain/3"][0] == r"The <b>nurse</b> </script> \x1b[2J saw"
    # unnatural pairs are not among those furthest out
    furthest = {index["keys"][k] for sides in index["furthest"] for one in sides for k in one}
    assert "plain/0" in furthest and "plain/1" not in furthest


def test_the_log_ratio_by_word_sums_to_that_of_its_tokens(
    store: Store, found: SentencePairs
) -> None:
    of = {one.key: one for one in found.pairs}
    assert {key for key, one in of.items() if one.by_word} == {"plain/0"}
    ((model, values),) = of["plain/0"].by_word
    assert found.models[model] == MODELS[0]
    assert of["plain/0"].rows == [["The"], ["nurse"], ["said"], ["she", "he"], ["left."]]
    assert values == pytest.approx([0, 0, 0, 2.5, -0.5])
    rows = store.read("token_logprob").to_pylist()
    sign = {"a": 1, "b": -1}
    assert sum(values) == pytest.approx(sum(sign[r["side"]] * r["logprob_nats"] for r in rows))


def test_words_of_both_sentences_stand_beside_each_other_once() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        a, b = (list(rng.choice(list("xyz"), rng.integers(0, 7))) for _ in "ab")
        aligned = align(a, b)
        assert [n for i, j, _, _ in aligned for n in range(i, j)] == list(range(len(a)))
        assert [n for _, _, k, m in aligned for n in range(k, m)] == list(range(len(b)))


def test_of_too_many_pairs_each_benchmark_keeps_some(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_module, "_PAIRS", 3)
    few = pairs(Facts(store))
    assert few is not None and few.n_left_out == 2
    assert [one.key for one in few.pairs] == ["other/0 she/they", "plain/0", "plain/1"]


_SAID = "document.getElementById('shown-').textContent"
_TOLD = "document.getElementById('told-').textContent"


def shown(driven: Browser, beginning: str) -> str:
    wait(
        driven,
        f"!document.getElementById('shown-').hidden && {_SAID}.startsWith({json.dumps(beginning)})",
    )
    said: str = driven.ask(_SAID)
    return said


def typed(driven: Browser, text: str) -> None:
    driven.ask("document.getElementById('word-').value = ''")
    driven.ask("document.getElementById('word-').focus()")
    driven.call("Input.insertText", text=text)


def links(driven: Browser, where: str) -> list[str]:
    found: list[str] = driven.ask(
        f"[...document.querySelectorAll('{where} a')].map(a => a.getAttribute('href'))"
    )
    return found


@needs_browser
def test_a_link_opens_a_pair_from_the_disk(driven: Browser, page: Path) -> None:
    driven.open(page)
    driven.ask(f"location.hash = {json.dumps(quote('plain/0', safe=''))}")
    said = shown(driven, "plain/0")
    assert "Made for the word Nurse" in said and "MaxPMI in c: −0.75 nats (nurse)" in said
    rows = driven.ask(
        "[...document.querySelector('#shown- .matrix').tBodies[0].rows].map(r => "
        "[r.cells[0].textContent, r.querySelector('.number').textContent, "
        "r.querySelector('svg').getAttribute('class'), r.cells[2].textContent])"
    )
    assert rows == [  # sorted, and coloured beyond epsilon alone
        ["model-a", "+2.000", "pd first", "female"],
        ["model-c", "+0.501", "pd ", "neither"],
        ["model-b", "−1.250", "pd second", "male"],
    ]
    by_word = driven.ask(
        "[...document.querySelector('.by-word').tBodies[0].rows].map(r => "
        "[...r.cells].map(c => c.textContent))"
    )
    assert by_word[3:] == [
        ["she / he", "+2.50"],
        ["left.", "−0.50"],
        ["all words", "+2.00"],
    ]
    assert links(driven, "#shown-") == ["words.html#nurse", "words.html#nurse"]
    asked = {e["params"]["request"]["url"] for e in _events(driven, "Network.requestWillBeSent")}
    here = page.parent.resolve().as_uri()
    asked = {url.removeprefix(here).split("#")[0] for url in asked if url.startswith("file")}
    assert asked == {"/pairs.html", "/pairs/0.js"}
    driven.ask("location.hash = 'plain%2F3'")
    assert r"<b>nurse</b> </script> \x1b[2J saw" in shown(driven, "plain/3")
    assert "no score" in driven.ask(_SAID)
    for kind in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
        assert _events(driven, kind) == []


@needs_browser
def test_search_by_words_benchmark_and_keyboard(driven: Browser, page: Path) -> None:
    driven.open(page)
    typed(driven, "NURSE le")
    assert driven.ask(_TOLD) == "2 pairs"
    typed(driven, "art")
    assert driven.ask(_TOLD) == "2 pairs"  # art, whole, before artist
    options = driven.ask("[...document.querySelectorAll('[role=option]')].map(o => o.textContent)")
    assert options[0].startswith("Art is what she / he") and options[1].startswith("The artist")
    press(driven, "Enter", text="\r", windowsVirtualKeyCode=13)
    assert "Art is what" in shown(driven, "1 pair with “art”")  # the whole word, if there is one
    assert driven.ask("location.hash") == "#art"
    typed(driven, "artis")
    press(driven, "Enter", text="\r", windowsVirtualKeyCode=13)
    assert "The artist" in shown(driven, "1 pair with “artis”")
    typed(driven, "she nurse")
    assert driven.ask(_TOLD) == "3 pairs"
    press(driven, "ArrowDown")
    press(driven, "ArrowDown")
    active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
    assert driven.ask(f"{active}.textContent").startswith("The nurse said she / he left.")
    press(driven, "Enter", text="\r", windowsVirtualKeyCode=13)
    shown(driven, "plain/0")
    assert driven.ask("location.hash") == "#plain%2F0"
    driven.ask("location.hash = 'nurse'")
    shown(driven, "3 pairs with “nurse”")
    pick = "(s => { s.value = '0'; s.dispatchEvent(new Event('change')) })"
    driven.ask(f"{pick}(document.getElementById('set-'))")
    shown(driven, "1 pair with “nurse”")
    assert links(driven, "#shown-") == ["#other%2F0%20she%2Fthey"]
    for nothing in ("zebra", "%zz", "?"):
        driven.ask(f"location.hash = '{nothing}'")
        wait(driven, f"{_TOLD} === '“{nothing}” is not among these pairs.'")
        assert driven.ask("document.getElementById('shown-').hidden") is True


@needs_browser
def test_a_word_leads_to_its_pairs_and_back(driven: Browser, page: Path) -> None:
    words = page.with_name("words.html")
    driven.open(words)
    driven.ask("location.hash = 'nurse'")
    said = shown(driven, "nurse")
    assert "3 sentence pairs with this word" in said
    driven.events.clear()
    driven.ask("document.querySelector('#shown- a[href^=pairs]').click()")
    while not any(event["method"] == "Page.loadEventFired" for event in driven.events):
        driven.ask("1")
    shown(driven, "3 pairs with “nurse”")
    driven.ask("document.querySelector('#shown- a').click()")
    shown(driven, "other/0 she/they")
    assert links(driven, "#shown-") == ["words.html#nurse"]


@pytest.mark.slow
@needs_browser
def test_it_fits_and_axe_finds_nothing(driven: Browser, page: Path) -> None:
    for scheme, width in (("light", 1200), ("dark", 390)):
        driven.colours(scheme)
        driven.resize(width)
        for address, beginning in (("", ""), ("plain/0", "plain/0"), ("nurse", "3 pairs")):
            driven.open(page)
            if address:
                driven.ask(f"location.hash = {json.dumps(quote(address, safe=''))}")
                shown(driven, beginning)
            else:
                typed(driven, "nurse")
                press(driven, "ArrowDown")
            assert driven.ask("document.documentElement.scrollWidth") <= width, (address, width)
            assert violations(driven) == [], (address, scheme)
    driven.colours("light")
    driven.resize(1200)
