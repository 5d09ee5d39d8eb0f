"""The pages of a site beside the report's own: one for each model and one for each benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.groups import set_name, sets
from plumbline.pipelines.report.model import numbered, stem

#: Directories of a site.
KINDS = ("models", "benchmarks")


@dataclass(frozen=True)
class SitePart:
    """A page: its directory, what it is of, the stem of its file, and the facts it is made from."""

    kind: str
    name: str
    stem: str
    facts: Facts


def parts(facts: Facts) -> list[SitePart]:
    """A part for each measured model, then one for each benchmark with its groups."""
    rows = facts.rows("metric").where(subset="all", metric="us")
    models = {str(r["model_key"]): str(r["model"]) for r in rows}
    subjects = [("models", name, {"model_key": key}) for key, name in models.items()]
    subjects += [("benchmarks", set_name(of), of) for of in sets(rows)]
    seen = {kind: Counter[str]() for kind in KINDS}
    return [
        SitePart(kind, name, numbered(seen[kind], stem(name) or "page"), facts.within(**of))
        for kind, name, of in subjects
    ]


def links(pages: Sequence[SitePart]) -> dict[str, str]:
    """Paths of the pages of models and benchmarks, from the site's first page."""
    return {part.name: f"{part.kind}/{part.stem}.html" for part in pages}
