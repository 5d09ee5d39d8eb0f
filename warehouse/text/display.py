"""Choose how columns are displayed: heading, unit, digits after the point, and sign."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Display:
    """How to display a column.

    Attributes:
        heading: title of the column, with its unit.
        scale: factor for the values, such as 100 to show a share in percent.
        digits: number of digits after the point. None means the default. -1 means that a small
            value gets as many digits as it needs.
        is_signed: whether positive values get a plus sign.
        is_probability: whether values below 0.0001 are shown as ``< 0.0001``.
    """

    heading: str
    scale: float = 1
    digits: int | None = None
    is_signed: bool = False
    is_probability: bool = False


#: Displays by column name. Ends of intervals, ``x_low`` and ``x_high``, are shown like ``x``.
_KNOWN = {
    "us": Display("US %", 100, 1),
    "pd": Display("PD points", 1, 1, True),
    "aufc": Display("AuFC", 1, 2),
    "gap": Display("gap in US points", 100, 1, True),
    "slope": Display("slope", 1, 2),
    "reliability": Display("reliability", 1, 2),
    "corrected slope": Display("corrected slope", 1, 2),
    "correlation": Display("correlation", 1, 3),
    "rank correlation": Display("rank correlation", 1, 3),
    "us_model": Display("US %", 100, 1),
    "us_reference": Display("reference's US %", 100, 1),
    "us_difference": Display("difference in US points", 100, 1, True),
    "pd_model": Display("PD points", 1, 1, True),
    "pd_reference": Display("reference's PD", 1, 1, True),
    "pd_difference": Display("difference in PD points", 1, 1, True),
    "add_nats": Display("ADD, nats", 1, -1),
    "gld": Display("GLD", 1, 3),
    "leaning": Display("leaning", 1, 3, True),
    "p_f": Display("P(female)", 1, -1),
    "p_m": Display("P(male)", 1, -1),
    "p_gendered": Display("P(gendered word)", 1, -1),
    "share_f": Display("P(female) among gendered", 1, 3),
    "gas_delta": Display("Δ %", 100, 1),
    "preference": Display("preference %", 100, 1),
    "alpha": Display("level %", 100, 1),
    "bias_b": Display("B %", 100, 1),
    "variability_pg": Display("V_pg %", 100, 1),
    "variability_gp": Display("V_gp %", 100, 1),
    "partial_correlation": Display("others held fixed", 1, 3),
    "coefficient": Display("nats per nat", 1, 2, True),
    "gain": Display("explains more, points", 100, 1, True),
    "per_tenfold": Display("change per tenfold", 1, 2, True),
    "low_nats": Display("low, nats", 1, 3, True),
    "high_nats": Display("high, nats", 1, 3, True),
    "seconds": Display("seconds", 1, 1),
    "n_word": Display("occurrences"),  # the column `word` has the heading "word"
    "n_pair": Display("co-occurrences"),
    "per_million": Display("per million", 1, 1),
    "clusters": Display("interval over"),  # the values are texts such as "frame, word"
    "z": Display("z", 1, 1, True),
}
_SHARE = re.compile(r"(^|[_ ])(share|gas|gain)(_|$)")
_SIGNED = re.compile(r"(^|_)(lean|delta|change|difference|log_ratio|log_odds|shift)(_|$)")
_PROBABILITY = re.compile(r"[pq](_|$)")


def display(name: str, unit: str = "") -> Display:
    """Return how to display a column or metric. ``unit`` is given only for metrics.

    >>> display("us").heading, display("n_pairs").heading, display("delta_nats").is_signed
    ('US %', 'pairs', True)
    >>> display("agreed_share").scale, display("q_moved").is_probability
    (100, True)
    >>> display("my metric", "share")
    Display(heading='my metric %', scale=100, digits=1, is_signed=False, is_probability=False)
    """
    if known := _KNOWN.get(name.replace("_", " ")) or _KNOWN.get(name):
        return known
    if base := re.fullmatch(r"aufc_base_(\w+)", name):
        return Display(f"AuFC, base {base[1].replace('_', '.')}", 1, 2)
    if unit:
        return Display(f"{name} %", 100, 1) if unit == "share" else Display(name, 1, 3)
    heading = re.sub(r"^n_|_nats$", "", name).replace("_", " ")
    if _PROBABILITY.match(name):
        return Display(heading, 1, 4, is_probability=True)
    if _SHARE.search(name):
        return Display(f"{heading} %", 100, 1, bool(_SIGNED.search(name)))
    is_signed = bool(_SIGNED.search(name))
    if name.endswith("_nats"):
        return Display(f"{heading}, nats", 1, 2, is_signed)
    return Display(heading, 1, 2 if is_signed else None, is_signed)
