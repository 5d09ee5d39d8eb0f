"""The parts of a pipeline, in order, and the commands that each runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc

from plumbline.eval_workers.models import one_model_kept
from plumbline.eval_workers.models.local.source import is_ngram
from plumbline.eval_workers.models.model_options import OF_SCORES
from plumbline.eval_workers.writing.offline import CAVEAT
from plumbline.jobs.evidence.explanation import explain_candidates
from plumbline.pipelines import environment_errors
from plumbline.pipelines.command.base import WARNING, Command, Done, Row, execute_on
from plumbline.pipelines.command.failures import with_retries
from plumbline.pipelines.command.settings import Value, Values, here, made
from plumbline.pipelines.commands.benchmark.building import BenchmarkBuild, Constrain
from plumbline.pipelines.commands.benchmark.importing import BenchmarkImport
from plumbline.pipelines.commands.corpus.counting_corpora import Associate, Count
from plumbline.pipelines.commands.corpus.new_texts import Demo
from plumbline.pipelines.commands.corpus.word_choice import CorpusWords
from plumbline.pipelines.commands.disclosure.probing import Probe
from plumbline.pipelines.commands.fairpair import FairpairRun
from plumbline.pipelines.commands.measure import Measure
from plumbline.pipelines.commands.report import Report
from plumbline.pipelines.commands.score import Score
from plumbline.pipelines.commands.train import Train
from plumbline.pipelines.commands.why import Why
from plumbline.pipelines.pipeline_plan import CorpusPlan, ModelPlan, PipelinePlan, make_plan
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.report.sentences import prefers
from plumbline.warehouse.errors import BadInput, ModelChanged, disk_problems
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.locks import lock, sole
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress

if TYPE_CHECKING:
    from plumbline.pipelines.commands.pipeline import Pipeline

#: Name of the output directory's lock file, without the dot that begins it.
_LOCK = "pipeline.claim"
#: The two words that lean most to each side, by lean bound, of the words that occur near both.
_LEAN_MOST = """
SELECT word FROM word_lean
WHERE corpus = $corpus AND contrast = $contrast
    AND is_ranked AND lean_bound_nats <> 0 AND delta_nats IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY lean_bound_nats > 0 ORDER BY abs(lean_bound_nats) DESC, word
) <= 2
"""
#: PD of each model on all pairs of a benchmark, with the q-values that the report has.
_PD = """
FROM corrected_metric
WHERE benchmark = $benchmark AND metric = 'pd' AND subset = 'all' AND n > 0
ORDER BY groups, model, model_key
"""
_Made = TypeVar("_Made", bound=Command)


def run_here(name: str, store: Store, command: Command) -> Done:
    """Announce a command as ``name`` and run it; after a transient error, run it again."""
    say(name, err=True)
    with progress(name):
        return with_retries(partial(execute_on, store, command))


class Parts:
    """Runs the commands of a plan on one store; after a failed input it continues with the others.

    ``run`` runs a command under a name, as ``run_here`` does or as a Prefect task. Options that a
    command isn't given here are those of its own table in the settings file.

    Attributes:
        unread: a line for each corpus with shards that can't be read.
        failed: a line for each model that could use nothing of a benchmark or a set of prompts.
        changed: the error of `--fail-if`, if a model changed too much.
        scored: rows of the results of `score`.
    """

    def __init__(
        self,
        options: Pipeline,
        plan: PipelinePlan,
        store: Store,
        run: Callable[[str, Store, Command], Done] = run_here,
    ) -> None:
        self.options, self.plan, self.store, self._run = options, plan, store, run
        self.unread: list[str] = []
        self.failed: list[str] = []
        self.changed: ModelChanged | None = None
        self.scored: list[Row] = []

    def _made(self, kind: type[_Made], weakest: Values | None = None, /, **given: object) -> _Made:
        values = {**(weakest or {}), **here(kind, self.options.conf or None)}
        return made(kind, {**given, "warehouse": self.options.warehouse}, None, values)

    def _done(self, name: str, command: Command) -> Done:
        """Run a command under a name. Raises ``Done.failed``."""
        done = self._run(name, self.store, command)
        if done.failed is not None:
            raise done.failed
        return done

    def _do(self, name: str, kind: type[Command], /, **given: object) -> Done:
        return self._done(name, self._made(kind, **given))

    def corpus(self) -> None:
        """Count the corpora; import, constrain and write the benchmarks."""
        for corpus in self.plan.corpora:
            self._count(corpus)
        _stop_spark()
        for name in self.plan.benchmarks:
            if not is_built(self.options, name):
                self._do(f"import {name}", BenchmarkImport, names=(name,), data=self.options.data)
            for corpus in self.plan.corpora:
                self._constrain(name, corpus.name)
        for name, of_corpus in self.plan.offline.items():
            self._write(name, of_corpus)

    def evaluate(self) -> None:
        """Train the models that are to be trained; score and sample from all models."""
        for model in self.plan.models:
            location = self._trained(model) if model.preset else model.location
            with one_model_kept():
                try:
                    self._audit(replace(model, location=location))
                except NothingUsed as e:
                    self.failed.append(str(e))

    def report(self, **about: tuple[str, ...]) -> tuple[Done, Done]:
        """Compute the metrics and write the report, ``about`` some models or on everything.

        Returns both results. A model that changed too much fails no report.
        """
        measured = self._run("measure", self.store, self._made(Measure))
        if isinstance(measured.failed, ModelChanged):
            self.changed = measured.failed
        elif measured.failed is not None:
            raise measured.failed
        for line in measured.said:
            if line.startswith(WARNING):
                say(line, err=True)
        return measured, self._do("report", Report, out=self.options.out / "report", **about)

    def _count(self, corpus: CorpusPlan) -> None:
        """Write (closed world), count, associate and explain one corpus."""
        name, shards = corpus.name, corpus.patterns
        if corpus.world:
            options = {"world": corpus.world, "tokens": self.options.demo_tokens}
            where = {"seed": self.options.seed, "out": self.options.out / "corpora"}
            shards = tuple(self._do(f"write {name}", Demo, **options, **where).files)
        count = self._made(Count, shards=shards, corpus=name, master=self.options.master or None)
        try:
            (row,) = self._done(f"count {name}", count).rows
            if n_rejected := row["n_rejected"]:
                n_all = row["n_documents"] + n_rejected
                say(f"{name}: {n_rejected:,} of {n_all:,} documents rejected (table `reject`)")
        except BadInput as e:
            rows = self.store.read("corpus", corpus=name).to_pylist()
            if not rows or not (rows[0]["n_shards"] and rows[0]["n_shards_failed"]):
                raise  # no shard was counted, or the error isn't about a shard
            self.unread.append(str(e))
        self._do(f"associate {name}", Associate, corpus=name)
        if not count.evidence:
            return
        with progress(f"rank words of {name}"):
            explain_candidates(self.store, name, self.options.contrast)
        if words := self._words(name):
            fields = {"corpus": (name,), "contrast": self.options.contrast}
            self._do(f"explain {name}", Why, words=words, **fields)

    def _words(self, name: str) -> tuple[str, ...]:
        """The words that lean most, sorted, without those explained before."""
        from plumbline.jobs.counting.corpus_lookup import corpus_contrast

        contrast = corpus_contrast(self.store, name, self.options.contrast)
        rows = rows_of(self.store, _LEAN_MOST, {"corpus": name, "contrast": contrast})
        explained = self.store.read("word_evidence", pc.field("contrast") == contrast, corpus=name)
        return tuple(sorted({row["word"] for row in rows} - set(explained["word"].to_pylist())))

    def _constrain(self, name: str, by: str) -> None:
        fields = {"corpus": by, "benchmark": (name,), "contrast": self.options.contrast}
        for line in self._do(f"constrain {name} by {by}", Constrain, **fields).said:
            say(line)

    def _write(self, name: str, by: str) -> None:
        """Write a benchmark of fixed frames around words of the corpus ``by``.

        Seed words are made for every corpus, so that it is known whether the benchmark's words
        hardly lean in each of them.
        """
        n_words = min(50, *(self._seed_words(corpus) for corpus in self.plan.corpora))
        options = self.options
        fields = {"contrast": options.contrast, "seed": options.seed, "max_words": 12}
        fields |= {"warehouse": options.warehouse, "out": options.out / "benchmarks" / name}
        fields |= {"name": name, "corpus": by, "n_words": n_words, "offline": True}
        write = made(BenchmarkBuild, fields)  # `[benchmark.build]` is for chat models
        write.check()
        for line in self._done(f"write {name}", write).said:
            say(line)
        for corpus in self.plan.corpora:
            if corpus.name != by:
                self._constrain(name, corpus.name)

    def _seed_words(self, corpus: CorpusPlan) -> int:
        """Write all words that hardly lean as seed words; returns their number.

        Candidates are words in a-z without the rarest, unless the corpus is a closed world or has
        a vocabulary whose language was checked.
        """
        from plumbline.jobs.seed_words.vocabulary import UNCHECKED

        checks = set(self.store.read("vocabulary", corpus=corpus.name)["checks"].to_pylist())
        any_language = not corpus.world and checks <= {UNCHECKED}
        fields = {"corpus": corpus.name, "seed": self.options.seed, "n": 0}
        fields |= {"contrast": self.options.contrast, "any_language": any_language}
        return len(self._do(f"seed words of {corpus.name}", CorpusWords, **fields).rows)

    def _trained(self, model: ModelPlan) -> str:
        """Train a small model on its corpus; returns the directory of its weights."""
        (corpus,) = (c for c in self.plan.corpora if c.name == model.corpus)
        inputs = {"shards": self._counted_shards(corpus), "name": model.name}
        options = {"preset": model.preset, "seed": self.options.seed}
        options |= {"max_tokens": self.options.train_tokens or None}
        count = self._made(Count, corpus=corpus.name, shards=inputs["shards"])
        options |= {"text_field": count.text_field, "out": self.options.out / "models"}
        done = self._do(f"train {model.name}", Train, corpus=corpus.name, **inputs, **options)
        return done.files[0]

    def _counted_shards(self, corpus: CorpusPlan) -> tuple[str, ...]:
        """The counted shards of a corpus in the plan's order; of a closed world, sorted by name."""
        ledger = self.store.read("corpus_shard", corpus=corpus.name).to_pylist()
        counted = {Path(row["shard"]) for row in ledger if row["status"] == "counted"}
        planned: Sequence[Path] = sorted(counted)
        if corpus.patterns:
            planned = expand_shards(corpus.patterns)
        return tuple(str(shard) for shard in planned if shard in counted)

    def _audit(self, model: ModelPlan) -> None:
        """Score a model on the benchmarks, and measure FairPair and disclosure."""
        name = model.name
        if benchmarks := self.plan.scored():
            workers = {"workers": model.workers} if model.workers else {}
            scored = {"model": (model.location,), "benchmark": benchmarks, **workers}
            scored |= {"models": None, "name": model.given_name, **vars(model.options)}
            self.scored += self._do(f"score {name}", Score, **scored).rows
        if is_ngram(model.location):
            say(f"{name} counts n-grams: it scores sentences and isn't asked to write any")
            return
        loading = {n: v for n, v in vars(model.options).items() if n not in OF_SCORES}
        if self.plan.probe_set:
            # FairPair has its own base_url, that of a server which writes samples.
            how = {n: v for n, v in loading.items() if n != "base_url"}
            usual = {**self.plan.fairpair, "seed": self.options.seed}
            weakest = {n: Value(v, "default") for n, v in usual.items()}
            given = {"probe_set": self.plan.probe_set, "model": model.location, "models": "", **how}
            self._done(f"FairPair of {name}", self._made(FairpairRun, weakest, **given))
        if sets := self.plan.disclosure:
            given = {"sets": sets, "model": (model.location,), "data": self.options.data}
            self._do(f"disclosure of {name}", Probe, models=None, **given, **loading)


