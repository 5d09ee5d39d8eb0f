"""Sweep of decoding parameters, one varied at a time: does a model disclose less with some values?

Only GAS can differ: GLD and ADD come from next-token probabilities, before any decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plumbline.eval_workers.disclosure.probe_options import ProbeOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.scoring.continuations import Continuations, check_n
from plumbline.warehouse.errors import UsageProblem


@dataclass(frozen=True)
class Grid:
    """Values of a sweep, and ``n`` samples per prompt and value.

    While one parameter is varied the others are off: temperature 1, all tokens. Greedy decoding is
    the reference, with one continuation; a top-p of 0 is the same and adds no way. Values are those
    of section 5.1.

    Raises ``UsageProblem`` for values that sampling can't use, less than one sample, or a grid
    without any value.
    """

    temperatures: Sequence[float] = (0.3, 0.5, 0.7, 1.0)
    top_ps: Sequence[float] = (0.3, 0.5, 0.7, 1.0)
    top_ks: Sequence[int] = (10, 50, 100, 150, 200)
    n: int = 1
    max_new_tokens: int = ProbeOptions.max_new_tokens
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.temperatures or self.top_ps or self.top_ks):
            raise UsageProblem("sweep", "has no value of any parameter", "give some")
        for options in self.decodings():
            check_n(1 if options.greedy else self.n, options)

    def decodings(self) -> list[SamplingOptions]:
        """Greedy, then each distinct decoding: temperature 1 and a nucleus of 1 are the same.

        >>> [o.row()["method"] for o in Grid((1.0,), (1.0,), ()).decodings()]
        ['greedy', 'sample']
        >>> len(Grid().decodings())
        13
        """
        plain = SamplingOptions(top_p=None, max_new_tokens=self.max_new_tokens, seed=self.seed)
        drawn = [
            *(replace(plain, temperature=t) for t in self.temperatures),
            *(replace(plain, top_p=None if p == 1 else p) for p in self.top_ps if p != 0),
            *(replace(plain, top_k=k) for k in self.top_ks),
        ]
        greedy = SamplingOptions(greedy=True, max_new_tokens=self.max_new_tokens)
        return list({options.key: options for options in (greedy, *drawn)}.values())

    def steps(self, probe_set: str) -> list[Continuations]:
        """The step of each decoding for a set of prompts."""
        return [Continuations(probe_set, d, 1 if d.greedy else self.n) for d in self.decodings()]
