"""Scores with a model behind a server that echoes texts with their log-probabilities.

No model is loaded here: tokens are strings, as the server spells them. A server has to show the BOS
before a text, its own or that of ``--bos``. It is probed before anything is scored, because the
numbers of some servers are not log-probabilities of the text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from typing import NoReturn

from plumbline.eval_workers.chat.client import Server, checked_url
from plumbline.eval_workers.chat.requests import Failure
from plumbline.eval_workers.models.echo import EchoFault, EchoServer, read_echo
from plumbline.eval_workers.models.model_options import ModelOptions, refuse_options
from plumbline.eval_workers.models.probe import probe
from plumbline.eval_workers.models.scoring_contract import Identity, Instruction, TextScore
from plumbline.warehouse.errors import UsageProblem

#: Stands for a revision or dtype that only the server knows.
_AS_SERVED = "as served"
_OF_LOADED_MODELS = (
    *("dtype", "adapter", "quantisation", "tensor_parallel", "pll", "chat"),
    "per_token",  # a server's tokens have no numbers
)


class ServerBackend:
    """A model under its name at the server; see ``scoring_contract.Backend``.

    Opening it sends the server a few short texts. ``options.revision`` can't be checked.

    Raises ``UsageProblem`` without an address, for options that a server can't apply, and if
    ``--bos`` is missing or wrong; ``BadInput`` for a server that gives no log-probabilities
    of texts; ``Interrupted`` if it doesn't answer.
    """

    n_parameters = None

    def __init__(self, model: str, options: ModelOptions) -> None:
        if not options.base_url:
            fix = "give --base-url, such as http://localhost:8000/v1"
            raise UsageProblem("--backend server", "needs the server's address", fix)
        refuse_options(options, _OF_LOADED_MODELS, "is for models loaded here, not by a server")
        at = Server(checked_url(options.base_url), concurrency=options.concurrency)
        server = EchoServer(model, at)
        software = server.software() or "version unknown"
        probed = probe(server, options.bos)
        self._server, self._sent, self._context = probed.server, probed.sent, probed.context
        self._pieces: dict[int, str] = {}
        self.identity = Identity(
            model=model,
            revision=options.revision or _AS_SERVED,
            backend="server",
            backend_version=f"{software}, tokenisation {probed.tokenisation}",
            dtype=_AS_SERVED,
            bos_policy=f"option: {probed.bos}" if probed.sent else f"the server's: {probed.bos}",
            bos_token_id=_number(probed.bos),
            text_form=options.text_form,
        )

    def lead(self, instruction: Instruction) -> str:
        """The instruction's text before a prompt."""
        return instruction.prefix

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, in the order given; equal texts are sent once."""
        scores = {
            text: TextScore(math.nan, problem=problem)
            for text in texts
            if (problem := self._problem(text))
        }
        sent = [text for text in dict.fromkeys(texts) if text not in scores]
        bodies = self._server.bodies([self._sent + text for text in sent]) if sent else []
        for text, body in zip(sent, bodies, strict=True):
            scores[text] = self._scored(text, body)
        return [scores[text] for text in texts]

    def pieces(self, token_ids: Collection[int]) -> dict[int, str]:
        """The text of tokens that this object has scored, as the server spells them."""
        return {number: self._pieces[number] for number in token_ids}

    def continue_(self, *_: object) -> NoReturn:
        """Raise ``UsageProblem``: ``served_samples`` requests the samples of servers."""
        fix = "for samples of a server: plumbline fairpair run --base-url"
        raise UsageProblem("--backend server", "scores texts, and does not continue them", fix)

    def _problem(self, text: str) -> str | None:
        """The problem of a text that can't be sent."""
        if not text:
            return "the text is empty"
        if text != text.encode("utf-8", "replace").decode():
            return "it can't be encoded: it holds half of a surrogate pair"
        bos = self._context[-1].strip()
        return f"it holds the special token {bos}" if bos and bos in text else None

    def _scored(self, text: str, body: str | Failure) -> TextScore:
        if isinstance(body, Failure):
            return TextScore(math.nan, problem=f"the server refuses it: {body.error}")
        try:
            echo = read_echo(body, text)
        except EchoFault as e:
            return TextScore(math.nan, problem=f"the server {e}")
        if echo.problem:
            return TextScore(math.nan, problem=f"the server {echo.problem}")
        if echo.context != self._context:
            problem = f"the server puts {''.join(echo.context)!r} before it"
            return TextScore(math.nan, problem=f"{problem}, not {''.join(self._context)!r}")
        logprobs = tuple(min(0.0, value or 0.0) for value in echo.text_logprobs_nats)
        ids = tuple(map(_number, echo.text_pieces))
        self._pieces.update(zip(ids, echo.text_pieces, strict=True))
        return TextScore(math.fsum(logprobs), ids, logprobs)


def _number(piece: str) -> int:
    """Number a token, whose id is unknown, by a hash of its text (56 bits).

    >>> _number("she") == _number("she"), _number("she") == _number(" she")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(piece.encode("utf-8", "replace")).digest()[:7], "big")


open_model = ServerBackend