def is_built(options: Pipeline, name: str) -> bool:
    """True if a benchmark has no importer and the warehouse has its pairs: one that was built."""
    from plumbline.eval_workers.pairs.benchmarks import discover

    store = None if name in discover() else Store.existing(options.warehouse)
    return bool(store and store.read("benchmark_pair", benchmark=name).num_rows)


def check_plan(options: Pipeline) -> None:
    """Raise the errors of wrong input to any part of the plan, before a part runs."""
    from plumbline.eval_workers.pairs.benchmarks import default_source

    plan = make_plan(options)
    for corpus_plan in plan.corpora:
        if corpus_plan.patterns:
            expand_shards(corpus_plan.patterns)
    for name in plan.benchmarks:
        path = None if is_built(options, name) else default_source(name, options.data or "")
        if path is not None and not path.exists():
            fix = "set `data` or PLUMBLINE_DATA to the directory that holds it"
            raise BadInput(f"benchmark {name}", f"{path} does not exist", fix)
    if plan.models:
        environment_errors.require("torch")
    if any(model.options.backend == "vllm" for model in plan.models):
        from plumbline.eval_workers.models.remote.vllm_client import interpreter

        _ = interpreter()


def _stop_spark() -> None:
    """Free Spark's memory, if counting started it, before models are loaded."""
    if "plumbline.jobs.spark.spark_session" in sys.modules:
        from plumbline.jobs.spark.spark_session import stop_session

        stop_session()


