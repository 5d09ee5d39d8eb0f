"""Co-occurrences of words with targets by cluster of documents, for a cluster bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.jobs.counting.co_occurrences import QueryOfAll, co_occurrences, find
from plumbline.jobs.counting.document_words import FEWEST_SOURCES, Evidence
from plumbline.jobs.kernel.pair_runs import Ints, Run, summed

#: Most clusters; document or source k is in cluster k modulo this. A variance over so many clusters
#: has a relative error of sqrt(2 / 200), 10%, and the counts stay small.
MOST_CLUSTERS = 200
#: Most counts held in memory before equal cells are added up.
_MOST_PENDING = 5_000_000


class ClusterCounts(NamedTuple):
    """Co-occurrences ``n`` by index of cluster, word and target; only counts above 0 have a row.

    ``clusters`` is the unit of clustering, ``source`` or ``document``. ``n_clusters`` includes
    clusters without any co-occurrence.
    """

    clusters: str
    n_clusters: int
    cluster: Ints
    word: Ints
    target: Ints
    n: Ints


def cluster_counts(
    evidence: Evidence, vocabulary: pa.StringArray, targets: Sequence[str]
) -> ClusterCounts:
    """Count co-occurrences under the rule ``pairs`` for each cluster of a corpus's documents.

    A cluster is a source if there are ten or more sources, else a document; see ``MOST_CLUSTERS``.

    Args:
        vocabulary: all words of the corpus, sorted.
        targets: words, each once.
    """
    # Counts don't depend on the sides, so all targets go to one side.
    window = evidence.options.window
    query = QueryOfAll((), tuple(targets), (), (), "pairs", window, vocabulary)
    sources = pa.array(sorted(evidence.sources, key=str), pa.string())
    by_source = len(sources) >= FEWEST_SOURCES
    shape = MOST_CLUSTERS, len(vocabulary), len(targets)
    n_before, n_pending, parts = 0, 0, list[Run]()
    for shard in evidence.shards:
        for documents in evidence.documents(shard, query.ids):
            cluster = np.arange(n_before, n_before + len(documents.row))
            n_before += len(documents.row)
            if by_source:
                cluster = pc.index_in(documents.source, value_set=sources).to_numpy()
            document, word, target, n = co_occurrences(query, find(query, documents))
            cell = (cluster % MOST_CLUSTERS)[document], word, target
            parts.append((np.ravel_multi_index(cell, shape), n))
            n_pending += n.size
            if n_pending > _MOST_PENDING:
                parts, n_pending = [summed(parts)], 0
    distinct, n = summed(parts)
    n_clusters = min(len(sources) if by_source else n_before, MOST_CLUSTERS)
    kind = "source" if by_source else "document"
    cluster, word, target = np.unravel_index(distinct, shape)
    return ClusterCounts(kind, n_clusters, cluster, word, target, n)
