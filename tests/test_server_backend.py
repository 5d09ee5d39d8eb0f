"""Scores by echo are those of the model behind the server; bad figures are found out first."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.echo import spells
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.chat_server import ChatServer, Say, serving
from tests.tiny_models import KINDS, SENTENCES

#: What a fault does to a reply before it is sent, given the request and how many there were.
Fault = Callable[[dict[str, Any], dict[str, Any], int], None]
Adjust = Callable[[torch.Tensor, list[int], dict[str, Any]], torch.Tensor]
Place = Callable[[torch.Tensor, list[int]], list[float | None]]


def own_place(logprobs: torch.Tensor, ids: list[int]) -> list[float | None]:
    """log p of each token given those before it: row i of the network's output is about i + 1."""
    return [None, *(float(logprobs[i, token]) for i, token in enumerate(ids[1:]))]


class EchoingModel:
    """Answers requests for echoes; it puts ``own_bos`` and ``own_eos`` around a prompt itself."""

    def __init__(self, directory: Path, own_bos: str = "", own_eos: str = "") -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        network = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self._network = network.eval()
        self._own = [self._tokenizer.token_to_id(own_bos)] if own_bos else []
        self._after = [self._tokenizer.token_to_id(own_eos)] if own_eos else []
        self._lock = threading.Lock()
        self.fault: Fault | None = None
        #: What becomes of the logits, and of which place a token gets the value.
        self.adjust: Adjust = lambda logits, ids, body: logits
        self.place: Place = own_place
        self.n_asked = 0
        self._generator = torch.Generator().manual_seed(1)

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """A completion with the prompt and its log-probabilities before it."""
        assert body["max_tokens"] == 1
        ids = [*self._own, *self._encoded(body["prompt"]), *self._after]
        with torch.inference_mode():
            logits = self._network(torch.tensor([ids])).logits[0]
        logits = self.adjust(logits, ids, body)
        logprobs = torch.log_softmax(logits, dim=-1)
        new = self._drawn(logits[-1], body.get("temperature", 1.0))
        whole = [*ids, new]
        values = self.place(logprobs, whole)
        # A token decoded alone loses a space at its start.
        tokens = [self._decoded([token]) for token in whole]
        written = self._decoded(whole)[len(self._decoded(ids)) :]
        assert body["echo"] and body["logprobs"] >= 1
        likeliest = zip(*(part.tolist() for part in logprobs.topk(body["logprobs"])), strict=True)
        tops = [{f"{i}": p for p, i in zip(*row, strict=True)} for row in likeliest]
        found = {"tokens": tokens, "token_logprobs": values, "top_logprobs": [None, *tops]}
        choice = {"index": 0, "text": body["prompt"] + written, "finish_reason": "length"}
        choice["logprobs"] = found
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(whole)}
        about = {"object": "text_completion", "id": "1", "model": body["model"]}
        return {**about, "choices": [choice], "usage": usage}

    def _drawn(self, logits: torch.Tensor, temperature: float) -> int:
        """The likeliest token at temperature 0."""
        if not temperature:
            return int(logits.argmax())
        p = torch.softmax(logits / temperature, dim=-1)
        return int(torch.multinomial(p, 1, generator=self._generator))

    def _encoded(self, prompt: str) -> list[int]:
        return list(self._tokenizer.encode(prompt, add_special_tokens=False).ids)

    def _decoded(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))

    def answer(self, body: dict[str, Any]) -> Say:
        """The reply with its fault; a prompt that is too long is refused."""
        with self._lock:
            self.n_asked += 1
            n_tokens = len(self._own) + len(self._encoded(body["prompt"]))
            if n_tokens >= 64:
                error = {"message": "the maximum context length is 64 tokens", "code": None}
                return Say(status=400, body=json.dumps({"error": error}).encode())
            reply = self.reply(body)
            if self.fault is not None:
                self.fault(reply, body, self.n_asked)
        return Say(body=json.dumps(reply).encode())


@contextmanager
def echoing(
    directory: Path, own_bos: str = "", fault: Fault | None = None, own_eos: str = ""
) -> Iterator[tuple[ChatServer, EchoingModel]]:
    """A server of a saved model, until the end of the block."""
    model = EchoingModel(directory, own_bos, own_eos)
    model.fault = fault
    with serving(sampler=model.answer) as server:
        server.pages["/v1/models"] = {"data": [{"id": "tiny", "owned_by": "loopback"}]}
        server.pages["/version"] = {"version": "1.2"}
        yield server, model


ACCENTS = ["She said “très bien” to Zoë.", "He said “très bien” to Zoë."]


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


