"""Build a benchmark from seed words, and find the largest lean among the words of each pair."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.writing import build
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.jobs.kernel.corpus_options import LEAST_COUNT
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import BenchmarkNames
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

_PAIRS = "FROM benchmark_pair WHERE benchmark = $benchmark ORDER BY pair_id"


class BenchmarkBuild(BuildSpec, Command):
    """Build a benchmark from seed words: a chat model writes and judges its sentences.

    The API key comes from PLUMBLINE_API_KEY or OPENAI_API_KEY. Requests with a stored reply are
    never sent again: after an interruption, run the same command again to resume.
    `--max-requests 0` uses only stored replies.

    Example: plumbline benchmark build demo --corpus novels --model gpt-4o-mini --dry-run
    """

    makes_warehouse = True
    without = (
        *("timeout_s", "concurrency", "token_limit", "send_seed", "max_tokens"),
        "temperature",
    )

    name: Annotated[str, Field(description="Name of the benchmark."), On(positional=True)]
    offline: Annotated[bool, Field(description="Use fixed frames instead of a chat model.")] = False

    def check(self) -> None:
        """Raise the errors that can be detected without asking a chat model."""
        from plumbline.jobs.counting.corpus_lookup import corpus_deltas

        build.check_benchmark_name(self.name)
        if not self.offline:
            _ = self.chat_model(), self.wordings
        store = Store.existing(self.warehouse)
        build.seed_words(store, self)
        if self.corpus:  # the last step needs it: check before anything is paid for
            if store is None:
                problem = "needs a warehouse"
                raise UsageProblem(f"corpus {self.corpus!r}", problem, "give --warehouse DIR")
            corpus_deltas(store, self.corpus, self.contrast)

    def ready(self) -> None:
        """Raise if a server will be asked and its key is missing."""
        if not self.offline and self.max_requests != 0:
            find_key(self.base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the requests and tokens of the whole build, and what was spent so far."""
        words = build.seed_words(store, self)
        yield planned(self.name, "seed words", len(words))
        yield planned(self.name, "pairs", 2 * self.n_sentences * len(words), "", "at most")
        if self.offline:
            yield planned(self.name, "requests", 0, "", "fixed frames make the sentences")
            return
        yield planned(self.name, "wordings", self.prompts or "ours", "", self.wordings.hash)
        for what, n in build.forecast(words, self).items():
            yield planned(self.name, what, n, "", "about, without revisions and repeats")
        if (spent := read_ledger(store, self.name).spent).n_requests:
            yield planned(self.name, "requests in the ledger", spent.n_requests, "", str(spent))

    def run(self, context: Context) -> Done:
        store, name = context.store, self.name
        asking = Build(store, name, context.run_id, self.server(), self.budget())
        words = context.stage("seed words", build.seed_words, store, self)
        made = build.make_pairs(context.stage, asking, words, self, offline=self.offline)
        pairs, counts, rejects = made
        facts = build.facts(self, counts, offline=self.offline)
        context.stage("publish", build.publish, asking, pairs, rejects, facts)
        said = list[str]()
        if self.corpus:
            from plumbline.jobs.association.max_pmi import constrain

            by_corpus = (store, self.corpus, name, self.contrast)
            done_pairs = context.stage(f"constrain by {self.corpus}", constrain, *by_corpus)
            pairs_said = ", ".join(f"{n:,} pairs ({c})" for c, n in done_pairs.items())
            said.append(f"{name}: MaxPMI of {pairs_said} in corpus {self.corpus}")
        if not self.offline:
            said.append(f"spent in all: {read_ledger(store, name).spent}")
        return Done(
            rows=[{"benchmark": name, **counts}],
            said=said,
            next=f"plumbline benchmark export {shlex.quote(name)}",
            query=_PAIRS,
            params={"benchmark": name},
        )


class Constrain(Command):
    """Compute MaxPMI of a benchmark's pairs: the largest lean among the words of each.

    A pair is undecided if one of its words has fewer than `--least-count` co-occurrences on a side,
    unless another of its words leans beyond the limit. Constrained subsets leave these pairs out.

    Example: plumbline benchmark constrain --corpus novels --benchmark winobias
    """

    reads = "benchmark_pair"

    corpus: Annotated[str, Field(min_length=1, description="Corpus whose deltas are used.")]
    benchmark: BenchmarkNames
    contrast: Annotated[
        str | None,
        Field(
            description="Pair such as she/he, or the name of a word list. Default: the contrast "
            "of the pairs' groups; for female and male, she/he."
        ),
    ] = None
    least_count: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000_000,
            description="Co-occurrences that a word needs on each side for its delta to count; 0: "
            "every delta counts, as in the released MaxPMI.",
        ),
    ] = LEAST_COUNT

    def run(self, context: Context) -> Done:
        from plumbline.jobs.association.max_pmi import constrain, verdicts

        store, corpus, rows = context.store, self.corpus, list[Row]()
        name = self.benchmark[0]
        score = f"plumbline score --model ID_OR_PATH --benchmark {shlex.quote(name)}"
        is_scored = store.units("pair_score", benchmark=name)
        for name in dict.fromkeys(self.benchmark):
            arguments = (store, corpus, name, self.contrast, self.least_count)
            done = context.stage(f"constrain {name}", constrain, *arguments)
            tally = verdicts(store, corpus, name, done)
            rows += [{"benchmark": name, "n_pairs": done[row["contrast"]], **row} for row in tally]
        return Done(
            rows=rows,
            next="plumbline measure" if is_scored else score,
            query="FROM pair_association WHERE corpus = $corpus "
            "AND list_contains($names, benchmark) ORDER BY benchmark, contrast, pair_id",
            params={"corpus": corpus, "names": list(self.benchmark)},
        )
