"""Compare the pairs of a word list, such as she/he and woman/man.

For each pair, count the words that have a delta. For every two pairs, compute Kendall's tau between
their deltas, which says whether the two pairs rank words alike. Intervals of tau come from
resampling documents, since words aren't independent: words of a document occur together, and a
window can contain target words of both pairs. Resampling words would make the interval too narrow
or too wide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.co_occurrences import Query, co_occurrences, find
from plumbline.jobs.counting.corpus_lookup import corpus_lists, corpus_row
from plumbline.jobs.counting.kept_documents import FEWEST_SOURCES, Evidence, evidence_of
from plumbline.jobs.kernel.pair_runs import Ints, Run, summed
from plumbline.pipelines.reproduce.claims import claims_of
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

Floats = NDArray[np.float64]
#: Number of resamples. With this many, the standard error itself has an error of 7%.
RESAMPLES = 100
#: Minimum number of clusters for an interval.
FEWEST_CLUSTERS = 10
#: Maximum number of clusters; document or source k is in cluster k modulo 200. With 200 clusters,
#: a variance has a relative error of sqrt(2 / 200) = 10%, and the counts stay small.
MOST_CLUSTERS = 200
#: Maximum number of counts in memory before counts with equal indices are added up.
_MOST_PENDING = 5_000_000
#: Minimum number of words with a delta for both pairs, so that tau has an interval.
_FEWEST_WORDS = 50
#: Decimals to which deltas are rounded for tau, since rounding errors would break ties.
_TIE_DIGITS = 9
#: Percent of the Pile's words that co-occur with *he*, with *she*, and with both (App. A, Fig. 4a).
NEAR_PRONOUNS = (66.11, 43.86, 42.22)
#: Size of the Pile's English vocabulary, the base of Table 4's percentages (App. B: 120k).
_VOCABULARY = 120_339
#: Deltas of one contrast: ascending word indices in the sorted vocabulary, and a delta for each.
Deltas = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class TauAgreement:
    """Kendall's tau-b between the deltas of two contrasts; NaN if undefined.

    It is computed on the words that have a delta in both contrasts. ``tau_b_low`` and
    ``tau_b_high`` are the ends of its 95% interval (:func:`tau_interval`). They are NaN if no
    interval was computed, for example because there are fewer than 50 words.
    """

    contrast_a: str
    contrast_b: str
    n_words: int
    tau_b: float
    tau_b_low: float = float("nan")
    tau_b_high: float = float("nan")


def compare_list(
    store: Store,
    corpus: str,
    name: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Compare the pairs of a word list; return rows and lines to print.

    The first rows describe one pair each, in list order (``sql/lists/coverage.sql``). Columns
    ``n_words_pile`` and ``percent_pile`` are from UnStereoEval's Table 4, or None if that table
    lacks the pair. Other rows are a ``TauAgreement`` of two pairs (Figure 5). NaN becomes None.

    Tau also uses rare words, although their deltas are mostly chance and pull tau towards 0. Words
    that were pruned from the corpus have no delta, so only the percentages count them.

    Args:
        name: a list that the corpus was counted with, a built-in list, or a TOML file. All of its
            words must have been counted.
        progress: called with how many resamples are finished, and how many there are.

    Raises:
        UsageProblem: the corpus or list is unknown, the corpus was imported without counts, words
            of the list were not counted, or the corpus has no deltas yet.
    """
    row = corpus_row(store, corpus)
    if row["n_pairs"] is None:
        problem = "was imported without counts, so it has no word list to compare"
        raise UsageProblem(f"corpus {corpus!r}", problem)
    lists = {x.name: x for x in corpus_lists(store, row)}
    word_list = lists[name] if name in lists else wordlists.load(name)
    counted = {word for x in lists.values() for word in x.targets}
    if missing := [w for w in word_list.targets if w not in counted]:
        only = ", ".join(lists)
        problem = f"{missing[0]} of list {word_list.name} was not counted, only the list {only}"
        fix = f"plumbline corpus count ... --corpus {corpus} --targets {name} --replace"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    contrasts = [p.contrast for p in word_list.pairs]
    deltas = _deltas(store, corpus, contrasts)
    if not deltas:
        fix = f"plumbline corpus associate --corpus {corpus}"
        raise UsageProblem(f"corpus {corpus!r}", f"has no deltas of list {word_list.name}", fix)
    coverage = rows_of(
        store.root, sql("lists/coverage"), {"corpus": corpus, "contrasts": contrasts}
    )
    for pair in coverage:
        of_pile = printed().get(pair["contrast"], (None, None))
        pair["n_words_pile"], pair["percent_pile"] = of_pile
    near = None
    if "she/he" in contrasts and row["source"] == "counted":  # an imported corpus lacks some words
        [shares] = rows_of(store.root, sql("lists/near_pronouns"), {"corpus": corpus})
        ours = ", ".join(f"{shares[f'percent_{who}']:.2f}%" for who in ("he", "she", "both"))
        pile = ", ".join(f"{percent:.2f}%" for percent in NEAR_PRONOUNS)
        near = f"Words that co-occur with he, she, both: {ours} (of the Pile {pile}, Figure 4)"
    agreements, over = _with_intervals(store, row, agreement(contrasts, deltas), deltas, progress)
    enough = [a.tau_b for a in agreements if a.n_words >= _FEWEST_WORDS]
    taus = [tau for tau in enough if not np.isnan(tau)]
    said = [near] if near else []
    if taus:
        among = f"of two pairs with {_FEWEST_WORDS} words or more in common"
        said.append(f"Kendall's tau {among}: {min(taus):.2f} to {max(taus):.2f}; {over}")
    ranks = [{k: None if v != v else v for k, v in asdict(a).items()} for a in agreements]
    return [*coverage, *ranks], said


