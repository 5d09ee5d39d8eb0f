"""The pipeline: one function per stage, in the order data flows. Stages only call the rooms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow.compute as pc

from plumbline.eval_workers.backends.local.source import is_ngram
from plumbline.eval_workers.generation.offline import WORTH
from plumbline.eval_workers.options import ModelOptions, of_loading
from plumbline.eval_workers.work.runner import NothingUsed, one_model_kept
from plumbline.pipelines import extras
from plumbline.pipelines.report.findings.sentences import prefers
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.requests import counting
from plumbline.pipelines.requests.benchmark import BuildRequest, check_key, checked_request
from plumbline.pipelines.requests.benchmark import benchmark as build_benchmark
from plumbline.pipelines.requests.plan import (
    OFFLINE,
    CorpusPlan,
    ModelPlan,
    Plan,
    WrittenPlan,
    make_plan,
)
from plumbline.pipelines.settings import Settings
from plumbline.pipelines.stages import CONSOLE, Stages
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.shards import expand_shards, record_form
from plumbline.warehouse.storage.locks import lock, sole
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.output import say

#: Locked in the output directory.
_LOCK = "pipeline.claim"
#: The two words of a corpus that lean most surely each way, of those that both sides have nearby.
_LEAN_MOST = """
SELECT word FROM word_lean
WHERE corpus = $corpus AND contrast = $contrast AND lean_bound_nats <> 0 AND delta_nats IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY lean_bound_nats > 0 ORDER BY abs(lean_bound_nats) DESC, word
) <= 2
"""
#: PD of each model on all pairs of a benchmark; with q, so that the page says the same.
_WORTH = """
FROM corrected_metric
WHERE benchmark = $benchmark AND metric = 'pd' AND subset = 'all' AND n > 0
ORDER BY groups, model, model_key
"""
#: A way to run the pipeline: returns the page and what failed.
Work: TypeAlias = Callable[[Settings, Stages], tuple[Path, list[str]]]


def write_world(settings: Settings, corpus: CorpusPlan) -> list[Path]:
    """Write the shards of a closed world; returns their paths."""
    from plumbline.eval_workers.closed_world.writer import WorldOptions, write_recorded_world

    options = WorldOptions(settings.demo_tokens, settings.seed, corpus.world)
    store = Store.open(settings.warehouse_path())
    with recorded(store, "demo write", asdict(options)) as run_id:
        directory = Path(settings.out) / "corpora"
        return list(write_recorded_world(store, options, directory, run_id).shards)


def count(settings: Settings, name: str, shards: list[Path]) -> str:
    """Count a corpus on Spark. Returns what failed: a shard that can't be read stops no other."""
    return counting.count(settings, name, shards)


def associate(settings: Settings, name: str) -> None:
    """PMI and delta of every word of a corpus."""
    from plumbline.jobs.association.associations import associate as associate_corpus

    associate_corpus(Store.open(settings.warehouse_path()), name)


def explain(settings: Settings, name: str) -> None:
    """Why words of a corpus lean, those of the settings or those that lean most; each once."""
    from plumbline.jobs.corpus_lookup import corpus_contrast
    from plumbline.jobs.evidence.why import explain as explain_words
    from plumbline.warehouse.query.connection import rows_of

    store = Store.open(settings.warehouse_path())
    contrast = corpus_contrast(store, name, settings.contrast)
    words = [word.strip().lower() for word in settings.why.split(",") if word.strip()]
    if not words:
        of = {"corpus": name, "contrast": contrast}
        words = [row["word"] for row in rows_of(store, _LEAN_MOST, of)]
    known = store.read("word_evidence", pc.field("contrast") == contrast, corpus=name)
    if words := sorted(set(words) - set(known["word"].to_pylist())):
        explain_words(store, name, words, contrast)


