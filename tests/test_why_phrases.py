"""A phrase is answered as a word that the text would have in its place."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.jobs.evidence.explanation import Sampling, explain
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store

WORDS = ["old", "woman", "man", "she", "he", "her", "his", "tea", "nurse", "man sat old", "walked"]


def texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    made = [" ".join(draw.choices(WORDS, k=draw.randint(0, 40))) for _ in range(60)]
    return [*made, "old", "woman old", "old woman", "old old woman woman she", *made[:7]]


def counted(store: Store, corpus: str, some: list[str], rule: str, shards: Path) -> None:
    paths = []
    for k, part in enumerate((some[::2], some[1::2])):
        paths.append(shards / f"{corpus}{k}.jsonl.zst")
        write_jsonl_zst(paths[-1], part)
    count_corpus(store, corpus, paths, CorpusOptions(rule=rule))


def answers(store: Store, corpus: str, word: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of every table but the sentences, of a word that is called otherwise."""
    rows = explain(store, corpus, [word], "she/he", Sampling(3, 0))
    left = ("corpus", "run_id", "frequency_rank", "per_million", "pmi_f_nats", "pmi_m_nats")
    return {
        table: [
            {k: v for k, v in row.items() if k not in (*left, "delta_nats_count_se")}
            | {"word": name}
            | ({"collocate": row["collocate"].replace(word, name)} if "collocate" in row else {})
            for row in some
        ]
        for table, some in rows.items()
        if table != "word_snippet"
    }


@pytest.mark.parametrize("rule", ["pairs", "windows"])
@pytest.mark.parametrize("phrase", ["old woman", "she walked", "man sat old", "old old"])
def test_a_phrase_is_a_word_of_the_text_written_so(
    store: Store, tmp_path: Path, rule: str, phrase: str
) -> None:
    some = texts(len(phrase))
    written = [re.sub(rf"\b{phrase}\b", "phrase", text) for text in some]
    assert sum("phrase" in text for text in written) > 4
    counted(store, "apart", some, rule, tmp_path)
    counted(store, "joined", written, rule, tmp_path)
    ours, theirs = answers(store, "apart", phrase, "x"), answers(store, "joined", "phrase", "x")
    assert ours["word_evidence"][0]["n_word"] == sum(text.count("phrase") for text in written)
    for table, rows in theirs.items():
        own, others = (sorted(x, key=str) for x in (ours[table], rows))
        for one, other in zip(own, others, strict=True):
            assert one == pytest.approx(other, nan_ok=True), table


@pytest.mark.parametrize("rule", ["pairs", "windows"])
@pytest.mark.parametrize("near", ["nurse", "tea walked", "old", "MALE"])
def test_a_word_near_others_is_a_word_of_the_text_written_so(
    store: Store, tmp_path: Path, rule: str, near: str
) -> None:
    others = {"he", "his", "man"} if near == "MALE" else set(near.split())

    def written(text: str) -> str:
        words = text.split()
        around = [{*words[max(0, k - 9) : k], *words[k + 1 : k + 10]} for k in range(len(words))]
        return " ".join(
            "phrase" if word == "old" and not others.isdisjoint(around[k]) else word
            for k, word in enumerate(words)
        )

    some = texts(3)
    counted(store, "apart", some, rule, tmp_path)
    counted(store, "joined", list(map(written, some)), rule, tmp_path)
    ours = answers(store, "apart", f"old NEAR {near}", "x")
    theirs = answers(store, "joined", "phrase", "x")
    n, n_old = ours["word_evidence"][0]["n_word"], sum(text.split().count("old") for text in some)
    assert n == sum(written(text).count("phrase") for text in some) and 9 < n < n_old
    for table, rows in theirs.items():
        own, rest = (sorted(x, key=str) for x in (ours[table], rows))
        for one, other in zip(own, rest, strict=True):
            assert one == pytest.approx(other, nan_ok=True), table


@pytest.mark.parametrize("phrase", ["old zebra", "old woman sat old woman sat"])
def test_a_phrase_that_cannot_be_found_is_one_line(
    store: Store, tmp_path: Path, phrase: str
) -> None:
    counted(store, "c", texts(1), "windows", tmp_path)
    with pytest.raises(UsageProblem, match=r"^phrase '.*(more than 5 words|kept no word 'zebra')"):
        explain(store, "c", [phrase])
