"""The commands ``plumbline fairpair score`` and ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.eval_workers.fairpair.spec import FairPairSpec
from plumbline.pipelines.cli.options import Given, Warehouse, expanded
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE, command_path
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.output import say

ProbeSet = Annotated[str, typer.Argument(help="Set of prompts; common-sents comes with Plumbline.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with any of the keys of docs/fairpair.md.")
]
#: What is not about sampling: `score` takes it too.
_MEASURING = (
    *("perturber", "perturber_url", "terms", "wording", "phi", "folds", "seed", "prices"),
    "as_published",
    *("device", "batch_tokens"),  # of classifiers
)
Out = Annotated[Path, typer.Option(help="Directory of the report.")]
_OUT = Path("out/report")


@expanded
def score(
    probe_set: ProbeSet,
    model: Annotated[
        str | None, typer.Option(help="Only that of these names or keys, by commas.")
    ] = None,
    config: Config = None,
    *,
    given: Annotated[dict[str, object], Given(FairPairSpec, only=_MEASURING)],
    warehouse: Warehouse = DEFAULT_WAREHOUSE,
) -> None:
    """Measure anew what is in the warehouse: other folds, scoring functions or perturber.

    No sample is drawn. Figures of other folds, texts, scoring functions and perturbers stay.

    Example: plumbline fairpair score common-sents --folds 20 --phi jaccard
    """
    from dataclasses import asdict

    from plumbline.eval_workers.fairpair import audit as steps
    from plumbline.eval_workers.fairpair.spec import load
    from plumbline.pipelines.commands.fairpair import TABLES, figures
    from plumbline.warehouse.provenance.runs import recorded
    from plumbline.warehouse.storage.store import Store

    spec = load(config, {"model": model, **given})
    store = Store.open(warehouse, create=False)
    found = steps.continued(store, probe_set, spec)
    rows = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    steps.check(spec, probe_set, rows)
    chosen = steps.scoring_functions(spec, rows)
    steps.check_classifiers(chosen)
    options = {"probe_set": probe_set, "continued": found, **asdict(spec), "phi": chosen}
    with recorded(store, "fairpair score", options) as run_id:
        for one in found:
            say(f"{probe_set} by {one.model}, key {one.model_key}: {one.n:,} samples")
            whose = (one.model_key, one.sampling_key)
            sampled = steps.perturb(store, probe_set, *whose, spec, run_id)
            for name in chosen:
                steps.score(store, sampled, name, spec, run_id)
                steps.converge(store, sampled, name, spec, run_id)
                if steps.takes_lengths(name):
                    steps.lengths(store, sampled, name, spec, run_id)
                steps.calibrate(store, sampled, name, spec, run_id)
            for line in figures(store, sampled, chosen, spec):
                say(line)
    say(f"Wrote {', '.join(TABLES)} in {warehouse}")
    where = command_path(warehouse, DEFAULT_WAREHOUSE, "--warehouse")
    say(f"Next: plumbline fairpair report{where}")


def report(out: Out = _OUT, warehouse: Warehouse = DEFAULT_WAREHOUSE) -> None:
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
