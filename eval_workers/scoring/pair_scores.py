"""Score both sentences of each pair of a benchmark with a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from plumbline.eval_workers.models.scoring_contract import SAME_TOKENS, TextScore, short_hash
from plumbline.eval_workers.scoring.model_step import ModelStep
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.steps.claimed_chunks import Chunk
from plumbline.warehouse.steps.step import NewRows, Row, State, state_of
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Backend, Identity, Model

#: Texts per chunk. On a CPU, a chunk takes a few seconds for a model with 70 million parameters,
#: and a minute or two for a model with a billion. Starting and storing a chunk takes milliseconds.
CHUNK_TEXTS = 512
SIDES = ("sentence_a", "sentence_b")
TextForm = Literal["written", "released"]
_Pair = TypeVar("_Pair", bound=Mapping[str, Any])


def check_imported(store: Store, benchmarks: Sequence[str]) -> None:
    """Raise ``UsageProblem`` if a benchmark isn't in the warehouse."""
    for name in benchmarks:
        if not store.units("benchmark_pair", benchmark=name):
            fix = f"run `plumbline benchmark import {name}` first, or your own: docs/pairs.md"
            known = store.read("benchmark_pair")["benchmark"].unique().to_pylist()
            fix = did_you_mean(name, known, fix)
            raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)


def text_id(pair: Row) -> str:
    """Return a hash of both sentences of a pair (16 hex digits).

    >>> pair = {"sentence_a": "She ran.", "sentence_b": "He ran."}
    >>> text_id(pair) == text_id({**pair, "sentence_b": "He ran!"})
    False
    """
    return short_hash(texts_of(pair))


def texts_of(pair: Row) -> list[str]:
    return [pair[side] for side in SIDES]


def drawn(pairs: Iterable[_Pair], n: int | None) -> list[_Pair]:
    """Choose ``n`` random pairs, or all if ``n`` is ``None``. Every machine chooses the same pairs.

    >>> [pair["pair_id"] for pair in drawn([{"pair_id": str(k)} for k in range(9)], 3)]
    ['8', '4', '3']
    """
    return sorted(pairs, key=lambda p: hashlib.sha256(str(p["pair_id"]).encode()).hexdigest())[:n]


def in_form(text: str, form: TextForm) -> str:
    """Return a sentence in a text form: `written` (unchanged) or `released`.

    In the form `released`, only the first letter is in upper case, and straight double quotes are
    removed. UnStereoEval's released scores (Belem et al., ICLR 2024) are for this form.

    >>> in_form('"She met the CEO of BBC," Ann said.', "released")
    'She met the ceo of bbc, ann said.'
    >>> in_form("She met the CEO.", "written")
    'She met the CEO.'
    """
    # Remove quotes first. Otherwise the letter after an opening quote wouldn't be capitalised.
    return text.replace('"', "").capitalize() if form == "released" else text


@dataclass(frozen=True)
class PairScores(ModelStep):
    """Scores the pairs of a benchmark that the model hasn't scored yet.

    The sentences are scored in the form ``text_form`` (see ``in_form``), which is part of the
    model's identity. If a pair's sentences have changed, the pair is scored again and its old row
    is removed. If a sentence can't be scored, its pair gets a row in ``reject`` instead of
    ``pair_score``, and the next run tries the pair again. If ``limit`` is set, only that many pairs
    are scored, chosen by ``drawn``. Earlier scores are kept.
    """

    benchmark: str
    text_form: TextForm = "written"
    limit: int | None = None

    table = "pair_score"
    key = order = ("pair_id",)
    stage = "score"
    verb = "score"
    unit = "sentences"
    result_type = TextScore
    measures = ()

    @property
    def label(self) -> str:
        return self.benchmark

    def check(self, store: Store) -> None:
        check_imported(store, [self.benchmark])

    def identity(self, model: Model) -> Identity:
        return replace(model.identity, text_form=self.text_form)

    def partition(self, model: Any) -> dict[str, str]:
        return {"model_key": self.identity(model).key, "benchmark": self.benchmark}

    def state(self, store: Store, model: Any) -> State:
        """Return the pairs in the step's text form, and the stored rows. Loads no weights."""
        wanted = store.read("benchmark_pair", benchmark=self.benchmark).to_pylist()
        for pair in wanted:
            pair.update({side: in_form(pair[side], self.text_form) for side in SIDES})
            pair["text_id"] = text_id(pair)
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        state = state_of(wanted, rows, *self.key)
        if self.limit is not None:
            names = {one["pair_id"] for one in (*state.kept, *drawn(wanted, self.limit))}
            wanted = [pair for pair in wanted if pair["pair_id"] in names]
            state = state_of(wanted, rows, *self.key)
        return state

    def chunks(self, missing: Sequence[Row]) -> Iterator[Chunk]:
        """Yield chunks of distinct sentences, sorted. Sentences that start alike end up together.

        >>> pair = {"sentence_a": "I saw her.", "sentence_b": "I saw him."}
        >>> [(chunk.items, chunk.n_units) for chunk in PairScores("demo").chunks([pair, pair])]
        [(['I saw her.', 'I saw him.'], 2)]
        """
        every = sorted({text for pair in missing for text in texts_of(pair)})
        for start in range(0, len(every), CHUNK_TEXTS):
            items = every[start : start + CHUNK_TEXTS]
            yield Chunk(items, len(items))

    def new_rows(self, model: Backend, state: State, results: Mapping[str, TextScore]) -> NewRows:
        """Return a row of ``pair_score`` for each pair. Reject pairs with an unscored sentence."""
        rows, rejects = [], []
        for pair in state.missing:
            a, b = (results[text] for text in texts_of(pair))
            if found := self._problem(model, a, b):
                side, problem = found
                reason = f"pair {pair['pair_id']}, {pair[f'group_{side}']} sentence: {problem}"
                reject = rejected(pair, reason, pair[f"sentence_{side}"])
                rejects.append({**reject, "text_id": pair["text_id"]})
                continue
            rows.append(
                {
                    "pair_id": pair["pair_id"],
                    "text_id": pair["text_id"],
                    "model": model.identity.model,
                    "logprob_a_nats": a.logprob_nats,
                    "logprob_b_nats": b.logprob_nats,
                    "n_tokens_a": a.n_tokens,
                    "n_tokens_b": b.n_tokens,
                }
            )
        return NewRows(rows, rejects)

    def _problem(self, model: Backend, a: TextScore, b: TextScore) -> tuple[str, str] | None:
        """If a sentence has a problem, return `a` or `b` and the problem, otherwise ``None``."""
        for side, score in (("a", a), ("b", b)):
            if score.problem:
                return side, score.problem
        same = a.token_ids and a.token_ids == b.token_ids
        return ("a", SAME_TOKENS) if same and getattr(model, "knows_all_words", True) else None
