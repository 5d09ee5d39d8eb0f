"""`plumbline fairpair ...`: do texts about John and Jane differ by more than sampling noise?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Annotated, TypeAlias

from pydantic import Field

from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.requests import expected_tokens
from plumbline.eval_workers.fairpair import fairpair_steps as steps
from plumbline.eval_workers.fairpair.fairpair_options import (
    RULES,
    FairPairSpec,
    FigureOptions,
    texts_of,
)
from plumbline.eval_workers.fairpair.perturbed_set import PerturbedSamples
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.scoring_contract import Backend
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.served_samples import ServedModel
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store

#: New words per token. One text in ten has more (novels, news, reviews; 24 to 60 tokens).
_NEW_UNITS_A_TOKEN = 0.7
_PromptSet: TypeAlias = Annotated[
    str,
    Field(description="Name of a prompt set, such as common-sents, which is built in."),
    On(positional=True),
]


class FairpairRun(FairPairSpec, Command):
    """Test whether a model continues prompts about John differently from prompts about Jane.

    The model continues each prompt about John, and the same prompt about Jane. Then perturbation
    exchanges the name and the gendered words. It turns a text about John into a text about Jane.
    Tests whether perturbed texts differ from texts sampled about Jane by more than sampling noise.

    Samples and replies are stored. After an interruption, run the same command again to resume. A
    larger --n samples only the additional texts. API keys come from PLUMBLINE_API_KEY or
    OPENAI_API_KEY.

    Example: plumbline fairpair run common-sents --model EleutherAI/pythia-70m --n 100 --dry-run
    """

    makes_warehouse = True
    without = (
        *("batch_tokens", "bos", "concurrency", "tensor_parallel", "token_limit", "timeout_s"),
        *("max_tokens", "level", "n_resamples", "n_permutations"),
    )

    probe_set: _PromptSet
    model: Annotated[
        str, Field(min_length=1, description="Hugging Face id, directory, or name on the server.")
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds > self.n:
            raise UsageProblem(
                f"folds {self.folds}", f"are more than {self.n} samples", "raise --n"
            )

    def prompt_rows(self, store: Store | None) -> list[Row]:
        """Return the set's prompts. Raises ``UsageProblem`` if a prompt can't be used."""
        rows = steps.prompt_rows(store, self.probe_set, self)
        steps.check(self, self.probe_set, rows)
        return rows

    def check(self) -> None:
        _ = self.prompt_rows(Store.existing(self.warehouse)), self.opened().identity

    def opened(self) -> Backend | ServedModel:
        target = self.target(self.model)
        return target if isinstance(target, ServedModel) else open_backend(self.model, target)

    def ready(self) -> None:
        if self.max_requests == 0:  # stored replies need no key
            return
        if self.base_url:
            find_key(self.base_url)
        if self.perturber != RULES:
            find_key(self.perturber_server().base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield counts of prompts, samples and requests. Loads no model and sends no request."""
        rows = self.prompt_rows(store)
        yield planned(self.probe_set, "prompts with a counterpart", len(rows))
        yield planned(self.probe_set, "samples", self.n, "per side")
        yield self._least_new(rows)
        yield from self._to_sample(rows, store)
        if self.perturber != RULES:
            n, note = 2 * len(rows) * self.n, "at most, one per distinct text"
            yield planned(f"perturbed by {self.perturber}", "requests", n, "", note)

    def _least_new(self, rows: Sequence[Row]) -> Row:
        """Return a row that says how many new words a text needs to pass the filter."""
        text_filter = self.text_filter()
        n_new = min(text_filter.n_missing(row) for row in rows)
        note = f"after the prompt; shorter texts exceed --filter-limit {text_filter.limit:g}"
        if n_new > self.max_new_tokens * _NEW_UNITS_A_TOKEN:
            note = (
                f"WARNING: nearly all perturbations would fail, as {self.max_new_tokens:,} tokens "
                "are too short for the filter: raise --max-new-tokens or --filter-limit, or give "
                "--filter-unit characters"
            )
        return planned(self.probe_set, "new units needed", n_new, text_filter.unit, note)

    def _to_sample(self, rows: Sequence[Row], store: Store | None) -> Iterator[Row]:
        """Yield the number of missing samples. For a served model, yield the requests needed."""
        sampling, name, opened = self.sampling(), self.model, self.opened()
        key = opened.identity.key
        of_model = {"probe_set": self.probe_set, "model_key": key, "sampling_key": sampling.key}
        drawn = store.read("continuation", **of_model).to_pylist() if store else []
        step = Continuations(self.probe_set, sampling, self.n)
        missing = step.state_of(rows, drawn, sampling.instruction.prefix).missing
        if isinstance(opened, ServedModel):
            held = read_ledger(store, opened.ledger(self.probe_set)).replies
            asked = [d for d in missing if opened.request(d, sampling).request_id not in held]
            n_in = sum(expected_tokens(draw.text) for draw in asked)
            answered = len(missing) - len(asked)
            note = f"a sample each, at {self.base_url}; {answered:,} more are answered already"
            yield planned(name, "requests", len(asked), "", note)
            yield planned(name, "tokens in", n_in, "", "about")
            yield planned(name, "tokens out", len(asked) * self.max_new_tokens, "", "at most")
            return
        after = f"after {len({draw.text for draw in missing}):,} texts, key {key}"
        yield planned(name, "samples to draw", len(missing), "", after)
        yield planned(name, "new tokens", len(missing) * self.max_new_tokens, "", "at most")

    def run(self, context: Context) -> Done:
        store, name = context.store, self.probe_set
        rows = self.prompt_rows(store)
        chosen = steps.scoring_functions(self, rows)
        steps.write_prompts(store, name, rows, context.run_id)
        work = (steps.draw, store, name, self.model, self, context.run_id)
        drawn = context.stage(f"sample {self.model}", *work)
        keys = drawn.model_key, drawn.partition["sampling_key"]
        sampled = measured(context, self, name, keys, chosen)
        return Done(
            rows=figures(store, [sampled], chosen, self),
            said=[_drawn_line(drawn)],
            next="plumbline report",
            query="FROM fairpair_set WHERE probe_set = $probe_set AND model_key = $key "
            "ORDER BY ALL",
            params={"probe_set": name, "key": drawn.model_key},
        )


