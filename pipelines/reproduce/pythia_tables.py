"""Rows and lines that ``reproduce pythia`` shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median

from plumbline.pipelines.reproduce.pythia import SHARE, EvaluatedCheckpoint, doses, jumps
from plumbline.pipelines.reproduce.resolution import Resolved

#: Limits of these figures.
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


def over_sizes(resolved: Sequence[Resolved]) -> Iterator[dict[str, object]]:
    """Smallest shares of our measures: median, minimum and maximum over sizes."""
    for key in dict.fromkeys((r.instrument, r.measure, r.basis) for r in resolved):
        rows = [r for r in resolved if (r.instrument, r.measure, r.basis) == key]
        shares = [r.share for r in rows if r.share is not None]
        leans = [r.lean for r in rows if r.lean is not None and r.share is not None]
        yield {
            **dict(zip(("benchmark", "measure", "what varies"), key, strict=True)),
            "n": rows[0].n,
            "lean": median(leans) if leans else None,
            "smallest share of pronouns": median(shares) if shares else None,
            "least": min(shares, default=None),
            "largest": max(shares, default=None),
        }


def lines(checkpoints: Sequence[EvaluatedCheckpoint]) -> list[str]:
    """Doses, and neighbouring checkpoints that were not evaluated in one way."""
    text = [
        f"{size} {kind}: its checkpoints cover the last {share:.0%} of the steps"
        for kind, size, share in doses(checkpoints)
    ]
    for a, b in jumps(checkpoints):
        distance = f"{a.distance_nats:.2f} +- {a.distance_nats_se:.2f} (step {a.step}) -> "
        distance += f"{b.distance_nats:.2f} +- {b.distance_nats_se:.2f} nats (step {b.step})"
        text.append(
            f"{a.size} {a.kind}: not one evaluation, likelihood_difference {distance}, "
            f"{SHARE} {a.share:.3f} -> {b.share:.3f}"
        )
    return text


def as_rows(resolved: Sequence[Resolved]) -> list[dict[str, object]]:
    """Flat rows for a CSV; a value that is unknown or not finite is None."""
    rows: list[dict[str, object]] = []
    for r in resolved:
        low, high = r.ci or (None, None)
        row = {**asdict(r), "value_low": low, "value_high": high, "share_of_pronouns": r.share}
        infinite = {k for k, v in row.items() if isinstance(v, float) and not math.isfinite(v)}
        rows.append({**row, **dict.fromkeys(infinite)})
    return rows
