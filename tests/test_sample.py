"""Continuing a set of prompts into the warehouse: never drawn twice, seeds apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Sample, SamplingOptions, SeededPrompt
from plumbline.warehouse.storage.store import Store
from tests.steps import sample_set
from tests.tiny_models import save

HOW = SamplingOptions(temperature=6.0, max_new_tokens=12)
SETS = {
    "1": ("The nurse said", "The clerk said"),
    "2": ("He drank tea.", "She drank tea."),
    "3": ("She drank tea.", None),  # the same text as a side of another prompt
}


def fill(store: Store) -> None:
    rows = [
        {
            "probe_set": "demo",
            "prompt_id": name,
            "prompt": prompt,
            "perturbed_prompt": other,
            "language": "en",
            "source_file": "demo.toml",
            "source_row": i,
            "run_id": "run",
        }
        for i, (name, (prompt, other)) in enumerate(SETS.items(), 1)
    ]
    store.replace("probe_prompt", rows, {"probe_set": "demo"}, "run")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gpt2", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[SeededPrompt]:
    """Every draw that reaches the model, in order."""
    seen: list[SeededPrompt] = []
    compute = CausalModel.continue_

    def watched(
        self: CausalModel, draws: Sequence[SeededPrompt], options: SamplingOptions
    ) -> list[Sample]:
        seen.extend(draws)
        return compute(self, draws, options)

    monkeypatch.setattr(CausalModel, "continue_", watched)
    return seen


def _sample(store: Store, model: Path, n: int, how: SamplingOptions = HOW) -> Any:
    return sample_set(store, "demo", str(model), ModelOptions(), how, n)


def _rows(store: Store) -> list[dict[str, Any]]:
    return store.read("continuation").to_pylist()


def test_more_samples_draw_the_further_ones_and_other_seeds_are_other_rows(
    store: Store, model: Path, drawn: list[SeededPrompt], tmp_path: Path
) -> None:
    fill(store)
    _sample(store, model, 3)
    before = _rows(store)
    drawn.clear()
    assert _sample(store, model, 3).n_new == 0
    assert not drawn and _rows(store) == before
    done = _sample(store, model, 7)
    assert (done.n_new, len(_rows(store)), len(drawn)) == (5, 35, 16)
    after = _rows(store)
    assert [r for r in after if r["sample"] < 3] == before
    _sample(store, model, 2)
    assert len(_rows(store)) == 35  # fewer: what is there stays
    fresh = Store.open(tmp_path / "fresh")
    fill(fresh)
    _sample(fresh, model, 7)
    assert _rows(fresh) == after
    other = _sample(store, model, 7, SamplingOptions(temperature=6.0, max_new_tokens=12, seed=1))
    key = done.partition["sampling_key"]
    assert other.partition["sampling_key"] != key and other.n_new == 5
    assert [r for r in _rows(store) if r["sampling_key"] == key] == after
    same = {r["continuation"] for r in after} & {
        r["continuation"] for r in _rows(store) if r["sampling_key"] != key
    }
    assert len(same) < 3