def vocabulary(settings: Settings, name: str) -> None:
    """Leave words with other characters than a-z, and the rarest, out of the candidates.

    A vocabulary that somebody made with a check of the language stays.
    """
    from plumbline.jobs.seed_words.vocabulary import UNCHECKED, Rules, build_vocabulary

    store = Store.open(settings.warehouse_path())
    if set(store.read("vocabulary", corpus=name)["checks"].to_pylist()) <= {UNCHECKED}:
        build_vocabulary(store, name, Rules(any_language=True))


def seed_words(settings: Settings, name: str) -> int:
    """Sample the words of a corpus that lean least, all of them; returns how many there are."""
    from plumbline.jobs.seed_words.sample import select_seed_words

    store = Store.open(settings.warehouse_path())
    return len(select_seed_words(store, name, None, settings.seed, settings.contrast).words)


def import_benchmark(settings: Settings, name: str) -> None:
    """Read a benchmark's released files, or make it where it has none."""
    from plumbline.eval_workers import benchmarks

    source = _source(settings, name)
    store = Store.open(settings.warehouse_path())
    with recorded(store, "benchmark import", {"name": name, "source": source}) as run_id:
        benchmarks.import_benchmark(store, name, source, run_id)


def constrain(settings: Settings, corpus: str, benchmark: str) -> None:
    """MaxPMI of every pair of a benchmark against a corpus."""
    from plumbline.jobs.association.max_pmi import constrain as constrain_benchmark
    from plumbline.jobs.association.verdicts import verdict_lines

    store = Store.open(settings.warehouse_path())
    done = constrain_benchmark(store, corpus, benchmark, settings.contrast)
    for line in verdict_lines(store, corpus, benchmark, done):
        say(line)


def train(settings: Settings, model: ModelPlan, shards: list[Path]) -> str:
    """Train a small model on a corpus; returns the directory of its weights."""
    from plumbline.eval_workers.training import models
    from plumbline.eval_workers.training.options import preset as options_of

    options = options_of(model.preset, settings.seed, settings.train_tokens)
    out = Path(settings.out) / "models"
    store = Store.open(settings.warehouse_path())
    config = {"name": model.name, "corpus": model.corpus, **asdict(options)}
    form = record_form(settings.text_field, settings.tokenizer)
    with recorded(store, "train", config) as run_id, models.progress_bar(model.name) as progress:
        trained = models.train_model(shards, model.name, model.corpus, options, out, progress, form)
        models.record_model(store, trained, run_id)
    return str(trained.path)


def score(
    settings: Settings,
    location: str,
    options: ModelOptions,
    names: tuple[str, ...],
    workers: int | None = None,
) -> None:
    """Log-probability of both sentences of every pair under a model, here or by others."""
    from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

    store = Store.open(settings.warehouse_path())
    if settings.score_workers == 0:
        _await_scores(store, location, options, names)
        return
    n_workers = workers or settings.score_workers
    config = {"model": location, "benchmarks": names, **asdict(options), "n_workers": n_workers}
    with recorded(store, "score", config) as run_id:
        how = (options, run_id)
        score_benchmarks(store, location, names, *how, n_workers=n_workers, say=say)


def _await_scores(
    store: Store, location: str, options: ModelOptions, names: tuple[str, ...]
) -> None:
    """Wait until other processes have scored a model, and say how they are started."""
    from plumbline.eval_workers.scoring.scores_elsewhere import wait_for_scores
    from plumbline.pipelines.command.base import line_of, made
    from plumbline.pipelines.commands.score import Score

    what = {"model": (location,), "benchmark": tuple(names), "warehouse": store.root}
    say(f"waiting for: {line_of(made(Score, {**what, **vars(options)}))}")
    wait_for_scores(store, location, names, options)


def measure(settings: Settings) -> None:
    """Every metric of the warehouse."""
    from plumbline.pipelines.requests.measure import measure as measure_all

    store, options = Store.open(settings.warehouse_path()), settings.measure
    with recorded(store, "measure", asdict(options)) as run_id:
        measure_all(store, run_id, options)


