"""`plumbline train`: train a small model on a corpus."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.training import trained_models
from plumbline.eval_workers.training.training_options import FIVE_GRAM, TrainOptions, preset
from plumbline.jobs.kernel.corpus_options import RecordOptions
from plumbline.pipelines.command.base import Command, Context, Done
from plumbline.pipelines.command.fields import OutputDirectory, Shards
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import Seed


class Train(RecordOptions, Command):
    """Train a small GPT-NeoX model on a corpus. Training takes minutes on a CPU.

    With --preset 5gram, counts n-grams of up to five words instead. Compare a neural model with
    this n-gram model to see what the neural model learns beyond n-grams.

    After an interruption, training starts from the beginning. Finished training isn't repeated.

    Example: plumbline train 'novels/*.jsonl.zst' --name small-novels --corpus novels
    """

    makes_warehouse = True

    shards: Shards
    name: Annotated[str, Field(description="Name for the new model.")]
    corpus: Annotated[
        str,
        Field(
            min_length=1,
            description="Name of the corpus. Reports compare the model with this corpus's counts.",
        ),
    ]
    out: Annotated[OutputDirectory, Field(description="Directory for trained models.")] = Path(
        "models"
    )
    preset: Annotated[
        str,
        Field(description="Kind of model: small, closed (for the made-up corpus), or 5gram."),
    ] = "small"
    max_tokens: Annotated[
        int | None,
        Field(gt=0, le=10**12, description="Maximum number of tokens; default: the preset's."),
    ] = None
    seed: Annotated[Seed, Field(description="Random seed for weights and the order of texts.")] = 0

    def training(self) -> TrainOptions | None:
        if self.preset != FIVE_GRAM:
            return preset(self.preset, self.seed, self.max_tokens)
        if self.seed or self.max_tokens is not None:
            problem = "counts the whole text, and draws nothing at random"
            raise UsageProblem("preset 5gram", problem, "leave out --seed and --max-tokens")
        return None

    def check(self) -> None:
        """Raise an error if options conflict, the name is a path, or shards are missing."""
        self.training(), trained_models.plain_name(self.name), expand_shards(self.shards)

    def run(self, context: Context) -> Done:
        shards, options = expand_shards(self.shards), self.training()
        given = (shards, self.name, self.corpus, options, self.out, self.text_field)
        trained, reused = trained_models.train_model(*given)
        context.store.replace("trained_model", [trained], {"model": self.name}, context.run_id)
        line = shlex.join(["plumbline", "score", "--model", trained["path"]])
        names = ["model", "n_parameters", "n_tokens"]
        if options is not None:
            names += ["n_steps", "loss_start_nats", "loss_end_nats"]
        shown = {name: trained[name] for name in (*names, "seconds")}
        return Done(
            rows=[{**shown, "trained_now": not reused}],
            files=(trained["path"],),
            next=f"{line} --benchmark NAME",
            query="FROM trained_model WHERE model = $model",
            params={"model": self.name},
        )
