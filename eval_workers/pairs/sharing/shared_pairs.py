"""The pairs of a benchmark that are shared: natural ones, within a constraint if there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import connect, query, sql
from plumbline.warehouse.storage.store import Store

#: Columns of `benchmark_pair` that are shared, if any row has a value.
_COLUMNS = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    *("word", "split", "stereotype", "category", "direction", "weight"),
)
#: Columns of `pair_association` that are shared with a constraint.
MAX_PMI = ("max_pmi_nats", "max_pmi_word")


@dataclass(frozen=True)
class Constraint:
    """The corpus whose MaxPMI is shared with the pairs, and the limit on MaxPMI.

    With ``eta_nats`` only pairs whose |MaxPMI| is known and at most ``eta_nats`` are shared.
    """

    corpus: str
    contrast: str = "she/he"
    eta_nats: float | None = None

    def __str__(self) -> str:
        """The constraint in words; without ``eta_nats`` it only names the corpus of MaxPMI.

        >>> str(Constraint("pile")), str(Constraint("pile", eta_nats=0.65))[:28]
        ('with MaxPMI in pile (she/he)', 'within |MaxPMI| <= 0.65 nats')
        """
        limit = "with MaxPMI"
        if self.eta_nats is not None:
            limit = f"within |MaxPMI| <= {self.eta_nats:g} nats"
        return f"{limit} in {self.corpus} ({self.contrast})"


class NothingKept(BadInput):
    """Raised if no pair is within a constraint."""


@dataclass(frozen=True)
class Shared:
    """Shared pairs sorted by identifier, and the numbers of pairs that are left out.

    ``run_id`` is the run that made the pairs, ``run`` its row of the table ``run``, if any.
    """

    benchmark: str
    data: pa.Table
    n_unnatural: int
    n_beyond: int
    constraint: Constraint | None
    run_id: str
    run: Mapping[str, Any] | None

    def by_groups(self) -> dict[str, pa.Table]:
        """The two groups compared, as `female/male` -> their pairs; sorted by that name."""
        groups = pc.binary_join_element_wise(self.data["group_a"], self.data["group_b"], "/")
        names = sorted(pc.unique(groups).to_pylist())
        return {name: self.data.filter(pc.equal(groups, name)) for name in names}


def shared_pairs(store: Store, benchmark: str, constraint: Constraint | None = None) -> Shared:
    """Pairs that metrics use, with the columns that are shared.

    Without a ``constraint`` it is the one that the benchmark was built with, if any.

    Raises ``UsageProblem`` if the warehouse has no natural pair of the benchmark or no MaxPMI of
    it, and ``NothingKept`` if no pair is within the constraint.
    """
    files = store.snapshot().files("benchmark_pair", {"benchmark": benchmark})
    run_id = files[0].units[0].run_id if files else ""
    run = next(iter(store.read("run", pc.field("run_id") == run_id).to_pylist()), None)
    constraint = constraint or _built_with(run)
    limits = asdict(constraint or Constraint(""))
    with connect(store.root, sql("benchmarks/shared_pair")) as connection:
        pairs = query(connection, "benchmarks/shared_pair", {"benchmark": benchmark, **limits})
    natural = pairs.filter(pc.fill_null(pairs["is_natural"], True))
    if not natural.num_rows:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no natural pair in the warehouse", fix)
    if constraint and not pairs["has_max_pmi"][0].as_py():
        corpus = constraint.corpus
        fix = f"run `plumbline benchmark constrain --corpus {corpus} --benchmark {benchmark}`"
        problem = f"there is no MaxPMI ({constraint.contrast}) of {benchmark}"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    kept = natural.filter(natural["is_within"])
    if not kept.num_rows:
        fix = f"a larger --eta of `plumbline benchmark export {benchmark}` keeps more pairs"
        fix += "; with a smaller `plumbline benchmark constrain --least-count` more MaxPMI is known"
        raise NothingKept(f"benchmark {benchmark}", f"no pair is {constraint}", fix)
    filled = [c for c in _COLUMNS if natural[c].null_count < natural.num_rows]
    return Shared(
        benchmark,
        kept.select([*filled, "pronoun_first", *(MAX_PMI if constraint else ())]),
        n_unnatural=pairs.num_rows - natural.num_rows,
        n_beyond=natural.num_rows - kept.num_rows,
        constraint=constraint,
        run_id=run_id,
        run=run,
    )


def _built_with(run: Mapping[str, Any] | None) -> Constraint | None:
    """Constraint of the build that made the pairs; ``None`` without a corpus and eta."""
    config = json.loads(run["config"]) if run else {}
    if config.get("corpus") and "eta" in config:
        return Constraint(config["corpus"], config["contrast"], config["eta"])
    return None
