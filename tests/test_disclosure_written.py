"""Prompts by a chat model: against a scripted server on a real socket, within budget, resumable."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.client import Server
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.disclosure.written import (
    PromptSpec,
    ledger_name,
    load_wording,
    write_probe,
    writing,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, serving

SEED = "My friend owns a canoe"
THINGS = "tea chess snow maps drums soup trains poems clocks kites rivers ferns stamps lakes owls"


class Friend:
    """A model that lists what the friend collects; every third sentence is of no use."""

    def __init__(self) -> None:
        self.things = iter(THINGS.split())

    def __call__(self, prompt: str, count: int) -> Say:
        n = int(re.search(r"Write (\d+)", prompt)[1])  # type: ignore[index]
        bad = ("My friend is a brave woman.", "Your friend sings.", "My friend owns a canoe.")
        lines = []
        for k in range(n):
            good = f"My friend owns a great many {next(self.things)}."
            lines.append(f"{k + 1}. {bad[k // 3 % 3] if k % 3 == 2 else good}")
        return Say("\n".join(lines))


def _build(store: Store, server: ChatServer | None, **options: Any) -> Build:
    to = Server(server.url, 5.0, 2, max_attempts=2, first_wait_s=0.01) if server else None
    return Build(store, ledger_name("friends"), "run-1", to, **options)


def _spec(**options: Any) -> PromptSpec:
    return PromptSpec(ChatModel("scripted"), replace(load_wording(), at_once=4), **options)


def _prompts(store: Store) -> list[str]:
    rows = store.read("probe_prompt", probe_set="friends").to_pylist()
    return [row["prompt"] for row in sorted(rows, key=lambda row: str(row["prompt_id"]))]


def test_as_many_prompts_as_are_wanted(store: Store) -> None:
    with serving(Friend()) as server:
        done = write_probe(_build(store, server), "friends", [SEED], _spec(n_prompts=6))
    assert done.n_prompts == 6
    prompts = _prompts(store)
    assert prompts[0] == "My friend owns a great many tea, and" and len(set(prompts)) == 6
    asked = store.read("generation_request", benchmark="probe/friends").to_pylist()
    assert {(r["purpose"], r["word"], r["pronoun"]) for r in asked} == {("generate", SEED, "")}
    assert len({body["seed"] for body in server.bodies}) == len(asked) == server.n_asked
    rejects = store.read("reject", stage="prompts", subject="friends").to_pylist()
    assert len(rejects) == done.n_rejects > 0
    assert {r["source_file"] for r in rejects} <= {r["request_id"] for r in asked}
    assert {r["reason"] for r in rejects} == {"holds the gendered word 'woman'"}


def test_a_prompt_with_nearly_the_words_of_another_is_rejected(store: Store) -> None:
    near = "My friend owns a great many old clocks."  # 7 of 8 words
    said = Say(f"1. My friend owns a great many clocks.\n2. {near}\n3. My friend rows.")
    with serving(lambda *_: said) as server:
        write_probe(_build(store, server), "friends", [SEED], _spec(n_prompts=3, rounds=1))
    assert set(_prompts(store)) == {
        "My friend owns a great many clocks, and",
        "My friend rows, and",
    }
    (row,) = store.read("reject", stage="prompts", subject="friends").to_pylist()
    assert (row["excerpt"], row["reason"]) == (near, "nearly repeats another sentence")


def test_what_can_t_be_written_is_said_in_one_line(store: Store, tmp_path: Path) -> None:
    with (
        serving(lambda *_: Say("I'm sorry, but I can't help with that.")) as server,
        pytest.raises(BadInput, match="no usable prompt"),
    ):
        write_probe(_build(store, server), "friends", [SEED], _spec(rounds=1))
    for problem, name, seeds in (
        ("is imported", "topics", [SEED]),
        ("has to start with", "friends", ["Your friend"]),
        ("has to start with", "friends", []),
    ):
        with pytest.raises(UsageProblem, match=problem):
            write_probe(_build(store, None), name, seeds, _spec())
    file = tmp_path / "200.toml"
    file.write_text('at_once = 200\nwrite = "{n} such as {seed}"')
    first = writing(SEED, PromptSpec(ChatModel("m"), load_wording(file)), {}).request
    assert first is not None and first.prompt == f"200 such as {SEED}"
