"""`plumbline disclosure prompts`: import, derive or write prompts that give no gender."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from plumbline.eval_workers.chat.client import DEFAULT_URL, ServerOptions, checked_url, find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.disclosure import prompt_sets, written
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.fields import DataOption, InputFile, InputPath
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST, check_name
from plumbline.warehouse.storage.store import Store


class Prompts(DataOption, Command):
    """Import, derive or write prompts that give no gender, and store them in the warehouse.

    --derive makes prompts from a file of sentences, and --write asks a chat model for prompts.
    Without either, imports a built-in or released set. Unusable rows go to table `reject`. The API
    key for --write comes from PLUMBLINE_API_KEY or OPENAI_API_KEY.

    Example: plumbline disclosure prompts mine --derive sentences.jsonl --column text
    """

    makes_warehouse = True

    probe_set: Annotated[
        str,
        Field(description="Name of the prompt set: topics, stsb, or a new name."),
        On(positional=True, metavar="SET"),
    ]
    source: Annotated[
        InputPath | None, Field(description="Path of a released set; default: look in --data.")
    ] = None
    derive: Annotated[
        InputFile | None,
        Field(description="File of sentences that start with someone, a person or similar."),
    ] = None
    column: Annotated[str | None, Field(description="For --derive: column with sentences.")] = None
    write: Annotated[
        str, Field(description="Have a chat model write prompts like this sentence.")
    ] = ""
    n: Annotated[int, Field(ge=1, le=100_000, description="For --write: number of prompts.")] = 200
    model: Annotated[str, Field(description="For --write: name of a model on the server.")] = ""
    base_url: Annotated[str, Field(description="For --write: server URL; default: OpenAI.")] = ""
    wording: Annotated[InputFile | None, Field(description="TOML file with request texts.")] = None
    max_requests: Annotated[
        int | None, Field(ge=0, le=MOST, description="For --write: maximum number of requests.")
    ] = None
    allow_gendered: Annotated[bool, Field(description="Keep prompts with gendered words.")] = False

    def __post_init__(self) -> None:
        check_name(f"prompts {self.probe_set!r}", self.probe_set)
        if len(given := self._given("source", "derive", "write")) > 1:
            raise UsageProblem(" and ".join(given), "exclude each other", "give one of them")
        if self.column and not self.derive:
            raise UsageProblem("--column", "is for --derive", "leave it out")
        writing = ("model", "base_url", "wording", "max_requests")
        if not self.write and (given := self._given(*writing)):
            fix = "add a seed sentence, or leave it out"
            raise UsageProblem(" and ".join(given), "is for --write", fix)
        if self.write and not self.model:
            raise UsageProblem("--write", "needs a chat model", "give --model NAME")

    def _given(self, *names: str) -> list[str]:
        given = (name for name in names if getattr(self, name) not in (None, ""))
        return [f"--{name.replace('_', '-')}" for name in given]

    def check(self) -> None:
        name = self.probe_set
        if self.write:
            _ = self.spec(), checked_url(self.base_url or DEFAULT_URL)
        elif not self.derive:
            is_registered = prompt_sets.PROBE_SETS.find(name) is not None
            if not is_registered and name in prompt_sets.RELEASED:
                prompt_sets.released_file(name, self.source, self.data or "")

    def ready(self) -> None:
        if self.write and self.max_requests != 0:
            find_key(self.base_url or DEFAULT_URL)

    def spec(self) -> written.PromptSpec:
        wording, model = written.load_wording(self.wording), ChatModel(self.model)
        gendered = self.allow_gendered
        return written.PromptSpec(model, wording, n_prompts=self.n, allow_gendered=gendered)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Yield the source of the prompts. With --write, yield the number of requests instead."""
        if not self.write:
            yield planned(self.probe_set, "source", str(self.derive or self.source or "default"))
            return
        spec, replies = self.spec(), read_ledger(store, written.ledger_name(self.probe_set)).replies
        requests = -(-self.n // spec.wording.at_once)
        yield planned(self.write, "prompts to ask for", self.n, "", f"of {self.model}")
        yield planned(self.write, "requests", requests, "", f"at least; at most {spec.most_rounds}")
        yield planned(self.probe_set, "answered already", len(replies), "requests")

    def run(self, context: Context) -> Done:
        """Store the prompts. An existing set of the same name is replaced."""
        store, name = context.store, self.probe_set
        done = context.stage(f"prompts {name}", self._imported, store, context.run_id)
        n, n_rejected = len(done.rows), len(done.rejects)
        counts = {"n_rows": n + n_rejected, "n_prompts": n, "n_rejected": n_rejected}
        return Done(
            rows=[{"probe_set": name, **counts}],
            next=f"plumbline disclosure probe {name} --model ID_OR_PATH",
            query="FROM probe_prompt WHERE probe_set = $probe_set ORDER BY prompt_id",
            params={"probe_set": name},
        )

    def _imported(self, store: Store, run_id: str) -> prompt_sets.PromptRows:
        options: dict[str, Any] = {"allow_gendered": self.allow_gendered}
        if self.derive:
            arguments = (store, self.probe_set, self.derive, run_id)
            return prompt_sets.derive_probe(*arguments, column=self.column, **options)
        if not self.write:
            options["data"] = self.data or ""
            return prompt_sets.import_probe(store, self.probe_set, self.source, run_id, **options)
        server = ServerOptions(self.base_url or DEFAULT_URL, max_requests=self.max_requests)
        build = Build(store, written.ledger_name(self.probe_set), run_id, server)
        return written.write_probe(build, self.probe_set, self.write, self.spec())
