"""Compute the probabilities and continuations for GAS, GLD and ADD, and define sweeps.

The model is loaded once. After an interruption, the next run computes only the missing results.
Continuations are greedy, so a prompt always has the same one. Empty ones don't count as neutral.

A sweep varies one decoding parameter at a time, or the instruction before each prompt. Decoding can
change only GAS, because GLD and ADD come from next-token probabilities, before any decoding.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

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

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions

_INSTRUCTIONS = "instructions.toml"


@dataclass(frozen=True, config=STRICT)
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


def decodings(
    temperatures: Sequence[float],
    top_ps: Sequence[float],
    top_ks: Sequence[int],
    max_new_tokens: int,
    seed: int,
) -> list[SamplingOptions]:
    """Return the settings of a sweep: greedy decoding, then each distinct way to sample.

    One parameter varies at a time. The other two are set to have no effect: temperature 1, top-p 1,
    no top-k. A top-p of 0 is the same as greedy decoding and is left out. Raises ``UsageProblem``
    if sampling can't use a value, or if there are no values.

    >>> [o.row()["method"] for o in decodings((1.0,), (1.0,), (), 50, 0)]
    ['greedy', 'sample']
    """
    if not (temperatures or top_ps or top_ks):
        raise UsageProblem("sweep", "has no value of any parameter", "give at least one")
    plain = SamplingOptions(top_p=None, max_new_tokens=max_new_tokens, seed=seed)
    drawn = [
        *(replace(plain, temperature=t) for t in temperatures),
        *(replace(plain, top_p=None if p == 1 else p) for p in top_ps if p != 0),
        *(replace(plain, top_k=k) for k in top_ks),
    ]
    greedy = SamplingOptions(greedy=True, max_new_tokens=max_new_tokens)
    return list({options.key: options for options in (greedy, *drawn)}.values())


@toml_table
class _Instructions:
    instructions: Annotated[tuple[Stripped, ...], Field(min_length=1)]


def load_instructions(path: Path | None = None) -> tuple[str, ...]:
    """Return the instructions of a TOML file in order (default: the built-in file).

    White space around an instruction is removed. Raises ``UsageProblem`` if there is no such file.
    Raises ``BadInput`` if the file has no list ``instructions``.

    >>> len(load_instructions())
    4
    """
    file = path or resources.files("plumbline.eval_workers.disclosure") / _INSTRUCTIONS
    return load(_Instructions, file, str(path or _INSTRUCTIONS)).instructions


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
) -> list[tuple[StepCounts, StepCounts]]:
    """Run ``ProbeStep`` and ``Continuations`` for each set and each distinct instruction.

    Return the counts of both steps. Writes the tables of both steps, and raises their errors. Each
    instruction is tried on the model before anything is computed.
    """
    words = load_words(store, word_list)
    steps = list[ModelStep]()
    for name, instruction in itertools.product(names, dict.fromkeys(instructions)):
        greedy = SamplingOptions(
            greedy=True, max_new_tokens=max_new_tokens, instruction=instruction
        )
        steps += ProbeStep(name, words, instruction), Continuations(name, greedy, 1)
    done = run_on_model(store, model, options, steps, run_id)
    return list(zip(done[::2], done[1::2], strict=True))
