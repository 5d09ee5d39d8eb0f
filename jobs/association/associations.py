"""Tables ``word_association`` and ``word_delta`` of a corpus, computed from its counts.

This runs in the calling process, one target or contrast at a time: the counts of a corpus are a few
million short rows whatever the size of its text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from plumbline.jobs.association.measures import Counts, association_rows, contrasts, delta_rows
from plumbline.jobs.corpus_lookup import corpus_list, corpus_row
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store

#: Tables of a corpus that are made from its deltas.
_FROM_DELTAS = ("pair_association", "seed_word")


@dataclass(frozen=True)
class Associated:
    """Rows written to ``word_association`` and ``word_delta``, and the names of the contrasts.

    ``dropped`` are the tables that held rows made from older deltas, and how many.
    """

    n_associations: int
    n_deltas: int
    contrasts: tuple[str, ...]
    dropped: dict[str, int]


def usable_lists(own: wordlists.WordList) -> dict[str, wordlists.WordList]:
    """By name, a corpus's own word list and the installed ones whose words are all in it.

    >>> sorted(usable_lists(wordlists.load("gendered")))
    ['gendered', 'pronouns', 'she-he']
    >>> sorted(usable_lists(wordlists.load("she-he")))
    ['she-he']
    """
    counted = set(own.targets)
    named = {name: wordlists.load(name) for name in wordlists.LISTS.names()}
    return {n: x for n, x in named.items() if counted.issuperset(x.targets)} | {own.name: own}


@writes_corpus
def associate(store: Store, corpus: str) -> Associated:
    """Compute the PMI of every (word, target) and the delta of every contrast of a corpus.

    Contrasts are all pairs of the word lists whose words were counted, and each such list of
    several pairs (Eq. 4). There are rows only where every count needed is above 0. MaxPMI of
    benchmarks and seed words computed from older deltas are dropped.

    Raises:
        UsageProblem: the corpus is unknown, or was imported and so has no counts.
    """
    row = corpus_row(store, corpus)
    if row["source"] != "counted":
        raise UsageProblem(f"corpus {corpus!r}", "was imported, so it has no counts to associate")
    own = corpus_list(store, row)
    lists = usable_lists(own)
    with recorded(store, "corpus associate", {"corpus": corpus, "lists": sorted(lists)}) as run_id:
        counts = Counts(
            store.read("word_count", corpus=corpus),
            # With all pairs counted there are many more targets than those of the list.
            store.read("pair_count", ds.field("target").isin(own.targets), corpus=corpus),
            row["n_kept_tokens"],
            row["n_pairs"],
            row["rule"],
            row["window"],
        )
        by_name = contrasts(lists.values())
        associations = association_rows(counts, own.targets)
        deltas = (delta_rows(counts, name, pairs) for name, pairs in by_name.items())
        snapshot, where = store.snapshot(), {"corpus": corpus}
        dropped = {t: sum(f.n_rows for f in snapshot.files(t, where)) for t in _FROM_DELTAS}
        with store.together(run_id, "corpus associate"):
            for table in _FROM_DELTAS:
                store.drop(table, {"corpus": corpus})
            n_associations = _write(store, "word_association", corpus, run_id, associations)
            n_deltas = _write(store, "word_delta", corpus, run_id, deltas)
    return Associated(n_associations, n_deltas, tuple(by_name), dropped)


def _write(store: Store, table: str, corpus: str, run_id: str, tables: Iterable[pa.Table]) -> int:
    staged = store.stage(table, {"corpus": corpus}, run_id)
    n_rows = 0
    for k, rows in enumerate(tables):
        rows = rows.append_column("corpus", pa.array([corpus] * rows.num_rows, pa.string()))
        n_rows += staged.write_part(f"part-{k:05}", rows.to_batches())
    store.commit(staged)
    return n_rows
