"""`plumbline fairpair ...`: do continuations about John and Jane differ by more than sampling?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Annotated, TypeAlias

from pydantic import Field

from plumbline.eval_workers.chat.budget import expected_tokens
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.fairpair import fairpair_steps as steps
from plumbline.eval_workers.fairpair.fairpair_options import (
    RULES,
    FairPairSpec,
    FigureOptions,
    texts_of,
)
from plumbline.eval_workers.fairpair.figures.fairpair_set import PerturbedSamples, measure_set
from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.models.sampling_contract import SeededPrompt
from plumbline.eval_workers.scoring.continuations import Continuations, SampleCounts
from plumbline.eval_workers.scoring.served_samples import ServedModel, ledger_name
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.failures import Failures
from plumbline.warehouse.errors import PlumblineError, UsageProblem
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

#: About one in ten texts of 24 to 60 tokens has more new words per token (novels, news, reviews).
_NEW_UNITS_A_TOKEN = 0.7
_PromptSet: TypeAlias = Annotated[
    str,
    Field(description="Set of prompts; common-sents comes with Plumbline."),
    On(positional=True),
]


class FairpairRun(FairPairSpec, Command):
    """Sample both sides of each prompt, perturb, and compare bias with sampling noise.

    Samples and replies are kept: after an interruption run the same command again to resume; a
    larger --n draws only the additional samples. Keys of servers come from PLUMBLINE_API_KEY or
    OPENAI_API_KEY.

    Example: plumbline fairpair run common-sents --model EleutherAI/pythia-70m --n 100 --dry-run
    """

    makes_warehouse = True
    without = (
        *OF_SCORES,
        *("batch_tokens", "bos", "concurrency", "tensor_parallel", "token_limit", "timeout_s"),
        *("max_tokens", "level", "n_resamples"),
    )

    probe_set: _PromptSet

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds > self.n:
            raise UsageProblem(
                f"folds {self.folds}", f"are more than {self.n} samples", "raise --n"
            )

    def prompt_rows(self, store: Store | None) -> list[Row]:
        """The prompts, of a file or of the set. Raises ``UsageProblem`` for unusable ones."""
        rows = steps.prompt_rows(store, self.probe_set, self)
        steps.check(self, self.probe_set, rows)
        return rows

    def check(self) -> None:
        """Check servers' keys and a single model (without weights) before the start.

        Several models are not checked: one that fails is reported when its turn comes.
        """
        from plumbline.eval_workers.chat.client import find_key
        from plumbline.eval_workers.models import open_backend

        targets, rows = self.targets(), self.prompt_rows(Store.existing(self.warehouse))
        if self.base_url:
            find_key(self.base_url)
        if self.perturber != RULES:
            find_key(self.perturber_server().base_url)
        _ = steps.scoring_functions(self, rows)
        if len(targets) == 1 and isinstance(targets[0].how, ModelOptions):
            _ = open_backend(targets[0].model, targets[0].how).identity

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Missing samples or requests; reads no weights, asks no server.

        If one of several models can't be opened, a row says so, and the others are planned.
        """
        targets, rows = self.targets(), self.prompt_rows(store)
        yield planned(self.probe_set, "prompts with a counterpart", len(rows))
        yield planned(self.probe_set, "samples", self.n, "per side")
        for target in targets:
            try:
                if isinstance(how := target.how, ServedModel):
                    yield from _served(self, how, rows, store)
                else:
                    yield from _here(self, target.model, how, rows, store)
            except PlumblineError as e:
                if len(targets) == 1:
                    raise
                yield planned(target.model, "would fail", None, "", str(e))
        yield from _perturbing(self, rows)
        yield _of_length(self, rows)
        for name in steps.scoring_functions(self, rows):
            yield planned(self.probe_set, "measured by", name, "", texts_of(self.as_published))

    def run(self, context: Context) -> Done:
        """Measure the set under each model; one of several that fails doesn't stop the others."""
        store, targets = context.store, self.targets()
        rows = self.prompt_rows(store)
        chosen = steps.scoring_functions(self, rows)
        failures, audited = Failures(len(targets)), list[tuple[SampleCounts, PerturbedSamples]]()
        for target in targets:
            with failures.collected(target.model):
                name, run_id = self.probe_set, context.run_id
                steps.write_prompts(store, name, rows, run_id)
                sample = f"sample {target.model}"
                drawn = context.retried(sample, steps.draw, store, name, target, self, run_id)
                keys = drawn.model_key, drawn.sampling_key
                audited.append((drawn, measured(context, self, name, keys, chosen)))
        measured_sets = [sampled for _, sampled in audited]
        return Done(
            rows=figures(store, measured_sets, chosen, self),
            said=[line for drawn, _ in audited for line in _drawn_lines(drawn)],
            next="plumbline report",
            query="FROM fairpair_set WHERE probe_set = $probe_set "
            "AND list_contains($keys, model_key) ORDER BY ALL",
            params={
                "probe_set": self.probe_set,
                "keys": [drawn.model_key for drawn, _ in audited],
            },
            failed=failures.error(),
        )


