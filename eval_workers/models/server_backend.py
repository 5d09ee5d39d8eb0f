"""Score with a model behind a server that echoes texts with their log-probabilities.

No model is loaded here, so tokens are strings, as the server spells them. The server's answer must
show a BOS before a text: either the server's own, or the BOS from ``--bos``. The server is checked
before anything is scored, because some servers return wrong log-probabilities.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NoReturn

from plumbline.eval_workers.chat.client import ServerOptions, checked_url
from plumbline.eval_workers.models.echo import Echo, EchoServer
from plumbline.eval_workers.models.model_options import ModelOptions, refuse_options
from plumbline.eval_workers.models.probe import probe
from plumbline.eval_workers.models.scoring_contract import Identity, Instruction, TextScore
from plumbline.warehouse.errors import UsageProblem

#: Recorded as the revision or dtype if only the server knows it.
_AS_SERVED = "as served"
_OF_LOADED_MODELS = ("dtype", "adapter", "quantisation", "tensor_parallel")


class ServerBackend:
    """A model on a server. ``model`` is its name in requests.

    Opening the model checks the server's scores of a few texts. The model's revision isn't checked.

    Raises ``UsageProblem`` if no address is given, for options that a server can't apply, and if
    ``--bos`` is missing or wrong. Raises ``BadInput`` for a server that doesn't return correct
    log-probabilities of texts, and ``Interrupted`` for a server that doesn't answer.
    """

    n_parameters = None

    def __init__(self, model: str, options: ModelOptions) -> None:
        if not options.base_url:
            fix = "give --base-url, such as http://localhost:8000/v1"
            raise UsageProblem("--backend server", "needs the server's address", fix)
        refuse_options(options, _OF_LOADED_MODELS, "is for models loaded here, not on a server")
        at = ServerOptions(checked_url(options.base_url), concurrency=options.concurrency)
        software = EchoServer(model, at).software() or "version unknown"
        self._server, self._bos, tokenisation = probe(EchoServer(model, at), options.bos)
        whose = "option" if self._server.sent else "the server's"
        self.identity = Identity(
            model=model,
            revision=options.revision or _AS_SERVED,
            backend="server",
            backend_version=f"{software}, tokenisation {tokenisation}",
            dtype=_AS_SERVED,
            bos_policy=f"{whose}: {self._bos}",
            bos_token_id=_number(self._bos),
        )

    def lead(self, instruction: Instruction) -> str:
        return instruction.prefix

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return a score for each text, in the order given. Send repeated texts only once."""
        scores = {
            text: TextScore(problem=problem) for text in texts if (problem := self._problem(text))
        }
        sent = [text for text in dict.fromkeys(texts) if text not in scores]
        scores |= zip(sent, map(self._scored, self._server.echoes(sent)), strict=True)
        return [scores[text] for text in texts]

    def continue_(self, *_: object) -> NoReturn:
        """Raise ``UsageProblem``, because only ``served_samples`` requests samples from servers."""
        fix = "for samples of a server: plumbline fairpair run --base-url"
        raise UsageProblem("--backend server", "scores texts, but does not continue them", fix)

    def _problem(self, text: str) -> str | None:
        """Return why a text can't be sent, or ``None`` if it can."""
        if not text:
            return "the text is empty"
        if text != text.encode("utf-8", "replace").decode():
            return "it can't be encoded: it holds half of a surrogate pair"
        bos = self._bos.strip()
        return f"it holds the special token {bos}" if bos and bos in text else None

    def _scored(self, echo: Echo | str) -> TextScore:
        problem = echo if isinstance(echo, str) else echo.problem
        if isinstance(echo, str) or problem:
            return TextScore(problem=f"the server {problem}")
        if echo.context != (self._bos,):
            problem = f"the server puts {''.join(echo.context)!r} before it, not {self._bos!r}"
            return TextScore(problem=problem)
        logprobs = tuple(min(0.0, value or 0.0) for value in echo.logprobs_nats)
        return TextScore(math.fsum(logprobs), tuple(map(_number, echo.pieces)), logprobs)


def _number(piece: str) -> int:
    """Return a hash (56 bits) of a token's text. It is used as an id: servers return no token ids.

    >>> _number("she") == _number("she"), _number("she") == _number(" she")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(piece.encode("utf-8", "replace")).digest()[:7], "big")


open_model = ServerBackend
