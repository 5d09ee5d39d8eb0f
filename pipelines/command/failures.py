"""Work on several models: a model that fails doesn't stop the others."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.pipelines.stages import may_pass
from plumbline.warehouse.errors import BadInput, Interrupted, PlumblineError
from plumbline.warehouse.text.escape import say


class ShardsFailed(BadInput):
    """Some shards can't be read; everything else is done."""


class Failures:
    """Collects failures of ``n`` models. Raises a stop at once, and with one model every error.

    Attributes:
        lines: a line for each model that failed, with the model's name.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._models: list[str] = []
        self._may_pass = False
        self._defect: Exception | None = None
        self.lines: list[str] = []

    @contextmanager
    def collected(self, model: str) -> Iterator[None]:
        """Catch, print and keep an error of the block as a failure of ``model``."""
        try:
            yield
        except Exception as e:
            is_ours, passes = isinstance(e, PlumblineError), may_pass(e)
            if self._n == 1 or (isinstance(e, Interrupted) and not passes):
                raise
            if not is_ours:
                self._defect = self._defect or _without_frames(e)
            line = " ".join((str(e) if is_ours else f"{type(e).__name__}: {e}").split())
            self.lines.append(line if model in line else f"{model}: {line}")
            say(f"failed: {self.lines[-1]}", err=True)
            self._models.append(model)
            self._may_pass |= passes

    def error(self) -> Exception | None:
        """One error for all failures: ``Interrupted`` if another try may help; ``None`` for none.

        The first error that isn't a ``PlumblineError``, a defect, is returned instead.
        """
        if self._defect is not None or not self._models:
            return self._defect
        names = ", ".join(self._models)
        problem = f"{len(self._models)} of {self._n} failed: {names}; first: {self.lines[0]}"
        kind = Interrupted if self._may_pass else BadInput
        return kind("models", problem, "the others are done; the same command tries these again")

    def check(self) -> None:
        """Raise ``error``, if there is one."""
        if (error := self.error()) is not None:
            raise error


class _Traceback(Exception):
    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _without_frames(error: Exception) -> Exception:
    """The error with its traceback as text, since its frames would keep the model in memory."""
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    error.__context__, error.__cause__ = None, _Traceback(lines)
    return error.with_traceback(None)
