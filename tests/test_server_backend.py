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
from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.remote.echo import spells
from plumbline.eval_workers.models.remote.probe import TEXTS
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say
from tests.echo_server import EchoingModel, Fault, echoing, own_place
from tests.tiny_models import KINDS, SENTENCES, save

ACCENTS = ["She said “très bien” to Zoë.", "He said “très bien” to Zoë."]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("served")
    return {kind: save(kind, root / kind) for kind in ("neox", "llama-adds-bos", "opt-adds-bos")}


def opened(url: str, **options: Any) -> Any:
    return open_backend("tiny", ModelOptions(backend="server", base_url=url, **options))


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos", "opt-adds-bos"])
def test_scores_are_those_of_the_model_loaded_here(saved: dict[str, Path], kind: str) -> None:
    """Whether BOS is given or the server puts it (two kinds, one with EOS behind the text)."""
    bos = KINDS[kind].bos
    own, given = (bos, None) if kind.endswith("adds-bos") else ("", bos)
    texts = SENTENCES if kind == "llama-adds-bos" else [*SENTENCES, *ACCENTS]
    here = CausalModel(str(saved[kind]), ModelOptions()).score(texts)
    eos = "</s>" if kind == "llama-adds-bos" else ""
    with echoing(saved[kind], own, own_eos=eos) as (server, _):
        how: dict[str, Any] = {"base_url": server.url, "bos": given}
        there = check_backend("server", "tiny", texts, **how)
    for ours, theirs in zip(there, here, strict=True):
        assert ours.n_tokens == theirs.n_tokens
        assert abs(ours.logprob_nats - theirs.logprob_nats) < 1e-4


def test_the_identity_is_what_the_server_says(saved: dict[str, Path], tmp_path: Path) -> None:
    own = KINDS["opt-adds-bos"].bos
    with echoing(saved["opt-adds-bos"], own) as (server, _):
        one, again = (opened(server.url).identity for _ in range(2))
        named = opened(server.url, revision="v3").identity
        server.pages.clear()
        silent = opened(server.url).identity
    assert one == again and len({one.key, named.key, silent.key}) == 3
    assert one.model == "tiny" and one.revision == one.dtype == "as served"
    assert one.backend_version.startswith("loopback 1.2, tokenisation ")
    assert silent.backend_version.startswith("version unknown, tokenisation ")
    assert one.bos_policy == "the server's: </s>" and named.revision == "v3"
    with echoing(saved["neox"]) as (server, _):
        other = opened(server.url, bos="<|endoftext|>").identity
    assert other.bos_policy == "option: <|endoftext|>"
    tokenisations = {i.backend_version.rpartition(" ")[2] for i in (one, other)}
    assert len(tokenisations) == 2


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


