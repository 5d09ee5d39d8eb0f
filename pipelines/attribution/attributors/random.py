"""Random scores: a baseline that shows what chance looks like."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from plumbline.pipelines.attribution.contract import Floats, Progress, Query, Subject, silent

DESCRIPTION = "random numbers, for comparison"
UNIT = "arbitrary units"


def scores(queries: Sequence[Query], subject: Subject, progress: Progress = silent) -> Floats:
    """Standard normal numbers, determined by the seed and the query's name alone."""
    names = [zlib.crc32(query.name.encode()) for query in queries]
    draws = [np.random.default_rng([subject.seed, name]) for name in names]
    return np.array([draw.standard_normal(len(subject.text)) for draw in draws])
