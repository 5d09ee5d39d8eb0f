"""How far words and phrases lean, and why: against brute force, and effects that were planted."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plumbline.jobs.counting.co_occurrences import find
from plumbline.jobs.evidence.concordance import Sampling
from plumbline.jobs.evidence.explanation import PRIOR_WORDS, collocates, contexts, explain
from plumbline.jobs.evidence.index import Row
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.pair_runs import summed
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.kept_words import indexed, lean, made, question


def write(path: Path, texts: Sequence[str], sources: Sequence[str | None] = ()) -> Path:
    lines = (
        json.dumps({"text": text, **({"meta": {"pile_set_name": source}} if source else {})})
        for text, source in zip(texts, sources or [None] * len(texts), strict=True)
    )
    path.write_text("".join(line + "\n" for line in lines))
    return path


def repetitive(rng: np.random.Generator, lean_nats: float, n: int = 60) -> list[list[str]]:
    """Documents that repeat their sentences, a window apart; tea leans to she by ``lean_nats``."""
    odds = np.exp(lean_nats)
    chances = np.array([0.25 * odds, 0.25, 1.5, 1.5])
    # As many she as he altogether, so that the ratio of the counts near tea is the planted one.
    chances[3] += chances[0] - chances[1]
    gap = ["x"] * 3
    kinds = ["tea", "she"], ["tea", "he"], ["she"], ["he"]
    texts: list[list[str]] = []
    for _ in range(n):
        n_of = rng.poisson(chances)
        times = rng.integers(1, 12)
        once = [word for kind, k in zip(kinds, n_of, strict=True) for word in k * [*kind, *gap]]
        texts.append(once * int(times))
    return texts


def test_intervals_cover_a_planted_lean() -> None:
    """... at their level, which those from the counts don't, since documents repeat themselves."""
    rng, planted, n = np.random.default_rng(1), 0.7, 200
    held = np.zeros(2)
    for _ in range(n):
        texts = repetitive(rng, planted)
        found = lean(indexed(made(texts), question(texts, ["tea"], window=4)))
        held[0] += found.delta_nats_low <= planted <= found.delta_nats_high
        half = 1.96 * np.sqrt(1 / found.n_pair_f + 1 / found.n_pair_m)
        held[1] += abs(found.delta_nats - planted) <= half
    # 95% of 200 has a standard error of 1.5 points.
    assert 0.92 <= held[0] / n <= 0.98
    assert held[1] / n < 0.6


def of_word(rows: dict[str, list[Row]], table: str, word: str = "tea") -> list[Row]:
    return [row for row in rows[table] if row["word"] == word]


def explained(
    store: Store,
    name: str,
    tmp_path: Path,
    texts: Sequence[str],
    sources: Sequence[str | None] = (),
) -> dict[str, list[Row]]:
    path = write(tmp_path / f"{name}.jsonl", texts, sources)
    count_corpus(store, name, (path,), CorpusOptions(targets="she-he", window=4))
    return explain(store, name, ["tea"], sampling=Sampling(2))


def sentences(rng: np.random.Generator, n: int, share: float) -> list[str]:
    """Documents where ``tea`` is near she in this share of its occurrences."""
    texts = []
    for _ in range(n):
        side = rng.random(6) < share
        parts = [f"tea {'she' if f else 'he'} v{rng.integers(900)} x y z q" for f in side]
        texts.append(" ".join([*parts, "she u u u u he"]))
    return texts


