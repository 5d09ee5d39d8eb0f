"""`plumbline train`: train a small model on a corpus, or continue one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.models.ngram_model import NgramOptions
from plumbline.eval_workers.training import trained_models
from plumbline.eval_workers.training.training_options import Base, LearnerOptions, TrainOptions
from plumbline.jobs.kernel.corpus_options import RecordOptions
from plumbline.pipelines.command.base import Command, Context, Done
from plumbline.pipelines.command.fields import OutputDirectory, Seed, Shards
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import part, words
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress


class Train(LearnerOptions, ModelOptions, RecordOptions, Command):
    """Train a small GPT-NeoX on a corpus, in minutes on a CPU, to see what it learns from the text.

    --preset 5gram counts the text's n-grams of up to five words instead, as a control for what a
    neural model learns beyond them. --base continues an existing model or trains an adapter for it;
    --revision and other loading options apply to the base.

    An interrupted training starts over; a finished one is not repeated.

    Example: plumbline train 'novels/*.jsonl.zst' --name small-novels --corpus novels
    """

    makes_warehouse = True
    without = (
        *("adapter", "backend", "base_url", "concurrency", "tensor_parallel", *OF_SCORES),
        *("batch_tokens", "bos"),
    )

    shards: Shards
    name: Annotated[str, Field(description="Name of the model.")]
    corpus: Annotated[str, Field(min_length=1, description="Name of the corpus in the warehouse.")]
    out: Annotated[OutputDirectory, Field(description="Directory for trained models.")] = Path(
        "models"
    )
    seed: Annotated[Seed, Field(description="Seed of the weights and the order of texts.")] = 0

    def how(self) -> tuple[TrainOptions | NgramOptions, Base | None]:
        """Return the training options, and the model to continue, if any."""
        learner = part(LearnerOptions, self)
        return learner.training(self.seed), learner.continued(part(ModelOptions, self))

    def check(self) -> None:
        """Raise for contradictory options, names that are paths, and missing shards.

        Also raise if the corpus isn't counted but others are: its name is probably mistyped.
        """
        from plumbline.jobs.counting.corpus_lookup import corpus_row

        self.how(), trained_models.plain_name(self.name), expand_shards(self.shards)
        store = Store.existing(self.warehouse)
        if store is not None and store.read("corpus").num_rows:
            corpus_row(store, self.corpus)

    def run(self, context: Context) -> Done:
        options, base = self.how()
        with progress(f"train {self.name}", "steps") as update:
            trained = trained_models.train_model(
                *(expand_shards(self.shards), self.name, self.corpus, options, self.out, update),
                *(self.text_field, base),
            )
        trained_models.record_model(context.store, trained, context.run_id)
        model, scoring = trained.scored(base)
        line = shlex.join(["plumbline", "score", "--model", model, *words(scoring)])
        names = ("n_parameters", "n_steps", "n_tokens", "loss_start_nats", "loss_end_nats")
        row = {"model": self.name, **{name: getattr(trained, name) for name in names}}
        return Done(
            rows=[{**row, "seconds": trained.seconds, "trained_now": not trained.reused}],
            files=(str(trained.path),),
            next=f"{line} --benchmark NAME",
            query="FROM trained_model WHERE model = $model",
            params={"model": self.name},
        )
