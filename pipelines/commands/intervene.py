"""`plumbline intervene`: exchange words in a text, train on it, and see if the lean follows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.training import trained_models
from plumbline.eval_workers.training.interventions.changed_shards import (
    ChangedText,
    InterventionOptions,
    shown,
    write_changed,
)
from plumbline.eval_workers.training.interventions.study_options import (
    AIMED,
    PLACEBO,
    Arm,
    StudyOptions,
)
from plumbline.eval_workers.training.training_options import Base, Window
from plumbline.jobs.corpus_options import RecordOptions
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import InputDirectory, OutputDirectory, Seed
from plumbline.pipelines.commands.train import NOT_OF_BASES, Shards
from plumbline.warehouse.input.shards import expand_shards, record_form
from plumbline.warehouse.options import STRICT, part
from plumbline.warehouse.paths import segment
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.finding import Finding
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.progress import progress

#: A study's results on its corpus: responses to doses, then to windows of training.
_RESPONSES = """
SELECT benchmark, groups, contrast, kind, words, outcome, lean_at_0, response, response_low,
    response_high, unit, size_bound, share_bound, n_seeds
FROM dose_response WHERE study = $study AND corpus = $corpus
UNION ALL BY NAME
SELECT benchmark, groups, contrast, kind, words, outcome, window_start, window_end, response,
    response_low, response_high, n_seeds
FROM window_response WHERE study = $study AND corpus = $corpus
ORDER BY ALL
"""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class InterveneRun(StudyOptions, ModelOptions, Command):
    """Exchange she and he in growing shares of a text, train on each, and see if the lean follows.

    The lean of a model is the slope of its preferences on the text's associations, as in `measure`,
    and its mean preference. The placebo exchanges, in the same documents, two words that should not
    matter. Trainings are kept: after an interruption run the same command again to resume.

    Each dose is trained `--seeds` times, and so is the placebo: the example trains 20 models, a few
    minutes each on two cores. `--dry-run` lists them; `--seeds 1 --max-tokens 100000` is a trial.

    Example: plumbline intervene run 'novels/*.jsonl.zst' --name novels --corpus novels \
--benchmark winobias --doses 0,0.5,1
    """

    reads = "benchmark_pair"
    deployable = True
    without = NOT_OF_BASES

    shards: Shards
    name: Annotated[str, Field(description="Name of the intervention.")]
    corpus: Annotated[str, Field(description="The same text, counted in the warehouse.")]
    benchmark: Annotated[
        tuple[str, ...],
        Field(min_length=1, description="Benchmark; repeatable."),
        On(repeated=True),
    ]
    out: Annotated[OutputDirectory, Field(description="Directory of texts and models.")] = Path(
        "out/interventions"
    )

    @property
    def continued_base(self) -> Base | None:
        """The model that every training continues, if any."""
        return self.continued(part(ModelOptions, self))

    def check(self) -> None:
        """Raise the errors that can be detected before anything is trained."""
        from plumbline.eval_workers.scoring.pair_scores import check_imported
        from plumbline.jobs.corpus_lookup import corpus_deltas

        segment(self.name)
        _ = self.continued_base, self.training(), expand_shards(self.shards)
        store = Store.open(self.warehouse, create=False, reads=self.reads)
        check_imported(store, self.benchmark)
        corpus_deltas(store, self.corpus, "she/he")
        for arm in self.arms():
            _ = self.changes(arm).exchange

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The trainings, and whether each has a model of its name already."""
        tokens = self.training().max_tokens
        for arm in self.arms():
            is_there = (self._models / self._model(arm)).exists()
            note = "at most; one is there, kept if it was trained alike" if is_there else "at most"
            yield planned(str(arm), "tokens to train on", tokens, "tokens", note)

    def run(self, context: Context) -> Done:
        """Run all arms. Finished texts, models and scores are kept."""
        rows: list[Row] = []
        plain = tokenizer = None
        for arm in self.arms():
            text = context.stage(f"text of {arm}", self.text, arm)
            plain = plain or text
            arguments = (context, arm, plain, text, tokenizer)
            model = context.stage(f"train on {arm}", self.train, *arguments)
            tokenizer = tokenizer or model.path / "tokenizer.json"
            context.stage(f"score {arm}", self.score, context, model)
            rows += self._rows(arm, text, model, context.run_id)
            context.store.replace("intervention_arm", rows, {"study": self.name}, context.run_id)
        params = {"study": self.name, "corpus": self.corpus}
        return Done(
            rows=list(map(_with_finding, rows_of(context.store.root, _RESPONSES, params))),
            wrote=("intervention_arm", "trained_model", "pair_score"),
            files=(str(self.out / self.name),),
            next='plumbline sql "FROM dose_response"',
            query=_RESPONSES,
            params=params,
        )

    @property
    def _models(self) -> Path:
        return self.out / self.name / "models"

    def _model(self, arm: Arm) -> str:
        part = "" if arm.is_whole else f"-from-{arm.start:g}-to-{arm.end:g}"
        return f"{self.name}-{arm.kind}-{arm.dose:g}-{arm.seed}{part}"

    def text(self, arm: Arm) -> ChangedText:
        """The text of an arm, which all its seeds share."""
        out = self.out / self.name / f"{arm.kind}-{arm.dose:g}"
        return write_changed(expand_shards(self.shards), self.changes(arm), out)

    def train(
        self,
        context: Context,
        arm: Arm,
        plain: ChangedText,
        text: ChangedText,
        tokenizer: Path | None,
    ) -> trained_models.TrainedModel:
        """Train the model of an arm, with the tokenizer of the first arm or of the base.

        So arms differ only in their texts. ``plain`` is the unchanged text, read outside a window.
        """
        name, base, shards, window = self._model(arm), self.continued_base, text.shards, None
        if not arm.is_whole:
            shards, window = plain.shards, Window(text.shards, arm.start, arm.end)
        with trained_models.progress_bar(name) as progress:
            model = trained_models.train_model(
                *(shards, name, self.corpus, self.training(arm.seed), self._models, progress),
                tokenizer=None if base else tokenizer,
                base=base,
                window=window,
            )
        trained_models.record_model(context.store, model, context.run_id)
        return model

    def score(self, context: Context, model: trained_models.TrainedModel) -> None:
        from plumbline.eval_workers.scoring.pair_scores import score_benchmarks

        name, how = model.scored(self.continued_base)
        benchmarks = tuple(dict.fromkeys(self.benchmark))
        score_benchmarks(context.store, name, benchmarks, how, context.run_id)

    def _rows(
        self, arm: Arm, text: ChangedText, model: trained_models.TrainedModel, run_id: str
    ) -> Iterator[Row]:
        """The arm's row; at dose 0 also rows of the other kinds, whose text is the same."""
        words = {AIMED: self.near, PLACEBO: self.placebo}
        others = [kind for kind in words if words[kind] and not arm.dose]
        counts = ("n_documents", "n_changed", "n_changes", "n_undecided")
        for kind in [arm.kind, *others]:
            yield {
                **{"study": self.name, "kind": kind, "dose": arm.dose, "seed": arm.seed},
                **{"window_start": arm.start, "window_end": arm.end},
                "near": self.near if kind == AIMED else "",
                "exchanged": self.placebo if kind == PLACEBO else "",
                **{"model": model.model, "run_id": run_id},
                **{name: getattr(text, name) for name in counts},
            }


