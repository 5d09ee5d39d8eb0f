"""Continuations from a server: a request a sample, none twice, cached ones noticed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from plumbline.eval_workers.chat.client import Server
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.scoring.served_samples import ServedModel, sample_from_server
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Sampler, Say, serving
from tests.test_sample import fill

HOW = SamplingOptions(max_new_tokens=20)


def honest(body: dict[str, Any]) -> Say:
    """What it says depends on all that it is asked, as a sampler's does."""
    text = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return Say(f" {text}")


def _sample(store: Store, server: ChatServer, n: int, how: SamplingOptions = HOW) -> Any:
    where = Server(server.url, 10.0, 4, 2, 0.01)
    return sample_from_server(store, "demo", ServedModel("m"), where, how, n, "run")


def _rows(store: Store) -> list[dict[str, Any]]:
    return store.read("continuation").to_pylist()


def _ignores_seeds(body: dict[str, Any]) -> Say:
    return honest({**body, "seed": 0})


def _has_few_workers(body: dict[str, Any]) -> Say:
    return honest({**body, "seed": body["seed"] % 2})


@pytest.mark.parametrize(
    ("sampler", "n", "problem", "n_asked"),
    [
        (_ignores_seeds, 30, "4 different texts for 20 seeds of 4 prompts", 20),
        (_has_few_workers, 30, "8 different texts for 120 seeds of 4 prompts", 120),
        (lambda body: Say(""), 2, "4 different texts for 8 seeds of 4 prompts", 8),
    ],
)
@pytest.mark.slow
def test_a_server_that_ignores_seeds_or_caches_is_told(
    store: Store, sampler: Sampler, n: int, problem: str, n_asked: int
) -> None:
    fill(store)
    with serving(sampler=sampler) as server:
        with pytest.raises(BadInput, match=f"the server: {problem}: the server ignores seeds"):
            _sample(store, server, n)
        assert server.n_asked == n_asked  # the rest was not paid for
        server.sampler = honest
        fixed = SamplingOptions(max_new_tokens=20, seed=1)
        assert _sample(store, server, n, fixed).n_done == 5
    assert len(_rows(store)) == 5 * n
    assert {r["sampling_key"] for r in _rows(store)} == {fixed.key}


def test_what_ended_otherwise_is_rejected_and_the_rest_kept(store: Store) -> None:
    fill(store)

    def filtered(body: dict[str, Any]) -> Say:
        if body["prompt"].startswith("The nurse"):
            return Say("", finish="content_filter")
        cut = body["seed"] % 2 == 0
        return Say("a b c " + honest(body).text, finish="length" if cut else "stop")

    with serving(sampler=filtered) as server:
        done = _sample(store, server, 6)
        assert (done.n_wanted, done.n_done, done.n_rejected) == (5, 4, 1)
        assert (len(_rows(store)), server.n_asked) == (24, 24)
        assert _sample(store, server, 6).n_rejected == 1 and server.n_asked == 24
    (reject,) = store.read("reject", stage="sample").to_pylist()
    assert reject["reason"] == (
        "prompt 1, original: the server ended it with 'content_filter', not stop or length"
    )
    for row in _rows(store):
        cut = row["seed"] % 2 == 0
        assert (row["finish"], row["n_tokens"]) == (("length", 4) if cut else ("stop", None))
