"""Tell transient errors, and collect the errors of models so that the others go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
    is_outage,
)
from plumbline.warehouse.text.escape import say


class ShardsFailed(BadInput):
    """Some shards couldn't be read; everything else was done."""


def may_pass(error: BaseException | None) -> bool:
    """Return whether retrying can help, because the error is an outage or was caused by one.

    Wrong usage, a missing package and a stop by the user are never retried.

    >>> may_pass(ConnectionResetError()), may_pass(KeyboardInterrupt()), may_pass(None)
    (True, False, False)
    """
    is_final = isinstance(error, (UsageProblem, MissingComponent))
    return not is_final and is_outage(error)


class Failures:
    """Collects the failures of ``n`` items. Raises interrupts and bugs at once."""

    def __init__(self, n: int, things: str = "models") -> None:
        self._n, self._things = n, things
        self._errors: list[tuple[str, Exception]] = []

    @contextmanager
    def collected(self, name: str) -> Iterator[None]:
        """Keep an error of the block as a failure of ``name``; print it if there are others."""
        try:
            yield
        except Exception as e:
            is_stop = isinstance(e, Interrupted) and not may_pass(e)
            if is_stop or not (may_pass(e) or isinstance(e, PlumblineError)):
                raise
            if self._n > 1:
                say(f"failed: {_line(name, e)}", err=True)
            # The frames of a traceback would keep a failed model in memory.
            self._errors.append((name, e.with_traceback(None)))

    def error(self, done: Sequence[object] = ()) -> Exception | None:
        """Return one error for all failures, ``Interrupted`` if a retry may help; or ``None``.

        Raises that error if nothing is ``done``.
        """
        if not self._errors:
            return None
        name, error = self._errors[0]
        if self._n > 1:
            names = ", ".join(name for name, _ in self._errors)
            first = f"first: {_line(name, error)}"
            problem = f"{len(self._errors)} of {self._n} failed: {names}; {first}"
            kind = Interrupted if any(may_pass(e) for _, e in self._errors) else BadInput
            fix = "the others are done; the same command tries these again" if done else ""
            error = kind(self._things, problem, fix)
        if not done:
            raise error
        return error


def _line(name: str, error: Exception) -> str:
    """Return the error as one line that names what failed."""
    line = " ".join(str(error).split())
    return line if name in line else f"{name}: {line}"
