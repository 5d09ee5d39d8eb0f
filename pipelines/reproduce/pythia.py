"""Released CrowS-Pairs figures of Pythia's checkpoints: differences, noise, resolution.

Biderman et al. (2023) swapped pronouns late in the training of Pythia and evaluated checkpoints,
plain ones and swapped ones, on the gender pairs of CrowS-Pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from plumbline.pipelines.reproduce.resolution import (
    Resolved,
    parameters,
    smallest_effect,
    smallest_if_all_one_way,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.csv_rows import Record, records

COLUMNS = ("kind", "size", "step", "task", "metric", "value", "stderr", "file")
#: The task that is read; rows of others, such as the French pairs, are only counted.
TASK = "crows_pairs_english_gender"
#: Share of pairs whose likelier sentence is the stereotype; mean |difference| of log-likelihoods.
SHARE, DISTANCE = "pct_stereotype", "likelihood_difference"
PLAIN = "pythia"
#: A gap of this ratio or more between sorted distances separates two ways of evaluating.
_OTHER_EVALUATION = 3.0
#: What a comparison of two models on the same pairs has of each model.
ONE_CHECKPOINT, ALL_CHECKPOINTS = "one checkpoint", "mean of all checkpoints"


@dataclass(frozen=True)
class EvaluatedCheckpoint:
    """Both figures of one checkpoint with their printed standard errors over pairs.

    ``evaluation`` is 2 if the distance is several times smaller than most, else 1. ``n_pairs`` is
    from the error of the share, sqrt(p (1 - p) / (n - 1)); 0 for a share of 0 or 1.
    """

    kind: str
    size: str
    step: int
    share: float
    share_se: float
    distance_nats: float
    distance_nats_se: float
    evaluation: int = 1

    @property
    def n_pairs(self) -> int:
        variance = self.share * (1 - self.share)
        return round(variance / self.share_se**2) + 1 if variance and self.share_se else 0


@dataclass(frozen=True)
class Noise:
    """Variation of a figure over an unmodified model's checkpoints, evaluated in one way.

    Attributes:
        n: checkpoints, from step ``first`` to ``last``, in the second half of the training.
        mean, sd: mean and standard deviation of the figure over the checkpoints.
        neighbour_sd: standard deviation from differences of neighbouring checkpoints (root mean
            square / sqrt 2); a slow trend adds little to it.
        autocorrelation: 1 - neighbour_sd^2 / sd^2, at least 0 (von Neumann's ratio).
    """

    size: str
    evaluation: int
    measure: str
    n: int
    first: int
    last: int
    mean: float
    sd: float
    neighbour_sd: float
    autocorrelation: float

    @property
    def mean_sd(self) -> float:
        """Standard deviation of the mean of n checkpoints in an AR(1) series; at most ``sd``."""
        r = self.autocorrelation
        return self.sd * math.sqrt(min(1.0, (1 + r) / (1 - r) / self.n))


def read(path: Path) -> tuple[list[EvaluatedCheckpoint], int]:
    """Checkpoints of a CSV with ``COLUMNS``, sorted by kind, size, step; the number of other rows.

    Raises:
        BadInput: the file can't be read, a column is missing, a row is damaged or occurs twice, a
            checkpoint has only one of the two figures, or no row is of an unmodified model. Rows
            are numbered from 1, without the header.
    """
    figures_of: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = {}
    n_other = 0
    for record in records(path, COLUMNS):
        metric, value = record.fields.get("metric"), _figures(path, record)
        if record.fields["task"] != TASK or metric not in (SHARE, DISTANCE):
            n_other += 1
            continue
        key = (record.fields["kind"], record.fields["size"], int(record.fields["step"]))
        if metric in figures_of.setdefault(key, {}):
            problem = f"{metric} of {' '.join(map(str, key))} occurs twice"
            raise BadInput(f"{path}, row {record.number}", problem, "remove one of the rows")
        figures_of[key][metric] = value
    for key, figures in figures_of.items():
        if missing := {SHARE, DISTANCE} - set(figures):
            problem = f"{' '.join(map(str, key))} has no {missing.pop()}, expected both figures"
            raise BadInput(f"{path}", problem, "add its row, or remove the other figure's")
    if not any(kind == PLAIN for kind, _, _ in figures_of):
        raise BadInput(f"{path}", f"no row of kind {PLAIN} and task {TASK}, expected some")
    ordered = sorted(figures_of, key=lambda key: (key[0], parameters(key[1]), key[2]))
    checkpoints = [
        EvaluatedCheckpoint(*k, *figures_of[k][SHARE], *figures_of[k][DISTANCE]) for k in ordered
    ]
    return _evaluated(checkpoints), n_other


def _figures(path: Path, record: Record) -> tuple[float, float]:
    """Value and standard error of a row; checks its other fields, too."""
    fields, problem = record.fields, record.problem
    if problem is None and not (fields["step"].isascii() and fields["step"].isdigit()):
        problem = f"step is {fields['step']!r}, expected a whole number"
    if problem is None and not re.fullmatch(r"\d+(\.\d+)?[mb]", fields["size"], re.ASCII):
        problem = f"size is {fields['size']!r}, expected one such as 350m or 1.3b"
    numbers = []
    for name in ("value", "stderr"):
        if problem is None:
            try:
                numbers.append(float(fields[name]))
            except ValueError:
                numbers.append(math.nan)
            most = 1.0 if fields["metric"].startswith("pct_") else math.inf
            if not (math.isfinite(numbers[-1]) and 0 <= numbers[-1] <= most):
                expected = "0 to 1" if most == 1 else "a finite number, 0 or more"
                problem = f"{name} is {fields[name]!r}, expected {expected}"
    if problem is not None:
        raise BadInput(f"{path}, row {record.number}", problem, "mend or remove the row")
    return numbers[0], numbers[1]


def _evaluated(checkpoints: list[EvaluatedCheckpoint]) -> list[EvaluatedCheckpoint]:
    """Set ``evaluation`` to 2 below the largest gap in sorted distances, if it is threefold."""
    distances = np.sort([c.distance_nats for c in checkpoints if c.distance_nats > 0])
    ratios = distances[1:] / distances[:-1]
    if not ratios.size or ratios.max() < _OTHER_EVALUATION:
        return checkpoints
    least = distances[int(ratios.argmax()) + 1]
    return [replace(c, evaluation=1 if c.distance_nats >= least else 2) for c in checkpoints]


def jumps(
    checkpoints: Sequence[EvaluatedCheckpoint],
) -> list[tuple[EvaluatedCheckpoint, EvaluatedCheckpoint]]:
    """Neighbouring checkpoints of one model that were evaluated in different ways."""
    return [
        (a, b)
        for a, b in pairwise(checkpoints)
        if (a.kind, a.size) == (b.kind, b.size) and a.evaluation != b.evaluation
    ]


def noise(checkpoints: Sequence[EvaluatedCheckpoint]) -> list[Noise]:
    """``Noise`` of both figures, for unmodified models with three or more late checkpoints."""
    rows = []
    plain = [c for c in checkpoints if c.kind == PLAIN]
    keys = {(c.size, c.evaluation) for c in plain}
    for size, evaluation in sorted(keys, key=lambda key: (parameters(key[0]), key[1])):
        half = max(c.step for c in plain if c.size == size) / 2
        late = [c for c in plain if (c.size, c.evaluation) == (size, evaluation) and c.step >= half]
        if len(late) >= 3:
            steps = (len(late), late[0].step, late[-1].step)
            for measure, figure in ((SHARE, "share"), (DISTANCE, "distance_nats")):
                values = np.array([getattr(c, figure) for c in late])
                sd = float(values.std(ddof=1))
                near = math.sqrt(np.mean(np.diff(values) ** 2) / 2)
                r = max(0.0, 1 - near**2 / sd**2) if sd else 0.0
                mean = float(values.mean())
                rows.append(Noise(size, evaluation, measure, *steps, mean, sd, near, r))
    return rows


def doses(checkpoints: Sequence[EvaluatedCheckpoint]) -> list[tuple[str, str, float]]:
    """Kind and size of swapped models, and the share of steps that their checkpoints cover."""
    steps: dict[tuple[str, str], list[int]] = {}
    for c in checkpoints:
        if c.kind != PLAIN:
            steps.setdefault((c.kind, c.size), []).append(c.step)
    return [
        (*key, (model_steps[-1] - model_steps[0] + min(np.diff(model_steps))) / model_steps[-1])
        for key, model_steps in steps.items()
        if len(model_steps) > 1
    ]


def of_crows_pairs(checkpoints: Sequence[EvaluatedCheckpoint]) -> list[Resolved]:
    """Resolution of CrowS-Pairs: swapped against plain models, then between checkpoints."""
    rows: list[Resolved] = []
    plain = {(c.size, c.step): c for c in checkpoints if c.kind == PLAIN}
    for kind, size in dict.fromkeys((c.kind, c.size) for c in checkpoints if c.kind != PLAIN):
        both = [
            (plain[size, c.step], c)
            for c in checkpoints
            if (c.kind, c.size) == (kind, size) and (size, c.step) in plain
        ]
        alike = [(a, b) for a, b in both if a.evaluation == b.evaluation]
        for what, shared in (("one evaluation", alike), ("two evaluations", both)):
            if shared and (what == "one evaluation" or len(shared) > len(alike)):
                rows += _against(f"{size} {kind}", what, shared)
    for row in noise(checkpoints):
        # Two models' checkpoints on the same pairs, each as noisy as the unmodified model's.
        lean = row.mean - 0.5 if row.measure == SHARE else None
        for basis, sd in ((ONE_CHECKPOINT, row.sd), (ALL_CHECKPOINTS, row.mean_sd)):
            se, df = sd * math.sqrt(2), row.n - 1
            model = f"{row.size} evaluation {row.evaluation}"
            figures = (row.n, lean, None, se, df, smallest_effect(se, df))
            rows.append(Resolved(TASK, row.measure, model, basis, *figures))
    return rows


def _against(
    model: str, what: str, shared: Sequence[tuple[EvaluatedCheckpoint, EvaluatedCheckpoint]]
) -> Iterator[Resolved]:
    """Difference, swapped minus plain model, averaged over the steps that both have.

    The error is that of a single step, since every step is evaluated on the same pairs.
    """
    before, after = (float(np.mean([c[i].share for c in shared])) for i in (0, 1))
    lean, d = before - 0.5, after - before
    n = max(c.n_pairs for pair in shared for c in pair)
    unpaired = math.hypot(*(float(np.mean([c[i].share_se for c in shared])) for i in (0, 1)))
    # Best case: as few pairs as possible differ, all in one direction.
    best = math.sqrt(max(abs(d) - d * d, 0.0) / n) if n else math.nan
    steps = f"{len(shared)} step{'s' * (len(shared) > 1)}, {what}"
    for basis, se, smallest in (
        ("unpaired", unpaired, smallest_effect(unpaired)),
        ("best pairing", best, smallest_if_all_one_way(n)),
    ):
        basis = f"{steps}, {basis}"
        yield Resolved(TASK, SHARE, model, basis, n, lean, d, se, math.inf, smallest)


#: Limits of these figures.
LIMITS = (
    "UnStereoEval has no scores of swapped checkpoints: this is a power analysis, not a result.",
    "Shares of pronouns assume that a lean follows the text in proportion to the dose, and that "
    "exchanging all of them reverses it. Our own study contradicts both (docs/cause-study.md).",
    "The correlation of two models' errors on CrowS-Pairs is unknown: `unpaired` takes them as "
    "independent, `best pairing` as correlated as possible.",
    "The seed words of USE sets were chosen because they don't lean: slopes on their delta say "
    "little; MaxPMI is of all words of a sentence.",
    "Pythia and Pythia-deduped differ by their text too: noise between trainings is overstated.",
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
    """Doses, and neighbouring checkpoints that were evaluated in different ways."""
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
