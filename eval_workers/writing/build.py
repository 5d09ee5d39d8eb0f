"""From seed words to a published benchmark, step by step.

Each step may be called again after it was stopped: what was asked is in the ledger. What a step
gives is what the next one takes; ``benchmark_pair`` is written last, and at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from plumbline.eval_workers.chat.asker import Job
from plumbline.eval_workers.chat.budget import Spent
from plumbline.eval_workers.chat.options import AskingOptions
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Reply, Request
from plumbline.eval_workers.chat.session import Build, publish_rejects
from plumbline.eval_workers.chat.spending_bar import asking_bar
from plumbline.eval_workers.pairs.benchmarks import Row, discover
from plumbline.eval_workers.pairs.benchmarks.own.replaced import replace_pairs
from plumbline.eval_workers.work.rejects import reject_row
from plumbline.eval_workers.writing.judge import Judged, PairToJudge, judgement
from plumbline.eval_workers.writing.offline import SOURCE, offline_pairs
from plumbline.eval_workers.writing.pairing import (
    Converted,
    Paired,
    Problem,
    conversion,
    fault,
    paired,
    undecided,
)
from plumbline.eval_workers.writing.prompts import Prompts
from plumbline.eval_workers.writing.sharing.benchmark_card import (
    Constraint,
    NothingKept,
    Written,
    write_card,
)
from plumbline.eval_workers.writing.spec import BuildSpec
from plumbline.eval_workers.writing.write import Progress, WritingSpec, progress
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.storage.runs import recorded
from plumbline.warehouse.storage.store import Store

#: Parts of a benchmark's ``reject`` rows: which step left a sentence or a pair out.
_STEPS = ("write", "pair", "judge", "opinion")


@dataclass(frozen=True)
class Counts:
    """What became of the sentences: ``n_in`` = kept + rejected + revised, kept = pairs + unpaired.

    ``n_natural`` is ``None`` where nothing was judged.
    """

    n_words: int
    n_in: int
    n_kept: int
    n_rejected: int
    n_revised: int
    n_unpaired: int
    n_pairs: int
    n_natural: int | None


def write_sentences(build: Build, words: Sequence[str], spec: WritingSpec) -> list[Progress]:
    """Sentences for each seed word, in the words' order; rejected ones are rows of ``reject``.

    Raises as ``Build.run``.
    """
    distinct = list(dict.fromkeys(words))
    replies = build.run([_writing(word, spec) for word in distinct], "words")
    written = [progress(word, spec, replies) for word in distinct]
    unbalanced = [p.word for p in written if not p.balances()]
    assert not unbalanced, f"sentences are lost or counted twice: {unbalanced}"
    rejects = [
        reject_row(
            stage="generate",
            subject=f"{build.benchmark}/write",
            source_file=rejected.sentence.request_id,
            source_row=rejected.sentence.position,
            reason=rejected.reason,
            excerpt=rejected.sentence.text,
        )
        for p in written
        for rejected in p.rejected
    ]
    publish_rejects(build, "write", rejects)
    return written


def judge_pairs(
    build: Build, pairs: Sequence[PairToJudge], model: ChatModel, prompts: Prompts
) -> list[Judged]:
    """Verdicts on pairs, in their order; pairs that are dropped are rows of ``reject``.

    Raises as ``Build.run``.
    """
    replies = build.run([_judging(pair, model, prompts) for pair in pairs], "pairs")
    judged = [judgement(pair, model, prompts, replies) for pair in pairs]
    rejects = [
        reject_row(
            stage="generate",
            subject=f"{build.benchmark}/judge",
            source_file=verdict.pair_id,
            source_row=position,
            reason=verdict.reason,
            excerpt=pair.sentence_a,
        )
        for position, (pair, verdict) in enumerate(zip(pairs, judged, strict=True), 1)
        if verdict.reason
    ]
    publish_rejects(build, "judge", rejects)
    return judged


@dataclass(frozen=True)
class ToConvert:
    """A sentence whose pronouns are to be changed to those of ``to``."""

    sentence: str
    word: str
    to: Pronoun


def convert_sentences(
    build: Build,
    wanted: Sequence[ToConvert],
    model: ChatModel,
    prompts: Prompts,
    problem: Problem,
) -> list[Converted]:
    """Converted sentences, in their order; ``problem`` says what is wrong with a conversion.

    Raises as ``Build.run``.
    """
    jobs = [_converting(one, model, prompts, problem) for one in wanted]
    replies = build.run([_requests_of(job) for job in jobs], "conversions")
    return [job(replies) for job in jobs]


def _writing(word: str, spec: WritingSpec) -> Job:
    return lambda replies: progress(word, spec, replies).requests


def _judging(pair: PairToJudge, model: ChatModel, prompts: Prompts) -> Job:
    return lambda replies: judgement(pair, model, prompts, replies).requests


_Converting = Callable[[Mapping[str, Reply]], Converted]


def _converting(
    one: ToConvert, model: ChatModel, prompts: Prompts, problem: Problem
) -> _Converting:
    return lambda replies: conversion(
        one.sentence,
        word=one.word,
        to=one.to,
        model=model,
        prompts=prompts,
        problem=problem,
        replies=replies,
    )


def _requests_of(converting: _Converting) -> Job:
    def job(replies: Mapping[str, Reply]) -> list[Request]:
        request = converting(replies).request
        return [] if request is None else [request]

    return job


def check_name(name: str) -> None:
    """Raise ``UsageProblem`` for a name that a benchmark of one's own can't have."""
    if not name or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
        fix = "use letters, digits, - _ and ."
        raise UsageProblem(f"benchmark {name!r}", "is not a valid name for a benchmark", fix)
    if name in discover():
        problem = "is the name of one that is imported"
        raise UsageProblem(f"benchmark {name!r}", problem, "take another name")


def seed_words(store: Store | None, spec: BuildSpec) -> tuple[str, ...]:
    """The seed words in their order: those of ``spec.words``, or of the sample of its corpus.

    Raises ``UsageProblem`` when there is no such sample, or it is smaller than ``spec.n_words``.

    >>> seed_words(None, BuildSpec(words=("tea", "clock", "tea")))
    ('tea', 'clock')
    """
    if spec.words:
        return tuple(dict.fromkeys(spec.words))[: spec.n_words]
    if not spec.corpus or store is None:
        fix = "give --corpus NAME, or words = [...] in the configuration"
        raise UsageProblem("seed words", "they need a corpus to come from", fix)
    table = store.read("seed_word", corpus=spec.corpus)
    of = pc.and_(pc.equal(table["contrast"], spec.contrast), pc.equal(table["seed"], spec.seed))
    words = table.filter(of).sort_by("position")["word"].to_pylist()
    if len(words) < (spec.n_words or 1):
        problem = f"its sample for {spec.contrast}, seed {spec.seed} holds {len(words)} words"
        wanted = f"--n {spec.n_words} " if spec.n_words else ""
        fix = f"plumbline corpus words --corpus {spec.corpus} {wanted}--seed {spec.seed}"
        fix += f" --contrast {spec.contrast}" if spec.contrast != BuildSpec.contrast else ""
        raise UsageProblem(f"seed words of corpus {spec.corpus!r}", problem, fix)
    return tuple(words[: spec.n_words])


def pair_sentences(build: Build, written: Sequence[Progress], spec: BuildSpec) -> Paired:
    """Pairs of the sentences that were kept, in their order; the others are rows of ``reject``.

    A "her" that the rules can't tell is converted by the model. Raises as ``Build.run``.
    """
    sentences = [sentence for progress in written for sentence in progress.kept]
    unclear, writing = undecided(sentences), spec.writing()
    wanted = [ToConvert(sentence.text, sentence.word, "he") for sentence in unclear]
    model, wordings = writing.model, writing.prompts
    answers = convert_sentences(build, wanted, model, wordings, fault) if wanted else []
    found = paired(build.benchmark, sentences, dict(zip(unclear, answers, strict=True)))
    assert len(sentences) == len(found.pairs) + len(found.rejects), "sentences are lost"
    _put_rejects(build.store, build.benchmark, "pair", found.rejects, build.run_id)
    return found


def judge(build: Build, pairs: Sequence[Row], spec: BuildSpec) -> list[Row]:
    """The pairs with ``is_natural``: whether the model finds both sides likely.

    Pairs that it doesn't are kept, since metrics leave them out by that column, and are rows of
    ``reject`` besides, with the reason. Raises as ``Build.run``.
    """
    writing = spec.writing()
    wanted = [pair_to_judge(pair) for pair in pairs]
    judged = judge_pairs(build, wanted, writing.judge or writing.model, writing.prompts)
    together = zip(pairs, judged, strict=True)
    return [pair | {"is_natural": verdict.is_natural} for pair, verdict in together]


def pair_to_judge(pair: Row) -> PairToJudge:
    """What is judged of a row of ``benchmark_pair``."""
    return PairToJudge(*(str(pair[c]) for c in ("pair_id", "word", "sentence_a", "sentence_b")))


def publish(build: Build, pairs: Sequence[Row], steps: Sequence[str]) -> None:
    """Put the pairs in the place of those the benchmark had.

    ``steps`` are those that were taken: rejects of others are of a build before, and go. Raises
    ``BadInput`` without any pair, and leaves the benchmark as it was.
    """
    store, name, run_id = build.store, build.benchmark, build.run_id
    if not pairs:
        fix = f"see table reject, subject {name}/write and {name}/pair"
        raise BadInput(f"benchmark {name}", "no sentence became a pair", fix)
    rows = [{"benchmark": name, **pair} for pair in pairs]
    with disk_problems(store.root), store.together(run_id, f"benchmark {name}"):
        replace_pairs(store, name, rows, run_id)
        for step in set(_STEPS) - set(steps):
            _put_rejects(store, name, step, [], run_id)


def write_offline(
    store: Store | None, name: str, words: Sequence[str], spec: BuildSpec
) -> list[Row]:
    """Pairs of the offline writer, without asking anybody; see ``offline.offline_pairs``.

    Words of a closed-world corpus stand in frames of that world.
    """
    planted = store.read("planted_word", corpus=spec.corpus) if store and spec.corpus else ()
    of = spec.n_sentences, spec.max_words, spec.seed
    return offline_pairs(name, words, *of, closed_world=len(planted) > 0)


def count(
    words: Sequence[str], written: Sequence[Progress], found: Paired, pairs: Sequence[Row]
) -> Counts:
    """The account of a build, each sentence once."""
    verdicts = [pair["is_natural"] for pair in pairs if pair.get("is_natural") is not None]
    return Counts(
        n_words=len(words),
        n_in=sum(p.n_in for p in written),
        n_kept=sum(len(p.kept) for p in written),
        n_rejected=sum(len(p.rejected) for p in written),
        n_revised=sum(p.n_revised for p in written),
        n_unpaired=len(found.rejects),
        n_pairs=len(pairs),
        n_natural=sum(v is True for v in verdicts) if verdicts else None,
    )


def ask(work: Callable[..., Any], kind: str, build: Build, whom: AskingOptions, *given: Any) -> Any:
    """The result of ``work(build, *given)`` with the server, budget and progress of ``whom``.

    A build without a server replays: nobody is asked.
    """
    price = whom.price()
    with asking_bar(kind, price.currency if price else None) as tell:
        server = whom.server() if build.server else None
        asking = replace(build, server=server, budget=whom.budget(), price=price, tell=tell)
        return work(asking, *given)


def make_pairs(
    stage: Callable[..., Any], build: Build, words: Sequence[str], spec: BuildSpec, *, offline: bool
) -> tuple[list[Row], Counts, list[str]]:
    """Pairs around words, by stages that ``stage`` runs: them, their account, the steps taken."""
    if offline:
        given = (build.store, build.benchmark, words, spec)
        rows = stage("write offline", write_offline, *given)
        return rows, count(words, [], Paired((), ()), rows), []
    wordings, price = spec.writing(), spec.price()
    asked = {"prompts_hash": wordings.prompts.hash, "price": asdict(price) if price else None}
    with recorded(build.store, "benchmark sentences", asked):
        writing = (write_sentences, "words", build, spec, words, wordings)
        written = stage("write", ask, *writing)
        found = stage("pair", ask, pair_sentences, "conversions", build, spec, written, spec)
        if not spec.judge:
            return [*found.pairs], count(words, written, found, found.pairs), ["write", "pair"]
        pairs = stage("judge", ask, judge, "pairs", build, spec.judging(), found.pairs, spec)
        return pairs, count(words, written, found, pairs), ["write", "pair", "judge"]


def write_card_of(
    build: Build, made: Mapping[str, object], out: Path, within: Constraint | None
) -> tuple[Written, list[str]]:
    """The benchmark's card; where too little text was counted to decide any pair, of all pairs."""
    store, name = build.store, build.benchmark
    try:
        return write_card(store, name, out, made=made, constraint=within), []
    except NothingKept as e:
        assert within is not None, "without a limit all pairs are kept"
        every = replace(within, eta_nats=None)
        line = f"{name}: {e.args[1]}, so its card has all pairs"
        return write_card(store, name, out, made=made, constraint=every), [line]


