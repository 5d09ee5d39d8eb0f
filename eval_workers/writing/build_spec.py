"""The options of a benchmark build, and the requests that a build sends to the chat model."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.client import AskingOptions
from plumbline.eval_workers.chat.requests import ChatModel, Pronoun, Purpose, Request
from plumbline.eval_workers.writing import wordings
from plumbline.eval_workers.writing.wordings import Wordings, fill_prompt
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST, STRICT, Seed

#: How often each wording may be used to revise a sentence: UnStereoEval's released pipeline drops a
#: sentence after 40 tries, with four wordings in turn (`src/run_pipeline_revision.py`).
TRIES_A_WORDING = 10
#: To compute token limits of replies: tokens per word, per sentence, for small talk, per verdict.
_TOKENS_A_WORD, _TOKENS_A_SENTENCE, _TOKENS_OF_TALK, _TOKENS_OF_VERDICT = 4, 16, 64, 64

_Few: TypeAlias = Annotated[int, Field(gt=0, le=1_000)]


@dataclass(frozen=True, config=STRICT)
class BuildSpec(AskingOptions):
    """Options of a build. Paths are relative to the working directory.

    If ``words`` is set, no seed words are sampled from a corpus, and ``corpus`` may be empty.
    MaxPMI compares the two words of ``contrast``.
    """

    corpus: Annotated[str, Field(description="Corpus from which the seed words come.")] = ""
    contrast: Annotated[str, Field(description="Two target words to compare, such as she/he.")] = (
        "she/he"
    )
    seed: Annotated[Seed, Field(description="Random seed for sampling the seed words.")] = 0
    n_words: Annotated[
        int | None,
        Field(gt=0, le=MOST, description="Number of seed words to take from the sample."),
    ] = None
    words: Annotated[
        tuple[str, ...],
        Field(description="Seed words to use instead of a sample, separated by commas."),
    ] = ()
    n_sentences: Annotated[
        _Few, Field(description="Number of sentences to write for each word and pronoun.")
    ] = 5
    max_words: Annotated[_Few, Field(description="Maximum number of words in a sentence.")] = 10
    reject_longer: Annotated[
        bool, Field(description="Reject sentences that are too long. (UnStereoEval kept them.)")
    ] = True
    temperature: Annotated[
        float, Field(ge=0, le=10, description="Sampling temperature for writing sentences.")
    ] = 0.7
    generate_rounds: Annotated[
        _Few, Field(description="Maximum number of requests for sentences, per word and pronoun.")
    ] = 3
    eta: Annotated[
        float, Field(ge=0, le=1_000, description="Largest |MaxPMI| of exported pairs, in nats.")
    ] = 0.65
    prompts: Annotated[
        str, Field(description="TOML file with the prompts, or a folder of UnStereoEval's release.")
    ] = ""

    @cached_property
    def wordings(self) -> Wordings:
        """The prompts for each purpose. Raises the errors of ``wordings.load``."""
        return wordings.load(Path(self.prompts) if self.prompts else None)

    @property
    def n_revisions(self) -> int:
        """Maximum number of times that a sentence is sent back for revision.

        >>> BuildSpec(model="m").n_revisions  # ten with each of four wordings
        40
        """
        return TRIES_A_WORDING * len(self.wordings.revise)

    def chat_model(self) -> ChatModel:
        """Return the model to send requests to. Raises ``UsageProblem`` if no model is named."""
        if not self.model:
            fix = "give --model NAME, or --offline for sentences of a fixed grammar"
            raise UsageProblem("model", "is not given", fix)
        return super().chat_model()

    def request(
        self,
        purpose: Purpose,
        word: str,
        pronoun: Pronoun,
        round: int,
        *,
        sentence: str = "",
        n: int = 1,
    ) -> Request:
        """Return a request to write ``n`` sentences, or to revise, convert or judge ``sentence``.

        If a purpose has several wordings, the rounds use them in turn. Conversions use temperature
        0 in the first round. Later rounds use 0.7, to get a different answer.

        >>> spec = BuildSpec(model="m", max_words=7)
        >>> spec.request("generate", "tea", "she", 1, n=2).max_tokens
        152
        """
        to_write = n * (_TOKENS_A_WORD * self.max_words + _TOKENS_A_SENTENCE) + _TOKENS_OF_TALK
        max_tokens, temperature = to_write, self.temperature
        if purpose == "convert":
            max_tokens, temperature = len(sentence) + _TOKENS_OF_TALK, 0 if round == 1 else 0.7
        elif purpose == "judge":
            max_tokens, temperature = _TOKENS_OF_VERDICT, 0
        wordings = self.wordings.of(purpose, pronoun)
        prompt = fill_prompt(
            wordings[(round - 1) % len(wordings)],
            word=word,
            pronoun=pronoun,
            n=n,
            max_words=self.max_words,
            sentence=sentence,
        )
        return self.chat_model().request(
            purpose,
            prompt,
            word=word,
            pronoun=pronoun,
            round=round,
            temperature=temperature,
            max_tokens=max_tokens,
            as_json=self.wordings.as_json,
        )
