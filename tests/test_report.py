"""The report page: what is on it, that its figures are those of `metric_value`, and its safety."""

import re
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.fairpair_set import measure_set
from plumbline.eval_workers.pairs.benchmarks.closed_world import LEXICON
from plumbline.eval_workers.scoring.measure import measure
from plumbline.pipelines.report.facts import Facts, TrainingTexts
from plumbline.pipelines.report.metric_tables import measured
from plumbline.pipelines.report.model import Section
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.sections import SECTIONS
from plumbline.pipelines.report.templates import sections_from
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.conftest import copied
from tests.fairpair_rows import SAMPLED, sampled_set
from tests.metric_rows import (
    association,
    corpus_row,
    delta,
    fill,
    pair,
    planted,
    score,
    scored_by,
    shard_row,
    trained,
)
from tests.page_queries import Reader

_VOID = {"meta", "link", "img", "br"}
_JSON = ("type", "application/json")


def section(warehouse: Store | Path | Facts, name: str) -> Section:
    """The only section of a template."""
    facts = warehouse if isinstance(warehouse, Facts) else Facts(warehouse)
    (one,) = sections_from(SECTIONS.text(name), facts)
    return one


def appendix(store: Store | Path, out: Path) -> Path:
    """Write a report; the page that holds everything."""
    return write_report(store, out)[0].with_name("appendix.html")


class Page(Reader):
    """A page whose tags balance: its links, anchors, visible text, and tables by caption."""

    def __init__(self, path: Path) -> None:
        self.open: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.scripts: list[str] = []
        super().__init__(path.read_text(encoding="utf-8"))
        assert not self.open
        assert self.scripts == [
            (resources.files("plumbline.pipelines.report") / "page.js").read_text("utf-8")
        ]
        self.tables = {one.name: one.rows for one in self.shown if not one.is_plot}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        values = dict(attrs)
        assert not any(name.startswith("on") for name in values)
        assert tag != "script" or attrs in ([], [("src", "vega.js")], [_JSON])
        self._is_own = tag == "script" and not attrs
        self.links += [values[a] or "" for a in ("src", "href", "srcset", "action") if a in values]
        self.anchors.add(values.get("id") or "")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self.open and self.open[-1] == "script" and self._is_own:
            self.scripts.append(data)
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data


def alone(store: Store, out: Path) -> Page:
    """The page that holds everything, without the pages beside it."""
    return Page(appendix(store, out))


def build_world(store: Store, *, name: str = "made", n_words: int = 30) -> None:
    """Both worlds of a small closed world, counted, constrained, scored and measured."""
    rng = np.random.default_rng(11)
    words = [f"word{i}" for i in range(n_words)]
    lean = dict(zip(words, rng.normal(0, 0.7, n_words), strict=True))
    pairs = [
        pair(name, f"{w}-{i}", word=w, pronoun_first=i == 0, source_file=LEXICON)
        for w in words
        for i in (0, 1)
    ]
    fill(store, "benchmark_pair", pairs)
    for world, sign in (("straight", 1), ("swapped", -1)):
        corpus, model = f"text-{world}", f"model-{world}"
        measured = {w: sign * x + rng.normal(0, 0.1) for w, x in lean.items()}
        fill(store, "word_delta", [delta(w, x, corpus) for w, x in measured.items()])
        fill(store, "planted_word", [planted(w, sign * x, corpus, world) for w, x in lean.items()])
        fill(store, "trained_model", [trained(model, corpus)])
        fill(store, "model", [scored_by(model)], unit=model)
        of = [association(name, str(p["pair_id"]), measured[str(p["word"])], corpus) for p in pairs]
        fill(store, "pair_association", of)
        scores = [
            score(
                name, str(p["pair_id"]), sign * lean[str(p["word"])] + rng.normal(0.2, 0.3), model
            )
            for p in pairs
        ]
        fill(store, "pair_score", scores)
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)


