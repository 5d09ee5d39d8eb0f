"""Builds against a scripted server on a real socket: complete, resumable, within budget."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.chat_session import Build, Server
from plumbline.eval_workers.chat.retries import RetryPolicy
from plumbline.eval_workers.writing.build import judge_pairs, pair_sentences, write_sentences
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.written_sentences import Written, WrittenSentence
from plumbline.warehouse.errors import BadInput, Interrupted
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, good_script, serving

SPEC = BuildSpec(model="scripted", n_sentences=3)
WORDS = ["clock", "garden", "window", "spoon"]
QUICK = RetryPolicy(concurrency=4, max_attempts=4, first_wait_s=0.01, longest_wait_s=5.0)


def _build(store: Store, server: ChatServer | None, run_id: str = "run-1", **options: Any) -> Build:
    to = Server(server.url, 5.0, options.pop("policy", QUICK)) if server else None
    return Build(store, "demo", run_id, to, **options)


def _texts(written: list[Written]) -> list[tuple[str, str, str]]:
    return [(s.word, s.pronoun, s.text) for p in written for s in p.kept]


def _requests(store: Store) -> list[dict[str, Any]]:
    return store.read("generation_request", benchmark="demo").to_pylist()


def test_a_build_ends_complete(store: Store) -> None:
    with serving(lambda *asked: replace(good_script(*asked), delay_s=0.1)) as server:
        written = write_sentences(_build(store, server), WORDS, SPEC)
    assert [p.word for p in written] == WORDS
    assert Counter((w, p) for w, p, _ in _texts(written)) == {
        (word, pronoun): 3 for word in WORDS for pronoun in ("she", "he")
    }
    assert all(p.balances() for p in written)
    assert server.n_asked == 8 and set(server.asked.values()) == {1}
    rows = _requests(store)
    assert len(rows) == 8
    assert {r["status"] for r in rows} == {"replied"} and {r["n_attempts"] for r in rows} == {1}
    for row in rows:
        assert row["reply"] == good_script(row["prompt"], 1).text
        assert row["n_input_tokens"] == len(row["prompt"].split())
        assert row["n_output_tokens"] == len(row["reply"].split())
        assert row["n_tokens_most"] == row["n_input_tokens"] + row["n_output_tokens"]
        assert row["cost"] is None and row["error"] is None and row["run_id"] == "run-1"
    assert {body["temperature"] for body in server.bodies} == {0.7}
    assert {body["seed"] for body in server.bodies} == {1}
    assert 1 < server.most_at_once <= 4


def _mixed(prompt: str, count: int) -> Say:
    """Lists of which a part is unusable in every way; revisions that do the second time."""
    if "write" in prompt and "different" in prompt:
        good = good_script(prompt, count).text.splitlines()
        pronoun = good[0].split()[1]
        bad = [f"2. {pronoun} left the room at once.", "3. no end"]
        return Say("\n".join([good[0], *bad, *good[1:2]]))
    if "Change this sentence" in prompt:
        return Say("I left the room at once.")
    say = good_script(prompt, count)
    return replace(say, text=say.text.replace("He found", "He lost"))


def test_every_sentence_is_kept_rejected_or_revised(store: Store) -> None:
    with serving(_mixed) as server:
        written = write_sentences(_build(store, server), WORDS[:2], SPEC)
    for p in written:
        assert p.balances()
        assert len({s.text for s in p.kept}) == len(p.kept) == 6
        assert p.n_revised > 0 and p.rejected
    rejects = store.read("reject").to_pylist()
    assert len(rejects) == sum(len(p.rejected) for p in written)
    assert any(r["reason"] == "does not start like a sentence" for r in rejects)
    ids = {r["request_id"]: r for r in _requests(store)}
    for row in rejects:
        assert row["excerpt"] in ids[row["source_file"]]["reply"]
    rounds = {(r["purpose"], r["round"]) for r in ids.values()}
    assert {("generate", 1), ("revise", 1), ("revise", 2)} <= rounds
    second = next(r for r in ids.values() if (r["purpose"], r["round"]) == ("revise", 2))
    assert "Here is a draft: I left the room at once." in second["prompt"]


def test_revisions_use_the_wordings_in_turn_and_are_replayed_with_their_number(
    store: Store,
) -> None:
    def stubborn(prompt: str, count: int) -> Say:
        return Say("1. The room was empty.") if "different" in prompt else Say("Still no change.")

    ten = replace(SPEC, n_sentences=1, generate_rounds=1, revise_rounds=10)
    with serving(stubborn) as server:
        made = write_sentences(_build(store, server), ["clock"], ten)
    assert server.n_asked == 2 * (1 + 10) and ten.wordings.revise and SPEC.n_revisions == 40
    assert not made[0].kept and made[0].balances()
    assert set(made[0].rejected.values()) == {"lacks the word after all revisions"}
    openings = [w.split("{")[0][:12] for w in ten.wordings.revise]
    for row in _requests(store):
        if row["purpose"] == "revise":
            assert row["prompt"].startswith(openings[(row["round"] - 1) % 4])
    assert write_sentences(_build(store, None), ["clock"], ten) == made
    with pytest.raises(BadInput, match="revise"):
        write_sentences(_build(store, None), ["clock"], replace(ten, revise_rounds=None))
    assert len(_requests(store)) == 22, "what was recorded stays"


def test_longer_sentences_are_kept_where_length_is_only_asked_for(store: Store) -> None:
    def wordy(prompt: str, count: int) -> Say:
        say = good_script(prompt, count)
        return replace(say, text=say.text.replace(" the clock", " the clock and one more of them"))

    spec = replace(SPEC, max_words=8, generate_rounds=1)
    with serving(wordy) as server:
        (strict,) = write_sentences(_build(store, server), ["clock"], spec)
        n_asked = server.n_asked
        (kept,) = write_sentences(
            _build(store, server), ["clock"], replace(spec, reject_longer=False)
        )
    assert server.n_asked == n_asked, "both ask the same"
    lengths = [len(s.text.split()) for s in kept.kept]
    assert len(lengths) == 6 and max(lengths) > 8
    assert len(strict.kept) == sum(n <= 8 for n in lengths)
    assert set(strict.rejected.values()) == {"has more than 8 words"} and not kept.rejected


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
        timeout_s = 0.5 if flaw == "late" else 60.0
        build = replace(_build(store, server), server=Server(server.url, timeout_s, QUICK))
        spec = replace(SPEC, n_sentences=1)
        written = write_sentences(build, ["clock"], spec)
    assert len(_texts(written)) == 2
    assert set(server.asked.values()) == {3}
    for row in _requests(store):
        assert row["n_attempts"] == 3 and row["status"] == "replied"
        assert "attempt 1: " in row["error"] and "attempt 2: " in row["error"]
        charged = flaw not in ("429", "500")
        known = row["n_input_tokens"] + row["n_output_tokens"]
        assert (row["n_tokens_most"] > known) == charged
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
        (Say("model unknown", 404), BadInput, "status 404: model unknown", 1),
        (_error("no quota", "insufficient_quota", 429), Interrupted, "no quota", 1),
        (Say("later", 429, headers={"Retry-After": "3600"}), Interrupted, "wait 3600 s", 1),
    ],
)
def test_what_stops_a_build_and_resuming_it(
    store: Store, say: Say, error: type[Exception], named: str, n_attempts: int
) -> None:
    with serving(lambda prompt, count: say) as server:
        with pytest.raises(error, match=named):
            write_sentences(_build(store, server), WORDS, SPEC)
        assert server.n_asked <= QUICK.concurrency * n_attempts
        assert max(server.asked.values()) == n_attempts
        server.script = good_script
        written = write_sentences(_build(store, server, "run-2"), WORDS, SPEC)
    assert len(_texts(written)) == 24
    assert max(row["n_attempts"] for row in _requests(store)) == n_attempts + 1
    with pytest.raises(Interrupted, match="ConnectError"):  # that server is down by now
        write_sentences(_build(store, server), ["lamp"], SPEC)
    assert {r["n_tokens_most"] for r in _requests(store) if r["word"] == "lamp"} == {0}


def test_a_filtered_prompt_counts_as_an_empty_reply(store: Store) -> None:
    def filtered(prompt: str, count: int) -> Say:
        refused = _error("filtered", "content_filter", 400)
        return refused if '"garden"' in prompt else good_script(prompt, count)

    with serving(filtered) as server:
        written = write_sentences(_build(store, server), ["clock", "garden"], SPEC)
    assert [len(p.kept) for p in written] == [6, 0]
    assert Counter(r["status"] for r in _requests(store)) == {"replied": 2, "refused": 6}
    assert {body["seed"] for body in server.bodies} == {1, 2, 3}, "three rounds, told apart"


def test_a_replay_is_the_build_again(store: Store, tmp_path: Path) -> None:
    with serving(_mixed) as server:
        written = write_sentences(_build(store, server), WORDS, SPEC)
    assert write_sentences(_build(store, None, "run-2"), WORDS, SPEC) == written
    # From the table alone, as in a warehouse that was copied without its work.
    copy = Store.open(tmp_path / "copy")
    copy.replace("generation_request", _requests(store), {"benchmark": "demo"}, "run-1")
    assert write_sentences(_build(copy, None, "run-2"), WORDS, SPEC) == written
    assert _requests(copy) == _requests(store)
    with pytest.raises(BadInput, match=r"no reply to request .* \(generate, word 'lamp', she\)"):
        write_sentences(_build(store, None), [*WORDS, "lamp"], SPEC)


PAIRS: list[dict[str, object]] = [
    {
        "pair_id": str(k),
        "word": "clock",
        "sentence_a": f"She wound clock {k}.",
        "sentence_b": f"He wound clock {k}.",
    }
    for k in range(4)
]


def test_pairs_with_an_unlikely_or_unclear_side_are_dropped(store: Store) -> None:
    def judging(prompt: str, count: int) -> Say:
        if "He wound clock 1." in prompt:
            return Say("Unlikely, I think.")
        if "She wound clock 2." in prompt:
            return Say("likely or unlikely")
        if "He wound clock 3." in prompt:
            return Say("Likely." if "single word" in prompt else "Hm.")
        return Say("**Likely**")

    with serving(judging) as server:
        judged = judge_pairs(_build(store, server), PAIRS, SPEC)
    assert [pair["is_natural"] for pair in judged] == [True, False, False, True]
    assert [(row["source_row"], row["reason"]) for row in store.read("reject").to_pylist()] == [
        (2, "the he side is unlikely"),
        (3, "the answers about the she side are unclear"),
    ]
    assert server.n_asked == 8 + 2
    assert {body["temperature"] for body in server.bodies} == {0}


def test_conversions_are_asked_for_until_they_are_right(store: Store) -> None:
    def converting(prompt: str, count: int) -> Say:
        if "Ann" in prompt:
            return Say("No idea.")
        seen.append(prompt)
        return Say("They saw his smile." if len(seen) > 1 else "They saw the smile.")

    seen: list[str] = []
    unclear = [
        WrittenSentence("They saw her smile.", "smile", "she", "r", 1),
        WrittenSentence("Ann saw her smile.", "smile", "she", "r", 2),
    ]
    with serving(converting) as server:
        written = Written("smile", kept=unclear)
        done = pair_sentences(_build(store, server), [written], SPEC)
    assert [pair["sentence_b"] for pair in done.pairs] == ["They saw his smile."]
    (row,) = done.rejects
    assert str(row["reason"]).endswith(": the reply changes more than pronouns")
    assert server.n_asked == 2 + 3
    # At temperature 0 the same answer would come again.
    assert Counter(body["temperature"] for body in server.bodies) == {0: 2, 0.7: 1 + 2}
