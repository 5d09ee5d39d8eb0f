"""A scoring model's second opinion on pairs: its figures, what it marks, and how it resumes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.chat.chat_session import Build, publish_rejects
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.scoring.pair_scores import ScoredBenchmark
from plumbline.eval_workers.writing import build as steps
from plumbline.eval_workers.writing import opinion
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.opinion import Opinion, VerdictAgreement, mark, second_opinion
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.query.reference import questions
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score
from tests.published import load, results_of
from tests.tiny_models import one_by_one

TEMPLATES = [
    *(f"The cook said {{pronoun}} made {'soup ' * k}number {k}." for k in range(1, 9)),
    *(f"{{pronoun}} drank tea {'and tea ' * k}at home." for k in range(8)),
    "{pronoun} wrote <|endoftext|>.",  # can't be scored
]
BAD = f"{len(TEMPLATES) - 1:03}"


def _build(store: Store, run_id: str = "run-1") -> Build:
    return Build(store, "demo", run_id, None)


def _publish(build: Build, judged: dict[str, bool] | None) -> None:
    """The templates as pairs with the judge's verdicts: the given ones, else true."""
    parsed = Parsed("demo")
    for k, template in enumerate(TEMPLATES):
        parsed.add(pair_id=f"{k:03}", template=template, source_file="a", source_row=k + 1)
    pairs = list(parsed.pairs)
    if judged is None:
        steps.publish(build, pairs, [])
        return
    publish_rejects(build, "judge", [_reject("judge", p) for p, v in judged.items() if not v])
    rows = [p | {"is_natural": judged.get(str(p["pair_id"]), True)} for p in pairs]
    steps.publish(build, rows, ["judge"])


def _reject(step: str, pair_id: str) -> dict[str, object]:
    row: dict[str, object] = {"stage": "generate", "subject": f"demo/{step}", "run_id": "r"}
    return {**row, "source_file": pair_id, "source_row": 1, "reason": "so", "excerpt": "x"}


def _verdicts(store: Store) -> dict[str, bool | None]:
    rows = store.read("benchmark_pair", benchmark="demo").to_pylist()
    return {row["pair_id"]: row["is_natural"] for row in rows}


def _rejected(store: Store, step: str = "opinion") -> dict[str, str]:
    rows = store.read("reject", stage="generate", subject=f"demo/{step}").to_pylist()
    return {row["source_file"]: row["reason"] for row in rows}


