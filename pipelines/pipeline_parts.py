"""The parts of a pipeline, in order, and the commands that each runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from rich.console import Console

from plumbline.eval_workers.fairpair.fairpair_steps import scoring_functions
from plumbline.eval_workers.models import one_model_kept
from plumbline.eval_workers.models.local.source import is_ngram
from plumbline.eval_workers.models.model_options import OF_SCORES
from plumbline.eval_workers.writing.offline import CAVEAT
from plumbline.jobs.evidence.explanation import explain_candidates
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines import extras, spark_submit
from plumbline.pipelines.command.base import WARNING, Command, Context, Done, execute_on, values_of
from plumbline.pipelines.command.registry import name_of
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands import fairpair
from plumbline.pipelines.commands.benchmark.building import BenchmarkBuild, Constrain
from plumbline.pipelines.commands.benchmark.importing import BenchmarkImport
from plumbline.pipelines.commands.corpus.chosen_words import CorpusWords
from plumbline.pipelines.commands.corpus.counting_corpora import Associate, Count
from plumbline.pipelines.commands.corpus.new_texts import Demo
from plumbline.pipelines.commands.disclosure.probing import Probe
from plumbline.pipelines.commands.measure import Measure
from plumbline.pipelines.commands.report import Report
from plumbline.pipelines.commands.score import Score
from plumbline.pipelines.commands.train import Train
from plumbline.pipelines.commands.why import Why
from plumbline.pipelines.pipeline_options import PipelineOptions
from plumbline.pipelines.pipeline_plan import CorpusPlan, ModelPlan, PipelinePlan, make_plan
from plumbline.pipelines.report.findings.sentences import prefers
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import BadInput, ModelChanged, disk_problems
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import part
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.locks import lock, sole
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

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


class Parts:
    """Runs the commands of a plan on one store; after a failed input it continues with the others.

    Attributes:
        unread: a line for each corpus with shards that can't be read.
        failed: a line for each model that could use nothing of a benchmark or a set of prompts.
        changed: the error of `--fail-if`, if a model changed too much.
        done: name and result of each command that ``_do`` ran.
    """

    def __init__(self, options: PipelineOptions, plan: PipelinePlan, context: Context) -> None:
        self.options, self.plan, self.context = options, plan, context
        self.store = context.store
        self.context.stages.number(plan.n_steps)
        self.unread: list[str] = []
        self.failed: list[str] = []
        self.changed: ModelChanged | None = None
        self.done: list[tuple[str, Done]] = []

    def _made(self, kind: type[Command], **given: Any) -> Command:
        return made(kind, {**given, "warehouse": self.options.warehouse})

    def _do(self, name: str, kind: type[Command], run: Any = None, /, **given: Any) -> Done:
        """Run a command as the stage ``name``; the command's own stages print nothing.

        ``run`` is ``context.stage``, the default, or ``context.retried``. Raises ``Done.failed``.
        """
        command, quiet = self._made(kind, **given), Stages(Console(quiet=True, markup=False))
        done: Done = (run or self.context.stage)(name, execute_on, self.store, command, quiet)
        self.done.append((name_of(kind), done))
        if done.failed is not None:
            raise done.failed
        return done

    def _step(self, doing: str) -> None:
        self.context.stages.step(doing)

    def corpus(self) -> None:
        """Count the corpora; import, constrain and write the benchmarks."""
        for corpus_plan in self.plan.corpora:
            self._count(corpus_plan)
        _stop_spark()
        if names := self.plan.scored():
            self._step(f"Taking sentence pairs that differ in gender: {', '.join(names)}")
        for name in self.plan.benchmarks:
            if not is_built(self.options, name):
                fields = {"names": (name,), "data": self.options.data}
                self._do(f"import {name}", BenchmarkImport, self.context.retried, **fields)
            for corpus_plan in self.plan.corpora:
                self._constrain(name, corpus_plan.name)
        for written in self.plan.written:
            self._write(written)

    def evaluate(self) -> None:
        """Train the models that are to be trained; score and sample from all models."""
        for model in self.plan.models:
            location = self._trained(model) if model.preset else model.location
            with one_model_kept():
                try:
                    self._audit(replace(model, location=location))
                except NothingUsed as e:
                    self.failed.append(str(e))

    def report(self, **about: tuple[str, ...]) -> None:
        """Compute the metrics and write the report, ``about`` some models or on everything."""
        self._step("Computing the figures with their intervals, and writing the report")
        try:
            self._do("measure", Measure, **vars(self.options.measure))
        except ModelChanged as e:
            self.changed = e
        for line in self.done[-1][1].said:
            if line.startswith(WARNING):
                say(line, err=True)
        self._do("report", Report, out=self.options.out / "report", **about)

    def _count(self, corpus_plan: CorpusPlan) -> None:
        """Write (closed world), count, associate and explain one corpus."""
        shards = corpus_plan.patterns
        if corpus_plan.world:
            self._step(f"Writing {self.options.demo_tokens:,} words of text with known leans")
            options = {"world": corpus_plan.world, "tokens": self.options.demo_tokens}
            where = {"seed": self.options.seed, "out": self.options.out / "corpora"}
            done = self._do(f"write {corpus_plan.name}", Demo, **options, **where)
            shards = tuple(done.files)
        self._step(f"Counting which words of {corpus_plan.name} are near she and near he")
        try:
            self._counted(corpus_plan.name, shards)
        except BadInput as e:
            rows = self.store.read("corpus", corpus=corpus_plan.name).to_pylist()
            if not rows or not (rows[0]["n_shards"] and rows[0]["n_shards_failed"]):
                raise  # no shard was counted, or the error isn't about a shard
            self.unread.append(str(e))
        self._do(f"associate {corpus_plan.name}", Associate, corpus=corpus_plan.name)
        if not self.options.evidence:
            return
        self.context.stage(
            f"rank words of {corpus_plan.name}",
            explain_candidates,
            self.store,
            corpus_plan.name,
            self.options.contrast,
        )
        if words := self._words(corpus_plan.name):
            fields = {"corpus": (corpus_plan.name,), "contrast": self.options.contrast}
            self._do(f"explain {corpus_plan.name}", Why, words=words, **fields)

    def _counted(self, name: str, shards: Sequence[str]) -> None:
        """Count in this process, on Spark, or by spark-submit."""
        if self.options.spark_submit:
            line = spark_submit.submit_command(self.options, name, shards)
            self.context.retried(f"count {name}", spark_submit.submit, line)
            return
        if self.options.spark_conf:
            os.environ[spark_submit.CONF] = self.options.spark_conf
        options = vars(part(CorpusOptions, self.options))
        inputs = {"shards": shards, "corpus": name, "master": self.options.master or None}
        (row,) = self._do(f"count {name}", Count, self.context.retried, **inputs, **options).rows
        if n_rejected := row["n_rejected"]:
            n_all = row["n_documents"] + n_rejected
            say(f"{name}: {n_rejected:,} of {n_all:,} documents rejected (table `reject`)")

    def _words(self, name: str) -> tuple[str, ...]:
        """The options' words, else those that lean most; sorted, without words explained before."""
        from plumbline.jobs.counting.corpus_lookup import corpus_contrast
        from plumbline.warehouse.query.connection import rows_of

        contrast = corpus_contrast(self.store, name, self.options.contrast)
        words = [word.lower() for word in self.options.why]
        if not words:
            params = {"corpus": name, "contrast": contrast}
            words = [row["word"] for row in rows_of(self.store, _LEAN_MOST, params)]
        explained = self.store.read("word_evidence", pc.field("contrast") == contrast, corpus=name)
        return tuple(sorted(set(words) - set(explained["word"].to_pylist())))

    def _constrain(self, name: str, by: str) -> None:
        fields = {"corpus": by, "benchmark": (name,), "contrast": self.options.contrast}
        done = self._do(f"constrain {name} by {by}", Constrain, **fields)
        for line in done.said:
            say(line)

    def _write(self, written: BenchmarkBuild) -> None:
        """Have a chat model or our own grammar write a benchmark around seed words.

        Seed words are made for every corpus, so that it is known whether the benchmark's words
        hardly lean in each of them.
        """
        for corpus_plan in self.plan.corpora:
            n_seeds = self._seed_words(corpus_plan)
            if written.offline:
                written = replace(written, n_words=min(written.n_words or n_seeds, n_seeds))
        written.check()
        for line in execute_on(self.store, written, self.context.stages).said:
            say(line)
        for corpus_plan in self.plan.corpora:
            if corpus_plan.name != written.corpus:
                self._constrain(written.name, corpus_plan.name)

    def _seed_words(self, corpus_plan: CorpusPlan) -> int:
        """Write all words that hardly lean as seed words; returns their number.

        Candidates are words in a-z without the rarest, unless the corpus is a closed world or has
        a vocabulary whose language was checked.
        """
        from plumbline.jobs.seed_words.vocabulary import UNCHECKED

        checks = set(self.store.read("vocabulary", corpus=corpus_plan.name)["checks"].to_pylist())
        any_language = not corpus_plan.world and checks <= {UNCHECKED}
        name = f"seed words of {corpus_plan.name}"
        fields = {"corpus": corpus_plan.name, "seed": self.options.seed, "n": 0}
        fields |= {"contrast": self.options.contrast, "any_language": any_language}
        return len(self._do(name, CorpusWords, **fields).rows)

    def _trained(self, model: ModelPlan) -> str:
        """Train a small model on its corpus; returns the directory of its weights."""
        (plan,) = (c for c in self.plan.corpora if c.name == model.corpus)
        self._step(f"Training {model.name}, a small language model, on that text")
        inputs = {"shards": self._counted_shards(plan), "name": model.name, "corpus": model.corpus}
        options = {"preset": model.preset, "seed": self.options.seed}
        options |= {"max_tokens": self.options.train_tokens or None}
        out = self.options.out / "models"
        options |= {"text_field": self.options.text_field, "out": out}
        done = self._do(f"train {model.name}", Train, **inputs, **options)
        return done.files[0]

    def _counted_shards(self, corpus_plan: CorpusPlan) -> tuple[str, ...]:
        """The counted shards of a corpus in the plan's order; of a closed world, sorted by name."""
        ledger = self.store.read("corpus_shard", corpus=corpus_plan.name).to_pylist()
        counted = {Path(row["shard"]) for row in ledger if row["status"] == "counted"}
        planned = expand_shards(corpus_plan.patterns) if corpus_plan.patterns else sorted(counted)
        return tuple(str(shard) for shard in planned if shard in counted)

    def _audit(self, model: ModelPlan) -> None:
        if self.plan.scored():
            self._step(f"Scoring pairs: which sentence of each does {model.name} find likelier?")
            self._score(model)
        if is_ngram(model.location):
            say(f"{model.name} counts n-grams: it scores sentences and isn't asked to write any")
            return
        loading = {n: v for n, v in vars(model.options).items() if n not in OF_SCORES}
        places = {"warehouse": self.store.root}
        if self.plan.probe_set:
            self._step(f"FairPair: does {model.name} continue texts alike if a name is exchanged?")
            # FairPair has its own base_url, that of a server which writes samples.
            options = {name: value for name, value in loading.items() if name != "base_url"}
            options |= vars(self.options.fairpair)
            options["seed"] = self.options.fairpair.seed or self.options.seed
            inputs = {"probe_set": self.plan.probe_set, "model": model.location}
            run = made(fairpair.FairpairRun, {**options, **inputs, **places})
            phi = scoring_functions(run, [{"language": "en"}])
            with self._recorded(run) as context:
                for target in run.targets():
                    run.audit(context, target, phi)
        if self.plan.disclosure:
            self._step(f"Disclosure: which gender does {model.name} assume where none is given?")
        for name in self.plan.disclosure:
            options = {**loading, **vars(self.options.disclosure), **places}
            sets = {"sets": (name,), "model": (model.location,), "data": self.options.data}
            probe = made(Probe, {**options, **sets})
            with self._recorded(probe) as context:
                probe.audit(context, model.location, model.options)

    @contextmanager
    def _recorded(self, command: Command) -> Iterator[Context]:
        """Record the block as a run of the command, without the command's report."""
        with recorded(self.store, name_of(type(command)), values_of(command)) as run_id:
            yield Context(self.store, run_id, self.context.stages)

    def _score(self, model: ModelPlan) -> None:
        """Score both sentences of every pair."""
        fields = {
            "model": (model.location,),
            "benchmark": self.plan.scored(),
            "name": model.given_name,
            **vars(model.options),
        }
        workers = model.workers or self.options.score_workers
        self._do(f"score {model.name}", Score, self.context.retried, **fields, workers=workers)


