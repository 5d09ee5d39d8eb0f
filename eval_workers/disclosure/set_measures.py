"""Measures GAS, GLD and ADD of sets with a model loaded once.

Probabilities and continuations both resume after an interruption. Continuations are greedy, so a
prompt always has the same one. Empty continuations don't count as neutral: their prompts are
counted separately.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from plumbline.eval_workers.disclosure.probe_options import ProbeOptions
from plumbline.eval_workers.disclosure.word_probabilities import ProbedSet, ProbeStep, load_words
from plumbline.eval_workers.models import memory_released, opened
from plumbline.eval_workers.models.sampling_contract import NONE, Instruction, SamplingOptions
from plumbline.eval_workers.scoring.continuations import Continuations, SampleCounts
from plumbline.warehouse.steps.runner import run_steps
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList

if TYPE_CHECKING:
    from plumbline.eval_workers.models.model_options import ModelOptions


@dataclass(frozen=True)
class Disclosed:
    """Probabilities and continuations under an instruction; ``n_empty`` continuations are blank."""

    instruction: Instruction
    probed: ProbedSet
    sampled: SampleCounts
    n_empty: int


@memory_released()
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
    """Measure sets of ``probe_prompt`` under each distinct instruction, in the order given.

    Writes and raises as ``ProbeStep`` and ``Continuations``. Each instruction is tried on the model
    before anything is computed. If a set can't be measured, the results of earlier sets stay.
    """
    words, variants = load_words(store, word_list), list(dict.fromkeys(instructions))
    for name in names:
        ProbeStep(name, words).check(store, options)
    done = list[Disclosed]()
    with opened(store, model, options) as backend:
        for instruction in variants:
            backend.lead(instruction)
        for name, instruction in itertools.product(names, variants):
            probe, continuations = steps_of(name, words, instruction, max_new_tokens)
            (probed,) = run_steps(store, backend, [probe], run_id)
            (sampled,) = run_steps(store, backend, [continuations], run_id)
            done.append(Disclosed(instruction, probed, sampled, _n_empty(store, sampled)))
    return done


def steps_of(
    name: str, words: WordList, instruction: Instruction, max_new_tokens: int
) -> tuple[ProbeStep, Continuations]:
    """Steps for a set's probabilities and for its continuations, under an instruction."""
    options = SamplingOptions(
        greedy=True,
        max_new_tokens=max_new_tokens,
        instruction=instruction.text,
        form=instruction.form,
    )
    return ProbeStep(name, words, instruction), Continuations(name, options, 1)


def _n_empty(store: Store, sampled: SampleCounts) -> int:
    """Number of continuations of a set's prompts that are empty or white space."""
    where = {name: getattr(sampled, name) for name in ("probe_set", "model_key", "sampling_key")}
    rows = store.read("continuation", pc.field("side") == "original", **where)
    # The same white space as in the view `gendered_continuation`.
    return sum(not text.strip(" \t\n\f\r") for text in rows["continuation"].to_pylist())
