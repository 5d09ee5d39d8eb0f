"""Texts in chunks, each with a file that is to hold its scores."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plumbline.eval_workers.backends.base import TextScore
from plumbline.eval_workers.chunk_files import ChunkFiles

#: Texts of a chunk. Its claim, its file and its last, part-filled forward pass cost some
#: milliseconds: little beside its texts even at thousands a second, whose tokens take longer to be
#: found. On a CPU it is seconds of a model of 70 million parameters, a minute or two of a billion.
CHUNK_TEXTS = 512


@dataclass(frozen=True)
class Chunks(ChunkFiles[str, TextScore]):
    """The texts of some pairs, each once, by file; and in which files pairs have theirs."""

    schema = pa.schema(
        [
            ("logprob_nats", pa.float64()),
            ("token_ids", pa.list_(pa.int64())),
            ("token_logprobs_nats", pa.list_(pa.float32())),
            ("problem", pa.string()),
        ]
    )
    made = TextScore

    n_pairs_in: Mapping[frozenset[str], int]

    @property
    def n_pairs(self) -> int:
        """Pairs that are to be scored."""
        return sum(self.n_pairs_in.values())

    def n_pairs_done(self) -> int:
        """Pairs of which both texts have been scored."""
        there = {path.name for path in self.directory.glob("*.parquet")}
        return sum(n for names, n in self.n_pairs_in.items() if names <= there)


def chunked(pairs: Sequence[Mapping[str, Any]], directory: Path) -> Chunks:
    """Cut the sentences of pairs into chunks, whose files lie in ``directory``.

    The texts are in alphabetical order: those that share a long beginning share a chunk.

    >>> pair = {"sentence_f": "I saw her.", "sentence_m": "I saw him."}
    >>> [list(texts) for texts in chunked([pair, pair], Path("work")).items.values()]
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