def _of_logprobs(**changes: Any) -> Fault:
    """A fault of the log-probabilities: what becomes of lists in it."""

    def fault(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
        found = reply["choices"][0]["logprobs"]
        found.update({name: change(found[name]) for name, change in changes.items()})

    return fault


def _values(change: Any) -> Fault:
    return _of_logprobs(token_logprobs=change)


def _by_token(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    found = reply["choices"][0]["logprobs"]
    found["token_logprobs"] = [None, *(-1.0 - len(token) for token in found["tokens"][1:])]


def _never_the_same(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    _values(lambda values: [None, *(v - n_asked / 50 for v in values[1:])])(reply, body, n_asked)


def _chat_form(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    """As llama.cpp's server: what was generated, in the form of chats."""
    content = [{"token": " tea", "logprob": -0.5}]
    reply["choices"][0] = {"text": " tea", "logprobs": {"content": content}}


_NO_NUMBERS = "no log-probabilities of tokens"
#: Each fault, and what the refusal says.
FAULTS: dict[str, tuple[Fault, str]] = {
    "no choices": (lambda reply, *_: reply.pop("choices"), _NO_NUMBERS),
    "empty": (_of_logprobs(tokens=lambda t: [], token_logprobs=lambda t: []), _NO_NUMBERS),
    "generated only, as in chats": (_chat_form, _NO_NUMBERS),
    "words for numbers": (_values(lambda v: list(map(str, v))), _NO_NUMBERS),
    "generated only": (
        _of_logprobs(tokens=lambda t: t[-1:], token_logprobs=lambda v: v[-1:]),
        "don't make up the text",
    ),
    "one value": (_values(lambda v: [None, *(-2.5 for _ in v[1:])]), "whatever comes before it"),
    "by position": (
        _values(lambda v: [None, *(-0.1 * k - 1 for k in range(len(v) - 1))]),
        "every word in a place the same",
    ),
    "by the token": (_by_token, "whatever comes before it"),
    "positive": (_values(lambda v: [None, *(-value for value in v[1:])]), "log-prob"),
    "not a number": (_values(lambda v: [None, math.nan, *v[2:]]), "log-prob"),
    "minus infinity": (_values(lambda v: [None, -9999.0, *v[2:]]), "log-probability -9999"),
    "a hole": (_values(lambda v: [*v[:3], None, *v[4:]]), "no log-probability for the token"),
    "two tokens before": (
        _of_logprobs(tokens=lambda t: [t[0], *t], token_logprobs=lambda v: [None, -1.0, *v[1:]]),
        "more than one token before",
    ),
    "fewer values": (_values(lambda v: v[:-2]), "log-probabilities"),
    "never the same": (_never_the_same, "another score each time"),
    "conditioned on what?": (_values(lambda v: [-3.0, *v[1:]]), "gives the first token"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_whose_figures_are_none_is_refused_with_what_was_seen(
    saved: dict[str, Path], name: str
) -> None:
    kind = "neox" if name == "conditioned on what?" else "opt-adds-bos"
    own, (fault, said) = "" if kind == "neox" else KINDS[kind].bos, FAULTS[name]
    with echoing(saved[kind], own, fault) as (server, _), pytest.raises(BadInput) as caught:
        opened(server.url)
    assert str(caught.value).startswith(f"server {server.url}: ") and "\n" not in str(caught.value)
    assert said in str(caught.value)


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


def _base_10(reply: dict[str, Any], body: dict[str, Any], n_asked: int) -> None:
    found, by = reply["choices"][0]["logprobs"], math.log(10)
    found["token_logprobs"] = [v and v / by for v in found["token_logprobs"]]
    tops = found["top_logprobs"]
    found["top_logprobs"] = [top and {k: v / by for k, v in top.items()} for top in tops]


#: What gives finite log-probabilities that depend on the text and yet are others: the attribute of
#: the served model, its value, and what the refusal says.
LIES: dict[str, tuple[str, Any, str]] = {
    "given itself": ("place", _including_itself, "gives the first token"),
    "given itself, none first": ("place", _hidden_shift, "in the same place of a text"),
    "of the next token": ("place", _of_the_next, "if a later word changes"),
    "of the likeliest": ("place", _likeliest, "every word in a place the same"),
    "temperature": ("adjust", _warmth, "at temperatures 1 and"),
    "penalty": ("adjust", _penalty, "in the same place of a text"),
    "base 10": ("fault", _base_10, "may be of base 10"),
}


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos"])
@pytest.mark.parametrize("name", LIES)
def test_values_of_another_place_scale_or_distribution_are_refused(
    saved: dict[str, Path], name: str, kind: str
) -> None:
    attribute, lie, said = LIES[name]
    with _served(saved, kind) as (server, model, options):
        setattr(model, attribute, lie)
        with pytest.raises(BadInput) as caught:
            opened(server.url, **options)
    assert said in str(caught.value)


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
    for option in ({"dtype": "bfloat16"}, {"tensor_parallel": 2}):
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
    refused = pytest.raises(UsageProblem, match="--backend server")
    with echoing(saved[kind], KINDS[kind].bos) as (server, _), refused:
        opened(server.url).continue_([SamplingOptions().seeded("She", 0)], SamplingOptions())


def test_parts_of_characters_spell_a_text_only_where_they_may() -> None:
    assert spells(["Zo", "\ufffd", "\ufffd", "."], "Zoë.")
    assert not spells(["\ufffd"], "水水")
    assert not spells(["Zo", "\ufffd"], "Zoe")
    many = [*["\ufffd"] * 9, "ë"] * 40
    assert spells(many, "ë" * 100) and not spells(many, "ë" * 100 + "x")  # at once
