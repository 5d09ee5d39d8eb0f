"""Waiting for scores that another process computes."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.eval_workers.models.kinds.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring import scores_elsewhere
from plumbline.warehouse.storage.store import Store
from tests.steps import shown
from tests.test_score import TEMPLATES, _pairs, _score


def test_it_ends_when_others_have_scored_what_can_be_scored(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is computed by the one who waits, and a pair that is rejected is not waited for."""
    monkeypatch.setattr(scores_elsewhere, "_PERIOD_S", 0.05)
    store, scorer = Store.open(tmp_path / "w"), []
    _pairs(store, [*TEMPLATES, "{pronoun} wrote <|endoftext|>."])
    score, looked = CausalModel.score, threading.Event()
    seen = shown(monkeypatch, scores_elsewhere, looked.set)

    def watched(self: CausalModel, texts: list[str]) -> object:
        scorer.append(threading.current_thread())
        assert looked.wait(30)
        return score(self, texts)

    monkeypatch.setattr(CausalModel, "score", watched)
    other = threading.Thread(target=_score, args=(store, model))
    other.start()
    scores_elsewhere.wait_for_scores(store, str(model), ["demo"], ModelOptions())
    other.join()
    assert set(scorer) == {other}
    assert seen[0] == ("wait for demo", 0, 43) and seen[-1] == ("wait for demo", 43, 43)
    assert store.read("pair_score").num_rows == 42
    runs = store.read("pair_score")["run_id"].unique()
    assert len(runs) == 1
    # Again: it is all there.
    scores_elsewhere.wait_for_scores(store, str(model), ["demo"], ModelOptions())


def test_scores_by_other_versions_end_the_wait(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that waits has another version, or nothing to compute with at all."""
    monkeypatch.setattr(scores_elsewhere, "_PERIOD_S", -1.0)  # whoever sleeps so long fails
    store, versions = Store.open(tmp_path / "w"), CausalModel.versions
    _pairs(store, TEMPLATES)
    other = lambda self: {**versions(self), "elsewhere": "1"}  # noqa: E731
    with monkeypatch.context() as there:
        there.setattr(CausalModel, "versions", other)
        _score(store, model)
    scores_elsewhere.wait_for_scores(store, str(model), ["demo"], ModelOptions())
    with pytest.raises(ValueError, match="non-negative"):
        options = ModelOptions(dtype="bfloat16")
        scores_elsewhere.wait_for_scores(store, str(model), ["demo"], options)


def test_who_waits_need_not_have_what_computes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other machine's vLLM, here by its identity alone; this one has none."""
    monkeypatch.setattr(scores_elsewhere, "_PERIOD_S", -1.0)  # whoever sleeps so long fails
    monkeypatch.setenv("PLUMBLINE_VLLM", "/nowhere")
    store, make = Store.open(tmp_path / "w"), CausalModel.__init__
    _pairs(store, TEMPLATES)

    def elsewhere(self: CausalModel, name: str, options: ModelOptions, _: object) -> None:
        make(self, name, options)
        self.identity = replace(self.identity, backend="vllm", backend_version="vllm 9")

    with monkeypatch.context() as there:
        there.setattr(CausalModel, "__init__", elsewhere)
        _score(store, model)
    scores_elsewhere.wait_for_scores(store, str(model), ["demo"], ModelOptions(backend="vllm"))


def test_a_rejection_of_other_sentences_is_not_waited_out(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair that was rejected and has other sentences since has to be scored."""
    monkeypatch.setattr(scores_elsewhere, "_PERIOD_S", 0.05)
    store, looked = Store.open(tmp_path / "w"), threading.Event()
    _pairs(store, [*TEMPLATES, "{pronoun} wrote <|endoftext|>."])
    _score(store, model)
    _pairs(store, [*TEMPLATES, "{pronoun} wrote."])
    shown(monkeypatch, scores_elsewhere, looked.set)
    of = (store, str(model), ["demo"], ModelOptions())
    thread = threading.Thread(target=scores_elsewhere.wait_for_scores, args=of)
    thread.start()
    assert looked.wait(30)
    thread.join(0.5)
    is_waiting = thread.is_alive()
    _score(store, model)
    thread.join(30)
    assert is_waiting and not thread.is_alive()
