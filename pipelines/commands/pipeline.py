"""`plumbline pipeline`: run all steps from a text to a report."""

from __future__ import annotations

import glob
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from plumbline.eval_workers.models import is_ngram, open_backend
from plumbline.pipelines import environment_errors
from plumbline.pipelines.command.base import (
    WARNING,
    Command,
    Context,
    Done,
    Row,
    class_of,
    execute_on,
    planned,
)
from plumbline.pipelines.command.settings import configured, made
from plumbline.pipelines.pipeline_plan import (
    DEMO_MODEL,
    CorpusPlan,
    ModelPlan,
    PipelineOptions,
    make_plan,
)
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    ModelChanged,
    PlumblineError,
    UsageProblem,
    disk_problems,
)
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.steps.runner import NothingUsed
from plumbline.warehouse.storage.locks import lock, sole
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress


class Stage(NamedTuple):
    """A stage of a pipeline. ``on`` names what the stage works on, such as a corpus.

    If ``may_fail`` is True and the stage fails, the next stages still run.
    """

    doing: str
    work: Callable[[], object]
    on: str = ""
    may_fail: bool = False


class Pipeline(PipelineOptions, Command):
    """Run all steps from a text to a report. Without options, Plumbline makes up the text.

    Without options, the pipeline needs no data and no network. It makes a text in which each word
    has a known lean, trains a model on this text, and shows whether the model learned the leans.

    If you give --corpus and --model but neither benchmarks nor --data, the pipeline builds a
    benchmark from fixed sentence frames and words of the corpus. To set options of the commands
    that the pipeline runs, use their tables in the settings file.

    Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' --benchmarks winobias,use-5
    --model train:small
    """

    makes_warehouse = True
    records = False
    at_top = True
    without = (
        *("revision", "batch_tokens", "bos", "base_url", "concurrency", "adapter"),
        *("tensor_parallel", "quantisation"),
    )

    def check(self) -> None:
        if self.benchmarks and not make_plan(self).models:
            problem = "is empty, but benchmarks need one"
            raise UsageProblem("setting model", problem, "give train:small")
        self.check_inputs()

    def check_inputs(self) -> None:
        from plumbline.eval_workers.pairs.benchmarks import default_source

        plan = make_plan(self)
        if plan.corpus and plan.corpus.patterns:
            expand_shards(plan.corpus.patterns)
        for name in plan.benchmarks:
            path = None if self.has_built(name) else default_source(name, self.data or "")
            if path is not None and not path.exists():
                fix = "set `data` or PLUMBLINE_DATA to the directory that holds it"
                raise BadInput(f"benchmark {name}", f"{path} does not exist", fix)
        if plan.models:
            environment_errors.require("torch")
        if any(model.options.backend == "vllm" for model in plan.models):
            from plumbline.eval_workers.models.vllm_backend import interpreter

            _ = interpreter()
        for name in ("score", "fairpair run", "disclosure probe", "measure", "report"):
            values = configured(class_of(name), self.config)  # refuses unknown keys
            if name in ("measure", "report"):
                made(class_of(name), {}, values)

    def has_built(self, name: str) -> bool:
        """Return whether this is a built benchmark whose pairs are in the warehouse."""
        from plumbline.eval_workers.pairs.benchmarks import discover

        store = None if name in discover() else Store.existing(self.warehouse)
        return bool(store and store.read("benchmark_pair", benchmark=name).num_rows)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield a row for each model and each stage. Raise an error if a model can't be loaded."""
        errors = []
        for model in make_plan(self).models:
            if model.preset:
                continue
            try:
                _ = open_backend(model.location, model.options).identity
                yield planned(model.name, "can be loaded", None)
            except PlumblineError as e:
                yield planned(model.name, "can't be loaded", None, "", str(e))
                errors.append(e)
        for number, stage in enumerate(Parts(self, store).all(), 1):
            yield planned(f"stage {number}", stage.doing, None, "", stage.on)
        if errors:
            raise errors[0]

    def run(self, context: Context) -> Done:
        """Run all stages in order. If some stages failed, ``Done.failed`` is the first error."""
        with self.sole() as store:
            parts = Parts(self, store)
            parts.do(parts.all())
        report = parts.results["report"]
        is_demo = parts.plan.corpus is not None and not parts.plan.corpus.patterns
        made_up = shlex.quote(str(self.out / "models" / DEMO_MODEL))
        return Done(
            said=report.said,
            files=report.files,
            next=f"plumbline look {made_up}" if is_demo else "plumbline sql",
            query="FROM metric_value",
            failed=next(iter(parts.errors), None),
        )

    @contextmanager
    def sole(self) -> Iterator[Store]:
        """Lock ``warehouse`` and ``out`` against other pipelines, and yield the open warehouse.

        Two pipelines at the same time would replace each other's models and tables. Raises
        ``UsageProblem`` if another process holds a lock, or ``BadInput`` if the disk can't be
        written. Errors in the ``with`` block become one-line errors.
        """
        with disk_problems(self.warehouse):
            store = Store.open(self.warehouse)
        with (
            lock(store, "pipeline", f"warehouse {self.warehouse}"),
            sole(self.out / ".pipeline.claim", f"output directory {self.out}"),
            environment_errors.in_one_line(),
        ):
            yield store