def _with_intervals(
    store: Store,
    row: Mapping[str, Any],
    agreements: Sequence[TauAgreement],
    deltas: Mapping[str, Deltas],
    progress: Callable[[int, int], None],
) -> tuple[tuple[TauAgreement, ...], str]:
    """Add intervals to agreements. Also say what was resampled, or why there are no intervals."""
    try:
        evidence = evidence_of(store, row["corpus"])
    except (UsageProblem, MissingComponent) as e:
        return tuple(agreements), f"no intervals: {e}"
    sides = [contrast.split("/") for contrast in deltas]
    targets = list(dict.fromkeys(word for side in sides for word in side))
    counts = cluster_counts(evidence, _vocabulary(store, row["corpus"]), targets)
    if counts.n_clusters < FEWEST_CLUSTERS:
        return tuple(agreements), f"no intervals: fewer than {FEWEST_CLUSTERS} documents"
    place = {contrast: k for k, contrast in enumerate(deltas)}
    enough = [k for k, a in enumerate(agreements) if a.n_words >= _FEWEST_WORDS]
    errors = tau_errors(
        counts,
        [(targets.index(female), targets.index(male)) for female, male in sides],
        [words for words, _ in deltas.values()],
        [(place[agreements[k].contrast_a], place[agreements[k].contrast_b]) for k in enough],
        progress=progress,
    )
    ended = list(agreements)
    for k, error in zip(enough, errors, strict=True):
        low, high = tau_interval(ended[k].tau_b, error, counts.n_clusters)
        ended[k] = replace(ended[k], tau_b_low=low, tau_b_high=high)
    return tuple(ended), f"95% intervals over {counts.n_clusters:,} clusters of {counts.clusters}s"


def _vocabulary(store: Store, corpus: str) -> pa.Array:
    words = store.read("word_count", corpus=corpus)["word"].combine_chunks()
    return words.take(pc.sort_indices(words))


def _deltas(store: Store, corpus: str, contrasts: Sequence[str]) -> dict[str, Deltas]:
    table = store.read("word_delta", corpus=corpus).select(["contrast", "word", "delta_nats"])
    table = table.filter(pc.is_in(table["contrast"], value_set=pa.array(contrasts, pa.string())))
    words = pc.index_in(table["word"], value_set=_vocabulary(store, corpus)).to_numpy()
    delta, names = table["delta_nats"].to_numpy(), table["contrast"].combine_chunks()
    deltas = {}
    for contrast in names.unique().to_pylist():
        at = np.flatnonzero(pc.equal(names, contrast).to_numpy(zero_copy_only=False))
        at = at[np.argsort(words[at])]
        deltas[contrast] = (words[at], delta[at])
    return deltas


def agreement(contrasts: Sequence[str], deltas: Mapping[str, Deltas]) -> list[TauAgreement]:
    """Return Kendall's tau-b for every two contrasts, on the words that have a delta in both.

    Tau is NaN if there are fewer than two such words, or if all their deltas are equal in one of
    the contrasts. Deltas that are equal after rounding to nine decimals are ties.

    >>> few = {"a": (np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3]))}
    >>> few["b"] = np.array([1, 2, 3, 9]), np.array([1.0, 3.0, 2.0, 0.0])
    >>> (row,) = agreement(["a", "b"], few)  # two of three pairs of words in the same order
    >>> row.n_words, round(row.tau_b, 4)
    (3, 0.3333)
    """
    nothing: Deltas = np.zeros(0, np.int64), np.zeros(0)
    rows = []
    for a, b in combinations(contrasts, 2):
        (words_a, x), (words_b, y) = deltas.get(a, nothing), deltas.get(b, nothing)
        _, i, j = np.intersect1d(words_a, words_b, assume_unique=True, return_indices=True)
        tau = kendall(x[i].round(_TIE_DIGITS), y[j].round(_TIE_DIGITS))
        rows.append(TauAgreement(a, b, len(i), tau))
    return rows


def agreement_of(store: Store, corpus: str, name: str) -> list[TauAgreement]:
    """Return tau-b, without intervals, for every two pairs of words in the list ``name``."""
    lists = {x.name: x for x in corpus_lists(store, corpus_row(store, corpus))}
    contrasts = [p.contrast for p in lists[name].pairs]
    return agreement(contrasts, _deltas(store, corpus, contrasts))


