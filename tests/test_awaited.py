"""Waiting for scores that another process computes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plumbline.eval_workers import awaited, score_rows
from plumbline.eval_workers.backends.transformers_backend import TransformersBackend
from plumbline.eval_workers.options import ModelOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.test_score import TEMPLATES, _pairs, _score
from tests.tiny_models import save


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("neox", tmp_path_factory.mktemp("models") / "tiny-neox")


def test_it_ends_when_others_have_scored_what_can_be_scored(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is computed by the one who waits, and a pair that is rejected is not waited for."""
    monkeypatch.setattr(awaited, "_PERIOD_S", 0.05)
    store, scorer, seen = Store.open(tmp_path / "w"), [], []
    _pairs(store, [*TEMPLATES, "{pronoun} wrote <|endoftext|>."])
    score, looked = TransformersBackend.score, threading.Event()

    def watched(self: TransformersBackend, texts: list[str]) -> object:
        scorer.append(threading.current_thread())
        assert looked.wait(30)
        return score(self, texts)

    def progress(benchmark: str, done: int, total: int) -> None:
        seen.append((benchmark, done, total))
        looked.set()

    monkeypatch.setattr(TransformersBackend, "score", watched)
    other = threading.Thread(target=_score, args=(store, model))
    other.start()
    awaited.await_scores(store, str(model), ["demo"], ModelOptions(), progress)
    other.join()
    assert set(scorer) == {other}
    assert seen[0] == ("demo", 0, 43) and seen[-1] == ("demo", 43, 43)
    assert store.read("pair_score").num_rows == 42
    runs = store.read("pair_score")["run_id"].unique()
    assert len(runs) == 1
    # Again: it is all there.
    awaited.await_scores(store, str(model), ["demo"], ModelOptions())


def test_a_rejection_of_other_sentences_is_not_waited_out(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair that was rejected and has other sentences since has to be scored."""
    monkeypatch.setattr(awaited, "_PERIOD_S", 0.05)
    store, looked = Store.open(tmp_path / "w"), threading.Event()
    _pairs(store, [*TEMPLATES, "{pronoun} wrote <|endoftext|>."])
    _score(store, model)
    _pairs(store, [*TEMPLATES, "{pronoun} wrote."])
    waiting = threading.Thread(
        target=awaited.await_scores,
        args=(store, str(model), ["demo"], ModelOptions(), lambda *_: looked.set()),
    )
    waiting.start()
    assert looked.wait(30)
    waiting.join(0.5)
    is_waiting = waiting.is_alive()
    _score(store, model)
    waiting.join(30)
    assert is_waiting and not waiting.is_alive()


def test_only_columns_tell_which_pair_was_rejected(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited, "_PERIOD_S", -1.0)  # whoever sleeps so long fails
    monkeypatch.setattr(score_rows, "reject_row", lambda **row: {**row, "reason": "no matter what"})
    store = Store.open(tmp_path / "w")
    _pairs(store, ["{pronoun} wrote.", "{pronoun} wrote <|endoftext|>."])
    _score(store, model)
    awaited.await_scores(store, str(model), ["demo"], ModelOptions())
    (reject,) = store.read("reject").to_pylist()
    assert reject["text_id"] and reject["reason"] == "no matter what"


def test_a_benchmark_that_is_not_there(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="is not in the warehouse"):
        awaited.await_scores(Store.open(tmp_path / "w"), str(model), ["demo"], ModelOptions())
