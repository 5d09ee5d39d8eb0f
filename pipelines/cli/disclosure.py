"""The commands ``plumbline disclosure prompts``, ``probe`` and ``tune``."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumbline.eval_workers.disclosure.options import ProbeOptions
from plumbline.eval_workers.mitigation.options import TuneOptions, published_base
from plumbline.eval_workers.options import OF_SCORES, ModelOptions
from plumbline.pipelines.cli.options import (
    Data,
    Loading,
    Models,
    Warehouse,
    Without,
    expanded,
)
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE, command_path
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.text.output import say

if TYPE_CHECKING:
    from plumbline.pipelines.requests.disclosure import DisclosureOutcome, DisclosureRequest
    from plumbline.warehouse.storage.store import Store


Sets = Annotated[
    list[str], typer.Argument(help="Sets of prompts; topics and released ones are imported.")
]
_REPORT = Path("out/report")


def prompts(
    probe_set: Annotated[str, typer.Argument(metavar="SET", help="topics, stsb, snli ... or new.")],
    source: Annotated[
        Path | None, typer.Option(help="Released file, or directory; default: under --data.")
    ] = None,
    derive: Annotated[
        Path | None, typer.Option(help="Make prompts of the sentences in this file instead.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Where that file has the sentences.")] = None,
    write: Annotated[
        list[str] | None,
        typer.Option(help="Sentence for a chat model to write others like; once for each."),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Prompts written of each sentence.")] = 200,
    model: Annotated[str, typer.Option(help="The chat model, as its server names it.")] = "",
    base_url: Annotated[str, typer.Option(help="Its server; default: OpenAI's.")] = "",
    wording: Annotated[Path | None, typer.Option(help="Wording of the request (TOML).")] = None,
    prices: Annotated[Path | None, typer.Option(help="Price table (TOML).")] = None,
    max_requests: Annotated[int | None, typer.Option(help="Most requests of the set.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most money, in the price table's currency.")
    ] = None,
    allow_gendered: Annotated[
        bool, typer.Option("--allow-gendered", help="Keep prompts with gendered words.")
    ] = False,
    data: Data = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Put prompts of unspecified gender into the warehouse: released, derived or written ones.

    Rows that give no prompt are reported and kept in table `reject`. Keys of servers come from
    PLUMBLINE_API_KEY or OPENAI_API_KEY.

    Example: plumbline disclosure prompts mine --derive sentences.jsonl --column text
    """
    from plumbline.pipelines.requests.disclosure.messages import reasons
    from plumbline.pipelines.requests.disclosure.prompt_source import Source, import_prompts
    from plumbline.warehouse.storage.store import Store

    request = Source(
        *(probe_set, source, derive, column, tuple(write or ()), n, model, base_url, wording),
        *(prices, max_requests, max_cost, allow_gendered, data),
    )
    request.check()
    store = Store.open(warehouse)
    done = import_prompts(store, request)
    n_rows = done.n_prompts + done.n_rejects
    rejects = store.read("reject", stage="prompts", subject=probe_set).to_pylist()
    rejects.sort(key=lambda row: (str(row["source_file"]), row["source_row"]))
    why = f": {reasons(rejects)}" if rejects else ""
    counts = f"{n_rows:,} rows, {done.n_prompts:,} prompts, {done.n_rejects:,} rejected"
    say(f"{probe_set}: {counts}{why}")
    say(f"Wrote probe_prompt{', reject' if rejects else ''} in {warehouse}")
    where = command_path(warehouse, DEFAULT_WAREHOUSE, "--warehouse")
    say(f"Next: plumbline disclosure probe {probe_set} --model ID_OR_PATH{where}")