FAULTS: dict[str, tuple[Fault, str]] = {
    "nothing": (_of_choice("logprobs", None), "gives no log-probabilities"),
    "no choices": (lambda reply, *_: reply.pop("choices"), "gives no log-probabilities"),
    "empty": (_of_logprobs(tokens=lambda t: [], token_logprobs=lambda t: []), "gives no log-prob"),
    "zeros": (
        _each(lambda values, n: [None, *(0.0 for _ in values[1:])]),
        "gives every token of a text the same log-probability, 0 ",
    ),
    "one value": (
        _each(lambda values, n: [None, *(-2.5 for _ in values[1:])]),
        "gives every token of a text the same log-probability, -2.5",
    ),
    "generated only": (
        _of_logprobs(tokens=_last, token_logprobs=_last),
        "gives log-probabilities of generated tokens only",
    ),
    "generated only, as in chats": (_chat_form, "of generated tokens only: ' tea'"),
    "by position": (
        _each(lambda values, n: [None, *(-0.1 * k - 1 for k in range(len(values) - 1))]),
        "gives different texts the same log-probabilities",
    ),
    "by the token": (_by_token, "whatever comes before it"),
    "positive": (
        _each(lambda values, n: [None, *(-value for value in values[1:])]),
        "which is above 0",
    ),
    "not a number": (_each(lambda values, n: [None, float("nan"), *values[2:]]), "nan for the to"),
    "infinite": (_each(lambda values, n: [None, -math.inf, *values[2:]]), "-inf for the to"),
    "as good as infinite": (
        _each(lambda values, n: [None, -1e308, -1e308, *values[3:]]),
        "-inf for the to",
    ),
    "no float": (_each(lambda values, n: [None, -(10**400), *values[2:]]), "-inf for the to"),
    "a hole": (_each(lambda values, n: [*values[:3], None, *values[4:]]), "gives no log-prob"),
    "two tokens before": (
        _of_logprobs(tokens=lambda t: [t[0], *t], token_logprobs=lambda v: [None, -1.0, *v[1:]]),
        "puts more than one token before a text",
    ),
    "a token left out": (
        _of_logprobs(tokens=lambda t: [*t[:4], *t[5:]], token_logprobs=lambda v: [*v[:4], *v[5:]]),
        "gives tokens that don't make up the text",
    ),
    "fewer values": (_each(lambda values, n: values[:-2]), "tokens, and"),
    "words for numbers": (_each(lambda values, n: [str(v) for v in values]), "that are not num"),
    "numbers for tokens": (_of_logprobs(tokens=lambda t: list(range(len(t)))), "are not a text"),
    "never the same": (
        _each(lambda values, n: [None, *(value - n / 50 for value in values[1:])]),
        "gives the same text another score each time",
    ),
    "conditioned on what?": (
        _each(lambda values, n: [-3.0, *values[1:]]),
        "does not show what comes before it",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_whose_figures_are_none_is_refused_with_what_was_seen(
    saved: dict[str, Path], name: str
) -> None:
    fault, problem = FAULTS[name]
    kind = "neox" if name == "conditioned on what?" else "opt-adds-bos"
    own = "" if kind == "neox" else KINDS[kind].bos
    with echoing(saved[kind], own, fault) as (server, model), pytest.raises(BadInput) as caught:
        opened(server.url)
    assert problem in str(caught.value) and str(caught.value).startswith("server http://")
    assert "\n" not in str(caught.value) and model.n_asked <= 6


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
LIES: dict[str, tuple[str, Any, str]] = {
    "given itself": ("place", _including_itself, "what comes before it"),
    "given itself, none first": ("place", _hidden_shift, "in the same place of a text"),
    "of the next token": ("place", _of_the_next, "if a later word is another"),
    "of the likeliest": ("place", _likeliest, "of any other word in its place"),
    "temperature": ("adjust", _warmth, "at temperature 1 and"),
    "penalty": ("adjust", _penalty, "in the same place of a text"),
    "base 10": ("fault", _scaled(math.log(10)), "may be of base 10"),
}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos", "opt-adds-bos"])
@pytest.mark.parametrize("name", LIES)
def test_values_of_another_place_scale_or_distribution_are_refused(
    saved: dict[str, Path], name: str, kind: str
) -> None:
    attribute, lie, problem = LIES[name]
    with _served(saved, kind) as (server, model, options):
        opened(server.url, **options)
        setattr(model, attribute, lie)
        with pytest.raises(BadInput) as caught:
            opened(server.url, **options)
    assert problem in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("name", ["repeat_penalty", "logprobs"])
def test_a_server_that_refuses_what_scores_do_not_need_is_asked_without(
    saved: dict[str, Path], name: str, status: int
) -> None:
    """A name that OpenAI's protocol lacks, or five likeliest tokens; texts are sent alike."""
    kind = "opt-adds-bos"
    here = CausalModel(str(saved[kind]), ModelOptions()).score(SENTENCES)
    with _served(saved, kind) as (server, model, options):

        def strict(body: dict[str, Any]) -> Say:
            is_refused = body.get(name, 0) > 1 if name == "logprobs" else name in body
            return Say(f"bad {name}", status=status) if is_refused else model.answer(body)

        server.sampler = strict
        backend = opened(server.url, **options)
        probed = [body for body in server.bodies if body["prompt"] == TEXTS[-1]]
        there = backend.score(SENTENCES)
    sent = {**server.bodies[-1], "prompt": TEXTS[-1]}
    assert sent["logprobs"] == 1 and probed.count(sent) >= 1
    assert sum("repeat_penalty" in body for body in server.bodies) == 1 or name == "logprobs"
    for ours, theirs in zip(there, here, strict=True):
        assert ours.logprob_nats == pytest.approx(theirs.logprob_nats, abs=1e-4)


@contextmanager
def _served(saved: dict[str, Path], kind: str) -> Iterator[tuple[ChatServer, EchoingModel, Any]]:
    """A server of a model, itself, and the options that it needs."""
    bos = KINDS[kind].bos
    own = bos if kind.endswith("adds-bos") else ""
    eos = "</s>" if kind == "llama-adds-bos" else ""
    with echoing(saved[kind], own, own_eos=eos) as (server, model):
        yield server, model, {} if own else {"bos": bos}


def test_what_is_no_completions_server_is_refused(saved: dict[str, Path]) -> None:
    from tests.chat_server import Say, serving

    with serving(sampler=lambda body: Say("Hello.")) as server:
        with pytest.raises(BadInput, match="gives no log-probabilities"):
            opened(server.url)
        server.sampler = lambda body: Say(body=b"<html>")
        with pytest.raises(BadInput, match="gives no JSON object: '<html>'"):
            opened(server.url)
        server.sampler = lambda body: Say("echo is not supported", status=400)
        with pytest.raises(BadInput, match=r"refuses to echo .* echo is not supported"):
            opened(server.url)
        server.sampler = lambda body: Say("bad key", status=401)
        with pytest.raises(BadInput, match="refuses the request: status 401: bad key"):
            opened(server.url)
    with pytest.raises(UsageProblem, match="give --base-url"):
        open_backend("tiny", ModelOptions(backend="server"))
    for option in ({"dtype": "bfloat16"}, {"per_token": True}, {"tensor_parallel": 2}):
        with pytest.raises(UsageProblem):
            opened("http://127.0.0.1:9/v1", **option)


def test_bos_is_given_where_the_server_puts_none_and_only_there(saved: dict[str, Path]) -> None:
    with echoing(saved["neox"]) as (server, _):
        with pytest.raises(UsageProblem, match=r"puts no BOS .* with bos "):
            opened(server.url)
        with pytest.raises(
            UsageProblem, match=r"--bos <\|nothing\|>: with it the server gives tokens"
        ):
            opened(server.url, bos="<|nothing|>")
    with echoing(saved["opt-adds-bos"], KINDS["opt-adds-bos"].bos) as (server, _):
        assert opened(server.url, bos="</s>").identity.bos_policy == "the server's: </s>"
        with pytest.raises(UsageProblem, match="puts '</s>' before each text itself"):
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
    assert problems == {
        "She drank tea.": "the server leaves out log-probabilities",
        "Herself.": "a token has log-probability -9999 or less: servers' minus infinity",
    }
    assert len(scores) - 7 == sum(score.problem is None for score in scores.values())


def test_what_needs_a_model_that_is_loaded_here_is_refused(saved: dict[str, Path]) -> None:
    from plumbline.eval_workers.models.size_forecast import prospect

    kind = "opt-adds-bos"
    with echoing(saved[kind], KINDS[kind].bos) as (server, _):
        backend = opened(server.url)
        with pytest.raises(UsageProblem, match="plumbline fairpair run --base-url"):
            backend.continue_([SamplingOptions().draw("She", 0)], SamplingOptions())
        with pytest.raises(UsageProblem, match="--dry-run"):
            prospect("tiny", ModelOptions(backend="server", base_url=server.url))
        assert backend.n_parameters is None


@pytest.fixture
def pairs(store: Store) -> Iterator[Store]:
    from plumbline.eval_workers.pairs.benchmarks import Parsed

    parsed = Parsed("demo")
    for i, word in enumerate(("nurse", "clerk", "customer"), 1):
        template = f"The {word} said {{pronoun}} drank tea."
        parsed.add(pair_id=str(i), template=template, source_file="f", source_row=i)
    rows = [{"benchmark": "demo", **pair} for pair in parsed.pairs]
    store.publish("benchmark_pair", rows, unit="demo", run_id="r")
    yield store


def test_parts_of_characters_spell_a_text_only_where_they_may() -> None:
    assert spells(["Zo", "\ufffd", "\ufffd", "."], "Zoë.")
    assert spells(["\ufffd\ufffd", "\ufffd"], "水")
    assert not spells(["\ufffd"], "水水")
    assert not spells(["Zo", "\ufffd"], "Zoe")
    many = [*["\ufffd"] * 9, "ë"] * 40
    assert spells(many, "ë" * 100) and not spells(many, "ë" * 100 + "x")  # at once
    assert not spells([], "She") and spells(["Sh", "e"], "She")
