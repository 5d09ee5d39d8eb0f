"""A completions server that echoes prompts with log-probabilities as vLLM does, or with a fault."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from tests.chat_server import ChatServer, Say, serving

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
