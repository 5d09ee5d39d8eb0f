"""Seed words: the vocabulary by WordNet and fastText, the interval that holds 0, the sample."""

import hashlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.ingest.released_statistics import import_statistics
from plumbline.jobs.kernel.corpus_options import VocabularyOptions
from plumbline.jobs.seed_words import vocabulary
from plumbline.jobs.seed_words.sample import neutral_interval, sample, select_seed_words, vet
from plumbline.jobs.seed_words.vocabulary import (
    INSTALL_WORDNET,
    WORDNET_DIRECTORY,
    build_vocabulary,
    classify,
)
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.test_constrain import filled

pytestmark = pytest.mark.usefixtures("wordnet_read_once")
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
    assert sample(words, 10, seed=8) != sample(words, 10, seed=7)
    # pinned: another machine or library must draw the same
    drinks = {"tea": 1, "rum": 1, "ale": 1, "gin": 1, "mead": 1}
    assert sample(drinks, 3, seed=0) == ["gin", "rum", "ale"]
    with pytest.raises(UsageProblem, match="41 seed words"):
        sample(words, 41, seed=7)


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
def test_a_refused_sample_decides_no_candidates(store: Store) -> None:
    given = ["--corpus", "c", "--any-language", "--n", "1", "--warehouse", str(store.root)]
    for wrong in (["--contrast", "queen/king"], ["--exclude", "nobody"]):
        assert main(["corpus", "words", *given, *wrong]) == 2
        assert store.read("vocabulary").num_rows == 0
    assert main(["corpus", "words", *given]) == 0
    assert store.read("vocabulary").num_rows


@pytest.mark.usefixtures("leaning")
def test_opinions_that_can_t_be_recorded(store: Store) -> None:
    for accept, reject, problem in (
        (["tea"], ["tea"], "'tea': is both"),
        (["tea", "coffee"], [], "'coffee': is not in corpus"),
    ):
        with pytest.raises(UsageProblem, match=problem):
            vet(store, "c", accept, reject, "", "r")
    with pytest.raises(UsageProblem, match="not in the warehouse"):
        vet(store, "other", ["tea"], [], "", "r")
    assert store.read("seed_verdict").num_rows == 0


#: For tests that read WordNet's own files.
needs_wordnet = pytest.mark.skipif(
    not (WORDNET_DIRECTORY / "index.noun").is_file(),
    reason=f"no WordNet: {INSTALL_WORDNET.split(',')[0]}",
)

#: fastText gives each thread a tenth of the weights, rounded down, to set at the start. With fewer
#: than ten threads, or a size that ten does not divide, the others stay as the memory was.
_THREADS = 10


def train(directory: Path) -> Path:
    """A model that tells English (this repository's pages) from German and French (spaCy's)."""
    import fasttext
    from spacy.lang.de import examples as german
    from spacy.lang.de.stop_words import STOP_WORDS as german_words
    from spacy.lang.fr import examples as french
    from spacy.lang.fr.stop_words import STOP_WORDS as french_words

    pages = sorted((REPOSITORY / "docs").glob("*.md"))
    words = {
        "en": re.findall(r"\b[a-z]+\b", " ".join(p.read_text(encoding="utf-8") for p in pages)),
        "de": " ".join([*german.sentences, *sorted(german_words)]).lower().split(),
        "fr": " ".join([*french.sentences, *sorted(french_words)]).lower().split(),
    }
    text = directory / "languages.txt"
    lines = [f"__label__{name} {word}" for name in words for word in sorted(set(words[name]))]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {"dim": 20, "minn": 2, "maxn": 4, "epoch": 50, "lr": 0.1, "bucket": 20_000}
    model = fasttext.train_supervised(str(text), thread=_THREADS, verbose=0, **settings)
    path = directory / "languages.bin"
    model.save_model(str(path))
    return path


#: English to the model alone, to WordNet alone, to neither; of odd letters; rare.
COUNTS = {
    **{"with": 900, "weltanschauung": 20, "nicht": 40, "mice": 50, "xqzt": 30},
    **{"u.s.": 70, "naïve": 9, "teapot": 2},
}


