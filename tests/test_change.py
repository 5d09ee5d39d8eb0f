"""`corpus compare` and `corpus filter`: errors of differences, adjusted p, and what is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.counting.document_words import evidence_of
from plumbline.jobs.evidence.change import adjusted, compare
from plumbline.jobs.evidence.lean import lean
from plumbline.jobs.evidence.sightings import Inquiry, look
from plumbline.jobs.evidence.subset import SubsetRule, write_subset
from plumbline.jobs.evidence.survey import survey
from plumbline.jobs.kernel import tokenize
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import documents, lines
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair

WORDS = ["tea", "nurse", "captain", "war", "rose", "king", "ship", "milk"]


def texts(n: int, seed: int, she: float = 0.5, nurse: float = 0.5) -> list[str]:
    """Documents of a few sentences; `nurse` goes with she by that share, all else by ``she``."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        sentences = []
        for _ in range(rng.integers(1, 6)):
            word = rng.choice(WORDS)
            share = nurse if word == "nurse" else she
            # Stop words are not kept, and eleven other words keep sentences out of each window.
            filler = " ".join(f"f{rng.integers(50)}" for _ in range(11))
            sentences.append(f"{'she' if rng.random() < share else 'he'} {word} {filler}")
        made.append(" ".join(sentences))
    return made


