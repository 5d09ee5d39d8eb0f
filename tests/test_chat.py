"""Requests to a server: retries, resuming, budget, ledger, and the key that stays secret."""

import json
import logging
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from plumbline.eval_workers.chat.ledger import open_ledger, read_ledger
from plumbline.eval_workers.chat.requests import Reply, Request, Spent
from plumbline.eval_workers.writing.build import write_sentences
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, completion, good_script, serving
from tests.test_generation import N_AT_ONCE, SPEC, WORDS, build, requests

# Retries and stops


FLAWS = {
    "429": Say("slow down", 429, headers={"Retry-After": "0.3"}),
    "500": Say("oops", 500),
    "cut": Say("1. She wound the clock.", cut=True),
    "no choices": Say(body=b'{"choices": []}'),
    "no JSON": Say(body=b'{"choices": ['),
    "no object": Say(body=b"[1, 2]"),
    "late": Say("too late", delay_s=1.5),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_what_fails_is_tried_again(store: Store, flaw: str) -> None:
    def flawed(prompt: str, count: int) -> Say:
        return FLAWS[flaw] if count <= 2 else good_script(prompt, count)

    with serving(flawed) as server:
        order = build(store, server)
        timeout_s = 0.5 if flaw == "late" else 60.0
        order = replace(order, server=replace(order.server, timeout_s=timeout_s))
        write_sentences(order, ["clock"], replace(SPEC, n_sentences=1))
    assert set(server.asked.values()) == {3}
    for row in requests(store):
        assert row["n_attempts"] == 3 and row["status"] == "replied"
        assert "attempt 1: " in row["error"] and "attempt 2: " in row["error"]
        known = row["n_input_tokens"] + row["n_output_tokens"]
        assert (row["n_tokens_most"] > known) == (flaw not in ("429", "500"))
    if flaw == "429":
        first, *_, last = sorted(server.times)
        assert last - first >= 0.6


def _error(message: str, code: str, status: int) -> Say:
    error = {"error": {"message": message, "code": code}}
    return Say(status=status, body=json.dumps(error).encode())


@pytest.mark.parametrize(
    ("say", "error", "named", "n_attempts"),
    [
        (Say("down", 503), Interrupted, r"4 attempts: status 503: down; 0 of 4 words", 4),
        (Say("model unknown", 400), BadInput, "status 400: model unknown", 1),
        (Say("model unknown", 401), BadInput, "status 401: model unknown", 1),
        (_error("no quota", "insufficient_quota", 429), Interrupted, "no quota", 1),
        (Say("later", 429, headers={"Retry-After": "3600"}), Interrupted, "wait 3600 s", 1),
    ],
)
def test_what_stops_a_build_and_resuming_it(
    store: Store, say: Say, error: type[Exception], named: str, n_attempts: int
) -> None:
    with serving(lambda prompt, count: say) as server:
        with pytest.raises(error, match=named):
            write_sentences(build(store, server), WORDS, SPEC)
        assert server.n_asked <= N_AT_ONCE * n_attempts
        assert max(server.asked.values()) == n_attempts
        server.script = good_script
        written = write_sentences(build(store, server, "run-2"), WORDS, SPEC)
    assert sum(len(p.kept) for p in written) == 24
    assert max(row["n_attempts"] for row in requests(store)) == n_attempts + 1
    with pytest.raises(Interrupted, match="ConnectError"):  # that server is down by now
        write_sentences(build(store, server), ["lamp"], SPEC)
    assert {r["n_tokens_most"] for r in requests(store) if r["word"] == "lamp"} == {0}


def test_a_filtered_prompt_counts_as_an_empty_reply(store: Store) -> None:
    def filtered(prompt: str, count: int) -> Say:
        refused = _error("filtered", "content_filter", 400)
        return refused if '"garden"' in prompt else good_script(prompt, count)

    with serving(filtered) as server:
        written = write_sentences(build(store, server), ["clock", "garden"], SPEC)
    assert [len(p.kept) for p in written] == [6, 0]
    assert Counter(r["status"] for r in requests(store)) == {"replied": 2, "refused": 6}
    assert {body["seed"] for body in server.bodies} == {1, 2, 3}, "three rounds, told apart"


# The budget


def _request(round: int = 1) -> Request:
    return SPEC.request("generate", "clock", "she", round, n=2)


def test_a_budget_is_exceeded_only_beyond_its_limits() -> None:
    found = [Spent(*one).excess(2, 10) for one in ((2, 10), (3, 10), (2, 11))]
    assert found == [None, "2 requests", "10 tokens"]


def test_the_budget_of_tokens_holds_at_the_most_a_request_can_cost(store: Store) -> None:
    with serving(good_script) as server, pytest.raises(Interrupted, match="exceed 1200 tokens"):
        write_sentences(build(store, server, max_tokens=1200), WORDS, SPEC)
    spent = sum(r["n_tokens_most"] for r in requests(store))
    assert 0 < spent <= 1200


def test_tokens_that_are_not_told_count_at_the_most(store: Store) -> None:
    def silent(prompt: str, count: int) -> Say:
        return Say(body=completion(good_script(prompt, count).text, prompt, usage=False))

    with serving(silent) as server:
        write_sentences(build(store, server), ["clock"], SPEC)
    for row in requests(store):
        assert row["n_input_tokens"] is None
        assert row["n_tokens_most"] == len(row["prompt"].encode()) + 64 + 3 * (40 + 16) + 64


# The ledger


@pytest.mark.parametrize("cut", (1, 20, 39))
def test_a_torn_last_line_is_dropped_wherever_it_was_torn(store: Store, cut: int) -> None:
    def ask(round: int, run_id: str) -> Path:
        with open_ledger(store, "demo") as ledger:
            request = _request(round)
            row = ledger.begin(request, Spent(1, 99), run_id)
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


def test_a_request_is_known_by_all_that_makes_it() -> None:
    changes: dict[str, object] = {"model": "other", "prompt": "other", "purpose": "revise"}
    changes |= {"parameters": (("temperature", 0.1),), "word": "other", "pronoun": "he", "round": 2}
    others = [replace(_request(), **{name: value}) for name, value in changes.items()]
    assert len({r.request_id for r in [_request(), *others]}) == 8
    unseeded = replace(SPEC, send_seed=False).request("judge", "w", "she", 1)
    assert dict(unseeded.parameters).keys() == {"max_tokens", "temperature", "response_format"}


# The key

KEY = 'sk-secret/"4711"+déjà'.encode("ascii", "ignore").decode()
SPELLINGS = {KEY, json.dumps(KEY)[1:-1], quote(KEY), quote(KEY, safe="")}
ECHOES = {
    "error": Say(f"Incorrect API key provided: {KEY}.", 401),
    "error body": Say(body=f"no JSON {KEY}".encode(), status=500),
    "escaped": Say(body=json.dumps({"error": {"message": KEY, "at": KEY}}).encode(), status=400),
    "quoted": Say(f"see /login?key={quote(KEY, safe='')}", 403),
    "reply": Say(f"1. She wound the clock {KEY}."),
    "no choices": Say(body=json.dumps({"choices": [], "key": KEY}).encode()),
    "finish reason": Say(body=completion("x", "x").replace(b"stop", quote(KEY).encode())),
    "header": Say("slow", 429, headers={"Retry-After": f"3600{quote(KEY)}", "X-Key": quote(KEY)}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_the_key_stays_secret_though_the_server_repeats_it(
    store: Store,
    echo: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLUMBLINE_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    said = ""
    with serving(lambda prompt, count: ECHOES[echo]) as server:
        try:
            with recorded(store, "benchmark build", {"words": ["clock"]}) as run_id:
                write_sentences(build(store, server, run_id), ["clock"], SPEC)
        except PlumblineError as e:
            said = "".join(traceback.format_exception(e)) + repr(e) + repr(e.args)
            said += repr(e.__cause__) + repr(e.__context__)
    assert server.keys == {f"Bearer {KEY}"}
    files = [path for path in store.root.rglob("*") if path.is_file()]
    written = "\n".join(str(path) + path.read_bytes().decode("latin-1") for path in files)
    seen = "\n".join([said, *capfd.readouterr(), caplog.text, written])
    seen += json.dumps(requests(store)) + str(store.read("reject").to_pylist())
    seen += str(store.read("run").to_pylist())
    assert len(requests(store)) > 0
    assert not any(spelling in seen for spelling in SPELLINGS)
    assert "[key]" in seen or echo == "header"
