"""Queries of a corpus's documents: words, a phrase, or either near other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.corpus_lookup import corpus_lists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
NEAR = "NEAR"
#: Most words of a phrase.
LONGEST_PHRASE = 5


@dataclass(frozen=True)
class Query:
    """Words to find in a corpus, and the targets whose co-occurrences with them are counted.

    Attributes:
        words: distinct words to find.
        female, male: the targets of each side; no word is on both.
        listed: all targets of the corpus, which don't count as collocates.
        rule, window: how co-occurrences were counted.
        vocabulary: the words of the corpus by id, sorted; then the phrase, if there is one.
        phrase: the words of a phrase, which is then the only item of ``words``; each of its
            occurrences counts as one word.
        context: if given, an occurrence of the phrase counts only with one of these words less than
            a window before its first or after its last word.
    """

    words: tuple[str, ...]
    female: tuple[str, ...]
    male: tuple[str, ...]
    listed: tuple[str, ...]
    rule: str
    window: int
    vocabulary: pa.StringArray
    phrase: tuple[str, ...] = ()
    context: tuple[str, ...] = ()

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets of both sides, each once."""
        return tuple(dict.fromkeys(self.female + self.male))

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The female and the male targets."""
        return self.female, self.male

    @property
    def steps(self) -> tuple[int, ...]:
        """Distances less than a window: negative to the left, positive to the right."""
        return (*range(1 - self.window, 0), *range(1, self.window))

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """A hash of each word's letters, by id; the last hash is for words left out (id -1)."""
        digests = (blake2b(w.encode(), digest_size=8).digest() for w in self.vocabulary.to_pylist())
        return np.frombuffer(b"".join([*digests, bytes(8)]), np.uint64)

    def ids(self, words: pa.StringArray) -> NDArray[np.int32]:
        """Ids of words, -1 for words that the corpus left out."""
        indices = pc.index_in(words.cast(self.vocabulary.type), value_set=self.vocabulary)
        ids: NDArray[np.int32] = indices.fill_null(-1).to_numpy().astype(np.int32)
        return ids

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Array from id to index in ``words``, -1 for other words; the last item is for id -1."""
        table = np.full(len(self.vocabulary) + 1, -1, np.int32)
        ids = self.ids(pa.array(words, pa.string()))
        table[ids[ids >= 0]] = np.flatnonzero(ids >= 0)
        return table

    @cached_property
    def word_table(self) -> NDArray[np.int32]:
        """``table`` of the words."""
        return self.table(self.words)

    @cached_property
    def target_table(self) -> NDArray[np.int32]:
        """``table`` of the targets."""
        return self.table(self.targets)


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