def test_a_metric_of_any_name_has_its_column(world: Store, tmp_path: Path) -> None:
    """Over pairs and over the points of a fit: on the page, and in what `measure` prints."""
    store = copied(world, tmp_path)
    rows = store.read("metric_value", benchmark="made").to_pylist()
    own = {"us": {"metric": "female share"}, "slope": {"metric": "steepness", "unit": "nats"}}
    added = [{**row, **own[row["metric"]]} for row in rows if row["metric"] in own]
    part = {"options": '{"part": 2}', "value": 0.25}
    added += [{**row, **part} for row in added if row["unit"] == "share"]
    fill(store, "metric_value", added)
    page = alone(store, tmp_path / "report")
    pairs = page.tables["made, all pairs"][1:]
    assert all(us == share for _, _, us, *_, share, _ in pairs)
    assert [part[1][0] for *_, part in pairs] == [25, 25]
    fits = page.tables["Log ratio on the lean of the text, 95% intervals in brackets"][1:]
    assert all(slope[1] == steepness[1] for *_, slope, _, _, _, steepness, _ in fits)
    assert all(name in page.text for name in ("female share % (part 2)", "steepness"))
    printed = measured(Rows(store.read("metric_value").to_pylist()), TrainingTexts(Facts(store)))
    ours = [row for row in printed if "us" in row]
    assert all(row["female_share"] == row["us"] for row in ours) and ours
    assert {row["female_share_part_2"] for row in ours} == {0.25}
    assert any("steepness" in row for row in printed)


def test_measure_prints_slopes_on_a_models_own_text_if_it_has_one() -> None:
    """Else on all texts; slopes without a model are not printed."""
    row = {"metric": "slope", "subset": "words, measured delta", "benchmark": "b", "value": 1.0}
    row |= {"groups": "female/male", "contrast": "she/he", "n": 9, "options": "{}", "unit": ""}
    models = {"k": "trained", "other": "other", "": ""}
    fits = [
        {**row, "model": model, "model_key": key, "corpus": corpus}
        for key, model in models.items()
        for corpus in ("novels", "letters")
    ]
    own = ("k", "novels")
    texts = SimpleNamespace(
        relation=lambda r: "same" if (r["model_key"], r["corpus"]) == own else "other"
    )
    printed = measured(Rows(fits), cast(TrainingTexts, texts))
    found = [(line["model"], line["corpus"]) for line in printed]
    assert found == [("other", "letters"), ("other", "novels"), ("trained", "novels")]


def test_an_empty_warehouse_says_what_to_run(store: Store, tmp_path: Path) -> None:
    path = appendix(store.root, tmp_path / "report")
    page, first = Page(path), Page(path.with_name("index.html"))
    assert "no metrics yet" in first.text and "plumbline pipeline" in first.text
    assert "methods" in page.anchors
    assert not page.anchors & {"preference", "follow", "words", "text", "pairs"}
    assert not list(path.parent.glob("*.vl.json"))


