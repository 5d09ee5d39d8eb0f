"""The regression beside frequency, n-grams and length: by hand, on made-up data, in a warehouse."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from plumbline.eval_workers.scoring.controls import (
    LEAST_WORDS,
    effects,
    effects_of_all,
    minus_frame_means,
)
from plumbline.eval_workers.scoring.measure import measure
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, score, scored_by, trained


def study(n_words: int, slope: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictors (pairs x 4), log ratios and words; delta is related to n-grams and frequency."""
    draw = np.random.default_rng([seed, n_words])
    delta, of_ngram, of_frequency, own = draw.standard_normal((4, n_words))
    n_pairs = draw.integers(1, 13, n_words)
    word = np.repeat(np.arange(n_words), n_pairs)
    ngram = (0.5 * delta + of_ngram)[word] + draw.standard_normal(len(word))
    length = draw.integers(6, 20, len(word)).astype(float)
    x = np.column_stack([delta[word], (0.5 * delta + of_frequency)[word], ngram, length])
    y = slope * delta[word] + ngram + 0.5 * own[word] + draw.standard_normal(len(word))
    return x, y, word


def fitted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The constant and the coefficients."""
    return np.linalg.lstsq(np.column_stack([np.ones(len(y)), x]), y, rcond=None)[0]


def residuals(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found: np.ndarray = y - np.column_stack([np.ones(len(y)), x]) @ fitted(x, y)
    return found


def jackknifed(
    figure: Callable[[np.ndarray, np.ndarray], float], x: np.ndarray, y: np.ndarray, w: np.ndarray
) -> tuple[float, float, float]:
    """A figure with its interval, computed again without each word."""
    value, words = figure(x, y), np.unique(w)
    without = np.array([figure(x[w != word], y[w != word]) for word in words])
    n = len(words)
    error = np.sqrt((n - 1) / n * ((without - value) ** 2).sum())
    half = stats.t.ppf(0.975, n - 1) * error
    return value, value - half, value + half


def test_each_figure_is_that_of_fits_without_each_word() -> None:
    x, y, w = study(25, 0.3, seed=4)
    for k, effect in enumerate(effects(x, y, w)):
        others = np.delete(x, k, axis=1)

        def partial(a: np.ndarray, b: np.ndarray, k: int = k) -> float:
            rest = np.delete(a, k, axis=1)
            return float(
                np.arctanh(stats.pearsonr(residuals(rest, a[:, k]), residuals(rest, b))[0])
            )

        expected = {
            "coefficient": jackknifed(lambda a, b, k=k: fitted(a, b)[k + 1], x, y, w),
            "correlation": np.tanh(
                jackknifed(lambda a, b, k=k: np.arctanh(stats.pearsonr(a[:, k], b)[0]), x, y, w)
            ),
            "partial_correlation": np.tanh(jackknifed(partial, x, y, w)),
        }
        for name, values in expected.items():
            ends = [effect[f"{name}{end}"] for end in ("", "_low", "_high")]
            assert ends == pytest.approx(list(values), rel=1e-9), name
        left, lost, total = (np.zeros(25) for _ in range(3))
        for word in range(25):
            mine, rest = w == word, w != word
            for sums, columns in ((left, x), (lost, others), (total, x[:, :0])):
                b = fitted(columns[rest], y[rest])
                sums[word] = ((y[mine] - b[0] - columns[mine] @ b[1:]) ** 2).sum()
        assert effect["r2"] == pytest.approx(1 - left.sum() / total.sum())
        gain, low, high = (effect[name] for name in ("gain", "gain_low", "gain_high"))
        assert gain == pytest.approx((lost - left).sum() / total.sum())
        assert (low + high) / 2 == pytest.approx(gain) and high > low


def test_what_cannot_be_told_has_no_figures() -> None:
    x, y, w = study(LEAST_WORDS, 0.3, seed=0)
    few = w < LEAST_WORDS - 1
    nothing = effects(x[few], y[few], w[few])[0]
    assert nothing.pop("verdict") == "cannot be told" and set(nothing.values()) == {None}
    nothing["verdict"] = "cannot be told"
    assert effects(x[few], y[few], w[few]) == [nothing] * 4
    assert effects(x[:0], y[:0], w[:0]) == [nothing] * 4
    assert effects(x[:, [0, 0, 2, 3]], y, w) == [nothing] * 4
    assert effects(x, np.ones(len(y)), w) == [nothing] * 4
    constant = np.column_stack([x[:, :3], np.full(len(y), 7.0)])
    *others, length = effects(constant, y, w)
    assert length == nothing and others == effects(x[:, :3], y, w)
    constant[w == 0, 3] += 1
    assert effects(constant, y, w)[3] == nothing and effects(constant, y, w)[0] == others[0]


def test_pairs_of_one_frame_are_compared_with_each_other() -> None:
    """Frames whose n-gram log ratios run against their own preference hide what n-grams do."""
    x, y, w = study(200, 0.3, seed=1)
    frames = np.random.default_rng(0).integers(0, 3, len(y))
    x[:, 2] += 5.0 * frames
    y -= 10.0 * frames
    names = [f"frame {f}" for f in frames]
    names[0] = "a frame of its own"
    assert effects(x, y, w)[2]["coefficient"] < -1
    both, n_frames = minus_frame_means(names, w, np.column_stack([x, y]))
    assert n_frames == 4 and both[0] == pytest.approx(0)
    effect = effects(both[:, :-1], both[:, -1], w)[2]["coefficient"]
    assert effect == pytest.approx(1, abs=0.15)


@pytest.fixture
def warehouse(store: Store) -> Store:
    """A neural model that follows delta beyond the n-gram model of the same corpus."""
    draw = np.random.default_rng(0)
    rows: dict[str, list[dict[str, object]]] = {"neural": [], "five": []}
    pairs, deltas = [], []
    for k in range(40):
        lean = float(draw.normal())
        word = "word" + "abcdefghijklmnopqrstuvwxyz"[k // 26] + "abcdefghijklmnopqrstuvwxyz"[k % 26]
        deltas.append(delta(word, lean) | {"n_word": int(draw.integers(5, 500))})
        for i in range(3):
            ngram = float(0.5 * lean + draw.normal())
            texts = {"sentence_a": f"She saw {word} {i}.", "sentence_b": f"He saw {word} {i}."}
            pairs.append(pair("b", f"{k}-{i}", word=word.title(), **texts))
            rows["five"].append(score("b", f"{k}-{i}", ngram, "five") | {"n_tokens_a": 3 + i % 2})
            ratio = 0.5 * lean + ngram + 0.3 * float(draw.normal())
            rows["neural"].append(score("b", f"{k}-{i}", ratio, "neural"))
    deltas[0]["n_word"] = None
    fill(store, "word_delta", deltas)
    fill(store, "benchmark_pair", pairs)
    for model, of in rows.items():
        fill(store, "trained_model", [trained(model, "c")], model)
        backend = {"backend": "ngram"} if model == "five" else {}
        fill(store, "model", [scored_by(model) | backend], model)
        fill(store, "pair_score", of, model)
    return store


def test_measure_writes_the_controls(warehouse: Store) -> None:
    measure(warehouse, "r")
    rows = {row["predictor"]: row for row in rows_of(warehouse.root, "FROM control")}
    assert rows.keys() == {"delta", "log frequency", "n-gram log ratio", "length"}
    found = rows["delta"]
    assert (found["model"], found["ngram_key"], found["corpus"]) == ("neural", "key-five", "c")
    # The word whose frequency isn't known is left out; three frames hold a pair of every word.
    assert (found["n_pairs"], found["n_words"], found["n_frames"]) == (117, 39, 3)
    assert found["verdict"] == "predicts"
    assert found["coefficient_low"] < 0.5 < found["coefficient_high"]
    assert rows["n-gram log ratio"]["coefficient"] == pytest.approx(1, abs=0.1)
    points = rows_of(warehouse.root, "FROM control_point ORDER BY pair_id")
    assert {p["length_words"] for p in points} == {4, 4.5}
    assert points[0]["frame"] == "she saw _ 0."
    by_hand = minus_frame_means(
        [p["frame"] for p in points],
        [p["word"] for p in points],
        np.array([[p["delta_nats"], p["log_frequency"], p["ngram_log_ratio_nats"],
                   p["length_words"], p["log_ratio_nats"]] for p in points]),
    )[0]  # fmt: skip
    assert found["coefficient"] == pytest.approx(fitted(by_hand[:, :3], by_hand[:, 4])[1])
    # Length varies between frames alone.
    assert rows["length"]["coefficient"] is None
    assert len(effects_of_all(warehouse.root)) == 4
