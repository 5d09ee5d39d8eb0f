"""The paragraph on methods for a paper: the template ``methods.txt`` filled with queries."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, StrictUndefined

from plumbline.pipelines.report.facts import Facts

#: Settings of models. Models with equal settings share a sentence.
_SETTINGS = (
    *("backend", "backend_version", "dtype", "quantisation", "measure", "text_form"),
    "bos_policy",
)


def methods(facts: Facts) -> str:
    """Sentences, one per line, on corpora, benchmarks, models, rules, seeds, rejects and versions.

    Empty for an empty warehouse. The rows come from ``sql/report/methods_*.sql``.
    """
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    words = (resources.files(__package__) / "methods.txt").read_text("utf-8")
    return environment.from_string(words).render(
        rows=lambda name: facts.rows(f"methods_{name}"),
        rejected=facts.query(
            "SELECT stage, subject, count(*) AS n FROM reject GROUP BY ALL ORDER BY ALL"
        ),
        settings=_SETTINGS,
    )
