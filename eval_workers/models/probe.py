"""A check of a server's log-probabilities before anything is scored.

Known faults: some servers return nothing, zeros, or log-probabilities of the generated text, of the
next position, or of the sampler's distribution; evaluations took these for scores of the prompt.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NoReturn

from plumbline.eval_workers.chat.requests import Failure
from plumbline.eval_workers.models.echo import (
    NOT_OPENAI,
    ROUNDING_NATS,
    Echo,
    EchoFault,
    EchoServer,
    read_echo,
)
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Texts to score; the first is scored three times. All have the same last word.
TEXTS = (
    "The weather was fine, so the two old friends walked home.",
    "A clerk had put all the keys into the drawer at home.",
    "The person in the store asked when she would be home.",
)
#: The same texts with one word changed.
CHANGED = (
    "The weather was fine, so the two Tuesday friends walked home.",
    "A clerk had put all the thunder into the drawer at home.",
    "The person in the seven asked when she would be home.",
)
#: Largest accepted difference between two scores of one text: other users' requests in a batch may
#: change the rounding. For comparison: a preference counts from ln 1.65 = 0.5 nats on.
SAME_NATS = 0.05
#: Largest accepted difference between a token's values in two requests that differ: half precision
#: rounds logits above 16 to eighths.
OTHER_NATS = 0.5
#: Largest accepted sum of probabilities at one place, and how many of the likeliest are asked for.
_MOST, _TOPS = 1.001, 5


@dataclass(frozen=True)
class ProbeResult:
    """The result of a server's probe.

    Attributes:
        server: the server, with the parameters that it accepts.
        sent: text to send before each text: BOS, or empty if the server adds its own.
        context: tokens before the text, as the server shows them; the last one is ``bos``.
        tokenisation: hash of the tokens of the probe's texts (8 hex digits).
    """

    server: EchoServer
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
    server, plain = _accepted(server)
    sent = _choose_context(server, plain, bos)
    texts = _echoes(server, sent, TEXTS)
    again = _echoes(server, sent, [TEXTS[0]] * 2)
    changed = _echoes(server, sent, CHANGED)
    for echo in (*texts, *again, *changed):
        if echo.context != texts[0].context:
            _refuse(server, f"puts different tokens before texts: {echo.context}")
        if echo.logprobs_nats[0] is not None:
            _refuse(server, "gives the first token a log-probability, given nothing")
        if echo.problem:
            _refuse(server, echo.problem)
    _check_dependence(server, texts)
    _check_same(server, [texts[0], *again])
    _check_sum(server, sent)
    _check_change(server, texts, changed)
    _check_temperature(server, texts[0], *_echoes(server, sent, TEXTS[:1], temperature=0.5))
    _check_written(server, sent)
    pieces = json.dumps([[*echo.context, *echo.text_pieces] for echo in texts])
    tokenisation = hashlib.sha256(pieces.encode("utf-8", "replace")).hexdigest()[:8]
    return ProbeResult(server, sent, texts[0].context, tokenisation)


def _accepted(server: EchoServer) -> tuple[EchoServer, Echo]:
    """The server, without ``NOT_OPENAI`` if it refuses those, and its echo of the first text."""
    (body,) = server.bodies(TEXTS[:1])
    if isinstance(body, Failure) and body.status in (400, 422):
        kept = {name: v for name, v in server.parameters.items() if name not in NOT_OPENAI}
        server = replace(server, parameters=kept)
        (body,) = server.bodies(TEXTS[:1])
    return server, _echo(server, TEXTS[0], body)


def _choose_context(server: EchoServer, plain: Echo, bos: str | None) -> str:
    """The text to send before each text: BOS, or nothing if the server adds BOS.

    ``plain``: the echo of a text with nothing before it.
    """
    shown = "".join(plain.context)
    if plain.n_context > 1:
        _refuse(server, f"puts more than one token before a text: {plain.context}")
    if plain.n_context == 1:
        if bos is not None and shown.strip() != bos:
            problem = f"the server puts {shown!r} before each text itself"
            raise UsageProblem(f"--bos {bos}", problem, "leave it out")
        return ""
    if plain.logprobs_nats[0] is not None:
        _refuse(server, "gives the first token a log-probability, given nothing that it shows")
    if bos is None:
        problem = f"puts no BOS before a text, so {plain.pieces[0]!r} has no log-probability"
        fix = "give the model's BOS with bos (option or setting)"
        raise UsageProblem(_name(server), problem, fix)
    fix = "give the token that begins the model's texts"
    try:
        (with_bos,) = _echoes(server, bos, TEXTS[:1])
    except BadInput as e:
        raise UsageProblem(f"--bos {bos}", f"with it the server {e.args[1]}", fix) from e
    if [piece.strip() for piece in with_bos.context] != [bos]:
        raise UsageProblem(f"--bos {bos}", f"is {with_bos.context} at the server", fix)
    return bos


def _echoes(server: EchoServer, sent: str, texts: Sequence[str], **changes: object) -> list[Echo]:
    """Echoes of texts that are sent at the same time; ``changes``: see ``EchoServer.bodies``."""
    bodies = server.bodies([sent + text for text in texts], **changes)
    return [_echo(server, text, body) for text, body in zip(texts, bodies, strict=True)]


def _echo(server: EchoServer, text: str, body: str | Failure) -> Echo:
    if isinstance(body, Failure):
        _refuse(server, f"refuses to echo a prompt with log-probabilities: {body.error}")
    try:
        return read_echo(body, text)
    except EchoFault as e:
        _refuse(server, str(e))


def _check_dependence(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse one value for all tokens, for all texts, or for a token after any text."""
    if any(len(set(echo.text_logprobs_nats)) == 1 for echo in echoes):
        _refuse(server, "gives every token of a text the same log-probability")
    for one, other in combinations(echoes, 2):
        pairs = zip(one.text_logprobs_nats, other.text_logprobs_nats, strict=False)
        if all(a == b for a, b in pairs):
            _refuse(server, "gives different texts the same log-probabilities")
    for k in (-2, -1):  # the last word and the full stop, which may be one token
        ends = {(echo.text_pieces[k], echo.text_logprobs_nats[k]) for echo in echoes}
        piece, value = ends.pop()
        if not ends and value is not None and value < -ROUNDING_NATS:  # else it is certain
            _refuse(server, f"gives {piece!r} log-probability {value:g} whatever comes before it")


