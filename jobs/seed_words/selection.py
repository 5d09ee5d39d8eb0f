"""Which words lean least, and a sample of them: the seed words of generated sentences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping

import numpy as np

from plumbline.warehouse.errors import UsageProblem

#: Edges of the equal intervals that cut the range of delta; even, so that one holds 0 inside.
N_EDGES = 20


def neutral_interval(deltas: Iterable[float]) -> tuple[float, float]:
    """The interval that holds 0 when the range of delta is cut into 19 equal ones.

    The range goes from -m to m, m being the largest magnitude rounded up to a whole nat, so the
    interval is +-m/19. It is (0, 0) without any delta or when all are 0.

    Args:
        deltas: leans in nats.

    Raises:
        ValueError: a delta is not finite.

    >>> low, high = neutral_interval([-4.7, 3.2])
    >>> round(low, 4), round(high, 4)  # 5 / 19
    (-0.2632, 0.2632)
    >>> neutral_interval([])
    (0.0, 0.0)
    """
    values = np.fromiter(deltas, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a delta is not finite")
    largest = math.ceil(np.abs(values).max(initial=0.0))
    edges = np.linspace(-largest, largest, N_EDGES)
    return float(edges[edges <= 0].max()), float(edges[edges >= 0].min())


def within(deltas: Mapping[str, float], interval: tuple[float, float]) -> list[str]:
    """The words whose delta lies in an interval, its ends included, in the order given.

    >>> within({"tea": 0.1, "nurse": 1.0, "rum": -0.2}, (-0.2, 0.2))
    ['tea', 'rum']
    """
    low, high = interval
    return [word for word, delta in deltas.items() if low <= delta <= high]


def sample(words: Iterable[str], n: int, seed: int) -> list[str]:
    """``n`` distinct words drawn at random, the same for the same set of words and seed.

    Words are ranked by a hash of seed and word and the first n taken, so the order in which they
    come, the platform and library versions do not matter, and a smaller sample is the start of a
    larger one.

    Raises:
        UsageProblem: n is below 1, or larger than the number of words.

    >>> sample(["tea", "rum", "ale"], 2, seed=1) == sample(["ale", "tea", "rum"], 3, seed=1)[:2]
    True
    """
    distinct = set(words)
    if n < 1:
        raise UsageProblem(f"{n} seed words", "a sample needs 1 or more")
    if n > len(distinct):
        problem = f"only {len(distinct):,} words of the interval around 0 are left"
        raise UsageProblem(f"{n:,} seed words", problem, f"give --n {len(distinct)} or fewer")
    return sorted(distinct, key=lambda word: _rank(seed, word))[:n]


def bands(counts: Mapping[str, int], n_bands: int) -> list[list[str]]:
    """Words from rare to frequent, cut into bands of equally many, the first ones by one larger.

    Words of the same count are in the order of the alphabet, so that a cut may go between them.

    Raises:
        UsageProblem: n_bands is below 1, or larger than the number of words.

    >>> bands({"tea": 9, "rum": 5, "ale": 2, "gin": 5, "mead": 1}, 2)
    [['mead', 'ale', 'gin'], ['rum', 'tea']]
    """
    if not 1 <= n_bands <= len(counts):
        problem = f"expected 1 or more, and no more than the {len(counts):,} words there are"
        raise UsageProblem(f"{n_bands:,} frequency bands", problem)
    ordered = sorted(counts, key=lambda word: (counts[word], word))
    return [list(band) for band in np.array_split(np.array(ordered, object), n_bands)]


def stratified(counts: Mapping[str, int], n: int, seed: int, n_bands: int) -> list[str]:
    """``n`` words drawn at random, as many from each of ``n_bands`` bands of frequency.

    Words come in turn from the rarest band to the most frequent one. Where n is no multiple of the
    number of bands the rarer ones give one more. A smaller sample is the start of a larger one;
    with one band it is ``sample``.

    Raises:
        UsageProblem: as ``sample`` and ``bands`` do.

    >>> drawn = stratified({"tea": 9, "rum": 5, "ale": 2, "gin": 1}, 2, seed=0, n_bands=2)
    >>> drawn[0] in ("ale", "gin"), drawn[1] in ("rum", "tea")
    (True, True)
    """
    if n_bands == 1 or not 1 <= n <= len(counts):
        return sample(counts, n, seed)
    drawn = [sample(band, len(band), seed) for band in bands(counts, n_bands)]
    return [drawn[k % n_bands][k // n_bands] for k in range(n)]


def _rank(seed: int, word: str) -> tuple[bytes, str]:
    return hashlib.sha256(f"{seed} {word}".encode()).digest(), word
