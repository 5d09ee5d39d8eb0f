"""Replaces a benchmark's pairs, and the rejects of scores of other sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plumbline.warehouse.storage.store import Store


def replace_pairs(
    store: Store, benchmark: str, pairs: Sequence[dict[str, Any]], run_id: str
) -> None:
    """Replace the pairs of a benchmark.

    Results for pairs that are gone or changed are deleted, see ``Table.made_from``. If a sentence
    is gone, all rejects of scoring the benchmark are deleted too, since they may be about it.
    """

    def sentences(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
        return {(row["pair_id"], row["sentence_a"], row["sentence_b"]) for row in rows}

    earlier = sentences(store.read("benchmark_pair", benchmark=benchmark).to_pylist())
    store.replace("benchmark_pair", list(pairs), {"benchmark": benchmark}, run_id)
    if earlier - sentences(pairs):
        for subject in set(store.read("reject", stage="score")["subject"].to_pylist()):
            if subject.partition("/")[2] == benchmark:
                store.drop("reject", {"stage": "score", "subject": subject}, run_id)
