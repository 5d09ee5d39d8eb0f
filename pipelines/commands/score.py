"""`plumbline score` and its subcommands: scores of sentence pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.pair_choices import ChoiceOptions
from plumbline.eval_workers.scoring.scoring_forecast import Task
from plumbline.pipelines.command.base import WARNING, Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.failures import Failures
from plumbline.pipelines.command.fields import BenchmarkNames, InputDirectory
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import MOST, part

if TYPE_CHECKING:
    from plumbline.eval_workers.scoring.pair_choices import Chosen
    from plumbline.eval_workers.scoring.pair_scores import ScoredBenchmark
    from plumbline.warehouse.storage.store import Store


class Score(ModelOptions, Command):
    """Compute log-probabilities of both sentences of every pair that has no score yet.

    After an interruption, run the same command again to resume. If you start it several times on
    one warehouse, even on several machines, the processes share the work.

    Example: plumbline score --model EleutherAI/pythia-70m --benchmark winobias --benchmark use-5
    """

    reads = "benchmark_pair"

    benchmark: BenchmarkNames
    model: Annotated[
        tuple[str, ...],
        Field(description="Hub id, or directory of a saved model. Repeatable."),
        On(repeated=True),
    ] = ()
    models: Annotated[
        str | None,
        Field(description="List of models, instead of --model: a TOML file, or unstereoeval."),
    ] = None
    name: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Name to show; models of one name are versions, as after retraining.",
        ),
    ] = None
    limit: Annotated[
        int | None,
        Field(ge=1, le=MOST, description="Pairs of each benchmark to score; default: all."),
    ] = None

    def __post_init__(self) -> None:
        if bool(self.model) == bool(self.models):
            problem = "exclude each other" if self.model else "are both missing"
            raise UsageProblem("--model and --models", problem, "give one of them")
        if self.name and len(set(self.model)) != 1:
            fix = "name each model of a list in its entry"
            raise UsageProblem(f"--name {self.name}", "needs exactly one --model", fix)

    def check(self) -> None:
        """Raise if a benchmark isn't in the warehouse."""
        from plumbline.eval_workers.scoring.pair_scores import check_imported
        from plumbline.warehouse.storage.store import Store

        check_imported(Store.open(self.warehouse, create=False, reads=self.reads), self.benchmark)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield pairs, tokens and memory for each model."""
        from plumbline.eval_workers.scoring.scoring_forecast import forecast

        assert store is not None, "this command makes no warehouse"
        tasks = self._tasks()
        failures = Failures(len(tasks))
        for task in tasks:
            with failures.collected(task.model):
                yield from forecast(store, task)
        failures.error()

    def run(self, context: Context) -> Done:
        """Score with every model; if one fails, the others go on."""
        tasks = self._tasks()
        done: list[ScoredBenchmark] = []
        failures = Failures(len(tasks))
        for task in tasks:
            at = f" at {task.options.revision}" if task.options.revision else ""
            with failures.collected(task.model):
                context.stage(f"score with {task.model}{at}", _score, context, task, done)
        failed = failures.error(done)
        return Done(
            rows=[asdict(one) for one in done],
            next="plumbline measure",
            query="FROM scored_pair WHERE list_contains($benchmarks, benchmark) "
            "AND list_contains($keys, model_key) ORDER BY benchmark, model_key, pair_id",
            params={
                "benchmarks": list(self.benchmark),
                "keys": list({one.model_key for one in done}),
            },
            failed=failed,
        )

    def _tasks(self) -> list[Task]:
        from plumbline.eval_workers.models.model_lists import load_available

        benchmarks, how = tuple(dict.fromkeys(self.benchmark)), part(ModelOptions, self)
        if not self.models:
            given = (how, benchmarks, self.name, self.limit)
            return [Task(model, *given) for model in dict.fromkeys(self.model)]
        return [
            Task(m.id, m.options(how), benchmarks, m.given_name, self.limit)
            for m in load_available(self.models)
        ]


def _score(context: Context, task: Task, done: list[ScoredBenchmark]) -> None:
    """Score pairs with a model. Raises ``BadInput`` if it can score no pair of a benchmark."""
    from plumbline.eval_workers.scoring.model_step import give_name
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
    from plumbline.warehouse.steps.runner import NothingUsed

    try:
        scored = score_benchmarks(
            *(context.store, task.model, task.benchmarks, task.options, context.run_id),
            limit=task.limit,
        )
    except NothingUsed as e:
        done += e.outcomes
        raise
    done += scored
    if task.name:
        give_name(context.store, scored[0].model_key, context.run_id, task.name)
    for result in scored:
        if result.n_rejected and not result.n_scored:
            subject = f"{result.model_key}/{result.benchmark}"
            reasons = context.store.read("reject", stage="score", subject=subject)["reason"]
            first = f", {reasons[0].as_py()}" if len(reasons) else ""
            fix = "see table `reject`; take another model or other sentences"
            problem = f"can score no pair of {result.benchmark}{first}"
            raise BadInput(f"model {result.model}", problem, fix)


class ScoreImport(Command):
    """Import scores of sentence pairs from elsewhere. Unusable rows go to table `reject`.

    Reads released scores, or logs of lm-evaluation-harness for a task that `benchmark export` wrote
    (docs/benchmarks.md). Import the benchmarks first. Pairs without a score are counted as missing.

    Example: plumbline score import unstereo-eval/results
    """

    reads = "benchmark_pair"

    directory: Annotated[
        InputDirectory,
        Field(description="Directory with *__scores__*.csv[.gz] or samples_*.jsonl."),
        On(positional=True, metavar="DIR"),
    ]

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.pairs.released.harness_logs import import_samples
        from plumbline.eval_workers.pairs.released.released_results import import_scores

        has_logs = any(self.directory.rglob("samples_*.jsonl"))
        read = import_samples if has_logs else import_scores
        done = read(context.store, self.directory, context.run_id)
        n_missing = sum(one.n_missing for one in done)
        said = [f"{sum(len(one.files) for one in done):,} files"]
        if n_missing:
            said.append(f"{WARNING}{n_missing:,} pairs have no score and are in no metric")
        return Done(
            rows=[{n: v for n, v in asdict(one).items() if n != "files"} for one in done],
            said=said,
            next="plumbline measure",
            query="FROM scored_pair WHERE list_contains($models, model) ORDER BY ALL",
            params={"models": [one.model for one in done]},
        )


class Choose(ChoiceOptions, Command):
    """Ask a served model which sentence of each pair is likelier, in both orders.

    For models that give no log-probabilities; the figures are not US or PD. The API key comes from
    PLUMBLINE_API_KEY or OPENAI_API_KEY. No question is asked twice: after an interruption, run the
    same command again to resume. `--max-requests 0` uses only stored replies.

    Example: plumbline score choose --model gpt-4o-mini --benchmark winogender --n 2 --dry-run
    """

    reads = "benchmark_pair"
    without = ("timeout_s", "concurrency", "token_limit", "send_seed", "max_tokens")

    benchmark: BenchmarkNames

    def check(self) -> None:
        """Raise if a benchmark isn't in the warehouse, or the wordings are unusable."""
        from plumbline.eval_workers.scoring.pair_scores import check_imported
        from plumbline.warehouse.storage.store import Store

        check_imported(Store.open(self.warehouse, create=False, reads=self.reads), self.benchmark)
        _ = self.key()

    def ready(self) -> None:
        """Raise if a server will be asked and its key is missing."""
        from plumbline.eval_workers.chat.client import find_key

        if self.max_requests != 0:
            find_key(self.base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the questions left to ask about each benchmark, and their maximum cost."""
        from plumbline.eval_workers.scoring.pair_choices import left_to_ask

        assert store is not None, "this command makes no warehouse"
        for benchmark in dict.fromkeys(self.benchmark):
            left, most, spent = left_to_ask(store, benchmark, self)
            note = f"at most, without retries: {most}"
            yield planned(benchmark, "questions left", left, f"of {self.model}", note)
            if n := spent.n_requests:
                yield planned(benchmark, "asked already", n, "requests", str(spent))

    def run(self, context: Context) -> Done:
        from plumbline.eval_workers.scoring.pair_choices import choose

        names = list(dict.fromkeys(self.benchmark))
        server = None if self.max_requests == 0 else self.server()
        done = []
        for n in names:
            asked = (context.store, n, self, server, context.run_id)
            done.append(context.stage(f"ask about {n}", choose, *asked))
        params = {"benchmarks": names, "key": done[0].model_key, "setting": self.key()}
        return Done(
            rows=[asdict(one) for one in done],
            said=[line for one in done for line in self._lines(context.store, one)],
            next="plumbline report",
            query="FROM forced_choice WHERE list_contains($benchmarks, benchmark) "
            "AND model_key = $key AND setting = $setting ORDER BY ALL",
            params=params,
        )

    def _lines(self, store: Store, done: Chosen) -> Iterator[str]:
        """Yield lines on the model's preference, its preference for a position, and the cost."""
        from plumbline.eval_workers.chat.ledger import read_ledger
        from plumbline.eval_workers.scoring.pair_choices import ledger_name, preferences

        for line in preferences(store, done, self.key()):
            yield f"{done.benchmark}: {line}"
        spent = read_ledger(store, ledger_name(done.benchmark, done.model_key)).spent
        yield f"{done.benchmark}: spent in all: {spent}"
