"""Replaces a benchmark's pairs, and deletes results that don't hold for the new pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.storage.store import Store

#: Table with one or more rows per pair -> the columns of its partitions.
_ABOUT_PAIRS = {
    "pair_score": ["benchmark", "model_key"],
    "token_logprob": ["benchmark", "model_key"],
    "pair_choice": ["benchmark", "model_key", "setting"],
    "pair_association": ["corpus", "benchmark"],
}
#: Tables of figures over the pairs of a benchmark.
_FIGURES = ("metric_value", "model_rank", "benchmark_power", "control")
#: Texts of a pair that models score; a pair that had no baseline keeps its scores until `score`.
_SCORED = ("sentence_a", "sentence_b", "baseline_a", "baseline_b")
#: Columns of pairs on which no figure depends.
_NOT_IN_FIGURES = {"extra", "source_file", "source_row"}


class Replaced(NamedTuple):
    """Numbers of earlier pairs that are gone or have other sentences now (``n_changed``), and that
    kept their sentences but changed in another column (``n_mended``).
    """

    n_changed: int
    n_mended: int


def replace_pairs(
    store: Store, benchmark: str, pairs: Sequence[dict[str, Any]], run_id: str
) -> Replaced:
    """Replace the pairs of a benchmark.

    Pairs that are gone or have other sentences lose their scores, choices and associations. All
    rejects of scoring the benchmark are then deleted too, since they may be about these pairs. If
    any pair is new, gone, or changed in a column outside ``_NOT_IN_FIGURES``, all figures of the
    benchmark are deleted: they would be taken for figures of the new pairs.
    """
    earlier = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    new = {pair["pair_id"]: pair for pair in pairs}
    changed, n_mended = [], 0
    for old in earlier:
        pair = new.get(old["pair_id"])
        if pair is None or any(old[c] not in (None, pair.get(c)) for c in _SCORED):
            changed.append(old["pair_id"])
        else:
            n_mended += any(pair.get(name) != old[name] for name in old.keys() - _NOT_IN_FIGURES)
    store.replace("benchmark_pair", list(pairs), {"benchmark": benchmark}, run_id)
    if not changed and not n_mended and len(new) == len(earlier):
        return Replaced(0, 0)
    for table, columns in _ABOUT_PAIRS.items():
        keys = store.read(table, pc.field("benchmark") == benchmark).select(columns)
        for partition in keys.group_by(columns).aggregate([]).to_pylist():
            rows = store.read(table, **partition)
            is_gone = pc.is_in(rows["pair_id"], pa.array(changed, rows["pair_id"].type))
            kept = rows.filter(pc.invert(is_gone))
            if kept.num_rows < rows.num_rows:
                store.replace(table, kept, partition, run_id)
    for subject in set(store.read("reject", stage="score")["subject"].to_pylist()):
        if changed and subject.partition("/")[2] == benchmark:
            store.drop("reject", {"stage": "score", "subject": subject}, run_id)
    for table in _FIGURES:
        store.drop(table, {"benchmark": benchmark}, run_id)
    return Replaced(len(changed), n_mended)
