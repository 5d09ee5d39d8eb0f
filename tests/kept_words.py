"""Corpora as kept words in memory: what counting keeps, without counting."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from plumbline.jobs.counting.co_occurrences import Query
from plumbline.jobs.counting.kept_documents import Documents, Evidence, Shard, ValueOf
from plumbline.jobs.evidence.index import Index, read_index
from plumbline.jobs.evidence.lean import leans
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse.wordlists import WordPair


@dataclass(frozen=True)
class KeptWords(Evidence):
    """Documents by shard, each a list of kept words, with a source each."""

    texts: Sequence[Sequence[Sequence[str]]] = ()
    named: Sequence[Sequence[str | None]] = ()

    @cached_property
    def sources(self) -> tuple[str | None, ...]:
        """The sources as they appear."""
        return tuple(dict.fromkeys(name for names in self.named for name in names))

    def documents(self, shard: Shard, value_of: ValueOf) -> Iterator[Documents]:
        """In two parts, since a shard's documents come some at a time."""
        k = self.shards.index(shard)
        texts, sources = self.texts[k], self.named[k]
        half = len(texts) // 2
        for start, end in ((0, half), (half, len(texts))):
            some = texts[start:end]
            words = [word for text in some for word in text]
            distinct = sorted(set(words))
            place = {word: n for n, word in enumerate(distinct)}
            values = value_of(pa.array(distinct, pa.string()))
            yield Documents(
                values[[place[word] for word in words]],
                np.cumsum([0, *map(len, some)]),
                np.arange(start + 1, end + 1),
                pa.array(sources[start:end], pa.string()),
            )


def made(
    texts: Sequence[Sequence[str]], sources: Sequence[str | None] = (), n_shards: int = 1
) -> KeptWords:
    """Documents spread over shards in runs, as if they had been counted."""
    sources = sources or [None] * len(texts)
    cuts = np.linspace(0, len(texts), n_shards + 1).astype(int).tolist()
    parts = list(pairwise(cuts))
    return KeptWords(
        {},
        Targets(("she", "he")),
        CorpusOptions(),
        Path(),
        tuple(Shard(f"{k}.jsonl", str(k)) for k in range(n_shards)),
        [texts[a:b] for a, b in parts],
        [sources[a:b] for a, b in parts],
    )


def question(
    texts: Sequence[Sequence[str]],
    words: Sequence[str],
    rule: str = "pairs",
    window: int = 10,
    female: Sequence[str] = ("she",),
    male: Sequence[str] = ("he",),
    pruned: Sequence[str] = (),
) -> Query:
    """A query of words of these texts."""
    known = sorted({word for text in texts for word in text} - set(pruned))
    listed = tuple(dict.fromkeys((*female, *male)))
    vocabulary = pa.array(known, pa.string())
    return Query(tuple(words), tuple(female), tuple(male), listed, rule, window, vocabulary)


def indexed(kept: Evidence, query: Query) -> Index:
    """The index of documents for a query."""
    return read_index(kept, query, lambda *_: None)[0]


def lean(index: Index) -> SimpleNamespace:
    """The lean (she/he) of the first word asked about over all documents, as numbers."""
    pairs = [WordPair("she", "he")]
    documents = index.pairs
    found = leans(index.query, pairs, documents.by("document"), documents, np.array([0]))
    return SimpleNamespace(**{name: x.item() for name, x in found._asdict().items()})
