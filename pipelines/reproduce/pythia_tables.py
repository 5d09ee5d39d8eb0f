"""What ``reproduce pythia`` shows: its rows, and its lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import median

from plumbline.pipelines.reproduce.pythia import (
    SHARE,
    Checkpoint,
    doses,
    jumps,
)
from plumbline.pipelines.reproduce.resolution import Resolved

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


def over_sizes(found: Sequence[Resolved]) -> Iterator[dict[str, object]]:
    """The smallest shares of our measures: the median over sizes, the least and the largest."""
    for key in dict.fromkeys((r.instrument, r.measure, r.basis) for r in found):
        of = [r for r in found if (r.instrument, r.measure, r.basis) == key]
        shares = [r.share for r in of if r.share is not None]
        leans = [r.lean for r in of if r.lean is not None and r.share is not None]
        yield {
            **dict(zip(("benchmark", "measure", "what varies"), key, strict=True)),
            "n": of[0].n,
            "lean": median(leans) if leans else None,
            "smallest share of pronouns": median(shares) if shares else None,
            "least": min(shares, default=None),
            "largest": max(shares, default=None),
        }


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