def corpus(store: Store, name: str, rows: Sequence[str | tuple[str, str]], where: Path) -> Path:
    """Count texts, or texts with their sources, as a corpus of two shards."""
    records = [{"text": r} if isinstance(r, str) else _record(*r) for r in rows]
    paths = []
    for k, part in enumerate((records[: len(records) // 2], records[len(records) // 2 :])):
        paths.append(where / f"{name}-{k}.jsonl")
        paths[-1].write_text("".join(json.dumps(r) + "\n" for r in part), encoding="utf-8")
    count_corpus(store, CountRequest(name, tuple(paths)))
    return paths[0]


def _record(text: str, source: str) -> dict[str, Any]:
    return {"text": text, "meta": {"pile_set_name": source}}


def counts(rows: Sequence[str], word: str) -> tuple[np.ndarray, np.ndarray]:
    """Co-occurrences with she and he, and occurrences of these, of each document: brute force."""
    near, n = np.zeros((len(rows), 2)), np.zeros((len(rows), 2))
    for d, text in enumerate(rows):
        tokens = tokenize(text)
        for i, token in enumerate(tokens):
            if token in ("she", "he"):
                n[d, int(token == "he")] += 1
                around = tokens[max(i - 9, 0) : i] + tokens[i + 1 : i + 10]
                near[d, int(token == "he")] += around.count(word)
    return near, n


def delta(near: np.ndarray, n: np.ndarray, times: np.ndarray) -> float:
    c, totals = times @ near, times @ n
    return float(np.log(c[0] / c[1]) - np.log(totals[0] / totals[1]))


def test_changes_and_their_errors_are_those_of_a_bootstrap(store: Store, tmp_path: Path) -> None:
    a, b = texts(300, 1), texts(200, 2, nurse=0.9)
    corpus(store, "a", a, tmp_path)
    corpus(store, "b", b, tmp_path)
    done = compare(store, "a", "b", "r")
    assert not {"she", "he"} & set(done.rows["word"].to_pylist())
    found = {row["word"]: row for row in done.rows.to_pylist()}
    assert set(WORDS) <= set(found) and (done.n_documents_a, done.n_documents_b) == (300, 200)
    assert done.n_documents_both == 0
    rng = np.random.default_rng(3)
    for word in ("nurse", "tea"):
        both = counts(a, word), counts(b, word)
        ones = [np.ones(len(n)) for _, n in both]
        first, second = (delta(*x, w) for x, w in zip(both, ones, strict=True))
        assert found[word]["delta_a_nats"] == pytest.approx(first)
        assert found[word]["change_nats"] == pytest.approx(second - first)
        odds = [np.log(n[:, 0].sum() / n[:, 1].sum()) for _, n in both]
        assert found[word]["base_change_nats"] == pytest.approx(odds[0] - odds[1])
        draws = [
            delta(*both[1], rng.multinomial(200, np.full(200, 1 / 200)))
            - delta(*both[0], rng.multinomial(300, np.full(300, 1 / 300)))
            for _ in range(500)
        ]
        assert 0.88 < np.std(draws) / found[word]["change_nats_se"] < 1.12
    assert found["nurse"]["q"] < 0.05 < found["tea"]["q"]
    assert found["nurse"]["change_nats_low"] > 0


@pytest.mark.filterwarnings("error")
def test_a_contrast_that_never_occurs_has_no_changes(store: Store, tmp_path: Path) -> None:
    corpus(store, "a", ["tea rose", "tea"], tmp_path)
    corpus(store, "b", ["king he tea", "tea"], tmp_path)
    corpus(store, "copy", ["tea rose", "tea"], tmp_path)
    for other, n_words in (("copy", 2), ("b", 3)):
        done = compare(store, "a", other, "r")
        assert (done.n_words, done.n_near, done.rows.num_rows) == (n_words, 0, 0)


def test_documents_in_both_texts_are_drawn_together(store: Store, tmp_path: Path) -> None:
    """Against a bootstrap over the documents of the whole, of which the other is a part."""
    a = texts(300, 4)
    corpus(store, "a", a, tmp_path)
    corpus(store, "part", a[:220], tmp_path)
    done = compare(store, "a", "part", "r")
    assert done.n_documents_both == 220
    row = next(r for r in done.rows.to_pylist() if r["word"] == "nurse")
    near, n = counts(a, "nurse")
    rng = np.random.default_rng(5)
    draws = []
    for _ in range(500):
        times = rng.multinomial(300, np.full(300, 1 / 300))
        inside = np.where(np.arange(300) < 220, times, 0)
        draws.append(delta(near, n, inside) - delta(near, n, times))
    assert 0.85 < np.std(draws) / row["change_nats_se"] < 1.15
    alone = np.hypot(*(_error(store, name) for name in ("a", "part")))
    assert row["change_nats_se"] < 0.75 * alone


def _error(store: Store, name: str) -> float:
    words = store.read("word_count", corpus=name)["word"].combine_chunks()
    question = Inquiry(("nurse",), ("she",), ("he",), (), "pairs", 10, words)
    return lean(look(evidence_of(store, name), question), 0, [WordPair("she", "he")]).delta_nats_se


def test_of_equal_texts_none_in_twenty_is_clear_and_copies_change_nothing(
    store: Store, tmp_path: Path
) -> None:
    a = texts(200, 6)
    corpus(store, "a", a, tmp_path)
    corpus(store, "b", texts(200, 7), tmp_path)
    corpus(store, "again", a[::-1], tmp_path)
    rows = compare(store, "a", "b", "r", min_pairs=1).rows.to_pylist()
    assert len(rows) > 30 and sum(r["q"] < 0.05 for r in rows) <= 1
    assert stats.kstest([r["p"] for r in rows], "uniform").pvalue > 1e-4
    same = compare(store, "a", "again", "r", min_pairs=1)
    assert same.n_documents_both == 200
    assert np.abs(same.rows["change_nats"].to_numpy()).max() < 1e-12
    assert same.rows["change_nats_se"].to_numpy().max() < 1e-6
    assert set(same.rows["q"].to_pylist()) == {1.0}


def test_sources_are_compared_and_recounting_drops_what_is_stale(
    store: Store, tmp_path: Path
) -> None:
    rows = [(t, "diary") for t in texts(150, 8, nurse=0.85)]
    rows += [(t, "log: of a ship") for t in texts(150, 9, nurse=0.2)]
    corpus(store, "c", rows, tmp_path)
    corpus(store, "d", texts(20, 10), tmp_path)
    done = compare(store, "c:diary", "c:log: of a ship", "r")
    nurse = next(row for row in done.rows.to_pylist() if row["word"] == "nurse")
    assert nurse["change_nats_high"] < -0.5 and nurse["q"] < 0.01
    compare(store, "d", "c:diary", "r", min_pairs=1)
    assert {r["text_a"] for r in store.read("word_change").to_pylist()} == {"c:diary", "d"}
    corpus(store, "c", rows[:-1], tmp_path)
    assert store.read("word_change").num_rows == 0
    with pytest.raises(UsageProblem, match="source 'song': is not one of corpus c"):
        compare(store, "c:song", "d", "r")
    with pytest.raises(UsageProblem, match="are the same"):
        compare(store, "d", "d", "r")
    with pytest.raises(UsageProblem, match="is not a pair of d"):
        compare(store, "d", "c", "r", "gendered")


def test_adjusted_p_is_scipys() -> None:
    p = np.random.default_rng(0).random(200) ** 3
    assert adjusted(p) == pytest.approx(stats.false_discovery_control(p))


def test_filtered_documents_are_the_lines_that_a_rule_keeps(store: Store, tmp_path: Path) -> None:
    a = texts(40, 11)
    near = a[5].split()
    near[3:4] = ["other"]
    rows = [(t, "x") for t in a] + [(a[0].upper(), "y"), (a[1], "y"), (" ".join(near), "y")]
    corpus(store, "c", rows, tmp_path)

    def left(rule: SubsetRule) -> list[str]:
        out = tmp_path / f"out-{rule.copies}-{len(rule.sources)}-{len(rule.without)}"
        done = write_subset(store, "c", rule, out)
        found = [t for path in done.shards for t in documents(path)]
        assert (done.n_documents, done.n_kept) == (43, len(found))
        return found

    everything = [text for text, _ in rows]
    assert left(SubsetRule()) == everything
    assert left(SubsetRule("once")) == [*a, everything[42]]
    assert left(SubsetRule(sources=("y",))) == left(SubsetRule(without=("x",))) == everything[40:]
    # The copy that stays is the first in the sources that stay, whatever lies before it.
    assert left(SubsetRule("once", without=("x",))) == everything[40:]
    assert len(left(SubsetRule("near-once", sources=("y",)))) == 3
    long = [t for t in everything if t not in left(SubsetRule("near-once"))]
    assert long[-1] in (everything[42], everything[41])
    with pytest.raises(UsageProblem, match="source 'z': is not one of corpus c"):
        left(SubsetRule(sources=("z",)))
    # The same call begins again, another is refused.
    assert left(SubsetRule("once")) == [*a, everything[42]]
    with pytest.raises(UsageProblem, match="is not empty"):
        left(SubsetRule(without=("y",)))  # into the directory of SubsetRule(without=("x",))
    (tmp_path / "c-0.jsonl").write_text("{}\n")
    with pytest.raises(BadInput, match="has changed since it was counted"):
        left(SubsetRule())


@pytest.fixture
def many_sources(store: Store, tmp_path: Path) -> Store:
    """Corpus p of a Parquet file: documents of 1,100 sources, and 20 of none."""
    names = [f"s{k:05}" for k in range(1100)]
    sources = [*names, *[None] * 20, *["s01050"] * 60]
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"text": texts(len(sources), 14), "source": sources}), path)
    count_corpus(store, CountRequest("p", (path,), source_field="source"))
    return store


