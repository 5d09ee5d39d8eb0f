"""Draws in chunks, each with a file that is to hold its samples."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from plumbline.eval_workers.backends.sampling import Draw, Sample
from plumbline.eval_workers.chunk_files import ChunkFiles
from plumbline.eval_workers.chunks import texts_hash

#: Samples of a chunk: a few forward passes on a CPU, one on a GPU.
CHUNK_DRAWS = 250
#: Samples of a text in one chunk: a run that is started again with more samples keeps what is done.
_BLOCK = 50


@dataclass(frozen=True)
class DrawChunks(ChunkFiles[Draw, Sample]):
    """Draws that are missing, by the file that is to hold their samples."""

    schema = pa.schema(
        [
            ("text", pa.string()),
            ("finish", pa.string()),
            ("n_tokens", pa.int64()),
            ("problem", pa.string()),
        ]
    )
    made = Sample

    @property
    def n_draws(self) -> int:
        """Samples that are to be drawn."""
        return sum(map(len, self.items.values()))

    def n_done(self) -> int:
        """Samples that have been drawn."""
        return sum(len(draws) for path, draws in self.items.items() if path.exists())


def draw_chunks(draws: Sequence[Draw], directory: Path) -> DrawChunks:
    """Cut draws into chunks, whose files lie in ``directory``: first samples of all texts first.

    >>> draws = [Draw(text, k, 5 + k) for k in range(60) for text in ("It was", "She")]
    >>> [len(chunk) for chunk in draw_chunks(draws, Path("work")).items.values()]
    [100, 20]
    """
    files = {}
    for _, block in itertools.groupby(sorted(draws, key=_order), lambda draw: _order(draw)[0]):
        here = list(block)
        for start in range(0, len(here), CHUNK_DRAWS):
            chunk = here[start : start + CHUNK_DRAWS]
            files[directory / f"{_name(chunk)}.parquet"] = chunk
    return DrawChunks(directory, files)


def _order(draw: Draw) -> tuple[int, Draw]:
    return draw.sample // _BLOCK, draw


def _name(draws: Sequence[Draw]) -> str:
    return texts_hash([json.dumps([draw.text, draw.sample, draw.seed]) for draw in draws])
