"""A scoring model's second opinion on built pairs: how much its scores of the sides differ.

Pairs are scored as by ``plumbline score``, with the same model key and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.eval_workers.chat.chat_session import Build, publish_rejects
from plumbline.eval_workers.pairs.benchmarks import Row
from plumbline.eval_workers.work.rejects import reject_row
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.query.connection import rows_of, sql

if TYPE_CHECKING:
    from plumbline.eval_workers.scoring.pair_scores import ScoredBenchmark

#: Step of ``reject`` rows for pairs beyond the limit.
STEP = "opinion"


@dataclass(frozen=True)
class VerdictAgreement:
    """Numbers of pairs natural to both judge and scoring model, to one of them, and to neither."""

    n_both: int
    n_judge_only: int
    n_model_only: int
    n_neither: int


@dataclass(frozen=True)
class Opinion:
    """Result of a scoring model's second opinion on a benchmark's pairs.

    Attributes:
        limit: most nats per token that the sides may differ by.
        n_beyond: pairs that differ by more.
        n_dropped: pairs of ``n_beyond`` that metrics used before.
        n_without: pairs without a difference of scores, which keep the verdict they had.
        n_left: pairs that metrics use afterwards.
        agreement: counts of verdicts by judge and model; ``None`` if no pair was judged.
    """

    model: str
    model_key: str
    limit: float
    n_beyond: int
    n_dropped: int
    n_without: int
    n_left: int
    agreement: VerdictAgreement | None

    def facts(self) -> dict[str, object]:
        """Facts for the card: the model, counts of pairs, and a warning."""
        verdicts = self.agreement
        facts: dict[str, object] = {
            "Second opinion": f"by {self.model}, key {self.model_key}: the sides of a natural "
            f"pair differ by at most {self.limit:g} nats per token",
            "Pairs beyond that": f"{self.n_beyond:,}, of which {self.n_dropped:,} are newly left "
            f"out; {self.n_without:,} without a score keep the verdict they had",
        }
        if verdicts:
            facts["Judge and second opinion"] = (
                f"{verdicts.n_both:,} pairs natural to both, "
                f"{verdicts.n_judge_only:,} to the judge only, "
                f"{verdicts.n_model_only:,} to the model only, {verdicts.n_neither:,} to neither"
            )
        why = "its own preference chose them, so they show too little of it"
        return {**facts, "Do not audit with these pairs": f"{self.model} and its kin: {why}"}

    def lines(self) -> Iterator[str]:
        """Lines for the user who built the benchmark."""
        yield (
            f"second opinion of {self.model}: {self.n_beyond:,} pairs differ by more than "
            f"{self.limit:g} nats per token, {self.n_dropped:,} of them are newly left out"
        )
        if self.n_without:
            yield f"without a score: {self.n_without:,} pairs, which keep the verdict they had"
        yield f"Warning: do not audit {self.model} with these pairs: it helped choose them"


def check_model(model: str) -> None:
    """Raise the errors of opening the model, without loading its weights; see ``open_backend``."""
    from plumbline.eval_workers.models import open_backend
    from plumbline.eval_workers.models.model_options import ModelOptions

    _ = open_backend(model, ModelOptions()).identity


def second_opinion(build: Build, model: str, limit: float) -> Opinion:
    """Score the benchmark's pairs and mark those that differ by more than ``limit`` nats per token.

    Marked pairs get ``is_natural`` false and a row of ``reject``; a pair whose difference equals
    the limit is kept. Pairs that the model can't score keep their verdict. Raises as
    ``score_benchmarks``, and ``BadInput`` if no pair would be left; then none is marked.
    """
    from plumbline.eval_workers.models.model_options import ModelOptions
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

    names, options = [build.benchmark], ModelOptions()
    (scored,) = score_benchmarks(build.store, model, names, options, build.run_id)
    return mark(build, scored, limit)


def mark(build: Build, scored: ScoredBenchmark, limit: float) -> Opinion:
    """Mark the pairs that differ by more than ``limit``; see ``second_opinion``."""
    store, name = build.store, build.benchmark
    keys = {"benchmark": name, "model_key": scored.model_key}
    rows = rows_of(store.root, sql("benchmarks/difference"), keys)
    differences = {row["pair_id"]: row["difference_nats"] for row in rows}
    pairs = store.read("benchmark_pair", benchmark=name).to_pylist()
    beyond = {p: d for p, d in differences.items() if d is not None and abs(d) > limit}
    marked = [p | {"is_natural": False} if p["pair_id"] in beyond else p for p in pairs]
    n_left = sum(pair["is_natural"] is not False for pair in marked)
    if beyond and not n_left:
        problem = f"no pair is left within {limit:g} nats per token under {scored.model}"
        raise BadInput(f"benchmark {name}", problem, "raise max_difference_nats_per_token")
    # Rejects first: if the process is killed in between, they tell which pairs were marked here.
    publish_rejects(build, STEP, _rejects(build, pairs, beyond, scored, limit))
    with disk_problems(store.root):
        store.replace("benchmark_pair", marked, {"benchmark": name}, build.run_id)
    n_dropped = sum(p["pair_id"] in beyond and p["is_natural"] is not False for p in pairs)
    n_without = sum(differences.get(p["pair_id"]) is None for p in pairs)
    counts = (len(beyond), n_dropped, n_without, n_left)
    rows = rows_of(store.root, sql("benchmarks/agreement"), {**keys, "most_nats": limit})
    agreement = VerdictAgreement(**rows[0]) if rows else None
    return Opinion(scored.model, scored.model_key, limit, *counts, agreement)


def _rejects(
    build: Build,
    pairs: Sequence[Row],
    beyond: dict[str, float],
    scored: ScoredBenchmark,
    limit: float,
) -> list[dict[str, object]]:
    return [
        reject_row(
            stage="generate",
            subject=f"{build.benchmark}/{STEP}",
            source_file=pair["pair_id"],
            source_row=position,
            reason=f"the she side differs by {beyond[pair['pair_id']]:+.3f} nats per token from "
            f"the he side under {scored.model}, key {scored.model_key}; the limit is {limit:g}",
            excerpt=str(pair["sentence_a"]),
        )
        for position, pair in enumerate(pairs, 1)
        if pair["pair_id"] in beyond
    ]