def test_failed_shards_and_rejects_are_prominent(store: Store, tmp_path: Path) -> None:
    fill(store, "corpus", [corpus_row(min_count=5)])
    failed = shard_row(shard="b.zst", status="failed", error="cut short", n_documents_in=0)
    fill(store, "corpus_shard", [shard_row(), failed | {"n_documents": 0, "n_rejected": 0}])
    reject = {"stage": "count", "subject": "novels", "source_file": "a.jsonl.zst"}
    reject |= {"reason": "no text"}
    fill(store, "reject", [reject | {"source_row": row} for row in (9, 4)])
    page = alone(store, tmp_path / "report")
    assert page.text.count("b.zst (cut short)") == 1 and "does not add up" not in page.text
    assert "words counted fewer than 5 times pruned" in page.text
    (row,) = page.tables["Ledger of each corpus"][1:]
    assert [cell[0] for cell in row[4:7]] == ["7", "5", "2"]
    (row,) = page.tables["Input that was not used"][1:]
    assert [cell[0] for cell in row[2:]] == ["no text", "2", "a.jsonl.zst, row 4"]
    fill(store, "corpus_shard", [shard_row(n_documents_in=8)])
    assert "does not add up" in alone(store, tmp_path / "report").text


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}$x^{$\x00\ud83d"


@pytest.mark.slow
def test_hostile_text_is_escaped(store: Store, tmp_path: Path) -> None:
    bad = HOSTILE.replace("\ud83d", "").replace("\x00", "")
    build_world(store, name=bad)
    fill(store, "corpus", [corpus_row(corpus=bad, targets=bad)])
    fill(store, "corpus_shard", [shard_row(corpus=bad, shard=bad, status="failed", error=bad)])
    fill(store, "word_delta", [delta(f"{bad}{i}", i - 9.5, bad) for i in range(20)])
    sentences = {"template": bad, "sentence_a": bad, "sentence_b": bad, "word": bad}
    fill(store, "benchmark_pair", [pair("b", f"{bad}{i}", **sentences) for i in range(5)])
    fill(store, "pair_score", [score("b", f"{bad}{i}", i - 2.0, bad, "k") for i in range(5)])
    measure(store, "r")
    path = appendix(store, tmp_path / "report")
    page = Page(path)  # fails on a foreign script, an on... attribute, tags that do not balance
    assert bad in page.text and "49" not in re.findall(r"&{+ *(\d+)", page.text)
    assert all(re.match(r"#|data:|index.html|vega.js|[\w.-]+\.csv$", link) for link in page.links)
    assert {p.parent for p in tmp_path.rglob("*.vl.json")} == {path.parent}
    assert any("<script>" in p.read_text("utf-8") for p in path.parent.glob("*.vl.json"))


def test_a_report_without_words_removes_the_search_of_an_earlier_one(
    store: Store, tmp_path: Path
) -> None:
    out = tmp_path / "report"
    fill(store, "word_delta", [delta(f"w{i}", i / 10 - 1) for i in range(20)])
    write_report(store, out)
    (out / "mine.html").write_bytes(b"mine")
    assert (out / "words.html").exists()
    store.replace("word_delta", [], {"corpus": "c"}, "run")
    write_report(store, out)
    assert {path.name for path in out.glob("*.html")} == {
        "index.html",
        "appendix.html",
        "mine.html",
    }


def test_reports_written_at_once_leave_one_report(store: Store, tmp_path: Path) -> None:
    """Audits of several models, or of several kinds, share the directory of the report."""
    for name in "ab":
        fill(store, "word_delta", [delta(f"w{i}", i / 10 - 1, name) for i in range(20)])

    def write(corpus: str) -> None:
        write_report(store, tmp_path / "report", about={"corpus": [corpus]})

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, "abab"))
    alone = {write_report(store, tmp_path / c, about={"corpus": [c]})[0].parent for c in "ab"}
    pages = [
        {p.name: p.read_bytes() for p in d.glob("*.html")} for d in (tmp_path / "report", *alone)
    ]
    assert pages[0] in pages[1:] and pages[1] != pages[2]


FEW = FigureOptions(n_permutations=199, n_resamples=99)


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Eight prompts, two of them with a difference, through every step."""
    store = Store.open(tmp_path_factory.mktemp("planted") / "w")
    sampled_set(store, n_prompts=8, n_samples=30, planted=(2, 5))
    for phi in ("jaccard", "vader"):
        measure_set(store, SAMPLED, phi, FEW, "r")
    return store


def test_fairpair_says_which_prompts_differ(differing: Store, tmp_path: Path) -> None:
    page = alone(differing, tmp_path / "report")
    said = "says “Jane” instead of “John”, m's continuations differ more in which words they use "
    assert said in page.text
    rows = [
        r
        for r in differing.read("fairpair_prompt").to_pylist()
        if (r["phi"], r["side"]) == ("jaccard", "original")
    ]
    clear = {r["prompt_id"] for r in rows if r["q_permutation"] <= 0.05}
    assert clear >= {"job2", "job5"}
    said = next(s for s in section(differing, "fairpair").intro if "jaccard" in s)
    assert f"{len(clear)} of 8 prompts differ" in said
    assert all(name in said.split("correction")[1] for name in clear)


def test_texts_that_never_vary_have_no_chart_of_f(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    sampled_set(store, n_words=0)
    measure_set(store, SAMPLED, "vader", FEW, "r")
    assert {r["fairpair_f"] for r in store.read("fairpair_prompt").to_pylist()} == {None}
    same = section(store, "fairpair")
    assert same.tables and not same.figures
    assert "are not shown to differ" in same.intro[0]
