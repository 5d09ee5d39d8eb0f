"""Compare a word list's pairs: how many words each covers, and how similarly they rank words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.corpus_lookup import corpus_lists, corpus_row
from plumbline.jobs.counting.kept_documents import evidence_of
from plumbline.pipelines.reproduce.claims import claims_of
from plumbline.pipelines.reproduce.tau_interval import (
    FEWEST_CLUSTERS,
    TauAgreement,
    cluster_counts,
    kendall,
    tau_errors,
    tau_interval,
)
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

#: Fewest words that two pairs must share for tau to have an interval.
_FEWEST_WORDS = 50
#: Decimals to which deltas are rounded for tau, since rounding errors would break ties.
_TIE_DIGITS = 9
#: Percent of the Pile's words that co-occur with *he*, with *she*, and with both (App. A, Fig. 4a).
NEAR_PRONOUNS = (66.11, 43.86, 42.22)
#: Size of the Pile's English vocabulary, the base of Table 4's percentages (App. B: 120k).
_VOCABULARY = 120_339
#: Deltas of one contrast: ascending word indices in the sorted vocabulary, and a delta for each.
Deltas = tuple[NDArray[np.int64], NDArray[np.float64]]


def compare_list(
    store: Store,
    corpus: str,
    name: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows on each pair of a word list in a corpus and on every two pairs, and lines on all.

    First come rows of ``sql/lists/coverage.sql``, one per pair in list order, with ``n_words_pile``
    and ``percent_pile`` from UnStereoEval's Table 4, None for pairs that the table lacks. Then
    come rows of ``TauAgreement`` (Figure 5), with None instead of NaN. Rare words aren't filtered
    out: their deltas are mostly chance and pull tau towards 0; the coverage has the median standard
    error. Words pruned from the corpus are in the vocabulary, but not in tau.

    Args:
        name: a built-in list, the corpus's own, or a TOML file; its words must have been counted.
        progress: called with (resamples done, all), for the intervals of tau.

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
    if "she/he" in contrasts and row["source"] == "counted":  # only these words are released
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
    """Return agreements with intervals, and what these are over, or why none exist."""
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
    """Return Kendall's tau-b between deltas of every two contrasts, on the words both define.

    NaN with fewer than two common words, or if one contrast is constant on these. Deltas that are
    equal when rounded to nine decimals are ties.

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
    """Return tau-b of every two pairs of one of the corpus's own lists, without intervals."""
    lists = {x.name: x for x in corpus_lists(store, corpus_row(store, corpus))}
    contrasts = [p.contrast for p in lists[name].pairs]
    return agreement(contrasts, _deltas(store, corpus, contrasts))


@cache
def printed() -> dict[str, tuple[int, float]]:
    """Return Table 4 by contrast: the printed number of Pile words with a delta, and their share.

    The percentage is computed for the vocabulary of 120,339 words; it rounds to the printed one.

    >>> len(printed()), printed()["she/he"]
    (38, (55476, 46.1))
    """
    claims = claims_of("unstereoeval").claim
    [counts] = (claim.printed for claim in claims if isinstance(claim.printed, dict))
    return {x: (int(n), round(100 * int(n) / _VOCABULARY, 2)) for x, n in counts.items()}
