"""Intervals of slopes and correlations over words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ABOUT = (
    "Coverage of the 95% intervals of view `fit`, in percent, over words: of slope, Pearson's and "
    "Spearman's correlation, where words scatter equally around the line, scatter more the more "
    "they lean, or are means over 1 to some 100 pairs, with leans of a normal or of a heavy-tailed "
    "distribution (Student's t, 5 degrees of freedom), beside the usual forms (least squares; "
    "Fisher's z; Bonett and Wright's)."
)
DRAWS = 4000
WORDS = (10, 40, 84, 491)
SLOPES = (0.0, 0.5, 2.0)
#: Distribution of leans, and how words scatter around the line.
SHAPES = (
    ("normal", "equal"),
    ("heavy", "equal"),
    ("normal", "unequal"),
    ("heavy", "unequal"),
    ("heavy", "pairs"),
)
#: Draws computed at once.
_BLOCK = 500

Floats = npt.NDArray[np.float64]
Row = dict[str, object]


class Bounds(NamedTuple):
    """Figures, one per draw, with half the widths of their intervals, on the scale compared."""

    figure: Floats
    half: Floats

    def covers(self, truth: float | Floats) -> float:
        """How often the intervals hold the truth, in percent."""
        return float(100 * np.mean(np.abs(self.figure - truth) <= self.half))


def rows(draws: int, seed: int) -> list[Row]:
    """Lines of coverage by world and number of words, and how wide the intervals of slopes are."""
    rng = np.random.default_rng(seed)
    return [of for slope in SLOPES for shape in SHAPES for of in fits(rng, slope, shape, draws)]


def fits(
    rng: np.random.Generator, slope: float, shape: tuple[str, str], draws: int
) -> Iterator[Row]:
    """Coverage of slope, correlation and rank correlation, one line per number of words."""
    # What all words there could be have: means over many large draws.
    many = [drawn(rng, slope, shape, 1, 200_000) for _ in range(5)]
    true_r = np.mean([np.tanh(pearson(x, y).figure) for x, y in many])
    true_rho = np.mean([np.tanh(spearman(x, y).figure) for x, y in many])
    for n in WORDS:
        found = []
        for start in range(0, draws, _BLOCK):
            x, y = drawn(rng, slope, shape, min(_BLOCK, draws - start), n)
            of = (line(x, y), pearson(x, y), spearman(x, y))
            found.append((*of, *_usual(x, y, *of)))
        joined = [
            Bounds(*map(np.concatenate, zip(*blocks, strict=True)))
            for blocks in zip(*found, strict=True)
        ]
        truths = (slope, np.arctanh(true_r), np.arctanh(true_rho))
        names = ("slope", "correlation", "rank correlation")
        covered = {
            f"{name}{form}": joined[k + 3 * i].covers(truths[k])
            for k, name in enumerate(names)
            for i, form in enumerate(("", ", usual"))
        }
        width = float(np.mean(joined[0].half) / np.mean(joined[3].half))
        of_world: Row = {"leans": shape[0], "scatter": shape[1], "r": float(true_r), "words": n}
        yield {**of_world, **covered, "width of slopes, usual 1": width}


def drawn(
    rng: np.random.Generator, slope: float, shape: tuple[str, str], draws: int, n: int
) -> tuple[Floats, Floats]:
    """Leans and preferences, draws x words; leans have a standard deviation of 0.75 nats."""
    size, (leans, scatter) = (draws, n), shape
    unit = rng.normal(size=size) if leans == "normal" else rng.standard_t(5, size) * np.sqrt(0.6)
    noise = rng.normal(size=size)
    if scatter == "unequal":
        noise *= (0.3 + np.abs(unit)) / 1.2
    elif scatter == "pairs":
        n_pairs = np.ceil(np.exp(rng.normal(1.5, 1, size)))
        noise = rng.standard_t(5, size) * 0.4 + noise / np.sqrt(n_pairs)
    return 0.75 * unit, 0.75 * slope * unit + noise


def t975(df: Floats | float) -> Floats:
    """Upper 97.5% points of Student's t distribution."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, 0.975))


