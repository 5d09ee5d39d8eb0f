"""Seed words: from the vocabulary, without excluded and rejected words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.seed_words.sample import sample, select_seed_words, vet
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.test_constrain import filled

#: The largest magnitude is 1.9 with u.s. and 0.9 without; a range of +-2 or +-1 nats.
DELTA = {"u.s.": -1.9, "tea": 0.05, "rum": 0.08, "ale": -0.04, "gin": 0.0, "she": 0.9}


@pytest.fixture
def leaning(store: Store) -> None:
    counts = [{"corpus": "c", "word": w, "n_word": 10 + k} for k, w in enumerate(DELTA)]
    with store.transaction("r"):
        filled(store, DELTA)
        store.replace("word_count", counts, {"corpus": "c"}, "r")


@given(st.sets(st.text("abc", min_size=1, max_size=4), min_size=1), st.data())
def test_a_smaller_sample_begins_a_larger_one(words: set[str], data: st.DataObject) -> None:
    n, seed = data.draw(st.integers(1, len(words))), data.draw(st.integers(0, 9))
    assert sorted(sample(words, len(words), seed)) == sorted(words)
    assert sample(sorted(words), n, seed) == sample(words, len(words), seed)[:n]


@pytest.mark.usefixtures("leaning")
def test_excluded_and_rejected_words_are_left_out(store: Store) -> None:
    vet(store, "c", [], ["Ale"], "a drink", "r")
    vet(store, "c", ["gin"], [], "", "r")
    done, words = select_seed_words(store, "c", n=2, exclude=("tea", "she", "absent"))
    shown = {row["word"]: (row["verdict"], row["why"]) for row in words}
    assert shown == {"rum": (None, None), "gin": ("accepted", None)}
    assert (done["n_within"], done["n_excluded"], done["n_rejected"]) == (4, 1, 1)
    config = json.loads(store.read("run").to_pylist()[-1]["config"])
    assert (config["excluded"], config["rejected"]) == (["tea"], ["ale"])
    with pytest.raises(UsageProblem, match="only 2 words"):
        select_seed_words(store, "c", n=3, exclude=("tea",))
    # the latest verdict counts
    assert vet(store, "c", ["ale"], [], "", "r") == {"accepted": 2}
    assert select_seed_words(store, "c", n=4)[0]["n_rejected"] == 0


@pytest.mark.usefixtures("leaning")
def test_opinions_that_can_t_be_recorded(store: Store) -> None:
    for accept, reject, problem in (
        ([], [], "no word to accept or reject"),
        (["tea"], ["tea"], "'tea': is both"),
        (["tea", "coffee"], [], "'coffee': is not in corpus"),
    ):
        with pytest.raises(UsageProblem, match=problem):
            vet(store, "c", accept, reject, "", "r")
    with pytest.raises(UsageProblem, match="not in the warehouse"):
        vet(store, "other", ["tea"], [], "", "r")
    assert store.read("seed_verdict").num_rows == 0
