"""Groups that differ by content words: a warning, and log ratios less those of the words alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.pairs.benchmarks import Row, import_benchmark
from plumbline.eval_workers.pairs.benchmarks.own.baselines import add_baselines, frequency_warning
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import Parsed
from plumbline.eval_workers.scoring.measure import measure
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.released_files import write_csv
from tests.report_sections import section
from tests.tiny_models import one_by_one

FRAMES = (
    *("The {} man walked home.", "A {} dog sat by the door.", "My {} neighbour called me."),
    *("We met a {} driver.", "An editor liked the {} writer.", "The {} clerk answered."),
)


def imported(store: Store, name: str, path: Path, a: str, b: str) -> None:
    """Import pairs that differ by a word, of the groups a and b."""
    of = {"group_a": a, "group_b": b}
    rows = [{"sentence_a": f.format(a), "sentence_b": f.format(b), **of} for f in FRAMES]
    import_benchmark(store, name, write_csv(path, rows), "r")


def pair(a: str, b: str) -> Row:
    row = {"pair_id": "1", "sentence_a": a, "sentence_b": b, "group_a": "x", "group_b": "y"}
    return {**row, "source_file": "f", "source_row": 1}


def baselines(*pairs: Row, language: str = "") -> list[tuple[object, object] | None]:
    """The baseline that an import gives each pair."""
    benchmark = Parsed("mine", [dict(p) for p in pairs])
    benchmark.facts = {"Language": language} if language else {}
    add_baselines(benchmark)
    return [
        (p["baseline_a"], p["baseline_b"]) if "baseline_a" in p else None for p in benchmark.pairs
    ]


def warned(*pairs: Row) -> bool:
    return "how frequent" in " ".join(frequency_warning(pairs))


def test_only_english_pairs_have_a_baseline() -> None:
    """A recipe's word counts; without it, common words tell German and French from English."""
    german = pair("Der alte Mann war in der Stadt.", "Der stille Mann war in der Stadt.")
    french = pair("Un homme riche est assis.", "Un homme pauvre est assis.")
    english = pair("The old man sings.", "The quiet man sings.")
    short = pair("Old men sing.", "Quiet men sing.")
    assert baselines(german) == baselines(french) == [None]
    assert warned(german) and warned(french)
    assert baselines(german, french, language="de") == [None, None]
    assert baselines(english, language="de") == [None]
    assert all(baselines(english, short))
    assert all(baselines(short, language="en-GB"))


def test_the_baseline_is_what_the_words_score_alone(
    store: Store, model: Path, tmp_path: Path
) -> None:
    """With one model by a loop without Plumbline; only the difference is another figure."""
    imported(store, "ages", tmp_path / "a.csv", "old", "quiet")
    imported(store, "plain", tmp_path / "b.csv", "she", "he")
    done = score_benchmarks(store, str(model), ["ages", "plain"], ModelOptions(), "r")
    assert [x.benchmark for x in done] == ["ages", "plain"]
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
    assert ("plain", "less baseline") not in found
    above = [in_a - in_b - a + b for in_a, in_b in of]
    share = sum((x > 0.5007753) - (x < -0.5007753) for x in above) / len(above)
    assert found["ages", "less baseline"] == pytest.approx(100 * share)
    (alert,) = (x for x in section(store, "preference").alerts if "how frequent" in x)
    assert alert.startswith("ages (old/quiet): 6 pairs differ")


def test_a_baseline_that_cannot_be_scored_is_null(
    store: Store, model: Path, tmp_path: Path
) -> None:
    """A baseline longer than the model's context: its pair still has a score."""
    imported(store, "ages", tmp_path / "a.csv", "old", "quiet")
    pairs = store.read("benchmark_pair").to_pylist()
    pairs[0]["baseline_a"] = "The word here is " + "old " * 2000
    store.replace("benchmark_pair", pairs, {"benchmark": "ages"}, "r")
    (done,) = score_benchmarks(store, str(model), ["ages"], ModelOptions(), "r")
    assert (done.n_done, done.n_rejected) == (len(FRAMES), 0)
    rows = rows_of(store.root, "FROM scored_pair")
    without = [row["pair_id"] for row in rows if row["above_baseline_nats"] is None]
    assert len(rows) == len(FRAMES) and without == [pairs[0]["pair_id"]]
