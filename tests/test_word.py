"""A word by its counts alone: intervals and ranks by hand, and what unknown words get."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from plumbline.jobs.association import word_summary
from plumbline.jobs.association.associations import associate
from plumbline.jobs.association.word_summary import describe_word
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill
from tests.test_association import counted


def row(store: Store, **changes: object) -> None:
    (row,) = store.read("corpus", corpus="c").to_pylist()
    store.publish("corpus", [{**row, **changes}], unit="corpus", run_id="r")


def test_a_clear_lean_has_a_rank_and_another_has_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(store)
    rng = np.random.default_rng(11)
    rows = [
        delta(f"w{k}", float(d)) | {"delta_nats_se": float(e)}
        for k, (d, e) in enumerate(zip(rng.normal(0, 1, 80), rng.uniform(0.1, 1, 80), strict=True))
    ]
    counts = [{"corpus": "c", "word": r["word"], "n_word": 100} for r in rows]
    store.replace("word_count", counts, {"corpus": "c"}, "r")
    fill(store, "word_delta", rows)
    intervals = {
        r["word"]: stats.norm.interval(0.95, r["delta_nats"], r["delta_nats_se"]) for r in rows
    }
    females = sorted(
        (w for w, (low, _) in intervals.items() if low > 0), key=lambda w: -intervals[w][0]
    )
    males = sorted(
        (w for w, (_, high) in intervals.items() if high < 0), key=lambda w: intervals[w][1]
    )
    assert len(females) > 5 and len(males) > 5 and len(females) + len(males) < 70
    # One connection for all words: making it costs more than they do.
    monkeypatch.setattr(word_summary, "connect", functools.cache(word_summary.connect))
    for word, (low, high) in intervals.items():
        text = "\n".join(describe_word(store, "c", word))
        assert f"95% interval over co-occurrences {low:+.3f} to {high:+.3f}" in text
        for way, ranked in (("she", females), ("he", males)):
            place = f"leans to {way}: rank {ranked.index(word) + 1 if word in ranked else 0} of"
            assert (f"{place} the {len(ranked)} words" in text) == (word in ranked)
        assert ("no clear lean" in text) == (low <= 0 <= high)


def test_without_a_standard_error_no_lean_is_called_clear(store: Store) -> None:
    counted(store)
    rows = [delta(f"w{k}", k - 2.5) | {"delta_nats_se": None} for k in range(6)]
    counts = [{"corpus": "c", "word": r["word"], "n_word": 100} for r in rows]
    store.replace("word_count", counts, {"corpus": "c"}, "r")
    fill(store, "word_delta", rows)
    text = "\n".join(describe_word(store, "c", "w4"))
    assert "standard error unknown" in text
    assert "rank 2 of the 3 words whose estimate is to she; without an interval no lean" in text
    assert "leans" not in text


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("teas", "does not occur in corpus c (similar words: tea)"),
        ("rarer", "does not occur in corpus c (similar words: rare)"),
        ("xqzt", "does not occur in corpus c"),
        ("the", "is not counted in corpus c: a stop word, or without letters"),
        ("...", "is not counted in corpus c: a stop word, or without letters"),
        ("kings-army", "is counted in corpus c as kings army"),
    ],
)
def test_an_unknown_word_is_an_error_of_one_line(
    store: Store, capsys: pytest.CaptureFixture[str], word: str, message: str
) -> None:
    counted(store)
    associate(store, "c")
    assert main(["why", word, "--warehouse", str(store.root)]) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.strip().splitlines()
    assert f"word {word!r}: {message}" in line and not shown.out
