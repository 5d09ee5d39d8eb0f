"""How a comparison was made, of what, and what it cannot tell: before its tables; its SQL after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.pipelines.report.model import Section, Table, text
from plumbline.warehouse.provenance.runs import package_versions
from plumbline.warehouse.query.connection import sql

if TYPE_CHECKING:
    from plumbline.pipelines.compare_order import Order
    from plumbline.pipelines.report.compare_found import Found

#: The views and macros that the page's figures come from.
_SQL = (
    "92_disclosure_change",
    "93_disclosure_difference",
    "93_preference_pairwise",
    "94_preference_difference",
    "95_perplexity_difference",
    "96_fairpair_difference",
)
_LIMITS = (
    "Intervals tell how far a difference would move with other prompts, pairs or documents like "
    "these. Nothing corrects for the number of comparisons: by chance alone about one in twenty "
    "intervals misses its true value.",
    "A low GAS alone is no success: continuations that say nothing hold no gendered word either. "
    "Read them (table continuation).",
    "The measures are about women and men in English prompts. They say nothing of other genders or "
    "languages, nor of what a model does in use.",
)


def precision(order: Order) -> str:
    """Dtype and quantisation, the same of both sides."""
    return f"{order.before.dtype}, {order.before.quantisation or 'not quantised'}"


def methods(order: Order) -> Section:
    """How both sides were measured, in brief."""
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    intro = [
        f"Precision: both sides in {precision(order)}; one command loads both, so that they can't "
        "differ in it.",
        "Differences are after less before, paired: the same prompts, pairs or documents on both "
        "sides. Intervals are 95%. It fell or rose where the interval leaves out 0.",
        "Under every table and plot stands its query, which `plumbline sql` runs as it is shown; "
        "at the end, how the macros that it asks compute.",
        f"Computed by {order.after.backend_version}. Versions: {versions}.",
    ]
    return Section("methods", "Methods", intro)


def data(order: Order, found: Found) -> Section:
    """Both models, what they were measured on, and what the adapter was tuned on."""
    before, after, tuning = order.before, order.after, found.tuning
    intro = [
        f"Base {before.model}, revision {before.revision}, key {before.key}; with the adapter "
        f"{after.adapter}, key {after.key}.",
        *_measured(found),
    ]
    tables, alerts = [], []
    if tuning is None:
        intro.append(
            "The adapter was not tuned in this warehouse: what it was tuned on is not known, and "
            "any set may be among it."
        )
    else:
        was = f"{tuning['base_dtype']}, {tuning['base_quantisation'] or 'not quantised'}"
        if was != precision(order):
            alerts.append(
                f"The adapter was tuned on the base in {was}, and is measured in another."
            )
        rows = [[text(name), text(value)] for name, value in tuning.items()]
        headings = ["column of tuning", "value"]
        tables.append(Table("The adapter", headings, rows, True, found.queries["tuning"]))
    return Section("data", "Data", intro, alerts, tables=tables)


def _measured(found: Found) -> list[str]:
    """What both sides were measured on, with sizes."""
    sets = {r["probe_set"]: r["n_prompts"] for r in found.whole}
    pairs = {r["benchmark"]: r["n_pairs"] for r in found.preference}
    documents = {r["text_set"]: r["n_documents"] for r in found.perplexity}
    prompts = {r["probe_set"]: r["after_n"] for r in found.fairpair}
    told = (
        ("Sets of prompts", sets, "prompts"),
        ("Benchmarks", pairs, "pairs"),
        ("Held-out text", documents, "documents"),
        ("FairPair", prompts, "prompts"),
    )
    return [
        f"{what}: {', '.join(f'{name} ({n:,} {unit})' for name, n in sizes.items())}."
        for what, sizes, unit in told
        if sizes
    ]


def limits() -> Section:
    """What the figures cannot tell."""
    return Section("limits", "Limits", _LIMITS)


def macros() -> Section:
    """The SQL of the macros that the queries ask."""
    intro = ["The macros that the queries of this page ask, as they are in every warehouse."]
    code = [sql(f"views/{name}") for name in _SQL]
    return Section("macros", "How the macros compute", intro, code=code)
