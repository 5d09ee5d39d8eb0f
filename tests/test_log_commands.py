"""The commands that count, score and associate: after a fault anywhere in their commits, the tables
are those of before or of after, and the same command ends with those of after."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.jobs.association.associations import associate
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.warehouse.steps.runner import run_steps
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair
from tests.test_log import faulted, n_operations
from tests.tiny_models import save
from tools.same_tables import CIRCUMSTANCES

Act = Callable[[Store], object]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Act]]:
    """A warehouse with a counted corpus and a benchmark, and what commands do to it."""
    directory = tmp_path_factory.mktemp("commands")
    shards = []
    for name in "ab":
        shards.append(directory / f"{name}.jsonl")
        shards[-1].write_text(f'{{"text": "she met the {name}nurse, he met the nurse"}}\n' * 9)
    backend = open_backend(str(save("neox", directory / "tiny")), ModelOptions())
    store = Store.open(directory / "w")
    count_corpus(store, "c", (shards[0],))
    associate(store, "c")
    fill(store, "benchmark_pair", [pair("b", str(k)) for k in range(3)])
    return store.root, {
        "count": lambda store: count_corpus(store, "c", tuple(shards)),
        "associate": lambda store: associate(store, "c"),
        "score": lambda store: run_steps(store, backend, [PairScores("b", "")], "r"),
    }


def tables(store: Store) -> dict[str, list[str]]:
    """Rows of all tables but `run`, whenever and by whichever run they were written."""
    found = {}
    for name in store.snapshot().tables.keys() - {"run"}:
        rows = store.read(name)
        kept = rows.drop_columns([c for c in CIRCUMSTANCES if c in rows.column_names])
        found[name] = sorted(map(repr, kept.to_pylist()))
    return {name: rows for name, rows in found.items() if rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "every"),
    [
        ("death", 29),
        *(pytest.param(fault, 1, marks=pytest.mark.slow) for fault in ("EIO", "ENOSPC", "death")),
    ],
)
@pytest.mark.parametrize("command", ["count", "associate", "score"])
def test_after_a_fault_the_tables_are_those_of_before_or_after(
    begun: tuple[Path, dict[str, Act]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    fault: str,
    every: int,
) -> None:
    root, acts = begun
    act, n_old, n_new = acts[command], 0, 0

    def copied(name: str) -> Store:
        shutil.copytree(root, tmp_path / name)
        store = Store.open(tmp_path / name)
        if command == "associate":  # there must be something new
            store.drop("word_delta", {"corpus": "c"})
        return store

    whole = copied("whole")
    old = tables(whole)
    n = n_operations(monkeypatch, lambda: act(whole))
    new = tables(whole)
    for at in range(0, n, every):
        store = copied(str(at))
        faulted(monkeypatch, at, fault, partial(act, store))
        found = tables(store)
        assert found in (old, new), f"operation {at}"
        n_old, n_new = n_old + (found == old), n_new + (found == new)
        act(store)
        assert tables(store) == new, f"again after operation {at}"
        shutil.rmtree(store.root)
    assert n > 30 and n_old and (n_new or every > 1) and old != new
