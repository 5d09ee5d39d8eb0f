"""`plumbline score` and its subcommands: score sentence pairs, or import scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.harness_logs import import_samples
from plumbline.eval_workers.pairs.released_scores import import_scores
from plumbline.eval_workers.scoring.model_step import give_name, run_on_model
from plumbline.eval_workers.scoring.pair_choices import (
    ChoiceOptions,
    choose,
    left_to_ask,
    served,
)
from plumbline.eval_workers.scoring.pair_scores import PairScores, TextForm, check_imported
from plumbline.eval_workers.scoring.scoring_forecast import forecast
from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import BenchmarkNames, InputDirectory
from plumbline.warehouse.options import MOST, part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store

_OLDER = """
SELECT name, old.scored_at AS scored_at, latest.scored_at AS latest_scored_at
FROM model_version AS old
JOIN model_version AS latest USING (name)
WHERE old.model_key = $key AND NOT old.is_latest AND latest.is_latest
    AND name = coalesce($name, name)
"""


class Score(ModelOptions, Command):
    """Compute the log-probability of both sentences of each pair. Skips pairs already scored.

    After an interruption, run the same command again to resume. To share the work, run the same
    command several times at once, even on several machines with one warehouse.

    Example: plumbline score --model EleutherAI/pythia-70m --benchmark winobias --benchmark use-5
    """

    reads = "benchmark_pair"

    benchmark: BenchmarkNames
    model: Annotated[str, Field(min_length=1, description="Model: Hugging Face id, or directory.")]
    name: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Name to show. Models with the same name are versions of one model.",
        ),
    ] = None
    limit: Annotated[
        int | None,
        Field(ge=1, le=MOST, description="Number of pairs to score per benchmark; default: all."),
    ] = None
    text_form: Annotated[
        TextForm,
        Field(description="`released` removes quotes and most capitals, as UnStereoEval did."),
    ] = "written"

    def steps(self) -> list[PairScores]:
        names = dict.fromkeys(self.benchmark)
        return [PairScores(name, self.text_form, self.limit) for name in names]

    def check(self) -> None:
        """Raise ``UsageProblem`` if a benchmark isn't imported."""
        check_imported(Store.open(self.warehouse, create=False, reads=self.reads), self.benchmark)

    def plan(self, store: Store | None) -> Iterator[Row]:
        assert store is not None, "this command makes no warehouse"
        work = forecast(store, self.model, part(ModelOptions, self), self.steps())
        yield from (planned(*estimate) for estimate in work)

    def run(self, context: Context) -> Done:
        """Score the pairs that have no score yet. If ``name`` is set, give the model this name."""
        at = f" at {self.revision}" if self.revision else ""
        done, failed = context.stage(f"score with {self.model}{at}", self._score, context)
        key = done[0].model_key
        older = rows_of(context.store, _OLDER, {"key": key, "name": self.name})
        if is_named := self.name and not failed:
            give_name(context.store, key, context.run_id, self.name)
        return Done(
            rows=[_row(one) for one in done],
            said=[
                f"{WARNING}{row['name']}: these files are the version of {row['scored_at']:%F %R}; "
                "tables and reports show "
                + ("it again" if is_named else f"the version of {row['latest_scored_at']:%F %R}")
                for row in older
            ],
            next="plumbline measure",
            query="FROM scored_pair WHERE list_contains($benchmarks, benchmark) "
            "AND model_key = $key ORDER BY benchmark, pair_id",
            params={"benchmarks": list(self.benchmark), "key": key},
            failed=failed,
        )

    def _score(self, context: Context) -> tuple[Sequence[StepCounts], NothingUsed | None]:
        """Score all benchmarks. Return the counts, and an error if a benchmark can't be used."""
        work = context.store, self.model, part(ModelOptions, self), self.steps(), context.run_id
        try:
            return run_on_model(*work), None
        except NothingUsed as e:
            return e.outcomes, e.with_traceback(None)  # a traceback would keep the model in memory


