"""Running a build: jobs, server, budget and ledger put together; writes the tables.

Every function here may be called again after it was stopped, and then asks only what is not in the
ledger. With ``server=None`` it replays: replies come from the ledger, and nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.eval_workers.generation.asker import Asker, Job, Manners, Replayer, run_jobs
from plumbline.eval_workers.generation.budget import Budget, Price, Purse, Spent
from plumbline.eval_workers.generation.client import DEFAULT_URL, ChatClient
from plumbline.eval_workers.generation.conversion import Converted, Problem, conversion
from plumbline.eval_workers.generation.judge import Judged, PairToJudge, judgement
from plumbline.eval_workers.generation.ledger import Ledger, open_ledger
from plumbline.eval_workers.generation.prompts import Prompts
from plumbline.eval_workers.generation.requests import ChatModel, Pronoun, Reply, Request
from plumbline.eval_workers.generation.write import Progress, WritingSpec, progress
from plumbline.eval_workers.work.rejects import reject_row
from plumbline.warehouse.errors import PlumblineError, disk_problems
from plumbline.warehouse.storage.store import Store

#: Called with the jobs done, all jobs, and what has been spent.
Tell = Callable[[int, int, Spent], None]


@dataclass(frozen=True)
class Server:
    """Where to ask, and how. The key is read from the environment when asking begins."""

    base_url: str = DEFAULT_URL
    timeout_s: float = 120.0
    manners: Manners = field(default_factory=Manners)


@dataclass(frozen=True)
class Build:
    """A benchmark that is being written; ``server=None`` replays what the ledger holds.

    Attributes:
        budget: of the benchmark: what earlier runs spent counts.
        price: needed for ``budget.max_cost``; without one costs are NULL.
    """

    store: Store
    benchmark: str
    run_id: str
    server: Server | None
    budget: Budget = field(default_factory=Budget)
    price: Price | None = None
    tell: Tell | None = None

    def run(self, jobs: Sequence[Job], kind: str) -> Mapping[str, Reply]:
        """Bring jobs to their end and make ``generation_request`` of the ledger; all its replies.

        ``kind`` names the jobs in the line of an error. Raises ``Interrupted`` when the budget does
        not allow a further request or the server does not answer, ``BadInput`` when the server
        refuses what is asked, a replay finds no reply, or the disk can't be written,
        ``UsageProblem`` while another process builds this benchmark. What was answered is kept.
        """
        with (
            disk_problems(self.store.root),
            open_ledger(self.store, self.benchmark, self.run_id) as ledger,
        ):
            try:
                stop = asyncio.run(self._run(jobs, ledger))
            finally:
                ledger.publish(self.store)
            if stop is not None:
                what, problem, fix = stop.args
                n_done = sum(not job(ledger.replies) for job in jobs)
                left = f"{n_done} of {len(jobs)} {kind} are done"
                raise type(stop)(what, f"{problem}; {left}", fix)
            return ledger.replies

    async def _run(self, jobs: Sequence[Job], ledger: Ledger) -> PlumblineError | None:
        if self.server is None:
            replayer = Replayer(ledger)
            await run_jobs(jobs, replayer, ledger.replies, 1)
            return replayer.stop
        manners = self.server.manners
        purse = Purse(self.budget, ledger.spent)
        async with ChatClient(self.server.base_url, timeout_s=self.server.timeout_s) as client:
            asker = Asker(client, ledger, purse, self.price, manners)

            def told(n_done: int) -> None:
                if self.tell is not None:
                    self.tell(n_done, len(jobs), purse.spent)

            width = manners.concurrency
            await run_jobs(jobs, asker, ledger.replies, width, told)
            return asker.stop


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
            excerpt=pair.sentence_f,
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


def publish_rejects(build: Build, step: str, rejects: list[dict[str, object]]) -> None:
    """Put the rejects of a step in the place of those it had."""
    rows = [{**row, "run_id": build.run_id} for row in rejects]
    partition = {"stage": "generate", "subject": f"{build.benchmark}/{step}"}
    with disk_problems(build.store.root):
        build.store.replace("reject", rows, partition, build.run_id)