def worth(store: Store, benchmark: str) -> str:
    """What a benchmark of fixed frames measures, and what it measured of each model."""
    from plumbline.warehouse.query.connection import rows_of

    rows = rows_of(store, _WORTH, {"benchmark": benchmark})
    return " ".join(f"{said}." for said in [f"{benchmark}: {WORTH}", *map(prefers, rows)])


def recovered(store: Store) -> list[str]:
    """How far trained models recover the planted leans of their text, a line for each."""
    rows = store.read("metric_value", pc.field("subset") == "words, planted delta").to_pylist()
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        figure = estimate(row, 2 if row["metric"] == "slope" else 3)
        found.setdefault((row["model"], row["benchmark"]), {})[row["metric"]] = figure.text
    return [
        f"{model} on {benchmark}, model on planted lean (95% intervals): rank correlation "
        f"{of['rank correlation']}, slope {of['slope']}"
        for (model, benchmark), of in sorted(found.items())
    ]


def report(settings: Settings) -> Path:
    """The HTML page and its plots; returns the page's path."""
    from plumbline.pipelines.report.write import write_report

    return write_report(settings.warehouse_path(), Path(settings.out) / "report")


def pipeline(settings: Settings, stages: Stages) -> tuple[Path, list[str]]:
    """Count, associate, constrain, score, measure, report. Returns the page and what failed."""
    plan = checked_plan(settings)
    failures = prepare(settings, plan, stages)
    failures += evaluate(settings, plan, stages)
    page = conclude(settings, stages)
    CONSOLE.print(stages.table())
    return page, failures


def prepare(settings: Settings, plan: Plan, stages: Stages) -> list[str]:
    """Count the corpora, import and constrain the benchmarks; returns what failed of the shards."""
    failures: list[str] = []
    for corpus in plan.corpora:
        failures += _corpus(settings, corpus, stages)
    _stop_spark()
    _benchmarks(settings, plan, stages)
    for written in plan.written:
        _write(settings, plan, written, stages)
    return failures


def evaluate(settings: Settings, plan: Plan, stages: Stages) -> list[str]:
    """Everything that takes a model: train those that are to be trained, score, sample.

    Returns a line for each model that could use nothing of a benchmark or a set of prompts.
    """
    failures: list[str] = []
    for model in plan.models:
        location = model.location
        if model.preset:
            (corpus,) = (c for c in plan.corpora if c.name == model.corpus)
            shards = _counted_shards(settings, corpus)
            location = stages.run(f"train {model.name}", train, settings, model, shards)
        with one_model_kept():
            try:
                _audit(settings, plan, replace(model, location=location), stages)
            except NothingUsed as e:
                failures.append(str(e))
    return failures


def _audit(settings: Settings, plan: Plan, model: ModelPlan, stages: Stages) -> None:
    """Score, sample and probe one model."""
    if plan.scored():
        given = (settings, model.location, model.options, plan.scored(), model.workers)
        stages.retried(f"score {model.name}", score, *given)
    if is_ngram(model.location):
        say(f"{model.name} counts n-grams: it scores sentences and isn't asked to write any")
        return
    if plan.probe_set:
        _fairpair(settings, plan.probe_set, model.location, model.options, stages)
    for name in plan.disclosure:
        _disclosure(settings, name, model.location, model.options, stages)


def conclude(settings: Settings, stages: Stages) -> Path:
    """The metrics and the report of what the warehouse holds; returns the page's path."""
    stages.run("measure", measure, settings)
    return stages.run("report", report, settings)


