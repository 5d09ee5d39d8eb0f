"""Continuing prompts by a model or a server: none is drawn twice, seeds apart, caches noticed."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.client import ServerOptions
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Sample, SamplingOptions, SeededPrompt
from plumbline.eval_workers.scoring.served_samples import ServedModel, sample_from_server
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Sampler, Say, serving
from tests.prompt_rows import put_prompts
from tests.steps import sample_set

HOW = SamplingOptions(temperature=6.0, max_new_tokens=12)
PROMPTS = ("The nurse said", "He drank tea.", "She drank tea.")
#: The last prompt is the same text as a side of another one.
PERTURBED = ("The clerk said", "She drank tea.", None)


def fill(store: Store) -> None:
    put_prompts(store, "demo", PROMPTS, PERTURBED)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[SeededPrompt]:
    """Every draw that reaches the model, in order."""
    seen: list[SeededPrompt] = []
    compute = CausalModel.continue_

    def watched(
        self: CausalModel, draws: Sequence[SeededPrompt], options: SamplingOptions
    ) -> list[Sample]:
        seen.extend(draws)
        return compute(self, draws, options)

    monkeypatch.setattr(CausalModel, "continue_", watched)
    return seen


def _sample(store: Store, model: Path, n: int, how: SamplingOptions = HOW) -> Any:
    return sample_set(store, "demo", str(model), ModelOptions(), how, n)


def _rows(store: Store) -> list[dict[str, Any]]:
    return store.read("continuation").to_pylist()


def test_more_samples_draw_the_further_ones_and_other_seeds_are_other_rows(
    store: Store, model: Path, drawn: list[SeededPrompt], tmp_path: Path
) -> None:
    fill(store)
    _sample(store, model, 3)
    before = _rows(store)
    drawn.clear()
    assert _sample(store, model, 3).n_new == 0
    assert not drawn and _rows(store) == before
    done = _sample(store, model, 7)
    assert (done.n_new, len(_rows(store)), len(drawn)) == (5, 35, 16)
    after = _rows(store)
    assert [r for r in after if r["sample"] < 3] == before
    _sample(store, model, 2)
    assert len(_rows(store)) == 35  # fewer: what is there stays
    fresh = Store.open(tmp_path / "fresh")
    fill(fresh)
    _sample(fresh, model, 7)
    assert _rows(fresh) == after
    other = _sample(store, model, 7, SamplingOptions(temperature=6.0, max_new_tokens=12, seed=1))
    key = done.partition["sampling_key"]
    assert other.partition["sampling_key"] != key and other.n_new == 5
    assert [r for r in _rows(store) if r["sampling_key"] == key] == after
    same = {r["continuation"] for r in after} & {
        r["continuation"] for r in _rows(store) if r["sampling_key"] != key
    }
    assert len(same) < 3


SERVED = SamplingOptions(max_new_tokens=20)


def honest(body: dict[str, Any]) -> Say:
    """What it says depends on all that it is asked, as a sampler's does."""
    text = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return Say(f" {text}")


def _served(store: Store, server: ChatServer, n: int, how: SamplingOptions = SERVED) -> Any:
    where = ServerOptions(server.url, 10.0, 4)
    return sample_from_server(store, "demo", ServedModel("m"), where, how, n, "run")


@pytest.mark.parametrize(
    ("sampler", "n", "n_texts", "n_asked"),
    [
        (lambda body: honest({**body, "seed": 0}), 30, 4, 20),
        (lambda body: honest({**body, "seed": body["seed"] % 2}), 30, 8, 120),
        (lambda body: Say(""), 2, 4, 8),
    ],
)
@pytest.mark.slow
def test_a_server_that_ignores_seeds_or_caches_is_told(
    store: Store, sampler: Sampler, n: int, n_texts: int, n_asked: int
) -> None:
    fill(store)
    with serving(sampler=sampler) as server:
        said = f"{n_texts} different texts for {n_asked} seeds of 4 prompts: the server ignores"
        with pytest.raises(BadInput, match=said):
            _served(store, server, n)
        assert server.n_asked == n_asked  # the rest was not paid for
        server.sampler = honest
        fixed = SamplingOptions(max_new_tokens=20, seed=1)
        assert _served(store, server, n, fixed).n_done == 5
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
        done = _served(store, server, 6)
        assert (done.n_wanted, done.n_done, done.n_rejected) == (5, 4, 1)
        assert (len(_rows(store)), server.n_asked) == (24, 24)
        assert _served(store, server, 6).n_rejected == 1 and server.n_asked == 24
    (reject,) = store.read("reject", stage="sample").to_pylist()
    assert reject["reason"] == (
        "prompt 00, original: the server ended it with 'content_filter', not stop or length"
    )
    for row in _rows(store):
        cut = row["seed"] % 2 == 0
        assert (row["finish"], row["n_tokens"]) == (("length", 4) if cut else ("stop", None))