def test_a_planted_source_is_found(store: Store, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    texts = [*sentences(rng, 40, 0.5), *sentences(rng, 30, 0.5), *sentences(rng, 20, 0.95)]
    sources = [*["a"] * 40, *[None] * 30, *["loud"] * 20]
    rows = explained(store, "c", tmp_path, texts, sources)
    (whole,) = of_word(rows, "word_evidence")
    assert whole["delta_nats_low"] > 0
    by_source = {row["source"]: row for row in of_word(rows, "word_source")}
    assert set(by_source) == {"a", "(none)", "loud"}
    loud = by_source["loud"]
    assert loud["delta_without_nats_low"] < 0 < loud["delta_without_nats_high"]
    assert all(by_source[s]["delta_without_nats_low"] > 0 for s in ("a", "(none)"))
    assert sum(row["n_pair_f"] for row in by_source.values()) == whole["n_pair_f"]


def essay(rng: np.random.Generator) -> str:
    """200 words, 3 of them tea beside she or he."""
    words = [f"v{k:05}" for k in rng.integers(10**5, size=200)]
    for k in (20, 90, 170):
        words[k : k + 2] = ["tea", "she" if rng.random() < 0.5 else "he"]
    return " ".join(words)


def test_copies_counted_once(store: Store, tmp_path: Path) -> None:
    """Also copies in other case and punctuation; texts of which half is the same stay."""
    rng = np.random.default_rng(4)
    texts = [essay(rng) for _ in range(60)]
    texts += [text[: len(text) // 2] + essay(rng)[len(text) // 2 :] for text in texts[20:40]]
    bare = [f"document {k} without the word" for k in range(9)]
    fresh = explained(store, "fresh", tmp_path, [*bare, *texts])
    copied = [text.upper().replace(" ", ", ") + "!" for text in texts[50:55]] * 2
    rows = explained(store, "copied", tmp_path, [*bare, *texts, *copied])
    (base,), (whole,) = of_word(fresh, "word_evidence"), of_word(rows, "word_evidence")
    (once,) = of_word(rows, "word_copies")
    assert (once["n_documents"], whole["n_documents"]) == (80, 90)
    assert whole["share_copied"] == pytest.approx(15 / 90) and base["share_copied"] == 0
    for name in ("n_documents", "n_pair_f", "n_pair_m", "delta_nats", "delta_nats_low"):
        assert once[name] == pytest.approx(base[name]), name


def test_collocates_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(9)
    names = ["she", "he", "tea", *(f"w{k}" for k in range(30)), "rare"]
    p = 1 / np.arange(1, len(names) + 1)
    texts = [rng.choice(names, rng.integers(1, 40), p=p / p.sum()).tolist() for _ in range(50)]
    window = 4
    q = question(texts, ["w3", "tea"], window=window, pruned=["rare"])
    expected: dict[str, list[Counter[str]]] = {w: [Counter(), Counter()] for w in q.words}
    for text in texts:
        for k, word in enumerate(text):
            around = text[max(k - window + 1, 0) : k] + text[k + 1 : k + window]
            for side, target in enumerate(("she", "he")):
                if word in q.words and target in around:
                    can_be = (other for other in around if other not in ("she", "he", "rare"))
                    expected[word][side].update(can_be)
    parts = [
        contexts(q, find(q, some))
        for some in made(texts, n_shards=1).documents(made(texts).shards[0], q.ids)
    ]
    counted = summed([*parts])
    vocabulary = q.vocabulary.to_pylist()
    n_word = np.array([sum(text.count(word) for text in texts) for word in vocabulary])
    for k, word in enumerate(q.words):
        rows = collocates(q, counted, k, n_word).to_pylist()
        f, m = expected[word]
        assert {r["collocate"]: (r["n_f"], r["n_m"]) for r in rows} == {
            other: (f[other], m[other]) for other in f.keys() | m.keys()
        }
        z = []
        for row in rows:
            prior = PRIOR_WORDS * n_word[vocabulary.index(row["collocate"])] / n_word.sum()
            a, b = row["n_f"] + prior, row["n_m"] + prior
            odds = np.log(a / (f.total() + PRIOR_WORDS - a)) - np.log(
                b / (m.total() + PRIOR_WORDS - b)
            )
            se = np.sqrt(1 / a + 1 / b)
            shown = ("log_odds_nats", "log_odds_nats_se", "log_odds_nats_low", "log_odds_nats_high")
            by_hand = (odds, se, *stats.norm.interval(0.95, odds, se))
            assert [row[name] for name in shown] == pytest.approx(by_hand)
            z.append(abs(odds / se))
        assert z == sorted(z, reverse=True)
        q_values = stats.false_discovery_control(2 * stats.norm.sf(z))
        assert [row["q"] for row in rows] == pytest.approx(q_values)


WORDS = ["old", "woman", "man", "she", "he", "her", "his", "tea", "nurse", "man sat old", "walked"]


def drawn_texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    made = [" ".join(draw.choices(WORDS, k=draw.randint(0, 40))) for _ in range(60)]
    return [*made, "old", "woman old", "old woman", "old old woman woman she", *made[:7]]


def in_two_shards(store: Store, corpus: str, some: list[str], rule: str, shards: Path) -> None:
    paths = []
    for k, part in enumerate((some[::2], some[1::2])):
        paths.append(shards / f"{corpus}{k}.jsonl.zst")
        write_jsonl_zst(paths[-1], part)
    count_corpus(store, corpus, paths, CorpusOptions(rule=rule))


def answered(store: Store, corpus: str, word: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table but the sentences, of a word that is called otherwise."""
    rows = explain(store, corpus, [word], "she/he", Sampling(3, 0))
    left = ("corpus", "run_id", "frequency_rank", "per_million", "pmi_f_nats", "pmi_m_nats")
    return {
        table: [
            {k: v for k, v in row.items() if k not in left}
            | {"word": name}
            | ({"collocate": row["collocate"].replace(word, name)} if "collocate" in row else {})
            for row in some
        ]
        for table, some in rows.items()
        if table != "word_snippet"
    }


def joined(phrase: str, text: str) -> str:
    return re.sub(rf"\b{phrase}\b", "phrase", text)


def replaced_near(others: set[str], text: str) -> str:
    """A text in which ``old`` is another word where one of these is replaced_near."""
    words = text.split()
    around = [{*words[max(0, k - 9) : k], *words[k + 1 : k + 10]} for k in range(len(words))]
    return " ".join(
        "phrase" if word == "old" and not others.isdisjoint(around[k]) else word
        for k, word in enumerate(words)
    )


PHRASES = ("old woman", "she walked", "man sat old", "old old")
NEAR = {"nurse": {"nurse"}, "tea walked": {"tea", "walked"}, "old": {"old"}}
NEAR |= {"MALE": {"he", "his", "man"}}


@pytest.mark.parametrize("rule", ["pairs", "windows"])
@pytest.mark.parametrize(
    ("query", "written"),
    [*((phrase, partial(joined, phrase)) for phrase in PHRASES)]
    + [(f"old NEAR {name}", partial(replaced_near, others)) for name, others in NEAR.items()],
)
def test_a_phrase_is_a_word_of_the_text_written_so(
    store: Store, tmp_path: Path, rule: str, query: str, written: Callable[[str], str]
) -> None:
    some = drawn_texts(3)
    instead = list(map(written, some))
    in_two_shards(store, "apart", some, rule, tmp_path)
    in_two_shards(store, "joined", instead, rule, tmp_path)
    ours, theirs = answered(store, "apart", query, "x"), answered(store, "joined", "phrase", "x")
    n = sum(text.count("phrase") for text in instead)
    assert ours["word_evidence"][0]["n_word"] == n > 4
    for table, rows in theirs.items():
        own, others = (sorted(x, key=str) for x in (ours[table], rows))
        for one, other in zip(own, others, strict=True):
            assert one == pytest.approx(other, nan_ok=True), table
