"""Weights of scored words, v(w) of UnStereoEval's Eq. 4, from a CSV file of somebody's."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.csv_rows import records


@dataclass(frozen=True)
class WordWeights:
    """A weight by word, such as its toxicity, and the name of the file they came from."""

    name: str
    weights: dict[str, float]

    @property
    def hash(self) -> str:
        """Twelve hex digits that change with a word or weight, not with their order."""
        content = json.dumps(sorted(self.weights.items()))
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @classmethod
    def read(cls, path: Path) -> WordWeights:
        """Read a CSV file with columns ``word`` and ``weight``.

        Raises ``UsageProblem`` when there is no such file, ``BadInput`` naming the row for a weight
        that is not a finite number, a word that is not lowercase or repeats, and for no words.
        """
        weights: dict[str, float] = {}
        for record in records(path, ("word", "weight")):
            word, weight = (record.fields.get(k, "").strip() for k in ("word", "weight"))
            at = f"{path}, row {record.number}"
            is_one = len(word.split()) == 1 and word == word.lower()
            if record.problem or not is_one or word in weights:
                state = "is listed twice" if word in weights else "is not one lowercase word"
                raise BadInput(at, record.problem or f"{word!r} {state}")
            try:
                weights[word] = float(weight)
            except ValueError:
                weights[word] = math.nan
            if not math.isfinite(weights[word]):
                raise BadInput(at, f"weight {weight!r} of {word} is not a finite number")
        if not weights:
            raise BadInput(str(path), "has no rows", "columns: word, weight")
        return cls(path.stem, weights)

    def of(self, words: pa.Array) -> NDArray[np.float64]:
        """The weight of each word, float64[words]; NaN for a word without one.

        >>> WordWeights("toxicity", {"tea": 0.5}).of(pa.array(["tea", "army"])).tolist()
        [0.5, nan]
        """
        return np.array([self.weights.get(word, math.nan) for word in words.to_pylist()])
