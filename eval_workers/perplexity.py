"""How likely held-out documents are under a model: what is missing, in chunks.

A document's tokens are cut into windows that do not overlap, each scored behind a BOS. The step
goes as ``eval_workers.score`` does, on the same chunks and claims: a killed run loses a chunk at
the most, and the rows are published together. Perplexity itself is SQL: view ``perplexity_set``.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.eval_workers.chunks import Chunks, texts_hash
from plumbline.eval_workers.held_out import Document, HeldOut
from plumbline.eval_workers.score import Progress, publish_model, score_chunks
from plumbline.warehouse.errors import BadInput, disk_problems
from plumbline.warehouse.storage.store import Store

if TYPE_CHECKING:
    from plumbline.eval_workers.backends._continuer import Continuer
    from plumbline.eval_workers.backends.base import TextScore
    from plumbline.eval_workers.options import ModelOptions

Row = dict[str, Any]

#: Characters of a chunk, some 10,000 tokens of English; a longer document is one of its own.
CHUNK_CHARACTERS = 40_000
_TABLE = "perplexity"


@dataclass(frozen=True)
class Measured:
    """Outcome for a set: ``n_documents = n_counted + n_rejected``; ``n_new`` are of this run."""

    text_set: str
    model: str
    model_key: str
    window_tokens: int
    n_documents: int
    n_counted: int
    n_new: int
    n_rejected: int


def measure_perplexity(
    store: Store,
    held_out: HeldOut,
    model: str,
    options: ModelOptions,
    run_id: str,
    window_tokens: int | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Compute log p of the documents that have none yet, in windows (``None``: of the context).

    Writes ``perplexity``, ``model`` and ``reject`` (stage `perplexity`). Rows of documents that are
    gone or changed, or of another window, go. A document that can't be scored has a row in
    ``reject`` and is tried again next time.

    Raises ``UsageProblem`` for a window that is no window of the model, ``BadInput`` where not one
    document can be scored, for a disk that can't be written or too little memory; and what loading
    the model raises.
    """
    from plumbline.eval_workers.backends import open_backend
    from plumbline.eval_workers.backends.devices import memory_problems

    backend = open_backend(model, options)
    work = _Work(store, backend, held_out, backend.window(window_tokens))
    with disk_problems(store.root), memory_problems(model):
        return _measure(work, run_id, progress)


@dataclass(frozen=True)
class _Windowed:
    """A model that scores texts by windows."""

    backend: Continuer
    window_tokens: int

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """A score for each text, of any length."""
        return self.backend.score_windows(texts, self.window_tokens)


@dataclass(frozen=True)
class _State:
    """The rows that are there, those of them that hold, and the documents without."""

    found: list[Row]
    kept: list[Row]
    missing: list[Document]


@dataclass(frozen=True)
class _Work:
    """A set of documents that a model is to be measured on."""

    store: Store
    backend: Continuer
    held_out: HeldOut
    window_tokens: int

    @property
    def partition(self) -> dict[str, str]:
        """Where the rows are published."""
        return {"text_set": self.held_out.name, "model_key": self.backend.identity.key}

    def directory(self, *, create: bool = False) -> Path:
        """Where the chunks are kept until they are published."""
        place = ("perplexity", *self.partition.values(), str(self.window_tokens))
        return self.store.work_directory(*place, create=create)

    def text_id(self, document: Document) -> str:
        """Stands for the text and how it is cut."""
        return texts_hash([document.text, str(self.window_tokens)])

    def state(self) -> _State:
        """What the warehouse has and lacks now."""
        good = [d for d in self.held_out.documents if d.problem is None]
        wanted = {d.name: self.text_id(d) for d in good}
        found = self.store.read(_TABLE, **self.partition).to_pylist()
        kept = [row for row in found if wanted.get(row["document"]) == row["text_id"]]
        done = {row["document"] for row in kept}
        return _State(found, kept, [d for d in good if d.name not in done])

    def chunks(self, documents: Sequence[Document], directory: Path) -> Chunks:
        """Texts by file, each once, in their order."""
        parts: list[list[str]] = []
        room = 0
        for text in dict.fromkeys(document.text for document in documents):
            if not parts or len(text) > room:
                parts.append([])
                room = CHUNK_CHARACTERS
            parts[-1].append(text)
            room -= len(text)
        # The window is part of the directory's name.
        texts = {directory / f"{texts_hash(part)}.parquet": part for part in parts}
        n_in = {frozenset((path.name,)): len(part) for path, part in texts.items()}
        return Chunks(directory, texts, n_in)

    def plan(self) -> Chunks:
        """What is to be scored, with the directory for it made."""
        return self.chunks(self.state().missing, self.directory(create=True))


def _measure(work: _Work, run_id: str, progress: Progress | None) -> Measured:
    scorer = _Windowed(work.backend, work.window_tokens)
    while True:
        plan = work.plan()
        if plan.todo():
            _ = work.backend.n_parameters  # the weights, before the first chunk is claimed
        score_chunks(scorer, plan, work.held_out.name, progress)
        with plan.published_in_turn():
            state = work.state()
            scores = work.chunks(state.missing, plan.directory).results()
            if scores is not None:
                return _publish(work, state, scores, run_id)
        # A file was damaged, or another command has published meanwhile: on with what is left.


def _publish(work: _Work, state: _State, scores: dict[str, TextScore], run_id: str) -> Measured:
    """Publish the rows of all chunks, and forget these."""
    store, identity, held_out = work.store, work.backend.identity, work.held_out
    subject = "/".join(work.partition.values())
    shared: Row = {**work.partition, "model": identity.model, "run_id": run_id}
    shared["window_tokens"] = work.window_tokens
    new: list[Row] = []
    rejects = [d.reject(subject, d.problem) for d in held_out.documents if d.problem is not None]
    for document in state.missing:
        found = scores[document.text]
        if found.problem is not None:
            rejects.append(document.reject(subject, found.problem))
        else:
            new.append({**shared, **_columns(document, found, work)})
    if not new and not state.kept:
        shutil.rmtree(work.directory(), ignore_errors=True)
        reason = rejects[-1]["reason"] if rejects else "there is none"
        problem = f"can't score one document of {held_out.name}: {reason}"
        raise BadInput(f"model {identity.model}", problem)
    if state.missing:
        publish_model(store, work.backend, run_id)
    if new or len(state.kept) < len(state.found):
        rows = sorted([*state.kept, *new], key=lambda row: str(row["document"]))
        store.replace(_TABLE, rows, work.partition, run_id)
    rejected = [{**row, "run_id": run_id} for row in rejects]
    store.replace("reject", rejected, {"stage": "perplexity", "subject": subject}, run_id)
    shutil.rmtree(work.directory(), ignore_errors=True)
    n_documents, n_rejected = len(held_out.documents), len(rejects)
    return Measured(
        *(held_out.name, identity.model, identity.key, work.window_tokens),
        *(n_documents, n_documents - n_rejected, len(new), n_rejected),
    )


def _columns(document: Document, found: TextScore, work: _Work) -> Row:
    return {
        "document": document.name,
        "text_id": work.text_id(document),
        "n_windows": -(-found.n_tokens // work.window_tokens),
        "n_tokens": found.n_tokens,
        "n_words": document.n_words,
        "logprob_nats": found.logprob_nats,
    }