def _fairpair(
    settings: Settings, probe_set: str, location: str, options: ModelOptions, stages: Stages
) -> None:
    """FairPair of one model; without a seed of its own with the pipeline's."""
    from plumbline.eval_workers.fairpair.audit import scoring_functions
    from plumbline.pipelines.command.base import Context, made, values_of
    from plumbline.pipelines.commands.fairpair import Run

    loading = asdict(of_loading(options))
    del loading["base_url"]  # FairPair's is of another thing: a server that is asked for samples
    how = {**asdict(settings.fairpair), "seed": settings.fairpair.seed or settings.seed}
    places = {"out": Path(settings.out) / "report", "warehouse": settings.warehouse_path()}
    what = {"probe_set": probe_set, "model": location}
    run = made(Run, {**loading, **how, **what, **places})
    phi, store = scoring_functions(run, [{"language": "en"}]), Store.open(run.warehouse)
    with recorded(store, "fairpair run", values_of(run)) as run_id:
        for target in run.targets():
            run.audit(Context(store, run_id, stages), target, phi)


def _disclosure(
    settings: Settings, name: str, location: str, options: ModelOptions, stages: Stages
) -> None:
    """Disclosure of one model on a set of prompts that ships with Plumbline."""
    from plumbline.pipelines.requests.disclosure import (
        DisclosureRequest,
        Subject,
        audit,
        missing_sets,
        prompts,
    )

    subject = Subject(location, of_loading(options))
    places = settings.warehouse_path(), Path(settings.out) / "report"
    request = DisclosureRequest(
        (name,), (subject,), settings.disclosure, *places, data=settings.data
    )
    store = Store.open(settings.warehouse_path())
    if missing := missing_sets(store, request.wanted, settings.data):
        prompts(request, missing)
    audit(request, subject, stages)


def _source(settings: Settings, benchmark: str) -> Path | None:
    """Where a benchmark's released files are; ``None`` for one that needs none."""
    from plumbline.eval_workers.benchmarks import default_source

    path = default_source(benchmark, settings.data)
    if path is not None and not path.exists():
        fix = "set `data` or PLUMBLINE_DATA to the directory that holds it"
        raise BadInput(f"benchmark {benchmark}", f"{path} does not exist", fix)
    return path


def _is_built(settings: Settings, benchmark: str) -> bool:
    """Whether a benchmark that can't be imported is in the warehouse: one that was built."""
    from plumbline.eval_workers.benchmarks import discover

    store = None if benchmark in discover() else Store.existing(settings.warehouse_path())
    return bool(store and store.read("benchmark_pair", benchmark=benchmark).num_rows)


def checked_plan(settings: Settings) -> Plan:
    """The plan, with what is wrong in its input found before hours are spent on the rest of it."""
    plan = make_plan(settings)
    for corpus in plan.corpora:
        if corpus.patterns:
            expand_shards(corpus.patterns)
    for benchmark in plan.benchmarks:
        if not _is_built(settings, benchmark):
            _source(settings, benchmark)
    for written in plan.written:
        if not written.offline:
            request = _build_request(settings, written)
            request.config()
            check_key(request)
    if plan.models:
        extras.require("torch")
    if settings.score_workers and any(one.options.backend == "vllm" for one in plan.models):
        from plumbline.eval_workers.backends.vllm_engine import interpreter

        _ = interpreter()
    if plan.corpora:
        counting.check(settings)
    if settings.score_workers < 0:
        raise UsageProblem(f"score_workers {settings.score_workers}", "should be 0 or more")
    return plan


def _corpus(settings: Settings, corpus: CorpusPlan, stages: Stages) -> list[str]:
    """Write (closed world), count and associate one corpus; returns what failed of its shards."""
    if corpus.world:
        shards = stages.run(f"write {corpus.name}", write_world, settings, corpus)
    else:
        shards = expand_shards(corpus.patterns)
    failure = stages.retried(f"count {corpus.name}", count, settings, corpus.name, shards)
    stages.run(f"associate {corpus.name}", associate, settings, corpus.name)
    if settings.evidence:
        stages.run(f"explain {corpus.name}", explain, settings, corpus.name)
    return [failure] if failure else []


