"""One warehouse, several questions: what the report is about, of itself and by patterns."""

import re
from pathlib import Path

import numpy as np
import pytest

from plumbline.pipelines.command.base import Done
from plumbline.pipelines.commands.pipeline import Parts, Pipeline
from plumbline.pipelines.report import facts as room
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.write import appendix_of, front, headline, headline_pd, write_report
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import lock
from plumbline.warehouse.storage.store import Store
from tests.conftest import copied
from tests.metric_rows import corpus_row, fill, pair, score, scored_by, shard_row
from tests.page_queries import check_page
from tests.prompt_rows import put_probabilities, put_prompts, put_words
from tests.test_report import Page, build_world

_MODELS = ("model-straight", "model-swapped", "owner/old-hand")
_ALL = {"dutch", "ages"}


def _put_ages(store: Store, name: str = "ages", log_ratio: float = 1.0) -> None:
    """Pairs about age, scored by three models."""
    ids, rng = [f"{name}-{i}" for i in range(20)], np.random.default_rng(3)
    groups = {"group_a": "old", "group_b": "young"}
    fill(store, "benchmark_pair", [pair(name, i, **groups) for i in ids], unit=name)
    for model in _MODELS:
        ratios = log_ratio * rng.normal(1, 1, len(ids))
        rows = [score(name, i, x, model) for i, x in zip(ids, ratios, strict=True)]
        fill(store, "pair_score", rows, unit=f"{name}-{model}")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A Dutch test with fits of two models, and pairs about age without, of three models."""
    made = Store.open(tmp_path_factory.mktemp("scope") / "warehouse")
    fill(made, "corpus", [corpus_row()])
    fill(made, "corpus_shard", [shard_row()])
    fill(made, "model", [scored_by(_MODELS[2])], unit=_MODELS[2])
    put_prompts(made, "topics", ["The nurse said"])
    put_words(made, [("she", "he")])
    put_probabilities(made, [{"she": 0.2, "he": 0.1}], probe_set="topics", key=f"key-{_MODELS[2]}")
    _put_ages(made)
    build_world(made, name="dutch")
    return made


def test_the_first_page_is_about_the_question_with_most_models(store: Store) -> None:
    facts = Facts(store.root)
    assert {row["benchmark"] for row in facts.rows("fit")} == {"dutch", ""}
    assert {row["model"] for row in headline_pd(facts)} == set(_MODELS)
    assert headline(facts) is None
    page = front(facts, appendix_of(facts))
    answer = page.sections[0]
    assert page.title == "Which sentences of ages (old/young) do 3 language models prefer?"
    assert "ages (old/young)" in answer.intro[0] and "dutch" not in answer.intro[0]
    assert ("appendix.html#pd-dutch", "Which sentences of dutch do models prefer?") in page.links
    assert {row[0].text for row in answer.tables[0].rows} == {"ages (old/young)"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "benchmarks", "models"),
    [
        ({"benchmark": ("ag*",)}, {"ages"}, set(_MODELS)),
        ({"benchmark": ("ag*", "dutch")}, _ALL, set(_MODELS)),
        ({"model": ("old-*",)}, {"ages"}, {"owner/old-hand"}),
        ({"model": ("owner/*", "model-s[t]*")}, _ALL, {"owner/old-hand", "model-straight"}),
        ({"benchmark": ("dutch",), "corpus": ("text-sw*",)}, {"dutch"}, set(_MODELS[:2])),
    ],
)
def test_a_report_shows_what_patterns_name(
    store: Store, tmp_path: Path, given: dict[str, tuple[str, ...]], benchmarks: set[str],
    models: set[str],
) -> None:  # fmt: skip
    """And every query gives the rows that stand above it."""
    facts = room.narrowed(Facts(store.root), given)
    index, _ = write_report(store, tmp_path / "report", about=given)
    lock(facts.connection)
    assert len(check_page(index.with_name("appendix.html"), facts.connection)) > 3
    rows = facts.metrics("us")
    assert {row["benchmark"] for row in rows} == benchmarks
    assert {row["model"] for row in rows} == models
    if "corpus" in given:
        assert {row["corpus"] for row in facts.rows("slope")} == {"text-swapped"}
    shown = Page(index)
    said = shown.text
    for names, every in ((benchmarks, _ALL), (models, set(_MODELS))):
        assert all(name.rpartition("/")[2] in said for name in names)
        assert not any(re.search(rf"\b{name}\b", said) for name in every - names)


@pytest.mark.parametrize(
    ("given", "corpora", "has_prompts"),
    [
        ({"benchmark": ("dutch",)}, {"text-straight", "text-swapped"}, False),
        ({"benchmark": ("ages",)}, set(), False),
        ({"model": ("old-*",)}, set(), True),
        ({"benchmark": ("topics",)}, set(), True),
        ({"benchmark": ("*",), "model": ("*",)}, {"text-straight", "text-swapped"}, True),
    ],
)
def test_texts_and_prompts_of_other_questions_are_left_out(
    store: Store, given: dict[str, tuple[str, ...]], corpora: set[str], has_prompts: bool
) -> None:
    facts = room.narrowed(Facts(store.root), given)
    assert {row["corpus"] for row in facts.rows("lean_count")} == corpora
    assert bool(facts.rows("disclosure", smoothing=0.0)) == has_prompts
    is_planted = any(row["subset"] == "words, measured on planted" for row in facts.rows("metric"))
    assert is_planted == ("*" in given.get("benchmark", ()))


def test_a_pipeline_reports_on_its_own_inputs(store: Store, tmp_path: Path) -> None:
    """Even if the warehouse has results of others, on which more could be said."""
    pipeline = Pipeline(
        benchmarks=("dutch", "unmeasured"), model=("straight",), warehouse=store.root, out=tmp_path
    )
    parts = Parts(pipeline, copied(store, tmp_path))
    parts.results["score straight"] = Done(rows=[{"model_key": f"key-{_MODELS[0]}"}])
    parts.do(parts.all()[-1:])
    said = " ".join(parts.results["report"].said)
    assert f"Overall {_MODELS[0]} " in said and "dutch" in said
    assert not re.search(r"ages|old-hand|model-swapped|topics", said)


def test_ranks_and_corrections_are_over_all_models(store: Store) -> None:
    every = Facts(store.root)
    facts = room.narrowed(every, {"model": ("old-hand",)})
    for row in facts.metrics("us", subset="all"):
        (same,) = every.metrics("us", subset="all", model=row["model"], benchmark="ages")
        assert row == same and same["rank_high"] >= 1
    power = "FROM benchmark_power;"
    assert every.query(power) and not facts.query(power), "it sums up other models too"


@pytest.mark.parametrize("option", ["benchmark", "model", "corpus"])
def test_what_names_nothing_lists_what_there_is(store: Store, option: str) -> None:
    with pytest.raises(UsageProblem) as raised:
        room.narrowed(Facts(store.root), {option: ("age", "nix*")})
    there = {"benchmark": "ages", "model": ", ".join(_MODELS)}
    assert f"--{option} age: " in str(raised.value)
    assert there.get(option, "text-straight") in str(raised.value)
    assert "\n" not in str(raised.value)
