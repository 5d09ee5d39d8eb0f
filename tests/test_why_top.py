"""`plumbline why` for one word, a list and `--top`: the same rows, by brute force; asked once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting import kept_documents
from plumbline.jobs.evidence.explanation import Sampling, explain, explain_top
from plumbline.jobs.evidence.index import Row
from plumbline.jobs.evidence.lean import lean_tables
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.pipelines.command.main import main
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.corpus_tables import ANSWERS
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair
from tests.kept_words import indexed, made, question
from tests.oracle_counts import OracleCounts, _positions
from tests.test_why import write

#: What answers of single words and of many have in common.
SHARED = ("word_evidence", "word_source", "word_snippet")


def texts(rng: np.random.Generator) -> list[str]:
    """Documents with words on one side only, near none, and copies, one of them more than often."""
    names = ["she", "he", "he", "tea", "rum", "nurse", "the"] + [f"w{k}" for k in range(12)]
    made = [" ".join(rng.choice(names, rng.integers(1, 50))) for _ in range(70)]
    return [*made, *made[:5], *made[:1] * 12, "girl she girl", "lonely on its own"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Corpus c: three shards, four sources, of which one is no name."""
    rng, store = np.random.default_rng(3), Store.open(tmp_path / "w")
    some = texts(rng)
    sources = [["a", "b", None, "c"][k % 4] for k in range(len(some))]
    paths = [write(tmp_path / f"{k}.jsonl", some[k::3], sources[k::3]) for k in range(3)]
    count_corpus(store, "c", paths)
    associate(store, "c")
    return store


def rows(store: Store, table: str) -> dict[tuple[object, ...], Row]:
    """By word and place; without the run."""
    found = store.read(table, corpus="c").to_pylist()
    key = ("word", "source", "side", "place", "counted", "collocate")
    return {tuple(r.get(k) for k in key): {**r, "run_id": ""} for r in found}


def assert_same(some: dict[str, Any], others: dict[str, Any]) -> None:
    for table in some:
        assert some[table].keys() == others[table].keys() and others[table]
        for key, row in others[table].items():
            for name, value in row.items():
                same = pytest.approx(value, 1e-9, 1e-12) if isinstance(value, float) else value
                assert some[table][key][name] == same, (table, key, name)


@pytest.mark.parametrize("clusters", ["document", "source"])
def test_the_rows_are_those_of_single_words(
    clusters: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_documents, "FEWEST_SOURCES", 1 if clusters == "source" else 100)
    n_word = {r["word"]: r["n_word"] for r in store.read("word_count", corpus="c").to_pylist()}
    assert {"she", "he", "girl", "lonely", "tea"} < set(n_word)
    options = "she/he", Sampling(3, 7)
    assert explain_top(store, "c", 1000, *options) == len(n_word)
    many = {table: rows(store, table) for table in SHARED}
    explain(store, "c", list(n_word), *options)
    listed = {table: rows(store, table) for table in ANSWERS}
    assert_same(many, listed)
    for word in ("she", "girl", "tea"):
        explain(store, "c", [word], *options)
    assert_same({table: rows(store, table) for table in ANSWERS}, listed)
    for row in rows(store, "word_evidence").values():
        n_more = sum(n > n_word[row["word"]] for n in n_word.values())
        assert (row["n_word"], row["frequency_rank"]) == (n_word[row["word"]], 1 + n_more)


