"""Queries of a corpus's documents: words, a phrase, or either near other words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from plumbline.jobs.counting.co_occurrences import Query
from plumbline.jobs.counting.corpus_lookup import corpus_lists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
NEAR = "NEAR"
#: Most words of a phrase.
LONGEST_PHRASE = 5


def parsed(store: Store, corpus: Row, query: str) -> tuple[str, tuple[str, ...]]:
    """The word or phrase of a query, and the words after ``NEAR``; no words without ``NEAR``.

    A group's name in capitals (``nurse NEAR FEMALE``) stands for its listed words. Raises
    ``UsageProblem`` if a side of ``NEAR`` is empty, or counting didn't keep a word after it.
    """
    left, near, right = f" {normalised(query)} ".partition(f" {NEAR} ")
    text, others = left.strip(), right.split()
    if not text or (near and not others):
        fix = "give words on both sides, as 'nurse NEAR she her'"
        raise UsageProblem(f"query {query!r}", "is not complete", fix)
    groups: dict[str, list[str]] = {}
    kept = set(store.read("word_count", corpus=corpus["corpus"])["word"].to_pylist())
    for words in corpus_lists(store, corpus):
        kept.update(words.targets)  # counting never drops targets
        for name, side in zip(words.groups or (), "ab", strict=False):
            groups.setdefault(name.upper(), []).extend(getattr(p, side) for p in words.pairs)
    if unknown := [x for x in others if x not in groups and x.lower() not in kept]:
        problem = f"corpus {corpus['corpus']!r} kept no word {unknown[0]!r}"
        fix = ", ".join(["give kept words", *(f"or {name}" for name in groups)])
        raise UsageProblem(f"query {query!r}", problem, fix)
    expanded = (word for x in others for word in groups.get(x, [x.lower()]))
    return text, tuple(dict.fromkeys(expanded))


def normalised(query: str) -> str:
    """A query with single spaces, in lower case before ``NEAR``.

    >>> normalised("Old  Nurse NEAR  FEMALE")
    'old nurse NEAR FEMALE'
    """
    left, near, right = f" {' '.join(query.split())} ".partition(f" {NEAR} ")
    return f"{left.lower()}{near}{right}".strip()


def of_phrase(
    query: Query, corpus: str, text: str, context: tuple[str, ...] = (), name: str = ""
) -> Query:
    """The query of a phrase or word; if words ``context`` are given, only near them.

    ``name`` stands for the phrase in results, by default ``text``.

    Raises ``UsageProblem`` for a phrase that is too long or has a word that isn't in the corpus.
    """
    phrase = tuple(text.split())
    if len(phrase) > LONGEST_PHRASE:
        raise UsageProblem(f"phrase {text!r}", f"has more than {LONGEST_PHRASE} words")
    ids = query.ids(pa.array(phrase, pa.string()))
    if (ids < 0).any():
        word = phrase[int(np.argmin(ids))]
        what = "phrase" if phrase[1:] else "word"
        raise UsageProblem(f"{what} {text!r}", f"corpus {corpus!r} kept no word {word!r}")
    if not phrase[1:] and not context:
        return replace(query, words=phrase)
    name = name or text
    vocabulary = pa.concat_arrays([query.vocabulary, pa.array([name], pa.string())])
    return replace(query, words=(name,), vocabulary=vocabulary, phrase=phrase, context=context)
