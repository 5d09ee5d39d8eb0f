"""Retries of a request: their number, and the wait before each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Concurrency, retries and backoff of requests to a server.

    Attributes:
        concurrency: requests in flight at a time.
        max_attempts: attempts at a request before the build stops.
        first_wait_s: wait after the first failure; it doubles with each, up to ``longest_wait_s``.
        longest_wait_s: a server that asks for a longer wait stops the build.
    """

    concurrency: int = 8
    max_attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, n_failures: int, retry_after_s: float | None, chance: float) -> float:
        """Seconds to wait after ``n_failures``; ``chance`` in [0, 1) spreads them.

        Between half and all of the doubled wait, and at least what the server asks for.

        >>> policy = RetryPolicy()
        >>> policy.wait_s(3, None, 0.0), policy.wait_s(3, None, 0.5), policy.wait_s(3, 9.0, 0.0)
        (2.0, 3.0, 9.0)
        """
        doubled = min(self.first_wait_s * 2.0 ** (n_failures - 1), self.longest_wait_s)
        wait = doubled * (1 + chance) / 2
        if retry_after_s is None:
            return wait
        return max(wait, retry_after_s + min(doubled, 1.0) * chance / 4)
