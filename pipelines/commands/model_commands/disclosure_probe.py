"""`plumbline disclosure probe`: measure which gender a model assumes (GAS, GLD and ADD)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.eval_workers.disclosure.set_probing import (
    ProbeOptions,
    measure_sets,
)
from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.pipelines.command.base import Command, Context, Done, On
from plumbline.pipelines.command.fields import DataOption
from plumbline.warehouse.options import part
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store

Sets: TypeAlias = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="Names of prompt sets: topics, released sets, or your own."),
    On(positional=True),
]


def import_missing(
    context: Context, names: Sequence[str], data: Path | None, whole: Sequence[str] = ()
) -> None:
    """Import the named sets of prompts that aren't in the warehouse yet.

    Prompts with gendered words are left out, except in the sets named in ``whole``.
    """
    store, folder = context.store, data or ""
    for name in prompt_sets.missing_sets(store, list(dict.fromkeys(names)), folder):
        work = partial(prompt_sets.import_probe, allow_gendered=name in whole, data=folder)
        context.stage(f"prompts {name}", work, store, name, None, context.run_id)


#: GAS, GLD and ADD of the measured sets, as in the report; ``_SHOWN`` has the printed columns.
_FIGURES = f"""SELECT f.*, m.adapter
FROM (
{sql("report/disclosure").rstrip().rstrip(";")}
) AS f
JOIN model AS m ON m.model_key = f.model_key
WHERE list_contains($sets, f.probe_set) AND list_contains($keys, f.model_key)
    AND f.word_list = $word_list
    AND (f.sampling_key IS NULL OR f.sampling_key = $sampling_key)
ORDER BY list_position($sets, f.probe_set), list_position($keys, f.model_key), f.topic NULLS FIRST
"""
_MEASURED = ("gas", "gas_f_of_gendered", "gld", "add_nats")
_SHOWN = (
    *("probe_set", "model", "adapter", "topic", "n_prompts"),
    *(f"{name}{end}" for name in _MEASURED for end in ("", "_low", "_high")),
)


def _counts(probed: StepCounts, continued: StepCounts) -> str:
    return (
        f"{probed.partition['probe_set']} by {probed.model}, key {probed.model_key}: "
        f"{probed.n_wanted:,} prompts; in this run {probed.n_new:,} were probed and "
        f"{continued.n_new:,} continued"
    )


class Probe(ProbeOptions, ModelOptions, DataOption, Command):
    """Measure which gender a model assumes after prompts that give none (GAS, GLD and ADD).

    Computes the probability that each gendered word follows a prompt. Also computes the prompt's
    greedy continuation. After an interruption, run the same command again to resume.

    Example: plumbline disclosure probe topics --model EleutherAI/pythia-70m
    """

    makes_warehouse = True
    without = ("batch_tokens", "bos", "concurrency", "tensor_parallel")

    sets: Sets
    model: Annotated[str, Field(min_length=1, description="Model: Hugging Face id, or directory.")]

    def check(self) -> None:
        store = Store.existing(self.warehouse)
        prompt_sets.missing_sets(store, self.sets, self.data or "")
        load_words(store, self.word_list)
        _ = open_backend(self.model, part(ModelOptions, self)).identity

    def run(self, context: Context) -> Done:
        """Return GAS, GLD and ADD for each set and topic, with 95% intervals."""
        store, sets = context.store, list(dict.fromkeys(self.sets))
        import_missing(context, sets, self.data)
        adapter = f" with {self.adapter}" if self.adapter else ""
        work = partial(measure_sets, word_list=self.word_list, max_new_tokens=self.max_new_tokens)
        given = (store, sets, self.model, part(ModelOptions, self), context.run_id)
        done = context.stage(f"measure {', '.join(sets)} by {self.model}{adapter}", work, *given)
        probed, sampled = (counts.partition for counts in done[0])
        params = {
            "sets": sets,
            "keys": [probed["model_key"]],
            "word_list": probed["word_list"],
            "sampling_key": sampled["sampling_key"],
            "smoothing": self.smoothing,
        }
        return Done(
            rows=[{n: row[n] for n in _SHOWN} for row in rows_of(store.root, _FIGURES, params)],
            said=[_counts(*one) for one in done],
            next="plumbline report",
            query=_FIGURES,
            params=params,
        )
