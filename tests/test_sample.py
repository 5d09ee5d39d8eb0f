"""Continuing a set of prompts into the warehouse: resumable, never drawn twice, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Draw, Sample, SamplingOptions
from plumbline.warehouse.steps import runner
from plumbline.warehouse.storage.store import Store
from tests.steps import sample_set, shown
from tests.tiny_models import save

HOW = SamplingOptions(temperature=6.0, max_new_tokens=12)
SETS = {
    "1": ("The nurse said", "The clerk said"),
    "2": ("He drank tea.", "She drank tea."),
    "3": ("She drank tea.", None),  # the same text as a side of another prompt
}


def fill(store: Store, prompts: dict[str, tuple[str, str | None]] = SETS) -> None:
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
        for i, (name, (prompt, other)) in enumerate(prompts.items(), 1)
    ]
    store.replace("probe_prompt", rows, {"probe_set": "demo"}, "run")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gpt2", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Draw]:
    """Every draw that reaches the model, in order."""
    seen: list[Draw] = []
    compute = CausalModel.continue_

    def watched(self: CausalModel, draws: Sequence[Draw], options: SamplingOptions) -> list[Sample]:
        seen.extend(draws)
        return compute(self, draws, options)

    monkeypatch.setattr(CausalModel, "continue_", watched)
    return seen


def _sample(store: Store, model: Path, n: int, how: SamplingOptions = HOW) -> Any:
    return sample_set(store, "demo", str(model), ModelOptions(), how, n)


def _rows(store: Store) -> list[dict[str, Any]]:
    return store.read("continuation").to_pylist()


def test_every_side_has_its_samples_and_each_text_is_drawn_once(
    store: Store, model: Path, drawn: list[Draw], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    told = shown(monkeypatch, runner)
    done = _sample(store, model, 8)
    assert (done.n_texts, done.n_continued, done.n_rejected) == (5, 5, 0)
    assert (done.n_samples, done.n_new, done.n_alike) == (40, 40, 0)
    assert len(drawn) == len(set(drawn)) == 32
    assert told[0][1:] == (0, 32) and told[-1][1:] == (32, 32) and done.samples_per_s > 0
    rows = _rows(store)
    keys = [(r["prompt_id"], r["side"], r["sample"]) for r in rows]
    sides = [("1", "original"), ("1", "perturbed"), ("2", "original"), ("2", "perturbed")]
    assert sorted(keys) == sorted(
        (*side, k) for side in [*sides, ("3", "original")] for k in range(8)
    )
    texts = {(p, s): [r["continuation"] for r in rows if (r["prompt_id"], r["side"]) == (p, s)]
             for p, s, _ in keys}  # fmt: skip
    assert texts["2", "perturbed"] == texts["3", "original"]
    assert len({t for found in texts.values() for t in found}) > 25
    backend = CausalModel(str(model), ModelOptions())
    for row in rows[::7]:
        draw = Draw(dict(zip(("original", "perturbed"), SETS[row["prompt_id"]], strict=True))[
            row["side"]], row["sample"], row["seed"])  # fmt: skip
        (alone,) = backend.continue_([draw], HOW)
        assert (alone.text, alone.n_tokens, alone.finish) == (
            row["continuation"], row["n_tokens"], row["finish"])  # fmt: skip
    (how,) = store.read("sampling").to_pylist()
    assert how["sampling_key"] == done.sampling_key == HOW.key and how["temperature"] == 6.0
    (identity,) = store.read("model").to_pylist()
    assert {r["model_key"] for r in rows} == {identity["model_key"]} == {done.model_key}


def test_more_samples_draw_the_further_ones_and_other_seeds_are_other_rows(
    store: Store, model: Path, drawn: list[Draw], tmp_path: Path
) -> None:
    fill(store)
    _sample(store, model, 3)
    before = _rows(store)
    drawn.clear()
    assert _sample(store, model, 3).n_new == 0
    assert not drawn and _rows(store) == before
    done = _sample(store, model, 7)
    assert (done.n_new, done.n_samples, len(drawn)) == (20, 35, 16)
    after = _rows(store)
    assert [r for r in after if r["sample"] < 3] == before
    assert _sample(store, model, 2).n_samples == 35  # fewer: what is there stays
    fresh = Store.open(tmp_path / "fresh")
    fill(fresh)
    _sample(fresh, model, 7)
    assert _rows(fresh) == after
    other = _sample(store, model, 7, SamplingOptions(temperature=6.0, max_new_tokens=12, seed=1))
    assert other.sampling_key != done.sampling_key and other.n_new == 35
    assert [r for r in _rows(store) if r["sampling_key"] == done.sampling_key] == after
    same = {r["continuation"] for r in after} & {
        r["continuation"] for r in _rows(store) if r["sampling_key"] == other.sampling_key
    }
    assert len(same) < 3


def test_a_prompt_that_changed_is_continued_anew(
    store: Store, model: Path, drawn: list[Draw]
) -> None:
    fill(store)
    _sample(store, model, 4)
    before = _rows(store)
    drawn.clear()
    fill(store, {"1": SETS["1"], "2": ("He drank milk.", "She drank tea.")})
    done = _sample(store, model, 4)
    assert (done.n_texts, done.n_new, done.n_samples) == (4, 4, 16)
    assert {d.text for d in drawn} == {"He drank milk."}
    kept = [r for r in before if r["prompt_id"] != "3" and r["continuation"] is not None]
    gone = ("2", "original")
    assert [r for r in _rows(store) if (r["prompt_id"], r["side"]) != gone] == [
        r for r in kept if (r["prompt_id"], r["side"]) != gone
    ]
