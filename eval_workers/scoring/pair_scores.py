"""Log-probability of both sentences of each pair of a benchmark, under a model."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from plumbline.eval_workers.models.model_options import pair_in_form
from plumbline.eval_workers.models.scoring_contract import (
    LOG_LIKELIHOOD,
    SAME_TOKENS,
    TextScore,
    texts_hash,
)
from plumbline.eval_workers.scoring.model_step import ModelStep, run_on_model
from plumbline.warehouse.errors import UsageProblem, did_you_mean
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.steps.step import Chunk, ComputedStep, NewRows, Row, State, state_of
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.models.scoring_contract import Backend

#: Texts per chunk. On a CPU a chunk takes a model of 70 million parameters some seconds, one of a
#: billion a minute or two. Its overhead (claim, file, part-filled last pass) is milliseconds.
CHUNK_TEXTS = 512
SIDES = ("sentence_a", "sentence_b")
BASELINE = ("baseline_a", "baseline_b")
_TOKENS, _PAIR = "token_logprob", ("pair_id", "text_id")
_Pair = TypeVar("_Pair", bound=Mapping[str, Any])
#: A scored text: a sentence, or a sentence with the other one of its pair.
Item = str | tuple[str, str]


@dataclass(frozen=True)
class ScoredBenchmark:
    """Outcome for one benchmark: ``n_pairs = n_scored + n_rejected``.

    This run published ``n_new`` of the scored pairs. ``pairs_per_s`` is the speed of all workers
    together after the weights were loaded; ``None`` if there was nothing to do.
    """

    benchmark: str
    model: str
    model_key: str
    n_pairs: int
    n_scored: int
    n_new: int
    n_rejected: int
    pairs_per_s: float | None = None
    measure: str = LOG_LIKELIHOOD


def score_benchmarks(
    store: Store,
    model: str,
    benchmarks: Sequence[str],
    options: ModelOptions,
    run_id: str,
    *,
    n_workers: int = 1,
    limit: int | None = None,
    say: Callable[[str], None] = print,
) -> list[ScoredBenchmark]:
    """Score all pairs of the benchmarks that have no score under this model's identity.

    With ``limit``, only that many pairs of each benchmark, the same for all models (``drawn``).
    Writes ``model``, ``pair_score`` and ``reject`` (stage `score`). With ``options.per_token`` also
    writes ``token_logprob``, and scores pairs without stored tokens again. Raises
    ``UsageProblem`` for a benchmark that is not in the warehouse, and what ``run_on_model`` raises.
    """
    steps = [PairScores.of(name, options, limit) for name in dict.fromkeys(benchmarks)]
    return run_on_model(store, model, options, steps, run_id, n_workers=n_workers, say=say)


def check_imported(store: Store, benchmarks: Sequence[str]) -> None:
    """Raise ``UsageProblem`` for a benchmark of which the warehouse has no pairs."""
    for name in benchmarks:
        if not store.units("benchmark_pair", benchmark=name):
            fix = f"run `plumbline benchmark import {name}` first, or your own: docs/pairs.md"
            if "," in name:
                fix = "give --benchmark once for each"
            known = store.read("benchmark_pair")["benchmark"].unique().to_pylist()
            fix = did_you_mean(name, known, fix)
            raise UsageProblem(f"benchmark {name!r}", "is not in the warehouse", fix)


def text_id(pair: Row) -> str:
    """Hash of both sentences as they are scored (16 hex digits).

    >>> pair = {"sentence_a": "She ran.", "sentence_b": "He ran."}
    >>> text_id(pair) == text_id({**pair, "sentence_b": "He ran!"})
    False
    """
    return texts_hash([pair[side] for side in SIDES])


def sides(pair: Row) -> tuple[str, ...]:
    """The columns of a pair that hold texts to score: both sentences, and those of its baseline.

    >>> sides({"baseline_a": "The word here is old."}), sides({"baseline_a": None})
    (('sentence_a', 'sentence_b', 'baseline_a', 'baseline_b'), ('sentence_a', 'sentence_b'))
    """
    return SIDES if pair.get(BASELINE[0]) is None else SIDES + BASELINE


def drawn(pairs: Iterable[_Pair], n: int | None) -> list[_Pair]:
    """At most ``n`` of a benchmark's pairs: the same on every machine, as if drawn at random.

    >>> [pair["pair_id"] for pair in drawn([{"pair_id": str(k)} for k in range(9)], 3)]
    ['8', '4', '3']
    """
    return sorted(pairs, key=lambda p: hashlib.sha256(str(p["pair_id"]).encode()).hexdigest())[:n]


@dataclass(frozen=True)
class PairScores(ModelStep[ScoredBenchmark]):
    """Score the pairs of a benchmark; ``per_token`` stores each token's log-probability too.

    ``given_other``: a sentence is scored given its pair's other sentence (`crows-pairs`). If a
    pair's sentences changed, it is scored again and its old row is removed. A pair with a sentence
    that can't be scored gets a row in ``reject``, not ``pair_score``, and the next run tries it
    again. A baseline that can't be scored is NULL. With ``limit``, only so many pairs are scored;
    earlier scores of others stay.
    """

    benchmark: str
    per_token: bool = False
    given_other: bool = False
    limit: int | None = None

    table = "pair_score"
    order = ("pair_id",)
    stage = "score"
    verb = "score"
    unit = "pairs"
    result_type = TextScore
    measures = ()

    @classmethod
    def of(cls, benchmark: str, options: ModelOptions, limit: int | None = None) -> PairScores:
        """The step for a model's options."""
        return cls(benchmark, options.per_token, options.pll == "crows-pairs", limit)

    @property
    def label(self) -> str:
        return self.benchmark

    def item(self, pair: Row, side: str) -> Item:
        """A sentence of a pair; with ``given_other``, the sentence and the pair's other one."""
        if not self.given_other:
            return str(pair[side])
        (other,) = (pair[n] for n in (SIDES if side in SIDES else BASELINE) if n != side)
        return str(pair[side]), str(other)

    def check(self, store: Store, options: ModelOptions) -> None:
        check_imported(store, [self.benchmark])

    def partition(self, model: Any) -> dict[str, str]:
        return {"model_key": model.identity.key, "benchmark": self.benchmark}

    def state(self, store: Store, model: Any) -> State:
        """Pairs in the model's text form, and their rows; only the model's ``identity`` is used."""
        written = store.read("benchmark_pair", benchmark=self.benchmark).to_pylist()
        pairs = [pair_in_form(pair, model.identity.text_form) for pair in written]
        wanted = [{**p, "text_id": texts_hash([p[side] for side in sides(p)])} for p in pairs]
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        state = state_of(wanted, rows, "pair_id")
        if self.per_token:
            tokens = store.read(_TOKENS, **self.partition(model)).group_by([*_PAIR]).aggregate([])
            stored = {(row["pair_id"], row["text_id"]) for row in tokens.to_pylist()}
            valid = [row for row in state.kept if (row["pair_id"], row["text_id"]) in stored]
            state = replace(state_of(wanted, valid, "pair_id"), found=rows)
        if self.limit is not None:
            chosen = {pair["pair_id"] for pair in drawn(wanted, self.limit)}
            missing = [pair for pair in state.missing if pair["pair_id"] in chosen]
            names = {row["pair_id"] for row in (*state.kept, *missing)}
            wanted = [pair for pair in wanted if pair["pair_id"] in names]
            state = replace(state, wanted=wanted, missing=missing)
        return state

    def chunks(self, missing: Sequence[Row]) -> Iterator[Chunk]:
        """Distinct sentences in alphabetical order: a chunk then shares common beginnings.

        A pair counts in the chunk with the last of its sentences.

        >>> pair = {"sentence_a": "I saw her.", "sentence_b": "I saw him."}
        >>> [(chunk.items, chunk.n_units) for chunk in PairScores("demo").chunks([pair, pair])]
        [(['I saw her.', 'I saw him.'], 2)]
        """
        pairs = [sorted(self.item(pair, side) for side in sides(pair)) for pair in missing]
        every = sorted({item for items in pairs for item in items})
        last = sorted(items[-1] for items in pairs)
        n_before = 0
        for start in range(0, len(every), CHUNK_TEXTS):
            items = every[start : start + CHUNK_TEXTS]
            n = bisect_right(last, items[-1])
            yield Chunk(items, n - n_before)
            n_before = n

    def compute(self, model: Any, items: Sequence[Any]) -> list[TextScore]:
        """A score for each item; ``model`` is a ``Backend``."""
        score = model.score_beside if self.given_other else model.score
        scores: list[TextScore] = score(items)
        return scores

    def new_rows(self, model: Backend, state: State, results: Mapping[Item, TextScore]) -> NewRows:
        """Rows of ``pair_score``, and of ``reject`` for pairs with a sentence without a score."""
        rows, rejects = [], []
        for pair in state.missing:
            a, b, *baseline = (results[self.item(pair, side)] for side in sides(pair))
            a = self._told_apart(model, a, b)
            if a.problem or b.problem:
                rejects.append(_reject(pair, a, b))
                continue
            rows.append(
                {
                    **{name: pair[name] for name in ("pair_id", "text_id")},
                    "model": model.identity.model,
                    "logprob_a_nats": a.logprob_nats,
                    "logprob_b_nats": b.logprob_nats,
                    "n_tokens_a": a.n_tokens,
                    "n_tokens_b": b.n_tokens,
                }
            )
            if baseline:
                a, b = self._told_apart(model, *baseline), baseline[1]
                if not (a.problem or b.problem):
                    rows[-1]["baseline_logprob_a_nats"] = a.logprob_nats
                    rows[-1]["baseline_logprob_b_nats"] = b.logprob_nats
        return NewRows(rows, rejects)

    def _told_apart(self, model: Backend, a: TextScore, b: TextScore) -> TextScore:
        """The first sentence's score; with a problem if both have the same tokens."""
        # With ``given_other`` both sentences are scored on the same tokens, see ``score_beside``.
        same = not self.given_other and a.token_ids and a.token_ids == b.token_ids
        same = same and getattr(model, "knows_all_words", True)
        return replace(a, problem=SAME_TOKENS) if same and not (a.problem or b.problem) else a

    def publish_before(self, done: ComputedStep) -> None:
        """Also publish the tokens of newly scored pairs, and remove tokens of removed rows."""
        super().publish_before(done)
        state, new = done.state, {row["pair_id"] for row in done.new.rows}
        if not new and len(state.kept) == len(state.found):
            return
        scored = [
            (pair, [done.results[self.item(pair, side)] for side in SIDES])
            for pair in state.missing
            if self.per_token and pair["pair_id"] in new
        ]
        publish_tokens(done.store, done.resource, self.benchmark, state.kept, scored, done.run_id)

    def outcome(self, done: ComputedStep, rate: float | None) -> ScoredBenchmark:
        identity, n_new = done.resource.identity, len(done.new.rows)
        n_scored, n_rejected = len(done.state.kept) + n_new, len(done.new.rejects)
        counts = (len(done.state.wanted), n_scored, n_new, n_rejected)
        return ScoredBenchmark(
            self.benchmark, identity.model, identity.key, *counts, rate, identity.measure
        )


