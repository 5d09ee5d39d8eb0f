"""One flow at a time in a warehouse and an output directory: a second one is told who is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.warehouse.errors import disk_problems
from plumbline.warehouse.storage.locks import sole
from plumbline.warehouse.storage.store import Store

_CLAIM = "pipeline.claim"


@contextmanager
def alone(warehouse: Path, out: Path) -> Iterator[None]:
    """Run the block as the only pipeline that writes to ``warehouse`` and to ``out``.

    Two would train into one directory and put each other's partitions away. Raises ``UsageProblem``
    naming the process that is there, ``BadInput`` for a disk that can't be written.

    >>> import tempfile
    >>> from plumbline.warehouse.errors import UsageProblem
    >>> place = Path(tempfile.mkdtemp())
    >>> with alone(place / "w", place):
    ...     try:
    ...         with alone(place / "w", place / "elsewhere"):
    ...             pass
    ...     except UsageProblem as e:
    ...         "another command writes to it: process" in str(e)
    True
    """
    with disk_problems(warehouse):
        claim = Store.open(warehouse).work_directory() / _CLAIM
    fix = "wait for its end, or use another --out"
    with (
        sole(claim, f"warehouse {warehouse}", fix),
        sole(out / f".{_CLAIM}", f"output directory {out}", fix),
    ):
        yield