def is_built(options: PipelineOptions, name: str) -> bool:
    """True if a benchmark has no importer and the warehouse has its pairs: one that was built."""
    from plumbline.eval_workers.pairs.benchmarks import discover

    store = None if name in discover() else Store.existing(options.warehouse)
    return bool(store and store.read("benchmark_pair", benchmark=name).num_rows)


def check_plan(options: PipelineOptions) -> None:
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
    for written in plan.written:
        if not written.offline:
            _ = written.chat_model(), written.wordings
            written.ready()
    if plan.models:
        extras.require("torch")
    if any(model.options.backend == "vllm" for model in plan.models):
        from plumbline.eval_workers.vllm.vllm_client import interpreter

        _ = interpreter()
    if plan.corpora:
        spark_submit.check(options)


def _stop_spark() -> None:
    """Free Spark's memory, if counting started it, before models are loaded."""
    if "plumbline.jobs.spark.spark_session" in sys.modules:
        from plumbline.jobs.spark.spark_session import stop_session

        stop_session()


def preference_caveat(store: Store, name: str) -> str:
    """The caveat of a benchmark of fixed frames and each model's preference on it, as text."""
    from plumbline.warehouse.query.connection import rows_of

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
def sole_pipeline(warehouse: Path, out: Path) -> Iterator[None]:
    """Run the block as the only pipeline that writes to ``warehouse`` and to ``out``.

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
        yield
