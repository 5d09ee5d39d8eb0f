"""Compute the MaxPMI of each benchmark pair: the delta of the pair's most gendered word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from plumbline.jobs.counting.corpus_lookup import (
    corpus_contrast,
    corpus_deltas,
    corpus_language,
    corpus_lists,
    corpus_row,
    writes_corpus,
)
from plumbline.jobs.kernel.corpus_options import LEAST_COUNT
from plumbline.jobs.kernel.tokens.tokenizer import DEFAULT_TARGETS, tokenize_all
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.placeholders import ANY_PLACEHOLDER


@dataclass(frozen=True)
class TemplateLean:
    max_pmi_nats: float | None
    max_pmi_word: str | None
    sum_delta_nats: float | None
    n_words: int
    n_words_defined: int


def lean(words: Sequence[str], delta: Mapping[str, float]) -> TemplateLean:
    """Find the word whose delta is largest in absolute value (MaxPMI; UnStereoEval, Eq. 2).

    Words without a delta are only counted in ``n_words``. If no word has a delta, MaxPMI is None.
    In a tie, the earlier word wins. A repeated word counts each time in ``n_words`` and
    ``sum_delta_nats``.

    >>> nurse = lean(["nurse", "tea", "army"], {"nurse": 0.5, "army": -1.5})
    >>> nurse.max_pmi_nats, nurse.max_pmi_word, nurse.n_words_defined
    (-1.5, 'army', 2)
    """
    defined = [(word, delta[word]) for word in words if word in delta]
    if not defined:
        return TemplateLean(None, None, None, len(words), 0)
    word, value = max(defined, key=lambda item: abs(item[1]))
    return TemplateLean(value, word, sum(d for _, d in defined), len(words), len(defined))


@writes_corpus
def constrain(
    store: Store,
    corpus: str,
    benchmark: str,
    contrast: str | None = None,
    least_count: int = LEAST_COUNT,
) -> dict[str, int]:
    """Write a benchmark's rows of ``pair_association``. Return the number of pairs per contrast.

    A word is unknown if it has fewer than ``least_count`` co-occurrences with one side of the
    contrast, or if its delta was imported without counts. The deltas of unknown words are not used.
    If no known delta exceeds a limit eta, a pair with an unknown word is undecided for eta, because
    the unknown word's delta could exceed eta. If ``least_count`` is 0 or no word has counts, all
    deltas are used, and words without a delta are skipped, as in UnStereoEval's MaxPMI.

    Without ``contrast``, each pair uses the contrast of its two groups (:func:`contrast_of`). If
    the corpus isn't English, the first pair of its word list replaces the contrast she/he. Rows of
    other contrasts stay in the table.

    Raises:
        UsageProblem: the corpus, benchmark or contrast is unknown; the message says what to do.
    """
    row = corpus_row(store, corpus)
    columns = ["pair_id", "template", "group_a", "group_b"]
    pairs = store.read("benchmark_pair", benchmark=benchmark).select(columns).to_pylist()
    if not pairs:
        fix = f"plumbline benchmark import {benchmark}"
        raise UsageProblem(f"benchmark {benchmark!r}", "not in the warehouse", fix)
    names = [contrast or contrast_of(pair) for pair in pairs]
    contrast_of_name = {name: corpus_contrast(store, corpus, name) for name in dict.fromkeys(names)}
    by_contrast: dict[str, list[dict[str, Any]]] = {}
    for name, pair in zip(names, pairs, strict=True):
        by_contrast.setdefault(contrast_of_name[name], []).append(pair)
    deltas = {name: _deltas(store, corpus, name, least_count) for name in by_contrast}
    targets = corpus_lists(store, row)[0].targets if row["targets"] else DEFAULT_TARGETS
    language = corpus_language(row).token_rules
    name, options = "benchmark constrain", {"contrast": contrast, "least_count": least_count}
    config = {"corpus": corpus, "benchmark": [benchmark], **options}
    with recorded(store, name, config) as run_id, store.transaction(run_id, name):
        for name, chosen in by_contrast.items():
            texts = [ANY_PLACEHOLDER.sub(" ", pair["template"]) for pair in chosen]
            delta, used = deltas[name]
            key = {"corpus": corpus, "benchmark": benchmark, "contrast": name, "least_count": used}
            leans = (lean(words, delta) for words in tokenize_all(texts, targets, language))
            rows = [
                {
                    **key,
                    "pair_id": pair["pair_id"],
                    "n_words_unknown": None if used is None else x.n_words - x.n_words_defined,
                    **vars(x),
                }
                for pair, x in zip(chosen, leans, strict=True)
            ]
            store.publish("pair_association", rows, unit=name, run_id=run_id)
    return {name: len(chosen) for name, chosen in by_contrast.items()}


def contrast_of(pair: Mapping[str, Any]) -> str:
    """Return the name of the contrast between the two groups of a benchmark pair.

    >>> contrast_of({"group_a": "she", "group_b": "they"})
    'she/they'
    >>> contrast_of({"group_a": "female", "group_b": "male"})
    'she/he'
    """
    groups = f"{pair['group_a']}/{pair['group_b']}"
    return "she/he" if groups == "female/male" else groups


def _deltas(
    store: Store, corpus: str, contrast: str, least_count: int
) -> tuple[dict[str, float], int | None]:
    """Return {word: delta} without words that ``constrain`` calls unknown, and any limit used."""
    rows = corpus_deltas(store, corpus, contrast)
    n_least = pc.min_element_wise(rows["n_pair_f"], rows["n_pair_m"])
    used = least_count or None if n_least.null_count < rows.num_rows else None
    rows = rows.filter(pc.fill_null(pc.greater_equal(n_least, least_count), used is None))
    return dict(zip(rows["word"].to_pylist(), rows["delta_nats"].to_pylist(), strict=True)), used


#: Limits on |MaxPMI| in nats, from UnStereoEval.
ETAS = (0.5, 0.65)
_VERDICTS = """
SELECT
    contrast, eta_nats,
    count_if(verdict = 'kept')::BIGINT AS n_kept,
    count_if(verdict = 'dropped')::BIGINT AS n_dropped,
    count_if(verdict = 'undecided')::BIGINT AS n_undecided,
    sum(n_words_defined) / nullif(sum(n_words), 0) AS known_share,
    min(least_count) AS least_count
FROM pair_association
JOIN benchmark_pair USING (benchmark, pair_id)
CROSS JOIN unnest($etas) AS e (eta_nats)
CROSS JOIN LATERAL (
    SELECT constraint_verdict(max_pmi_nats, n_words_unknown, eta_nats) AS verdict
)
WHERE corpus = $corpus AND benchmark = $benchmark AND list_contains($contrasts, contrast)
    AND is_natural IS NOT FALSE
GROUP BY ALL
ORDER BY ALL
"""


def verdicts(
    store: Store, corpus: str, benchmark: str, contrasts: Iterable[str]
) -> list[dict[str, Any]]:
    """Count kept, dropped and undecided pairs per contrast and limit. Skip unnatural pairs."""
    key = {"corpus": corpus, "benchmark": benchmark, "contrasts": [*contrasts], "etas": [*ETAS]}
    return rows_of(store.root, _VERDICTS, key)
