"""Co-occurrences of words with targets by cluster of documents, to draw clusters again from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.jobs.counting.kept_documents import FEWEST_SOURCES, Evidence
from plumbline.jobs.evidence.change import near_targets
from plumbline.jobs.evidence.sightings import Inquiry, Ints

#: Most clusters: later documents or sources join the clusters of earlier ones in turn. The error of
#: a variance from so many is 7%, and the counts stay small.
MOST_CLUSTERS = 200
#: Counts that may wait to be added up.
_WAITING = 5_000_000


class ClusterCounts(NamedTuple):
    """Co-occurrences ``n`` of each cluster, word and target that meet, by index.

    ``clusters`` says what they are, ``source`` or ``document``; clusters in which nothing meets
    count in ``n_clusters`` too.
    """

    clusters: str
    n_clusters: int
    cluster: Ints
    word: Ints
    target: Ints
    n: Ints


def cluster_counts(
    evidence: Evidence,
    vocabulary: pa.StringArray,
    targets: Sequence[str],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ClusterCounts:
    """Count co-occurrences under the rule ``pairs`` for each cluster of a corpus's documents.

    Clusters are the sources where there are ten or more, else the documents.

    Args:
        vocabulary: all words of the corpus, sorted.
        targets: words, each once.
        progress: called with (shards done, shards).
    """
    # All targets on one side: which side it is on doesn't matter to a count.
    question = Inquiry((), tuple(targets), (), (), "pairs", evidence.options.window, vocabulary)
    sources = pa.array(sorted(evidence.sources(), key=str), pa.string())
    by_source = len(sources) >= FEWEST_SOURCES
    size = len(vocabulary), len(targets)
    cells, counts, start = np.empty(0, np.int64), np.empty(0, np.int64), 0
    waiting = [(cells, counts)]
    for k, shard in enumerate(evidence.shards, 1):
        for documents in evidence.documents(shard, question.ids):
            n_documents = len(documents.row)
            cluster = np.arange(start, start + n_documents)
            if by_source:
                cluster = pc.index_in(documents.source, value_set=sources).to_numpy()
            document, word, target, n = near_targets(question, documents)
            of = (cluster % MOST_CLUSTERS)[document]
            waiting.append((np.ravel_multi_index((of, word, target), (MOST_CLUSTERS, *size)), n))
            if sum(len(n) for _, n in waiting[1:]) > _WAITING:
                waiting = [_added(waiting)]
            start += n_documents
        progress(k, len(evidence.shards))
    cells, counts = _added(waiting)
    n_clusters = min(len(sources) if by_source else start, MOST_CLUSTERS)
    cluster, word, target = np.unravel_index(cells, (MOST_CLUSTERS, *size))
    kind = "source" if by_source else "document"
    return ClusterCounts(kind, n_clusters, cluster, word, target, counts)


def _added(waiting: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Each cell once, with the sum of its counts."""
    cells, at = np.unique(np.concatenate([cells for cells, _ in waiting]), return_inverse=True)
    weights = np.concatenate([n for _, n in waiting])
    return cells, np.bincount(at, weights, cells.size).astype(np.int64)