def _check_same(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse different tokens or scores of the same text."""
    sums = [math.fsum(v for v in echo.text_logprobs_nats if v is not None) for echo in echoes]
    is_cut_alike = len({echo.text_pieces for echo in echoes}) == 1
    if not is_cut_alike or max(sums) - min(sums) > SAME_NATS:
        shown = ", ".join(f"{total:.3f}" for total in sums)
        _refuse(server, f"gives the same text another score each time: {shown} nats")


def _check_sum(server: EchoServer, sent: str) -> None:
    """Refuse probabilities of the likeliest tokens at a place that sum to more than 1.

    A server that refuses to send so many tokens, or sends none, isn't checked.
    """
    bodies = server.bodies([sent + text for text in TEXTS], logprobs=_TOPS)
    answered = [pair for pair in zip(TEXTS, bodies, strict=True) if isinstance(pair[1], str)]
    tops = [top for text, body in answered for top in _echo(server, text, body).tops_nats]
    total = max((sum(math.exp(min(value, 1.0)) for value in top) for top in tops), default=0.0)
    if total > _MOST:
        problem = f"gives the likeliest tokens at a place probabilities that sum to {total:.3f}"
        _refuse(server, f"{problem}: its logarithms may be of base 10")


def _check_change(server: EchoServer, echoes: Sequence[Echo], changed: Sequence[Echo]) -> None:
    """Refuse values that follow a later token, or don't follow the token itself."""
    own = [0.0]
    for echo, other in zip(echoes, changed, strict=True):
        same = (a == b for a, b in zip(echo.text_pieces, other.text_pieces, strict=False))
        for piece, is_same, difference in zip(
            echo.text_pieces, same, _differences(echo, other), strict=False
        ):
            if not is_same:
                own.append(difference)
                break
            if difference > OTHER_NATS:
                problem = f"gives {piece!r} another log-probability if a later word is another"
                _refuse(server, f"{problem}: values may belong to the next token")
    if max(own) <= SAME_NATS:
        _refuse(server, "gives a word the log-probability of any other word in its place")


def _check_temperature(server: EchoServer, echo: Echo, colder: Echo) -> None:
    """Refuse values that the temperature changes: they are those of a sampler."""
    if max(_differences(echo, colder)) > OTHER_NATS:
        problem = "gives a text other log-probabilities at temperature 1 and 0.5"
        _refuse(server, f"{problem}: they must not depend on how tokens are drawn")


def _differences(one: Echo, other: Echo) -> list[float]:
    """Sizes of the differences between two echoes' values, from the first token of the text on."""
    pairs = zip(one.text_logprobs_nats, other.text_logprobs_nats, strict=False)
    return [abs((a or 0.0) - (b or 0.0)) for a, b in pairs]


def _check_written(server: EchoServer, sent: str) -> None:
    """Refuse a server if a token it generates has another value when it is sent as text.

    A generated token's value is that of its place: it is the prompt's values that may be shifted.
    """
    prompts = [text.rsplit(" ", n)[0] for text in TEXTS for n in (1, 3)]
    echoes = _echoes(server, sent, prompts, temperature=0.0)
    pairs = (_written_and_sent(server, sent, *both) for both in zip(prompts, echoes, strict=True))
    compared = [pair for pair in pairs if pair is not None]
    if not compared:
        problem = "gives no log-probability of a generated token that can be compared"
        _refuse(server, f"{problem} with its own of the same token in a text")
    for one, two in compared:
        if abs(one - two) > OTHER_NATS:
            problem = f"gives a token log-probability {one:g} as it generates it"
            _refuse(server, f"{problem}, and {two:g} in the same place of a text")


def _written_and_sent(
    server: EchoServer, sent: str, text: str, echo: Echo
) -> tuple[float, float] | None:
    """The value of the token generated after ``text``, and that of the same token sent as text.

    ``None`` if it isn't the same token as text, or its value is 0: a certain token, or a sampler
    without a choice. Tokens with and without a space before may look alike: the nearer value.
    """
    if not echo.n_after or (one := echo.logprobs_nats[-1]) is None or one > -ROUNDING_NATS:
        return None
    piece = echo.pieces[-1]
    start = text + "".join(echo.pieces[len(echo.pieces) - echo.n_after : -1])
    new = dict.fromkeys([echo.written, piece, f" {piece}"])
    texts = [start + part for part in new if part.strip()]
    values = []
    for whole, body in zip(texts, server.bodies([sent + whole for whole in texts]), strict=True):
        with suppress(EchoFault):
            again = read_echo("" if isinstance(body, Failure) else body, whole)
            two = again.text_logprobs_nats[-1]
            if [*again.context, *again.text_pieces] == [*echo.pieces] and two is not None:
                values.append(two)
    return (one, min(values, key=lambda two: abs(one - two))) if values else None


def _name(server: EchoServer) -> str:
    return f"server {server.server.base_url}"


def _refuse(server: EchoServer, problem: str) -> NoReturn:
    fix = "serve the model with vLLM, or load it here with --backend transformers"
    raise BadInput(_name(server), problem, fix)
