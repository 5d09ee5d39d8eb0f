"""Replacement of a benchmark's pairs, with all results on pairs that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.storage.store import Store

#: Tables with a row or more for a pair, and what partitions them.
_ABOUT_PAIRS = {
    "pair_score": ["benchmark", "model_key"],
    "token_logprob": ["benchmark", "model_key"],
    "pair_choice": ["benchmark", "model_key", "setting"],
    "pair_association": ["corpus", "benchmark"],
}
#: Tables of figures over the pairs of a benchmark.
_FIGURES = (
    *("metric_value", "model_rank", "benchmark_power", "change_point", "word_onset", "control"),
)


def replace_pairs(
    store: Store, benchmark: str, pairs: Sequence[dict[str, Any]], run_id: str
) -> int:
    """Replace the pairs of a benchmark; returns the number of old ones that changed or are gone.

    Scores, choices and associations of such pairs go too, and with them all figures of the
    benchmark: they would be taken for those of the new sentences.
    """
    new = {pair["pair_id"]: (pair["sentence_a"], pair["sentence_b"]) for pair in pairs}
    changed = [
        pair["pair_id"]
        for pair in store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        if new.get(pair["pair_id"]) != (pair["sentence_a"], pair["sentence_b"])
    ]
    store.replace("benchmark_pair", list(pairs), {"benchmark": benchmark}, run_id)
    if not changed:
        return 0
    for table, columns in _ABOUT_PAIRS.items():
        keys = store.read(table, pc.field("benchmark") == benchmark).select(columns)
        for partition in keys.group_by(columns).aggregate([]).to_pylist():
            rows = store.read(table, **partition)
            is_gone = pc.is_in(rows["pair_id"], pa.array(changed, rows["pair_id"].type))
            kept = rows.filter(pc.invert(is_gone))
            if kept.num_rows < rows.num_rows:
                store.replace(table, kept, partition, run_id)
    for table in _FIGURES:
        store.drop(table, {"benchmark": benchmark}, run_id)
    return len(changed)
