"""Benchmarks of two chat models on the same seed words: against loops, numpy and scipy."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.chat.chat_session import Build, Server
from plumbline.eval_workers.chat.client import RetryPolicy
from plumbline.eval_workers.writing import build as steps
from plumbline.eval_workers.writing.build import SentenceCounts, write_sentences
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sections.preference import sections
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, good_script, serving
from tests.metric_rows import association, fill, pair, score, scored_by

WORDS = tuple(f"th{chr(97 + k)}ng" for k in range(12))
SPEC = BuildSpec(words=WORDS, model="terse", n_sentences=3, max_words=12)
EPSILON = math.log(1.65)
SHARES = ("rejected", "revised", "natural", "pronoun_first", "within_eta", "us")


def _wordy(prompt: str, count: int) -> Say:
    """Begins with "Then", adds words, and forgets the seed word in its first sentence."""
    say = good_script(prompt, count)
    if "different" not in prompt:
        return say
    lines = [line.replace(". ", ". Then ", 1) for line in say.text.splitlines()]
    lines = [line.replace("Then She", "Then she").replace("Then He", "Then he") for line in lines]
    lines[-1] = lines[-1][:-1] + " and said no word."
    lines[0] = "1. Nobody came to see it."
    return Say("\n".join(lines))


def _terse(prompt: str, count: int) -> Say:
    """Writes as asked, but what it drops it finds unlikely."""
    return Say("Unlikely.") if "likely" in prompt and " dropped " in prompt else good_script(
        prompt, count
    )  # fmt: skip


def _build(store: Store, name: str, spec: BuildSpec, script: Any) -> SentenceCounts:
    with serving(script) as server:
        policy = RetryPolicy(concurrency=4, first_wait_s=0.01)
        order = Build(store, name, f"run-{name}", Server(server.url, 60.0, policy))
        written = write_sentences(order, spec.words, spec.writing())
        found = steps.pair_sentences(order, written, spec)
        pairs = steps.judge(order, found.pairs, spec)
        steps.publish(order, pairs, ["write", "pair", "judge"])
        return steps.count(spec.words, written, len(found.rejects), pairs)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, SentenceCounts]]:
    """Two benchmarks, with made scores of two models and made MaxPMI."""
    store = Store.open(tmp_path_factory.mktemp("generators") / "w")
    counts = {
        "a": _build(store, "a", SPEC, _terse),
        "b": _build(store, "b", replace(SPEC, model="wordy"), _wordy),
    }
    chance = Random(1)
    fill(store, "model", [scored_by("m"), scored_by("n")])
    for name in counts:
        ids = store.read("benchmark_pair", benchmark=name)["pair_id"].to_pylist()
        for model in ("m", "n"):
            rows = [score(name, i, chance.gauss(0.3, 0.6), model) for i in ids]
            fill(store, "pair_score", rows, f"{name} {model}")
        leans = [chance.choice([None, chance.gauss(0, 0.6)]) for _ in ids]
        rows = [association(name, i, x) for i, x in zip(ids, leans, strict=True)]
        fill(store, "pair_association", rows, name)
    return store, counts


def by_hand(store: Store, name: str) -> dict[tuple[str, str | None], dict[str, list[float]]]:
    """Measure and scored model -> seed word -> the figures whose mean it is."""
    requests = store.read("generation_request", benchmark=name).to_pylist()
    of_request = {r["request_id"]: r for r in requests}
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair", benchmark=name).to_pylist()}
    found: dict[tuple[str, str | None], dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )

    def note(measure: str, word: str, value: float, model: str | None = None) -> None:
        found[measure, model][word].append(value)

    for p in pairs.values():
        note("rejected", p["word"], 0)
        note("revised", p["word"], of_request[p["source_file"]]["purpose"] == "revise")
        note("natural", p["word"], p["is_natural"])
        if p["is_natural"]:
            note("words", p["word"], len(p["sentence_b"].split()))
            note("pronoun_first", p["word"], p["sentence_a"].split()[0] in ("She", "Her"))
    for step in ("write", "pair"):
        for r in store.read("reject", stage="generate", subject=f"{name}/{step}").to_pylist():
            note("rejected", of_request[r["source_file"]]["word"], 1)
    for r in store.read("pair_association", corpus="c", benchmark=name).to_pylist():
        if (p := pairs[r["pair_id"]])["is_natural"]:
            lean = r["max_pmi_nats"]
            note("within_eta", p["word"], lean is not None and abs(lean) <= 0.65)
    for r in store.read("pair_score", benchmark=name).to_pylist():
        if (p := pairs[r["pair_id"]])["is_natural"]:
            ratio, key = r["logprob_a_nats"], r["model_key"]
            side = 0 if abs(ratio) <= EPSILON else math.copysign(1, ratio)
            for measure, value in (("us", side == 0), ("pd", 100 * side), ("log_ratio", ratio)):
                note(measure, p["word"], value, key)
    for word, values in list(found["natural", None].items()):
        found["pairs", None][word] = [len(values)]
    return found


@pytest.mark.slow
def test_figures_and_differences_are_those_of_a_loop(built: tuple[Store, Any]) -> None:
    store, counts = built
    hand = {name: by_hand(store, name) for name in counts}
    for name, figures in hand.items():
        rows = rows_of(store, f"FROM benchmark_figure() WHERE benchmark = '{name}'")
        assert {(r["measure"], r["model_key"]) for r in rows} == set(figures)
        for row in rows:
            of_word = figures[row["measure"], row["model_key"]]
            values = [x for one in of_word.values() for x in one]
            assert row["figure"] == pytest.approx(np.mean(values), abs=1e-12)
            assert (row["n"], row["n_words"]) == (len(values), len(of_word))
    rows = rows_of(store, "FROM benchmark_difference() WHERE reference = 'a'")
    assert {(r["measure"], r["model_key"]) for r in rows} == set(hand["a"])
    for row in rows:
        a, b = (hand[name][row["measure"], row["model_key"]] for name in ("a", "b"))
        words = sorted(set(a) & set(b))
        x, y = (np.array([np.mean(one[w]) for w in words], float) for one in (a, b))
        assert row["n_words"] == len(words)
        assert row["difference"] == pytest.approx((y - x).mean(), abs=1e-12)
        assert row["reference_mean"] == pytest.approx(x.mean(), abs=1e-12)
        if (y - x).std() < 1e-12:
            assert row["difference_low"] is row["difference_high"] is row["direction"] is None
        else:
            low, high = stats.ttest_rel(y, x).confidence_interval()
            assert (row["difference_low"], row["difference_high"]) == pytest.approx(
                (low, high), rel=1e-3
            )
            assert row["direction"] == ("rose" if low > 0 else "fell" if high < 0 else "neither")


@pytest.mark.slow
def test_habits_of_the_generators_show(built: tuple[Store, dict[str, SentenceCounts]]) -> None:
    store, counts = built
    rows = rows_of(store, "FROM benchmark_difference() WHERE reference = 'a' AND model_key IS NULL")
    change = {r["measure"]: r["difference"] for r in rows}
    assert change["words"] > 0 and change["revised"] > 0
    assert change["pronoun_first"] < 0 and change["natural"] > 0
    lost = {
        r["benchmark"]: r
        for r in rows_of(store, "FROM benchmark_figure() WHERE measure = 'rejected'")
    }
    for name, count in counts.items():
        assert lost[name]["n"] == count.n_pairs + count.n_rejected + count.n_unpaired
        n_lost = count.n_rejected + count.n_unpaired
        assert lost[name]["figure"] == pytest.approx(n_lost / lost[name]["n"])
    wilson = stats.binomtest(0, len(WORDS)).proportion_ci(method="wilson")
    assert lost["a"]["figure_low"] == 0
    assert lost["a"]["figure_high"] == pytest.approx(wilson.high, abs=0.06)  # sure as of 12 words


def test_intervals_of_figures(store: Store) -> None:
    """With as many pairs for each word Student's over word means, else about the jackknife's."""
    chance = np.random.default_rng(3)
    for name, sizes in (("even", np.full(40, 5)), ("uneven", chance.integers(1, 9, 80))):
        word_effect = chance.normal(0, 1, len(sizes))
        pairs, scores = [], []
        for k, size in enumerate(sizes):
            for j in range(size):
                pairs.append(pair(name, f"{k}-{j}", word=f"w{k}"))
                scores.append(score(name, f"{k}-{j}", float(word_effect[k] + chance.normal())))
        fill(store, "benchmark_pair", pairs, name)
        fill(store, "pair_score", scores, name)
        (row,) = rows_of(
            store,
            f"FROM benchmark_figure() WHERE benchmark = '{name}' AND measure = 'log_ratio'",
        )
        totals, n = defaultdict(float), defaultdict(int)
        for s in scores:
            word = str(s["pair_id"]).split("-")[0]
            totals[word] += float(str(s["logprob_a_nats"]))
            n[word] += 1
        t, m = (np.array([one[w] for w in totals]) for one in (totals, n))
        half = (row["figure_high"] - row["figure_low"]) / 2
        assert row["figure"] == pytest.approx(t.sum() / m.sum())
        if name == "even":
            expected = stats.t.interval(0.95, len(t) - 1, (t / m).mean(), stats.sem(t / m))
            slack = 0.04 * (expected[1] - expected[0])  # the jackknife's factor
            assert (row["figure_low"], row["figure_high"]) == pytest.approx(expected, abs=slack)
        else:
            left_out = (t.sum() - t) / (m.sum() - m)
            se = math.sqrt((len(t) - 1) * left_out.var())
            assert half == pytest.approx(stats.t.ppf(0.975, len(t) - 1) * se, rel=0.05)


@pytest.mark.slow
def test_the_command_and_the_report(
    built: tuple[Store, dict[str, SentenceCounts]], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    store, _ = built
    monkeypatch.setenv("COLUMNS", "200")
    place = ["--warehouse", str(store.root)]
    assert main(["benchmark", "compare", "a", "b", *place]) == 0
    said = capsys.readouterr().out
    assert "a: 12 seed words; terse" in said
    assert "b: 12 seed words, 12 of them in a; wordy" in said
    rows = rows_of(store, "FROM benchmark_difference() WHERE reference = 'a'")
    (row,) = (r for r in rows if r["measure"] == "words")
    assert f"{row['difference']:+.2f} [no interval]" in said, "all words differ by as much"
    row = next(r for r in rows if r["measure"] == "log_ratio" and r["difference_low"] is not None)
    ends = f"[{row['difference_low']:+.2f}, {row['difference_high']:+.2f}]"
    assert f"{row['difference']:+.2f} {ends}" in said
    assert said.count("US, ") == said.count("PD, points, ") == 2
    assert "score --model ID_OR_PATH --benchmark a --benchmark b" in said
    assert main(["benchmark", "compare", "a", *place]) == 2
    assert main(["benchmark", "compare", "a", "none", *place]) == 2
    assert "'none': has no pair made for a seed word" in capsys.readouterr().err
    fill(store, "benchmark_pair", [pair("c", "1", word="nurse")], "c")
    assert main(["benchmark", "compare", "a", "c", *place]) == 2
    assert "'c': shares no seed word with a" in capsys.readouterr().err
    assert main(["measure", *place]) == 0
    (section,) = sections(Facts(store))
    (table,) = [t for t in section.tables if t.caption.startswith("Chat models")]
    n = len(rows_of(store, "FROM benchmark_difference() WHERE reference = 'a' AND benchmark = 'b'"))
    assert len(table.rows) == n == 13
    assert {row[1].text for row in table.rows} == {"b"}


def test_options_that_differ_besides_the_model_are_said(
    store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        fill(store, "benchmark_pair", [pair(name, "1", word="nurse")], name)
        said = {"Written by": f"{name}, at temperature 0.7", "Words of a sentence": f"{name} words"}
        rows = [
            {"benchmark": name, "position": k, "fact": f, "said": s, "run_id": "r"}
            for k, (f, s) in enumerate(said.items(), 1)
        ]
        fill(store, "benchmark_fact", rows, name)
    assert main(["benchmark", "compare", "a", "b", "--warehouse", str(store.root)]) == 0
    out = capsys.readouterr().out
    assert "made differently from a: Words of a sentence b words\n" in out
    assert "temperature" not in out


def test_few_words_have_no_interval(store: Store) -> None:
    """Of four words there is none, of five Student's."""
    for name, shift in (("a", 0.0), ("b", 1.0)):
        pairs = [pair(name, f"{k}", word=f"w{k}") for k in range(5)]
        scores = [score(name, f"{k}", shift * k, "m") for k in range(5)]
        fill(store, "benchmark_pair", pairs, name)
        fill(store, "pair_score", scores, name)
    text = "FROM benchmark_difference() WHERE reference = 'a' AND measure = 'log_ratio'"
    (row,) = rows_of(store, text)
    low, high = stats.t.interval(0.95, 4, 2.0, stats.sem(np.arange(5.0)))
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((low, high), abs=2e-3)
    fill(store, "benchmark_pair", pairs[:4], "b")
    (row,) = rows_of(store, text)
    assert (row["difference"], row["difference_low"], row["direction"]) == (1.5, None, None)
