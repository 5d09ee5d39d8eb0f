"""Prices, what is set aside, what a build would take, and what the ledger keeps of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.chat.budget import Budget, BudgetMeter, Price, Spent, most, price_of
from plumbline.eval_workers.chat.client import ChatClient
from plumbline.eval_workers.chat.ledger import open_ledger, read_ledger
from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.writing.build import judge_pairs, write_sentences
from plumbline.eval_workers.writing.forecast import forecast
from plumbline.eval_workers.writing.written_sentences import write
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, completion, good_script, serving
from tests.test_generation import SPEC, WORDS, _build, _requests


def _request(round: int = 1) -> Request:
    return SPEC.request("generate", "clock", "she", round, n=2)


def test_what_is_set_aside_is_waited_for_before_the_budget_is_said_to_be_spent() -> None:
    async def run() -> list[object]:
        meter = BudgetMeter(Budget(max_tokens=100), Spent(1, 20))
        await meter.set_aside(Spent(1, 60))
        waiting = asyncio.create_task(
            meter.set_aside(Spent(1, 30))
        )  # 110 if both came to their most
        await asyncio.sleep(0.01)
        seen: list[object] = [waiting.done()]
        await meter.settle(Spent(1, 60), Spent(1, 10))
        await waiting
        with pytest.raises(Interrupted, match="could exceed 100 tokens"):
            await meter.set_aside(Spent(1, 71))
        return [*seen, meter.spent]

    assert asyncio.run(run()) == [False, Spent(2, 30)]


@pytest.mark.parametrize("cut", (1, 20, 39))
def test_a_torn_last_line_is_dropped_wherever_it_was_torn(store: Store, cut: int) -> None:
    def ask(round: int, run_id: str) -> Path:
        with open_ledger(store, "demo") as ledger:
            request = _request(round)
            row = ledger.begin(request, Spent(1, 99), run_id, has_price=False)
            reply = Reply(request.request_id, "1. She wound the clock.", "stop", 10, 5)
            ledger.end(row, reply, Spent(1, 15), 0.5)
            return ledger.path

    ask(1, "run")
    path = ask(2, "run")
    whole = path.read_bytes()
    path.write_bytes(whole[: -(len(whole.splitlines()[-1]) * cut // 40 + 1)])
    with open_ledger(store, "demo") as ledger:
        assert set(ledger.replies) == {_request(1).request_id}
        assert ledger.spent == Spent(2, 15 + 99)  # the second may have been paid for
    ask(2, "run-3")
    held = read_ledger(store, "demo")
    assert len(held.replies) == 2 and held.spent == Spent(3, 129)
    row = held.rows[_request(2).request_id]
    assert (row["n_attempts"], row["run_id"]) == (2, "run-3")
    assert row["error"] == "attempt 1: the run ended before a reply"


def test_a_ledger_is_read_from_its_file_or_the_table(store: Store, tmp_path: Path) -> None:
    assert not read_ledger(store, "demo").replies
    with serving(good_script) as server:
        write_sentences(_build(store, server), WORDS, SPEC)
    held, path = read_ledger(store, "demo"), read_ledger(store, "demo").path
    assert len(held.replies) == 8 == held.spent.n_requests
    copy = Store.open(tmp_path / "copy")
    copy.replace("generation_request", _requests(store), {"benchmark": "demo"}, "r")
    before_files = sorted(copy.root.rglob("*"))
    assert (
        read_ledger(copy, "demo").replies == held.replies
        and read_ledger(copy, "demo").spent == held.spent
    )
    assert sorted(copy.root.rglob("*")) == before_files, "reading writes nothing"
    content = path.read_bytes()
    path.write_bytes(content + b'{"request_id": "x')  # what another process is writing
    assert read_ledger(store, "demo").replies == held.replies
    assert path.read_bytes().startswith(content)


def test_a_request_is_known_by_all_that_makes_it() -> None:
    changes: dict[str, object] = {"model": "other", "prompt": "other", "purpose": "revise"}
    changes |= {"parameters": (("temperature", 0.1),), "word": "other", "pronoun": "he", "round": 2}
    others = [replace(_request(), **{name: value}) for name, value in changes.items()]
    assert len({r.request_id for r in [_request(), *others]}) == 8
    unseeded = replace(SPEC, send_seed=False).request("judge", "w", "she", 1)
    assert dict(unseeded.parameters).keys() == {"max_tokens", "temperature", "response_format"}


def test_the_estimate_of_a_well_behaved_model_is_what_it_asks_for(
    store: Store, tmp_path: Path
) -> None:
    """Against a build on a real socket: requests exactly, tokens by the characters sent."""
    prices = tmp_path / "prices.toml"
    prices.write_text('currency = "EUR"\n[models.scripted]\ninput = 1.0\noutput = 2.0\n')
    assert price_of("scripted", prices) == Price(1.0, 2.0, "EUR")
    told = forecast(WORDS, replace(SPEC, prices=str(prices)))
    with serving(good_script) as server:
        written = write_sentences(_build(store, server), WORDS, SPEC)
        kept = [s for p in written for s in p.kept]
        pairs: list[dict[str, object]] = [
            {"pair_id": s.text, "word": s.word, "sentence_a": s.text, "sentence_b": f"{s.text}!"}
            for s in kept
        ]
        judge_pairs(_build(store, server), pairs, SPEC)
    rows = _requests(store)
    assert told.n_requests == len(rows) == server.n_asked == 8 + 2 * 24
    characters = sum(len(r["prompt"]) for r in rows)
    # A little more than was needed: it takes all sentences to be of the greatest length.
    assert 1.0 <= told.n_input_tokens / (characters / 4 + 8 * len(rows)) < 1.15
    assert told.cost == pytest.approx((told.n_input_tokens + 2 * told.n_output_tokens) / 1e6)
    assert told.n_requests_most == 8 * (3 * (1 + 3 * 40) + 2 * 2 * 3) + 4 * 3 * 3
    unjudged = forecast(WORDS, replace(SPEC, judge=False))
    assert (unjudged.n_requests, unjudged.n_requests_most) == (8, 8 * 363 + 36)


TEXTS = [
    "She wound the clock.",
    "He wound the clock.",
    "She sold the old clock to a friend.",
    "He hid the clock from a friend in the cellar.",
    "Her sister heard the clock.",
    "His brother stopped the clock twice.",
    "The room was empty.",
    "The house was cold and dark.",
    "She was late.",
    "He was early.",
    "no sentence",
    "Her clock woke him.",
]


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
@settings(max_examples=150)
def test_whatever_is_replied_every_sentence_has_one_fate(
    chance: Random, n_sentences: int, revise_rounds: int, generate_rounds: int
) -> None:
    """Replies drawn at random, arriving in any order: the end is the same."""
    spec = replace(
        SPEC,
        n_sentences=n_sentences,
        revise_rounds=revise_rounds,
        generate_rounds=generate_rounds,
    )
    drawn: dict[str, Reply] = {}

    def reply(request: Request) -> Reply:
        if request.request_id not in drawn:
            n = chance.choice([0, 1, 1, 2, 5]) if request.purpose == "generate" else 1
            lines = [f"{k}. {chance.choice(TEXTS)}" for k in range(1, n + 1)]
            drawn[request.request_id] = Reply(request.request_id, "\n".join(lines))
        return drawn[request.request_id]

    async def ask(request: Request) -> Reply:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        return reply(request)

    one, other = (asyncio.run(write("clock", spec, ask)) for _ in range(2))
    assert one == other and one.balances()
    assert one.n_in == sum(len(sentences(r.text)) for r in drawn.values())
    for pronoun in ("she", "he"):
        assert sum(s.pronoun == pronoun for s in one.kept) <= n_sentences
    places = [(s.request_id, s.position) for s in [*one.kept, *one.rejected]]
    assert len(places) == len(set(places))


def test_the_budget_of_tokens_and_money_holds_at_the_most_a_request_can_cost(store: Store) -> None:
    price = Price(input=10.0, output=100.0, currency="EUR")
    with serving(good_script) as server:
        with pytest.raises(Interrupted, match="exceed 1200 tokens"):
            write_sentences(_build(store, server, budget=Budget(None, 1200)), WORDS, SPEC)
        spent = sum(r["n_tokens_most"] for r in _requests(store))
        most = max(len(r["prompt"].encode()) for r in _requests(store)) + 64 + 232
        assert 1200 - most < spent <= 1200
        build = _build(store, server, budget=Budget(max_cost=0.07), price=price)
        with pytest.raises(Interrupted, match=r"exceed a cost of 0\.07"):
            write_sentences(build, [f"word{c}" for c in "abcdefghijkl"], SPEC)
    rows = [r for r in _requests(store) if r["cost"] is not None]
    assert rows and 0.03 < sum(r["cost"] for r in rows) <= 0.07
    for row in rows:
        wanted = row["n_input_tokens"] * 10e-6 + row["n_output_tokens"] * 100e-6
        assert row["cost"] == pytest.approx(wanted)


def test_requests_that_wait_for_the_budget_end_when_asking_stops(store: Store) -> None:
    refused = Say("no such model", 404, delay_s=0.2)
    budget = Budget(max_tokens=most(_request(), None).n_tokens + 100)
    with serving(lambda *_: refused) as server, pytest.raises(BadInput, match="no such model"):
        write_sentences(_build(store, server, budget=budget), WORDS, SPEC)
    assert server.n_asked == 1


def test_an_attempt_that_raises_an_unexpected_error_counts_at_the_most(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[tuple[Spent, Spent]] = []
    settle = BudgetMeter.settle

    async def noted(meter: BudgetMeter, at_most: Spent, actual: Spent) -> None:
        settled.append((at_most, actual))
        await settle(meter, at_most, actual)

    async def broken(*_: object) -> Reply:
        raise ZeroDivisionError

    monkeypatch.setattr(BudgetMeter, "settle", noted)
    monkeypatch.setattr(ChatClient, "attempt", broken)
    with serving(good_script) as server, pytest.raises(ZeroDivisionError):
        write_sentences(_build(store, server), ["clock"], SPEC)
    assert settled and all(at_most == actual for at_most, actual in settled)


def test_a_budget_is_exceeded_only_beyond_its_limits() -> None:
    budget = Budget(max_requests=2, max_tokens=10, max_cost=0.5)
    assert Spent(2, 10, 0.5).excess(budget) is None
    found = [Spent(*one).excess(budget) for one in ((3, 10, 0.5), (2, 11, 0.5), (2, 10, 0.6))]
    assert found == ["2 requests", "10 tokens", "a cost of 0.5"]


def test_tokens_that_are_not_told_count_at_the_most(store: Store) -> None:
    def silent(prompt: str, count: int) -> Say:
        return Say(body=completion(good_script(prompt, count).text, prompt, usage=False))

    with serving(silent) as server:
        write_sentences(_build(store, server), ["clock"], SPEC)
    for row in _requests(store):
        assert row["n_input_tokens"] is None
        assert row["n_tokens_most"] == len(row["prompt"].encode()) + 64 + 3 * (40 + 16) + 64
