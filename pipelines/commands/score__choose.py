"""`plumbline score choose`: which sentence of a pair a served model would choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.scoring.choices.options import ChoiceOptions
from plumbline.pipelines.command.base import Command, Context, Done, Row, planned
from plumbline.pipelines.commands.score import Benchmarks
from plumbline.warehouse.options import STRICT

if TYPE_CHECKING:
    from plumbline.eval_workers.scoring.choices.pair_choices import Chosen
    from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Choose(ChoiceOptions, Command):
    """Ask a served model which sentence of each pair is likelier, in both orders.

    For models without log-probabilities; its figures are none of US and PD. The key comes from
    PLUMBLINE_API_KEY or OPENAI_API_KEY. What was asked is never asked again: after an interruption
    run the same command again to resume.

    Example: plumbline score choose --model gpt-4o-mini --benchmark winogender --n 2 --dry-run
    """

    reads = "benchmark_pair"
    deployable = True

    benchmark: Benchmarks
    replay: Annotated[bool, Field(description="Take all replies from the ledger, ask nothing.")] = (
        False
    )

    def check(self) -> None:
        """Raise for benchmarks that are not in the warehouse, wordings and prices."""
        from plumbline.eval_workers.scoring.pair_scores import check_imported
        from plumbline.warehouse.storage.store import Store

        check_imported(Store.open(self.warehouse, create=False, reads=self.reads), self.benchmark)
        _ = self.price(), self.key()

    def ready(self) -> None:
        """Look for the server's key, where a server is going to be asked."""
        from plumbline.eval_workers.chat.client import find_key

        if not self.replay:
            find_key(self.base_url)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Questions left to ask about each benchmark, and their cost at most."""
        from plumbline.eval_workers.chat.spending_bar import spending
        from plumbline.eval_workers.scoring.choices.pair_choices import left_to_ask

        assert store is not None, "this command makes no warehouse"
        price = self.price()
        currency = price.currency if price else None
        unknown = "" if price else "; cost: unknown without --prices FILE"
        for benchmark in dict.fromkeys(self.benchmark):
            left, most, spent = left_to_ask(store, benchmark, self)
            note = f"at most, without retries: {spending(most, currency)}{unknown}"
            yield planned(benchmark, "questions left", left, f"of {self.model}", note)
            if n := spent.n_requests:
                yield planned(benchmark, "asked already", n, "requests", spending(spent, currency))

    def run(self, context: Context) -> Done:
        names = list(dict.fromkeys(self.benchmark))
        done = [context.stage(f"ask about {n}", self._ask, context, n) for n in names]
        of = {"benchmarks": names, "key": done[0].model_key, "setting": self.key()}
        return Done(
            rows=[asdict(one) for one in done],
            said=[line for one in done for line in self._lines(context.store, one)],
            wrote=("pair_choice", "model", "generation_request"),
            next="plumbline report",
            query="FROM forced_choice WHERE list_contains($benchmarks, benchmark) "
            "AND model_key = $key AND setting = $setting ORDER BY ALL",
            params=of,
        )

    def _ask(self, context: Context, benchmark: str) -> Chosen:
        from plumbline.eval_workers.chat.spending_bar import asking_bar
        from plumbline.eval_workers.scoring.choices.pair_choices import choose

        price, server = self.price(), None if self.replay else self.server()
        with asking_bar("questions", price.currency if price else None) as tell:
            return choose(context.store, benchmark, self, server, context.run_id, tell)

    def _lines(self, store: Store, one: Chosen) -> Iterator[str]:
        """The preference and that for a place, and what it cost."""
        from plumbline.eval_workers.chat.ledger import look
        from plumbline.eval_workers.chat.spending_bar import spending
        from plumbline.eval_workers.scoring.choices.pair_choices import ledger_name, preferences

        for line in preferences(store, one, self.key()):
            yield f"{one.benchmark}: {line}"
        price, spent = self.price(), look(store, ledger_name(one.benchmark, one.model_key)).spent
        total = spending(spent, price.currency if price else None)
        yield f"{one.benchmark}: spent in all: {total}"