def test_every_source_can_be_chosen_and_none_is_made_up(
    many_sources: Store, tmp_path: Path
) -> None:
    def written(rule: SubsetRule, out: str) -> list[dict[str, Any]]:
        done = write_subset(many_sources, "p", rule, tmp_path / out)
        return [json.loads(line) for path in done.shards for line in lines(path)]

    records = written(SubsetRule(), "all")
    assert len(records) == 1180 and sum("source" in r for r in records) == 1160
    assert {r["source"] for r in records if "source" in r} == {f"s{k:05}" for k in range(1100)}
    assert len(written(SubsetRule(sources=("s01050",)), "one")) == 61
    assert all("source" not in r for r in written(SubsetRule(sources=("(none)",)), "none"))
    done = compare(many_sources, "p", "p:s01050", "r", min_pairs=1)
    assert (done.n_documents_a, done.n_documents_b) == (1180, 61)


def test_the_corpus_of_a_text_is_the_one_of_that_very_name(store: Store, tmp_path: Path) -> None:
    rows = [(t, "b") for t in texts(60, 15)]
    for name in ("a", "a:b", "d"):
        corpus(store, name, rows if name != "d" else texts(60, 16), tmp_path)
    compare(store, "a:b", "d", "r", min_pairs=1)
    n = store.read("word_change").num_rows
    corpus(store, "a", rows[:-1], tmp_path)
    assert n and store.read("word_change").num_rows == n
    corpus(store, "a:b", rows[:-2], tmp_path)
    assert not store.read("word_change").num_rows


def test_a_pair_is_of_two_words_also_of_an_added_list(store: Store, tmp_path: Path) -> None:
    added = tmp_path / "nobles.toml"
    pair = '{ female = "rose", male = "king" }'
    added.write_text(f'description = "d"\nsource = "s"\npairs = [{pair}]\n')
    for name, seed in (("a", 17), ("b", 18)):
        corpus(store, name, texts(80, seed), tmp_path)
        associate(store, name, str(added))
    for contrast in ("she/she", "rose/ship"):
        with pytest.raises(UsageProblem, match="is not a pair of a"):
            compare(store, "a", "b", "r", contrast)
        with pytest.raises(UsageProblem, match="is not a pair of counted words"):
            survey(store, "a", 5, contrast)
    done = compare(store, "a", "b", "r", "rose/king", min_pairs=1)
    assert set(done.rows["contrast"].to_pylist()) == {"rose/king"}
    assert survey(store, "a", 5, "rose/king").n_words == 5


def test_the_commands(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus(store, "a", texts(100, 12), tmp_path)
    corpus(store, "b", texts(100, 13, nurse=0.95), tmp_path)
    where = ["--warehouse", str(store.root)]
    assert main(["corpus", "compare", "a", "b", "--min-pairs", "2", "--n", "3", *where]) == 0
    shown = capsys.readouterr().out
    assert "lean otherwise in b than in a: 1 more to she, 0 more to he" in shown
    assert "nurse" in shown and "word_change" in shown
    n = store.read("word_change").num_rows
    words = set(store.read("word_count")["word"].to_pylist()) - {"she", "he"}
    of_all = f"Of {len(words)} words {n} are compared: those with 2 co-occurrences or more "
    assert f"{of_all}(--min-pairs) with each side in both texts" in shown
    assert re.search(
        r"nats are in every difference, since b has \d\.\d\d times as many she per", shown
    )
    out = str(tmp_path / "once")
    assert (
        main(["corpus", "filter", "--corpus", "a", "--copies", "once", "--out", out, *where]) == 0
    )
    assert re.search(r" a +│ +100 │ +100 │ +2 ", capsys.readouterr().out)
    assert main(["report", "--out", str(tmp_path / "page"), *where]) == 0
    page = (tmp_path / "page/appendix.html").read_text(encoding="utf-8")
    assert "Words that lean otherwise in b than in a" in page
