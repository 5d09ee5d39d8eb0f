"""Counts of a corpus to ``word_association`` and ``word_delta``.

Runs in the calling process, one target or contrast at a time: the counts of a corpus are a few
million short rows whatever the size of its text, so Spark would add start-up and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from plumbline.jobs.association.measures import Counts, association_rows, delta_rows
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Associated:
    """What was written: rows of ``word_association`` and of ``word_delta``, and the contrasts."""

    n_associations: int
    n_deltas: int
    contrasts: tuple[str, ...]


def corpus_row(store: Store, corpus: str) -> dict[str, Any]:
    """The row of ``corpus`` by name. Raises ``UsageProblem`` naming the corpora there are."""
    rows: list[dict[str, Any]] = store.read("corpus", corpus=corpus).to_pylist()
    if rows:
        return rows[0]
    known = ", ".join(sorted(store.read("corpus")["corpus"].to_pylist()))
    problem = f"not in the warehouse, only {known}" if known else "no corpus is in the warehouse"
    raise UsageProblem(
        f"corpus {corpus!r}", problem, f"plumbline corpus count ... --corpus {corpus}"
    )


def corpus_list(store: Store, row: dict[str, Any]) -> wordlists.WordList:
    """The word list of a counted corpus, given its row: as counted, whatever its file says now."""
    rows = store.read("word_list", corpus=row["corpus"]).to_pylist()
    return wordlists.from_rows(rows) if rows else wordlists.load(row["targets"])


def usable_lists(own: wordlists.WordList) -> dict[str, wordlists.WordList]:
    """By name, a corpus's own word list and the built-in ones whose words are all in it.

    >>> sorted(usable_lists(wordlists.load("gendered")))
    ['gendered', 'she-he']
    >>> sorted(usable_lists(wordlists.load("she-he")))
    ['she-he']
    """
    counted = set(own.targets)
    loaded = {name: wordlists.load(name) for name in wordlists.names()}
    return {n: x for n, x in loaded.items() if counted.issuperset(x.targets)} | {own.name: own}


@writes_corpus
def associate(store: Store, corpus: str) -> Associated:
    """Compute PMI of every (word, target) and delta of every contrast of a counted corpus.

    Contrasts are all pairs of the word lists whose words were counted, and each such list of
    several pairs (Eq. 4). Rows exist only where every count needed is above 0. Associations of
    benchmark pairs and seed words made from older deltas are dropped.

    Raises:
        UsageProblem: no such corpus, or one that was imported without counts.
    """
    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        raise UsageProblem(f"corpus {corpus!r}", "was imported, so it has no counts to associate")
    own = corpus_list(store, row)
    lists = usable_lists(own)
    with recorded(store, "corpus associate", {"corpus": corpus, "lists": sorted(lists)}) as run:
        counts = Counts(
            store.read("word_count", corpus=corpus),
            # A corpus counted with all pairs has many more targets than the list.
            store.read("pair_count", ds.field("target").isin(own.targets), corpus=corpus),
            row["n_kept_tokens"],
            row["n_pairs"],
            row["rule"],
            row["window"],
        )
        for table in ("pair_association", "seed_word"):
            store.drop(table, {"corpus": corpus})
        rows = association_rows(counts, own.targets)
        n = _write(store, "word_association", corpus, run, rows)
        n_deltas = _write(store, "word_delta", corpus, run, delta_rows(counts, lists))
    pairs = [p.contrast for x in lists.values() for p in x.pairs]
    several = [name for name, x in lists.items() if len(x.pairs) > 1]
    return Associated(n, n_deltas, tuple(dict.fromkeys([*pairs, *several])))


def _write(store: Store, table: str, corpus: str, run_id: str, tables: Iterable[pa.Table]) -> int:
    staged = store.stage(table, {"corpus": corpus}, run_id)
    n_rows = 0
    for k, rows in enumerate(tables):
        rows = rows.append_column("corpus", pa.array([corpus] * rows.num_rows, pa.string()))
        n_rows += staged.write_part(f"part-{k:05}", rows.to_batches())
    store.commit(staged)
    return n_rows
