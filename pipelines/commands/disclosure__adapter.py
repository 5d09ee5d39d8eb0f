"""`plumbline disclosure tune` and `compare`: tune an adapter, and compare it with its base."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.eval_workers.disclosure.probe_options import ProbeOptions
from plumbline.eval_workers.disclosure.set_measures import Disclosed, measure_sets, steps_of
from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.fairpair import fairpair_steps
from plumbline.eval_workers.fairpair.fairpair_spec import FairPairSpec, SampledModel
from plumbline.eval_workers.models.instruction import NONE
from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.scoring.held_out import HeldOut, read_held_out, text_files
from plumbline.eval_workers.scoring.pair_scores import PairScores, check_imported, score_benchmarks
from plumbline.eval_workers.scoring.perplexity import Perplexity
from plumbline.eval_workers.training.mitigation.adapter_card import tuned_by
from plumbline.eval_workers.training.mitigation.tuning_options import TuneOptions, published_base
from plumbline.eval_workers.work.rejects import reasons
from plumbline.eval_workers.work.runner import run_steps
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, line_of, planned
from plumbline.pipelines.command.fields import DataOption, OutputDirectory, ReportDirectory
from plumbline.pipelines.commands._disclosure import (
    TABLES,
    Sets,
    counts,
    figure_params,
    figures,
    import_missing,
    measured,
    names,
    to_do,
)
from plumbline.pipelines.report.tuning_comparison.comparison_answer import leads
from plumbline.pipelines.report.tuning_comparison.comparison_page import (
    not_measured,
    write_comparison,
)
from plumbline.pipelines.report.tuning_comparison.results import ComparedModels, read_results
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.options import STRICT, part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.training.mitigation.tune import Tuned

#: The set of neutral prompts that comes with Plumbline.
SHIPPED = "topics"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Tune(TuneOptions, ProbeOptions, ModelOptions, DataOption, Command):
    """Tune a LoRA adapter on neutral prompts, so that its base assumes less about gender.

    Prompts of test sets are left out, losses are means and gradients are clipped; --as-published
    does it as the paper did. The adapter is that of the last step, or of the checkpoint with the
    least loss on --dev-sets. After an interruption run the same command again to resume from the
    last checkpoint.

    Example: plumbline disclosure tune snli-train --model EleutherAI/pythia-70m --name calm
    """

    makes_warehouse = True
    without = ("adapter", "tensor_parallel", "smoothing", *OF_SCORES)

    sets: Sets
    model: Annotated[str, Field(description="The base: hub id or directory.")]
    name: Annotated[str, Field(description="Name of the adapter.")]
    out: Annotated[OutputDirectory, Field(description="Directory of adapters.")] = Path("adapters")
    test_sets: Annotated[
        str | None, Field(description="Sets to keep out, by commas; default: all others.")
    ] = None
    dev_sets: Annotated[
        tuple[str, ...], Field(description="Sets to choose the checkpoint by, by commas.")
    ] = ()
    probe: Annotated[bool, Field(description="Measure base and adapter on the test sets, too.")] = (
        False
    )
    report: ReportDirectory = Path("out/report")

    def __post_init__(self) -> None:
        super().__post_init__()
        tested = names(self.test_sets) or ()
        for option, sets, others, what in (
            ("--test-sets", tested, self.sets, "tuned on"),
            ("--dev-sets", self.dev_sets, (*self.sets, *tested), "tuned or tested on"),
        ):
            if both := set(sets) & set(others):
                problem = f"is {' and '.join(sorted(both))} too, which is {what}"
                raise UsageProblem(option, problem, "name other sets")

    def base(self) -> ModelOptions:
        """Options that load the base. Raises ``UsageProblem`` for those that can't be tuned."""
        from plumbline.eval_workers.training.mitigation.tune import check

        how = part(ModelOptions, self)
        check(how)
        return published_base(how) if self.as_published else how

    def needed_sets(self) -> tuple[str, ...]:
        """Every set that has to be in the warehouse."""
        return (*self.sets, *self.dev_sets, *(names(self.test_sets) or ()))

    def tested(self, store: Store | None) -> tuple[str, ...]:
        """The sets to measure with --probe. Raises ``UsageProblem`` if there are none."""
        test_sets = names(self.test_sets)
        if test_sets is None:
            known = set(store.read("probe_prompt")["probe_set"].to_pylist()) if store else set()
            test_sets = tuple(sorted(known - {*self.sets, *self.dev_sets}))
        if not test_sets:
            raise UsageProblem("--probe", "leaves no set to measure", "name one with --test-sets")
        return test_sets

    def check(self) -> None:
        """Check the base (without weights), the adapter's name, sets and words; writes nothing."""
        from plumbline.eval_workers.models import open_backend
        from plumbline.eval_workers.training.trained_models import plain_name

        how, store = self.base(), Store.existing(self.warehouse)
        if self.as_published and find_spec("bitsandbytes") is None:
            fix = "pip install bitsandbytes"
            raise MissingComponent("--as-published", "needs bitsandbytes", fix)
        plain_name(self.name)
        prompt_sets.missing_sets(store, self.needed_sets(), self.data or "")
        load_words(store, self.word_list)
        if self.probe:
            self.tested(store)
        _ = open_backend(self.model, how).identity

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Numbers of prompts to tune on and to leave out, and of steps."""
        from plumbline.eval_workers.training.mitigation.tuning_prompts import training_prompts

        missing = prompt_sets.missing_sets(store, self.needed_sets(), self.data or "")
        yield from (planned(name, "set to import", None) for name in dict.fromkeys(missing))
        if store is not None and not missing:
            arguments = (names(self.test_sets), self.name, self.dev_sets, self.as_published)
            training = training_prompts(store, self.sets, *arguments)
            yield planned(self.name, "prompts to tune on", len(training.rows))
            yield planned(self.name, "prompts left out", len(training.rejects))
        yield planned(self.name, "steps", self.steps, "", f"of {self.batch_prompts} prompts")

    def run(self, context: Context) -> Done:
        store, how, done = context.store, self.base(), list[Disclosed]()
        sets = self.tested(store) if self.probe else ()
        whole = (*self.sets, *self.dev_sets) if self.as_published else ()
        import_missing(context, self.needed_sets(), self.data, whole)
        if sets:
            done += measured(context, self, sets, self.model, how)
        tuned = context.stage(f"tune {self.name} for {self.model}", _tune, context, self)
        if sets:
            done += measured(context, self, sets, self.model, replace(how, adapter=str(tuned.path)))
        page = context.stage("report", write_report, store, self.report)
        (row,) = store.read("tuning", tuning=self.name).to_pylist()
        return Done(
            rows=[
                {column: row[column] for column in _TUNING},
                *(figures(store, figure_params(self, done)) if done else ()),
            ],
            said=[*_tuning(store, row, tuned), *(line for one in done for line in counts(one))],
            wrote=("tuning", "tuning_step", "reject", *(TABLES if done else ())),
            files=(row["path"], str(page)),
            next=shlex.join(["plumbline", "disclosure", "compare", self.model, row["path"]]),
            query="FROM tuning WHERE tuning = $name",
            params={"name": self.name},
        )


def _tune(context: Context, command: Tune) -> Tuned:
    """Tune the adapter, resuming from its last checkpoint."""
    from plumbline.eval_workers.models.devices import release
    from plumbline.eval_workers.training.mitigation.tune import tune
    from plumbline.eval_workers.training.mitigation.tuning_options import tuning_bar

    try:
        with tuning_bar(command.name) as progress:
            return tune(
                *(context.store, command.model, command.base(), part(TuneOptions, command)),
                context.run_id,
                sets=tuple(dict.fromkeys(command.sets)),
                name=command.name,
                out=command.out,
                test_sets=names(command.test_sets),
                dev_sets=command.dev_sets,
                progress=progress,
            )
    finally:
        release()


_TUNING = (
    *("tuning", "base", "layers", "n_parameters", "n_steps", "probe_sets", "n_prompts"),
    *("n_left_out", "n_leaks", "n_leaks_kept", "distance_start_nats", "distance_end_nats"),
    *("total_start", "total_end", "difference_start", "difference_end"),
    *("chosen_step", "dev_loss", "seconds"),
)


def _tuning(store: Store, row: Row, tuned: Tuned) -> Iterator[str]:
    """Lines on the tuning, the test sets, and why prompts were left out."""
    yield f"{row['tuning']}: {tuned_by(row)}{', was there already' if tuned.reused else ''}"
    if row["chosen_step"] is not None:
        yield (
            f"  the adapter is that of step {row['chosen_step']:,}: its loss on "
            f"{row['n_dev_prompts']:,} prompts of {row['dev_sets']} is the least"
        )
    rejects = store.read("reject", stage="tune", subject=row["tuning"]).to_pylist()
    compared = f"compared with {row['test_sets'] or 'no test set'}"
    yield f"  {compared}; left out: {reasons(rejects) or 'no prompt'}"
    if n := row["n_leaks_kept"]:
        yield f"  {n:,} of the prompts tuned on are in a test set: its figures show memory, too"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DisclosureCompare(ProbeOptions, ModelOptions, Command):
    """Compare an adapter with its base: disclosure, perplexity, benchmarks, FairPair; one page.

    Both are loaded alike; --revision and --trust-remote-code are for the base. Results in the
    warehouse are not computed again: after an interruption run the same command again to resume.
    Further options add to the page.

    Example: plumbline disclosure compare EleutherAI/pythia-70m adapters/calm --text held-out.jsonl
    """

    makes_warehouse = True
    without = ("adapter", "backend", "tensor_parallel", "smoothing", *OF_SCORES)

    base: Annotated[str, Field(description="The base: hub id, or directory."), On(positional=True)]
    tuned: Annotated[
        str,
        Field(description="The adapter that was tuned on it: hub id, or directory."),
        On(positional=True, metavar="adapter"),
    ]
    sets: Annotated[
        str | None,
        Field(description="Neutral sets, by commas; default: all it was not tuned on."),
    ] = None
    benchmarks: Annotated[
        str | None, Field(description="Benchmarks, by commas; default: all of the warehouse.")
    ] = None
    fairpair: Annotated[
        str, Field(description="Set of FairPair, such as common-sents; default: none.")
    ] = ""
    n: Annotated[
        int, Field(ge=2, le=100_000, description="FairPair's samples per prompt and side.")
    ] = 100
    max_new_tokens: Annotated[
        int, Field(ge=1, le=100_000, description="Tokens of FairPair's samples.")
    ] = 128
    text: Annotated[
        tuple[str, ...],
        Field(description="Held-out text: .txt, .jsonl(.zst, .gz), .parquet; may be repeated."),
        On(repeated=True),
    ] = ()
    window: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="Tokens per window; default: the model's context."),
    ] = None
    gas_tokens: Annotated[
        int, Field(ge=1, le=100_000, description="Tokens of GAS's continuations.")
    ] = 50
    out: Annotated[OutputDirectory, Field(description="Directory of the page.")] = Path(
        "out/compare"
    )

    def sides(self) -> dict[str, ModelOptions]:
        """Options that load the base, and the base with the adapter."""
        how = part(ModelOptions, self)
        return {"base": how, "adapter": replace(how, adapter=self.tuned)}

    def spec(self) -> FairPairSpec:
        """Options of FairPair."""
        return FairPairSpec(n=self.n, max_new_tokens=self.max_new_tokens)

    def check(self) -> None:
        """Raise for missing sets, benchmarks, texts or models, and for models that don't fit."""
        self.compared(Store.existing(self.warehouse))
        text_files(self.text)

    def compared(self, store: Store | None, held_out: HeldOut | None = None) -> ComparedModels:
        """The names to compare, and both models, opened without their weights.

        Raises ``UsageProblem`` for a set or benchmark that is not there, ``BadInput`` for an
        adapter of another base, and what loading models raises.
        """
        from plumbline.eval_workers.models import open_backend

        words, spec = load_words(store, self.word_list), self.spec()
        base, tuned = (open_backend(self.base, how) for how in self.sides().values())
        if self.text:
            _ = base.window(self.window)
        if self.fairpair:
            fairpair_steps.check(
                spec, self.fairpair, fairpair_steps.prompt_rows(store, self.fairpair, spec)
            )
        greedy = SamplingOptions(greedy=True, max_new_tokens=self.gas_tokens)
        return ComparedModels(
            *(self.warehouse, line_of(self), base.identity, tuned.identity, words.name),
            sets=self._sets(store, tuned.identity.adapter),
            benchmarks=self._benchmarks(store),
            greedy_key=greedy.key,
            fairpair=self.fairpair,
            fairpair_key=spec.sampling().key,
            text_set=held_out.name if held_out else None,
        )

    def _sets(self, store: Store | None, adapter: str | None) -> tuple[str, ...]:
        """The sets of --sets; by default the neutral sets not tuned on, or ``SHIPPED`` if none."""
        held = [str(row["probe_set"]) for row in rows_of(store.root, _NEUTRAL)] if store else []
        chosen = names(self.sets)
        if chosen is None:
            tuning = store.read("tuning").to_pylist() if store else []
            tuned_on = {
                name
                for row in tuning
                if row["adapter"] == adapter
                for column in ("probe_sets", "dev_sets")
                for name in str(row[column] or "").split(", ")
            }
            return tuple(name for name in held if name not in tuned_on) or (SHIPPED,)
        for name in chosen:
            if name not in (*held, SHIPPED):
                there = ", ".join(held) or "none"
                problem = f"is not a set of neutral prompts in the warehouse, there: {there}"
                raise UsageProblem(f"--sets {name}", problem)
        return chosen

    def _benchmarks(self, store: Store | None) -> tuple[str, ...]:
        chosen = names(self.benchmarks)
        if chosen is None:
            query = "SELECT DISTINCT benchmark FROM benchmark_pair ORDER BY 1"
            rows = rows_of(store.root, query) if store else []
            return tuple(str(row["benchmark"]) for row in rows)
        if chosen:
            check_imported(
                store or Store.open(self.warehouse, create=False, reads="benchmark_pair"), chosen
            )
        return chosen

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Missing work of each side; texts are read, weights aren't."""
        held_out = read_held_out(text_files(self.text)) if self.text else None
        compared, words = self.compared(store), load_words(store, self.word_list)
        for how in self.sides().values():
            missing = prompt_sets.missing_sets(store, compared.sets)
            yield from (planned(name, "set to import, then to measure", None) for name in missing)
            steps = [
                step
                for name in compared.sets
                if name not in missing
                for step in steps_of(name, words, NONE, self.gas_tokens)
            ]
            scores = [PairScores.of(name, how) for name in compared.benchmarks]
            texts = [Perplexity(held_out, self.window)] if held_out else []
            yield from to_do(store, self.base, how, [*steps, *scores, *texts])
            if self.fairpair:
                yield planned(self.base, "samples to draw, then to compare", self.n, "per side")

    def run(self, context: Context) -> Done:
        held_out = read_held_out(text_files(self.text)) if self.text else None
        compared = self.compared(context.store, held_out)
        import_missing(context, [name for name in compared.sets if name == SHIPPED], None)
        store, run_id = context.store, context.run_id
        for side, how in self.sides().items():
            if compared.sets:
                context.stage(f"{side}: disclosure", self._disclosure, context, compared, how)
            if names := compared.benchmarks:
                arguments = (store, self.base, names, how, run_id)
                context.stage(f"{side}: benchmarks", score_benchmarks, *arguments)
            if self.fairpair:
                context.stage(f"{side}: FairPair", self._fairpair, context, compared, how)
            if held_out is not None:
                measured = (store, self.base, how, [Perplexity(held_out, self.window)], run_id)
                context.stage(f"{side}: perplexity", run_steps, *measured)
        page = context.stage("page", write_comparison, compared, self.out)
        results = read_results(compared)
        missing = not_measured(compared, results)
        keys = f"'{compared.before.key}', '{compared.after.key}'"
        look = f'plumbline sql "FROM disclosure_difference({keys})"'
        return Done(
            rows=results.changes(),
            said=[line for lead in leads(results, []) for line in lead.sentences],
            wrote=self._tables(compared),
            files=(str(page),),
            next=missing[0].command if missing else look,
            query=f"FROM disclosure_difference({keys})",
        )

    def _disclosure(self, context: Context, compared: ComparedModels, how: ModelOptions) -> None:
        measure_sets(
            *(context.store, compared.sets, self.base, how, context.run_id),
            word_list=self.word_list,
            max_new_tokens=self.gas_tokens,
        )

    def _fairpair(self, context: Context, compared: ComparedModels, how: ModelOptions) -> None:
        """FairPair of the set, by all scoring functions that know its language."""
        store, spec, run_id = context.store, self.spec(), context.run_id
        rows = fairpair_steps.prompt_rows(store, compared.fairpair, spec)
        fairpair_steps.write_prompts(store, compared.fairpair, rows, run_id)
        drawn = fairpair_steps.draw(
            store, compared.fairpair, SampledModel(self.base, how), spec, run_id
        )
        keys = (drawn.probe_set, drawn.model_key, drawn.sampling_key)
        sampled = fairpair_steps.perturb(store, *keys, spec, run_id)
        for phi in fairpair_steps.scoring_functions(spec, rows):
            fairpair_steps.score(store, sampled, phi, spec, run_id)

    def _tables(self, compared: ComparedModels) -> tuple[str, ...]:
        continued = ("continuation", "sampling")
        return (
            "model",
            *(("pronoun_probability", "attribute_pair") if compared.sets else ()),
            *(continued if compared.sets or self.fairpair else ()),
            *(("pair_score",) if compared.benchmarks else ()),
            *(_OF_FAIRPAIR if self.fairpair else ()),
            *(("perplexity",) if self.text else ()),
        )


_NEUTRAL = (
    "SELECT probe_set FROM probe_prompt GROUP BY ALL HAVING count(perturbed_prompt) = 0 "
    "ORDER BY ALL"
)
_OF_FAIRPAIR = ("perturbed_continuation", "fairpair_prompt", "fairpair_set")
