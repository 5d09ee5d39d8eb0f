"""Measure GAS, GLD and ADD of sets of prompts under models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.eval_workers.disclosure.set_measures import Disclosed, ProbeOptions, steps_of
from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.models.sampling_contract import NONE
from plumbline.pipelines.command.base import Command, Context, Done, Row, planned
from plumbline.pipelines.command.failures import Failures
from plumbline.pipelines.command.fields import DataOption
from plumbline.pipelines.commands.disclosure.measured_sets import (
    FIGURES,
    TABLES,
    Sets,
    counts,
    figure_params,
    figures,
    import_missing,
    measured,
    to_do,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT, part
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Probe(ProbeOptions, ModelOptions, DataOption, Command):
    """GAS, GLD and ADD of sets of prompts under models; only what is missing is computed.

    After each prompt: how likely each gendered word is, and the greedy continuation.

    Example: plumbline disclosure probe topics --model EleutherAI/pythia-70m
    """

    makes_warehouse = True
    without = OF_SCORES
    settings_only = ("batch_tokens", "bos", "concurrency", "tensor_parallel")

    sets: Sets
    model: Annotated[tuple[str, ...], Field(description="Hub ids or directories, by commas.")] = ()
    models: Annotated[
        str | None,
        Field(description="Instead of --model a list: a TOML file, or a name: unstereoeval."),
    ] = None

    def __post_init__(self) -> None:
        if bool(self.model) == bool(self.models):
            problem = "exclude each other" if self.model else "are both missing"
            raise UsageProblem("--model and --models", problem, "give one of them")

    def subjects(self) -> list[tuple[str, ModelOptions]]:
        """Each model once, and how it is loaded."""
        from plumbline.eval_workers.models.model_lists import load_available

        how = part(ModelOptions, self)
        if self.models:
            return [(one.id, one.options(how)) for one in load_available(self.models)]
        return [(name, how) for name in dict.fromkeys(self.model)]

    def check(self) -> None:
        """Check the sets, the word list and a single model (without weights) before the start.

        Several models are not checked: one that fails is reported when its turn comes.
        """
        from plumbline.eval_workers.models import open_backend

        subjects = self.subjects()
        store = Store.existing(self.warehouse)
        prompt_sets.missing_sets(store, self.sets, self.data or "")
        load_words(store, self.word_list)
        if len(subjects) == 1:
            _ = open_backend(*subjects[0]).identity

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Prompts not measured yet, per set and model; no weights are read."""
        words = load_words(store, self.word_list)
        missing = prompt_sets.missing_sets(store, self.sets, self.data or "")
        yield from (planned(name, "set to import, then to measure", None) for name in missing)
        held = [name for name in dict.fromkeys(self.sets) if name not in missing]
        steps = [s for name in held for s in steps_of(name, words, NONE, self.max_new_tokens)]
        for model, how in self.subjects():
            yield from to_do(store, model, how, steps)

    def run(self, context: Context) -> Done:
        """Measure the sets under each model; a model that fails doesn't stop the others."""
        store, subjects = context.store, self.subjects()
        done, failures = list[Disclosed](), Failures(len(subjects))
        for model, how in subjects:
            with failures.collected(model):
                done += self.audit(context, model, how)
        if not done and (error := failures.error()):
            raise error
        params = figure_params(self, done)
        return Done(
            rows=figures(store, params),
            said=[line for one in done for line in counts(one)],
            wrote=TABLES,
            next="plumbline report",
            query=FIGURES,
            params=params,
            failed=failures.error(),
        )

    def audit(self, context: Context, model: str, how: ModelOptions) -> list[Disclosed]:
        """Import missing sets and measure all under one model."""
        import_missing(context, self.sets, self.data)
        return measured(context, self, self.sets, model, how)
