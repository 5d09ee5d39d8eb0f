"""Models, their versions and corpora compared on the page, and the SQL behind it by brute force."""

import itertools
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.eval_workers.scoring.measure import measure
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.sentences import check_changes, version_changes
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import (
    AFTER,
    BEFORE,
    delta,
    error,
    fill,
    interval,
    pair,
    score,
    scored_by,
    version,
)
from tests.test_report import section
from tests.tiny_models import save

LIMIT = math.log(1.65)


def put_models(store: Store, n_models: int, n: int = 40) -> dict[str, np.ndarray]:
    """Models that are the less even the higher their number; each lacks a pair of its own."""
    rng = np.random.default_rng(7)
    fill(store, "benchmark_pair", [pair("b", f"{i:02}") for i in range(n)])
    common, ratios = rng.normal(0, 0.5, n), {}
    for k in range(n_models):
        ratios[f"m{k}"] = common * (0.3 + k) + rng.normal(0, 0.1, n)
        scores = [score("b", f"{i:02}", float(x), f"m{k}") for i, x in enumerate(ratios[f"m{k}"])]
        del scores[k]
        fill(store, "pair_score", scores)
    return ratios


def paired_ends(change: np.ndarray, scale: int) -> tuple[float, float]:
    """The interval of a mean of paired differences: Bonett and Price's for US, Wilson's for PD."""
    if scale == 100:
        low, _, high = interval(change, (-200, 200))
        return low, high
    t, se = error(change)
    n_star = change.var() / se**2
    centre = n_star * change.mean() / (n_star + 2)
    square = (n_star * (change != 0).mean() + 2) / (n_star + 2)
    half = t * np.sqrt((square - centre**2) / (n_star + 2))
    return centre - half, centre + half


def test_any_two_models_are_compared_over_the_pairs_of_both(store: Store) -> None:
    ratios = put_models(store, 3)
    found = rows_of(store.root, "FROM preference_pairwise()")
    assert len(found) == 3 * 2 * 2
    for row in found:
        r, m = (int(row[name][-1]) for name in ("reference_key", "model_key"))
        kept = [i for i in range(40) if i not in (r, m)]
        lean = [
            np.where(np.abs(x) <= LIMIT, 0, np.sign(x))[kept]
            for x in (ratios[f"m{r}"], ratios[f"m{m}"])
        ]
        old, new = [(v == 0) * 1.0 if row["measure"] == "us" else 100 * v for v in lean]
        assert row["n_pairs"] == len(kept) == 38
        assert (row["reference_mean"], row["model_mean"]) == pytest.approx((old.mean(), new.mean()))
        assert row["n_clusters"] == 38
        low, high = paired_ends(new - old, 1 if row["measure"] == "us" else 100)
        ends = (row["difference_low"], row["difference_high"])
        assert ends == pytest.approx((low, high), rel=1e-3, abs=1e-6)
        expected = "fell" if high < 0 else "rose" if low > 0 else "neither"
        assert row["direction"] == expected


def put_corpora(store: Store) -> dict[str, dict[str, dict[str, Any]]]:
    """Three corpora that share some words; one knows no counts."""
    rng = np.random.default_rng(8)
    found = {}
    for name, sign in (("one", 1), ("three", -1), ("two", 1)):
        words = {}
        for i in range(60):
            if rng.random() < 0.2:
                continue
            value = round(sign * (i - 30) / 20 + float(rng.normal(0, 0.3)), 1)  # with ties
            row = delta(f"w{i}", value, name)
            row |= {"n_pair_f": int(rng.integers(1, 40)), "n_pair_m": int(rng.integers(3, 40))}
            row["delta_nats_se"] = float(rng.uniform(0.1, 0.5))
            if name == "two":
                row |= {"n_pair_f": None, "n_pair_m": None, "delta_nats_se": None}
            words[f"w{i}"] = row
        fill(store, "word_delta", list(words.values()))
        found[name] = words
    return found


