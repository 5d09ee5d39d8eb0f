"""Find where a word or phrase occurs: count it, and show sampled occurrences in their context."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from threading import Lock
from typing import NamedTuple, TypeAlias
from warnings import warn

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from plumbline.jobs.counting.co_occurrences import Occurrences, Query, co_occurrences
from plumbline.jobs.counting.kept_documents import Documents, Evidence, Shard, evidence_of
from plumbline.jobs.evidence.index import (
    Hashes,
    Index,
    Row,
    mixed,
    of_phrase,
    parsed,
    read_index,
    text_hashes,
)
from plumbline.jobs.kernel.pair_runs import Ints
from plumbline.jobs.kernel.tokens.tokenizer import Tokenizer
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.finding import LEAST_CLUSTERS
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.input.shards import field_value, is_parquet, lines, text_column
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import is_unicode

#: Pattern of a chunk of text. The tokenizer splits each chunk into words independently.
_CHUNK = re.compile(r"[^\s\x00]+")
#: Number of chunks shown on each side of an occurrence and its target.
_N_CONTEXT = 8
#: Number of texts that are tokenized in one batch.
_BATCH = 256
#: When this many new occurrences are waiting, those that are not sampled are dropped.
_MOST_PENDING = 200_000
#: Field in which `corpus pack` stores the name of a document's file.
_FILE_FIELD = "meta.file"


@dataclass(frozen=True)
class Sampling:
    """How many occurrences to sample for each word and side of a contrast, and the random seed."""

    n: int = 5
    seed: int = 0


class Occurrence(NamedTuple):
    """One occurrence of a word near a target.

    Attributes:
        rank: hash of the document's words, the position and the seed. The occurrences with the
            lowest ranks are sampled.
        word: index of the word in ``Query.words``.
        side: 0 if the target is female, 1 if it is male.
        shard, row: index of the document's shard, and the document's row in that shard.
        text_hash: hash of the document's kept words.
        position, target_position: positions of the word and of the nearest target among the
            document's kept words, counted from 0.
    """

    rank: int
    word: int
    side: int
    shard: int
    row: int
    text_hash: int
    position: int
    target_position: int


_HASHES = ("rank", "text_hash")
_RECORD = np.dtype([(x, np.uint64 if x in _HASHES else np.int64) for x in Occurrence._fields])
_Records = NDArray[np.void]


class OccurrenceSample:
    """A random sample of the occurrences that are passed to ``offer``.

    For each word and side, the sample keeps the ``sampling.n`` occurrences with the lowest ranks. A
    rank depends only on the text and the seed. So every occurrence is equally likely to be sampled,
    and the order of documents and shards doesn't matter. Occurrences in copies of a document have
    equal ranks and count as one.
    """

    def __init__(self, query: Query, sampling: Sampling) -> None:
        self._n = sampling.n
        self._seed = np.array([sampling.seed], np.uint64)
        self._is_target_of_side = [np.isin(query.targets, side) for side in query.sides]
        self._held, self._lock = [np.empty(0, _RECORD)], Lock()

    def offer(self, shard: int, found: Occurrences, hashes: Hashes) -> None:
        """Add a batch's occurrences to the sample if their ranks are low enough. Thread-safe."""
        offered = []
        for side, is_target in enumerate(self._is_target_of_side):
            pair = np.flatnonzero(is_target[found.target])
            distance = np.abs(found.target_at[pair] - found.at[found.occurrence[pair]])
            pair = pair[np.lexsort((distance, found.occurrence[pair]))]
            occurrence, nearest = np.unique(found.occurrence[pair], return_index=True)
            document = found.document[occurrence]
            position = found.documents.places(found.at[occurrence], document)
            with np.errstate(over="ignore"):
                scaled = position.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
                rank = mixed(hashes[document] ^ mixed(scaled + mixed(self._seed)))
            target_at = found.target_at[pair[nearest]]
            records = np.empty(occurrence.size, _RECORD)
            records["rank"], records["word"], records["side"] = rank, found.word[occurrence], side
            records["shard"], records["row"] = shard, found.documents.row[document]
            records["text_hash"], records["position"] = hashes[document], position
            records["target_position"] = found.documents.places(target_at, document)
            offered.append(_lowest(records, self._n))
        with self._lock:
            self._held += offered
            if sum(map(len, self._held)) > 2 * len(self._held[0]) + _MOST_PENDING:
                self._held = [_lowest(np.concatenate(self._held), self._n)]

    def occurrences(self) -> list[Occurrence]:
        """Return the sample, sorted by word, side and rank."""
        lowest = _lowest(np.concatenate(self._held), self._n)
        return [Occurrence(*record) for record in lowest.tolist()]


