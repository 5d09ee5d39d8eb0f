"""Sentences as the released scores had them: the exact form, its own keys, both side by side."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from plumbline.eval_workers.models.model_options import in_form
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill


@pytest.mark.reference
def test_the_form_is_that_of_every_released_sentence(data: Path) -> None:
    """Models' files hold the same sentences: one model's are read."""
    n = n_same = 0
    for path in sorted((data / "unstereo-eval" / "results").glob("*/*opt-125m.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                written = fill(row["template"], "f"), fill(row["template"], "m")
                theirs = row["F_template"], row["M_template"]
                assert tuple(in_form(text, "released") for text in written) == theirs
                n, n_same = n + 1, n_same + (written == theirs)
    assert (n, n_same) == (16_668, 16_208)
