"""Seed words: the interval of delta that holds 0, and the sample from it."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.ingest.released_statistics import import_statistics
from plumbline.jobs.seed_words.sample import neutral_interval, sample, select_seed_words
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.test_constrain import filled

#: The largest magnitude is 1.9, so the range is +-2 nats and the interval +-2/19 = +-0.10526...
HAND = {"a": -1.9, "b": -0.2, "c": -0.1052, "d": 0.0, "e": 0.1053, "f": 0.1, "g": 1.0}


@given(st.lists(st.floats(-50, 50)))
def test_the_interval_is_one_of_19_and_holds_0(deltas: list[float]) -> None:
    low, high = neutral_interval(deltas)
    largest = math.ceil(max(map(abs, deltas), default=0.0))
    assert low <= 0 <= high
    assert (low, high) == pytest.approx((-largest / 19, largest / 19), rel=1e-12, abs=1e-12)
    for delta in deltas:  # which of the 19 a delta is in, by hand: the tenth is the middle one
        place = (delta + largest) / (2 * largest / 19) if largest else 9.5
        if min(abs(place - 9), abs(place - 10)) > 1e-9:
            assert (low <= delta <= high) == (9 < place < 10)


def test_the_sample_depends_on_seed_and_words_alone() -> None:
    words = dict.fromkeys((f"w{k}" for k in range(40)), 1)
    drawn = sample(words, 10, seed=7)
    assert sample(dict(reversed(words.items())), 10, seed=7) == drawn
    assert sample(words, 4, seed=7) == drawn[:4]
    assert len(set(drawn)) == 10 and sample(words, 10, seed=8) != drawn
    assert sorted(sample(words, 40, seed=7)) == sorted(words)
    # pinned: another machine or library must draw the same
    drinks = {"tea": 1, "rum": 1, "ale": 1, "gin": 1, "mead": 1}
    assert sample(drinks, 3, seed=0) == ["gin", "rum", "ale"]
    for n in (0, 41):
        with pytest.raises(UsageProblem, match=f"{n} seed words"):
            sample(words, n, seed=7)


def test_words_that_frames_of_a_closed_world_are_made_of_are_no_seed_words(store: Store) -> None:
    filled(store, HAND)
    fixed = {"corpus": "c", "world": "straight", "planted_delta_nats": 0.0}
    rows = [
        {**fixed, "word": "c", "word_class": "frame"},
        {**fixed, "word": "d", "word_class": "f"},
    ]
    store.publish("planted_word", rows, unit="a", run_id="r")
    done, words = select_seed_words(store, "c", n=None)
    assert (done["n_within"], done["n_excluded"]) == (3, 1)
    assert {row["word"] for row in words} == {"d", "f"}


@pytest.mark.reference
def test_the_released_table(store: Store, data: Path) -> None:
    import_statistics(store, "pile", data / "unstereo-eval", "run")
    done, words = select_seed_words(store, "pile")
    # the largest magnitude is 4.75 (homers), so the range is +-5 nats
    assert (done["low_nats"], done["high_nats"]) == pytest.approx((-5 / 19, 5 / 19))
    assert (done["n_defined"], done["n_within"], len(words)) == (65_914, 24_157, 500)
    # the words that the released sets were written around were drawn from the same interval
    raw = data / "unstereo-eval" / "data" / "datasets" / "raw"
    parts = [pd.read_csv(raw / f"USE-{n}.csv.gz", keep_default_na=False) for n in (5, 10, 20)]
    used = set().union(*(part["word"] for part in parts))
    rows = store.read("word_delta", corpus="pile").to_pylist()
    leans = [abs(r["delta_nats"]) for r in rows if r["word"] in used]
    assert len(leans) == len(used) == 493
    assert max(leans) == pytest.approx(0.2624, abs=1e-4)
    near = {r["word"]: 1 for r in reversed(rows) if abs(r["delta_nats"]) <= 5 / 19}
    assert sample(near, 500, 0) == [row["word"] for row in words]
