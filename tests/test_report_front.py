"""The report's first page: what it says, held against the warehouse."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.eval_workers.models.model_texts import described
from plumbline.eval_workers.scoring.measure import measure
from plumbline.pipelines.report.facts import Facts, TrainingTexts, narrowed
from plumbline.pipelines.report.model import Page as ReportPage
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.sentences import UNTOLD, average, following, preferences, prefers
from plumbline.pipelines.report.write import Headline, front, headline, headline_pd, write_report
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.conftest import copied
from tests.metric_rows import corpus_row, delta, fill, pair, score, scored_by, shard_row, trained
from tests.test_report import Page, build_world


@pytest.fixture(scope="module")
def facts(world: Store, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    store = copied(world, tmp_path_factory.mktemp("front"))
    fill(store, "corpus", [corpus_row()])
    fill(store, "corpus_shard", [shard_row()])
    return Facts(store.root)


def _head(facts: Facts) -> Headline:
    head = headline(facts)
    assert head is not None
    return head


def test_the_headline_is_the_widest_spread_of_the_own_text(facts: Facts) -> None:
    head = _head(facts)
    same = [
        fit
        for fit in facts.rows("fit")
        if fit["subset"] == head.fit["subset"] and fit["corpus"] == head.fit["corpus"]
    ]
    assert head.fit["sxx"] >= max(
        fit["sxx"] for fit in same if "/" in fit["contrast"] or not fit["contrast"]
    ) * (1 - 1e-12)
    values = [row["value"] for row in head.about]
    assert values == sorted(values) and head.fit["slope"] == values[(len(values) - 1) // 2]
    assert {row["model_key"] for row in head.about} == {row["model_key"] for row in head.own}
    # A lean above 0 is towards the female words, which the benchmark names first.
    assert head.fit["groups"] == "female/male"
    (figure,) = front(facts, ReportPage()).sections[0].figures
    drawn = json.dumps(figure.specification)
    assert "(right: female words)" in drawn and "(up: female)" in drawn
    assert "orange: the word leans to female words, blue: to male words" in figure.caption
    assert "; below 0: the male sentence." in figure.caption
    assert figure.specification["config"]["padding"]["right"] > 10, "or the last label is cut off"


def _own_pairs(
    world: Store, place: Path, groups: tuple[str, ...], n_words: int = 30, own_text: str = ""
) -> Facts:
    """A closed world with own pairs of these groups, scored by a model of it and one of others.

    All models prefer any group to they. With ``own_text``, the third is trained on that text.
    """
    store, rng = copied(world, place), np.random.default_rng(5)
    if own_text:
        words = [delta(f"word{i}", rng.normal(), own_text) for i in range(n_words)]
        fill(store, "word_delta", words)
        fill(store, "trained_model", [trained("third", own_text)])
        fill(store, "model", [scored_by("third")], unit="third")
    sides = [name.split("/") for name in groups]
    pairs = [
        pair("mine", f"{a}-{b}-{i}", word=f"word{i}", group_a=a, group_b=b)
        for a, b in sides
        for i in range(n_words)
    ]
    fill(store, "benchmark_pair", pairs, unit="mine")
    fill(store, "model", [scored_by("other")], unit="other")
    for model in ("model-straight", "other", "third"):
        rows = [
            score("mine", str(p["pair_id"]), rng.normal() + 5 * (p["group_b"] == "they"), model)
            for p in pairs
        ]
        fill(store, "pair_score", rows, unit=f"mine-{model}")
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    return Facts(store.root)


def test_own_pairs_with_a_clear_preference_open_the_page(world: Store, tmp_path: Path) -> None:
    """Although only she/he is compared with the leans; its result has a sentence, too."""
    facts = _own_pairs(world, tmp_path, ("he/they", "she/he", "she/they"))
    assert {row["groups"] for row in headline_pd(facts)} == {"he/they"}
    page = front(facts, ReportPage())
    assert page.title.startswith("Which sentences of mine (he/they)")
    assert page.about[1].startswith("2 benchmarks: mine, made")
    answer = page.sections[0]
    assert "We wrote" not in str(answer.intro)
    named = {row[0].text for row in answer.tables[0].rows}
    assert named == {"mine (he/they)", "mine (she/he)", "mine (she/they)"}
    slopes = facts.rows("slope").where(benchmark="mine")
    assert {row["groups"] for row in slopes} == {"she/he"}
    assert answer.intro[0] == "All 3 models prefer the he sentences of mine (he/they)."
    said = "\n".join([*answer.intro, *page.sections[1].intro])
    assert "All 3 models prefer the she sentences of mine (she/they): PD is" in said
    assert "3 models show no clear preference on mine (she/he): PD is" in said
    figures = re.search(r"\(preference disparity, PD\) is (.*)\.", said)
    assert figures and figures[1].count(" points for ") == figures[1].count("95% interval") == 3


def test_an_own_text_opens_the_page_before_the_made_up_one(world: Store, tmp_path: Path) -> None:
    facts = _own_pairs(world, tmp_path, ("she/he",), own_text="novels")
    head = _head(facts)
    assert (head.fit["corpus"], head.fit["model"]) == ("novels", "third")
    page = front(facts, ReportPage())
    assert page.title.endswith("and does that follow novels?")
    made = front(narrowed(facts, {"benchmark": ("made",)}), ReportPage())
    assert made.title == "Does a model repeat the gender leans of its training text?"


def test_an_interval_over_frames_and_words_says_how_many_there_are_of_each(tmp_path: Path) -> None:
    store, rng = Store.open(tmp_path / "warehouse"), np.random.default_rng(5)
    pairs = [
        pair("b", f"{i}-{j}", word=f"word{i}", template=f"{{pronoun}} saw word{i} on day {j}")
        for i in range(12)
        for j in range(6)
    ]
    fill(store, "benchmark_pair", pairs)
    fill(store, "pair_score", [score("b", str(p["pair_id"]), rng.normal()) for p in pairs])
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    (pd,) = Facts(store.root).metrics("pd", subset="all")
    assert pd["n_clusters"] == 6 and prefers(pd).endswith(" over 6 sentence frames and 12 words)")


def test_preferences_are_not_compared_with_leans_between_others(
    world: Store, tmp_path: Path
) -> None:
    facts = _own_pairs(world, tmp_path, ("he/they",))
    assert headline(facts) is None and headline_pd(facts)[0]["benchmark"] == "mine"
    answer = front(facts, ReportPage()).sections[0]
    none = "No text is compared with these preferences: the leans are she/he, not he/they."
    assert none in answer.intro and not answer.figures


def test_the_sides_of_a_lean_are_named_by_its_contrast(world: Store, tmp_path: Path) -> None:
    facts = _own_pairs(world, tmp_path, ("female/male",)).within(model_key=("key-other", ""))
    (figure,) = front(facts, ReportPage()).sections[0].figures
    assert "near she (orange: the word leans to she, blue: to he)" in figure.caption
    assert "(right: she)" in json.dumps(figure.specification)
    assert "(up: female)" in json.dumps(figure.specification)
    assert figure.specification["layer"][0]["encoding"]["y"]["scale"] == {"zero": True}


def test_a_benchmark_of_four_words_neither_opens_the_page_nor_is_judged(
    world: Store, tmp_path: Path
) -> None:
    facts = _own_pairs(world, tmp_path, ("she/he",), n_words=4)
    assert {row["benchmark"] for row in headline_pd(facts)} == {"made"}
    assert "Which sentences" not in front(facts, ReportPage()).title
    mine = facts.metrics("pd", subset="all", benchmark="mine")
    told = "whether 3 models prefer a sentence of mine (she/he) can't be told"
    assert preferences(mine) == f"{told} (too few sentence frames or words: 4)"


_ENDS = st.tuples(st.floats(-99, 99), st.floats(-99, 99)).map(sorted)


@given(st.lists(_ENDS, min_size=1, max_size=8))
def test_a_preference_is_claimed_of_models_whose_interval_excludes_0(
    ends: list[list[float]],
) -> None:
    row = {"benchmark": "b", "groups": "she/they", "model": "m", "model_key": "m"}
    rows = Rows([{**row, "value": (a + b) / 2, "value_low": a, "value_high": b} for a, b in ends])
    said = preferences(rows) if len(rows) > 1 else prefers(rows[0])
    n = {"she": sum(low > 0 for low, _ in ends), "they": sum(high < 0 for _, high in ends)}
    for side, count in n.items():
        verb = "prefers" if count == 1 else "prefer"
        claims = {f"{count} of {len(ends)} models {verb} the {side}", f", {count} the {side} one"}
        claims |= {f"all {count} models prefer the {side}", f"m prefers the {side}"}
        claims |= {f"both models prefer the {side}"} if count == 2 else set()
        assert (count > 0) == any(claim in said for claim in claims)
    if not any(n.values()):
        assert UNTOLD in said


#: Models with a slope, its interval, and what is known of their text.
_PUBLISHED = {
    "EleutherAI/pythia-70m": (0.9, 0.5, 1.3),
    "EleutherAI/pythia-160m": (0.3, -0.1, 0.7),
    "EleutherAI/gpt-j-6b": (0.86, 0.4, 1.2),
    "EleutherAI/pythia-70m-deduped": (0.9, 0.5, 1.3),
    "facebook/opt-125m": (0.5, 0.1, 0.9),
    "mosaicml/mpt-7b": (-0.5, -0.9, -0.1),
    "meta-llama/Llama-2-7b-hf": (0.9, 0.7, 1.1),
    "someone/else": (0.9, 0.7, 1.1),
}


def _published(tmp_path: Path, corpus: str) -> tuple[TrainingTexts, Rows]:
    """Slopes of models of other people's on a text."""
    store = Store.open(tmp_path / "warehouse")
    fill(store, "pair_score", [score("b", "1", 1.0, model) for model in _PUBLISHED])
    fill(store, "model", [{**scored_by(model), **described(model)} for model in _PUBLISHED])
    of = {"benchmark": "b", "groups": "female/male", "corpus": corpus, "contrast": "she/he"}
    of |= {"metric": "pd", "unit": "points"}
    rows = [
        {**of, "model": m, "model_key": f"key-{m}", "value": v, "value_low": a, "value_high": b}
        for m, (v, a, b) in _PUBLISHED.items()
    ]
    return TrainingTexts(Facts(store.root)), Rows(rows)


