"""Counting by brute force in plain Python: slow, obvious, and what the kernel must equal."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.counter import Counter as Kernel
from plumbline.jobs.kernel.counter import ShardCounts
from plumbline.jobs.kernel.tokens.tokenizer import Targets, tokenize
from plumbline.warehouse.storage.store import Store

TARGETS = ("she", "he", "her", "queen")
WORDS = [*TARGETS, "tea", "nurse", "x-ray", "the", "Notwithstanding"]
DOCUMENT = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)


def bare(rule: Any = "pairs", window: int = 10, targets: str = "gendered") -> CorpusOptions:
    """Options of a count that keeps no documents."""
    return CorpusOptions(rule=rule, window=window, targets=targets, evidence=False)


class Tables(dict[str, list[pa.Table]]):
    """What a counter hands over, by kind."""

    def __call__(self, kind: str, table: pa.Table) -> None:
        self.setdefault(kind, []).append(table)

    def of(self, kind: str) -> pa.Table:
        return pa.concat_tables(self[kind])


def count_texts(
    texts: Sequence[str], targets: Targets, options: CorpusOptions
) -> tuple[ShardCounts, Tables]:
    """What the kernel counts in texts, one document each."""
    tables = Tables()
    kernel = Kernel(targets, options, tables)
    kernel.feed_texts(texts)
    return kernel.result(), tables


@dataclass
class OracleCounts:
    """Counts of words, (word, target) pairs and all co-occurrences."""

    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    total: int = 0


def _positions(tokens: Sequence[str], window: int, counts: OracleCounts) -> None:
    for i in range(len(tokens)):
        for j in range(i + 1, min(i + window, len(tokens))):
            counts.total += 1
            counts.pairs[tokens[i], tokens[j]] += 1
            if tokens[i] != tokens[j]:
                counts.pairs[tokens[j], tokens[i]] += 1


def _windows(tokens: Sequence[str], window: int, counts: OracleCounts) -> None:
    for start in range(max(1, len(tokens) - window + 1)):
        held = Counter(tokens[start : start + window])
        for word in held:
            for other in held:
                if word != other:
                    counts.pairs[word, other] += 1
                    counts.total += word < other
        for word, n in held.items():
            if n >= 2:
                counts.pairs[word, word] += 1
                counts.total += 1


def oracle(
    texts: Iterable[str],
    targets: Sequence[str],
    rule: str,
    window: int,
    pairs_with: Sequence[str] | None = None,
    split: Callable[[str, Sequence[str]], list[str]] = tokenize,
) -> OracleCounts:
    """Count texts, one document each; pairs with the targets, or with the words given."""
    counts = OracleCounts()
    for text in texts:
        tokens = split(text, targets)
        counts.words.update(tokens)
        (_positions if rule == "pairs" else _windows)(tokens, window, counts)
    wanted = set(targets if pairs_with is None else pairs_with)
    counts.pairs = Counter({k: n for k, n in counts.pairs.items() if k[1] in wanted})
    return counts


def stored(store: Store, corpus: str = "c") -> OracleCounts:
    """A warehouse's counts in the oracle's shape, checking that each key occurs once."""
    words = store.read("word_count", corpus=corpus).to_pylist()
    pairs = store.read("pair_count", corpus=corpus).to_pylist()
    (total,) = store.read("corpus", corpus=corpus)["n_pairs"].to_pylist()
    n_word = Counter({r["word"]: r["n_word"] for r in words})
    n_pair = Counter({(r["word"], r["target"]): r["n_pair"] for r in pairs})
    assert len(n_word) == len(words) and len(n_pair) == len(pairs)
    return OracleCounts(n_word, n_pair, total)


def as_oracle(counts: ShardCounts, tables: Tables) -> OracleCounts:
    """The kernel's counts in the oracle's shape, checking that each key occurs once."""
    of_words, of_pairs = tables.of("words"), tables.of("pairs")
    words = {r["word"]: r["n_word"] for r in of_words.to_pylist()}
    pairs = {(r["word"], r["target"]): r["n_pair"] for r in of_pairs.to_pylist()}
    assert len(words) == of_words.num_rows and len(pairs) == of_pairs.num_rows
    assert sum(words.values()) == counts.n_kept_tokens
    return OracleCounts(Counter(words), Counter(pairs), counts.n_pairs)
