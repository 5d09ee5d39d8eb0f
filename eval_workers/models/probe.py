"""Check a server's log-probabilities before anything is scored.

Some servers return nothing or zeros. Other servers return log-probabilities of the generated text
or of the next token, or values that the sampler has changed. Evaluations have mistaken such values
for scores.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from plumbline.eval_workers.chat.requests import Failure
from plumbline.eval_workers.models.echo import (
    NOT_OPENAI,
    ROUNDING_NATS,
    Echo,
    EchoServer,
    read_echo,
)
from plumbline.warehouse.errors import BadInput, UsageProblem

#: Texts to score. The first is scored three times. All end with the same word.
TEXTS = (
    "The weather was fine, so the two old friends walked home.",
    "A clerk had put all the keys into the drawer at home.",
    "The person in the store asked when she would be home.",
)
#: ``TEXTS`` with one word of each text changed.
CHANGED = (
    "The weather was fine, so the two Tuesday friends walked home.",
    "A clerk had put all the thunder into the drawer at home.",
    "The person in the seven asked when she would be home.",
)
#: Largest accepted difference between two scores of one text. Scores may differ a little, because
#: other users' requests in a batch can change the rounding. (A difference of ln 1.65 = 0.5 nats
#: between the sentences of a pair counts as a preference.)
SAME_NATS = 0.05
#: Largest accepted difference between a token's log-probabilities in two different requests. It
#: exceeds ``SAME_NATS``, because bfloat16 rounds logits above 16 to eighths.
OTHER_NATS = 0.5
#: Largest accepted total probability of the likeliest tokens at a place, and how many to request.
_MOST, _TOPS = 1.001, 5


def probe(server: EchoServer, bos: str | None) -> tuple[EchoServer, str, str]:
    """Check the scores that a server gives a few texts. ``bos`` is the value of ``--bos``.

    Return three values. The first is the server, with the parameters that it accepts and the BOS
    that it needs. The second is the token that the server shows before a text. The third is a hash
    of the tokens into which the server splits ``TEXTS`` (8 hex digits). Raises ``BadInput`` for
    invalid scores, and ``UsageProblem`` for a missing or wrong BOS.
    """
    server = _with_context(server, bos)
    texts = _echoes(server, TEXTS)
    again = _echoes(server, [TEXTS[0]] * 2)
    changed = _echoes(server, CHANGED)
    for echo in (*texts, *again, *changed):
        if echo.context != texts[0].context:
            _refuse(server, f"puts different tokens before texts: {echo.context}")
        if echo.first_nats is not None:
            _refuse(server, "gives the first token a log-probability, though nothing precedes it")
        if echo.problem:
            _refuse(server, echo.problem)
    _check_dependence(server, texts)
    _check_same(server, [texts[0], *again])
    _check_sum(server)
    _check_change(server, texts, changed)
    (colder,) = _echoes(server, TEXTS[:1], temperature=0.5)
    if max(_differences(texts[0], colder)) > OTHER_NATS:  # the temperature changed the scores
        problem = "gives a text different log-probabilities at temperatures 1 and 0.5"
        _refuse(server, f"{problem}: they must not depend on how tokens are drawn")
    _check_written(server)
    pieces = json.dumps([[*echo.context, *echo.pieces] for echo in texts])
    tokenisation = hashlib.sha256(pieces.encode("utf-8", "replace")).hexdigest()[:8]
    return server, texts[0].context[-1], tokenisation


def _with_context(server: EchoServer, bos: str | None) -> EchoServer:
    """Return the server with the parameters that it accepts and the BOS that it needs.

    The parameters ``NOT_OPENAI`` are left out if the server refuses them.
    """
    (body,) = server.bodies(TEXTS[:1])
    if isinstance(body, Failure) and body.status in (400, 422):
        kept = {name: v for name, v in server.parameters.items() if name not in NOT_OPENAI}
        server = replace(server, parameters=kept)
        (body,) = server.bodies(TEXTS[:1])
    if isinstance(plain := read_echo(body, TEXTS[0]), str):
        _refuse(server, plain)
    if len(plain.context) > 1:
        _refuse(server, f"puts more than one token before a text: {plain.context}")
    if plain.context:
        (shown,) = plain.context
        if bos is not None and shown.strip() != bos:
            problem = f"the server puts {shown!r} before each text itself"
            raise UsageProblem(f"--bos {bos}", problem, "leave it out")
        return server
    if plain.first_nats is not None:
        _refuse(server, "gives the first token a log-probability, but shows no token before it")
    if bos is None:
        problem = f"puts no BOS before a text, so {plain.pieces[0]!r} has no log-probability"
        fix = "give the model's BOS with bos (option or setting)"
        raise UsageProblem(_name(server), problem, fix)
    server, fix = replace(server, sent=bos), "give the token that begins the model's texts"
    (with_bos,) = server.echoes(TEXTS[:1])
    if isinstance(with_bos, str):
        raise UsageProblem(f"--bos {bos}", f"with it the server {with_bos}", fix)
    if [piece.strip() for piece in with_bos.context] != [bos]:
        raise UsageProblem(f"--bos {bos}", f"the server reads it as {with_bos.context}", fix)
    return server


def _echoes(server: EchoServer, texts: Sequence[str], **changes: object) -> list[Echo]:
    """Return the echo of each text, or refuse the server. ``changes`` are request parameters."""
    echoes = []
    for echo in server.echoes(texts, **changes):
        if isinstance(echo, str):
            _refuse(server, echo)
        echoes.append(echo)
    return echoes


def _check_dependence(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse a server that gives a token the same log-probability after different words."""
    for k in (-2, -1):  # all texts end with `home.`, which may be one token or two
        ends = {(echo.pieces[k], echo.logprobs_nats[k]) for echo in echoes}
        piece, value = ends.pop()
        if not ends and value is not None and value < -ROUNDING_NATS:  # 0 means certain
            _refuse(server, f"gives {piece!r} log-probability {value:g} whatever comes before it")


