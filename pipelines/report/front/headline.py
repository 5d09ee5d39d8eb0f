"""The subject of the first page: one benchmark and, if it has fits, one text with its plot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from plumbline.pipelines.report.charts import word_charts as charts
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.fits import BY_MAX_PMI, LEANS, of_errors
from plumbline.pipelines.report.findings.models_by_text import TrainingTexts
from plumbline.pipelines.report.findings.sentences import sureness
from plumbline.pipelines.report.metric_tables import FIT
from plumbline.pipelines.report.model import Figure, shown, stem
from plumbline.pipelines.report.rows import Row, Rows, by_set, set_name, sides, with_ends

#: Columns that the fits of all models on one benchmark and one text share.
SHARED = ("subset", "benchmark", "groups", "corpus", "contrast", "options")


@dataclass(frozen=True)
class Headline:
    """The slopes of all models on one benchmark and text, and the fit that is drawn.

    ``slopes`` are rows of ``metric_value``, smallest first. ``own`` are those of models trained on
    the text. ``fit`` is the row of view ``fit`` with the middle slope of ``about``. ``elsewhere``
    are slopes on the same text and other benchmarks.
    """

    slopes: Rows
    own: Rows
    fit: Row
    elsewhere: Rows
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


def headline_pd(facts: Facts) -> Rows:
    """The rows of PD on the benchmark and groups that the page is about; none without metrics.

    The page is about the benchmark on which the most models have a preference in at least one pair.
    Ties are decided by the slopes (first in ``_first_slopes``), then by the number of pairs.
    """
    moved = facts.metrics("us", subset="all").only(lambda r: r["n"] and r["value"] < 1)
    n_models, fits = Counter(map(set_name, moved)), [*_first_slopes(facts)]

    def place(pd_rows: Rows) -> tuple[int, int, int]:
        name = set_name(pd_rows[0])
        return -n_models[name], (fits.index(name) if name in fits else len(fits)), -pd_rows[0]["n"]

    pd_by_set = by_set(facts.metrics("pd", subset="all").only(lambda r: r["n"]))
    return min(pd_by_set, key=place, default=Rows())


def headline(facts: Facts) -> Headline | None:
    """The first slopes on the benchmark that the page is about; ``None`` if it has none."""
    name = next(map(set_name, headline_pd(facts)), "")
    first = _first_slopes(facts).get(name)
    if first is None:
        return None
    texts, fits = TrainingTexts(facts), _fits(facts)
    ordered = Rows(sorted(first, key=lambda r: r["value"]), first.sql)
    own = ordered.only(lambda r: texts.relation(r) == "same")
    about = own or ordered
    middle = about[(len(about) - 1) // 2]
    text_columns = {c: first[0][c] for c in SHARED if c not in ("benchmark", "groups")}
    elsewhere = known_slopes(facts).where(**text_columns).only(lambda r: set_name(r) != name)
    return Headline(ordered, own, fits[_fit_key(middle)], elsewhere, texts)


def _first_slopes(facts: Facts) -> dict[str, Rows]:
    """Benchmark -> the slopes of all models on its first text, by ``rank``.

    Slopes of models on their own training text come first, then planted before measured leans, then
    single pairs of words such as she/he before lists. Ties are decided by the spread of the leans:
    a wider spread gives a slope a smaller error.
    """
    fits = _fits(facts)
    trained_on = {(r["model"], r["trained_on"]) for r in facts.rows("model")}

    def rank(slope_rows: Rows) -> tuple[bool, int, bool, float]:
        spread = max(fits[_fit_key(row)]["sxx"] for row in slope_rows)
        is_foreign = not all((row["model"], row["corpus"]) in trained_on for row in slope_rows)
        is_list = "/" not in (slope_rows[0]["contrast"] or "/")
        return is_foreign, list(LEANS).index(slope_rows[0]["subset"]), is_list, -spread

    first_text: dict[str, Rows] = {}
    slopes = known_slopes(facts).only(lambda r: _fit_key(r) in fits)
    for slope_rows in sorted(slopes.groups(*SHARED), key=rank):
        first_text.setdefault(set_name(slope_rows[0]), slope_rows)
    return first_text


def _fits(facts: Facts) -> dict[tuple[object, ...], Row]:
    return {_fit_key(fit): fit for fit in facts.rows("fit")}


def _fit_key(row: Row) -> tuple[object, ...]:
    return tuple(row[c] for c in FIT)


def known_slopes(facts: Facts) -> Rows:
    """Slopes on the lean of a text. A model trained here has slopes on its own text only."""
    return facts.rows("slope").where(subset=tuple(LEANS))


def headline_figure(facts: Facts, head: Headline) -> Figure | None:
    """The points of the headline's fit with its line; ``None`` if they can't be drawn."""
    fit, points = head.fit, facts.points(head.fit)
    if not points:
        return None
    name, (first, _) = set_name(fit), sides(fit)
    which, pairs = f"of {name}", "sentences with it"
    if fit["subset"] == BY_MAX_PMI:
        which, pairs = f"that decides the MaxPMI of some pairs of {name}", "these pairs, often few"
    titles = (LEANS[fit["subset"]], f"log ratio in nats (up: {first})")
    middle = f" (the middle one of {len(head.about)})" if len(head.about) > 1 else ""
    return Figure(
        stem("lean", fit["model"], name, fit["corpus"]),
        f"Each word's preference by {fit['model']} against its lean in {fit['corpus']}: slope "
        f"{shown(fit['slope'], 2, signed=True)} over {fit['n']:,} words.",
        f"Each dot is a word {which}. Across: its lean in the text {fit['corpus']} "
        f"(right: {first}). Up: the mean log ratio of the model {fit['model']}{middle} in "
        f"{pairs} (up: {first}). Outer words are named. Line: least squares, 95% band.",
        charts.following(points, fit, titles, "words.html"),
        points,
    )


def per_nat(facts: Facts, head: Headline) -> str:
    """Say by how much the preference changes per nat of lean: the slope that is drawn."""
    row, n, contrast = head.slope, len(head.about), head.fit["contrast"]
    side_of_text = facts.contrast_sides(head.fit["corpus"], contrast) if contrast else sides(row)
    who = f"{row['model']}, the middle one of {n} models,"
    whose = "the model's preference" if n == 1 else f"the preference of {who}"
    word = "the word that decides a pair's MaxPMI" if row["subset"] == BY_MAX_PMI else "a word"
    moves = finding(row).pick(above="rises by", below="falls by", untold="isn't shown to change:")
    value, low, high = (row[end] for end in with_ends("value"))
    if moves == "falls by":
        row = {**row, "value": -value, "value_low": -high, "value_high": -low}
    is_signed = moves.endswith(":")
    noise = f" {of_errors(head.fit)}." if of_errors(head.fit) else ""
    return (
        f"For each nat (a factor of 2.7) that {word} leans further to {side_of_text[0]} in the "
        f"text, {whose} {moves} {shown(row['value'], 2, signed=is_signed)} nats "
        f"({sureness(row, 2, signed=is_signed)}).{noise}"
    )
