"""Bounds of leans from the counts, also where one side never has a word nearby.

Targets stand in bursts in a text. A word stands at each position near them by chance, and counts
once with every target in its window, as the rule ``pairs`` counts. Positions near *she* hold it
e^lean times as often as those near *he*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.association.measures import CorpusCounts, bound_rows
from plumbline.warehouse.wordlists import WordPair

ABOUT = "95% intervals of the leans of words, targets in bursts; lean 0: the share called clear."
DRAWS = 4_000
#: Kept words of the text, window, texts per world, share of targets that follow another closely.
_LENGTH, _WINDOW, _TEXTS, _FOLLOW = 1_000_000, 10, 10, 0.35
_MOST = 2 * _WINDOW  # more than the targets in a window
#: Occurrences of the two targets, leans, and expected co-occurrences of a word.
_TARGETS = ((204, 1227), (3000, 9000))
_LEANS = (0.0, 1.5, -1.5)
_NEAR = (3, 12, 50, 250)


def rows(draws: int, seed: int) -> list[dict[str, Any]]:
    """A row per world: coverage above and below, and what would look clear without a lean."""
    rng = np.random.default_rng(seed)
    worlds = [(n, lean, near) for n in _TARGETS for lean in _LEANS for near in _NEAR]
    return [_row(*world, draws, rng) for world in worlds]


def _row(
    targets: tuple[int, int], lean: float, near: float, draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    per_text = max(draws // _TEXTS, 1)
    parts = [_text(targets, lean, near, per_text, rng) for _ in range(_TEXTS)]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    low, high, true = found["sides_nats_low"], found["sides_nats_high"], found["true"]
    clear = (low > 0) | (high < 0)
    return {
        "she": targets[0],
        "he": targets[1],
        "lean": lean,
        "co-occurrences": near,
        "one side only": float(found["is_one_sided"].mean()),
        "coverage": float(((low <= true) & (true <= high)).mean()),
        "too high": float((low > true).mean()),
        "too low": float((high < true).mean()),
        "clear": float(clear.mean()),
        "expected clear": float(found["chance_clear"].mean()),
    }


def _text(
    targets: tuple[int, int], lean: float, near: float, n_words: int, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Bounds of words in one text, and their true lean there."""
    places = [_bursts(n, rng) for n in targets]
    (k_f, self_f), (k_m, self_m) = (_nearby(at) for at in places)
    n_positions = np.bincount(k_f * _MOST + k_m)
    n_positions[0] = 0
    used = np.flatnonzero(n_positions)
    kinds, n_positions = np.stack(np.divmod(used, _MOST)), n_positions[used]
    rate = (kinds * np.exp([[lean], [0.0]])).sum(axis=0) / kinds.sum(axis=0)
    expected = kinds @ (n_positions * rate)
    n_words_at = rng.poisson(n_positions * rate * near / expected.sum(), (n_words, kinds.shape[1]))
    c_f, c_m = (n_words_at @ kinds.T).T
    words = ["she", "he", *(f"w{k}" for k in range(n_words))]
    pairs = {"she": [self_f, 0, *c_f.tolist()], "he": [0, self_m, *c_m.tolist()]}
    table = pa.table(
        {
            "word": words * 2,
            "target": [target for target in pairs for _ in words],
            "n_pair": [n for of in pairs.values() for n in of],
        }
    )
    n_word = [*targets, *[1000] * n_words]
    counts = CorpusCounts(pa.table({"word": words, "n_word": n_word}), table, _LENGTH, 10 * _LENGTH)
    found = bound_rows(counts, "she/he", [WordPair("she", "he")])
    columns = {
        name: found[name].to_numpy()[2:]
        for name in ("sides_nats_low", "sides_nats_high", "chance_clear")
    }
    true = np.log(expected[0] / expected[1]) - np.log(targets[0] / targets[1])
    is_one_sided = np.minimum(found["n_pair_f"].to_numpy(), found["n_pair_m"].to_numpy())[2:] == 0
    return {**columns, "true": np.full(found.num_rows - 2, true), "is_one_sided": is_one_sided}


def _bursts(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Distinct positions of a target, of which some follow the one before closely."""
    at = rng.integers(0, _LENGTH, n)
    follow = rng.random(n) < _FOLLOW
    for k in np.flatnonzero(follow[1:]) + 1:
        at[k] = at[k - 1] + rng.integers(1, _WINDOW)
    found: NDArray[np.int64] = np.unique(at[at < _LENGTH])
    return found


def _nearby(at: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """How many targets each position has in its window, and co-occurrences of these."""
    is_target = np.zeros(_LENGTH, np.int64)
    is_target[at] = 1
    window = np.ones(2 * _WINDOW - 1, np.int64)
    n_near = np.convolve(is_target, window, "same") - is_target
    return n_near, int(n_near[at].sum()) // 2
