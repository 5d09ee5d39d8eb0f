"""The closed world: what is planted, what is written, and that counting finds it again."""

import math
import re
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.benchmarks.closed_world import read
from plumbline.eval_workers.pairs.closed_world_texts import WorldOptions, documents, write_world
from plumbline.eval_workers.pairs.closed_world_words import (
    grammar,
    lexicon,
    planted_deltas,
    planted_rows,
    planted_words,
)
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.offline import offline_pairs
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import oracle

GENDERED = frozenset(
    re.findall(
        r"\w+",
        """man woman men women boy girl mother father sister brother wife husband aunt uncle lady
        gentleman king queen prince princess actor actress waiter waitress host hostess nun monk
        she he her his him hers himself herself mr mrs son daughter bride groom widow""",
    )
)
SWAP = {"she": "he", "he": "she", "her": "H", "his": "H", "him": "H"}


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def texts(world: str, n: int) -> list[str]:
    return [t for t, _ in islice(documents(WorldOptions(world=world), 0), n)]


def corpus_frames() -> list[str]:
    return [frame for shape in grammar().openings + grammar().followups for frame in shape]


def test_lexicon_words_are_plain_unique_neutral_and_not_stop_words() -> None:
    stop = pytest.importorskip("spacy.lang.en.stop_words").STOP_WORDS
    every = [w for words in lexicon().values() for w in words]
    assert len(every) >= 400 and len(set(every)) == len(every)
    for word in every:
        assert re.fullmatch(r"[a-z]+", word), word
        assert word not in stop and word not in GENDERED, word
    fixed = {w for frame in corpus_frames() for w in words_of(re.sub(r"\{\w+\}", " ", frame))}
    assert not fixed & set(every)
    assert set(grammar().fixed_words) == fixed - stop


# --- what is written -------------------------------------------------------------------------


def test_the_swapped_world_is_the_straight_one_with_she_and_he_exchanged() -> None:
    straight, swapped = texts("straight", 3000), texts("swapped", 3000)
    forms = Counter()
    for a, b in zip(straight, swapped, strict=True):
        pairs = list(zip(a.split(), b.split(), strict=True))
        for x, y in pairs:
            if x != y:
                x, y = x.strip(".,").lower(), y.strip(".,").lower()
                assert SWAP[x] == y or SWAP[x] == SWAP[y] == "H"
                forms[x, y] += 1
        pronouns = set(words_of(a)) & SWAP.keys()
        assert pronouns <= {"she", "her"} or pronouns <= {"he", "his", "him"}
        assert pronouns
        assert not pronouns & set(words_of(b))
    assert set(forms) == {
        ("she", "he"), ("he", "she"), ("her", "his"), ("her", "him"), ("his", "her"), ("him", "her")
    }  # fmt: skip


def test_slots_are_filled_with_the_planted_probabilities() -> None:
    """Every word's count among the documents of each gender, against its binomial error."""
    women, men = Counter[str](), Counter[str]()
    for text in texts("straight", 40_000):
        found = words_of(text)
        (women if {"she", "her"} & set(found) else men).update(found)
    scores = []
    for name in lexicon():
        members = [w for w in planted_words(0) if w.word_class == name]
        for counts, shares in ((women, "p_she"), (men, "p_he")):
            n = sum(counts[w.word] for w in members)
            for w in members:
                p = getattr(w, shares)
                scores.append((counts[w.word] - n * p) / math.sqrt(n * p * (1 - p)))
    assert max(map(abs, scores)) < 5
    assert 0.9 < np.std(scores) < 1.1


def count_windows(documents_: list[str]) -> dict[str, float]:
    """delta(w) = PMI(w, she) - PMI(w, he) by the plainest possible count of position pairs."""
    counts = oracle(documents_, SWAP, "pairs", 10)
    n, together = counts.words, counts.pairs
    return {
        w: math.log(together[w, "she"] * n["he"] / (together[w, "he"] * n["she"]))
        for w in n
        if together[w, "she"] and together[w, "he"]
    }


def test_counting_windows_finds_the_planted_leans_with_slope_one() -> None:
    """At 300,000 words; over five seeds: rank correlation 0.974 to 0.977, slope 1.00 to 1.04."""
    measured = count_windows(texts("straight", 16_000))
    planted = {w.word: w.delta_nats for w in planted_words(0)}
    assert planted.keys() <= measured.keys()
    x, y = list(planted.values()), [measured[w] for w in planted]
    assert spearmanr(x, y).statistic >= 0.96
    assert 0.93 < np.polyfit(x, y, 1)[0] < 1.07
    swapped = count_windows(texts("swapped", 3000))
    both = [w for w in planted if w in swapped]
    assert spearmanr([planted[w] for w in both], [swapped[w] for w in both]).statistic < -0.8


