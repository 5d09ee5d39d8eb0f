"""Compare a word list's pairs: how many words each covers, and how similarly they rank words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
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
from plumbline.warehouse.text.escape import as_csv

#: Fewest words that two pairs must share for tau to have an interval.
_FEWEST_WORDS = 50
#: Decimals to which deltas are rounded for tau, since rounding errors would break ties.
_TIE_DIGITS = 9
#: Percent of the Pile's words that co-occur with *he*, with *she*, and with both (App. A, Fig. 4a).
NEAR_PRONOUNS = (66.11, 43.86, 42.22)
#: Size of the Pile's English vocabulary, the base of Table 4's percentages (App. B: 120k).
_VOCABULARY = 120_339
#: Claims of App. A: two pairs with strongly correlated deltas, and signs of tau with others.
_STRONG = ("her/him", "her/his")
_SIGNS = (
    ("she/he", 1, "most"),
    ("mummy/daddy", -1, "most"),
    ("aunt/uncle", -1, "most"),
    ("wife/husband", -1, "several"),
    ("girlfriend/boyfriend", -1, "several"),
)
#: Deltas of one contrast: ascending word indices in the sorted vocabulary, and a delta for each.
Deltas = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class ComparedList:
    """How many words each pair of a list covers, and how well every two pairs agree.

    Attributes:
        coverage: rows of ``sql/lists/coverage.sql``, one per pair, in list order, plus
            ``n_words_pile`` and ``percent_pile`` from UnStereoEval's Table 4, None for pairs that
            the table lacks.
        intervals: what tau's intervals are over, or why there are none.
        near: sentence on words that co-occur with *he*, *she* and both; None without she/he.
    """

    corpus: str
    word_list: str
    coverage: tuple[dict[str, Any], ...]
    agreements: tuple[TauAgreement, ...]
    intervals: str
    near: str | None


def compare_list(
    store: Store,
    corpus: str,
    name: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ComparedList:
    """Return the coverage of each pair of a word list in a corpus, and tau-b of every two.

    These are Table 4 (words with a defined delta and their share of the vocabulary) and Figure 5
    (Kendall's tau) of UnStereoEval. Rare words aren't filtered out: their deltas are mostly chance
    and pull tau towards 0; the coverage has the median standard error. Words pruned from the corpus
    are in the vocabulary, but not in tau.

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
    return ComparedList(corpus, word_list.name, tuple(coverage), agreements, over, near)


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
        ended[k] = replace(ended[k], tau_low=low, tau_high=high)
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


def alike(agreements: Sequence[TauAgreement]) -> Iterator[str]:
    """Yield lines on tau of pairs that share 50 or more words, and the paper's claims.

    Yields nothing for a list of one pair.

    >>> tau = [TauAgreement("she/he", "her/him", 90, 0.5, 0.4, 0.6)]
    >>> print(*alike([*tau, TauAgreement("she/he", "hers/his", 9, 1.0, 1.0, 1.0)]), sep="\\n")
    Do two pairs rank words alike (Figure 5)? Lowest and highest tau (1: same order)
      0.50 (95% interval 0.40 to 0.60) for she/he and her/him, 90 words in common
    What App. A says of pairs in the Pile, and Kendall's tau here
      she/he is positive with most: here with 1 of 1 (1 with the interval above 0)
    """
    if not agreements:
        return
    enough = [a for a in agreements if a.n_words >= _FEWEST_WORDS and not np.isnan(a.tau_b)]
    if not enough:
        yield f"No two pairs have {_FEWEST_WORDS} words in common, too few to compare their order"
        return
    yield "Do two pairs rank words alike (Figure 5)? Lowest and highest tau (1: same order)"
    enough.sort(key=lambda a: a.tau_b)
    for a in dict.fromkeys((enough[0], enough[-1])):  # the lowest and the highest
        interval = f" (95% interval {a.tau_low:.2f} to {a.tau_high:.2f})"
        pairs = f"{a.contrast_a} and {a.contrast_b}, {a.n_words:,} words in common"
        yield f"  {a.tau_b:.2f}{'' if np.isnan(a.tau_low) else interval} for {pairs}"
    lines = []
    for a in enough:
        if {a.contrast_a, a.contrast_b} == set(_STRONG):
            interval = f"95% interval {a.tau_low:.2f} to {a.tau_high:.2f}"
            strong = f"{_STRONG[0]} and {_STRONG[1]} are strongly positive"
            lines.append(f"  {strong}: here {a.tau_b:.2f} ({interval})")
    for contrast, sign, how_many in _SIGNS:
        with_contrast = [a for a in enough if contrast in (a.contrast_a, a.contrast_b)]
        n = sum(sign * a.tau_b > 0 for a in with_contrast)
        n_clear = sum(min(sign * a.tau_low, sign * a.tau_high) > 0 for a in with_contrast)
        name, side = ("positive", "above") if sign > 0 else ("negative", "below")
        here = f"here with {n} of {len(with_contrast)} ({n_clear} with the interval {side} 0)"
        if with_contrast:
            lines.append(f"  {contrast} is {name} with {how_many}: {here}")
    if lines:
        yield "What App. A says of pairs in the Pile, and Kendall's tau here"
        yield from lines


def write_compared(compared: ComparedList, out: Path) -> list[Path]:
    """Write coverage and tau as CSV; return the paths. Undefined values are empty fields."""
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"{compared.corpus}-{compared.word_list}".replace("/", "_")
    written = []
    tau = [
        {name: "" if value != value else value for name, value in vars(row).items()}
        for row in compared.agreements
    ]
    for kind, rows in (("coverage", list(compared.coverage)), ("kendall", tau)):
        if rows:
            written.append(stem.with_name(f"{stem.name}-{kind}.csv"))
            written[-1].write_text(as_csv(rows), encoding="utf-8", newline="")
    return written


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
