"""Pairs of a constrained benchmark that the papers' limits keep, drop and leave undecided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plumbline.jobs.association.max_pmi import constrain
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

#: Limits on |MaxPMI| in nats, those of UnStereoEval.
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
    """Numbers of natural pairs that each limit keeps, drops and leaves undecided, by contrast."""
    of = {"corpus": corpus, "benchmark": benchmark, "contrasts": [*contrasts], "etas": [*ETAS]}
    return rows_of(store.root, _VERDICTS, of)


def constrained(
    store: Store, corpus: str, benchmark: str, contrast: str | None = None
) -> list[str]:
    """Run ``constrain``; lines with the number of pairs by contrast, and by the limits."""
    done, lines = constrain(store, corpus, benchmark, contrast), list[str]()
    rows = verdicts(store, corpus, benchmark, done)
    for name, n in done.items():
        lines.append(f"{benchmark}: MaxPMI of {n:,} pairs in corpus {corpus} ({name})")
        lines += [_line(row) for row in rows if row["contrast"] == name]
    return lines


def _line(row: Mapping[str, Any]) -> str:
    """Line with the natural pairs that a limit keeps, drops and leaves undecided.

    >>> row = {"eta_nats": 0.5, "n_kept": 1, "n_dropped": 1000, "n_undecided": 3}
    >>> _line({**row, "known_share": 0.8, "least_count": 10})  # doctest: +NORMALIZE_WHITESPACE
    '  |MaxPMI| <= 0.5 nats: kept 1, dropped 1,000, undecided 3; 80% of the words have 10 or more
    co-occurrences on both sides'
    >>> _line({**row, "known_share": None, "least_count": None})
    '  |MaxPMI| <= 0.5 nats: kept 1, dropped 1,000, undecided 3'
    """
    line = (
        f"  |MaxPMI| <= {row['eta_nats']:g} nats: kept {row['n_kept']:,}, "
        f"dropped {row['n_dropped']:,}, undecided {row['n_undecided']:,}"
    )
    if row["least_count"] is None or row["known_share"] is None:
        return line
    return (
        f"{line}; {100 * row['known_share']:.0f}% of the words have "
        f"{row['least_count']} or more co-occurrences on both sides"
    )