@expanded
def probe(
    sets: Sets,
    model: Annotated[str, typer.Option(help="Hub ids or directories, by commas.")] = "",
    models: Models = None,
    *,
    loading: Loading,
    options: ProbeOptions,
    out: Annotated[Path, typer.Option(help="Directory of the report.")] = _REPORT,
    data: Data = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """GAS, GLD and ADD of sets of prompts under models; only what is missing is computed.

    After each prompt: how likely each gendered word is, and the greedy continuation.

    Example: plumbline disclosure probe topics --model EleutherAI/pythia-70m
    """
    from plumbline.pipelines.requests.disclosure import DisclosureRequest, subjects
    from plumbline.pipelines.requests.disclosure.messages import after_probe

    who = subjects(model, models or "", loading)
    chosen = tuple(dict.fromkeys(sets))
    request = DisclosureRequest(chosen, who, options, warehouse, out, data=data or "")
    outcome, store = _run(request)
    for line in after_probe(request, outcome, store):
        say(line)
    outcome.failures.check()


@expanded
def tune(
    sets: Sets,
    model: Annotated[str, typer.Option(help="The base: hub id or directory.")],
    name: Annotated[str, typer.Option(help="Name of the adapter.")],
    out: Annotated[Path, typer.Option(help="Directory of adapters.")] = Path("adapters"),
    test_sets: Annotated[
        str | None, typer.Option(help="Sets to keep out, by commas; default: all others.")
    ] = None,
    dev_sets: Annotated[
        str | None, typer.Option(help="Sets to choose the checkpoint by, by commas.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Measure base and adapter on the test sets, too.")
    ] = False,
    *,
    tuned: TuneOptions,
    loading: Annotated[ModelOptions, Without("adapter", "tensor_parallel", *OF_SCORES)],
    options: Annotated[ProbeOptions, Without("word_list", "smoothing")],
    report: Annotated[Path, typer.Option(help="Directory of the report.")] = _REPORT,
    data: Data = None,
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Tune a LoRA adapter on neutral prompts, so that its base says less of a gender.

    Prompts of test sets are left out, losses are means and gradients are clipped; --as-published
    is the paper's way. The adapter is that of the last step, or of the checkpoint with the least
    loss on --dev-sets. After an interruption run the same command again to resume from the last
    checkpoint.

    Example: plumbline disclosure tune snli-train --model EleutherAI/pythia-70m --name calm
    """
    from plumbline.eval_workers.mitigation.tune import check
    from plumbline.eval_workers.training.models import plain_name
    from plumbline.pipelines.requests.disclosure import (
        DisclosureRequest,
        Tuning,
        held_against,
        subjects,
    )
    from plumbline.pipelines.requests.disclosure.messages import after_tune

    check(loading)
    if tuned.as_published:
        loading = published_base(loading)
        if find_spec("bitsandbytes") is None:
            fix = "pip install bitsandbytes"
            raise MissingComponent("--as-published", "needs bitsandbytes", fix)
    who = subjects(model, "", loading)
    if len(who) != 1:
        raise UsageProblem(f"--model {model}", "is not one model", "tune one base at a time")
    parted = None if test_sets is None else _parted(test_sets)
    tuning = Tuning(
        *(plain_name(name), tuple(dict.fromkeys(sets)), parted, tuned, out),
        dev_sets=_parted(dev_sets or ""),
    )
    measured = held_against(tuning, warehouse) if probe else ()
    options = replace(options, word_list=tuned.word_list)
    request = DisclosureRequest(measured, who, options, warehouse, report, tuning, data=data or "")
    outcome, store = _run(request)
    for line in after_tune(request, outcome, store):
        say(line)


def _parted(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def _run(request: DisclosureRequest) -> tuple[DisclosureOutcome, Store]:
    """Run the flow, once all that can be told before it is right."""
    from plumbline.pipelines.requests.disclosure import check_means
    from plumbline.warehouse.storage.store import Store

    check_means(request)
    store = Store.open(request.warehouse)
    from plumbline.pipelines.requests import disclosure as disclosure_flow
    from plumbline.pipelines.stages import Stages

    return disclosure_flow.disclosure(request, Stages()), store
