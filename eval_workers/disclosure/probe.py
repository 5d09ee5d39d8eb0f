"""Probabilities of gendered words after the prompts of a set: what is missing, in chunks.

The step goes as ``eval_workers.score`` does, on the same chunks and claims: a killed run loses a
chunk at the most, several commands on one warehouse share the work, and the rows are published
together. Any backend that scores texts will do. It is given each prompt with each form of each word
behind it; what these texts share is computed once.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.chunks import Chunks, texts_hash
from plumbline.eval_workers.disclosure.attributes import WORD_LIST, texts_to_score
from plumbline.eval_workers.disclosure.probe_rows import ProbeRows, probe_rows
from plumbline.eval_workers.disclosure.words import load_words, publish_words
from plumbline.eval_workers.instruction import NONE, Instruction, publish_instruction
from plumbline.eval_workers.score import Progress, publish_model, score_chunks
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList

if TYPE_CHECKING:
    from plumbline.eval_workers.backends.base import Backend
    from plumbline.eval_workers.options import ModelOptions

Row = dict[str, Any]

#: Prompts of a chunk, of some hundred texts each that differ in their last tokens.
CHUNK_PROMPTS = 32
_TABLE = "pronoun_probability"


@dataclass(frozen=True)
class Probed:
    """Outcome for a set: ``n_prompts = n_probed + n_rejected``.

    ``n_new`` of the probed prompts were published by this run. ``left_out`` are words that the
    model can't spell after some prompt: there, the pairs they are in do not count.
    """

    probe_set: str
    model: str
    model_key: str
    word_list: str
    instruction_key: str
    n_prompts: int
    n_probed: int
    n_new: int
    n_rejected: int
    left_out: tuple[str, ...]


def probe_set(
    store: Store,
    name: str,
    model: str,
    options: ModelOptions,
    run_id: str,
    word_list: str = WORD_LIST,
    progress: Progress | None = None,
    instruction: Instruction = NONE,
) -> Probed:
    """Compute P(word | prompt) of the words of a list, for all prompts that have none yet.

    With an ``instruction`` the model is given it before each prompt; such rows are rows of their
    own. Reads ``probe_prompt`` (the column ``prompt``); writes ``pronoun_probability``,
    ``attribute_pair``, ``instruction``, ``model`` and ``reject`` (stage `probe`). A prompt that
    changed is computed anew and its old rows go. A prompt that can't be scored has a row in
    ``reject`` and is tried again next time; so has a word that can't be spelled.

    Raises ``UsageProblem`` for a set that is not in the warehouse, a list whose name stands for
    other words there, or a text form of benchmarks; ``BadInput`` for a model that can't spell both
    words of any pair, a disk that can't be written or too little memory; and what loading list and
    model raises.
    """
    check_probe(store, name, options)
    words = load_words(store, word_list)
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.backends.devices import memory_problems

    backend = open_backend(model, options)
    with disk_problems(store.root), memory_problems(model):
        return probe_opened(store, backend, name, words, instruction, run_id, progress)


def check_probe(store: Store, name: str, options: ModelOptions) -> None:
    """Raise ``UsageProblem`` for a set without prompts, or a text form of benchmarks."""
    if options.text_form != "written":
        fix = "prompts are taken as they are: leave it out"
        raise UsageProblem(f"--text-form {options.text_form}", "is for benchmarks", fix)
    if not store.units("probe_prompt", probe_set=name):
        fix = "plumbline disclosure prompts and plumbline fairpair run make them"
        raise UsageProblem(f"prompts {name!r}", "are not in the warehouse", fix)


def probe_opened(
    store: Store,
    backend: Backend,
    name: str,
    words: WordList,
    instruction: Instruction,
    run_id: str,
    progress: Progress | None = None,
) -> Probed:
    """``probe_set`` with a model that is open already; a full disk or memory raises as it is."""
    lead = backend.lead(instruction)
    return _probe(_Work(store, backend, name, words, instruction, lead), run_id, progress)


@dataclass(frozen=True)
class _State:
    """Prompts of the set, the rows that hold, and the prompts without."""

    prompts: list[Row]
    found: list[Row]
    kept: list[Row]
    missing: list[Row]


@dataclass(frozen=True)
class _Work:
    """A set that is to be probed by a model with a list of words; with what is before prompts."""

    store: Store
    backend: Backend
    probe_set: str
    words: WordList
    instruction: Instruction
    lead: str

    @property
    def partition(self) -> dict[str, str]:
        """Where the rows are published."""
        key = self.backend.identity.key
        return {
            "probe_set": self.probe_set,
            "model_key": key,
            "word_list": self.words.name,
            "instruction_key": self.instruction.key,
        }

    def directory(self, *, create: bool = False) -> Path:
        """Where the chunks are kept until they are published."""
        place = ("probe", *self.partition.values())
        return self.store.work_directory(*place, create=create)

    def plan(self) -> Chunks:
        """What is to be scored, with the directory for it made."""
        return self.chunks(self.state().missing, self.directory(create=True))

    def state(self) -> _State:
        """What the warehouse has and lacks now."""
        read = self.store.read("probe_prompt", probe_set=self.probe_set).to_pylist()
        prompts = [{**row, "sent": f"{self.lead}{row['prompt']}"} for row in read]
        wanted = {row["prompt_id"]: texts_hash(self.texts(row)) for row in prompts}
        prompts = [{**row, "text_id": wanted[row["prompt_id"]]} for row in prompts]
        found = self.store.read(_TABLE, **self.partition).to_pylist()
        kept = [row for row in found if wanted.get(row["prompt_id"]) == row["text_id"]]
        done = {row["prompt_id"] for row in kept}
        return _State(prompts, found, kept, [p for p in prompts if p["prompt_id"] not in done])

    def texts(self, prompt: Mapping[str, Any]) -> list[str]:
        """All that is scored for a prompt."""
        return texts_to_score(prompt["sent"], self.words.targets)

    def chunks(self, prompts: Sequence[Row], directory: Path) -> Chunks:
        """Texts by file; prompts in alphabetical order, so that likenesses meet in a chunk."""
        different = {row["prompt"]: row for row in prompts}
        ordered = [different[prompt] for prompt in sorted(different)]
        texts, n_prompts_in = {}, {}
        for start in range(0, len(ordered), CHUNK_PROMPTS):
            part = ordered[start : start + CHUNK_PROMPTS]
            here = list(dict.fromkeys(text for row in part for text in self.texts(row)))
            path = directory / f"{texts_hash(here)}.parquet"
            texts[path], n_prompts_in[frozenset((path.name,))] = here, len(part)
        return Chunks(directory, texts, n_prompts_in)


def _probe(work: _Work, run_id: str, progress: Progress | None) -> Probed:
    while True:
        plan = work.plan()
        if plan.todo():
            _ = work.backend.n_parameters  # the weights, before the first chunk is claimed
        score_chunks(work.backend, plan, work.probe_set, progress)
        with plan.published_in_turn():
            state = work.state()
            scores = work.chunks(state.missing, plan.directory).results()
            if scores is not None:
                shared = {**work.partition, "model": work.backend.identity.model, "run_id": run_id}
                made = probe_rows(state.missing, work.words, scores, shared)
                return _publish(work, state, made, run_id)
        # A file was damaged, or another command has published meanwhile: on with what is left.


def _publish(work: _Work, state: _State, made: ProbeRows, run_id: str) -> Probed:
    """Publish the rows of all chunks, and forget these."""
    store, words, identity = work.store, work.words, work.backend.identity
    if made.hopeless and not made.rows and not state.kept:
        shutil.rmtree(work.directory(), ignore_errors=True)
        problem = f"can't spell both words of any pair of the list {words.name}: {made.hopeless}"
        raise BadInput(f"model {identity.model}", problem, "give another list of words")
    if state.missing:
        publish_model(store, work.backend, run_id)
    publish_words(store, words, run_id)
    publish_instruction(store, work.instruction, run_id)
    if made.rows or len(state.kept) < len(state.found):
        rows = sorted([*state.kept, *made.rows], key=lambda row: (row["prompt_id"], row["word"]))
        store.replace(_TABLE, rows, work.partition, run_id)
    subject = {"stage": "probe", "subject": "/".join(work.partition.values())}
    before = store.read("reject", **subject).to_pylist() if state.kept else []
    # Of prompts done before, the words that can't be spelled are not looked for again.
    again = [r for r in before if r["source_file"] == words.name]
    told = {str(r["excerpt"]) for r in made.unspelled}
    unspelled = [*made.unspelled, *(r for r in again if r["excerpt"] not in told)]
    store.replace("reject", [*made.rejects, *unspelled], subject, run_id)
    shutil.rmtree(work.directory(), ignore_errors=True)
    n_new = len({row["prompt_id"] for row in made.rows})
    n_prompts, n_rejected = len(state.prompts), len(made.rejects)
    return Probed(
        work.probe_set,
        identity.model,
        identity.key,
        words.name,
        work.instruction.key,
        n_prompts,
        n_prompts - n_rejected,
        n_new,
        n_rejected,
        tuple(str(row["excerpt"]) for row in unspelled),
    )