def test_benchmark_frames_are_held_out_but_use_only_words_of_the_corpus(store: Store) -> None:
    imported = import_benchmark(store, "closed-world", None, "r")
    rows = store.read("benchmark_pair").to_pylist()
    assert len(imported.pairs) == len(rows) >= 1200 and len(imported.rejects) == 0
    seen = {s for text in texts("straight", 20_000) for s in re.findall(r"[A-Z][^.]*\.", text)}
    vocabulary = {w for s in seen for w in words_of(s)}
    for row in rows:
        sentences = {row["sentence_a"], row["sentence_b"]}
        assert not sentences & seen
        assert set(words_of(" ".join(sentences))) <= vocabulary
    assert not set(corpus_frames()) & {f for frames in grammar().probes.values() for f in frames}


def test_each_word_is_tested_in_both_orders_and_a_perfect_learner_prefers_by_its_lean() -> None:
    deltas, by_word = planted_deltas(0), dict[str, list[bool]]()
    for pair in read("closed-world", None).pairs:
        template, word = str(pair["template"]), str(pair["word"])
        ratio = math.fsum(deltas.get(w, 0.0) for w in words_of(template))
        assert ratio == pytest.approx(deltas[word], abs=1e-12)
        assert (template.index(word) > template.index("{pronoun")) == pair["pronoun_first"]
        by_word.setdefault(word, []).append(bool(pair["pronoun_first"]))
    assert by_word.keys() == {w for words in lexicon().values() for w in words}
    assert all(sorted(firsts) == [False, False, True, True] for firsts in by_word.values())


@pytest.mark.parametrize(
    ("word", "most_words", "named"), [("lecture", 12, "lecture"), ("baker", 4, "at most 4 words")]
)
def test_what_no_frame_takes_is_named(store: Store, word: str, most_words: int, named: str) -> None:
    store.publish("planted_word", planted_rows("c", 0, "straight"), unit="a", run_id="r")
    with pytest.raises(UsageProblem, match=named):
        offline_pairs(store, "b", [word], BuildSpec(corpus="c", max_words=most_words))


def test_offline_sentences_are_of_the_language_of_the_corpus(store: Store) -> None:
    classes = {f"{{{name}}}": f"({'|'.join(words)})" for name, words in lexicon().items()}
    frames = [
        re.compile("".join(classes.get(p) or re.escape(p) for p in re.split(r"(\{\w+\})", frame)))
        for frame in corpus_frames()
    ]
    held_out = {pair["template"] for pair in read("closed-world", None).pairs}
    words = [words[k] for words in lexicon().values() for k in (0, -1)]
    store.publish("planted_word", planted_rows("c", 0, "straight"), unit="a", run_id="r")
    rows = offline_pairs(store, "b", words, BuildSpec(corpus="c", max_words=12))
    assert len(rows) == len({row["pair_id"] for row in rows}) == 10 * len(words)
    for row in rows:
        template = str(row["template"])
        assert any(frame.fullmatch(template) for frame in frames), template
        assert template not in held_out and row["word"] in words_of(template)
        assert row["pronoun_first"] == template.startswith("{")
        assert len(template.split()) <= 12 and row["source_file"] == "offline-writer/closed-world"
    for word in words:
        of = [row for row in rows if row["word"] == word]
        assert len({row["source_row"] for row in of}) == 10, "each in a frame of its own"
        assert sum(bool(row["pronoun_first"]) for row in of) == 5
    leaning = [len(set(words_of(str(r["template"]))) & planted_deltas(0).keys()) for r in rows]
    assert max(leaning) > 4, "other words of the lexicon stand beside the seed word"


def test_swapping_the_worlds_turns_every_lean_round_and_changes_no_frequency() -> None:
    straight, swapped = planted_deltas(3), planted_deltas(3, "swapped")
    assert straight.keys() == swapped.keys()
    assert all(swapped[w] == pytest.approx(-d, abs=1e-15) for w, d in straight.items())
    assert planted_deltas(4) != straight
    with pytest.raises(UsageProblem, match="sideways"):
        planted_words(0, "sideways")


def test_the_same_options_write_the_same_bytes(tmp_path: Path) -> None:
    options = WorldOptions(n_tokens=30_000, seed=5, n_shards=2)
    made = [
        [shard.read_bytes() for shard in write_world(o, tmp_path / d)[0]]
        for o, d in ((options, "a"), (options, "b"), (replace(options, seed=6), "c"))
    ]
    assert made[0] == made[1] and made[0][0] != made[2][0]
