"""Texts in chunks, each with a file that is to hold its scores: the unit that a kill can lose."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.store import write_file

if TYPE_CHECKING:
    from eval_workers.backends.base import TextScore

#: Texts of a chunk. Its claim, its file and its last, part-filled forward pass cost some
#: milliseconds: little beside its texts even at thousands a second, whose tokens take longer to be
#: found. On a CPU it is seconds of a model of 70 million parameters, a minute or two of a billion.
CHUNK_TEXTS = 512

_SCHEMA = pa.schema(
    [
        ("logprob_nats", pa.float64()),
        ("token_ids", pa.list_(pa.int64())),
        ("token_logprobs_nats", pa.list_(pa.float32())),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True)
class Chunks:
    """The texts of some pairs, each once, in chunks by file; and in which files pairs have theirs.

    What a chunk holds depends on the texts alone, so that all workers and later runs agree on it.
    """

    directory: Path
    texts: Mapping[Path, Sequence[str]]
    n_pairs_in: Mapping[frozenset[str], int]

    @property
    def n_pairs(self) -> int:
        """Pairs that are to be scored."""
        return sum(self.n_pairs_in.values())

    def n_pairs_done(self) -> int:
        """Pairs of which both texts have been scored."""
        there = {path.name for path in self.directory.glob("*.parquet")}
        return sum(n for names, n in self.n_pairs_in.items() if names <= there)

    def todo(self) -> list[Path]:
        """Files that are not there yet."""
        return [path for path in self.texts if not path.exists()]

    def scores(self) -> dict[str, TextScore] | None:
        """The score of every text; ``None`` when a file is missing or damaged.

        A damaged file (of a machine that lost power) is removed: it is to be computed again.
        """
        found: dict[str, TextScore] = {}
        whole = True
        for path, texts in self.texts.items():
            chunk = _read(path, len(texts))
            if chunk is None:
                path.unlink(missing_ok=True)
                whole = False
            else:
                found.update(zip(texts, chunk, strict=True))
        return found if whole else None


def chunked(pairs: Sequence[Mapping[str, Any]], directory: Path) -> Chunks:
    """Cut the sentences of pairs into chunks, whose files lie in ``directory``.

    The texts are in alphabetical order: those that share a long beginning share a chunk.

    >>> pair = {"sentence_f": "I saw her.", "sentence_m": "I saw him."}
    >>> [list(texts) for texts in chunked([pair, pair], Path("work")).texts.values()]
    [['I saw her.', 'I saw him.']]
    """
    texts = sorted({pair[column] for pair in pairs for column in ("sentence_f", "sentence_m")})
    files = {directory / f"{texts_hash(chunk)}.parquet": chunk for chunk in _cut(texts)}
    name_of = {text: path.name for path, chunk in files.items() for text in chunk}
    n_pairs_in = Counter(
        frozenset((name_of[pair["sentence_f"]], name_of[pair["sentence_m"]])) for pair in pairs
    )
    return Chunks(directory, files, n_pairs_in)


def _cut(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), CHUNK_TEXTS):
        yield texts[start : start + CHUNK_TEXTS]


def texts_hash(texts: Sequence[str]) -> str:
    """Hash of some texts in their order (16 hex digits)."""
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:16]


def write_scores(path: Path, scores: Sequence[TextScore]) -> None:
    """Write the scores of a chunk's texts; the file appears when it is whole."""
    columns = {name: [getattr(score, name) for score in scores] for name in _SCHEMA.names}
    write_file(path, pa.table(columns, schema=_SCHEMA))


def _read(path: Path, n_texts: int) -> list[TextScore] | None:
    from eval_workers.backends.base import TextScore

    try:
        table = pq.read_table(path, schema=_SCHEMA)
    except (OSError, pa.ArrowException):
        return None
    return [TextScore(**row) for row in table.to_pylist()] if len(table) == n_texts else None
