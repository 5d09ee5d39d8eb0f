"""Which fit the first page is about: one benchmark and one text, with every model on them."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.training_text import TrainingTexts
from plumbline.pipelines.report.groups import set_name
from plumbline.pipelines.report.metrics import FIT
from plumbline.pipelines.report.rows import Row, Rows
from plumbline.pipelines.report.sections.follow import LEANS

#: What the fits of all models on one benchmark and one text share.
SHARED = ("subset", "benchmark", "groups", "corpus", "contrast", "options")


@dataclass(frozen=True)
class Headline:
    """The slopes of all models on one benchmark and text, and the fit that is drawn.

    ``slopes`` are rows of ``metric_value``, smallest first, and ``own`` those of them whose models
    were trained on the text. ``fit`` is the row of view ``fit`` of the model in the middle of
    these, or of all where there are none. ``elsewhere`` are slopes of the same models on the same
    text and other benchmarks. ``texts`` knows the models' texts.
    """

    slopes: Rows
    own: Rows
    fit: Row
    elsewhere: Rows
    texts: TrainingTexts

    @property
    def about(self) -> Rows:
        """The slopes that the headline is about: of models trained on the text, if there are."""
        return self.own or self.slopes

    @property
    def is_cause(self) -> bool:
        """Whether each model was trained in this warehouse on this text alone."""
        return len(self.own) == len(self.slopes) and self.texts.are_ours(self.slopes)

    @property
    def slope(self) -> Row:
        """The slope of the fit that is drawn."""
        return next(r for r in self.slopes if r["model_key"] == self.fit["model_key"])


def headline(facts: Facts) -> Headline | None:
    """The fits to show first; ``None`` without any.

    Models on the text that they were trained on come before others, planted before measured leans,
    one pair of words such as she/he before lists, and of several benchmarks that whose words or
    pairs spread widest in the text comes first: there a slope is known best, whatever it is.
    """
    fits = {tuple(fit[c] for c in FIT): fit for fit in facts.rows("fit")}
    slopes = known_slopes(facts).only(lambda r: tuple(r[c] for c in FIT) in fits)
    if not slopes:
        return None
    ours = own_texts(facts)

    def rank(of: Rows) -> tuple[bool, int, bool, float]:
        spread = max(fits[tuple(row[c] for c in FIT)]["sxx"] for row in of)
        is_foreign = not all((row["model"], row["corpus"]) in ours for row in of)
        is_list = "/" not in (of[0]["contrast"] or "/")
        return is_foreign, list(LEANS).index(of[0]["subset"]), is_list, -spread

    first = min(slopes.groups(*SHARED), key=rank)
    texts = TrainingTexts(facts)
    ordered = Rows(sorted(first, key=lambda r: r["value"]), first.sql)
    own = ordered.only(lambda r: texts.relation(r) == "same")
    about = own or ordered
    middle = about[(len(about) - 1) // 2]
    of_text = {c: first[0][c] for c in SHARED if c not in ("benchmark", "groups")}
    elsewhere = slopes.where(**of_text).only(lambda r: set_name(r) != set_name(middle))
    return Headline(ordered, own, fits[tuple(middle[c] for c in FIT)], elsewhere, texts)


def own_texts(facts: Facts) -> set[tuple[str, str]]:
    """Models with the corpus that they were trained on."""
    return {(row["model"], row["trained_on"]) for row in facts.rows("model") if row["trained_on"]}


def known_slopes(facts: Facts) -> Rows:
    """Slopes that have an interval; those of a model trained on a corpus, on this corpus only."""
    return facts.rows("slope").where(subset=tuple(LEANS))
