"""A check of a server's log-probabilities before anything is scored.

Known faults: some servers return nothing, zeros, or log-probabilities of the generated text;
evaluations took these for scores of the prompt.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from plumbline.eval_workers.chat.client import Failure
from plumbline.eval_workers.models.remote.echo import Echo, EchoFault, EchoServer, read_echo
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Texts to score; the first is scored three times. All have the same last word.
TEXTS = (
    "The weather was fine, so the two old friends walked home.",
    "A clerk had put all the keys into the drawer at home.",
    "The person in the store asked when she would be home.",
)
#: Largest accepted difference between two scores of one text: other users' requests in a batch may
#: change the rounding. For comparison: a preference counts from ln 1.65 = 0.5 nats on.
SAME_NATS = 0.05
#: Rounding error of a log-probability of 0.
ROUNDING_NATS = 1e-6
#: The value that servers send for minus infinity, which JSON lacks.
LEAST_NATS = -9999.0
_FIX = "serve the model with vLLM, or load it here with --backend transformers"


@dataclass(frozen=True)
class ProbeResult:
    """The result of a server's probe.

    Attributes:
        sent: text to send before each text: BOS, or empty if the server adds its own.
        context: tokens before the text, as the server shows them; the last one is ``bos``.
        tokenisation: hash of the tokens of the probe's texts (8 hex digits).
    """

    sent: str
    context: tuple[str, ...]
    tokenisation: str

    @property
    def bos(self) -> str:
        """The context token, as the server spells it."""
        return self.context[-1]


def probe(server: EchoServer, bos: str | None) -> ProbeResult:
    """Check a server's scores of a few texts; ``bos`` is the token of ``--bos``.

    Raises ``BadInput`` for invalid scores, ``UsageProblem`` for a missing or wrong BOS.
    """
    sent = _choose_context(server, bos)
    echoes = [*_echoes(server, sent, TEXTS), *_echoes(server, sent, [TEXTS[0]] * 2)]
    contexts = {echo.context for echo in echoes}
    if len(contexts) > 1:
        _refuse(server, f"puts different tokens before texts: {sorted(contexts)}")
    for echo in echoes:
        _check_values(server, echo)
    _check_dependence(server, echoes[: len(TEXTS)])
    _check_same(server, [echoes[0], *echoes[len(TEXTS) :]])
    pieces = json.dumps([echo.pieces for echo in echoes[: len(TEXTS)]])
    tokenisation = hashlib.sha256(pieces.encode("utf-8", "replace")).hexdigest()[:8]
    return ProbeResult(sent, echoes[0].context, tokenisation)


def _choose_context(server: EchoServer, bos: str | None) -> str:
    """The text to send before each text: BOS, or nothing if the server adds BOS."""
    (plain,) = _echoes(server, "", TEXTS[:1])
    shown = "".join(plain.context)
    if plain.n_context > 1:
        _refuse(server, f"puts more than one token before a text: {plain.context}")
    if plain.n_context == 1:
        if bos is not None and shown.strip() != bos:
            problem = f"the server puts {shown!r} before each text itself"
            raise UsageProblem(f"--bos {bos}", problem, "leave it out")
        return ""
    first, value = plain.pieces[0], plain.logprobs_nats[0]
    if value is not None:
        problem = f"gives {first!r}, the first token, log-probability {value:g}, and does not show"
        _refuse(server, f"{problem} what comes before it")
    if bos is None:
        problem = f"puts no BOS before a text, so {first!r}, its first token, has no"
        fix = "give the model's BOS by --bos TOKEN"
        raise UsageProblem(_name(server), f"{problem} log-probability", fix)
    fix = "give the token that begins the model's texts"
    try:
        (with_bos,) = _echoes(server, bos, TEXTS[:1])
    except BadInput as e:
        raise UsageProblem(f"--bos {bos}", f"with it the server {e.args[1]}", fix) from e
    if with_bos.n_context != 1 or with_bos.pieces[0].strip() != bos:
        shown = " ".join(map(repr, with_bos.context)) or "nothing"
        raise UsageProblem(f"--bos {bos}", f"the server makes {shown} of it, not one token", fix)
    return bos


def _echoes(server: EchoServer, sent: str, texts: Sequence[str]) -> list[Echo]:
    """Echoes of texts that are sent at the same time."""
    echoes = []
    for text, body in zip(texts, server.bodies([sent + text for text in texts]), strict=True):
        if isinstance(body, Failure):
            _refuse(server, f"refuses to echo a prompt with log-probabilities: {body.error}")
        try:
            echoes.append(read_echo(body, text))
        except EchoFault as e:
            _refuse(server, str(e))
    return echoes


def _check_values(server: EchoServer, echo: Echo) -> None:
    """Refuse values that aren't finite log-probabilities, or are all the same."""
    for piece, value in zip(echo.text_pieces, echo.text_logprobs_nats, strict=True):
        if value is None or not math.isfinite(value):
            shown = "no log-probability" if value is None else f"log-probability {value}"
            _refuse(server, f"gives {shown} for the token {piece!r} within a text")
        if value > ROUNDING_NATS:
            _refuse(server, f"gives {piece!r} log-probability {value:g}, which is above 0")
    values = set(echo.text_logprobs_nats)
    if len(values) == 1:
        _refuse(server, f"gives every token of a text the same log-probability, {values.pop():g}")


def _check_dependence(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse the same values for different texts, or for a token after different texts."""
    for i, echo in enumerate(echoes):
        for other in echoes[:i]:
            n = min(len(echo.text_pieces), len(other.text_pieces))
            if echo.text_logprobs_nats[:n] == other.text_logprobs_nats[:n]:
                _refuse(server, "gives different texts the same log-probabilities")
    for k in (-2, -1):  # the last word and the full stop, which may be one token
        ends = {(echo.pieces[k], echo.logprobs_nats[k]) for echo in echoes}
        piece, value = ends.pop()
        if not ends and value is not None and value < -ROUNDING_NATS:  # else it is certain
            _refuse(server, f"gives {piece!r} log-probability {value:g} whatever comes before it")


def _check_same(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse different scores of the same text."""
    sums = [math.fsum(v for v in echo.text_logprobs_nats if v is not None) for echo in echoes]
    if any(echo.pieces != echoes[0].pieces for echo in echoes):
        _refuse(server, "cuts the same text into other tokens when it is asked again")
    if max(sums) - min(sums) > SAME_NATS:
        shown = ", ".join(f"{total:.3f}" for total in sums)
        _refuse(server, f"gives the same text another score each time: {shown} nats")


def _name(server: EchoServer) -> str:
    return f"server {server.server.base_url}"


def _refuse(server: EchoServer, problem: str) -> NoReturn:
    raise BadInput(_name(server), problem, _FIX)