def test_a_report_asks_before_it_ranks(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = ["she drinks tea, tea and tea again", "he drinks rum, rum and rum again"] * 30
    count_corpus(store, "d", (write(tmp_path / "leaning.jsonl", some),))
    associate(store, "d")

    def report() -> tuple[str, dict[str, Row]]:
        page = ["--corpus", "d", "--out", str(tmp_path / "report")]
        assert main(["report", "--warehouse", str(store.root), *page]) == 0
        leans = rows_of(store.root, "FROM word_lean WHERE corpus = 'd' AND contrast = 'she/he'")
        return capsys.readouterr().out, {r["word"]: r for r in leans}

    said, leans = report()
    assert "co-occurrences" not in said
    assert {w: leans[w]["over"] for w in ("tea", "rum", "drinks")} == {
        **dict.fromkeys(("tea", "rum"), "documents"),
        "drinks": "co-occurrences",
    }
    candidates = rows_of(store.root, "FROM lean_candidate WHERE corpus = 'd'")
    assert {w for w, r in leans.items() if r["is_ranked"]} == {r["word"] for r in candidates}
    version = store.snapshot().version
    assert report()[1] == leans and store.snapshot().version == version, "asked about once"


TARGETS = ("she", "her", "he", "him")
PAIRS = [WordPair("she", "he", 2), WordPair("her", "he", 1), WordPair("her", "him", 1)]
WITHOUT = ("delta_without_nats", "delta_without_nats_low", "delta_without_nats_high")
COLUMNS = ("n_pair_f", "n_pair_m", "delta_nats", "delta_nats_low", "delta_nats_high")


@given(
    st.lists(st.lists(st.sampled_from([*TARGETS[:3], "tea", "x"]), max_size=20), max_size=14),
    st.sampled_from(["document", "source"]),
)
def test_leans_are_those_of_brute_force(texts: list[list[str]], clusters: str) -> None:
    """Targets of several pairs, words on one side, pairs that are defined in some sources only."""
    texts, sources = [*texts, ["tea"]], [f"s{len(text) % 4}" for text in [*texts, ["tea"]]]
    words = question(texts, ["she", "her", "tea"], "pairs", 4, TARGETS[:2], TARGETS[2:])
    found = lean_tables(indexed(made(texts, sources, 2), words), PAIRS, clusters)
    own = sources if clusters == "source" else list(map(str, range(len(texts))))
    for row in found["word_evidence"]:
        check(row, COLUMNS, by_hand(row["word"], list(zip(texts, own, strict=True))))
    for row in found["word_source"]:
        is_here = [source == row["source"] for source in sources]
        here = [(text, str(k)) for k, text in enumerate(texts) if is_here[k]]
        check(row, COLUMNS, by_hand(row["word"], here))
        others = [(text, own[k]) for k, text in enumerate(texts) if not is_here[k]]
        check(row, WITHOUT, by_hand(row["word"], others)[2:])


def check(row: Row, names: Sequence[str], expected: list[float | None]) -> None:
    for name, value in zip(names, expected, strict=False):  # an exact interval is checked elsewhere
        assert row[name] == (value if value is None else pytest.approx(value, abs=1e-7))


def by_hand(word: str, documents: list[tuple[list[str], str]]) -> list[float | None]:
    """Values of ``COLUMNS`` from pairs of a text and its cluster."""
    clusters = sorted({cluster for _, cluster in documents})
    c, n = np.zeros((2, len(clusters), 4))
    for text, cluster in documents:
        counts = OracleCounts()
        _positions(text, 4, counts)
        c[clusters.index(cluster)] += [counts.pairs[word, t] for t in TARGETS]
        n[clusters.index(cluster)] += [text.count(t) for t in TARGETS]
    a, is_used, all_c, all_n = np.zeros(4), np.zeros(4, bool), c.sum(axis=0), n.sum(axis=0)
    for pair in PAIRS:
        sides = [TARGETS.index(pair.a), TARGETS.index(pair.b)]
        if all_c[sides].all():
            a[sides] += pair.weight / np.array([1, -1])
            is_used[sides] = True
    n_pair = all_c * (is_used if is_used.any() else 1)
    counted: list[float | None] = [n_pair[:2].sum(), n_pair[2:].sum()]
    if not is_used.any():
        return [*counted, None]
    a, all_c, all_n = a / a[a > 0].sum(), np.where(a, all_c, 1), np.where(a, all_n, 1)
    delta, n_with = a @ np.log(all_c / all_n), c[:, a != 0].any(axis=1).sum()
    if n_with < LEAST_CLUSTERS:
        return [*counted, delta, None, None]
    spread = np.linalg.norm((c / all_c - n / all_n) @ a)
    half = stats.t.ppf(0.975, n_with - 1) * spread * np.sqrt(len(clusters) / (len(clusters) - 1))
    return [*counted, delta, delta - half, delta + half]
