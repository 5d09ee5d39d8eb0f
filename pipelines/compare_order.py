"""What `plumbline disclosure compare` was asked for, checked before time is spent."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from plumbline.eval_workers.backends.base import Identity
from plumbline.eval_workers.backends.sampling import SamplingOptions
from plumbline.eval_workers.disclosure.attributes import WORD_LIST
from plumbline.eval_workers.disclosure.words import load_words
from plumbline.eval_workers.fairpair import steps
from plumbline.eval_workers.fairpair.spec import FairPairSpec
from plumbline.eval_workers.options import ModelOptions
from plumbline.eval_workers.scoring.held_out import HeldOut, read_held_out, text_files
from plumbline.pipelines.cli.options import DEFAULT_WAREHOUSE
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store

#: The set of neutral prompts that comes with Plumbline.
SHIPPED = "topics"


@dataclass(frozen=True)
class Side:
    """One of the two models: its name here, and how it is loaded."""

    name: str
    model: str
    options: ModelOptions


@dataclass(frozen=True)
class Asked:
    """What the command was given.

    ``sets`` and ``benchmarks`` are names; ``None``: those of the warehouse, without the sets that
    the adapter was tuned on. ``fairpair`` is a set, empty for none; ``n`` and ``max_new_tokens``
    are of its samples, ``gas_tokens`` the length of the greedy continuations that GAS is of.
    ``texts`` are files or patterns. ``options`` count for both sides: neither dtype nor
    quantisation can differ between them.
    """

    base: str
    adapter: str
    options: ModelOptions
    sets: tuple[str, ...] | None = None
    benchmarks: tuple[str, ...] | None = None
    fairpair: str = ""
    n: int = 100
    max_new_tokens: int = 128
    gas_tokens: int = 50
    texts: tuple[str, ...] = ()
    window: int | None = None
    word_list: str = WORD_LIST


@dataclass(frozen=True)
class Order:
    """The same with names found and both models known; ``out`` is the directory of the page."""

    asked: Asked
    before: Identity
    after: Identity
    sets: tuple[str, ...]
    benchmarks: tuple[str, ...]
    word_list_name: str
    held_out: HeldOut | None
    warehouse: Path
    out: Path

    @property
    def sides(self) -> tuple[Side, Side]:
        """The base, and the base with the adapter, else loaded alike."""
        asked = self.asked
        tuned = replace(asked.options, adapter=asked.adapter)
        return Side("base", asked.base, asked.options), Side("adapter", asked.base, tuned)

    @property
    def sampling(self) -> SamplingOptions:
        """How GAS's continuations are made."""
        return SamplingOptions(greedy=True, max_new_tokens=self.asked.gas_tokens)

    @property
    def fairpair(self) -> FairPairSpec:
        """How FairPair is measured."""
        return _fairpair(self.asked)

    def command(self, *more: str) -> str:
        """The command of this comparison with further options, as it is typed."""
        words = ["plumbline", "disclosure", "compare", self.asked.base, self.asked.adapter]
        options, usual = asdict(self.asked.options), asdict(ModelOptions())
        for name in ("revision", "dtype", "bos", "quantisation", "trust_remote_code"):
            if options[name] != usual[name]:
                words += [f"--{name.replace('_', '-')}", str(options[name])]
        if self.warehouse != DEFAULT_WAREHOUSE:
            words += ["--warehouse", str(self.warehouse)]
        return shlex.join([*words, *more])

    def config(self) -> dict[str, object]:
        """What is recorded of the run."""
        found = {"sets": self.sets, "benchmarks": self.benchmarks}
        return {**asdict(self.asked), **asdict(self.asked.options), **found}


def make_order(store: Store, asked: Asked, out: Path) -> Order:
    """Find sets, benchmarks and texts, and open both models without their weights.

    Raises ``UsageProblem`` for a set or benchmark that is not there, ``BadInput`` for a text that
    is not, and for an adapter of another base; and what loading models raises.
    """
    from plumbline.eval_workers.backends import open_backend

    held_out = read_held_out(text_files(asked.texts)) if asked.texts else None
    words = load_words(store, asked.word_list)
    base = open_backend(asked.base, asked.options)
    tuned = open_backend(asked.base, replace(asked.options, adapter=asked.adapter))
    if held_out is not None:
        _ = base.window(asked.window)
    if asked.fairpair:
        spec = _fairpair(asked)
        steps.check(spec, asked.fairpair, steps.prompt_rows(store, asked.fairpair, spec))
    return Order(
        asked=asked,
        before=base.identity,
        after=tuned.identity,
        sets=_sets(store, asked, tuned.identity),
        benchmarks=_benchmarks(store, asked),
        word_list_name=words.name,
        held_out=held_out,
        warehouse=store.root,
        out=out,
    )


def _fairpair(asked: Asked) -> FairPairSpec:
    return FairPairSpec(n=asked.n, max_new_tokens=asked.max_new_tokens)


def _sets(store: Store, asked: Asked, tuned: Identity) -> tuple[str, ...]:
    """Neutral sets; by default those that the adapter was not tuned on, else the shipped one."""
    held = _column(
        store,
        "SELECT probe_set FROM probe_prompt GROUP BY ALL HAVING count(perturbed_prompt) = 0 "
        "ORDER BY ALL",
    )
    if asked.sets is None:
        tuning = [
            row for row in store.read("tuning").to_pylist() if row["adapter"] == tuned.adapter
        ]
        on = {name for row in tuning for name in str(row["probe_sets"]).split(", ")}
        return tuple(name for name in held if name not in on) or (SHIPPED,)
    for name in asked.sets:
        if name not in (*held, SHIPPED):
            there = ", ".join(held) or "none"
            problem = f"is no set of neutral prompts in the warehouse, there: {there}"
            raise UsageProblem(f"--sets {name}", problem)
    return asked.sets


def _benchmarks(store: Store, asked: Asked) -> tuple[str, ...]:
    from plumbline.eval_workers.scoring.pair_scores import check_imported

    if asked.benchmarks is None:
        query = "SELECT DISTINCT benchmark FROM benchmark_pair ORDER BY 1"
        return tuple(_column(store, query))
    check_imported(store, asked.benchmarks)
    return asked.benchmarks


def _column(store: Store, query: str) -> Sequence[str]:
    with connect(store.root) as connection:
        return [str(value) for (value,) in connection.execute(query).fetchall()]