#: Options of `run` that aren't about sampling; `score` takes them too.
_MEASURING = (
    *("perturber", "perturber_url", "wording", "phi", "folds", "seed"),
    *("as_published", "filter_limit", "filter_unit"),
)


class FairpairScore(FairPairSpec, Command):
    """Measure the samples in the warehouse again, with other folds, phi or perturber.

    No sample is drawn. Figures with other folds, texts, scoring functions, perturbers or filters
    stay.

    Example: plumbline fairpair score common-sents --folds 20 --phi jaccard
    """

    reads = "fairpair_set"
    without = tuple(f.name for f in fields(FairPairSpec) if f.name not in (*_MEASURING, "model"))

    probe_set: _PromptSet
    model: Annotated[str, Field(description="Only models of these names or keys, by commas.")] = ""

    def run(self, context: Context) -> Done:
        store = context.store
        sampled_models = steps.continued(store, self.probe_set, self)
        rows = store.read("probe_prompt", probe_set=self.probe_set).to_pylist()
        steps.check(self, self.probe_set, rows)
        chosen = steps.scoring_functions(self, rows)
        keys = [measured(context, self, self.probe_set, one, chosen) for one in sampled_models]
        return Done(
            rows=figures(store, keys, chosen, self),
            next="plumbline report",
            query="FROM fairpair_set WHERE probe_set = $probe_set ORDER BY ALL",
            params={"probe_set": self.probe_set},
        )


def measured(
    context: Context,
    options: FairPairSpec,
    probe_set: str,
    keys: tuple[str, str],
    chosen: Sequence[str],
) -> PerturbedSamples:
    """Perturb the samples of a model and a decoding; measure them by the chosen functions."""
    store, run_id = context.store, context.run_id
    sampled = context.stage("perturb", steps.perturb, store, probe_set, *keys, options, run_id)
    for phi in chosen:
        figure_options = part(FigureOptions, options)
        context.stage(f"measure by {phi}", measure_set, store, sampled, phi, figure_options, run_id)
    return sampled


def _missing(
    run: FairpairRun, rows: Sequence[Row], store: Store | None, model_key: str
) -> Sequence[SeededPrompt]:
    sampling = run.sampling()
    keys = {"probe_set": run.probe_set, "model_key": model_key, "sampling_key": sampling.key}
    continuations = store.read("continuation", **keys).to_pylist() if store else []
    step = Continuations(run.probe_set, sampling, run.n)
    return step.state_of(rows, continuations, sampling.full_instruction.prefix).missing


def _here(
    run: FairpairRun, name: str, how: ModelOptions, rows: Sequence[Row], store: Store | None
) -> Iterator[Row]:
    from plumbline.eval_workers.models import open_backend

    key = open_backend(name, how).identity.key
    missing = _missing(run, rows, store, key)
    after = f"after {len({draw.text for draw in missing}):,} texts, key {key}"
    yield planned(name, "samples to draw", len(missing), "", after)
    yield planned(name, "new tokens", len(missing) * run.max_new_tokens, "", "at most")


def _served(
    run: FairpairRun, served: ServedModel, rows: Sequence[Row], store: Store | None
) -> Iterator[Row]:
    sampling, name, key = run.sampling(), served.name, served.identity.key
    missing = _missing(run, rows, store, key)
    held = read_ledger(store, ledger_name(run.probe_set, key)).replies
    unanswered = [d for d in missing if served.request(d, sampling).request_id not in held]
    n_in = sum(expected_tokens(draw.text) for draw in unanswered)
    answered = len(missing) - len(unanswered)
    known = f"{answered:,} more are answered already" if answered else ""
    at = f"a sample each, at {run.base_url}"
    yield planned(name, "requests", len(unanswered), "", "; ".join(filter(None, (at, known))))
    yield planned(name, "tokens in", n_in, "", "about")
    yield planned(name, "tokens out", len(unanswered) * run.max_new_tokens, "", "at most")