def _reject(pair: Row, a: TextScore, b: TextScore) -> Row:
    side, score = ("a", a) if a.problem else ("b", b)
    reason = f"pair {pair['pair_id']}, {pair[f'group_{side}']} sentence: {score.problem}"
    return {**rejected(pair, reason, pair[f"sentence_{side}"]), "text_id": pair["text_id"]}


def publish_tokens(
    store: Store,
    model: Backend,
    benchmark: str,
    kept: Sequence[Row],
    scored: Sequence[tuple[Row, Sequence[TextScore]]],
    run_id: str,
) -> None:
    """Add the tokens of newly scored pairs to those of ``kept``, and remove all others.

    ``scored``: for each new pair its row with ``text_id``, and the scores of both sentences;
    ``kept``: the rows of ``pair_score`` that stay.
    """
    partition = {"benchmark": benchmark, "model_key": model.identity.key}
    old = store.read(_TOKENS, **partition)
    if not scored and not old.num_rows:
        return
    pieces = model.pieces({i for _, scores in scored for score in scores for i in score.token_ids})
    rows = [
        {
            **partition,
            **{name: pair[name] for name in _PAIR},
            "side": side,
            "run_id": run_id,
            "position": position,
            "token_id": token_id,
            "token": pieces[token_id],
            "logprob_nats": score.token_logprobs_nats[position],
        }
        for pair, scores in scored
        for side, score in zip("ab", scores, strict=True)
        for position, token_id in enumerate(score.token_ids)
    ]
    valid = pa.table({n: pa.array([row[n] for row in kept], pa.string()) for n in _PAIR})
    schema = TABLES[_TOKENS]
    stay = cast(schema, old.join(valid, [*_PAIR], join_type="left semi"))
    order = [(column, "ascending") for column in ("pair_id", "side", "position")]
    new = pa.concat_tables([stay, cast(schema, rows)]).sort_by(order)
    store.replace(_TOKENS, new, partition, run_id)
