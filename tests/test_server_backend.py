"""Scores by echo are those of the model behind the server; a server whose figures are none is found
out before anything is scored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.remote.echo import spells
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.scoring.scoring_forecast import prospect
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.chat_server import ChatServer, Say, serving
from tests.echo_server import EchoingModel, Fault, echoing, own_place
from tests.tiny_models import KINDS, SENTENCES, save

ACCENTS = ["She said “très bien” to Zoë.", "He said “très bien” to Zoë."]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("served")
    return {kind: save(kind, root / kind) for kind in ("neox", "llama-adds-bos", "opt-adds-bos")}


def opened(url: str, **options: Any) -> Any:
    return open_backend("tiny", ModelOptions(backend="server", base_url=url, **options))


@contextmanager
def _served(saved: dict[str, Path], kind: str) -> Iterator[tuple[ChatServer, EchoingModel, Any]]:
    """A server of a model, itself, and the options that it needs."""
    bos = KINDS[kind].bos
    own = bos if kind.endswith("adds-bos") else ""
    eos = "</s>" if kind == "llama-adds-bos" else ""
    with echoing(saved[kind], own, own_eos=eos) as (server, model):
        yield server, model, {} if own else {"bos": bos}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos", "opt-adds-bos"])
def test_scores_are_those_of_the_model_loaded_here(saved: dict[str, Path], kind: str) -> None:
    """Whether BOS is given or the server puts it (two kinds, one with EOS behind the text)."""
    texts = SENTENCES if kind == "llama-adds-bos" else [*SENTENCES, *ACCENTS]
    here = CausalModel(str(saved[kind]), ModelOptions()).score(texts)
    with _served(saved, kind) as (server, _, options):
        there = check_backend("server", "tiny", texts, base_url=server.url, **options)
    for ours, theirs in zip(there, here, strict=True):
        assert ours.n_tokens == theirs.n_tokens
        assert abs(ours.logprob_nats - theirs.logprob_nats) < 1e-4


def _each(change: Any) -> Fault:
    """A fault of the log-probabilities: what it makes of the list and the number of requests."""

    def fault(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
        found = reply["choices"][0]["logprobs"]
        found["token_logprobs"] = change(found["token_logprobs"], n_asked)

    return fault


def _of_choice(name: str, value: Any) -> Fault:
    return lambda reply, body, n: reply["choices"][0].update({name: value})


def _of_logprobs(**changes: Any) -> Fault:
    def fault(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
        found = reply["choices"][0]["logprobs"]
        found.update({name: change(found[name]) for name, change in changes.items()})

    return fault


def _by_token(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    found = reply["choices"][0]["logprobs"]
    found["token_logprobs"] = [None, *(-1.0 - len(token) for token in found["tokens"][1:])]


def _chat_form(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    """As llama.cpp's server: what was generated, in the form of chats."""
    content = [{"token": " tea", "logprob": -0.5}]
    reply["choices"][0] = {"text": " tea", "logprobs": {"content": content}}


def _last(values: list[Any]) -> list[Any]:
    return values[-1:]