def _check_same(server: EchoServer, echoes: Sequence[Echo]) -> None:
    """Refuse a server that returns different tokens or scores for the same text."""
    sums = [math.fsum(v for v in echo.logprobs_nats if v is not None) for echo in echoes]
    is_cut_alike = len({echo.pieces for echo in echoes}) == 1
    if not is_cut_alike or max(sums) - min(sums) > SAME_NATS:
        shown = ", ".join(f"{total:.3f}" for total in sums)
        _refuse(server, f"gives the same text another score each time: {shown} nats")


def _check_sum(server: EchoServer) -> None:
    """Refuse a server if the likeliest tokens at a position have a total probability above 1.

    A server that doesn't return the likeliest tokens passes this check.
    """
    echoes = server.echoes(TEXTS, logprobs=_TOPS)
    tops = [top for echo in echoes if isinstance(echo, Echo) for top in echo.tops_nats]
    total = max((sum(math.exp(min(value, 1.0)) for value in top) for top in tops), default=0.0)
    if total > _MOST:
        problem = f"gives the likeliest tokens at a place probabilities that sum to {total:.3f}"
        _refuse(server, f"{problem}: its logarithms may be of base 10")


def _check_change(server: EchoServer, echoes: Sequence[Echo], changed: Sequence[Echo]) -> None:
    """Refuse a server if a token's score depends on later tokens or doesn't depend on the token."""
    own = [0.0]
    for echo, other in zip(echoes, changed, strict=True):
        differences = _differences(echo, other)
        for piece, changed_piece, nats in zip(echo.pieces, other.pieces, differences, strict=False):
            if piece != changed_piece:
                own.append(nats)
                break
            if nats > OTHER_NATS:
                problem = f"gives {piece!r} another log-probability if a later word changes"
                _refuse(server, f"{problem}: values may belong to the next token")
    if max(own) <= SAME_NATS:
        _refuse(server, "gives every word in a place the same log-probability")


def _differences(one: Echo, other: Echo) -> list[float]:
    pairs = zip(one.logprobs_nats, other.logprobs_nats, strict=False)
    return [abs((a or 0.0) - (b or 0.0)) for a, b in pairs]


def _check_written(server: EchoServer) -> None:
    """Check that a token's log-probability in a prompt is the same as when it is generated.

    The log-probability of a generated token is reliable. For the tokens of a prompt, a server may
    return the log-probabilities of other tokens, such as the next tokens.
    """
    prompts = [text.rsplit(" ", n)[0] for text in TEXTS for n in (1, 3)]
    echoes = _echoes(server, prompts, temperature=0.0)
    pairs = (_written_and_sent(server, *both) for both in zip(prompts, echoes, strict=True))
    compared = [pair for pair in pairs if pair is not None]
    if not compared:
        problem = "gives no generated token a log-probability that can be compared"
        _refuse(server, f"{problem} with the same token's in a text")
    for one, two in compared:
        if abs(one - two) > OTHER_NATS:
            problem = f"gives a token log-probability {one:g} when it generates the token"
            _refuse(server, f"{problem}, and {two:g} in the same place of a text")


def _written_and_sent(server: EchoServer, text: str, echo: Echo) -> tuple[float, float] | None:
    """Return two log-probabilities of the token that the server generates after ``text``.

    The first comes from generating the token. The second comes from a prompt that consists of
    ``text`` and the token. A server may not show whether a token starts with a space. So the token
    is sent with and without a space, and the value nearer to the first is returned.

    Return ``None`` if the first value is missing, or is 0 because only one token is possible. Also
    return ``None`` if the server doesn't split the prompt into the same tokens.
    """
    *between, (piece, one) = echo.after or (("", None),)
    if one is None or one > -ROUNDING_NATS:
        return None
    tokens = [*echo.context, *echo.pieces, *(token for token, _ in echo.after)]
    start = text + "".join(token for token, _ in between)
    new = dict.fromkeys([echo.written, piece, f" {piece}"])
    values = [
        two
        for again in server.echoes([start + part for part in new if part.strip()])
        if isinstance(again, Echo)
        and [*again.context, *again.pieces] == tokens
        and (two := again.logprobs_nats[-1]) is not None
    ]
    return (one, min(values, key=lambda two: abs(one - two))) if values else None


def _name(server: EchoServer) -> str:
    return f"server {server.server.base_url}"


def _refuse(server: EchoServer, problem: str) -> NoReturn:
    fix = "serve the model with vLLM, or load it here with --backend transformers"
    raise BadInput(_name(server), problem, fix)
