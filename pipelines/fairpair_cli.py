"""The commands ``plumbline fairpair run``, ``score`` and ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.eval_workers import option
from plumbline.pipelines import offline as prefect_environment
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.text.output import say

ProbeSet = Annotated[str, typer.Argument(help="Set of prompts; common-sents comes with Plumbline.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with any of the keys of docs/fairpair.md.")
]
PerturberName = Annotated[
    str | None, typer.Option(help="rules (the default), or the name of a chat model.")
]
PerturberUrl = Annotated[
    str | None, typer.Option(help="Its server; default: --base-url, or OpenAI's.")
]
Terms = Annotated[str | None, typer.Option(help="Word lists of your own for the rules (TOML).")]
Wording = Annotated[str | None, typer.Option(help="What a chat perturber is asked (TOML).")]
Phi = Annotated[
    str | None, typer.Option(help="Scoring functions, by commas; default: jaccard,vader.")
]
Folds = Annotated[int | None, typer.Option(help="Folds of each side's samples; 0: none.")]
Prices = Annotated[str | None, typer.Option(help="Price table of served models (TOML).")]
Out = Annotated[Path, typer.Option(help="Directory of the report.")]
_OUT = Path("out/report")


def run(
    probe_set: ProbeSet,
    model: Annotated[
        str | None, typer.Option(help="Hub ids, directories or served names, by commas.")
    ] = None,
    models: option.GivenModels = None,
    config: Config = None,
    prompts: Annotated[
        str | None, typer.Option(help="Templates, names and words of the prompts (TOML).")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Samples a prompt and side: 100.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus: 0.9.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Temperature: 1.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(help="Tokens of a sample: 128.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of samples, folds and tests: 0.")] = None,
    instruction: Annotated[
        str | None, typer.Option(help="Put before each prompt; chat models get one by default.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Server that holds the models; without it: loaded here.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="completions (the default), or chat.")
    ] = None,
    prices: Prices = None,
    max_requests: Annotated[int | None, typer.Option(help="Most requests a ledger.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Most money a ledger, in the price table's currency.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests at a time.")] = None,
    revision: option.Revision = None,
    dtype: option.GivenDtype = None,
    device: option.GivenDevice = None,
    batch_tokens: option.BatchTokens = None,
    bos: option.Bos = None,
    backend: option.GivenBackend = None,
    tensor_parallel: option.GivenTensorParallel = None,
    adapter: option.Adapter = None,
    quantisation: option.Quantisation = None,
    trust_remote_code: option.TrustRemoteCode = None,
    perturber: PerturberName = None,
    perturber_url: PerturberUrl = None,
    terms: Terms = None,
    wording: Wording = None,
    phi: Phi = None,
    folds: Folds = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take; draw and write nothing.")
    ] = False,
    out: Out = _OUT,
    warehouse: option.Warehouse = option.DEFAULT_WAREHOUSE,
) -> None:
    """Sample both sides of each prompt, perturb, and compare bias with sampling noise.

    What is drawn or answered is kept: after an interruption run the same command again to resume;
    a larger --n draws only the further samples. Keys of servers come from PLUMBLINE_API_KEY or
    OPENAI_API_KEY.

    Example: plumbline fairpair run common-sents --model EleutherAI/pythia-70m --n 100 --dry-run
    """
    from plumbline.pipelines.fairpair_order import after, check_means, checked_order
    from plumbline.pipelines.fairpair_plan import before
    from plumbline.pipelines.order import held
    from plumbline.warehouse.storage.store import Store

    given: dict[str, object] = {"model": model, "models": models, "prompts": prompts, "n": n}
    given |= {"top_p": top_p, "temperature": temperature, "max_new_tokens": max_new_tokens}
    given |= {"seed": seed, "instruction": instruction, "base_url": base_url}
    given |= {"endpoint": endpoint, "prices": prices, "max_requests": max_requests}
    given |= {"max_cost": max_cost, "concurrency": concurrency, "revision": revision}
    given |= {"dtype": dtype, "device": device, "batch_tokens": batch_tokens, "bos": bos}
    given |= {"backend": backend, "tensor_parallel": tensor_parallel, "adapter": adapter}
    given |= {"quantisation": quantisation, "trust_remote_code": trust_remote_code}
    given |= _measuring(perturber, perturber_url, terms, wording, phi, folds)
    order, rows = checked_order(probe_set, config, given, warehouse, out)
    if dry_run:
        for line in before(order, rows, held(warehouse)):
            say(line)
        say("Nothing was drawn, asked or written. Next: the same command without --dry-run")
        return
    check_means(order)
    store = Store.open(warehouse)
    prefect_environment.prepare(warehouse.parent)
    from plumbline.pipelines import fairpair_flow

    outcome = fairpair_flow.run(order)
    for line in after(order, outcome, store):
        say(line)
    if outcome.failures:
        problem = f"{len(outcome.failures)} of {len(order.targets)} failed: {outcome.failures[0]}"
        fix = "the others are done; the same command tries these again"
        raise BadInput("models", problem, fix)


def score(
    probe_set: ProbeSet,
    model: Annotated[
        str | None, typer.Option(help="Only that of these names or keys, by commas.")
    ] = None,
    config: Config = None,
    perturber: PerturberName = None,
    perturber_url: PerturberUrl = None,
    terms: Terms = None,
    wording: Wording = None,
    phi: Phi = None,
    folds: Folds = None,
    seed: Annotated[int | None, typer.Option(help="Seed of folds and tests: 0.")] = None,
    prices: Prices = None,
    warehouse: option.Warehouse = option.DEFAULT_WAREHOUSE,
) -> None:
    """Measure anew what is in the warehouse: other folds, scoring functions or perturber.

    No sample is drawn. Figures of other folds, scoring functions and perturbers stay.

    Example: plumbline fairpair score common-sents --folds 20 --phi jaccard
    """
    from dataclasses import asdict

    from plumbline.eval_workers.fairpair import steps
    from plumbline.eval_workers.fairpair.spec import load
    from plumbline.pipelines.fairpair_order import TABLES, figures
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    given: dict[str, object] = {"model": model, "seed": seed, "prices": prices}
    given |= _measuring(perturber, perturber_url, terms, wording, phi, folds)
    spec = load(config, given)
    store = Store.open(warehouse, create=False)
    found = steps.continued(store, probe_set, spec)
    rows = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    steps.check(spec, probe_set, rows)
    chosen = steps.scoring_functions(spec, rows)
    said = {"probe_set": probe_set, "continued": found, **asdict(spec), "phi": chosen}
    with recorded(store, "fairpair score", said) as run_id:
        for one in found:
            say(f"{probe_set} by {one.model}, key {one.model_key}: {one.n:,} samples")
            whose = (one.model_key, one.sampling_key)
            sampled = steps.perturb(store, probe_set, *whose, spec, run_id)
            for name in chosen:
                steps.score(store, sampled, name, spec, run_id)
                steps.converge(store, sampled, name, spec, run_id)
                steps.calibrate(store, sampled, name, spec, run_id)
            for line in figures(store, sampled, chosen, spec.folds):
                say(line)
    say(f"Wrote {', '.join(TABLES)} in {warehouse}")
    say("Next: plumbline fairpair report")


def report(out: Out = _OUT, warehouse: option.Warehouse = option.DEFAULT_WAREHOUSE) -> None:
    """Write the report of all that is measured: one HTML page, and its plots as SVG files.

    Example: plumbline fairpair report --out out/report
    """
    from plumbline.pipelines.report.write import write_report
    from plumbline.warehouse.storage.store import Store

    store = Store.open(warehouse, create=False)
    if not store.read("fairpair_set").num_rows:
        fix = "run plumbline fairpair run common-sents --model ID_OR_PATH"
        raise UsageProblem(f"warehouse {warehouse}", "has no figures of FairPair", fix)
    say(f"Wrote {write_report(store, out)}")
    say("Next: open it in a browser")


def _measuring(
    perturber: str | None,
    perturber_url: str | None,
    terms: str | None,
    wording: str | None,
    phi: str | None,
    folds: int | None,
) -> dict[str, object]:
    """The options that `run` and `score` share, as keys of the configuration."""
    names = None if phi is None else tuple(p.strip() for p in phi.split(",") if p.strip())
    asked = {"perturber": perturber, "perturber_url": perturber_url, "wording": wording}
    return {**asked, "terms": terms, "phi": names, "folds": folds}
