"""Copies and near copies of documents, by their kept words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.jobs.counting.kept_documents import Documents
from plumbline.jobs.evidence.index import Bools, Hashes, Index, mixed
from plumbline.jobs.kernel.pair_runs import Ints

#: Kept words per shingle, permutations per MinHash signature, and permutations per band.
_SHINGLE, _PERMUTATIONS, _BAND = 5, 128, 4
#: Near copies have at least this estimated Jaccard similarity of shingles. The similarity is 0.63
#: if one word in twenty differs, and 1/3 if half of the text is the same.
LEAST_SIMILARITY = 0.5
#: Documents with more copies than this are also counted separately.
OFTEN = 10


class Signatures(NamedTuple):
    """MinHash signatures of documents.

    Attributes:
        shard, row: index of each document's shard, and the document's row in that shard.
        signature: uint32[n, 128].
    """

    shard: Ints
    row: Ints
    signature: NDArray[np.uint32]


def signatures(shard: int, documents: Documents, chosen: Ints, keys: Hashes) -> Signatures:
    """Compute signatures of the documents with indices ``chosen``; ``keys`` has words' hashes."""
    from rensa import RMinHash

    shingles = [
        _shingles(keys[documents.values[documents.offsets[k] : documents.offsets[k + 1]]])
        for k in chosen
    ]
    ends = np.cumsum([0, *map(len, shingles)], dtype=np.uint64)
    flat = np.concatenate([np.empty(0, np.uint64), *shingles])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(flat, ends, _PERMUTATIONS, 1)
    minhash = np.array(matrix.to_rows(), np.uint32).reshape(-1, _PERMUTATIONS)
    return Signatures(np.full(chosen.size, shard), documents.row[chosen], minhash)


def _shingles(keys: Hashes) -> Hashes:
    """Hash all runs of _SHINGLE words, or all words at once if there are fewer."""
    n = max(keys.size - _SHINGLE + 1, 1)
    hashed = np.zeros(n, np.uint64)
    for k in range(min(_SHINGLE, keys.size)):
        hashed = mixed(hashed + keys[k : k + n])
    return hashed


def first_copies(index: Index) -> Bools:
    """Return a mask of the first copy of each text."""
    _, first = np.unique(index.text_hash, return_index=True)
    return np.isin(np.arange(index.text_hash.size), first)


def first_near_copies(index: Index, some: Signatures, word: int) -> Bools:
    """Return a mask of first copies that are left without near copies (MinHash, single linkage).

    Only documents are compared that have a signature and in which ``word`` (an index) co-occurs. A
    document is compared with the first one that has an equal band, and is its near copy if at least
    a share ``LEAST_SIMILARITY`` of their signatures is equal. Of documents linked as near copies,
    only the first is left.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    kept = first_copies(index)
    every, few = (np.stack([x.shard, x.row], axis=1) for x in (index, some))
    place = {(shard, row): k for k, (shard, row) in enumerate(every.tolist())}
    document = np.array([place[shard, row] for shard, row in few.tolist()], np.int64)
    order = np.argsort(document)
    order = order[np.isin(document[order], index.pairs.unit[index.pairs.word == word])]
    document, signature = document[order], some.signature[order]
    edges = [np.empty((2, 0), np.int64)]
    for start in range(0, _PERMUTATIONS, _BAND):
        band = np.ascontiguousarray(signature[:, start : start + _BAND])
        _, first, inverse = np.unique(
            band.view(f"V{4 * _BAND}").ravel(), return_index=True, return_inverse=True
        )
        leader = first[inverse]
        similar = (signature == signature[leader]).mean(axis=1) >= LEAST_SIMILARITY
        edges.append(np.stack([np.flatnonzero(similar), leader[similar]]))
    a, b = np.concatenate(edges, axis=1)
    graph = coo_array((np.ones(a.size, np.bool_), (a, b)), shape=(document.size,) * 2)
    _, group = connected_components(graph, directed=False)
    _, first = np.unique(group, return_index=True)
    later = np.ones(document.size, np.bool_)
    later[first] = False
    kept[document[later]] = False
    return kept
