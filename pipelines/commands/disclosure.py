"""`plumbline disclosure ...`: import prompts, measure what models assume about people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.budget import Budget, price_of
from plumbline.eval_workers.chat.chat_session import Build, Server
from plumbline.eval_workers.chat.client import DEFAULT_URL, checked_url, find_key
from plumbline.eval_workers.chat.ledger import read_ledger
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.disclosure import prompt_sets, written
from plumbline.eval_workers.disclosure.instructions import in_each_form, load_instructions
from plumbline.eval_workers.disclosure.probe_options import ProbeOptions
from plumbline.eval_workers.disclosure.set_measures import Disclosed, measure_sets, steps_of
from plumbline.eval_workers.disclosure.sweep import Grid
from plumbline.eval_workers.disclosure.word_probabilities import (
    ProbeStep,
    load_words,
    publish_words,
)
from plumbline.eval_workers.models import opened
from plumbline.eval_workers.models.instruction import NONE, Instruction
from plumbline.eval_workers.models.model_options import OF_SCORES, ModelOptions
from plumbline.eval_workers.scoring.model_step import ModelStep
from plumbline.pipelines.command.base import Command, Context, Done, On, Row, planned
from plumbline.pipelines.command.failures import Failures
from plumbline.pipelines.command.fields import (
    DataOption,
    InputFile,
    InputPath,
    ReportDirectory,
    Seed,
)
from plumbline.pipelines.commands._disclosure import (
    FIGURES,
    TABLES,
    Sets,
    counts,
    figure_params,
    figures,
    import_missing,
    measured,
    to_do,
)
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import MOST, STRICT, part
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.rejects import reasons
from plumbline.warehouse.steps.runner import run_steps
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Prompts(DataOption, Command):
    """Put prompts of unspecified gender into the warehouse: released, derived or written ones.

    Rows that give no prompt are reported and kept in table `reject`. Keys of servers come from
    PLUMBLINE_API_KEY or OPENAI_API_KEY.

    Example: plumbline disclosure prompts mine --derive sentences.jsonl --column text
    """

    makes_warehouse = True

    probe_set: Annotated[
        str, Field(description="topics, stsb, snli ... or new."), On(positional=True, metavar="SET")
    ]
    source: Annotated[
        InputPath | None, Field(description="Released file, or directory; default: under --data.")
    ] = None
    derive: Annotated[
        InputFile | None,
        Field(description="Make prompts of this file's sentences about someone or a person."),
    ] = None
    column: Annotated[str | None, Field(description="Column with that file's sentences.")] = None
    write: Annotated[
        tuple[str, ...],
        Field(description="Sentence like which a chat model writes others; repeatable."),
        On(repeated=True),
    ] = ()
    n: Annotated[int, Field(ge=1, le=100_000, description="Prompts per such sentence.")] = 200
    model: Annotated[str, Field(description="The chat model, as its server names it.")] = ""
    base_url: Annotated[str, Field(description="Its server; default: OpenAI's.")] = ""
    wording: Annotated[InputFile | None, Field(description="Wording of the request (TOML).")] = None
    prices: Annotated[InputFile | None, Field(description="Price table (TOML).")] = None
    max_requests: Annotated[
        int | None, Field(ge=0, le=MOST, description="Most requests of the set.")
    ] = None
    max_cost: Annotated[
        float | None,
        Field(ge=0, le=MOST, description="Most money, in the price table's currency."),
    ] = None
    allow_gendered: Annotated[bool, Field(description="Keep prompts with gendered words.")] = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", self.probe_set):
            problem, fix = "is not a valid name for a set of prompts", "use letters, digits, - _ ."
            raise UsageProblem(f"prompts {self.probe_set!r}", problem, fix)
        if len(given := self._given("source", "derive", "write")) > 1:
            raise UsageProblem(" and ".join(given), "exclude each other", "give one of them")
        if self.column and not self.derive:
            raise UsageProblem("--column", "is for --derive", "leave it out")
        writing = ("model", "base_url", "prices", "wording", "max_requests", "max_cost")
        if not self.write and (given := self._given(*writing)):
            fix = "add a seed sentence, or leave it out"
            raise UsageProblem(" and ".join(given), "is for --write", fix)
        if self.write and not self.model:
            raise UsageProblem("--write", "needs a chat model", "give --model NAME")
        if self.max_cost is not None and not self.prices:
            raise UsageProblem("--max-cost", "needs the model's price", "add --prices FILE")

    def _given(self, *names: str) -> list[str]:
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]

    def check(self) -> None:
        """Raise for unknown sets, and missing released files, wordings, keys and prices."""
        name = self.probe_set
        if self.write:
            _ = self.spec(), find_key(checked_url(self.base_url or DEFAULT_URL))
            if self.prices:
                price_of(self.model, self.prices)
        elif not self.derive:
            is_registered = prompt_sets.PROBE_SETS.find(name) is not None
            if not is_registered and name in prompt_sets.RELEASED:
                prompt_sets.released_file(name, self.source, self.data or "")

    def spec(self) -> written.PromptSpec:
        """The request to the chat model."""
        wording, model = written.load_wording(self.wording), ChatModel(self.model)
        gendered = self.allow_gendered
        return written.PromptSpec(model, wording, n_prompts=self.n, allow_gendered=gendered)

    def plan(self, store: Store | None) -> Iterator[Row]:
        """The source of the prompts; with --write the number of prompts still to write."""
        if not self.write:
            yield planned(self.probe_set, "prompts of", str(self.derive or self.source or "itself"))
            return
        spec, kept = self.spec(), list[str]()
        replies = read_ledger(store, written.ledger_name(self.probe_set)).replies if store else {}
        for seed in dict.fromkeys(self.write):
            state = written.writing(seed, spec, replies, kept)
            kept += state.kept
            left = self.n - len(state.kept) if state.request else 0
            requests = -(-left // spec.wording.at_once)
            yield planned(seed, "prompts to ask for", left, "", f"of {self.model}")
            yield planned(seed, "requests", requests, "", f"at least; at most {spec.rounds}")

    def run(self, context: Context) -> Done:
        """Replace the warehouse's set of that name."""
        store, name = context.store, self.probe_set
        done = context.stage(f"prompts {name}", self._imported, store, context.run_id)
        rejects = store.read("reject", stage="prompts", subject=name).to_pylist()
        rejects.sort(key=lambda row: (str(row["source_file"]), row["source_row"]))
        n_rows = done.n_prompts + done.n_rejects
        counts = {"n_prompts": done.n_prompts, "n_rejected": done.n_rejects}
        return Done(
            rows=[{"probe_set": name, "n_rows": n_rows, **counts}],
            said=[f"Rejected: {reasons(rejects)}"] if rejects else [],
            wrote=("probe_prompt", *(["reject"] if rejects else [])),
            next=f"plumbline disclosure probe {name} --model ID_OR_PATH",
            query="FROM probe_prompt WHERE probe_set = $probe_set ORDER BY prompt_id",
            params={"probe_set": name},
        )

    def _imported(self, store: Store, run_id: str) -> prompt_sets.ImportedProbe:
        options: dict[str, Any] = {"allow_gendered": self.allow_gendered}
        if self.derive:
            arguments = (store, self.probe_set, self.derive, run_id)
            return prompt_sets.derive_probe(*arguments, column=self.column, **options)
        if not self.write:
            options["data"] = self.data or ""
            return prompt_sets.import_probe(store, self.probe_set, self.source, run_id, **options)
        price = price_of(self.model, self.prices) if self.prices else None
        budget = Budget(self.max_requests, None, self.max_cost)
        ledger, server = written.ledger_name(self.probe_set), Server(self.base_url or DEFAULT_URL)
        build = Build(store, ledger, run_id, server, budget, price)
        return written.write_probe(build, self.probe_set, self.write, self.spec())


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Probe(ProbeOptions, ModelOptions, DataOption, Command):
    """GAS, GLD and ADD of sets of prompts under models; only what is missing is computed.

    After each prompt: how likely each gendered word is, and the greedy continuation.

    Example: plumbline disclosure probe topics --model EleutherAI/pythia-70m
    """

    makes_warehouse = True
    deployable = True
    without = OF_SCORES

    sets: Sets
    model: Annotated[tuple[str, ...], Field(description="Hub ids or directories, by commas.")] = ()
    models: Annotated[
        str | None,
        Field(description="Instead of --model a list: a TOML file, or a name: unstereoeval."),
    ] = None
    out: ReportDirectory = Path("out/report")

    def __post_init__(self) -> None:
        if bool(self.model) == bool(self.models):
            problem = "exclude each other" if self.model else "are both missing"
            raise UsageProblem("--model and --models", problem, "give one of them")

    def subjects(self) -> list[tuple[str, ModelOptions]]:
        """Each model once, and how it is loaded."""
        from plumbline.eval_workers.models.model_lists import load_available

        how = part(ModelOptions, self)
        if self.models:
            return [(one.id, one.options(how)) for one in load_available(self.models)]
        return [(name, how) for name in dict.fromkeys(self.model)]

    def check(self) -> None:
        """Check the sets, the word list and a single model (without weights) before the start.

        Several models are not checked: one that fails is reported when its turn comes.
        """
        from plumbline.eval_workers.models import open_backend

        subjects = self.subjects()
        store = Store.existing(self.warehouse)
        prompt_sets.missing_sets(store, self.sets, self.data or "")
        load_words(store, self.word_list)
        if len(subjects) == 1:
            _ = open_backend(*subjects[0]).identity

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Prompts not measured yet, per set and model; no weights are read."""
        words = load_words(store, self.word_list)
        missing = prompt_sets.missing_sets(store, self.sets, self.data or "")
        yield from (planned(name, "set to import, then to measure", None) for name in missing)
        held = [name for name in dict.fromkeys(self.sets) if name not in missing]
        steps = [s for name in held for s in steps_of(name, words, NONE, self.max_new_tokens)]
        for model, how in self.subjects():
            yield from to_do(store, model, how, steps)

    def run(self, context: Context) -> Done:
        """Measure the sets under each model; a model that fails doesn't stop the others."""
        store, subjects = context.store, self.subjects()
        done, failures = list[Disclosed](), Failures(len(subjects))
        for model, how in subjects:
            with failures.collected(model):
                done += self.audit(context, model, how)
        if not done and (error := failures.error()):
            raise error
        page = context.stage("report", write_report, store, self.out)
        params = figure_params(self, done)
        e = f"smoothing := {self.smoothing:g}" if self.smoothing else ""
        return Done(
            rows=figures(store, params),
            said=[line for one in done for line in counts(one)],
            wrote=TABLES,
            files=(str(page),),
            next=f'plumbline sql "FROM disclosure({e})"',
            query=FIGURES,
            params=params,
            failed=failures.error(),
        )

    def audit(self, context: Context, model: str, how: ModelOptions) -> list[Disclosed]:
        """Import missing sets and measure all under one model."""
        import_missing(context, self.sets, self.data)
        return measured(context, self, self.sets, model, how)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sweep(ProbeOptions, ModelOptions, Command):
    """Measure a set under many settings of decoding, or under instructions and without any.

    --by decoding varies one setting at a time, with the others off; only GAS can change. --by
    instruction compares GAS, GLD and ADD with those without an instruction. Finished work is kept:
    after an interruption run the same command again to resume.

    Example: plumbline disclosure sweep topics --model EleutherAI/pythia-70m --by decoding
    """

    reads = "probe_prompt"
    without = ("smoothing", *OF_SCORES)

    probe_set: Annotated[
        str, Field(description="Set of prompts in the warehouse."), On(positional=True)
    ]
    model: Annotated[str, Field(description="Hub id, or directory of a saved model.")]
    by: Annotated[Literal["decoding", "instruction"], Field(description="What is varied.")]
    temperature: Annotated[tuple[str, ...], Field(description="Temperatures, by commas.")] = (
        *("0.3", "0.5", "0.7", "1"),
    )
    top_p: Annotated[
        tuple[str, ...], Field(description="Values of top-p, by commas; 0 is greedy.")
    ] = ("0.3", "0.5", "0.7", "1")
    top_k: Annotated[tuple[str, ...], Field(description="Values of top-k, by commas.")] = (
        *("10", "50", "100", "150", "200"),
    )
    n: Annotated[int, Field(ge=1, le=10_000, description="Samples per prompt and value.")] = 1
    seed: Annotated[Seed, Field(description="Seed of the samples.")] = 0
    instructions: Annotated[InputFile | None, Field(description="List of instructions (TOML).")] = (
        None
    )
    form: Annotated[tuple[str, ...], Field(description="prefix, chat, or both by a comma.")] = (
        "prefix",
    )

    def __post_init__(self) -> None:
        other, names = "instruction", ["instructions", "form"]
        if self.by == other:
            other, names = "decoding", ["temperature", "top_p", "top_k", "n", "seed"]
        for name in names:
            if (value := getattr(self, name)) != getattr(type(self), name):
                shown = ",".join(value) if isinstance(value, tuple) else value
                option = f"--{name.replace('_', '-')} {shown}"
                raise UsageProblem(option, f"is for --by {other}", "leave it out")

    def grid(self) -> Grid:
        """Settings of decoding to compare. Raises ``UsageProblem`` for unusable values."""
        temperatures = _numbers("--temperature", self.temperature, float)
        top_ps = _numbers("--top-p", self.top_p, float)
        top_ks = _numbers("--top-k", self.top_k, int)
        return Grid(temperatures, top_ps, top_ks, self.n, self.max_new_tokens, self.seed)

    def variants(self) -> list[Instruction]:
        """No instruction, then the instructions in each form."""
        return in_each_form(load_instructions(self.instructions), self.form)

    def check(self) -> None:
        """Raise for values, lists, sets and words that can't be used."""
        _ = self.grid() if self.by == "decoding" else self.variants()
        store = Store.open(self.warehouse, create=False, reads=self.reads)
        words = load_words(store, self.word_list)
        ProbeStep(self.probe_set, words).check(store, part(ModelOptions, self))

    def plan(self, store: Store | None) -> Iterator[Row]:
        """Missing prompts under each setting of decoding, or under each instruction."""
        words, steps = load_words(store, self.word_list), list[ModelStep[Any]]()
        if self.by == "decoding":
            steps += self.grid().steps(self.probe_set)
        else:
            for instruction in self.variants():
                steps += steps_of(self.probe_set, words, instruction, self.max_new_tokens)
        yield from to_do(store, self.model, part(ModelOptions, self), steps)

    def run(self, context: Context) -> Done:
        return (
            self._by_decoding(context) if self.by == "decoding" else self._by_instruction(context)
        )

    def _by_decoding(self, context: Context) -> Done:
        store = context.store
        words = load_words(store, self.word_list)
        with opened(store, self.model, part(ModelOptions, self)) as ready:
            publish_words(store, words, context.run_id)
            done = run_steps(store, ready, self.grid().steps(self.probe_set), context.run_id)
        key, keys = done[0].model_key, [one.sampling_key for one in done]
        params = self._params(key, words.name) | {"keys": keys}
        rows = rows_of(store.root, _DECODINGS, params)
        drawn = {r["sampling_key"]: r["is_best"] for r in rows if r["parameter"] != "greedy"}
        said = [f"{sum(one.n_new for one in done):,} new continuations"]
        if 1 < sum(drawn.values()) == len(drawn):
            said.append("All settings that sample have the same GAS: none is marked as best.")
            rows = [{**row, "is_best": False} for row in rows]
        if rejected := sum(one.n_rejected for one in done):
            said.append(f"{rejected:,} continuations could not be drawn: table reject")
        return Done(
            rows=[{name: row[name] for name in _OF_DECODING} for row in rows],
            said=said,
            wrote=("continuation", "sampling", "attribute_pair"),
            next="plumbline report",
            query=_DECODINGS,
            params=params,
        )

    def _by_instruction(self, context: Context) -> Done:
        store, variants = context.store, self.variants()
        done = measure_sets(
            *(store, [self.probe_set], self.model, part(ModelOptions, self), context.run_id),
            word_list=self.word_list,
            instructions=variants,
            max_new_tokens=self.max_new_tokens,
        )
        probed = done[0].probed
        params = self._params(probed.model_key, probed.word_list)
        params |= {"keys": [one.key for one in variants], "n": self.max_new_tokens}
        rows = rows_of(store.root, _INSTRUCTIONS, params)
        return Done(
            rows=[{name: row[name] for name in _OF_INSTRUCTION} for row in rows],
            said=[line for one in done for line in _left_out(one)],
            wrote=(*TABLES, "instruction"),
            next="plumbline report",
            query=_INSTRUCTIONS,
            params=params,
        )

    def _params(self, model_key: str, words: str) -> dict[str, object]:
        return {"probe_set": self.probe_set, "model_key": model_key, "word_list": words}


