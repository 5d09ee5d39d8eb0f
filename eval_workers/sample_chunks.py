"""Draws in chunks, each with a file that is to hold its samples: the unit that a kill can lose."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eval_workers.backends.sampling import Draw, Sample
from eval_workers.chunks import texts_hash
from warehouse.store import write_file

#: Samples of a chunk: a few forward passes on a CPU, one on a GPU.
CHUNK_DRAWS = 250
#: Samples of a text in one chunk: a run that is started again with more samples keeps what is done.
_BLOCK = 50

_SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("finish", pa.string()),
        ("n_tokens", pa.int64()),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True)
class DrawChunks:
    """Draws by the file that is to hold their samples.

    What a chunk holds depends on the draws that are missing alone, so that all workers and later
    runs agree on it.
    """

    directory: Path
    draws: Mapping[Path, Sequence[Draw]]

    @property
    def n_draws(self) -> int:
        """Samples that are to be drawn."""
        return sum(map(len, self.draws.values()))

    def n_done(self) -> int:
        """Samples that have been drawn."""
        return sum(len(draws) for path, draws in self.draws.items() if path.exists())

    def todo(self) -> list[Path]:
        """Files that are not there yet."""
        return [path for path in self.draws if not path.exists()]

    def samples(self) -> dict[Draw, Sample] | None:
        """The sample of every draw; ``None`` when a file is missing or damaged.

        A damaged file (of a machine that lost power) is removed: it is to be drawn again.
        """
        found: dict[Draw, Sample] = {}
        whole = True
        for path, draws in self.draws.items():
            chunk = _read(path, len(draws))
            if chunk is None:
                path.unlink(missing_ok=True)
                whole = False
            else:
                found.update(zip(draws, chunk, strict=True))
        return found if whole else None


def draw_chunks(draws: Sequence[Draw], directory: Path) -> DrawChunks:
    """Cut draws into chunks, whose files lie in ``directory``: first samples of all texts first.

    >>> draws = [Draw(text, k, 5 + k) for k in range(60) for text in ("It was", "She")]
    >>> [len(chunk) for chunk in draw_chunks(draws, Path("work")).draws.values()]
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


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write the samples of a chunk's draws; the file appears when it is whole."""
    columns = {name: [getattr(sample, name) for sample in samples] for name in _SCHEMA.names}
    write_file(path, pa.table(columns, schema=_SCHEMA))


def _read(path: Path, n_draws: int) -> list[Sample] | None:
    try:
        table = pq.read_table(path, schema=_SCHEMA)
    except (OSError, pa.ArrowException):
        return None
    return [Sample(**row) for row in table.to_pylist()] if len(table) == n_draws else None
