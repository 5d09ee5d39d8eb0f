"""What ``reproduce pythia`` shows: titles, headings, rows of text, and the rows of its CSV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from plumbline.pipelines.reproduce.pythia import (
    SHARE,
    Checkpoint,
    Noise,
    doses,
    jumps,
)
from plumbline.pipelines.reproduce.resolution import PAIRED, TRAININGS, UNPAIRED, Resolved

#: What these figures can't say.
LIMITS = (
    "No scores of swapped checkpoints on these pairs are at hand: this is a power analysis, not a "
    "result.",
    "Shares of pronouns assume that a lean follows the text in proportion to the dose, and that "
    "exchanging all of them turns it round. Our own study contradicts both (docs/cause-study.md).",
    "How alike two models' errors on the CrowS-Pairs are is unknown: unpaired takes them as "
    "independent, best pairing as alike as can be.",
    "The seed words of USE sets were chosen because they don't lean: slopes on their delta say "
    "little; MaxPMI is of all words of a sentence.",
    "Pythia and Pythia-deduped differ by their text too: noise between trainings is at most this.",
)


class Shown(NamedTuple):
    """A table to print."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def noises(found: Sequence[Noise]) -> Shown:
    """How one unmodified model's checkpoints vary."""
    rows = [
        (
            n.size,
            str(n.evaluation),
            n.measure,
            f"{n.n} ({n.first} to {n.last})",
            *(f"{value:.3f}" for value in (n.mean, n.sd, n.neighbour_sd)),
            f"{n.autocorrelation:.2f}",
        )
        for n in found
    ]
    headings = (
        "size",
        "evaluation",
        "figure",
        "checkpoints",
        "mean",
        "SD",
        "SD of neighbours",
        "r",
    )
    return Shown("Checkpoints of one unmodified model, second half of training", headings, rows)


def crows_pairs(found: Sequence[Resolved]) -> Shown:
    """Swapped against plain checkpoints, then noise: differences and the smallest effects."""
    rows = []
    for r in found:
        scale, unit = (100, "") if r.measure == SHARE else (1, " nats")
        lean = "no side" if r.lean is None else f"{scale * r.lean:+.1f}"
        difference = ""
        if r.difference is not None and r.ci is not None:
            low, high = (scale * end for end in r.ci)
            difference = f"{scale * r.difference:+.1f} ({low:+.1f} to {high:+.1f})"
        smallest = f"{scale * r.smallest:.2g}{unit}"
        given = (r.model, r.measure, r.basis, str(r.n), lean, difference)
        rows.append((*given, smallest, _share(r.share)))
    headings = ("model", "figure", "what varies", "n", "lean", "difference, 95%", "smallest")
    title = "CrowS-Pairs, gender (shares in points; lean is the share less 50)"
    return Shown(title, (*headings, "of all pronouns"), rows)


def ours(found: Sequence[Resolved]) -> Shown:
    """The smallest shares of our measures: median over sizes with the least and the largest."""
    rows = []
    for key in dict.fromkeys((r.instrument, r.measure) for r in found):
        of = [r for r in found if (r.instrument, r.measure) == key]
        leans = [r.lean for r in of if r.basis == PAIRED and r.share is not None]
        spread = _spread(leans, "{:.2f}".format)
        n = next(str(r.n) for r in of if r.basis == PAIRED)
        rows.append((*key, n, spread, *(_range(of, b) for b in (UNPAIRED, PAIRED, TRAININGS))))
    headings = ("benchmark", "measure", "words", "lean", *(UNPAIRED, PAIRED, TRAININGS))
    title = "Pythia against Pythia-deduped: smallest share of all pronouns found, over sizes"
    return Shown(title, headings, rows)


def lines(checkpoints: Sequence[Checkpoint]) -> list[str]:
    """The doses, and where neighbouring checkpoints were not evaluated in one way."""
    said = [
        f"{size} {kind}: its checkpoints cover the last {share:.0%} of the steps"
        for kind, size, share in doses(checkpoints)
    ]
    for a, b in jumps(checkpoints):
        distance = f"{a.distance_nats:.2f} +- {a.distance_nats_se:.2f} (step {a.step}) -> "
        distance += f"{b.distance_nats:.2f} +- {b.distance_nats_se:.2f} nats (step {b.step})"
        said.append(
            f"{a.size} {a.kind}: not one evaluation, likelihood_difference {distance}, "
            f"{SHARE} {a.share:.3f} -> {b.share:.3f}"
        )
    return said


def as_rows(found: Sequence[Resolved]) -> list[dict[str, object]]:
    """Flat rows for a CSV; what is not known or not finite is empty."""
    rows = []
    for r in found:
        low, high = r.ci or (None, None)
        row = {**asdict(r), "value_low": low, "value_high": high, "share_of_pronouns": r.share}
        rows.append({k: None if _not_finite(v) else v for k, v in row.items()})
    return rows


def _not_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _share(share: float | None) -> str:
    if share is None:
        return "-"
    return "over 100%" if share > 1 else f"{share:.0%}"


def _range(rows: Sequence[Resolved], basis: str) -> str:
    return _spread([r.share for r in rows if r.basis == basis and r.share is not None], _share)


def _spread(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    """Median, least and largest; one value alone, empty without any."""
    known = [v for v in values if v is not None]
    if len(known) < 2:
        return "".join(map(shown, known))
    return f"{shown(float(np.median(known)))} ({shown(min(known))} to {shown(max(known))})"
