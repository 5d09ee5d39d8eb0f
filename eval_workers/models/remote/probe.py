"""Whether a server's log-probabilities are what they seem, found out before anything is scored.

Known cases: servers that give nothing, zeros, or the log-probabilities of what they generate, which
evaluations took for scores of the text.
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

#: The first is asked for three times. They end alike, after different beginnings.
TEXTS = (
    "The weather was fine, so the two old friends walked home.",
    "A clerk had put all the keys into the drawer at home.",
    "The person in the store asked when she would be home.",
)
#: By how much two scores of one text may differ. The same request is computed the same way but for
#: other users' beside it; a preference counts from ln 1.65 = 0.5 nats on.
SAME_NATS = 0.05
#: What rounding may add to a log-probability of 0.
ROUNDING_NATS = 1e-6
#: What servers put for minus infinity, which JSON lacks.
LEAST_NATS = -9999.0
_FIX = "serve the model with vLLM, or load it here with --backend transformers"


@dataclass(frozen=True)
class Probed:
    """What is known of a server after the probe.

    Attributes:
        sent: what is put before each text: BOS, or nothing where the server puts its own.
        context: tokens before the text, as it shows them; the last one is ``bos``.
        tokenisation: hash of the tokens of the probe's texts (8 hex digits).
    """

    sent: str
    context: tuple[str, ...]
    tokenisation: str

    @property
    def bos(self) -> str:
        """The context token, as the server spells it."""
        return self.context[-1]


def probe(server: EchoServer, bos: str | None) -> Probed:
    """Find out how a server scores texts.

    Raises ``BadInput`` that says what was seen where that isn't a score, ``UsageProblem`` where a
    BOS has to be given or must not be.
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
    return Probed(sent, echoes[0].context, tokenisation)


def _choose_context(server: EchoServer, bos: str | None) -> str:
    """What has to be put before a text: nothing where the server puts BOS itself."""
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
        (behind,) = _echoes(server, bos, TEXTS[:1])
    except BadInput as e:
        raise UsageProblem(f"--bos {bos}", f"with it the server {e.args[1]}", fix) from e
    if behind.n_context != 1 or behind.pieces[0].strip() != bos:
        shown = " ".join(map(repr, behind.context)) or "nothing"
        raise UsageProblem(f"--bos {bos}", f"the server makes {shown} of it, not one token", fix)
    return bos


def _echoes(server: EchoServer, sent: str, texts: Sequence[str]) -> list[Echo]:
    """Echoes of texts that are asked for at a time."""
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
    """Each token has a log-probability that can be one."""
    for piece, value in zip(echo.text_pieces, echo.text_logprobs_nats, strict=True):
        if value is None or not math.isfinite(value):
            said = "no log-probability" if value is None else f"log-probability {value}"
            _refuse(server, f"gives {said} for the token {piece!r} in the midst of a text")
        if value > ROUNDING_NATS:
            _refuse(server, f"gives {piece!r} log-probability {value:g}, which is above 0")
    values = set(echo.text_logprobs_nats)
    if len(values) == 1:
        _refuse(server, f"gives every token of a text the same log-probability, {values.pop():g}")


def _check_dependence(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Other texts have other figures; so has the same token behind another text."""
    for i, one in enumerate(echoes):
        for other in echoes[:i]:
            n = min(len(one.text_pieces), len(other.text_pieces))
            if one.text_logprobs_nats[:n] == other.text_logprobs_nats[:n]:
                _refuse(server, "gives different texts the same log-probabilities")
    ends = {(echo.pieces[-2], echo.logprobs_nats[-2]) for echo in echoes}
    piece, value = ends.pop()
    if not ends and value is not None and value < -ROUNDING_NATS:  # several may be certain
        problem = f"gives {piece!r} log-probability {value:g} whatever comes before it"
        _refuse(server, problem)


def _check_same(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """The same text has the same score each time."""
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
