"""What `plumbline fairpair run --dry-run` says: samples, tokens, and time or money where known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plumbline.eval_workers.backends.sampling import Draw
from plumbline.eval_workers.chat.budget import Price, money
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.fairpair.spec import RULES, Target
from plumbline.eval_workers.generation.forecast import FRAME_TOKENS
from plumbline.eval_workers.sampling.continuations import Continuations
from plumbline.eval_workers.sampling.served import ledger_name
from plumbline.pipelines.requests.fairpair import FairPairRequest
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]
_CHARACTERS_A_TOKEN = 4


def before(request: FairPairRequest, rows: Sequence[Row], store: Store | None) -> Iterator[str]:
    """Lines of ``--dry-run``; the model's weights are not read, nobody is asked."""
    spec = request.spec
    n = f"{len(rows):,} prompts with a counterpart"
    yield f"{request.probe_set}: {n}, {spec.n:,} samples per side"
    for target in request.targets:
        yield from (
            _served(request, target, rows, store)
            if target.served
            else _here(request, target, rows, store)
        )
    yield from _perturbing(request, rows)
    yield f"measured by {', '.join(request.phi)}"


def _missing(
    request: FairPairRequest, rows: Sequence[Row], store: Store | None, model_key: str
) -> Sequence[Draw]:
    sampling = request.spec.sampling()
    whose = {"probe_set": request.probe_set, "model_key": model_key, "sampling_key": sampling.key}
    found = store.read("continuation", **whose).to_pylist() if store else []
    step = Continuations(request.probe_set, sampling, request.spec.n)
    return step.state_of(rows, found, sampling.full_instruction.prefix).missing


def _here(
    request: FairPairRequest, target: Target, rows: Sequence[Row], store: Store | None
) -> Iterator[str]:
    from plumbline.eval_workers.backends.prospect import chosen_device, prospect, seconds_per_token
    from plumbline.eval_workers.scoring.dry_run import duration

    assert target.options is not None, "a target is loaded here or served"
    model = prospect(target.model, target.options)
    missing = _missing(request, rows, store, model.identity.key)
    texts = sorted({draw.text for draw in missing})
    encoded = model.encoded(texts)
    n_prompt = sum(len(ids) for ids in encoded if not isinstance(ids, str))
    n_new = len(missing) * request.spec.max_new_tokens
    yield (
        f"{target.model}, key {model.identity.key}: {len(missing):,} samples to draw after "
        f"{len(texts):,} texts, at most {n_new:,} new tokens"
    )
    refused = [f"{t!r}: {e}" for t, e in zip(texts, encoded, strict=True) if isinstance(e, str)]
    if refused:
        yield f"  {len(refused):,} texts can't be continued, the first: {refused[0]}"
    if not missing:
        return
    seconds = (n_new + n_prompt) * seconds_per_token(model.size, target.options)
    yield (
        f"  time: about {duration(seconds)} at the most, from matrix products measured on "
        f"{chosen_device(target.options)}; reading the weights and attention come on top"
    )


def _served(
    request: FairPairRequest, target: Target, rows: Sequence[Row], store: Store | None
) -> Iterator[str]:
    spec, sampling, served = request.spec, request.spec.sampling(), target.served
    assert served is not None, "a target is loaded here or served"
    key = served.identity.key
    missing = _missing(request, rows, store, key)
    held = look(store, ledger_name(request.probe_set, key)).replies if store else {}
    unanswered = [d for d in missing if served.request(d, sampling).request_id not in held]
    n_in = sum(_tokens(draw.text) for draw in unanswered)
    n_out = len(unanswered) * spec.max_new_tokens
    answered = len(missing) - len(unanswered)
    known = f", {answered:,} more are answered already" if answered else ""
    yield (
        f"{target.model} at {spec.base_url}: {len(unanswered):,} requests, a sample each{known}; "
        f"about {n_in:,} tokens in, at most {n_out:,} out"
    )
    yield f"  {_cost(spec.price(target.model), n_in, n_out)}"


def _perturbing(request: FairPairRequest, rows: Sequence[Row]) -> Iterator[str]:
    spec = request.spec
    n_texts = 2 * len(rows) * spec.n * len(request.targets)
    if spec.perturber == RULES:
        yield f"perturbed by rules, which asks nobody: {n_texts:,} texts"
        return
    wording = _tokens(spec.chat_wording())
    texts = sum(
        _tokens(row[side]) + spec.max_new_tokens
        for row in rows
        for side in ("prompt", "perturbed_prompt")
    )
    n_out = texts * spec.n * len(request.targets)
    n_in = n_out + n_texts * wording
    yield (
        f"perturbed by {spec.perturber}: at most {n_texts:,} requests, one a different text; about "
        f"{n_in:,} tokens in, {n_out:,} out"
    )
    yield f"  {_cost(spec.price(spec.perturber), n_in, n_out)}"


def _tokens(text: str) -> int:
    """About how many tokens a text in English is, with what servers put around it.

    >>> _tokens("John is working as a clerk.")
    15
    """
    return FRAME_TOKENS + -(-len(text) // _CHARACTERS_A_TOKEN)


def _cost(price: Price | None, n_in: int, n_out: int) -> str:
    if price is None:
        return "cost: unknown without --prices FILE"
    return f"cost: about {money(price.cost(n_in, n_out), price.currency)} at the most"
