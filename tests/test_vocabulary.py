"""The vocabulary: every word's verdict and reason, with real WordNet and a real fastText model."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.kernel.corpus_options import VocabularyOptions
from plumbline.jobs.seed_words import english
from plumbline.jobs.seed_words.vocabulary import build_vocabulary, classify
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.storage.store import Store
from tests.language_files import needs_wordnet, train
from tests.test_constrain import filled

pytestmark = pytest.mark.usefixtures("wordnet_read_once")
#: English to the model alone, to WordNet alone, to neither; of odd letters; rare.
COUNTS = {
    **{"with": 900, "weltanschauung": 20, "nicht": 40, "mice": 50, "xqzt": 30},
    **{"u.s.": 70, "naïve": 9, "teapot": 2},
}


def counted(store: Store, counts: dict[str, int]) -> Store:
    filled(store)
    rows = [{"corpus": "c", "word": w, "n_word": n} for w, n in counts.items()]
    store.replace("word_count", rows, {"corpus": "c"}, "r")
    return store


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("language"))


_WORD = st.text("abz.é", min_size=1, max_size=4)


@given(
    st.dictionaries(_WORD, st.integers(1, 100)),
    st.sets(_WORD),
    st.sets(_WORD),
    st.floats(0, 0.99),
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
    done = build_vocabulary(counted(store, COUNTS), "c", VocabularyOptions(quantile=0.1), model)
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
    assert (done.n_words, sum(done.by_reason.values()), done.missing) == (8, 8, ())
    assert done.n_kept == sum(r["is_kept"] for r in rows.values())
    (run,) = store.read("run").to_pylist()
    config = json.loads(run["config"])
    assert config["language_model"]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert config["wordnet"]["version"].startswith("3.") and config["missing"] == []


@needs_wordnet
def test_a_word_is_in_wordnet_with_its_base_forms() -> None:
    found = english.load_wordnet()
    assert found.version.startswith("3.")
    words = ["mice", "teapot", "ran", "happier", "quickly", "xqzt", "nicht", "echaban", "Berlin"]
    assert [found.has_synset(word) for word in words] == [True] * 5 + [False] * 3 + [True]


def test_without_wordnet_the_model_decides(
    store: Store, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "WORDNET_DIRECTORY", tmp_path)
    done = build_vocabulary(counted(store, COUNTS), "c", VocabularyOptions(quantile=0), model)
    assert "apt-get install wordnet-base" in done.missing[0] and done.checks == "fastText"
    kept = {r["word"] for r in store.read("vocabulary").to_pylist() if r["is_kept"]}
    assert "with" in kept and not kept & {"nicht", "weltanschauung", "u.s.", "naïve"}
    with pytest.raises(MissingComponent, match=r"wordnet-base.*--any-language"):
        build_vocabulary(store, "c", VocabularyOptions())
    assert [r["status"] for r in store.read("run").to_pylist()] == ["finished"]