def _lowest(records: _Records, n: int) -> _Records:
    """Return, for each word and side, one record for each of the ``n`` lowest ranks."""
    keys = ("row", "shard", "rank", "side", "word")  # lexsort sorts by its last key first
    records = records[np.lexsort([records[key] for key in keys])]
    key, rank = records["word"] * 2 + records["side"], records["rank"]
    starts = np.diff(key, prepend=-1) != 0
    distinct = starts | np.append(True, rank[1:] != rank[:-1])[: rank.size]
    number = np.cumsum(distinct)
    number -= np.maximum.accumulate(np.where(starts, number, 0))
    lowest: _Records = records[distinct & (number < n)]
    return lowest


def snippet_rows(
    evidence: Evidence, index: Index, sample: Sequence[Occurrence], seed: int
) -> list[Row]:
    """Return rows of ``word_snippet`` for a sample, without the columns corpus, contrast and run.

    Occurrences in shards that can't be read or have changed are left out, and a warning says how
    many. Each shard is read once, and only as far as needed.
    """
    hashes, n_copies = np.unique(index.text_hash, return_counts=True)
    copies = n_copies[np.searchsorted(hashes, np.array([o.text_hash for o in sample], np.uint64))]
    texts = _snippets(evidence, index.query, sample)
    if n_missing := len(sample) - len(texts):
        gone = "their shards are gone or have changed"
        warn(f"{n_missing:,} of {len(sample):,} sentences are left out: {gone}", stacklevel=2)
    sampled = {(o.shard, o.row) for o in sample}
    places = zip(index.shard.tolist(), index.row.tolist(), index.pairs.source.tolist(), strict=True)
    source = {(shard, row): k for shard, row, k in places if (shard, row) in sampled}
    rows, number = [], dict.fromkeys(((o.word, o.side) for o in sample), 0)
    for o, n in zip(sample, copies.tolist(), strict=True):
        if o not in texts:
            continue
        number[o.word, o.side] += 1
        row = {
            "word": index.query.words[o.word],
            "side": "ab"[o.side],
            "place": number[o.word, o.side],
            "seed": seed,
            **texts[o],
            "shard": evidence.shards[o.shard].name,
            "source_row": o.row,
            "source": index.sources[source[o.shard, o.row]],
            "position": o.position,
            "n_copies": n,
        }
        rows.append(row)
    return rows


def _snippets(
    evidence: Evidence, query: Query, occurrences: Sequence[Occurrence]
) -> dict[Occurrence, Row]:
    """Return {occurrence: text around it}. Skip shards that can't be read or have changed."""
    tokenizer = Tokenizer(evidence.targets.words, language=evidence.targets.language)
    snippet_of: dict[Occurrence, Row] = {}
    by_shard: list[dict[int, list[Occurrence]]] = [{} for _ in evidence.shards]
    for occurrence in occurrences:
        by_shard[occurrence.shard].setdefault(occurrence.row, []).append(occurrence)
    for shard, by_row in zip(evidence.shards, by_shard, strict=True):
        texts = _texts(shard, evidence.options.text_field, by_row) if by_row else iter(())
        while batch := list(islice(texts, _BATCH)):
            snippet_of.update(_from_texts(query, batch, by_row, tokenizer))
    return snippet_of


#: A document: its row number in the shard, its text, and its ``meta.file``, if any.
_RowText: TypeAlias = tuple[int, str, str | None]


