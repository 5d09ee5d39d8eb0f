"""Compare the pairs of a word list, such as she/he and woman/man.

For each pair, count the words that have a delta. For every two pairs, compute Kendall's tau between
their deltas, which says whether the two pairs rank words alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.counting.corpus_lookup import corpus_lists, corpus_row
from plumbline.pipelines.reproduce.claims import claims_of
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

#: Minimum number of words with a delta for both pairs, so that their tau is in the printed range.
_FEWEST_WORDS = 50
#: Decimals to which deltas are rounded for tau, since rounding errors would break ties.
_TIE_DIGITS = 9
#: Percent of the Pile's words that co-occur with *he*, with *she*, and with both (App. A, Fig. 4a).
_NEAR_PRONOUNS = (66.11, 43.86, 42.22)
#: Size of the Pile's English vocabulary, the base of Table 4's percentages (App. B: 120k).
_VOCABULARY = 120_339
#: For each contrast, the deltas of all words in the same order; NaN for a word without a delta.
Deltas = Mapping[str, NDArray[np.float64]]


def compare_list(store: Store, corpus: str, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Compare the pairs of a word list; return rows and lines to print.

    The first rows describe one pair each, in list order (``sql/lists/coverage.sql``). Columns
    ``n_words_pile`` and ``percent_pile`` are from UnStereoEval's Table 4, or None if that table
    lacks the pair. Other rows have tau of two pairs, as in Figure 5 (see ``agreement``).

    Tau also uses rare words, although their deltas are mostly chance and pull tau towards 0. Words
    that were pruned from the corpus have no delta, so only the percentages count them.

    Args:
        name: a list that the corpus was counted with, a built-in list, or a TOML file. All of its
            words must have been counted.

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
    if all(np.isnan(x).all() for x in deltas.values()):
        fix = f"plumbline corpus associate --corpus {corpus}"
        raise UsageProblem(f"corpus {corpus!r}", f"has no deltas of list {word_list.name}", fix)
    coverage = rows_of(
        store.root, sql("lists/coverage"), {"corpus": corpus, "contrasts": contrasts}
    )
    for pair in coverage:
        of_pile = printed().get(pair["contrast"], (None, None))
        pair["n_words_pile"], pair["percent_pile"] = of_pile
    said = []
    if "she/he" in contrasts and row["source"] == "counted":  # an imported corpus lacks some words
        [shares] = rows_of(store.root, sql("lists/near_pronouns"), {"corpus": corpus})
        ours = ", ".join(f"{shares[f'percent_{who}']:.2f}%" for who in ("he", "she", "both"))
        pile = ", ".join(f"{percent:.2f}%" for percent in _NEAR_PRONOUNS)
        said.append(
            f"Words that co-occur with he, she, both: {ours} (of the Pile {pile}, Figure 4)"
        )
    ranks = agreement(deltas)
    enough = [x["tau_b"] for x in ranks if x["n_words"] >= _FEWEST_WORDS]
    if taus := [tau for tau in enough if tau is not None]:
        among = f"of two pairs with {_FEWEST_WORDS} words or more in common"
        said.append(f"Kendall's tau {among}: {min(taus):.2f} to {max(taus):.2f}")
    return [*coverage, *ranks], said


def _deltas(store: Store, corpus: str, contrasts: Sequence[str]) -> Deltas:
    table = store.read("word_delta", corpus=corpus)
    words = table["word"].combine_chunks().dictionary_encode()
    deltas = {}
    for contrast in contrasts:
        is_wanted = pc.equal(table["contrast"], contrast)
        deltas[contrast] = np.full(len(words.dictionary), np.nan)
        places = words.indices.to_numpy()[is_wanted.to_numpy()]
        deltas[contrast][places] = table["delta_nats"].filter(is_wanted).to_numpy()
    return deltas


def agreement(deltas: Deltas) -> list[dict[str, Any]]:
    """Return Kendall's tau-b for every two contrasts, on the words that have a delta in both.

    Tau is None if there are fewer than two such words, or if all their deltas are equal in one of
    the contrasts. Deltas that are equal after rounding to nine decimals are ties.

    >>> x, y = np.array([0.1, 0.2, 0.3, np.nan]), np.array([1.0, 3.0, 2.0, 0.0])
    >>> (row,) = agreement({"a": x, "b": y})  # two of three pairs of words in the same order
    >>> row["n_words"], round(row["tau_b"], 4)
    (3, 0.3333)
    """
    from scipy.stats import kendalltau

    rows = []
    for (a, x), (b, y) in combinations(deltas.items(), 2):
        both = ~np.isnan(x) & ~np.isnan(y)
        n_words, tau = int(both.sum()), np.nan
        if n_words > 1:
            tau = kendalltau(x[both].round(_TIE_DIGITS), y[both].round(_TIE_DIGITS)).statistic
        tau_b = None if np.isnan(tau) else float(tau)
        rows.append({"contrast_a": a, "contrast_b": b, "n_words": n_words, "tau_b": tau_b})
    return rows


def agreement_of(store: Store, corpus: str, name: str) -> list[dict[str, Any]]:
    """Return tau-b for every two pairs of words in the list ``name`` of a corpus."""
    lists = {x.name: x for x in corpus_lists(store, corpus_row(store, corpus))}
    return agreement(_deltas(store, corpus, [p.contrast for p in lists[name].pairs]))


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
