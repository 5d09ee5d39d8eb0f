"""A phrase, or a word near others, is answered as a word that the text would have instead."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plumbline.jobs.evidence.concordance import Sampling
from plumbline.jobs.evidence.explanation import explain
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
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


def near(others: set[str], text: str) -> str:
    """A text in which ``old`` is another word where one of these is near."""
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
    + [(f"old NEAR {name}", partial(near, others)) for name, others in NEAR.items()],
)
def test_a_phrase_is_a_word_of_the_text_written_so(
    store: Store, tmp_path: Path, rule: str, query: str, written: Callable[[str], str]
) -> None:
    some = texts(3)
    instead = list(map(written, some))
    counted(store, "apart", some, rule, tmp_path)
    counted(store, "joined", instead, rule, tmp_path)
    ours, theirs = answers(store, "apart", query, "x"), answers(store, "joined", "phrase", "x")
    n = sum(text.count("phrase") for text in instead)
    assert ours["word_evidence"][0]["n_word"] == n > 4
    for table, rows in theirs.items():
        own, others = (sorted(x, key=str) for x in (ours[table], rows))
        for one, other in zip(own, others, strict=True):
            assert one == pytest.approx(other, nan_ok=True), table