def _texts(shard: Shard, field: str, rows: Collection[int]) -> Iterator[_RowText]:
    """Yield the texts of the given rows of a shard. Stop at the first row that can't be read.

    Texts that can't be encoded as UTF-8 are skipped. Nothing after the last given row is read.
    """
    with suppress(PlumblineError, OSError, ValueError):
        path, start, last = located(shard.name), 1, max(rows)
        for batch in text_column(path, field) if is_parquet(path) else ():
            for row in sorted(r for r in rows if start <= r < start + len(batch)):
                yield row, batch[row - start].as_py() or "", None
            start += len(batch)
            if start > last:
                return
        for row, line in enumerate(() if is_parquet(path) else lines(path), 1):
            if row in rows:
                parsed = json.loads(line)
                record = parsed if isinstance(parsed, dict) else {}
                file = field_value(record, _FILE_FIELD)
                text = str(field_value(record, field)), file if isinstance(file, str) else None
                if is_unicode(text[0]) and is_unicode(text[1] or ""):
                    yield row, *text
            if row >= last:
                return


def _from_texts(
    query: Query,
    texts: Sequence[_RowText],
    by_row: Mapping[int, Sequence[Occurrence]],
    tokenizer: Tokenizer,
) -> Iterator[tuple[Occurrence, Row]]:
    """Yield the text around each occurrence, unless its document has changed since counting."""
    spans = [[match.span() for match in _CHUNK.finditer(text)] for _, text, _ in texts]
    split = [
        tokenizer.words_of_chunks([text[a:b] for a, b in spans_of_text])
        for (_, text, _), spans_of_text in zip(texts, spans, strict=True)
    ]
    ids = query.ids(pa.array([word for words, _ in split for word in words], pa.string()))
    ends = np.cumsum([0, *(len(words) for words, _ in split)])
    rows = np.array([row for row, _, _ in texts])
    documents = Documents(ids, ends, rows, pa.nulls(len(texts), pa.string()))
    hashes = text_hashes(documents, query.keys).tolist()
    for k, (row, text, file) in enumerate(texts):
        words, chunk_ends = split[k]
        for o in by_row[row]:
            if o.text_hash == hashes[k]:
                last = o.position + (len(query.phrase) or 1) - 1
                places = np.searchsorted(
                    chunk_ends, [o.position, last, o.target_position], side="right"
                )
                parts = _parts(text, spans[k], *places.tolist())
                yield o, {"target": words[o.target_position], **parts, "file": file}


def _parts(text: str, spans: Sequence[tuple[int, int]], start: int, end: int, target: int) -> Row:
    """Return the text of chunks start..end, with enough text around them to show ``target``."""
    first = max(min(start, target) - _N_CONTEXT, 0)
    last = min(max(end, target) + _N_CONTEXT, len(spans) - 1)
    cuts = spans[first][0], spans[start][0], spans[end][1], spans[last][1]
    before, keyword, after = (" ".join(text[a:b].split()) for a, b in pairwise(cuts))
    return {"text_before": before, "keyword": keyword, "text_after": after}