def counting(store: Store, counts: dict[str, int]) -> Store:
    filled(store)
    rows = [{"corpus": "c", "word": w, "n_word": n} for w, n in counts.items()]
    store.replace("word_count", rows, {"corpus": "c"}, "r")
    return store


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("language"))


_WORD = st.text("abz.é", min_size=1, max_size=4)


@given(
    st.dictionaries(_WORD, st.integers(1, 100)), st.sets(_WORD), st.sets(_WORD), st.floats(0, 0.99)
)
def test_a_word_is_kept_by_the_three_rules(
    counts: dict[str, int], by_model: set[str], by_wordnet: set[str], quantile: float
) -> None:
    def score(words: object) -> list[float]:
        return [0.5 if word in by_model else 0.49 for word in words]  # type: ignore[attr-defined]

    verdicts, rarest = classify(
        counts, VocabularyOptions(quantile=quantile), score, by_wordnet.__contains__
    )
    assert [(v["word"], v["n_word"]) for v in verdicts] == list(counts.items())
    letters = {w for w in counts if w.isascii() and w.isalpha()}
    passed = letters & (by_model | by_wordnet)
    limit = np.quantile([counts[w] for w in passed], quantile) if passed and quantile else 0
    assert rarest == limit
    assert {v["word"] for v in verdicts if v["is_kept"]} == {w for w in passed if counts[w] > limit}
    for v in verdicts:
        word, lettered = v["word"], v["word"] in letters
        expected = "not English" if lettered else "not a-z"
        if word in passed:
            asked = [n for n, of in (("fastText", by_model), ("WordNet", by_wordnet)) if word in of]
            expected = " and ".join(asked) if v["is_kept"] else "rare"
        assert v["reason"] == expected
        assert (v["language_score"] is None) == (v["has_synset"] is None) == (not lettered)


@needs_wordnet
def test_both_checks_in_the_table_and_the_run(store: Store, model: Path) -> None:
    done = build_vocabulary(counting(store, COUNTS), "c", VocabularyOptions(quantile=0.1), model)
    rows = {r["word"]: r for r in store.read("vocabulary").to_pylist()}
    assert rows.keys() == COUNTS.keys()
    certain = {
        **{"with": "fastText", "weltanschauung": "WordNet", "nicht": "not English"},
        **{"u.s.": "not a-z", "naïve": "not a-z", "teapot": "rare"},
    }
    assert {w: rows[w]["reason"] for w in certain} == certain
    german = rows["weltanschauung"]
    assert german["has_synset"] and german["language_score"] < 0.5 < rows["with"]["language_score"]
    assert rows["u.s."]["has_synset"] is rows["u.s."]["language_score"] is None
    assert {r["checks"] for r in rows.values()} == {"fastText and WordNet"}
    assert (done["n_words"], sum(done["by_reason"].values()), done["missing"]) == (8, 8, [])
    assert done["n_kept"] == sum(r["is_kept"] for r in rows.values())
    (run,) = store.read("run").to_pylist()
    config = json.loads(run["config"])
    assert config["language_model"]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert config["wordnet"]["version"].startswith("3.") and config["missing"] == []


@needs_wordnet
def test_a_word_is_in_wordnet_with_its_base_forms() -> None:
    found = vocabulary.load_wordnet()
    assert found.version.startswith("3.")
    words = ["mice", "teapot", "ran", "happier", "quickly", "xqzt", "nicht", "echaban", "Berlin"]
    assert [found.has_synset(word) for word in words] == [True] * 5 + [False] * 3 + [True]


def test_without_wordnet_the_model_decides(
    store: Store, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "WORDNET_DIRECTORY", tmp_path)
    done = build_vocabulary(counting(store, COUNTS), "c", VocabularyOptions(quantile=0), model)
    assert "apt-get install wordnet-base" in done["missing"][0] and done["checks"] == "fastText"
    kept = {r["word"] for r in store.read("vocabulary").to_pylist() if r["is_kept"]}
    assert "with" in kept and not kept & {"nicht", "weltanschauung", "u.s.", "naïve"}
    with pytest.raises(MissingComponent, match=r"wordnet-base.*--any-language"):
        build_vocabulary(store, "c", VocabularyOptions())
    assert [r["status"] for r in store.read("run").to_pylist()] == ["finished"]
