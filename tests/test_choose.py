"""Forced choice: known preferences come back, a place's is taken out, nothing is asked twice."""

import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest

from plumbline.eval_workers.chat.replies import chosen
from plumbline.eval_workers.scoring.pair_choices import ChoiceOptions, choose
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Sampler, Say, serving
from tests.test_score import _pairs

N_PAIRS = 150
_SHOWN = re.compile(r"^([12])\. (.*)$", re.M)


def fill(store: Store, n: int = N_PAIRS) -> None:
    """Pairs whose first sentence says she."""
    told = [f"The clerk of room {i + 10} said that {{pronoun}} drank tea." for i in range(n)]
    _pairs(store, told)


def chance(body: dict[str, Any]) -> float:
    """In [0, 1), by all that is asked: the same request gets the same answer."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def chooser(p: float, b: float) -> Sampler:
    """A model that names *she* with probability p + b where that is shown first, else p - b."""

    def answer(body: dict[str, Any]) -> Say:
        shown = dict(_SHOWN.findall(body["messages"][0]["content"]))
        she = next(number for number, text in shown.items() if " she " in text)
        other = next(number for number in shown if number != she)
        return Say(she if chance(body) < (p + b if she == "1" else p - b) else other)

    return answer


def asked(store: Store, server: ChatServer, n: int = 4, **how: Any) -> None:
    options = ChoiceOptions(model="m", n=n, base_url=server.url, **how)
    choose(store, "demo", options, "run")


def test_intervals_hold_what_is_true_in_95_of_100_worlds(store: Store) -> None:
    """Each pair has its own p, from a Beta, and a place counts 0.1; a world is a group of pairs."""
    n_worlds, n_pairs, b = 200, 30, 0.1
    rng = np.random.default_rng(3)
    p = float(rng.beta(1.8, 1.2, 1_000_000).clip(b, 1 - b).mean())
    own = rng.beta(1.8, 1.2, (n_worlds, n_pairs)).clip(b, 1 - b)
    says_a = rng.random((n_worlds, n_pairs, 2, 2)) < (own[..., None] + [b, -b])[..., None]
    fill(store, 1)
    (pair,) = store.read("benchmark_pair").to_pylist()
    pairs = [
        {**pair, "pair_id": f"{k}", "item_id": f"{k}", "group_a": f"{k[0]}", "cluster": f"{k}"}
        for k in np.ndindex(n_worlds, n_pairs)
    ]
    store.publish("benchmark_pair", pairs, unit="demo", run_id="r")
    shared = {"benchmark": "demo", "model_key": "k", "model": "m", "setting": "s", "run_id": "r"}
    rows = [
        {
            **{**shared, "text_id": "t", "request_id": "r", "pair_id": f"{k[:2]}"},
            **{"shown_first": "ab"[k[2]], "ask": k[3], "choice": "ba"[int(a)]},
        }
        for k, a in np.ndenumerate(says_a)
    ]
    store.publish("pair_choice", rows, unit="made", run_id="r")
    found = rows_of(store.root, "FROM forced_choice")
    for name, true in (("preference", p), ("first_share", 0.5 + b)):
        inside = [row[f"{name}_low"] <= true <= row[f"{name}_high"] for row in found]
        assert len(inside) == n_worlds and np.mean(inside) >= 0.95
        assert abs(np.mean([row[name] for row in found]) - true) < 0.01


def test_changed_and_unnatural_pairs(store: Store) -> None:
    fill(store, 5)
    with serving(sampler=chooser(0.7, 0.1)) as server:
        asked(store, server, 1)
        pairs = store.read("benchmark_pair").to_pylist()
        pairs[0]["sentence_a"] = "Now she sings."
        pairs[1]["is_natural"] = False
        store.replace("benchmark_pair", pairs, {"benchmark": "demo"}, "r")
        asked(store, server, 1)
    assert store.read("pair_choice").num_rows == 8
    (row,) = rows_of(store.root, "FROM forced_choice")
    assert server.n_asked == 12 and row["n_asks"] == 8


def test_replies_as_models_write_them() -> None:
    shapes = {
        **dict.fromkeys(("1", "(1)", '"1"', "1\n1", "1. It isn't odd", "Sentence 1"), 1),
        **dict.fromkeys((" 2.\n", "**2**", "# 2", "`2`", "Answer: 2", "2. He drank tea."), 2),
        **dict.fromkeys(("Sentence 1 is more likely.", "**1** is the more natural sentence"), 1),
        "Sentence 2 sounds more natural, since she sings.": 2,
        "<think>1 or 2? 1 is odd.</think>2": 2,
        **dict.fromkeys(("", "Neither 1 nor 2.", "12", "1.5", "3", "They are the same.")),
        **dict.fromkeys(("<think>it is 1", "1 2 1 2", "1, 2", "1 and 2", "1/2", "1\n2", "2 > 1")),
        **dict.fromkeys(("1. She ran. 2. He ran.", "2 beats 1", "Answer: 2\nAnswer: 1")),
        **dict.fromkeys(("2 is unlikely", "**1** is worse.", "1 doesn't read as well as 2")),
        **dict.fromkeys(("1 is more likely to be odd", "1 is more likely than 2", "1 is likely")),
    }
    assert {reply: chosen(reply) for reply in shapes} == shapes


def test_a_model_that_never_chooses_is_noticed_before_all_is_paid_for(store: Store) -> None:
    fill(store)
    with serving(sampler=lambda body: Say("As an AI I have no opinion.")) as server:
        problem = "none of 20 replies names a sentence, the first is 'As an AI I have no opinion.'"
        with pytest.raises(BadInput, match=problem):
            asked(store, server)
        assert server.n_asked == 20