def facts(spec: BuildSpec, counts: Counts, *, offline: bool) -> dict[str, object]:
    """How the pairs were made, for the card."""
    sample = f"the sample of {spec.corpus} ({spec.contrast}, seed {spec.seed})"
    words = "given" if spec.words else f"the first {counts.n_words:,} of {sample}"
    found: dict[str, object] = {"Seed words": words}
    if offline:
        grammar = f"{SOURCE}: fixed frames of Plumbline's own, no model; nobody judged them"
        return {**found, "Written by": grammar, "Seed of the frames": spec.seed}
    kept = "longer sentences were kept, as in UnStereoEval"
    rejected = "longer sentences were rejected, which UnStereoEval did not do"
    longer = rejected if spec.reject_longer else kept
    fates = (
        f"{counts.n_in:,} read, {counts.n_kept:,} kept, {counts.n_rejected:,} rejected, "
        f"{counts.n_revised:,} revised"
    )
    return {
        **found,
        "Written by": f"{spec.model}, at temperature {spec.temperature:g}",
        "Wordings (hash)": spec.writing().prompts.hash,
        "Words of a sentence": f"at most {spec.max_words} asked for; {longer}",
        "Times a sentence was sent back, at most": spec.writing().n_revisions,
        "Sentences": fates,
        "Judged by": (spec.judge_model or spec.model) if spec.judge else "nobody",
    }


def spent(store: Store, name: str) -> Spent:
    """What all requests of a benchmark took so far; attempts count, each."""
    rows = store.read("generation_request", benchmark=name).to_pylist()
    parts = (Spent(r["n_attempts"], r["n_tokens_most"], r["cost"] or 0.0) for r in rows)
    return sum(parts, Spent())


def _put_rejects(store: Store, name: str, step: str, rejects: Sequence[Row], run_id: str) -> None:
    rows = [row | {"run_id": run_id} for row in rejects]
    with disk_problems(store.root):
        partition = {"stage": "generate", "subject": f"{name}/{step}"}
        store.replace("reject", rows, partition, run_id)
