"""Printed figures beside ours: the comparison by itself, and the command on the released scores."""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce.printed_figures import Row, figures
from plumbline.pipelines.reproduce.unstereoeval import (
    AGREE,
    CONTRADICTED,
    NOT_RUN,
    OFF,
    OUTCOMES,
    compare,
    reproduce,
    starts,
)
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.released_files import PAIRS, Fields, as_csv, score_rows, write_scores

HEADER = "table,dataset,eta,metric,value,hf_id,log_base\n"


def metric(name: str, value: float, **columns: Any) -> dict[str, Any]:
    row = {"metric": name, "benchmark": "use-5", "model": "m", "subset": "all", "eta_nats": None}
    row |= {
        "value": value,
        "value_low": value - 0.1,
        "value_high": value + 0.1,
        "n": 9,
    }
    return {**row, "options": "{}", **columns}


def figure(name: str, value: float, **columns: Any) -> Row:
    given = {"table": 8, "benchmark": "use-5", "eta_nats": None, "model": "m", "log_base": math.e}
    return {**given, "metric": name, "value": value, **columns}


ROWS = [
    metric("us", 0.2111),
    metric("us", 0.5, eta_nats=0.5, subset="|max_pmi| <= 0.5"),
    metric("us", 0.9, subset="pronoun first"),
    metric("pd", -37.39),
    metric("aufc", 5.35, options='{"log_base": "10.0"}'),
    metric("aufc", 4.0, options='{"log_base": "e"}'),
    metric("n", 4405.0),
    metric("n", 4400.0, model="other"),
    metric("gap", 0.031, eta_nats=0.5, subset="|max_pmi| <= 0.5"),
]


@pytest.mark.parametrize(
    ("asked", "ours", "outcome"),
    [
        (figure("US", 21.11), 21.11, AGREE),
        (figure("US", 21.10), 21.11, AGREE),
        (figure("US", 21.09), 21.11, OFF),
        (figure("US", 50.0, eta_nats=0.5), 50.0, AGREE),
        (figure("US_std", 0.61), 61.494 / 100, AGREE),  # binomial, of 4,404 pairs
        (figure("US_std", 0.5), 61.494 / 100, OFF),  # the row's own error is over clusters
        (figure("PD", -37.39), -37.39, AGREE),
        (figure("PD", 37.39), -37.39, OFF),
        (figure("AuFC", 5.35, log_base=10.0), 5.35, AGREE),
        (figure("AuFC", 5.35), 4.0, OFF),
        (figure("US", 21.11, model="another"), None, NOT_RUN),
        (figure("US", 21.11, eta_nats=0.65), None, NOT_RUN),
        (figure("benchmark_size", 4404.0, model=""), 4405.0, CONTRADICTED),
        (figure("benchmark_size", 4404.0, model="", table=12), 4405.0, CONTRADICTED),
        (figure("benchmark_size", 4403.0, model=""), 4405.0, OFF),
        (figure("benchmark_size", 3701.0, model="", eta_nats=0.65), None, NOT_RUN),
        (figure("gap", 3.1, eta_nats=0.5), 3.1, AGREE),
        (figure("gap", 3.12, eta_nats=0.5), 3.1, OFF),
    ],
)
def test_a_figure_beside_ours(asked: Row, ours: float | None, outcome: str) -> None:
    (found,) = compare([asked], ROWS)
    assert found["ours"] == (None if ours is None else pytest.approx(ours, rel=1e-5))
    assert found["outcome"] == outcome


def test_a_contradicted_figure_is_off_when_ours_is_not_the_releases() -> None:
    (found,) = compare([figure("benchmark_size", 4404.0, model="")], [metric("n", 4406.0)])
    assert found["outcome"] == OFF and "4,405" in found["note"]


def test_intervals_and_splits_come_along() -> None:
    (gap,) = compare([figure("gap", 3.1, eta_nats=0.5)], ROWS)
    assert (gap["ours_low"], gap["ours_high"]) == pytest.approx((-6.9, 13.1)) and not gap["note"]
    rows = [
        metric(name, value, subset=f"pronoun {start}")
        for name, value in (("us", 0.25), ("pd", -10.0))
        for start in ("first", "later")
    ]
    found = starts([*rows, metric("us", 0.1, subset="pronoun later", n=0, model="empty")])
    assert [(s["start"], s["us"], s["pd"], s["n_pairs"]) for s in found] == [
        ("pronoun first", 0.25, -10.0, 9),
        ("pronoun later", 0.25, -10.0, 9),
    ]
    assert (found[0]["us_low"], found[0]["us_high"]) == pytest.approx((0.15, 0.35))
    assert (found[0]["pd_low"], found[0]["pd_high"]) == (-10.1, -9.9)