_OF_SET = "probe_set = $probe_set AND model_key = $model_key AND word_list = $word_list"
_DECODINGS = f"""FROM decoding_sweep
WHERE {_OF_SET} AND instruction_key = 'none' AND list_contains($keys, sampling_key)
ORDER BY list_position(['greedy', 'temperature', 'top_p', 'top_k'], parameter), setting"""
_OF_DECODING = (
    *("parameter", "setting", "gas", "gas_low", "gas_high"),
    *("gas_f_of_all", "gas_m_of_all", "is_best", "n_empty"),
)
_INSTRUCTIONS = f"""FROM instruction_sweep()
WHERE {_OF_SET} AND list_contains($keys, instruction_key)
    AND (max_new_tokens IS NULL OR max_new_tokens = $n)
ORDER BY list_position($keys, instruction_key), measure"""
_OF_INSTRUCTION = (
    *("form", "instruction", "measure", "figure", "figure_low", "figure_high"),
    *("change", "change_low", "change_high"),
)


def _numbers(option: str, texts: Sequence[str], kind: Callable[[str], Any]) -> list[Any]:
    try:
        return [kind(text) for text in texts]
    except ValueError:
        kinds = "whole numbers" if kind is int else "numbers"
        raise UsageProblem(f"{option} {','.join(texts)}", f"expected {kinds} by commas") from None


def _label(instruction: Instruction) -> str:
    return (
        "no instruction" if instruction.text is None else f"{instruction.form}: {instruction.text}"
    )


def _left_out(disclosed: Disclosed) -> Iterator[str]:
    if disclosed.n_empty:
        n = f"{disclosed.n_empty:,} continuations are empty: no verdict on them"
        yield f"{_label(disclosed.instruction)}: {n}"
    if rejected := disclosed.probed.n_rejected + disclosed.sampled.n_rejected:
        n = f"{rejected:,} prompts could not be measured: table reject"
        yield f"{_label(disclosed.instruction)}: {n}"
