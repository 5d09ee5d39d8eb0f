"""`plumbline why --top`: the rows of single questions, for all words at once, and asked once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.evidence import survey as surveys
from plumbline.jobs.evidence.explanation import Row, Sampling, explain
from plumbline.jobs.evidence.survey import Surveyed, survey
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store

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
    sources = ["a", "b", None, "c"]
    records = [
        {"text": text} | ({"meta": {"pile_set_name": s}} if (s := sources[k % 4]) else {})
        for k, text in enumerate(texts(rng))
    ]
    paths = [tmp_path / f"{k}.jsonl" for k in range(3)]
    for k, path in enumerate(paths):
        path.write_text("".join(json.dumps(record) + "\n" for record in records[k::3]))
    count_corpus(store, CountRequest("c", tuple(paths)))
    associate(store, "c")
    return store


def rows(store: Store, table: str, **wanted: str) -> dict[tuple[object, ...], Row]:
    """By word and place; without the run."""
    found = store.read(table, corpus="c").to_pylist()
    key = ("word", "source") if table == "word_source" else ("word", "side", "place")
    return {tuple(r.get(k) for k in key): {**r, "run_id": ""} for r in found}


@pytest.mark.parametrize("clusters", ["document", "source"])
@pytest.mark.parametrize("sampling", [Sampling(3, 7), Sampling(2, 0, ("he",))])
def test_the_rows_are_those_of_single_questions(
    clusters: str, sampling: Sampling, store: Store
) -> None:
    every = store.read("word_count", corpus="c")["word"].to_pylist()
    assert {"she", "he", "girl", "lonely", "tea"} < set(every)
    done = survey(store, "c", 1000, "she/he", sampling, clusters)
    assert done == Surveyed(len(every), len(every), 0)
    many = {table: rows(store, table) for table in SHARED}
    explain(store, "c", every, "she/he", sampling, clusters)
    for table in SHARED:
        single = rows(store, table)
        assert many[table].keys() == single.keys() and single
        for key, row in single.items():
            for name, value in row.items():
                is_float = isinstance(value, float)
                same = pytest.approx(value, rel=1e-9, abs=1e-12) if is_float else value
                assert many[table][key][name] == same, (table, key, name)
    n_word = {r["word"]: r["n_word"] for r in store.read("word_count", corpus="c").to_pylist()}
    for row in rows(store, "word_evidence").values():
        n_more = sum(n > n_word[row["word"]] for n in n_word.values())
        assert (row["n_word"], row["frequency_rank"]) == (n_word[row["word"]], 1 + n_more)


def test_what_is_answered_is_not_asked_again(store: Store) -> None:
    explain(store, "c", ["tea"], sampling=Sampling(5))
    before = rows(store, "word_collocate")
    counts = store.read("word_count", corpus="c").to_pylist()
    ranked = [r["word"] for r in sorted(counts, key=lambda r: (-r["n_word"], r["word"]))]
    n_known = int("tea" in ranked[:8])
    assert survey(store, "c", 8, n_with_sentences=3).n_words == 8 - n_known
    assert {r["word"] for r in rows(store, "word_evidence").values()} == {*ranked[:8], "tea"}
    quoted = {r["word"] for r in rows(store, "word_snippet").values()}
    assert quoted == {*ranked[:3], "tea"}
    assert survey(store, "c", 8, n_with_sentences=3) == Surveyed(0, 0, 8)
    assert survey(store, "c", 8, n_with_sentences=3, sampling=Sampling(2)) == Surveyed(0, 0, 8)
    assert survey(store, "c", 10, n_with_sentences=4).n_words == 2
    assert survey(store, "c", 2, sampling=Sampling(9)) == Surveyed(0, 2, 2)
    assert rows(store, "word_collocate") == before


def test_a_survey_that_is_cut_short_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(surveys, "snippet_rows", broken)
    with pytest.raises(KeyboardInterrupt):
        survey(store, "c", 5)
    assert not rows(store, "word_evidence")
    monkeypatch.undo()
    assert survey(store, "c", 5) == Surveyed(5, 5, 0)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["tea", "--top", "5"], 2, "--top: prints no answers"),
        (
            ["--top", "5", "--contrast", "gendered"],
            2,
            "contrast 'gendered': is not a pair of counted words",
        ),
        (["--top", "5", "--clusters", "word"], 2, "source"),
        (["--top", "5", "--corpus", "no"], 2, "corpus 'no'"),
        (["--top", "5", "--sentences-for", "2"], 0, "leans of 5 words and sentences with 2"),
    ],
)
def test_the_command(
    arguments: list[str],
    status: int,
    message: str,
    store: Store,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["why", *arguments, "--warehouse", str(store.root)]) == status
    said = capsys.readouterr()
    assert message in said.out + said.err


def test_too_many_sources(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "MOST_CELLS", 20)
    with pytest.raises(surveys.UsageProblem, match="--top 5"):
        survey(store, "c", 6)
    assert survey(store, "c", 5).n_words == 5