def run_here(name: str, store: Store, command: Command) -> Done:
    """Run a command in this process. Show the elapsed time if the command takes long."""
    with progress(name):
        return execute_on(store, command)


class Parts:
    """Makes and runs the stages of a pipeline. The stages run commands on one warehouse.

    ``run`` is the function that runs a command: ``run_here``, or a Prefect task. Options that
    the stages don't set come from the command's table in the settings file.

    Attributes:
        results: result of each command. A key such as `score gpt2` names a command and its subject.
        errors: errors that didn't stop the other stages. Examples are an unreadable shard, a
            failure of one of several models, or a model that changed too much (`--fail-if`).
    """

    def __init__(
        self,
        options: Pipeline,
        store: Store | None,
        run: Callable[[str, Store, Command], Done] = run_here,
    ) -> None:
        self.options, self.plan, self._store, self._run = options, make_plan(options), store, run
        self.results: dict[str, Done] = {}
        self.errors: list[Exception] = []

    @property
    def store(self) -> Store:
        """The open warehouse. Not available in `--dry-run` if the warehouse doesn't exist."""
        assert self._store is not None
        return self._store

    def do(self, stages: Sequence[Stage]) -> None:
        """Run the stages in order. Before each stage, print its number and what it does."""
        for number, stage in enumerate(stages, 1):
            say(f"{number}/{len(stages)} {stage.doing} ...", err=True)
            try:
                stage.work()
            except PlumblineError as e:
                may_fail = stage.may_fail and not isinstance(e, Interrupted)
                if not (may_fail or isinstance(e, NothingUsed | ModelChanged)):
                    raise
                say(f"failed: {e}", err=True)
                self.errors.append(e.with_traceback(None))  # a traceback keeps the model in memory

    def all(self) -> list[Stage]:
        return [*self.corpus(), *self.evaluate(), *self.report(self._own)]

    def _own(self) -> dict[str, list[str]]:
        """Return patterns that limit the report to the pipeline's benchmarks, models and corpus."""
        from plumbline.pipelines.report.facts import Facts

        plan, done = self.plan, self.results.values()
        names = {"benchmark": {*plan.scored(), plan.probe_set, *plan.disclosure}}
        names["model"] = {str(row.get("model_key")) for one in done for row in one.rows}
        names["corpus"] = {plan.corpus.name} if plan.corpus else set()
        own = {"benchmark": [""]}
        for row in Facts(self.store).rows("named"):
            if row["key"] in names[row["option"]]:
                own.setdefault(row["option"], []).append(glob.escape(row["name"]))
        return own

    def corpus(self) -> list[Stage]:
        """Return the stages that make or count the corpus and collect sentence pairs."""
        stages = []
        if corpus := self.plan.corpus:
            name = corpus.name
            if not corpus.patterns:
                size = f"{self.options.demo_tokens / 1e6:.2g} million words"
                doing = f"Writing a made-up text of {size} with known gender leans"
                options: dict[str, object] = {"tokens": self.options.demo_tokens}
                options |= {"seed": self.options.seed, "out": self.options.out / "corpora"}
                options |= {"world": "straight"}  # as the corpus's name says
                stages.append(Stage(doing, partial(self._do, "corpus demo", name, **options)))
            doing = "Counting which words stand near she and near he"
            stages.append(Stage(doing, partial(self._count, corpus), name))
        if self.plan.scored():
            doing = "Collecting sentence pairs that differ in gender alone"
            stages.append(Stage(doing, self._make_pairs, ", ".join(self.plan.scored())))
        return stages

    def evaluate(self) -> list[Stage]:
        """Return the stages that train models, score pairs with models, and sample from models."""
        stages, several = [], len(self.plan.models) > 1
        for model in self.plan.models:
            name = model.name
            if model.preset:
                doing = f"Training {name}, a small language model, on that text"
                stages.append(Stage(doing, partial(self._train, model)))
            if self.plan.scored():
                doing = f"Asking {name} which sentence of each pair is likelier"
                on = ", ".join(self.plan.scored())
                stages.append(Stage(doing, partial(self._score, model), on, several))
            if is_ngram(model.location):
                line = f"{name} counts n-grams: it scores sentences and isn't asked to write any"
                say(line, err=True)
                continue
            if self.plan.probe_set:
                doing = f"FairPair: does {name} continue texts alike when a name is exchanged?"
                work = partial(self._fairpair, model)
                stages.append(Stage(doing, work, self.plan.probe_set, several))
            if self.plan.disclosure:
                doing = f"Disclosure: which gender does {name} assume where none is given?"
                on = ", ".join(self.plan.disclosure)
                stages.append(Stage(doing, partial(self._disclosure, model), on, several))
        return stages

    def report(self, about: Callable[[], Mapping[str, Sequence[str]]] = dict) -> list[Stage]:
        """Return stages that compute metrics and write a report. ``about()`` gives its filters."""
        out = self.options.out / "report"
        return [
            Stage("Computing the figures with their intervals", partial(self._do, "measure")),
            Stage("Writing the report", lambda: self._do("report", out=out, **about())),
        ]

    def _do(self, name: str, about: str = "", /, **given: object) -> Done:
        """Run a command. Store its result in ``results`` under a key such as `score gpt2`."""
        return self._done(f"{name} {about}".rstrip(), self._made(class_of(name), **given))

    def _made(self, kind: type[Command], **given: object) -> Command:
        values = configured(kind, self.options.config)
        return made(kind, {**given, "warehouse": self.options.warehouse}, values)

    def _done(self, name: str, command: Command) -> Done:
        self.results[name] = done = self._run(name, self.store, command)
        for line in done.said:
            if line.startswith(WARNING):
                say(line, err=True)
        if done.failed is not None:
            raise done.failed
        return done

    def _count(self, corpus: CorpusPlan) -> None:
        """Count a corpus; compute leans. If only some shards fail, add the error to ``errors``."""
        from plumbline.jobs.ingest.count_corpus import ShardsFailed

        name = corpus.name
        shards = corpus.patterns or tuple(self.results[f"corpus demo {name}"].files)
        given = {"shards": shards, "corpus": name, "master": self.options.master or None}
        try:
            self._do("corpus count", name, **given)
        except ShardsFailed as e:
            if not e.counted.row["n_shards"]:
                raise
            self.errors.append(e)
        if "plumbline.jobs.spark.spark_session" in sys.modules:
            from plumbline.jobs.spark.spark_session import stop_session

            stop_session()  # frees memory for the models
        self._do("corpus associate", name, corpus=name)

    def _make_pairs(self) -> None:
        for name in self.plan.benchmarks:
            if not self.options.has_built(name):
                self._do("benchmark import", name, names=(name,), data=self.options.data)
            if corpus := self.plan.corpus:
                fields = {"corpus": corpus.name, "benchmark": (name,)}
                fields |= {"contrast": self.options.contrast}
                self._do("benchmark constrain", f"{name} by {corpus.name}", **fields)
        if self.plan.corpus and self.plan.made_benchmark:
            self._write(self.plan.made_benchmark, self.plan.corpus)

    def _write(self, name: str, corpus: CorpusPlan) -> None:
        """Build a benchmark from fixed sentence frames, filled with words that hardly lean."""
        n_words = min(50, self._seed_words(corpus))
        options = self.options
        fields = {"contrast": options.contrast, "seed": options.seed, "max_words": 12}
        fields |= {"warehouse": options.warehouse, "name": name, "corpus": corpus.name}
        fields |= {"n_words": n_words, "offline": True}
        write = made(class_of("benchmark build"), fields)  # ignores the settings for chat models
        write.check()
        self._done(f"benchmark build {name}", write)

    def _seed_words(self, corpus: CorpusPlan) -> int:
        """Store the seed words, which are all words that hardly lean. Return their number.

        Candidates are all words of the letters a-z that aren't rare. If an earlier run chose only
        English words, its candidates are used. In a made-up corpus, all words are candidates.
        """
        from plumbline.jobs.seed_words.vocabulary import UNCHECKED

        checks = set(self.store.read("vocabulary", corpus=corpus.name)["checks"].to_pylist())
        any_language = bool(corpus.patterns) and checks <= {UNCHECKED}
        fields = {"corpus": corpus.name, "seed": self.options.seed, "n": None}
        fields |= {"contrast": self.options.contrast, "any_language": any_language}
        return len(self._do("corpus words", corpus.name, **fields).rows)

    def _train(self, model: ModelPlan) -> None:
        corpus = self.plan.corpus
        assert corpus is not None, "the plan has no model to train without a corpus"
        ledger = self.store.read("corpus_shard", corpus=corpus.name).to_pylist()
        counted = {Path(row["shard"]) for row in ledger if row["status"] == "counted"}
        paths = expand_shards(corpus.patterns) if corpus.patterns else sorted(counted)
        shards = tuple(str(path) for path in paths if path in counted)
        options = {"preset": model.preset, "seed": self.options.seed, "name": model.name}
        options |= {"shards": shards, "corpus": corpus.name, "out": self.options.out / "models"}
        count = self._made(class_of("corpus count"), corpus=corpus.name, shards=shards)
        options |= {"text_field": vars(count)["text_field"]}
        self._do("train", model.name, **options)

    def _location(self, model: ModelPlan) -> str:
        return model.location or self.results[f"train {model.name}"].files[0]

    def _score(self, model: ModelPlan) -> None:
        given = {"model": self._location(model), "name": model.given_name, **vars(model.options)}
        self._do("score", model.name, **given, benchmark=self.plan.scored())

    def _fairpair(self, model: ModelPlan) -> None:
        given = {**vars(model.options), **self.plan.fairpair, "probe_set": self.plan.probe_set}
        given |= {"model": self._location(model), "seed": self.options.seed}
        del given["base_url"]  # FairPair must not use the model's server
        self._do("fairpair run", model.name, **given)

    def _disclosure(self, model: ModelPlan) -> None:
        given = {**vars(model.options), "model": self._location(model), "data": self.options.data}
        self._do("disclosure probe", model.name, **given, sets=self.plan.disclosure)
