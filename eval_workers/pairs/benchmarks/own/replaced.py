"""Other pairs in the place of a benchmark's: what was found out about changed ones goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.storage.store import Store

#: Tables with a row or more for a pair, and what partitions them.
_ABOUT_PAIRS = {
    "pair_score": ("benchmark", "model_key"),
    "token_logprob": ("benchmark", "model_key"),
    "pair_choice": ("benchmark", "model_key", "setting"),
    "pair_association": ("corpus", "benchmark"),
}
#: Tables of figures over the pairs of a benchmark.
_FIGURES = (
    *("metric_value", "model_rank", "benchmark_power", "change_point", "word_onset", "control"),
)


def _changed(store: Store, benchmark: str, pairs: Sequence[dict[str, Any]]) -> set[str]:
    """Pairs that the benchmark has and that are gone, or have other sentences, among ``pairs``."""
    now = {pair["pair_id"]: (pair["sentence_a"], pair["sentence_b"]) for pair in pairs}
    return {
        pair["pair_id"]
        for pair in store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        if now.get(pair["pair_id"]) != (pair["sentence_a"], pair["sentence_b"])
    }


def replace_pairs(
    store: Store, benchmark: str, pairs: Sequence[dict[str, Any]], run_id: str
) -> int:
    """Put pairs in the place of those that a benchmark has; how many were changed or went.

    Scores, choices and associations of pairs that are gone or have other sentences go too, and all
    figures of the benchmark if there are such: they would be taken for those of the new sentences.
    """
    changed = sorted(_changed(store, benchmark, pairs))
    store.replace("benchmark_pair", list(pairs), {"benchmark": benchmark}, run_id)
    if not changed:
        return 0
    for table, columns in _ABOUT_PAIRS.items():
        rows = store.read(table, pc.field("benchmark") == benchmark)
        for partition in (
            rows.select(list(columns)).group_by(list(columns)).aggregate([]).to_pylist()
        ):
            one = store.read(table, **partition)
            is_gone = pc.is_in(one["pair_id"], pa.array(changed, one["pair_id"].type))
            kept = one.filter(pc.invert(is_gone))
            if kept.num_rows < one.num_rows:
                store.replace(table, kept, partition, run_id)
    for table in _FIGURES:
        store.drop(table, {"benchmark": benchmark}, run_id)
    return len(changed)
