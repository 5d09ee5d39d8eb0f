"""Options of a build: the keys of its configuration file, and the objects they configure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.asking_options import AskingOptions
from plumbline.eval_workers.chat.client import checked_url
from plumbline.eval_workers.writing import wordings
from plumbline.eval_workers.writing.written_sentences import WritingSpec
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT


@dataclass(frozen=True, config=STRICT)
class BuildSpec(AskingOptions):
    """Options of a build. Paths are relative to the working directory.

    ``words`` replace the sample of a corpus's seed words; ``corpus`` may then be empty.
    ``contrast`` and ``eta`` are about MaxPMI. Without ``judge``, ``is_natural`` is NULL. If
    ``prompts`` is a folder of UnStereoEval's release, its model, temperature and numbers of
    sentences and words are the defaults.
    """

    corpus: Annotated[str, Field(description="Corpus whose seed words are used.")] = ""
    contrast: Annotated[str, Field(description="Contrast of the leans.")] = "she/he"
    seed: Annotated[
        int, Field(ge=0, le=(1 << 32) - 1, description="Seed of the sample of words.")
    ] = 0
    n_words: Annotated[
        int | None,
        Field(gt=0, le=1_000_000, description="Number of seed words to take from the sample."),
    ] = None
    words: Annotated[
        tuple[str, ...], Field(description="Seed words instead of a sample, separated by commas.")
    ] = ()
    n_sentences: Annotated[
        int, Field(gt=0, le=1_000, description="Sentences for each word and pronoun.")
    ] = 5
    max_words: Annotated[int, Field(gt=0, le=1_000, description="Most words of a sentence.")] = 10
    reject_longer: Annotated[
        bool, Field(description="Reject longer sentences; UnStereoEval kept them.")
    ] = True
    temperature: Annotated[float, Field(ge=0, le=10, description="Temperature of writing.")] = 0.7
    generate_rounds: Annotated[
        int, Field(ge=1, le=1_000, description="Rounds of writing for a word.")
    ] = 3
    revise_rounds: Annotated[
        int | None,
        Field(
            ge=0, le=1_000, description="Rounds of revising a sentence; default: 10 per wording."
        ),
    ] = None
    judge: Annotated[bool, Field(description="Have both sides of pairs judged.")] = True
    judge_model: Annotated[
        str, Field(description="Model that judges; default: the one that writes.")
    ] = ""
    judge_base_url: Annotated[
        str, Field(description="Address of the judge's server; default: the writer's.")
    ] = ""
    eta: Annotated[
        float,
        Field(
            ge=0,
            le=1_000,
            description="Bound on |MaxPMI|, in nats, of pairs that are shared.",
        ),
    ] = 0.65
    prompts: Annotated[
        str, Field(description="Wordings: a TOML file, or a folder of UnStereoEval's release.")
    ] = ""

    @model_validator(mode="before")
    @classmethod
    def _as_released(cls, arguments: Any) -> Any:
        values = arguments if isinstance(arguments, dict) else arguments.kwargs or {}  # of a call
        folder = values.get("prompts", "")
        if not (isinstance(folder, str) and wordings.is_released(folder)):
            return arguments
        return {**wordings.settings(Path(folder)), **values}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.judge_base_url:
            checked_url(self.judge_base_url)
        if self.judge_model and not self.judge:
            raise UsageProblem("judge_model", "nothing is judged", "leave it out, or set judge")
        if self.judge_base_url and not self.judge_model:
            raise UsageProblem(
                "judge_base_url", "needs a judge of its own", "add judge_model = NAME"
            )

    def writing(self) -> WritingSpec:
        """Settings of the writing. Raises as ``wordings.load``, ``UsageProblem`` without a model.

        >>> BuildSpec(model="m", max_words=7).writing().max_words
        7
        """
        if not self.model:
            fix = "give --model NAME, or --offline for sentences of a fixed grammar"
            raise UsageProblem("model", "is not given", fix)
        model = self.chat_model()
        return WritingSpec(
            model,
            wordings.load(Path(self.prompts) if self.prompts else None),
            n_sentences=self.n_sentences,
            max_words=self.max_words,
            reject_longer=self.reject_longer,
            temperature=self.temperature,
            revise_rounds=self.revise_rounds,
            generate_rounds=self.generate_rounds,
            judge=replace(model, name=self.judge_model) if self.judge_model else None,
        )

    def judging(self) -> AskingOptions:
        """The options with the judge's model and server."""
        url, model = self.judge_base_url or self.base_url, self.judge_model or self.model
        return replace(self, model=model, base_url=url)