FAULTS: dict[str, Fault] = {
    "nothing": _of_choice("logprobs", None),
    "no choices": lambda reply, *_: reply.pop("choices"),
    "empty": _of_logprobs(tokens=lambda t: [], token_logprobs=lambda t: []),
    "zeros": _each(lambda values, n: [None, *(0.0 for _ in values[1:])]),
    "one value": _each(lambda values, n: [None, *(-2.5 for _ in values[1:])]),
    "generated only": _of_logprobs(tokens=_last, token_logprobs=_last),
    "generated only, as in chats": _chat_form,
    "by position": _each(lambda values, n: [None, *(-0.1 * k - 1 for k in range(len(values) - 1))]),
    "by the token": _by_token,
    "positive": _each(lambda values, n: [None, *(-value for value in values[1:])]),
    "not a number": _each(lambda values, n: [None, float("nan"), *values[2:]]),
    "infinite": _each(lambda values, n: [None, -math.inf, *values[2:]]),
    "as good as infinite": _each(lambda values, n: [None, -9999.0, *values[2:]]),
    "no float": _each(lambda values, n: [None, -(10**400), *values[2:]]),
    "a hole": _each(lambda values, n: [*values[:3], None, *values[4:]]),
    "two tokens before": _of_logprobs(
        tokens=lambda t: [t[0], *t], token_logprobs=lambda v: [None, -1.0, *v[1:]]
    ),
    "a token left out": _of_logprobs(
        tokens=lambda t: [*t[:4], *t[5:]], token_logprobs=lambda v: [*v[:4], *v[5:]]
    ),
    "fewer values": _each(lambda values, n: values[:-2]),
    "words for numbers": _each(lambda values, n: [str(v) for v in values]),
    "numbers for tokens": _of_logprobs(tokens=lambda t: list(range(len(t)))),
    "never the same": _each(lambda values, n: [None, *(value - n / 50 for value in values[1:])]),
    "conditioned on what?": _each(lambda values, n: [-3.0, *values[1:]]),
}
#: What the refusal of each fault and lie says.
SAID = {
    "nothing": "no log-probabilities of tokens",
    "no choices": "no log-probabilities of tokens",
    "empty": "no log-probabilities of tokens",
    "generated only, as in chats": "no log-probabilities of tokens",
    "words for numbers": "no log-probabilities of tokens",
    "numbers for tokens": "no log-probabilities of tokens",
    "zeros": "every token of a text the same",
    "one value": "every token of a text the same",
    "generated only": "don't make up the text",
    "a token left out": "don't make up the text",
    "by position": "different texts the same",
    "by the token": "whatever comes before it",
    "positive": "log-prob",
    "not a number": "log-prob",
    "infinite": "log-prob",
    "no float": "log-prob",
    "as good as infinite": "log-probability -9999",
    "a hole": "no log-probability for the token",
    "two tokens before": "more than one token before",
    "fewer values": "log-probabilities",
    "never the same": "another score each time",
    "conditioned on what?": "given nothing",
    "given itself": "given nothing",
    "given itself, none first": "in the same place of a text",
    "penalty": "in the same place of a text",
    "of the next token": "if a later word is another",
    "of the likeliest": "any other word in its place",
    "temperature": "at temperature 1 and",
    "base 10": "may be of base 10",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_whose_figures_are_none_is_refused_with_what_was_seen(
    saved: dict[str, Path], name: str
) -> None:
    kind = "neox" if name == "conditioned on what?" else "opt-adds-bos"
    own = "" if kind == "neox" else KINDS[kind].bos
    with echoing(saved[kind], own, FAULTS[name]) as (server, _), pytest.raises(BadInput) as caught:
        opened(server.url)
    assert str(caught.value).startswith(f"server {server.url}: ") and "\n" not in str(caught.value)
    assert SAID[name] in str(caught.value)


def _warmth(logits: torch.Tensor, ids: list[int], body: dict[str, Any]) -> torch.Tensor:
    """The request's temperature, also for the text."""
    return logits / (body.get("temperature", 0.7) or 1.0)


def _penalty(logits: torch.Tensor, ids: list[int], body: dict[str, Any]) -> torch.Tensor:
    """As vLLM's first engine: all tokens of the prompt count at each of its places."""
    penalised, seen = logits.clone(), sorted(set(ids))
    rate = 1.1
    kept = logits[:, seen]
    penalised[:, seen] = torch.where(kept > 0, kept / rate, kept * rate)
    return penalised


def _including_itself(logprobs: torch.Tensor, ids: list[int]) -> list[Any]:
    of_text = [float(logprobs[i, token]) for i, token in enumerate(ids[:-1])]
    return [*of_text, float(logprobs[-1, ids[-1]])]


def _hidden_shift(logprobs: torch.Tensor, ids: list[int]) -> list[Any]:
    """As llama-cpp-python, which leaves out the first value."""
    return [None, *_including_itself(logprobs, ids)[1:]]


def _of_the_next(logprobs: torch.Tensor, ids: list[int]) -> list[Any]:
    """Texts sent again have the same score: their last value doesn't follow the drawn token."""
    values = own_place(logprobs, ids)
    return [None, *values[2:-1], float(logprobs[-1].max()), values[-1]]


def _likeliest(logprobs: torch.Tensor, ids: list[int]) -> list[Any]:
    return [None, *logprobs.max(dim=-1).values.tolist()]


def _scaled(by: float) -> Fault:
    def fault(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
        found = reply["choices"][0]["logprobs"]
        found["token_logprobs"] = [v and v / by for v in found["token_logprobs"]]
        tops = found["top_logprobs"]
        found["top_logprobs"] = [top and {k: v / by for k, v in top.items()} for top in tops]

    return fault


#: What gives finite log-probabilities that depend on the text and yet are others.
LIES: dict[str, tuple[str, Any]] = {
    "given itself": ("place", _including_itself),
    "given itself, none first": ("place", _hidden_shift),
    "of the next token": ("place", _of_the_next),
    "of the likeliest": ("place", _likeliest),
    "temperature": ("adjust", _warmth),
    "penalty": ("adjust", _penalty),
    "base 10": ("fault", _scaled(math.log(10))),
}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos"])
@pytest.mark.parametrize("name", LIES)
def test_values_of_another_place_scale_or_distribution_are_refused(
    saved: dict[str, Path], name: str, kind: str
) -> None:
    with _served(saved, kind) as (server, model, options):
        opened(server.url, **options)
        setattr(model, *LIES[name])
        with pytest.raises(BadInput) as caught:
            opened(server.url, **options)
    assert SAID[name] in str(caught.value)


def test_what_is_no_completions_server_is_refused() -> None:
    answers = (
        Say("Hello."),
        Say(body=b"<html>"),
        Say("echo is not supported", status=400),
        Say("bad key", status=401),
    )
    with serving(sampler=lambda body: answers[0]) as server:
        for answer in answers:
            server.sampler = lambda body, answer=answer: answer
            with pytest.raises(BadInput, match=server.url):
                opened(server.url)
    with pytest.raises(UsageProblem, match="give --base-url"):
        open_backend("tiny", ModelOptions(backend="server"))
    for option in ({"dtype": "bfloat16"}, {"per_token": True}, {"tensor_parallel": 2}):
        (name,) = option
        with pytest.raises(UsageProblem, match=f"--{name.replace('_', '-')}"):
            opened("http://127.0.0.1:9/v1", **option)


def test_bos_is_given_where_the_server_puts_none_and_only_there(saved: dict[str, Path]) -> None:
    with echoing(saved["neox"]) as (server, _):
        for bos in (None, "<|nothing|>"):
            with pytest.raises(UsageProblem, match="server" if bos is None else "--bos"):
                opened(server.url, bos=bos)
    with echoing(saved["opt-adds-bos"], KINDS["opt-adds-bos"].bos) as (server, _):
        assert opened(server.url, bos="</s>").identity.bos_policy == "the server's: </s>"
        with pytest.raises(UsageProblem, match="--bos <pad>"):
            opened(server.url, bos="<pad>")


def test_one_text_that_has_no_score_leaves_the_others_theirs(saved: dict[str, Path]) -> None:
    kind = "llama-adds-bos"
    with echoing(saved[kind], KINDS[kind].bos) as (server, model):
        backend = opened(server.url)

        def holes(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
            if body["prompt"].startswith("She"):
                reply["choices"][0]["logprobs"]["token_logprobs"][2] = None
            if body["prompt"].startswith("Herself"):
                reply["choices"][0]["logprobs"]["token_logprobs"][1] = -9999.0

        model.fault = holes
        texts = ["", "a <s> b", "lone \ud800 surrogate", "x" * 400, "She drank 水.", *SENTENCES]
        scores = dict(zip(texts, backend.score(texts), strict=True))
    problems = {text: score.problem for text, score in scores.items() if score.problem}
    reasons = ["empty", "special token <s>", "surrogate", "maximum context length", "make up"]
    for text, reason in zip(texts, reasons, strict=False):
        assert reason in str(problems.pop(text))
    assert problems.keys() == {"She drank tea.", "Herself."}
    assert len(scores) - 7 == sum(score.problem is None for score in scores.values())


def test_what_needs_a_model_that_is_loaded_here_is_refused(saved: dict[str, Path]) -> None:
    kind = "opt-adds-bos"
    with echoing(saved[kind], KINDS[kind].bos) as (server, _):
        with pytest.raises(UsageProblem, match="--backend server"):
            opened(server.url).continue_([SamplingOptions().seeded("She", 0)], SamplingOptions())
        with pytest.raises(UsageProblem, match="--dry-run"):
            prospect("tiny", ModelOptions(backend="server", base_url=server.url))


def test_parts_of_characters_spell_a_text_only_where_they_may() -> None:
    assert spells(["Zo", "\ufffd", "\ufffd", "."], "Zoë.")
    assert spells(["\ufffd\ufffd", "\ufffd"], "水")
    assert not spells(["\ufffd"], "水水")
    assert not spells(["Zo", "\ufffd"], "Zoe")
    many = [*["\ufffd"] * 9, "ë"] * 40
    assert spells(many, "ë" * 100) and not spells(many, "ë" * 100 + "x")  # at once
    assert not spells([], "She") and spells(["Sh", "e"], "She")