def _perturbing(run: FairpairRun, rows: Sequence[Row]) -> Iterator[Row]:
    n_models = len(run.targets())
    n_texts = 2 * len(rows) * run.n * n_models
    if run.perturber == RULES:
        yield planned("perturbed by rules", "texts", n_texts, "", "asks no server")
        return
    wording = expected_tokens(run.chat_wording().perturb)
    texts = sum(
        expected_tokens(row[side]) + run.max_new_tokens
        for row in rows
        for side in ("prompt", "perturbed_prompt")
    )
    n_out = texts * run.n * n_models
    who = f"perturbed by {run.perturber}"
    yield planned(who, "requests", n_texts, "", "at most, one per different text")
    yield planned(who, "tokens in", n_out + n_texts * wording, "", "about")
    yield planned(who, "tokens out", n_out, "", "at most")


def _of_length(run: FairpairRun, rows: Sequence[Row]) -> Row:
    text_filter = run.text_filter()
    n_new = min(text_filter.n_missing(row) for row in rows)
    note = f"besides the prompt's: a shorter text fails --filter-limit {text_filter.limit:g}"
    if n_new > run.max_new_tokens * _NEW_UNITS_A_TOKEN:
        note = (
            f"WARNING: nearly all perturbations would fail, as {run.max_new_tokens:,} tokens are "
            "too short for the filter: raise --max-new-tokens or --filter-limit, or give "
            "--filter-unit characters"
        )
    return planned(run.probe_set, "new units needed", n_new, text_filter.unit, note)


def _drawn_lines(drawn: SampleCounts) -> Iterator[str]:
    yield (
        f"{drawn.probe_set} by {drawn.model}, key {drawn.model_key}: {drawn.n_samples:,} samples, "
        f"{drawn.n_new:,} new"
    )
    sides = f"of {drawn.n_texts:,} sides of prompts"
    if drawn.n_rejected:
        yield f"  {drawn.n_rejected:,} {sides} could not be continued (table `reject`)"
    if drawn.n_alike:
        yield f"  {drawn.n_alike:,} {sides} have hardly any different samples"


_MEANS = ("bias_b", "variability_pg", "variability_gp")
_SHOWN = (
    *("model_key", "phi", "side", "n_prompts", "n_left_out"),
    *(f"{name}{end}" for name in (*_MEANS, "fairpair_f") for end in ("", "_low", "_high")),
    *("p_permutation", "p_t"),
)
_SAMPLED = (
    "probe_set = $probe_set AND model_key = $model_key AND sampling_key = $sampling_key "
    "AND perturber = $perturber"
)
#: Rows of `fairpair_set`, with the intervals of B and V if they exist.
_FIGURES = f"""
SELECT s.*, {", ".join(f"i.{m}_{end}" for m in _MEANS for end in ("low", "high"))}
FROM fairpair_set AS s
LEFT JOIN fairpair_spread AS i
    USING (probe_set, model_key, sampling_key, perturber, phi, n_folds, texts, side)
WHERE {_SAMPLED} AND list_contains($phi, phi) AND n_folds = $n_folds AND texts = $texts
    AND s.subset = 'all'
ORDER BY phi, side
"""
#: Valid perturbations by side, then the reasons of the others. Some are too short for the filter.
_SUCCESS = f"""
SELECT model_key, side, reason, n, n_side, share FROM perturbation_success WHERE {_SAMPLED}
ORDER BY side, reason != 'valid', n DESC, reason
"""


def figures(
    store: Store,
    sampled: Sequence[PerturbedSamples],
    phi: Sequence[str],
    measured: FigureOptions,
) -> list[Row]:
    """Rows on the perturbations by side, and on B, V and F by scoring function and side."""
    by = {"n_folds": measured.folds, "texts": texts_of(measured.as_published), "phi": list(phi)}
    success = [row for one in sampled for row in rows_of(store.root, _SUCCESS, asdict(one))]
    found = [row for one in sampled for row in rows_of(store.root, _FIGURES, asdict(one) | by)]
    return [*success, *({name: row[name] for name in _SHOWN} for row in found)]
