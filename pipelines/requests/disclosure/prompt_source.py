"""Where the prompts of ``plumbline disclosure prompts`` come from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plumbline.eval_workers.chat.budget import Budget, price_of
from plumbline.eval_workers.chat.client import DEFAULT_URL, checked_url, find_key
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build, Server
from plumbline.eval_workers.chat.spending_bar import asking_bar
from plumbline.eval_workers.disclosure.prompt_sets import (
    PROBE_SETS,
    RELEASED,
    ImportedProbe,
    derive_probe,
    import_probe,
    released_file,
)
from plumbline.eval_workers.disclosure.written import (
    PromptSpec,
    ledger_name,
    load_wording,
    write_probe,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Source:
    """What a set is made of: the released files (``source``), the sentences of a file (``derive``),
    or what a chat model writes of seed sentences (``write``), ``n`` prompts of each.
    """

    probe_set: str
    source: Path | None = None
    derive: Path | None = None
    column: str | None = None
    write: tuple[str, ...] = ()
    n: int = 200
    model: str = ""
    base_url: str = ""
    wording: Path | None = None
    prices: Path | None = None
    max_requests: int | None = None
    max_cost: float | None = None
    allow_gendered: bool = False
    data: Path | None = None

    def check(self) -> None:
        """Raise ``UsageProblem`` for options that contradict each other, before anything is made.

        >>> Source("topics").check()
        """
        name = self.probe_set
        if not name or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in name):
            fix = "use letters, digits, - _ and ."
            raise UsageProblem(f"prompts {name!r}", "is not a valid name for a set of prompts", fix)
        places = {"--source": self.source, "--derive": self.derive, "--write": self.write}
        given = [option for option, value in places.items() if value]
        if len(given) > 1:
            raise UsageProblem(" and ".join(given), "exclude each other", "give one of them")
        if self.column and not self.derive:
            raise UsageProblem("--column", "is for --derive", "leave it out")
        if self.derive and not self.derive.is_file():
            raise BadInput(f"{self.derive}", "no such file")
        if not self.derive and not self.write and not PROBE_SETS.find(name) and name in RELEASED:
            released_file(name, self.source, self.data or "")
        if not self.write:
            writing: dict[str, object] = {
                "--model": self.model,
                "--base-url": self.base_url,
                "--prices": self.prices,
            }
            writing |= {"--wording": self.wording, "--max-requests": self.max_requests}
            writing |= {"--max-cost": self.max_cost}
            if unused := [option for option, value in writing.items() if value]:
                fix = "add a seed sentence, or leave it out"
                raise UsageProblem(" and ".join(unused), "is for --write", fix)
            return
        if not self.model:
            raise UsageProblem("--write", "needs a chat model", "give --model NAME")
        if self.max_cost is not None and not self.prices:
            raise UsageProblem("--max-cost", "needs the model's price", "add --prices FILE")
        _ = self.spec(), find_key(checked_url(self.base_url or DEFAULT_URL))
        if self.prices:
            price_of(self.model, self.prices)

    def spec(self) -> PromptSpec:
        """What the chat model is to write."""
        wording = load_wording(self.wording)
        model, gendered = ChatModel(self.model), self.allow_gendered
        return PromptSpec(model, wording, n_prompts=self.n, allow_gendered=gendered)


def import_prompts(store: Store, source: Source) -> ImportedProbe:
    """Put the set into the warehouse. Raises as the functions it calls."""
    name, gendered = source.probe_set, source.allow_gendered
    options = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(source).items()}
    with recorded(store, "disclosure prompts", options) as run_id:
        if source.derive:
            path, column = source.derive, source.column
            return derive_probe(store, name, path, run_id, column=column, allow_gendered=gendered)
        if source.write:
            return _written(store, source, run_id)
        how: dict[str, Any] = {"allow_gendered": gendered, "data": source.data or ""}
        return import_probe(store, name, source.source, run_id, **how)


def _written(store: Store, source: Source, run_id: str) -> ImportedProbe:
    price = price_of(source.model, source.prices) if source.prices else None
    budget = Budget(source.max_requests, None, source.max_cost)
    server = Server(source.base_url or DEFAULT_URL)
    with asking_bar("seed sentences", price.currency if price else None) as tell:
        build = Build(store, ledger_name(source.probe_set), run_id, server, budget, price, tell)
        return write_probe(build, source.probe_set, source.write, source.spec())