def preference_caveat(store: Store, name: str) -> str:
    """The caveat of a benchmark of fixed frames and each model's preference on it, as text."""
    rows = rows_of(store, _PD, {"benchmark": name})
    return " ".join(f"{sentence}." for sentence in [f"{name}: {CAVEAT}", *map(prefers, rows)])


def recovered(store: Store) -> list[str]:
    """Lines on how well models recover the planted leans, one per model and benchmark."""
    rows = store.read("metric_value", pc.field("subset") == "words, planted delta").to_pylist()
    figures: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        figures.setdefault((row["model"], row["benchmark"]), {})[row["metric"]] = estimate(row).text
    return [
        f"{model} on {name}, model on planted lean (95% intervals): rank correlation "
        f"{texts['rank correlation']}, slope {texts['slope']}"
        for (model, name), texts in sorted(figures.items())
    ]


@contextmanager
def sole_pipeline(warehouse: Path, out: Path) -> Iterator[Store]:
    """Run the block as the only pipeline that writes to ``warehouse`` and ``out``; gives the store.

    Two pipelines would train into one directory and replace each other's partitions. Raises
    ``UsageProblem`` that names the other process, ``BadInput`` for a disk that can't be written.

    >>> import tempfile
    >>> from plumbline.warehouse.errors import UsageProblem
    >>> place = Path(tempfile.mkdtemp())
    >>> with sole_pipeline(place / "w", place):
    ...     try:
    ...         with sole_pipeline(place / "w", place / "elsewhere"):
    ...             pass
    ...     except UsageProblem as e:
    ...         "another command writes to it: process" in str(e)
    True
    """
    fix = "wait for its end, or use another --out"
    with disk_problems(warehouse):
        store = Store.open(warehouse)
    with (
        lock(store, "pipeline", f"warehouse {warehouse}", fix),
        sole(out / f".{_LOCK}", f"output directory {out}", fix),
    ):
        yield store
