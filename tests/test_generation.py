"""Sentences written, converted and judged by a scripted server on a real socket."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.chat.client import ServerOptions
from plumbline.eval_workers.chat.replies import sentences
from plumbline.eval_workers.chat.requests import Reply, Request
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.writing.build import judge_pairs, pair_sentences, write_sentences
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.written_sentences import Written, WrittenSentence, write
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, good_script, serving

SPEC = BuildSpec(model="scripted", n_sentences=3)
WORDS = ["clock", "garden", "window", "spoon"]
N_AT_ONCE = 4


def build(
    store: Store, server: ChatServer | None, run_id: str = "run-1", ledger: str = "demo", **how: Any
) -> Build:
    """A build that asks a server, or has its replies from the ledger alone."""
    if server is None:
        return Build(store, ledger, run_id, ServerOptions(max_requests=0))
    where = ServerOptions(server.url, 60.0, N_AT_ONCE, **how)
    return Build(store, ledger, run_id, where)


def requests(store: Store) -> list[dict[str, Any]]:
    return store.read("generation_request", benchmark="demo").to_pylist()


def test_longer_sentences_are_kept_where_length_is_only_asked_for(store: Store) -> None:
    def wordy(prompt: str, count: int) -> Say:
        say = good_script(prompt, count)
        return replace(say, text=say.text.replace(" the clock", " the clock and one more of them"))

    spec = replace(SPEC, max_words=8, generate_rounds=1)
    with serving(wordy) as server:
        (strict,) = write_sentences(build(store, server), ["clock"], spec)
        spec = replace(spec, reject_longer=False)
        (kept,) = write_sentences(build(store, None), ["clock"], spec)
    lengths = [len(s.text.split()) for s in kept.kept]
    assert len(lengths) == 6 and max(lengths) > 8
    assert len(strict.kept) == sum(n <= 8 for n in lengths)
    assert set(strict.rejected.values()) == {"has more than 8 words"} and not kept.rejected


PAIRS: list[dict[str, object]] = [
    {"pair_id": str(k), "word": "clock", "sentence_a": f"She wound clock {k}."}
    | {"sentence_b": f"He wound clock {k}."}
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
        judged, rejects = judge_pairs(build(store, server), PAIRS, SPEC)
    assert [pair["is_natural"] for pair in judged] == [True, False, False, True]
    assert [(row["source_row"], row["reason"]) for row in rejects] == [
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
        done = pair_sentences(build(store, server), [written], SPEC)
    assert [pair["sentence_b"] for pair in done.pairs] == ["They saw his smile."]
    (row,) = done.rejects
    assert str(row["reason"]).endswith(": the reply changes more than pronouns")
    # At temperature 0 the same answer would come again.
    assert Counter(body["temperature"] for body in server.bodies) == {0: 2, 0.7: 1 + 2}


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


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=150)
def test_whatever_is_replied_every_sentence_has_one_fate(
    chance: Random, n_sentences: int, generate_rounds: int
) -> None:
    """Replies drawn at random, arriving in any order: the end is the same."""
    spec = replace(SPEC, n_sentences=n_sentences, generate_rounds=generate_rounds)
    drawn: dict[str, Reply] = {}

    async def ask(request: Request) -> Reply:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if request.request_id not in drawn:
            n = chance.choice([0, 1, 1, 2, 5]) if request.purpose == "generate" else 1
            lines = [f"{k}. {chance.choice(TEXTS)}" for k in range(1, n + 1)]
            drawn[request.request_id] = Reply(request.request_id, "\n".join(lines))
        return drawn[request.request_id]

    one, other = (asyncio.run(write("clock", spec, ask)) for _ in range(2))
    assert one == other and one.n_in == len(one.kept) + len(one.rejected) + one.n_revised
    assert one.n_in == sum(len(sentences(r.text)) for r in drawn.values())
    for pronoun in ("she", "he"):
        assert sum(s.pronoun == pronoun for s in one.kept) <= n_sentences
    places = [(s.request_id, s.position) for s in [*one.kept, *one.rejected]]
    assert len(places) == len(set(places))


THEIRS = """
generate = "LIST: {n} {max_words} {word} {pronoun}"
revise = ["MEND1: {word} {pronoun} {sentence}", "MEND2: {forms} {word} {sentence}"]
convert = "TURN: {forms} {sentence}"
judge = "NATURAL: {sentence}"
"""


def test_a_wording_for_every_purpose_is_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(THEIRS, encoding="utf-8")
    spec = BuildSpec(model="m", prompts=str(tmp_path / "mine.toml"))
    she = "she/her/her/herself"
    expected = {
        ("generate", 1): "LIST: 2 10 smile she",
        ("revise", 1): "MEND1: smile she {S}.",
        ("revise", 2): f"MEND2: {she} smile {{S}}.",
        ("revise", 3): "MEND1: smile she {S}.",
        ("convert", 1): f"TURN: {she} {{S}}.",
        ("judge", 2): "NATURAL: {S}.",
    }
    for (purpose, round), prompt in expected.items():
        asked = spec.request(purpose, "smile", "she", round, sentence="{S}.", n=2)  # type: ignore[arg-type]
        assert asked.prompt == prompt and "response_format" not in dict(asked.parameters)
