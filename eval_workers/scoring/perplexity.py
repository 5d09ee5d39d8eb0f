"""Log-probability of held-out documents, in windows that do not overlap, each scored after a BOS.

Perplexity itself is SQL: view ``perplexity_set``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.eval_workers.models.scoring_contract import texts_hash
from plumbline.eval_workers.scoring.held_out import HeldOut
from plumbline.eval_workers.work.claimed_chunks import Chunk
from plumbline.eval_workers.work.rejects import rejected
from plumbline.eval_workers.work.step import ComputedStep, Made, Row, State, Step, state_of
from plumbline.warehouse.errors import BadInput

if TYPE_CHECKING:
    from plumbline.eval_workers.models.continuer import Continuer
    from plumbline.eval_workers.models.scoring_contract import Identity, TextScore
    from plumbline.warehouse.storage.store import Store

#: Characters per chunk, some 10,000 tokens of English; a longer document is a chunk of its own.
CHUNK_CHARACTERS = 40_000


@dataclass(frozen=True)
class PerplexityOutcome:
    """Outcome for a set: ``n_documents = n_counted + n_rejected``; this run counted ``n_new``."""

    text_set: str
    model: str
    model_key: str
    window_tokens: int
    n_documents: int
    n_counted: int
    n_new: int
    n_rejected: int


@dataclass(frozen=True)
class Perplexity(Step[PerplexityOutcome]):
    """log p of a set's documents, in windows of ``window_tokens`` (``None``: the whole context).

    Removes rows of another window, and of documents that are gone or changed. A document that can't
    be scored gets a row in ``reject``, and the next run tries it again. Raises ``UsageProblem`` for
    a window that the model can't take, ``BadInput`` if no document can be scored.
    """

    held_out: HeldOut
    window_tokens: int | None = None

    table = "perplexity"
    order = ("document",)
    stage = "perplexity"
    verb = "read"
    unit = "documents"

    @property
    def label(self) -> str:
        return self.held_out.name

    def partition(self, identity: Identity) -> dict[str, str]:
        return {"text_set": self.held_out.name, "model_key": identity.key}

    def place(self, model: Continuer) -> tuple[str, ...]:
        """Each window size has its own directory of chunks, since results depend on the size."""
        return (*super().place(model), str(model.window(self.window_tokens)))

    def state(self, store: Store, model: Continuer) -> State:
        """Documents without a problem, each with ``text_id``, a hash of its text and the window."""
        window = str(model.window(self.window_tokens))
        wanted = [
            {
                "document": document.name,
                "text_id": texts_hash([document.text, window]),
                "text": document.text,
                "n_words": document.n_words,
                **document.source,
            }
            for document in self.held_out.documents
            if document.problem is None
        ]
        rows = store.read(self.table, **self.partition(model.identity)).to_pylist()
        return state_of(wanted, rows, "document")

    def chunks(self, missing: Sequence[Row]) -> Iterator[Chunk]:
        """Chunks of the distinct texts, in order."""
        part: list[str] = []
        room = CHUNK_CHARACTERS
        for text in dict.fromkeys(row["text"] for row in missing):
            if part and len(text) > room:
                yield Chunk(part, len(part))
                part, room = [], CHUNK_CHARACTERS
            part.append(text)
            room -= len(text)
        if part:
            yield Chunk(part, len(part))

    def compute(self, model: Continuer, items: Sequence[str]) -> list[TextScore]:
        """A score for each text, of any length."""
        return model.score_windows(items, model.window(self.window_tokens))

    def made(self, model: Continuer, state: State, results: Mapping[str, TextScore]) -> Made:
        """Rows of ``perplexity``, and of ``reject`` for documents that can't be read or scored."""
        documents = self.held_out.documents
        rejects = [
            rejected(d.source, d.problem, d.text) for d in documents if d.problem is not None
        ]
        window = model.window(self.window_tokens)
        rows = []
        for row in state.missing:
            score = results[row["text"]]
            if score.problem is not None:
                rejects.append(rejected(row, score.problem, row["text"]))
                continue
            rows.append(
                {
                    **{name: row[name] for name in ("document", "text_id", "n_words")},
                    "window_tokens": window,
                    "n_windows": -(-score.n_tokens // window),
                    "n_tokens": score.n_tokens,
                    "logprob_nats": score.logprob_nats,
                }
            )
        if not rows and not state.kept:
            reason = rejects[-1]["reason"] if rejects else "it is empty"
            problem = f"can't score any document of {self.held_out.name}: {reason}"
            raise BadInput(f"model {model.identity.model}", problem)
        return Made(rows, rejects)

    def outcome(self, done: ComputedStep, rate: float | None) -> PerplexityOutcome:
        identity, n_documents = done.model.identity, len(self.held_out.documents)
        n_rejected = len(done.made.rejects)
        return PerplexityOutcome(
            text_set=self.held_out.name,
            model=identity.model,
            model_key=identity.key,
            window_tokens=done.model.window(self.window_tokens),
            n_documents=n_documents,
            n_counted=n_documents - n_rejected,
            n_new=len(done.made.rows),
            n_rejected=n_rejected,
        )