def test_words_of_two_corpora_and_their_correlation(store: Store) -> None:
    corpora = put_corpora(store)
    agreement = {
        (r["corpus_a"], r["corpus_b"]): r
        for r in rows_of(store.root, "FROM corpus_agreement(min_pairs := 5)")
    }
    two_by_two = list(itertools.combinations(sorted(corpora), 2))
    assert set(agreement) == set(two_by_two)
    for a, b in two_by_two:
        x, y = [], []
        for word in corpora[a].keys() & corpora[b].keys():
            p, q = corpora[a][word], corpora[b][word]
            counts = [r[c] for r in (p, q) for c in ("n_pair_f", "n_pair_m") if r[c] is not None]
            if min(counts) >= 5:
                x.append(p["delta_nats"])
                y.append(q["delta_nats"])
        row = agreement[a, b]
        assert row["n_words"] == len(x)
        assert row["n_same"] == sum(p * q > 0 for p, q in zip(x, y, strict=True))
        assert row["n_opposite"] == sum(p * q < 0 for p, q in zip(x, y, strict=True))
        pearson = stats.pearsonr(x, y)
        ends = tuple(pearson.confidence_interval(0.95))
        assert row["correlation"] == pytest.approx(pearson.statistic)
        assert (row["correlation_low"], row["correlation_high"]) == pytest.approx(ends)
        rho = stats.spearmanr(x, y).statistic
        half = 1.959964 * math.sqrt((1 + rho**2 / 2) / (len(x) - 3))
        assert row["rank_correlation"] == pytest.approx(rho)
        ends = (math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
        assert (row["rank_correlation_low"], row["rank_correlation_high"]) == pytest.approx(ends)


@pytest.mark.slow
def test_of_many_models_those_that_may_be_the_evenest_are_named(store: Store) -> None:
    put_models(store, 7)
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    facts = Facts(store.root)
    evenest = [r["model"] for r in facts.metrics("us", subset="all") if r["rank_low"] == 1]
    found = section(facts, "compare_models")
    assert found.intro[0].startswith(f"b: {len(evenest)} of 7 models may have the highest US")
    assert found.intro[0].endswith(f": {', '.join(evenest)}.") and 0 < len(evenest) < 4
    assert not found.tables


_N = 60


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two versions of `mine` and one other model, measured."""
    store = Store.open(tmp_path_factory.mktemp("versions") / "w")
    for key, ratios in {"old": BEFORE, "new": AFTER}.items():
        version(store, "b", key, ratios)
    fill(store, "model", [scored_by("other", key="other")], "other")
    fill(store, "pair_score", [score("b", f"p{k}", 0.1, "other", "other") for k in range(_N)])
    assert main(["measure", "--warehouse", str(store.root)]) == 0
    return store


def test_a_change_is_paired_with_the_interval_over_pairs(versions: Store) -> None:
    """Each pair is a cluster, the interval Wilson's at the error of their differences."""
    (change,) = version_changes(Facts(versions))
    differences = 100 * (np.sign(AFTER) - np.sign(BEFORE))
    found = [change[name] for name in ("change_low", "change", "change_high")]
    assert found == pytest.approx(interval(differences, (-200, 200)), rel=1e-6)
    assert change["name"] == "mine"
    assert (change["pd_before"], change["pd"]) == pytest.approx((-10, 25))


def test_a_model_that_turns_over_in_every_pair_has_an_interval(tmp_path: Path) -> None:
    """Wilson's for no success in n pairs: its far end is t² / (n + t²) of the range."""
    store = Store.open(tmp_path / "w")
    for key, ratio in {"old": 1.0, "new": -1.0, "same": -1.0}.items():
        version(store, "b", key, [ratio] * 9)
    rows = rows_of(store.root, "FROM preference_pairwise(reference := 'new') WHERE measure = 'pd'")
    ends = {row["model_key"]: (row["difference_low"], row["difference_high"]) for row in rows}
    t = stats.t.ppf(0.975, 8)
    assert ends["old"] == pytest.approx((200 - 400 * t**2 / (9 + t**2), 200), rel=1e-3)
    assert ends["same"] == (None, None)


def test_only_the_latest_version_is_ranked_and_on_the_pages(
    versions: Store, tmp_path: Path
) -> None:
    labels = {r["model_key"]: r["label"] for r in rows_of(versions.root, "FROM model_label")}
    (version,) = rows_of(versions.root, "FROM model_version WHERE NOT is_latest")
    assert labels == {"new": "mine", "old": f"mine ({version['scored_at']:%Y-%m-%d})"} | {
        "other": "other"
    }
    assert set(versions.read("model_rank")["model_key"].to_pylist()) == {"new", "other"}
    page, _ = write_report(versions, tmp_path)
    pages = page.read_text() + (tmp_path / "appendix.html").read_text()
    assert "mine on b since" in pages and labels["old"] not in pages


def test_missing_scores_are_said_of_the_latest_version_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(tmp_path / "w")
    fill(store, "benchmark_pair", [pair("b", f"p{k}") for k in range(_N + 1)], "b")
    for key, ratios in {"old": BEFORE, "new": AFTER}.items():
        version(store, "b", key, ratios)
    assert main(["measure", "--warehouse", str(store.root)]) == 0
    assert "".join(capsys.readouterr()).count(f"has scores of {_N} of the {_N + 1} pairs") == 1


@pytest.mark.parametrize(
    ("most", "status", "said"),
    [("5", 6, "more than 5 points"), ("34.5", 0, "perhaps more than 34.5"), ("40", 0, "mine on b")],
)
def test_fail_if_fails_only_where_the_whole_interval_lies_beyond(
    versions: Store, most: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = ["--fail-if", f"pd changes by more than {most}"]
    assert main(["measure", "--warehouse", str(versions.root), *rule]) == status
    assert said in "".join(capsys.readouterr())
    assert main(["runs", "--warehouse", str(versions.root)]) == 0
    assert "mine on b since" in capsys.readouterr().out


@given(st.tuples(st.integers(-60, 60), st.integers(-60, 60)).map(sorted), st.integers(0, 40))
def test_a_fall_fails_as_a_rise_does(ends: list[int], most: int) -> None:
    (low, high), then = ends, datetime(2026, 1, 31)
    row = {"model": "m", "benchmark": "b", "groups": "f/m", "pd": 1.0, "change": (low + high) / 2}
    row |= {"change_low": low, "change_high": high, "scored_at": then, "previous_scored_at": then}
    if low > most or high < -most:
        lines, error = check_changes([row], most)
        assert "m on b" in str(error) and not lines
    else:
        lines, error = check_changes([row], most)
        assert bool(lines) == (abs(row["change"]) > most) and error is None


def test_clear_changes_come_first_and_a_day_s_versions_have_times(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "w")
    ratios = {"a": (BEFORE, BEFORE), "b": (BEFORE, AFTER), "c": ([-1.0] * 50 + [1.0] * 10, AFTER)}
    for key, k in {"old": 0, "new": 1}.items():
        for benchmark, of_versions in ratios.items():
            version(store, benchmark, key, of_versions[k])
    with recorded(store, "measure", {}) as run_id:
        measure(store, run_id)
    facts = Facts(store)
    changes = version_changes(facts)
    assert [row["benchmark"] for row in changes] == ["c", "b", "a"]
    since = f"since {changes[0]['previous_scored_at']:%Y-%m-%d %H:%M}: PD"
    first, second = section(facts, "versions").intro
    assert first.startswith(f"mine on c {since} rose") and f". mine on b {since} rose" in first
    assert second.startswith(f"mine on a {since} is not shown to change")


def test_the_version_scored_last_is_the_latest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Putting earlier files back undoes a version: later ones aren't compared with it."""
    save("neox", tmp_path / "tiny")
    store = Store.open(tmp_path / "w")
    fill(store, "benchmark_pair", [pair("b", f"p{k}") for k in range(_N)], "b")
    command = ["score", "--model", str(tmp_path / "tiny"), "--benchmark", "b", "--limit", "2"]
    command += ["--warehouse", str(store.root)]
    assert main([*command, "--name", "mine"]) == 0
    assert "these files" not in "".join(capsys.readouterr())
    version(store, "b", "bad", AFTER)
    old, bad = rows_of(store, "FROM model_version ORDER BY scored_at")
    for named, shown in ([], f"the version of {bad['scored_at']:%F %R}"), (["mine"], "it again"):
        assert main([*command, *(f"--name={name}" for name in named)]) == 0
        said = f"mine: these files are the version of {old['scored_at']:%F %R}; tables and "
        said += f"reports show {shown}"
        assert said in " ".join("".join(capsys.readouterr()).split())
    assert rows_of(store, "FROM model_version WHERE is_latest") == [old | {"is_latest": True}]
    version(store, "b", "new", BEFORE)
    (new,) = rows_of(store, "FROM model_version WHERE is_latest")
    assert (new["model_key"], new["previous_key"]) == ("new", old["model_key"])


def test_a_name_is_no_part_of_the_key(tmp_path: Path) -> None:
    """A later name is that of the key that was scored without one."""
    save("neox", tmp_path / "tiny")
    store = Store.open(tmp_path / "w")
    version(store, "b", "old", BEFORE)
    command = ["score", "--model", str(tmp_path / "tiny"), "--benchmark", "b", "--limit", "2"]
    command += ["--warehouse", str(store.root)]
    assert main(command) == main([*command, "--name", "mine"]) == 0
    names = store.read("model")["name"].to_pylist()
    assert names == ["mine", "mine"] and store.read("pair_score").num_rows == len(BEFORE) + 2
