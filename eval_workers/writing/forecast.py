"""The plan of a build: its wordings, and the requests, tokens and money that it needs.

A sentence of w words counts as 1.4 w tokens, plus 4 for its number; prompts as
``budget.expected_tokens``. As tokenizers and languages differ, a budget's limits are compared with
an upper bound instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.eval_workers.chat.budget import expected_tokens, money
from plumbline.eval_workers.chat.chat_session import spending
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.pairing import CONVERSION_ROUNDS, JUDGE_ROUNDS
from plumbline.eval_workers.writing.wordings import differences, is_released
from plumbline.eval_workers.writing.written_sentences import PRONOUNS
from plumbline.warehouse.storage.store import Store

_TOKENS_A_WORD = 1.4
_TOKENS_A_NUMBER = 4
_VERDICT_TOKENS = 8
_MEAN_WORD = "garden"


@dataclass(frozen=True)
class Forecast:
    """Requests, tokens and cost of a build whose sentences are right at once.

    Revisions, repeats, conversions and failed attempts come on top; ``n_requests_most`` bounds the
    requests without failed attempts. ``cost`` is ``None`` without a price.
    """

    n_requests: int
    n_requests_most: int
    n_input_tokens: int
    n_output_tokens: int
    cost: float | None


def forecast(words: Sequence[str], spec: BuildSpec) -> Forecast:
    """Estimate what a whole build for these seed words takes.

    >>> forecast(["tea"], BuildSpec(model="m")).n_requests  # 2 lists, 10 pairs of 2 verdicts
    22
    """
    n = spec.n_sentences
    lists = [spec.request("generate", w, p, 1, n=n) for w in words for p in PRONOUNS]
    n_sentences = len(lists) * n
    n_verdicts = 2 * n_sentences if spec.judge else 0
    sentence = " ".join([_MEAN_WORD] * spec.max_words)
    verdict = spec.request("judge", _MEAN_WORD, "she", 1, sentence=sentence)
    tokens_of_sentence = _TOKENS_A_WORD * spec.max_words + _TOKENS_A_NUMBER
    to_write = sum(expected_tokens(r.prompt) for r in lists), n_sentences * tokens_of_sentence
    to_judge = n_verdicts * expected_tokens(verdict.prompt), n_verdicts * _VERDICT_TOKENS
    price, judge_price = spec.price(), spec.judging().price()
    cost = price.cost(*to_write) + judge_price.cost(*to_judge) if price and judge_price else None
    most_of_list = spec.generate_rounds * (1 + n * spec.n_revisions)
    # Only sentences with "she", one of a word's two lists, can have a "her" to convert.
    most_conversions = n_sentences // len(PRONOUNS) * CONVERSION_ROUNDS
    return Forecast(
        n_requests=len(lists) + n_verdicts,
        n_requests_most=len(lists) * most_of_list + most_conversions + JUDGE_ROUNDS * n_verdicts,
        n_input_tokens=to_write[0] + to_judge[0],
        n_output_tokens=math.ceil(to_write[1] + to_judge[1]),
        cost=cost,
    )


def planned_requests(
    store: Store | None, name: str, words: Sequence[str], spec: BuildSpec
) -> Iterator[tuple[str, str, object, str, str]]:
    """Figures of a build's plan, each with subject, name, amount, unit and note."""
    for role, source in spec.wordings.sources:
        yield f"wording, {role}", "from", source, "", f"hash of all: {spec.wordings.hash}"
    if is_released(spec.prompts):
        differ = differences(Path(spec.prompts), vars(spec))
        yield "the release", "other settings", len(differ), "", "; ".join(differ)
    whole, price = forecast(words, spec), spec.price()
    about = "about, without revisions and repeats"
    yield name, "requests", whole.n_requests, "", f"{about}; at most {whole.n_requests_most:,}"
    yield name, "tokens in", whole.n_input_tokens, "", about
    yield name, "tokens out", whole.n_output_tokens, "", about
    if whole.cost is None or price is None:
        yield name, "cost", None, "", "unknown without --prices FILE"
    else:
        yield name, "cost", money(whole.cost, price.currency), "", about
    spent = read_ledger(store, name).spent if store is not None else None
    if spent and spent.n_requests:
        so_far = spending(spent, price.currency if price else None)
        yield name, "requests in the ledger", spent.n_requests, "", so_far