def test_figures_of_few_clusters_have_no_interval() -> None:
    none: dict[str, Any] = {"value_low": None, "value_high": None}
    subset = {"subset": "pronoun first", **none}
    (start,) = starts([metric("us", 0.25, **subset), metric("pd", -10.0, **subset)])
    assert (start["us"], start["pd"]) == (0.25, -10.0)
    assert {start[f"{name}_{end}"] for name in ("us", "pd") for end in ("low", "high")} == {None}
    (found,) = compare([figure("US", 21.11)], [metric("us", 0.2111, **none)])
    assert (found["outcome"], found["ours_low"], found["ours_high"]) == (AGREE, None, None)


PLACE = ("table", "metric", "benchmark", "eta_nats", "model")


def test_table_3_is_table_18_and_sizes_of_13_and_14_are_those_of_table_1() -> None:
    """What docs/reproduce.md says of the print, from the print alone."""
    every = figures("unstereoeval")
    of = {tuple(f[c] for c in PLACE): f["value"] for f in every}
    table_3 = [f for f in every if f["table"] == 3]
    assert len(table_3) == 8 * 5
    for f in table_3:
        assert f["value"] == of[18, "PD", f["benchmark"], 0.5, f["model"]]
    at_065 = [of[17, "PD", f["benchmark"], 0.65, f["model"]] for f in table_3]
    assert sum(f["value"] != other for f, other in zip(table_3, at_065, strict=True)) == 40
    heads = {"use-10": "use-5", "use-20": "winobias"}
    released = {"use-10": (4740, 3916, 3401), "use-20": (4839, 3561, 2828)}
    sizes = [f for f in every if f["table"] in (13, 14) and f["metric"] == "benchmark_size"]
    assert {f["benchmark"] for f in sizes} == set(heads)
    for f in sizes:
        benchmark, eta = f["benchmark"], f["eta_nats"]
        assert f["value"] == of[1, "benchmark_size", heads[benchmark], eta, ""]
        size = released[benchmark][(None, 0.8, 0.65).index(eta)]
        for n, outcome in ((size, CONTRADICTED), (90.0, OFF), (f["value"], AGREE)):
            (found,) = compare([f], [metric("n", n, benchmark=benchmark, eta_nats=eta)])
            assert found["outcome"] == outcome and "sizes of Table 1" in found["note"]


def test_packaged_figures_are_all_that_the_tables_print() -> None:
    every = figures("unstereoeval")
    assert len({f["model"] for f in every if f["model"]}) == 28
    assert {f["table"] for f in every} == {1, 2, 3, *range(8, 23)}
    assert sum(bool(f["model"]) for f in every) == 2731 and len(every) == 2781
    assert len({tuple(f[c] for c in PLACE) for f in every}) == len(every), "no figure twice"
    by_cell: dict[tuple[Any, ...], set[float]] = {}
    for f in every:
        if f["metric"] in ("US", "gap", "PD"):
            by_cell.setdefault(tuple(f[c] for c in PLACE[1:]), set()).add(f["value"])
    assert all(len(values) == 1 for values in by_cell.values()), "what is printed twice is equal"


@pytest.mark.reference
def test_packaged_figures_are_the_papers(data: Path) -> None:
    theirs = figures("unstereoeval", data.parent / "reference" / "unstereoeval_printed.csv")
    ours = [f for f in figures("unstereoeval") if f["model"]]
    assert sorted(map(repr, theirs)) == sorted(map(repr, ours))