def _with_finding(row: Mapping[str, Any]) -> Row:
    if row["response_low"] is None:
        return {**row, "finding": "one seed, no interval"}
    ends = (row["response_low"], row["response_high"])
    finding = Finding(row["benchmark"], row["outcome"], row["response"], *ends)
    words = finding.pick(above="a response", below="a response", untold="no clear response")
    return {**row, "finding": words}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Text(InterventionOptions, RecordOptions, Command):
    """Write shards in which she and he are exchanged in a share of the documents.

    Pronouns, the words of the lists `gendered` and `names`, and titles are exchanged; a "her" that
    may be his or him is left as it is and counted. Every change is in a ledger beside its
    shard. A smaller dose changes some of the documents of a larger one. After an interruption run
    the same command again to resume.

    Example: plumbline intervene text 'novels/*.jsonl.zst' --dose 0.5 --out out/novels-half
    """

    opens_warehouse = False
    without = ("warehouse",)

    shards: Shards
    out: Annotated[OutputDirectory, Field(description="Directory of the changed shards.")]

    def run(self, context: Context) -> Done:
        form, how = record_form(self.text_field, self.tokenizer), part(InterventionOptions, self)
        with progress("change", "shards") as update:
            done = write_changed(expand_shards(self.shards), how, self.out, form, update)
        files = tuple(map(str, done.shards))
        row = {name: value for name, value in vars(done).items() if name != "shards"}
        said = [f"Every change is in a ledger beside its shard: {self.out}/*.changes.parquet"]
        return Done(
            rows=[row],
            said=said,
            files=files,
            next=f"plumbline intervene show {shlex.quote(str(self.out))}",
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class InterveneShow(Command):
    """Show some of the words that were exchanged, in the text as it is now.

    Example: plumbline intervene show out/novels-half --n 20
    """

    opens_warehouse = False
    without = ("warehouse",)

    directory: Annotated[
        InputDirectory,
        Field(description="--out of `plumbline intervene text`."),
        On(positional=True),
    ]
    n: Annotated[int, Field(ge=1, le=1_000_000, description="Changes to show.")] = 10
    seed: Annotated[Seed, Field(description="Seed of the draw.")] = 0

    def run(self, context: Context) -> Done:
        names = ("shard", "row", "text", "was")
        changes = (
            dict(zip(names, values, strict=True))
            for values in shown(self.directory, self.n, self.seed)
        )
        rows = [{**row, "text": " ".join(str(row["text"]).split())} for row in changes]
        return Done(
            rows=rows, said=[f"All of them: SELECT * FROM '{self.directory}/*.changes.parquet'"]
        )
