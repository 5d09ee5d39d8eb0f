"""`plumbline choose`: which sentence of each pair a served model names when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from plumbline.eval_workers.chat.budget import Spent
from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.chat.ledger import look
from plumbline.eval_workers.chat.spending_bar import asking_bar, spending
from plumbline.eval_workers.choices.options import ChoiceOptions
from plumbline.eval_workers.choices.pair_choices import (
    Chosen,
    PairChoices,
    at_most,
    choose,
    ledger_name,
    served,
)
from plumbline.eval_workers.scoring.pair_scores import check_imported
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class ChooseRequest:
    """Benchmarks to ask a model about; with ``replay`` replies come from the ledger alone."""

    benchmarks: tuple[str, ...]
    options: ChoiceOptions
    warehouse: Path
    replay: bool = False

    def config(self) -> dict[str, object]:
        """What is recorded of the run: every option, the setting's hash and the price."""
        price = self.options.price()
        hashes = {"setting": self.options.key(), "price": asdict(price) if price else None}
        target = {"benchmarks": self.benchmarks, "replay": self.replay}
        return {**target, **asdict(self.options), **hashes}


def check(request: ChooseRequest) -> None:
    """Raise ``UsageProblem`` or ``BadInput`` for what can be seen to be wrong before asking."""
    store = Store.open(request.warehouse, create=False)
    check_imported(store, request.benchmarks)
    request.config()


def before(request: ChooseRequest) -> Iterator[str]:
    """Lines of ``--dry-run``: what is left to ask, and what it can cost at the most."""
    store, options = Store.open(request.warehouse, create=False), request.options
    model, price = served(options), options.price()
    currency = price.currency if price else None
    for benchmark in request.benchmarks:
        missing = PairChoices(benchmark, options).state(store, model).missing
        held = look(store, ledger_name(benchmark, model.identity.key))
        wordings = options.wordings()
        left = [a for a in missing if a.request(options, wordings).request_id not in held.replies]
        yield f"{benchmark}: {len(left):,} questions left to ask of {options.model}"
        yield f"  at most, without retries: {spending(at_most(left, options, price), currency)}"
        if held.spent.n_requests:
            yield f"  spent already: {spending(held.spent, currency)}"
    if price is None:
        yield "cost: unknown without --prices FILE"


def run(request: ChooseRequest) -> list[Chosen]:
    """Ask about each benchmark in turn. Raises as ``choose``; what was answered is kept."""
    store, options = Store.open(request.warehouse, create=False), request.options
    if not request.replay:
        find_key(options.base_url)
    price, server = options.price(), None if request.replay else options.server()
    done = []
    with recorded(store, "choose", request.config()) as run_id:
        for benchmark in request.benchmarks:
            with asking_bar("questions", price.currency if price else None) as tell:
                done.append(choose(store, benchmark, options, server, run_id, tell))
    return done


def after(request: ChooseRequest, done: list[Chosen]) -> Iterator[str]:
    """Closing lines: counts, the preference and the preference for a place, what it cost."""
    store = Store.open(request.warehouse, create=False)
    price = request.options.price()
    for one in done:
        unnatural = f", {one.n_unnatural:,} unnatural left out" if one.n_unnatural else ""
        yield (
            f"{one.benchmark}: {one.n_asks:,} replies on {one.n_pairs:,} pairs in `pair_choice`, "
            f"{one.n_new:,} new, {one.n_neither:,} name neither sentence{unnatural}"
        )
        yield from _figures(request, one)
        spent: Spent = look(store, ledger_name(one.benchmark, one.model_key)).spent
        yield f"  spent in all: {spending(spent, price.currency if price else None)}"
    yield "Next: plumbline report"


def _figures(request: ChooseRequest, one: Chosen) -> Iterator[str]:
    query = (
        "FROM forced_choice WHERE benchmark = $benchmark AND model_key = $model_key "
        "AND setting = $setting AND n_pairs > 0 ORDER BY groups"
    )
    which = {"benchmark": one.benchmark, "model_key": one.model_key}
    rows = rows_of(request.warehouse, query, {**which, "setting": request.options.key()})
    for row in rows:
        group, _, other = row["groups"].partition("/")
        yield (
            f"  {group} rather than {other} in {_percent(row, 'preference')} of choices, "
            f"the sentence shown first in {_percent(row, 'first_share')}"
        )


def _percent(row: dict[str, float], name: str) -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    ends = "no interval: too few words" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{100 * value:.1f}% ({ends})"
