"""The data sets on the hub to which a warehouse's benchmarks were pushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import pushed
from plumbline.eval_workers.pairs.sharing.dataset import DATA
from plumbline.pipelines.report.facts import Facts
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import located, open_file, unreadable
from plumbline.warehouse.regular_files import stored_object

_PUSHES = (
    "FROM run WHERE command = 'benchmark push' AND status = 'finished' ORDER BY started_at, run_id"
)


@dataclass(frozen=True)
class DataSet:
    """A benchmark's data set on the hub.

    Attributes:
        repository: ``OWNER/NAME``.
        fingerprint: hash of its pairs (``pushed_set.fingerprint``).
        n_pairs: groups -> number of pairs in its split ``test``.
        limit: the limit on the pairs' MaxPMI, as the columns ``corpus``, ``contrast`` and
            ``eta_nats`` of ``metric_value``; empty without a limit.
    """

    repository: str
    fingerprint: str
    n_pairs: Mapping[str, int]
    limit: Mapping[str, object]


def data_sets(facts: Facts, repositories: Mapping[str, str]) -> dict[str, DataSet]:
    """Benchmark -> its data set: the one in ``repositories``, else the one that was pushed last.

    ``repositories`` are ``OWNER/NAME`` by benchmark. Raises ``BadInput`` or ``UsageProblem`` if one
    of them has no pushed benchmark or can't be read.
    """
    sets = {}
    for row in facts.query(_PUSHES):
        push = stored_object(row, "config")
        limit: dict[str, object] = {}
        if push.get("eta_nats") is not None:
            limit = {column: push[column] for column in ("corpus", "contrast", "eta_nats")}
        sets[push["benchmark"]] = DataSet(push["repo"], push["fingerprint"], push["n_pairs"], limit)
    return {**sets, **{name: _on_the_hub(to) for name, to in repositories.items()}}


def _on_the_hub(repository: str) -> DataSet:
    address = located(f"hf://datasets/{repository}")
    pushed_set = pushed(address)
    if pushed_set is None:
        fix = "push it with `plumbline benchmark push`"
        raise UsageProblem(str(address), "has no benchmark that was pushed there", fix)
    path = next((file for file in pushed_set.files if file.name == DATA), None)
    if path is None:
        raise BadInput(str(address), f"has no {DATA}", "push it again")
    try:
        with open_file(path) as raw, pq.ParquetFile(raw) as file:
            pairs = file.read(columns=["group_a", "group_b"])
    except OSError as e:
        raise unreadable(path, e) from e
    groups = pc.binary_join_element_wise(pairs["group_a"], pairs["group_b"], "/").to_pylist()
    return DataSet(repository, pushed_set.fingerprint, Counter(groups), {})