def _counted_shards(settings: Settings, corpus: CorpusPlan) -> list[Path]:
    """The counted shards of a corpus, in the order of its plan; those of a world by name."""
    ledger = Store.open(settings.warehouse_path()).read("corpus_shard", corpus=corpus.name)
    counted = {Path(r["shard"]) for r in ledger.to_pylist() if r["status"] == "counted"}
    given = expand_shards(corpus.patterns) if corpus.patterns else sorted(counted)
    return [shard for shard in given if shard in counted]


def _stop_spark() -> None:
    """Give Spark's memory back before models are loaded, if counting has loaded Spark."""
    if "plumbline.jobs.spark.session" in sys.modules:
        from plumbline.jobs.spark.session import stop_session

        stop_session()


def _benchmarks(settings: Settings, plan: Plan, stages: Stages) -> None:
    """Import the benchmarks that weren't built; constrain each by every corpus of the plan."""
    for name in plan.benchmarks:
        if not _is_built(settings, name):
            stages.retried(f"import {name}", import_benchmark, settings, name)
        for corpus in plan.corpora:
            stages.run(f"constrain {name} by {corpus.name}", constrain, settings, corpus.name, name)


def _write(settings: Settings, plan: Plan, written: WrittenPlan, stages: Stages) -> None:
    """Have a benchmark written around seed words, by a chat model or our own grammar.

    Every corpus gets its seed words: that a benchmark holds no others says that its words were
    taken for not leaning.
    """
    spec = written.spec
    for corpus in plan.corpora:
        if not corpus.world:
            stages.run(f"vocabulary of {corpus.name}", vocabulary, settings, corpus.name)
        n_found = stages.run(f"seed words of {corpus.name}", seed_words, settings, corpus.name)
        if written.offline:
            spec = replace(spec, n_words=min(spec.n_words or n_found, n_found))
    request = _build_request(settings, replace(written, spec=spec))
    checked_request(request)
    build_benchmark(request, stages)
    for corpus in plan.corpora:
        if corpus.name != written.corpus:
            name = f"constrain {written.name} by {corpus.name}"
            stages.run(name, constrain, settings, corpus.name, written.name)


def _build_request(settings: Settings, written: WrittenPlan) -> BuildRequest:
    places = settings.warehouse_path(), Path(settings.out) / "cards" / written.name
    return BuildRequest(written.name, written.spec, *places, offline=written.offline)


@contextmanager
def alone(warehouse: Path, out: Path) -> Iterator[None]:
    """Run the block as the only pipeline that writes to ``warehouse`` and to ``out``.

    Two would train into one directory and replace each other's partitions. Raises ``UsageProblem``
    naming the process that is there, ``BadInput`` for a disk that can't be written.

    >>> import tempfile
    >>> from plumbline.warehouse.errors import UsageProblem
    >>> place = Path(tempfile.mkdtemp())
    >>> with alone(place / "w", place):
    ...     try:
    ...         with alone(place / "w", place / "elsewhere"):
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


def run(settings: Settings, work: Work | None = None) -> None:
    """Run the pipeline and print where the report is; shards that failed end it with status 3.

    ``work`` runs it in another way than as the plain function ``pipeline``.
    """
    plan = checked_plan(settings)  # before a server is asked for nothing
    with alone(settings.warehouse_path(), Path(settings.out)):
        page, failures = (work or pipeline)(settings, Stages())
    warehouse = settings.warehouse_path()
    say(f"warehouse: {warehouse}\nreport: {page}")
    for sentence in recovered(Store.open(warehouse)):
        say(sentence)
    for written in plan.written:
        if written.offline and written.name != OFFLINE:
            say(worth(Store.open(warehouse), written.name))
    say(f"next: open the report, or plumbline sql --warehouse {warehouse}")
    if failures:
        raise BadInput(failures[0])