def rows_of_gzip(path: Path) -> list[Fields]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.reference
def test_what_the_docs_say_of_the_papers_tables(data: Path) -> None:
    """docs/reproduce.md and docs/methods.md, from printed figures and released files alone."""
    with (REPOSITORY / "pipelines" / "reproduce" / "unstereoeval.csv").open() as file:
        rows = [
            r for r in csv.DictReader(file) if int(r["table"]) in {*range(8, 12), *range(15, 23)}
        ]
    eta = {"inf": (8, 15, 19), "0.8": (9, 16, 20), "0.65": (10, 17, 21), "0.5": (11, 18, 22)}
    assert {(int(r["table"]), r["eta"]) for r in rows} == {
        (table, limit) for limit, tables in eta.items() for table in tables
    }
    metrics = {"US": range(8, 12), "US_std": range(8, 12), "PD": range(15, 19)}
    for name, tables in {**metrics, "AuFC": range(19, 23)}.items():
        assert {int(r["table"]) for r in rows if r["metric"] == name} == set(tables)
    assert len({r["hf_id"] for r in rows if r["hf_id"]}) == 28
    assert all(round(float(r["value"]), 2) == float(r["value"]) for r in rows)
    assert f"{math.log10(1.65):.3f}" == "0.217"
    bases = {(r["table"], r["log_base"]) for r in rows if r["metric"] == "AuFC"}
    assert bases == {("19", "10"), ("20", ""), ("21", ""), ("22", "")}
    sizes = {(r["table"], r["dataset"]): float(r["value"]) for r in rows if "size" in r["metric"]}
    us = {
        (r["table"], r["dataset"], r["hf_id"]): float(r["value"]) / 100
        for r in rows
        if r["metric"] == "US"
    }
    n_own = n_4404 = 0
    for r in [r for r in rows if r["metric"] == "US_std"]:
        share = us[r["table"], r["dataset"], r["hf_id"]]
        own = sizes[r["table"], r["dataset"]]
        of_n = [100 * math.sqrt(share * (1 - share) / n) for n in (4404, own)]
        near = [abs(sd - float(r["value"])) <= 0.0055 for sd in of_n]
        n_4404, n_own = n_4404 + near[0], n_own + near[1]
    n_deviations = sum(r["metric"] == "US_std" for r in rows)
    assert n_4404 == n_deviations > n_own, "every deviation is that of 4,404 pairs"
    of_preprocessed = data / "unstereo-eval" / "data" / "datasets" / "preprocessed"
    natural = [
        r
        for r in rows_of_gzip(of_preprocessed.parent / "raw" / "USE-5.csv.gz")
        if r["is_natural"] == "True"
    ]
    assert (sizes["8", "USE-5"], len(natural)) == (4404, 4405)
    for table, stem, limit, printed_size, size in (
        ("10", "USE-5", 0.65, 3698, 3698),
        ("9", "Winogender", 0.8, 159, 150),
    ):
        released_rows = rows_of_gzip(of_preprocessed / f"{stem}-no-maxpmi-constraint.csv.gz")
        kept = [r for r in released_rows if abs(float(r["max_gender_pmi"] or "inf")) <= limit]
        assert (sizes[table, stem], len(kept)) == (printed_size, size)


def released(where: Path, table: list[Fields]) -> Path:
    """A small release: five pairs of USE-5, four words, the scores of one model."""
    raw = where / "data" / "datasets" / "raw"
    raw.mkdir(parents=True)
    pairs = [
        {"": str(i), "word": word, "template": template, "is_natural": natural}
        for i, (template, word, natural) in enumerate(PAIRS)
    ]
    (raw / "USE-5.csv").write_text(as_csv(pairs))
    words = [("tea", 0.25, 60), ("key", -0.75, 30), ("drank", 0.1, 10)]
    statistics = [
        {"": str(i), "word": w, "pmi_diff": str(d), "counts": str(n), "freq": str(n / 100)}
        for i, (w, d, n) in enumerate(words)
    ]
    (where / "data" / "pmi_file_w_counts.csv").write_text(as_csv(statistics))
    write_scores(where / "results", table)
    return where


def printed(where: Path, *lines: str) -> Path:
    path = where / "published.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def run(where: Path, *arguments: object) -> int:
    common = ["--data", where, "--warehouse", where / "w", "--out", where / "figures.csv"]
    return main(["reproduce", "unstereoeval", *map(str, [*common, *arguments])])


# Each of the four natural pairs prefers the male sentence by 0.25 nats, less than ln 1.65.
RIGHT = (
    "8,USE-5,inf,US,100.0,org/m,e",
    "8,USE-5,0.5,benchmark_size,2,,",
    "19,USE-5,inf,AuFC,5.91,org/m,10",
    "22,USE-5,inf,AuFC,5.73,org/m,e",
)


@pytest.mark.slow
def test_a_small_release_comes_back(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT)) == 0
    shown = capsys.readouterr().out
    assert "figures of models: 3 agree, 0 off, 0 not run" in shown
    assert "sizes of sets: 1 agree, 0 off, 0 not run, 0 contradicted by the release" in shown
    assert "org/m" in shown and "pronoun first" in shown
    assert "Claims need all 28 models and five sets: not run" in shown
    (start,) = [one for one in shown.splitlines() if "pronoun first" in one]
    assert start.replace("│", " ").split()[-3:] == ["4", "100.0", "0.0"], "no interval of two words"
    rows = list(csv.DictReader((where / "figures.csv").open()))
    assert [r["outcome"] for r in rows if r["value"]] == [AGREE] * 4
    stored = Store.open(where / "w").read("metric_value", benchmark="use-5").to_pylist()
    aufc = {json.loads(r["options"])["log_base"] for r in stored if r["metric"] == "aufc"}
    assert aufc == {"e", "10.0"}
    assert run(where, "--published", printed(where, *RIGHT)) == 0  # the second time as well