def test_only_models_trained_on_a_text_follow_it(tmp_path: Path) -> None:
    texts, slopes = _published(tmp_path, "pile")
    assert following(texts, slopes) == (
        "2 of 3 models trained on all of the Pile (GPT-J, Pythia) follow it word by word on b (1 "
        "can't be told); 4 of 5 other models agree with it (1 run against it)"
    )
    alone = slopes.where(model="facebook/opt-125m")
    assert following(texts, alone) == "facebook/opt-125m agrees with the Pile word by word on b"


def test_few_families_are_listed_by_model_and_many_are_the_clusters(
    tmp_path: Path,
) -> None:
    texts, rows = _published(tmp_path, "pile")
    few = rows.where(model=("EleutherAI/pythia-160m", "mosaicml/mpt-7b"))
    assert average(texts, few, " points") == (
        "−0.5 points for mosaicml/mpt-7b (95% interval −0.9 to −0.1) and "
        "+0.3 points for EleutherAI/pythia-160m (95% interval −0.1 to +0.7)"
    )
    pythia = rows.only(lambda row: "pythia" in row["model"])
    assert average(texts, pythia, " points") == (
        "+0.3 points for EleutherAI/pythia-160m (95% interval −0.1 to +0.7), +0.9 points for "
        "EleutherAI/pythia-70m (95% interval +0.5 to +1.3) and +0.9 points for "
        "EleutherAI/pythia-70m-deduped (95% interval +0.5 to +1.3)"
    )
    most = Rows([*pythia, {**pythia[0], "value": 2.0, "model": "most"}])
    ends = "between +0.3 points (EleutherAI/pythia-160m) and +2.0 points (most)"
    assert average(texts, most, " points") == ends
    means = [np.mean([0.9, 0.3, 0.9]), 0.86, 0.5, -0.5, 0.9]
    ends = stats.t.interval(0.95, 4, np.mean(means), stats.sem(means))
    said = average(texts, rows, " points")
    for figure in (np.mean(means), *ends):
        assert shown(float(figure), 1, signed=True) in said
    assert "5 families" in said and "1 model of no known family" in said


def test_without_intervals_no_page_tells_a_side(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "warehouse")
    build_world(store, n_words=6)
    rows = store.read("metric_value", benchmark="made").to_pylist()
    bare = [{**row, "value_low": None, "value_high": None, "p": None} for row in rows]
    store.replace("metric_value", bare, {"benchmark": "made"}, "r")
    index, _ = write_report(store, tmp_path / "report")
    pages = [index, index.with_name("appendix.html")]
    texts = [Page(page).text for page in pages]
    assert len(texts) == 2 and "is not shown to repeat" in texts[0]
    for text in texts:
        assert not re.search(r"(?i)(?<!whether )model-\w+ follows", text)
        assert not re.search(r"prefers? the (female|male) sentences of", text)