def _row(done: StepCounts) -> Row:
    counts = asdict(done)
    return {**counts.pop("partition"), **counts}


class ScoreImport(Command):
    """Import scores that another program computed. Unusable rows go to table `reject`.

    Reads UnStereoEval's released scores, or lm-evaluation-harness's logs of a task that
    `benchmark export` wrote (docs/benchmarks.md). Import the benchmarks before their scores.

    Example: plumbline score import unstereo-eval/results
    """

    reads = "benchmark_pair"

    directory: Annotated[
        InputDirectory,
        Field(description="Directory with *__scores__*.csv[.gz] or samples_*.jsonl files."),
        On(positional=True, metavar="DIR"),
    ]

    def run(self, context: Context) -> Done:
        has_logs = any(self.directory.rglob("samples_*.jsonl"))
        read = import_samples if has_logs else import_scores
        done = read(context.store, self.directory, context.run_id)
        n_files = sum(len(one.files) for one in done)
        said = [f"{n_files:,} file{'s' * (n_files != 1)}"]
        if n_missing := sum(one.n_missing for one in done):
            said.append(f"{WARNING}{n_missing:,} pairs have no score and are in no metric")
        empty = [file for one in done if not one.n_scored for file in one.files]
        said += [f"{WARNING}{file} has no row that gives a pair a score" for file in empty]
        return Done(
            rows=[{n: v for n, v in asdict(one).items() if n != "files"} for one in done],
            said=said,
            next="plumbline measure",
            query="FROM scored_pair WHERE list_contains($models, model) ORDER BY ALL",
            params={"models": [one.model for one in done]},
        )


class Choose(ChoiceOptions, Command):
    """Ask a chat model which sentence of each pair is likelier, in both orders.

    Use this for models on a server that gives no log-probabilities. The figures can't be compared
    with US or PD. The API key comes from PLUMBLINE_API_KEY or OPENAI_API_KEY. No question is asked
    twice. After an interruption, run the same command again to resume. `--max-requests 0` uses
    only stored replies.

    Example: plumbline score choose --model gpt-4o-mini --benchmark winogender --n 2 --dry-run
    """

    reads = "benchmark_pair"
    without = ("timeout_s", "concurrency", "token_limit", "send_seed", "max_tokens")

    benchmark: BenchmarkNames

    def check(self) -> None:
        check_imported(Store.open(self.warehouse, create=False, reads=self.reads), self.benchmark)

    def ready(self) -> None:
        if self.max_requests != 0:
            find_key(self.base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        assert store is not None, "this command makes no warehouse"
        for benchmark in dict.fromkeys(self.benchmark):
            left, most, spent = left_to_ask(store, benchmark, self)
            note = f"at most, without retries: {most}"
            yield planned(benchmark, "questions left", left, f"of {self.model}", note)
            if n := spent.n_requests:
                yield planned(benchmark, "asked already", n, "requests", str(spent))

    def run(self, context: Context) -> Done:
        """Ask about all pairs. Return preferences, and how often the first sentence is chosen."""
        names, model = list(dict.fromkeys(self.benchmark)), served(self)
        said = []
        for n in names:
            context.stage(f"ask about {n}", choose, context.store, n, self, context.run_id)
            spent = read_ledger(context.store, model.ledger("choose", n)).spent
            said.append(f"{n}: spent in all: {spent}")
        params = {"benchmarks": names, "key": model.identity.key, "setting": self.key()}
        return Done(
            rows=[
                {name: row[name] for name in _CHOSEN}
                for row in rows_of(context.store, _CHOICES, params)
            ],
            said=said,
            next="plumbline report",
            query=_CHOICES,
            params=params,
        )


_CHOICES = (
    "FROM forced_choice WHERE list_contains($benchmarks, benchmark) "
    "AND model_key = $key AND setting = $setting ORDER BY ALL"
)
_CHOSEN = (
    *("benchmark", "model", "groups", "n_pairs", "n_asks", "n_neither"),
    *(f"{name}{end}" for name in ("preference", "first_share") for end in ("", "_low", "_high")),
)