def concordance(store: Store, corpus: str, query: str, sampling: Sampling) -> tuple[Row, list[Row]]:
    """Count a word or phrase in a corpus. Return a row of counts, and rows of sampled text.

    The query ``WORD NEAR OTHER...`` counts how often WORD is less than a window away from one of
    the other words. A group's name in capitals (``FEMALE``) stands for all words of that group in
    the corpus's word lists. ``n_pair`` depends on the corpus's counting rule. Under `pairs`, it
    counts the pairs of WORD and one of the other words. Under `windows`, it counts the windows that
    contain WORD and one of the other words.

    Raises:
        UsageProblem: the corpus is unknown or lacks a word, or nothing is before or after ``NEAR``.
        MissingComponent: the corpus's kept documents are not on this machine.
        BadInput: the corpus's kept documents are damaged.
    """
    evidence = evidence_of(store, corpus)
    text, context = parsed(store, evidence.corpus, query)
    rule, window = evidence.options.rule, evidence.options.window
    vocabulary = store.read("word_count", corpus=corpus)["word"].combine_chunks()
    base = Query((), context or (text,), (), (), rule, window, vocabulary)
    question = of_phrase(base, corpus, text)
    sample = OccurrenceSample(question, sampling)

    def count(shard: int, found: Occurrences, hashes: Hashes) -> Ints:
        """Count per document: occurrences, those near a word after ``NEAR``, and ``n_pair``."""
        every = np.arange(found.at.size)
        # Treat all words after NEAR as one target. Without NEAR, treat each occurrence as a target.
        occurrence, at = (found.occurrence, found.target_at) if context else (every, found.at)
        found = replace(
            found, occurrence=occurrence, target=np.zeros_like(occurrence), target_at=at
        )
        sample.offer(shard, found, hashes)
        document, _, _, n = co_occurrences(question, found)
        documents = found.document, found.document[np.unique(occurrence)]
        sizes = [np.bincount(x, minlength=hashes.size) for x in documents]
        n_pair = np.bincount(document, n, hashes.size) if context else np.zeros(hashes.size)
        return np.stack([*sizes, n_pair.astype(np.int64)])

    index, counted = read_index(evidence, question, count)
    n_word, n, n_pair = np.concatenate([np.empty((3, 0), np.int64), *counted], axis=1)
    clusters = evidence.clusters
    cluster = index.pairs.source if clusters == "source" else np.arange(n.size)
    counts = {
        **{"corpus": corpus, "query": query, "n": int(n.sum()), "n_documents": int((n > 0).sum())},
        **{"clusters": clusters, "n_clusters": int(np.unique(cluster[n > 0]).size)},
        **ratio("per_million", n, index.n_kept / 1e6, cluster),
        **({"n_word": int(n_word.sum())} if context else {}),
        **(ratio("share_near", n, n_word, cluster, is_share=True) if context else {}),
        **({"n_pair": int(n_pair.sum())} if context else {}),
    }
    lines = snippet_rows(evidence, index, sample.occurrences(), sampling.seed)
    return counts, [{"query": query, **line} for line in lines]


def ratio(
    name: str, n: ArrayLike, of: ArrayLike, cluster: ArrayLike, *, is_share: bool = False
) -> Row:
    """Return the ratio r = sum(n) / sum(of) and its 95% interval, in columns named after ``name``.

    The standard error is linearised and cluster-robust (see ``evidence.lean``). Cluster k has the
    influence (n_k - r of_k) / sum(of). D is the number of clusters with ``of`` above 0, and C is
    the number with ``n`` above 0. The variance is D / (D - 1) times the sum of the squared
    influences. The interval is Student's t with C - 1 degrees of freedom, computed for log r, or
    for the log odds of a share. A share of 0 or 1 gets the exact interval for D trials.

    All values are ``None`` if ``of`` sums to 0. The interval is ``None`` if C is below
    ``LEAST_CLUSTERS``, or, for a share of 0 or 1, if D is below ``LEAST_CLUSTERS``.

    >>> row = ratio("share", [2, 3, 1, 1, 1], [2, 3, 1, 1, 1], range(5), is_share=True)
    >>> round(row["share_low"], 6)  # 0.025 ** (1 / 5)
    0.478176
    """
    from scipy.special import expit, logit, stdtrit

    counted, base = np.asarray(n, np.float64), np.asarray(of, np.float64)
    ends = f"{name}_low", f"{name}_high"
    if not base.sum() > 0:
        return dict.fromkeys((name, *ends))
    _, at = np.unique(np.asarray(cluster), return_inverse=True)
    n_of, base_of = np.bincount(at, counted), np.bincount(at, base)
    drawn, with_n = int((base_of > 0).sum()), int((n_of > 0).sum())
    r = float(n_of.sum() / base_of.sum())
    if (drawn if is_share and r in (0, 1) else with_n) < LEAST_CLUSTERS:
        return {name: r, **dict.fromkeys(ends)}
    if is_share and r in (0, 1):
        far = 0.025 ** (1 / drawn)
        return dict(zip((name, *ends), (r, r * far, 1 - (1 - r) * far), strict=True))
    squares = np.square((n_of - r * base_of) / base_of.sum()).sum()
    half = stdtrit(with_n - 1, 0.975) * np.sqrt(squares * drawn / (drawn - 1)) / r
    if is_share:
        low, high = (expit(logit(r) + sign * half / (1 - r)) for sign in (-1, 1))
    else:
        low, high = (r * np.exp(sign * half) for sign in (-1, 1))
    return {name: r, **dict(zip(ends, (float(low), float(high)), strict=True))}