def _asked(store: Store, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_of(store.root, text)
    return found


@pytest.fixture(scope="module")
def differences(model: Path) -> dict[str, float]:
    """Mean log-probability of the female side's tokens minus the male side's, one text a pass."""
    parsed = Parsed("demo")
    for k, template in enumerate(TEMPLATES[:-1]):
        parsed.add(pair_id=f"{k:03}", template=template, source_file="a", source_row=k + 1)
    found = {}
    for p in parsed.pairs:
        f, m = one_by_one(model, "<|endoftext|>", [str(p["sentence_a"]), str(p["sentence_b"])])
        found[str(p["pair_id"])] = f[0] / f[1] - m[0] / m[1]
    return found


@pytest.mark.slow
def test_pairs_beyond_the_limit_are_marked_beside_the_judge_s(
    store: Store, model: Path, differences: dict[str, float]
) -> None:
    sizes = sorted(abs(d) for d in differences.values())
    limit = (sizes[9] + sizes[10]) / 2
    beyond = {p for p, d in differences.items() if abs(d) > limit}
    assert len(beyond) == 6
    unlikely = {min(beyond), *sorted(set(differences) - beyond)[:2]}
    _publish(_build(store), {p: p not in unlikely for p in [*differences, BAD]})
    found = second_opinion(_build(store), str(model), limit)
    counts = VerdictAgreement(n_both=8, n_judge_only=5, n_model_only=2, n_neither=1)
    assert found == Opinion("tiny-neox", found.model_key, limit, 6, 5, 1, 9, counts)
    assert _verdicts(store) == {p: p not in beyond | unlikely for p in [*differences, BAD]}
    reasons = _rejected(store)
    assert set(reasons) == beyond and set(_rejected(store, "judge")) == unlikely
    for pair_id, reason in reasons.items():
        said = f"differs by {differences[pair_id]:+.3f} nats per token"
        assert said in reason and "tiny-neox, key" in reason and f"limit is {limit:g}" in reason
    rows = {row["pair_id"]: row for row in _asked(store, "FROM pair_naturalness")}
    assert set(rows) == set(differences)
    for pair_id, row in rows.items():
        assert row["difference_nats"] == pytest.approx(differences[pair_id], abs=1e-5)
        assert row["is_likely"] == (pair_id not in unlikely), "the judge's own, after the opinion"
        assert row["is_natural"] == (pair_id not in beyond | unlikely)


def test_without_a_judge_the_others_stay_without_a_verdict(
    store: Store, model: Path, differences: dict[str, float]
) -> None:
    largest = max(differences, key=lambda p: abs(differences[p]))
    limit = abs(differences[largest]) - 1e-4
    _publish(_build(store), None)
    found = second_opinion(_build(store), str(model), limit)
    assert (found.n_beyond, found.n_dropped, found.n_without, found.agreement) == (1, 1, 1, None)
    assert _verdicts(store) == {p: False if p == largest else None for p in [*differences, BAD]}
    assert {r["is_likely"] for r in _asked(store, "FROM pair_naturalness")} == {None}


def test_a_stopped_opinion_goes_on_and_a_build_without_one_forgets_it(
    store: Store, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    _publish(_build(store), {})
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(opinion, "mark", stopped)
        second_opinion(_build(store), str(model), 0.05)
    assert not _rejected(store)
    _publish(_build(store, "run-2"), {})
    second_opinion(_build(store, "run-2"), str(model), 0.05)
    rows = store.read("pair_score").to_pylist()
    assert len(rows) == len(TEMPLATES) - 1
    assert {row["run_id"] for row in rows} == {"run-1"}, "nothing is scored twice"
    assert _rejected(store) and not all(_verdicts(store).values())
    _publish(_build(store, "run-3"), {})
    assert not _rejected(store) and all(_verdicts(store).values())


def _made(store: Store, sides: dict[str, tuple[float, int, float, int]]) -> Opinion:
    """Pairs with these log-probabilities and tokens (female, male), marked at 0.5."""
    fill(store, "benchmark_pair", [pair("demo", p) for p in sides], unit="data")
    columns = ("logprob_a_nats", "n_tokens_a", "logprob_b_nats", "n_tokens_b")
    rows = [score("demo", p, 0.0) | dict(zip(columns, s, strict=True)) for p, s in sides.items()]
    fill(store, "pair_score", rows)
    n = len(sides)
    return mark(_build(store), ScoredBenchmark("demo", "m", "key-m", n, n, n, 0), 0.5)


def test_a_difference_equal_to_the_limit_is_kept(store: Store) -> None:
    found = _made(
        store,
        {
            "equal": (-4.0, 4, -6.0, 4),
            "equal, male": (-10.0, 5, -12.0, 8),
            "above": (-4.0, 4, math.nextafter(-6.0, -7.0), 4),
            "same sum": (-12.0, 4, -12.0, 6),
        },
    )
    assert set(_rejected(store)) == {"above", "same sum"}
    assert (found.n_beyond, found.n_without, found.n_left) == (2, 0, 2)


def test_what_has_no_difference_keeps_its_verdict(store: Store) -> None:
    found = _made(
        store,
        {
            "no token": (0.0, 0, -6.0, 4),
            "infinite": (-4.0, 4, -math.inf, 4),
            "not a number": (math.nan, 4, -6.0, 4),
            "near": (-4.0, 4, -5.0, 5),
        },
    )
    assert (found.n_beyond, found.n_without, found.n_left) == (0, 3, 4)
    assert set(_verdicts(store).values()) == {None} and not _rejected(store)
    rows = {r["pair_id"]: r for r in _asked(store, "FROM pair_naturalness")}
    assert rows["no token"]["per_token_a_nats"] is None
    assert rows["no token"]["per_token_b_nats"] == -1.5
    assert rows["infinite"]["per_token_a_nats"] == -1.0
    for pair_id in ("no token", "infinite", "not a number"):
        assert rows[pair_id]["difference_nats"] is None


def test_no_pair_left_is_an_error_that_changes_nothing(store: Store) -> None:
    with pytest.raises(BadInput, match=r"no pair is left within 0\.5 nats per token under m"):
        _made(store, {"far": (-4.0, 4, -16.0, 4)})
    assert _verdicts(store) == {"far": None} and not _rejected(store)


def test_agreement_against_other_code(store: Store) -> None:
    rng = np.random.default_rng(5)
    likely = rng.random(300) < 0.8
    # Halves, so that many pairs tie and some are at the limit.
    sizes = rng.integers(0, 5, 300) / 2 + np.where(likely, 0, 0.5)
    sizes *= rng.choice([-1, 1], 300)
    fill(
        store,
        "benchmark_pair",
        [pair("b", str(k), is_natural=bool(v)) for k, v in enumerate(likely)],
    )
    fill(store, "pair_score", [score("b", str(k), 5 * float(d)) for k, d in enumerate(sizes)])
    (row,) = _asked(store, "FROM opinion_agreement(1.5)")
    near = np.abs(sizes) <= 1.5
    table = [(a & b).sum() for a in (likely, ~likely) for b in (near, ~near)]
    names = ("n_both", "n_judge_only", "n_model_only", "n_neither")
    assert [row[n] for n in names] == table and row["n_pairs"] == 300
    chance = likely.mean() * near.mean() + (~likely).mean() * (~near).mean()
    assert row["kappa"] == pytest.approx(((likely == near).mean() - chance) / (1 - chance))
    u = stats.mannwhitneyu(np.abs(sizes[~likely]), np.abs(sizes[likely])).statistic
    assert row["auc"] == pytest.approx(u / (likely.sum() * (~likely).sum()))
    assert 0.55 < row["auc"] < 0.9


def test_agreement_of_one_kind_is_undefined(store: Store) -> None:
    fill(store, "benchmark_pair", [pair("b", str(k), is_natural=True) for k in range(3)])
    fill(store, "pair_score", [score("b", str(k), 0.1) for k in range(3)])
    (row,) = _asked(store, "FROM opinion_agreement(1)")
    assert (row["n_both"], row["kappa"], row["auc"]) == (3, None, None)


def test_the_question_has_the_default_limit() -> None:
    assert BuildSpec(naturalness_model="m", max_difference_nats_per_token=0.0)
    default = f"opinion_agreement({BuildSpec.max_difference_nats_per_token:g})"
    assert default in questions()[13].query


_AT_DEFAULT = f"FROM opinion_agreement({BuildSpec.max_difference_nats_per_token})"


@pytest.mark.slow
@pytest.mark.reference
def test_released_scores_do_not_tell_natural_from_unnatural(
    store: Store, data: Path, tmp_path: Path
) -> None:
    """What the default limit and the warning in docs/generation.md rest on."""
    results = tmp_path / "results"
    for name in ("EleutherAI__pythia-70m", "EleutherAI__pythia-6.9b", "facebook__opt-6.7b"):
        results_of(data, name, results)
    load(store, data, results)
    found = {(r["model"].split("/")[1], r["benchmark"]): r for r in _asked(store, _AT_DEFAULT)}
    columns = ("n_both", "n_judge_only", "n_model_only", "n_neither")
    table = {key: tuple(row[c] for c in columns) for key, row in found.items()}
    assert table["pythia-70m", "use-5"] == (4386, 19, 549, 0)
    assert table["pythia-6.9b", "use-5"] == (4247, 158, 532, 17)
    assert table["opt-6.7b", "use-20"] == (4839, 0, 106, 0)
    assert len(found) == 9 and all(0.45 < row["auc"] < 0.58 for row in found.values())
    assert found["pythia-70m", "use-5"]["auc"] == pytest.approx(0.498, abs=5e-4)
    assert all(abs(row["kappa"]) < 0.01 for row in found.values())
