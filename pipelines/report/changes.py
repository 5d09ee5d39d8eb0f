"""The section on words whose lean differs between two texts."""

from __future__ import annotations

from collections import Counter

from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.model import Section, shown, stem, table
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.warehouse.query.finding import ALPHA


def surest(rows: Rows) -> list[Row]:
    """Rows of ``word_change``, those with the smallest adjusted p first."""
    return sorted(rows, key=lambda row: (row["q"], row["p"], -abs(row["change_nats"])))


def change_section(rows: Rows, n: int, *, folded: bool = False) -> Section:
    """The section of two texts, from their rows of ``word_change``; ``n`` words are listed."""
    a, b, contrast = (rows[0][name] for name in ("text_a", "text_b", "contrast"))
    ways = Counter(finding(row, "change_nats").verdict for row in rows)
    if n_clear := ways["above"] + ways["below"]:
        female, _, male = contrast.partition("/")
        verdict = (
            f"{n_clear:,} lean otherwise in {b} than in {a}: "
            f"{ways['above']:,} more to {female}, {ways['below']:,} more to {male} (q ≤ "
            f"{ALPHA:.0%}: of such words one in {1 / ALPHA:.0f} is expected by chance)"
        )
    else:
        smallest = shown(min(row["q"] for row in rows), 2)
        verdict = f"none is shown to lean otherwise in {b} than in {a} (smallest q {smallest})"
    listed = table(
        f"Words with the smallest adjusted p ({contrast})",
        Rows(surest(rows)[:n], rows.sql),
        [
            "word",
            (f"lean in {a}", "delta_a_nats"),
            (f"lean in {b}", "delta_b_nats"),
            ("difference, nats", "change_nats"),
            ("adjusted p", "q"),
        ],
        folded=folded,
        searchable=True,
    )
    base = rows[0]["base_change_nats"]
    intro = (
        f"Of {len(rows):,} words compared {verdict}. "
        f"{shown(base, 2, signed=True)} nats of every difference come from how often the texts "
        "have the two words of the contrast. Intervals are over documents; p is adjusted for all "
        "words compared."
    )
    title = f"Words that lean otherwise in {b} than in {a}"
    return Section(stem("change", a, b, contrast), title, [intro], tables=[listed])
