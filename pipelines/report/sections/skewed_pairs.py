"""The pairs with the strongest preferences for each side."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.eval_workers.writing.offline import CAVEAT, SOURCE
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import capital, preferences
from plumbline.pipelines.report.model import Columns, Lead, Missing, PageTable, Section, table
from plumbline.pipelines.report.rows import Rows, by_set, set_name

PLACE = 400
NAMES = ("pairs",)
LEAD_PLACE = 120  # after the preferences, which are only as good as the sentences
#: Pairs listed for each side.
TOP_PAIRS = 20
_TITLE = "The most skewed pairs"


def sections(facts: Facts) -> Iterator[Section | Missing]:
    """A table for each benchmark."""
    tables = [_table(set_rows) for set_rows in by_set(facts.rows("pair", top=TOP_PAIRS))]
    if not tables:
        yield Missing(_TITLE, "plumbline score --model ID_OR_PATH --benchmark NAME")
        return
    intro = [f"The {TOP_PAIRS} pairs with the largest log ratios to each side, for every model."]
    yield Section("pairs", _TITLE, intro, tables=tables)


def _table(rows: Rows) -> PageTable:
    n_models = len({r["model_key"] for r in rows})
    caption = f"{set_name(rows[0])}, {n_models} model{'' if n_models == 1 else 's'}"
    sentences = ("sentence_b", "sentence_a")
    columns: Columns = [
        "model",
        ("log ratio", "log_ratio_nats"),
        ("preferred sentence", lambda r: r[sentences[r["log_ratio_nats"] > 0]]),
        ("the other", lambda r: r[sentences[r["log_ratio_nats"] <= 0]]),
    ]
    return table(caption, rows, columns, folded=n_models > 2, searchable=True)


def leads(facts: Facts) -> Iterator[Lead]:
    """A caveat on each benchmark that was written from Plumbline's frames, with its results."""
    texts, sentences = TrainingTexts(facts), []
    for row in facts.rows("written_benchmark", source=SOURCE):
        measured = facts.metrics("pd", subset="all", benchmark=row["benchmark"])
        sets = by_set(measured.only(lambda r: r["n"]))
        verdicts = [capital(preferences(texts, set_rows)) for set_rows in sets]
        sentences.append(
            "".join(f"{text}. " for text in [f"{row['benchmark']}: {CAVEAT}", *verdicts]).strip()
        )
    yield Lead("What are these sentences worth?", sentences)
