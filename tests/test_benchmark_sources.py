"""WinoBias' released tables against the authors' lists of occupations."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.pairs.benchmarks import find


@pytest.mark.reference
def test_the_stereotype_favours_who_usually_holds_the_occupation(data: Path) -> None:
    usual = {
        line.split()[-1].lower(): side  # the worker is a construction worker
        for side, name in (("a", "female"), ("b", "male"))
        for line in (data / "corefbias" / f"{name}_occupations.txt").read_text().splitlines()
    }
    pairs = find("winobias").read("winobias", data / "unstereo-eval/data/datasets/raw").pairs
    assert sum("[" in str(pair["template"]) for pair in pairs) == 41
    pairs = [pair for pair in pairs if pair["word"]]
    assert len(pairs) > 1_500
    assert all(p["direction"] == usual[str(p["word"]).lower()] for p in pairs)
    assert {(p["direction"], p["stereotype"]) for p in pairs} == {("a", "anti"), ("b", "pro")}