#: Every ratio of the model is -0.25 nats, so even; of its twin's four none is: US falls by 100. The
#: MaxPMI of the two pairs about tea is 0.25 nats, of those about a key -0.75.
TWIN = {"{pronoun} drank tea.": "0.75", "{pronoun} lost {pronoun1} key.": "-0.75"}


def test_tables_1_to_3_and_12_to_14_are_compared(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every figure is typed in once right and once wrong; each is found to be what it is."""
    twin = score_rows("org__m-deduped")
    for row in twin:
        more = float(TWIN.get(row["template"], "0"))
        row["F_logprob"] = str(float(row["M_logprob"]) + more)
    where = released(tmp_path, score_rows())
    write_scores(where / "results", twin, "org__m-deduped.csv")
    right = [
        "1,USE-5,inf,benchmark_size,4,,",
        "1,USE-5,inf,US,0.0,org/m-deduped,",
        "1,USE-5,0.8,gap,0.0,org/m,",
        "2,USE-5,0.65,deduplication,-100.0,org/m,",
        "2,USE-5,inf,deduplication,-100.0,org/m,",
        "3,USE-5,0.5,PD,100.0,org/m-deduped,",
        "12,USE-5,0.8,benchmark_size,4,,",
        "13,USE-5,0.65,gap,0.0,org/m-deduped,",
        "14,USE-5,0.5,gap,0.0,org/m,",
        "17,USE-5,0.65,PD,100.0,org/m-deduped,",
        "18,USE-5,0.5,benchmark_size,2,,",
    ]
    wrong = [figure_line.split(",") for figure_line in right]
    for fields in wrong:
        fields[4] = str(float(fields[4]) + (1 if fields[3] == "benchmark_size" else 0.02))
    lines = [*right, *(",".join(fields) for fields in wrong)]
    monkeypatch.setattr("plumbline.pipelines.commands.reproduce._MOST", 12)
    assert run(where, "--published", printed(where, *lines)) == 1
    rows = list(csv.DictReader((where / "figures.csv").open()))
    typed = [r for r in rows if r["value"]]
    assert len(typed) == 2 * len(right)
    for line in right:
        table, _, eta, name, value, model, _ = line.split(",")
        same = [r for r in typed if (r["table"], r["metric"], r["model"]) == (table, name, model)]
        same = [r for r in same if (r["eta_nats"] or "inf") == eta]
        assert [r["outcome"] for r in same] == [AGREE, OFF], line
        assert float(same[0]["ours"]) == pytest.approx(float(value)), line
    shown = capsys.readouterr().out
    n_printed = sum("│" in line for line in shown.splitlines())
    n_more = int(next(iter(re.findall(r"and (\d+) more rows: see .*figures.csv", shown))))
    assert n_printed == 12 and n_more > 0
    assert shown.index("more rows") < shown.index("figures of models:"), "verdict last"
    (change,) = [row for row in rows if row["n_fell"] and row["measure"] == "us"][:1]
    assert int(change["n_models"]) and change["difference"] and not change["value"]
    assert "per tenfold" not in shown, "nobody knows how large these models are"


def test_figures_of_models_without_scores_are_not_run(tmp_path: Path, capsys: Any) -> None:
    """A part of the release is no failure."""
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT, "8,USE-5,inf,US,21.11,org/other,")) == 0
    shown = capsys.readouterr().out
    assert "figures of models: 3 agree, 0 off, 1 not run" in shown
    assert re.search(r" 8 │ +2 │ +0 │ +1 │ +0", shown)
    rows = list(csv.DictReader((where / "figures.csv").open()))
    assert [r["ours"] for r in rows if r["outcome"] == NOT_RUN] == [""]


def test_a_figure_that_is_off_is_said(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT[1:], RIGHT[0].replace("100", "99"))) == 1
    assert "figures of models: 2 agree, 1 off" in capsys.readouterr().out


def test_scores_that_are_incomplete_are_said(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows()[:-2])
    assert run(where, "--published", printed(where, RIGHT[0])) == 1
    assert "incomplete: org/m on use-5: 3 of 5 pairs scored" in capsys.readouterr().out


def test_a_damaged_release_is_one_line(tmp_path: Path, capsys: Any) -> None:
    assert run(tmp_path) == 3
    assert "no directory data/datasets/raw" in capsys.readouterr().err
    where = released(tmp_path, score_rows())
    (where / "data" / "pmi_file_w_counts.csv").unlink()
    assert run(where) == 3
    assert "no word statistics" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    assert run(where, "--published", printed(where, *RIGHT), "--out", tmp_path) == 2
    assert "isn't a regular file" in capsys.readouterr().err


@pytest.mark.slow
def test_earlier_scores_are_not_taken_for_the_releases(tmp_path: Path, capsys: Any) -> None:
    where = released(tmp_path, score_rows())
    asked = printed(where, *RIGHT)
    other = write_scores(where / "results", score_rows("org__n"), "org__n.csv")
    assert run(where, "--published", asked) == 0
    assert "2 models: org/m, org/n" in capsys.readouterr().out
    other.unlink()
    assert run(where, "--published", asked) == 0
    shown = capsys.readouterr().out
    assert "1 models: org/m" in shown and "org/n" not in shown


@pytest.mark.slow
@pytest.mark.reference
def test_every_printed_figure_comes_back(data: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    every = figures("unstereoeval")
    given = (every, "pile", lambda step: None, "r")
    outcome = reproduce(store, data / "unstereo-eval", *given)
    assert store.read("pair_score").num_rows == 466_704
    assert {kind: dict(n) for kind, n in outcome.summary().items()} == {
        "figures of models": {AGREE: 2731},
        "sizes of sets": {AGREE: 32, CONTRADICTED: 18},
    }
    assert outcome.max_pmi == (15_810, 15_810)
    assert len(outcome.models) == 28 and not outcome.incomplete
    of_g3 = rows_of(
        store.root,
        "SELECT model, benchmark, pd(log_ratio_nats, 0.5) AS pd FROM scored_pair GROUP BY ALL",
    )
    at_half = {(r["model"], r["benchmark"]): r["pd"] for r in of_g3}
    table_15 = [f for f in every if f["table"] == 15]
    differ = [abs(at_half[f["model"], f["benchmark"]] - f["value"]) for f in table_15]
    assert sum(d > 0.00501 for d in differ) == 64 and 0.06 < max(differ) < 0.075
    page = (REPOSITORY / "docs" / "reproduce.md").read_text(encoding="utf-8")
    for kind, n in outcome.summary().items():
        assert f"\n{kind}: {', '.join(f'{n[o]:,} {o}' for o in OUTCOMES)}\n" in page
    *_, largest = outcome.lines()
    assert f"\n{largest}\n" in page
    for name, digits in (
        ("per_tenfold", {"us": 1, "pd": 1, "|pd|": 1, "slope": 2}),
        ("difference", {"us": 1, "pd": 1, "slope": 2}),
    ):
        found = [r for r in outcome.own if name in r]
        whole = [r for r in found if not r.get("subset", "").startswith("|max_pmi| <=")]
        cells = {(r["benchmark"], r["measure"]): cell(r, name, digits) for r in whole}
        for benchmark in ("USE-5", "USE-10", "USE-20", "WinoBias", "Winogender"):
            of = [cells[benchmark.lower(), measure] for measure in digits]
            line = f"| {benchmark} | {' | '.join(of)} |"
            assert line in page.replace("**", "").replace("−", "-"), line
    compared = rows_of(store.root, "FROM training_text_difference WHERE measure = 'us'")
    names = {name.lower(): name for name in ("USE-5", "USE-10", "USE-20", "WinoBias", "Winogender")}
    assert {r["benchmark"] for r in compared} == names.keys()
    for r in compared:
        of = (r["mean_figure"], r["other_figure"], r["difference"])
        ends = (r["difference_low"], r["difference_high"])
        line = "| {} | {:.1f} | {:.1f} | {:.1f} ({:.1f} to {:.1f}) |"
        assert line.format(names[r["benchmark"]], *of, *ends) in page.replace("−", "-"), r


def cell(row: dict[str, Any], name: str, digits: dict[str, int]) -> str:
    """As docs/reproduce.md prints an estimate: PD of tens of points in whole ones."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    n = 0 if abs(value) >= 10 else digits[row["measure"]]
    return f"{value:.{n}f} ({low:.{n}f} to {high:.{n}f})"