@cache
def printed() -> dict[str, tuple[int, float]]:
    """Return Table 4 of UnStereoEval: for each contrast, how many words of the Pile have a delta.

    A value is (number, percentage). The percentages are recomputed from the numbers, with a
    vocabulary of 120,339 words. When rounded, they equal the percentages in the paper.

    >>> len(printed()), printed()["she/he"]
    (38, (55476, 46.1))
    """
    claims = claims_of("unstereoeval").claim
    [counts] = (claim.printed for claim in claims if isinstance(claim.printed, dict))
    return {x: (int(n), round(100 * int(n) / _VOCABULARY, 2)) for x, n in counts.items()}


def kendall(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b. It is NaN with fewer than two points, or if x or y is constant.

    >>> round(kendall(np.array([0.1, 0.2, 0.3]), np.array([1.0, 3.0, 2.0])), 12)
    0.333333333333
    """
    from scipy.stats import kendalltau

    return float(kendalltau(x, y, variant="b").statistic) if len(x) > 1 else float("nan")


class ClusterCounts(NamedTuple):
    """How often each word occurs near each target word, in each cluster of documents.

    ``cluster``, ``word``, ``target`` and ``n`` are parallel arrays. Each position describes one
    count above 0: ``n`` is the count, the others are indices. ``clusters`` says what a cluster is:
    ``source`` or ``document``. ``n_clusters`` includes clusters without any co-occurrence.
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
    """Count co-occurrences in each cluster of documents, by the rule used to count the corpus.

    If there are ten or more sources, each source is a cluster of documents. Otherwise each
    document is a cluster. If there are more than ``MOST_CLUSTERS`` clusters, some are merged.

    Args:
        vocabulary: all words of the corpus, sorted.
        targets: target words, without repeats.
    """
    # Counts don't depend on a target's side, so put all targets on one side.
    rule, window = evidence.options.rule, evidence.options.window
    query = Query(vocabulary, tuple(targets), (), (), rule, window, vocabulary)
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


def tau_errors(
    counts: ClusterCounts,
    sides: Sequence[tuple[int, int]],
    words: Sequence[NDArray[np.int64]],
    compared: Sequence[tuple[int, int]],
    n_resamples: int = RESAMPLES,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Floats:
    """Return the bootstrap standard error of atanh(tau) for every comparison in ``compared``.

    Each resample draws clusters with replacement and sums their co-occurrences. Tau is computed
    from ratios of counts, since a contrast's delta is the log of the ratio plus a constant. A
    resample uses only words that occur near all four target words of the two contrasts. The error
    is NaN if there are fewer than ten clusters, or if tau is undefined, 1 or -1 in a resample.

    Args:
        sides: for each contrast, the indices of its female and its male target word.
        words: for each contrast, the indices of the words that have a delta.
        compared: for each comparison, the indices of the two contrasts.
        progress: called with how many resamples are finished, and how many there are.
    """
    from scipy.sparse import csr_array

    if counts.n_clusters < FEWEST_CLUSTERS or not compared:
        return np.full(len(compared), np.nan)
    used, word = np.unique(counts.word, return_inverse=True)
    n_targets = 1 + max(map(max, sides))
    shape = len(used) * n_targets, counts.n_clusters
    of_cluster = csr_array(
        (counts.n, (word * n_targets + counts.target, counts.cluster)), shape=shape
    )
    counted = np.array([np.isin(used, contrast_words) for contrast_words in words])
    female, male = np.array(sides).T
    draw, n = np.random.default_rng(0), counts.n_clusters
    z = np.empty((n_resamples, len(compared)))
    for k in range(n_resamples):
        drawn = (of_cluster @ draw.multinomial(n, np.full(n, 1 / n))).reshape(-1, n_targets).T
        defined = counted & (drawn[female] > 0) & (drawn[male] > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = drawn[female] / drawn[male]
            for i, (a, b) in enumerate(compared):
                common = defined[a] & defined[b]
                z[k, i] = np.arctanh(kendall(odds[a][common], odds[b][common]))
        progress(k + 1, n_resamples)
    is_finite = np.isfinite(z).all(axis=0)
    errors: Floats = np.full(len(compared), np.nan)
    errors[is_finite] = z[:, is_finite].std(axis=0, ddof=1)
    return errors


def tau_interval(tau: float, error: float, n_clusters: int) -> tuple[float, float]:
    """Return the 95% interval of tau, tanh(atanh(tau) +- t * error). A NaN error gives NaN ends.

    t is the quantile of Student's t with ``n_clusters - 1`` degrees of freedom.

    >>> [round(end, 3) for end in tau_interval(0.5, 0.1, 1_000)]
    [0.339, 0.632]
    """
    from scipy.special import stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.array([-1, 1]) * stdtrit(max(n_clusters - 1, 1), 0.975) * error
        low, high = np.tanh(np.arctanh(tau) + half).tolist()
    return low, high
