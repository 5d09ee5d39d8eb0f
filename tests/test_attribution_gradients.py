"""Influences through kronfluence against finite differences of the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training.influence import NO_TARGET, Items, influence
from tests import tiny_models

pytest.importorskip("kronfluence")

PAIRS = [tiny_models.SENTENCES[k : k + 2] for k in (0, 2, 10)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save("neox", tmp_path_factory.mktemp("m") / "neox")


def _backend(model: Path) -> TransformersBackend:
    return TransformersBackend(str(model), ModelOptions())


def _items(n: int, seed: int) -> Items:
    """Rows of random tokens; of each only some are its own part."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(2, 300, (n, 12))
    targets = np.concatenate([tokens[:, 1:], np.full((n, 1), NO_TARGET)], axis=1)
    targets[:, : rng.integers(1, 5)] = NO_TARGET
    return Items(tokens, targets)


def _preferences(backend: TransformersBackend) -> list[list[tuple[tuple[int, ...], float]]]:
    """Of the first pair, and the mean of the two others."""
    of_pair = []
    for pair in PAIRS:
        f, m = (tokens for tokens in backend.encoded(pair) if not isinstance(tokens, str))
        of_pair.append((f, m))
    (f, m), (f2, m2), (f3, m3) = of_pair
    return [[(f, 1.0), (m, -1.0)], [(f2, 0.5), (m2, -0.5), (f3, 0.5), (m3, -0.5)]]


def _preference(backend: TransformersBackend) -> np.ndarray:
    ratios = [
        a.logprob_nats - b.logprob_nats for a, b in (backend.score(list(pair)) for pair in PAIRS)
    ]
    return np.array([ratios[0], (ratios[1] + ratios[2]) / 2])


def test_without_curvature_it_is_the_effect_of_a_gradient_step(model: Path, tmp_path: Path) -> None:
    """One small step on an item's loss, of the linear layers, scored as `plumbline score` does."""
    items = _items(3, seed=1)
    found = influence(
        _backend(model),
        items,
        items,
        _preferences(_backend(model)),
        tmp_path / "a",
        strategy="identity",
    )
    for k in range(len(items)):
        moved = []
        for step in (1e-4, -1e-4):
            backend = _backend(model)
            network = backend.loaded.requires_grad_()
            layers = [m for m in network.modules() if type(m) is torch.nn.Linear]
            weights = [p for layer in layers for p in layer.parameters()]
            logits = network(torch.tensor(items.tokens[k : k + 1])).logits[0]
            loss = torch.nn.functional.cross_entropy(
                logits, torch.tensor(items.targets[k]), reduction="sum", ignore_index=NO_TARGET
            )
            gradients = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight -= step * gradient
            moved.append(_preference(backend))
        expected = (moved[0] - moved[1]) / 2e-4
        assert np.abs(expected).max() > 0.1
        assert found[:, k] == pytest.approx(expected, rel=0.02, abs=0.02 * np.abs(expected).max())
