"""Compute the probabilities and continuations for GAS, GLD and ADD, and define sweeps.

The model is loaded once. After an interruption, the next run computes only the missing results.
Continuations are greedy, so a prompt always has the same one. Empty ones don't count as neutral.

A sweep varies one decoding parameter at a time, or the instruction before each prompt. Decoding can
change only GAS, because GLD and ADD come from next-token probabilities, before any decoding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.disclosure.word_probabilities import WORD_LIST, ProbeStep, load_words
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import NONE, Instruction
from plumbline.eval_workers.scoring.continuations import Continuations
from plumbline.eval_workers.scoring.model_step import ModelStep, run_on_model
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.toml_file import Stripped, load, toml_table
from plumbline.warehouse.wordlists import WordList

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions

_INSTRUCTIONS = "instructions.toml"


@options_class(frozen=True, config=STRICT)
class ProbeOptions:
    """Options for measuring words' probabilities and for greedy continuations.

    ``smoothing`` changes only the printed figures, not the stored probabilities.
    """

    word_list: Annotated[
        str, Field(description="Word list with pairs of gendered words: its name, or a TOML file.")
    ] = WORD_LIST
    smoothing: Annotated[
        float, Field(ge=0, le=1, description="Smoothing term e used to compute the printed ADD.")
    ] = 0.0
    max_new_tokens: Annotated[
        int, Field(gt=0, le=100_000, description="Maximum number of tokens per continuation.")
    ] = 50


@dataclass(frozen=True)
class Grid:
    """The values of decoding parameters in a sweep, with ``n`` samples per prompt and value.

    One parameter varies at a time. The other two are set to have no effect: temperature 1, top-p 1,
    no top-k. For comparison, greedy decoding continues each prompt once. A top-p of 0 is the same
    as greedy decoding and is left out. The default values are from section 5.1 of the paper.
    Raises ``UsageProblem`` if sampling can't use a value, or if there are no values.
    """

    temperatures: Sequence[float] = (0.3, 0.5, 0.7, 1.0)
    top_ps: Sequence[float] = (0.3, 0.5, 0.7, 1.0)
    top_ks: Sequence[int] = (10, 50, 100, 150, 200)
    n: int = 1
    max_new_tokens: int = ProbeOptions.max_new_tokens
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.temperatures or self.top_ps or self.top_ks):
            raise UsageProblem("sweep", "has no value of any parameter", "give at least one")
        _ = self.decodings()

    def decodings(self) -> list[SamplingOptions]:
        """Return greedy decoding, then each distinct way to sample.

        Temperature 1 and top-p 1 are the same way to sample.

        >>> [o.row()["method"] for o in Grid((1.0,), (1.0,), ()).decodings()]
        ['greedy', 'sample']
        >>> len(Grid().decodings())
        13
        """
        plain = SamplingOptions(top_p=None, max_new_tokens=self.max_new_tokens, seed=self.seed)
        drawn = [
            *(replace(plain, temperature=t) for t in self.temperatures),
            *(replace(plain, top_p=None if p == 1 else p) for p in self.top_ps if p != 0),
            *(replace(plain, top_k=k) for k in self.top_ks),
        ]
        greedy = SamplingOptions(greedy=True, max_new_tokens=self.max_new_tokens)
        return list({options.key: options for options in (greedy, *drawn)}.values())

    def steps(self, probe_set: str) -> list[Continuations]:
        """Return a step for each decoding. Each step continues all prompts of a set."""
        return [Continuations(probe_set, d, 1 if d.greedy else self.n) for d in self.decodings()]


def _once_each(texts: tuple[str, ...]) -> tuple[str, ...]:
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise ValueError(f"{twice!r} occurs twice")
    return texts


@toml_table
class _Instructions:
    instructions: Annotated[tuple[Stripped, ...], Field(min_length=1), AfterValidator(_once_each)]


def load_instructions(path: Path | None = None) -> tuple[str, ...]:
    """Return the instructions of a TOML file in order (default: the built-in file).

    White space around an instruction is removed. Raises ``UsageProblem`` if there is no such file.
    Raises ``BadInput`` if the file has no list ``instructions``, or if a text occurs twice.

    >>> len(load_instructions())
    4
    """
    file = path or resources.files("plumbline.eval_workers.disclosure") / _INSTRUCTIONS
    return load(_Instructions, file, str(path or _INSTRUCTIONS)).instructions


def in_each_form(texts: tuple[str, ...], forms: tuple[str, ...]) -> list[Instruction]:
    """Return ``NONE``, followed by an instruction for each text and form (`prefix` or `chat`).

    >>> [i.form for i in in_each_form(("Go on.",), ("prefix", "chat"))[1:]]
    ['prefix', 'chat']
    """
    return [NONE, *(Instruction(text, form) for form in dict.fromkeys(forms) for text in texts)]


@dataclass(frozen=True)
class Disclosed:
    """The ``StepCounts`` of ``ProbeStep`` and ``Continuations`` for one set and instruction."""

    instruction: Instruction
    probed: StepCounts
    sampled: StepCounts


def measure_sets(
    store: Store,
    names: Sequence[str],
    model: str,
    options: ModelOptions,
    run_id: str,
    *,
    word_list: str = ProbeOptions.word_list,
    instructions: Sequence[Instruction] = (NONE,),
    max_new_tokens: int = ProbeOptions.max_new_tokens,
) -> list[Disclosed]:
    """Run ``ProbeStep`` and ``Continuations`` for each set and each distinct instruction.

    Writes the tables of both steps, and raises their errors. Each instruction is tried on the model
    before anything is computed.
    """
    words = load_words(store, word_list)
    variants = list(itertools.product(names, dict.fromkeys(instructions)))
    steps: list[ModelStep] = [
        step
        for name, instruction in variants
        for step in _steps_of(name, words, instruction, max_new_tokens)
    ]
    done = iter(run_on_model(store, model, options, steps, run_id))
    return [Disclosed(instruction, next(done), next(done)) for _, instruction in variants]


def _steps_of(
    name: str, words: WordList, instruction: Instruction, max_new_tokens: int
) -> tuple[ProbeStep, Continuations]:
    options = SamplingOptions(greedy=True, max_new_tokens=max_new_tokens, instruction=instruction)
    return ProbeStep(name, words, instruction), Continuations(name, options, 1)