def centred(x: Floats) -> tuple[Floats, Floats]:
    """Distances from the mean of each row, and the sum of their squares."""
    off = x - x.mean(axis=1, keepdims=True)
    return off, (off**2).sum(axis=1, keepdims=True)


def _hc3(influence: Floats, h: Floats) -> Floats:
    return np.asarray(np.sqrt(((influence / (1 - h)) ** 2).sum(axis=1)))


def hc3_df(x: Floats, sxx: Floats, h: Floats) -> Floats:
    """As the macro `hc3_df`, one per row of points."""
    n, share = x.shape[1], (x / (1 - h)) ** 2
    variance = (
        (share**2 * (1 - 2 * h)).sum(axis=1)
        + share.sum(axis=1) ** 2 / n**2
        + 2 * (share * x).sum(axis=1) ** 2 / (n * sxx[:, 0])
        + (share * x**2).sum(axis=1) ** 2 / sxx[:, 0] ** 2
    )
    return np.asarray((share * (1 - h)).sum(axis=1) ** 2 / variance)


def line(x: Floats, y: Floats) -> Bounds:
    """Slopes with HC3 errors, one per row of points."""
    (x, sxx), (y, _) = centred(x), centred(y)
    slope, h = (x * y).sum(axis=1, keepdims=True) / sxx, 1 / x.shape[1] + x**2 / sxx
    return Bounds(slope[:, 0], t975(hc3_df(x, sxx, h)) * _hc3(x * (y - slope * x) / sxx, h))


def pearson(x: Floats, y: Floats) -> Bounds:
    """Correlations on Fisher's z scale."""
    (x, sxx), (y, syy) = centred(x), centred(y)
    z_x, z_y, h = x / np.sqrt(sxx), y / np.sqrt(syy), 1 / x.shape[1] + x**2 / sxx
    r = (z_x * z_y).sum(axis=1, keepdims=True)
    influence = (z_x * z_y - r * (z_x**2 + z_y**2) / 2) / (1 - r**2)
    return Bounds(np.arctanh(r[:, 0]), t975(hc3_df(x, sxx, h)) * _hc3(influence, h))


def spearman(x: Floats, y: Floats) -> Bounds:
    """Rank correlations on Fisher's z scale, of points that don't tie."""
    n, (by_x, by_y) = x.shape[1], (np.argsort(v, axis=1) for v in (x, y))
    x, y = (np.argsort(order, axis=1) - (n - 1) / 2 for order in (by_x, by_y))
    sxx = (x**2).sum(axis=1, keepdims=True)

    def above(order: npt.NDArray[np.int64], values: Floats) -> Floats:
        """The sum of values of the points above, and half of the point's own."""
        ordered = np.take_along_axis(values, order, 1)
        sums, out = ordered[:, ::-1].cumsum(axis=1)[:, ::-1] - ordered / 2, np.empty_like(values)
        np.put_along_axis(out, order, sums, 1)
        return out

    r, h = (x * y).sum(axis=1, keepdims=True) / sxx, 1 / n + x**2 / sxx
    influence = (x * y + above(by_x, y) + above(by_y, x)) / sxx - 3 * r / n
    with np.errstate(divide="ignore", invalid="ignore"):  # of equal ranks, which cover nothing
        return Bounds(np.arctanh(r[:, 0]), t975(n - 2) * _hc3(influence / (1 - r**2), h))


def _usual(
    x: Floats, y: Floats, slope: Bounds, r: Bounds, rho: Bounds
) -> tuple[Bounds, Bounds, Bounds]:
    (x, sxx), (y, _), n = centred(x), centred(y), x.shape[1]
    rest = ((y - slope.figure[:, None] * x) ** 2).sum(axis=1)
    half = t975(n - 2) * np.sqrt(rest / (n - 2) / sxx[:, 0])
    z = float(t975(1e9))
    bonett = z * np.sqrt((1 + np.tanh(rho.figure) ** 2 / 2) / (n - 3))
    fisher = np.full(len(half), z / np.sqrt(n - 3))
    return Bounds(slope.figure, half), Bounds(r.figure, fisher), Bounds(rho.figure, bonett)
