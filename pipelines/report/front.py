"""The first page of a report: one answer with its chart and table, and what supports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from plumbline.pipelines.report.estimates import SUBSETS
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.model import Page, count, first_of
from plumbline.pipelines.report.rows import FIT, Row, Rows, by_set, set_name
from plumbline.pipelines.report.templates import sections_from

#: Most benchmarks, models and corpora to name above the title, and most warnings to show.
_NAMED = 3
#: Sections of the appendix that the first page covers in full, or that answer no question.
_OWN = ("methods", "limits", "preference", "follow", "swapped", "planted", "text", "models")


@dataclass(frozen=True)
class Headline:
    """The slopes of all models on one benchmark and text, and the fit that is drawn.

    ``slopes`` are rows of ``metric_value``, smallest first. ``own`` are those of models trained on
    the text. ``fit`` is the row of view ``fit`` with the middle slope of ``about``.
    """

    slopes: Rows
    own: Rows
    fit: Row
    texts: TrainingTexts

    @property
    def about(self) -> Rows:
        """The slopes that the headline is about: ``own`` if there are any, else all."""
        return self.own or self.slopes

    @property
    def is_cause(self) -> bool:
        """True if each model was trained in this warehouse on this text alone."""
        return len(self.own) == len(self.slopes) and self.texts.are_ours(self.slopes)

    @property
    def slope(self) -> Row:
        """The slope of the fit that is drawn."""
        return next(r for r in self.slopes if r["model_key"] == self.fit["model_key"])


def front(facts: Facts, appendix: Page) -> Page:
    """Return a warehouse's first page. Warnings and links come from ``appendix``.

    The first section is the answer. Others are about the models, the text and other benchmarks.
    """
    others = [s for s in appendix.sections if s.intro and s.anchor not in _OWN]
    questions = [section for section in others if "?" in section.title]
    values = {"head": headline(facts), "others": questions, "pd": headline_pd(facts)}
    made = sections_from('{% include "_front" %}', facts, **values)
    answer, *parts = made
    alerts = [alert for section in appendix.sections for alert in section.alerts]
    if len(alerts) > _NAMED:
        alerts[_NAMED:] = [f"{len(alerts) - _NAMED} more warnings are in the appendix."]
    return Page(
        [replace(answer, alerts=alerts), *parts],
        title=answer.title,
        about=list(_about(facts)),
        answers=[(f"appendix.html#{s.anchor}", s.title, s.intro[0]) for s in questions],
        links=[(f"appendix.html#{s.anchor}", s.title) for s in others if "?" not in s.title],
        is_front=True,
    )


def _about(facts: Facts) -> Iterator[str]:
    """Yield the date of the last run, benchmarks, models, and corpora with their token counts."""
    yield max((str(row["started"])[:10] for row in facts.rows("run")), default="")
    for noun, plural in (("benchmark", "benchmarks"), ("model", "models")):
        names = list(dict.fromkeys(str(row[noun]) for row in facts.rows("score")))
        what = noun if len(names) == 1 else f"{len(names)} {plural}"
        yield f"{what}: {first_of(names, _NAMED)}" if names else ""
    made_up = {r["corpus"] for r in facts.metrics("slope", subset="words, planted delta")}
    texts = [
        f"{'made-up text' if row['corpus'] in made_up else row['corpus']} "
        f"({count(row['n_tokens'] or row['n_kept_tokens']).text} tokens)"
        for row in facts.rows("ledger")
    ]
    yield f"text: {first_of(texts, _NAMED)}" if texts else ""


def headline_pd(facts: Facts) -> Rows:
    """Return the rows of PD for the benchmark and groups that the page is about, if any.

    The page is about the benchmark on which the most models have a preference in at least one pair.
    Ties go to the benchmark that comes first in ``_first_slopes``, then to the one with more pairs.
    """
    moved = facts.metrics("us", subset="all").only(lambda r: r["n"] and r["value"] < 1)
    n_models, fits = Counter(map(set_name, moved)), [*_first_slopes(facts)]

    def place(pd_rows: Rows) -> tuple[int, int, int]:
        name = set_name(pd_rows[0])
        return -n_models[name], (fits.index(name) if name in fits else len(fits)), -pd_rows[0]["n"]

    pd_by_set = by_set(facts.metrics("pd", subset="all").only(lambda r: r["n"]))
    return min(pd_by_set, key=place, default=Rows())


def headline(facts: Facts) -> Headline | None:
    """Return the first slopes on the benchmark that the page is about; ``None`` if it has none."""
    name = next(map(set_name, headline_pd(facts)), "")
    first = _first_slopes(facts).get(name)
    if first is None:
        return None
    texts = TrainingTexts(facts)
    ordered = Rows(sorted(first, key=lambda r: r["value"]), first.sql)
    own = ordered.only(lambda r: texts.relation(r) == "same")
    about = own or ordered
    return Headline(ordered, own, _fits(facts)[_of_fit(about[(len(about) - 1) // 2])], texts)


def _first_slopes(facts: Facts) -> dict[str, Rows]:
    """Return, by benchmark, the slopes of all models on its first text, by ``rank``.

    Slopes of models on their own training text come first, then planted before measured leans, then
    single pairs of words such as she/he before lists. Ties go to the wider spread of leans, which
    gives a slope a smaller error.
    """
    fits = _fits(facts)
    trained_on = {(r["model"], r["trained_on"]) for r in facts.rows("model")}

    def rank(slope_rows: Rows) -> tuple[bool, int, bool, float]:
        spread = max(fits[_of_fit(row)]["sxx"] for row in slope_rows)
        is_foreign = not all((row["model"], row["corpus"]) in trained_on for row in slope_rows)
        is_list = "/" not in (slope_rows[0]["contrast"] or "/")
        return is_foreign, SUBSETS.index(slope_rows[0]["subset"]), is_list, -spread

    first_text: dict[str, Rows] = {}
    slopes = facts.rows("slope").where(subset=SUBSETS).only(lambda r: _of_fit(r) in fits)
    for slope_rows in sorted(
        slopes.groups(*(column for column in FIT if column != "model_key")), key=rank
    ):
        first_text.setdefault(set_name(slope_rows[0]), slope_rows)
    return first_text


def _fits(facts: Facts) -> dict[tuple[object, ...], Row]:
    return {_of_fit(fit): fit for fit in facts.rows("fit")}


_of_fit = itemgetter(*FIT)