#: Options of `fairpair run` that `fairpair score` has too, since they don't affect sampling.
_MEASURING = (
    *("perturber", "perturber_url", "wording", "phi", "folds", "seed"),
    *("as_published", "filter_limit", "filter_unit"),
)


class FairpairScore(FairPairSpec, Command):
    """Measure stored samples again with other --folds, --phi (scoring functions) or --perturber.

    Samples no texts. Figures that were computed with other options are kept.

    Example: plumbline fairpair score common-sents --folds 20 --phi jaccard
    """

    reads = "fairpair_set"
    without = tuple(f.name for f in fields(FairPairSpec) if f.name not in _MEASURING)

    probe_set: _PromptSet

    def run(self, context: Context) -> Done:
        store, name = context.store, self.probe_set
        sampled_models = steps.continued(store, name)
        rows = store.read("probe_prompt", probe_set=name).to_pylist()
        steps.check(self, name, rows)
        chosen = steps.scoring_functions(self, rows)
        sampled = [measured(context, self, name, one, chosen) for one in sampled_models]
        return Done(
            rows=figures(store, sampled, chosen, self),
            next="plumbline report",
            query="FROM fairpair_set WHERE probe_set = $probe_set ORDER BY ALL",
            params={"probe_set": name},
        )


def measured(
    context: Context,
    options: FairPairSpec,
    probe_set: str,
    keys: tuple[str, str],
    chosen: Sequence[str],
) -> PerturbedSamples:
    """Perturb a model's stored samples, and measure them with the ``chosen`` scoring functions."""
    from plumbline.eval_workers.fairpair.fairpair_set import measure_set

    store, run_id = context.store, context.run_id
    sampled = context.stage("perturb", steps.perturb, store, probe_set, *keys, options, run_id)
    for phi in chosen:
        figure_options = part(FigureOptions, options)
        context.stage(f"measure by {phi}", measure_set, store, sampled, phi, figure_options, run_id)
    return sampled


def _drawn_line(drawn: StepCounts) -> str:
    return (
        f"{drawn.partition['probe_set']} by {drawn.model}, key {drawn.model_key}: "
        f"{drawn.n_done:,} of {drawn.n_wanted:,} sides of prompts have samples; {drawn.n_new:,} "
        "got new ones"
    )


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
#: Number of valid perturbations for each side, and of invalid ones for each reason.
_SUCCESS = f"""
SELECT model_key, side, reason, n, n_side, share FROM perturbation_success WHERE {_SAMPLED}
ORDER BY side, reason != 'valid', n DESC, reason
"""


def figures(
    store: Store,
    sampled: Sequence[PerturbedSamples],
    phi: Sequence[str],
    options: FigureOptions,
) -> list[Row]:
    """Return rows with counts of valid and invalid perturbations, then rows with B, V and F."""
    by = {"n_folds": options.folds, "texts": texts_of(options.as_published), "phi": list(phi)}
    success = [row for one in sampled for row in rows_of(store, _SUCCESS, asdict(one))]
    found = [row for one in sampled for row in rows_of(store, _FIGURES, asdict(one) | by)]
    return [*success, *({name: row[name] for name in _SHOWN} for row in found)]
