"""Groups that differ by content words: a warning, and log ratios less those of the words alone."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.benchmarks import How, import_benchmark
from plumbline.eval_workers.pairs.benchmarks.own.baseline import baseline_pairs
from plumbline.eval_workers.pairs.benchmarks.own.pair_warnings import pair_warnings
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import measure
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sections import preference
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.tiny_models import one_by_one

FRAMES = (
    *("The {} man walked home.", "A {} dog sat by the door.", "My {} neighbour called me."),
    *("We met a {} driver.", "An editor liked the {} writer.", "The {} clerk answered."),
)


def written(path: Path, a: str, b: str, frames: tuple[str, ...] = FRAMES) -> Path:
    """A file of pairs that differ by a word, of the groups a and b."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence_a", "sentence_b", "group_a", "group_b"])
        rows.writerows([f.format(a), f.format(b), a, b] for f in frames)
    return path


def pair(a: str, b: str) -> dict[str, object]:
    row = {"pair_id": "1", "sentence_a": a, "sentence_b": b, "group_a": "x", "group_b": "y"}
    return {**row, "source_file": "f", "source_row": 1}


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("The old man slept.", "The quiet man slept.", ("old", "quiet")),
        ("Old people sleep.", "Very quiet people sleep.", ("Old", "Very quiet")),
        ("A Muslim woman.", "A Christian woman.", ("Muslim", "Christian")),
        ("She goes home and washes her car.", "They go home and wash their car.", None),
        ("She saw herself.", "He saw himself.", None),
        ("Emily sings.", "Lakisha sings.", None),
        ("Her wife has a dog.", "His husband has a dog.", None),
        ("My grandmother sings.", "My grandfather sings.", None),
        ("A man slept.", "An old man slept.", None),
    ],
)
def test_words_that_no_list_has_get_a_baseline(a: str, b: str, words: Any) -> None:
    found = [(p["sentence_a"], p["sentence_b"]) for p in baseline_pairs([pair(a, b)])]
    assert found == ([tuple(f"The word here is {w}." for w in words)] if words else [])
    said = " ".join(pair_warnings([pair(a, b)]))
    assert ("how frequent" in said) == bool(words)


def test_the_baseline_is_what_the_words_score_alone(
    store: Store, model: Path, tmp_path: Path
) -> None:
    """With one model by a loop without Plumbline; only the difference is another figure."""
    import_benchmark(store, "ages", written(tmp_path / "a.csv", "old", "quiet"), "r", How())
    import_benchmark(store, "plain", written(tmp_path / "b.csv", "she", "he"), "r", How())
    assert not store.units("benchmark_pair", benchmark="plain-baseline")
    done = score_benchmarks(store, str(model), ["ages", "plain"], ModelOptions(), "r")
    assert [x.benchmark for x in done] == ["ages", "ages-baseline", "plain"]
    texts = [f"The word here is {word}." for word in ("old", "quiet")]
    texts += [f.format(w) for f in FRAMES for w in ("old", "quiet")]
    (a, b), *of = zip(
        *[iter(x for x, _ in one_by_one(model, "<|endoftext|>", texts))] * 2, strict=True
    )
    rows = rows_of(store.root, "FROM scored_pair WHERE benchmark = 'ages' ORDER BY pair_id")
    assert len(rows) == len(FRAMES)
    for row, (in_a, in_b) in zip(rows, of, strict=True):
        assert row["log_ratio_nats"] == pytest.approx(in_a - in_b, abs=1e-3)
        assert row["baseline_log_ratio_nats"] == pytest.approx(a - b, abs=1e-3)
        assert row["above_baseline_nats"] == pytest.approx(in_a - in_b - a + b, abs=1e-3)
    plain = rows_of(store.root, "FROM scored_pair WHERE benchmark = 'plain'")
    assert {r["baseline_log_ratio_nats"] for r in plain} == {None}
    measure(store, "r")
    pd = rows_of(store.root, "FROM metric_value WHERE metric = 'pd'")
    found = {(r["benchmark"], r["subset"]): r["value"] for r in pd}
    assert {name for name, _ in found} == {"ages", "plain"}, "a baseline has no metrics of its own"
    assert ("plain", "less baseline") not in found
    above = [in_a - in_b - a + b for in_a, in_b in of]
    share = sum((x > 0.5007753) - (x < -0.5007753) for x in above) / len(above)
    assert found["ages", "less baseline"] == pytest.approx(100 * share)
    (section,) = preference.sections(Facts(store.root))
    (alert,) = (x for x in section.alerts if "how frequent" in x)
    assert (
        alert.startswith("ages: 6 pairs differ")
        and "PD in points less that of such sentences" in alert
    )
    assert not any("ages-baseline" in x for x in section.alerts)


def test_a_set_without_content_words_loses_its_baseline(store: Store, tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "old", "quiet")
    import_benchmark(store, "mine", path, "r", How())
    assert store.read("benchmark_pair", benchmark="mine-baseline").num_rows == len(FRAMES)
    import_benchmark(store, "mine", written(path, "she", "he"), "r", How())
    assert store.read("benchmark_pair", benchmark="mine-baseline").num_rows == 0
