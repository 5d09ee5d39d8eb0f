"""GAS, GLD and ADD of a set under a model that is loaded once: word probabilities, continuations.

Both halves resume where they were stopped. Continuations are greedy: the same prompt always goes on
alike. What a model leaves empty is no verdict: such prompts are counted, not called neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.disclosure.attributes import WORD_LIST
from plumbline.eval_workers.disclosure.probe import Probed, check_probe, probe_opened
from plumbline.eval_workers.disclosure.words import load_words
from plumbline.eval_workers.instruction import NONE, Instruction
from plumbline.eval_workers.sample import sample_opened
from plumbline.eval_workers.sample_rows import Sampled
from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList

if TYPE_CHECKING:
    from plumbline.eval_workers.backends._continuer import Continuer
    from plumbline.eval_workers.options import ModelOptions
    from plumbline.warehouse.text.progress import Update

#: New tokens of a continuation, at the most.
MAX_NEW_TOKENS = 50

#: Opens a progress bar for a step, given its name and the unit of what it counts.
Bar = Callable[[str, str], "AbstractContextManager[Update]"]


@contextmanager
def no_bar(what: str, unit: str) -> Iterator[Update]:
    """A progress bar that shows nothing."""
    yield lambda n_done, n_all, rate=None, /, note="": None


@dataclass(frozen=True)
class Measured:
    """Both halves under one instruction; ``n_empty`` of the continuations are empty or blank."""

    instruction: Instruction
    probed: Probed
    sampled: Sampled
    n_empty: int


def measure_set(
    store: Store,
    name: str,
    model: str,
    options: ModelOptions,
    run_id: str,
    *,
    word_list: str = WORD_LIST,
    instructions: Sequence[Instruction] = (NONE,),
    max_new_tokens: int = MAX_NEW_TOKENS,
    bar: Bar = no_bar,
) -> list[Measured]:
    """Measure a set of ``probe_prompt`` under each instruction; each once, in the order given.

    Writes what ``probe.probe_set`` and ``sample.sample_set`` write, and raises what they raise.
    Each instruction is tried on the model before anything is computed.
    """
    check_probe(store, name, options)
    words = load_words(store, word_list)
    asked = list(dict.fromkeys(instructions))
    with opened(store, model, options) as backend:
        for instruction in asked:
            backend.lead(instruction)
        return [
            measure_opened(store, backend, name, words, instruction, max_new_tokens, run_id, bar)
            for instruction in asked
        ]


def measure_sets(
    store: Store,
    names: Sequence[str],
    model: str,
    options: ModelOptions,
    run_id: str,
    word_list: str = WORD_LIST,
    max_new_tokens: int = MAX_NEW_TOKENS,
    bar: Bar = no_bar,
) -> list[Measured]:
    """Measure several sets with a model that is loaded once and told nothing; see ``measure_set``.

    A set that can't be measured ends it; those before it stay.
    """
    for name in names:
        check_probe(store, name, options)
    words = load_words(store, word_list)
    with opened(store, model, options) as backend:
        return [
            measure_opened(store, backend, name, words, NONE, max_new_tokens, run_id, bar)
            for name in names
        ]


@contextmanager
def opened(store: Store, model: str, options: ModelOptions) -> Iterator[Continuer]:
    """A model for several steps; a full disk or memory within the block is one line."""
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.backends.devices import memory_problems

    backend = open_backend(model, options)
    with disk_problems(store.root), memory_problems(model):
        yield backend


def measure_opened(
    store: Store,
    backend: Continuer,
    name: str,
    words: WordList,
    instruction: Instruction,
    max_new_tokens: int,
    run_id: str,
    bar: Bar = no_bar,
) -> Measured:
    """``measure_set`` under one instruction, with a model that is open already."""
    how = SamplingOptions(
        greedy=True,
        max_new_tokens=max_new_tokens,
        instruction=instruction.text,
        form=instruction.form,
    )
    with bar(f"words after {name}", "prompts") as tell:

        def told(_: str, n_done: int, n_all: int) -> None:
            tell(n_done, n_all)

        probed = probe_opened(store, backend, name, words, instruction, run_id, told)
    with bar(f"continuations of {name}", "prompts") as tell:
        sampled = sample_opened(store, backend, name, how, 1, run_id, tell)
    return Measured(instruction, probed, sampled, n_empty(store, sampled))


def n_empty(store: Store, sampled: Sampled) -> int:
    """How many continuations of a set's prompts are empty or white space alone."""
    where = {name: getattr(sampled, name) for name in ("probe_set", "model_key", "sampling_key")}
    rows = store.read("continuation", pc.field("side") == "original", **where)
    # The white space of the view `gendered_continuation`.
    return sum(not text.strip(" \t\n\f\r") for text in rows["continuation"].to_pylist())
