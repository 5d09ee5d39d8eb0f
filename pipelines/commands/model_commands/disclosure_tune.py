"""`plumbline disclosure tune`: tune an adapter so that a model assumes less about gender."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.eval_workers.disclosure.word_probabilities import load_words
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training.trained_models import plain_name
from plumbline.eval_workers.training.training_options import TuneOptions, tuned_by
from plumbline.pipelines.command.base import Command, Context, Done, Row
from plumbline.pipelines.command.fields import DataOption, OutputDirectory
from plumbline.pipelines.commands.model_commands.disclosure_probe import Sets, import_missing
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.options import part
from plumbline.warehouse.storage.store import Store


class Tune(TuneOptions, ModelOptions, DataOption, Command):
    """Tune a LoRA adapter on neutral prompts to make a model assume less about gender.

    Unlike the paper, the command leaves out prompts that are also in test sets, averages losses and
    clips gradients. --as-published tunes as in the paper. The command keeps the adapter of the last
    step or, with --dev-sets, the adapter with the smallest loss on these sets. After an
    interruption, tuning starts from the beginning.

    Example: plumbline disclosure tune snli-train --model EleutherAI/pythia-70m --name calm
    """

    makes_warehouse = True
    without = (
        *("adapter", "backend", "tensor_parallel", "base_url", "concurrency"),
        *("batch_tokens", "bos"),
    )

    sets: Sets
    model: Annotated[str, Field(min_length=1, description="Model: Hugging Face id, or directory.")]
    name: Annotated[str, Field(description="Name for the new adapter.")]
    out: Annotated[OutputDirectory, Field(description="Directory for adapters.")] = Path("adapters")
    test_sets: Annotated[
        tuple[str, ...],
        Field(description="Prompt sets for tests only, comma-separated; default: all other sets."),
    ] = ()
    dev_sets: Annotated[
        tuple[str, ...], Field(description="Keep the adapter with the smallest loss on these sets.")
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, sets, others, what in (
            ("--test-sets", self.test_sets, self.sets, "tuned on"),
            ("--dev-sets", self.dev_sets, (*self.sets, *self.test_sets), "tuned or tested on"),
        ):
            if both := set(sets) & set(others):
                problem = f"names {' and '.join(sorted(both))}, also {what}"
                raise UsageProblem(option, problem, "name other sets")

    def base(self) -> ModelOptions:
        """Return the base model's options; --as-published adds 4-bit quantisation (QLoRA)."""
        how = part(ModelOptions, self)
        return replace(how, quantisation="nf4") if self.as_published else how

    def needed_sets(self) -> tuple[str, ...]:
        return (*self.sets, *self.dev_sets, *self.test_sets)

    def check(self) -> None:
        how, store = self.base(), Store.existing(self.warehouse)
        if self.as_published and find_spec("bitsandbytes") is None:
            fix = "pip install bitsandbytes"
            raise MissingComponent("--as-published", "needs bitsandbytes", fix)
        plain_name(self.name)
        prompt_sets.missing_sets(store, self.needed_sets(), self.data or "")
        load_words(store, self.word_list)
        _ = open_backend(self.model, how).identity

    def run(self, context: Context) -> Done:
        whole = (*self.sets, *self.dev_sets) if self.as_published else ()
        import_missing(context, self.needed_sets(), self.data, whole)
        row, reused = _tune(context, self)
        return Done(
            rows=[{column: row[column] for column in _TUNING}],
            said=list(_tuning(row, reused)),
            files=(row["path"],),
            next=self._probe(row["path"]),
            query="FROM tuning WHERE tuning = $name",
            params={"name": self.name},
        )

    def _probe(self, adapter: str) -> str:
        sets = self.test_sets or ("topics",)
        probe = ["disclosure", "probe", *sets, "--model", self.model, "--adapter", adapter]
        return shlex.join(["plumbline", *probe])


def _tune(context: Context, command: Tune) -> tuple[dict[str, Any], bool]:
    """Tune the adapter unless it exists. Return its row of ``tuning``, and True if it existed."""
    from plumbline.eval_workers.models.local.devices import release
    from plumbline.eval_workers.training.adapter_tuning import tune

    try:
        return tune(
            *(context.store, command.model, command.base(), part(TuneOptions, command)),
            context.run_id,
            sets=command.sets,
            name=command.name,
            out=command.out,
            test_sets=command.test_sets or None,
            dev_sets=command.dev_sets,
        )
    finally:
        release()


_TUNING = (
    *("tuning", "base", "layers", "n_parameters", "n_steps", "probe_sets", "n_prompts"),
    *("n_left_out", "n_leaks", "n_leaks_kept", "distance_start_nats", "distance_end_nats"),
    *("total_start", "total_end", "difference_start", "difference_end"),
    *("chosen_step", "dev_loss", "seconds"),
)


def _tuning(row: Row, reused: bool) -> Iterator[str]:
    yield f"{row['tuning']}: {tuned_by(row)}{', already existed' if reused else ''}"
    if row["chosen_step"] is not None:
        yield (
            f"  the adapter is from step {row['chosen_step']:,}, which has the lowest loss on "
            f"{row['n_dev_prompts']:,} prompts of {row['dev_sets']}"
        )
    yield f"  test sets with which the prompts were compared: {row['test_sets'] or 'none'}"
    if n := row["n_leaks_kept"]:
        yield f"  {n:,} of the prompts tuned on are in a test set: its figures partly show memory"
