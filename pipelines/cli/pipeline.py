"""The commands ``plumbline pipeline`` and ``plumbline config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines import settings
from plumbline.pipelines.cli.options import Given, expanded
from plumbline.warehouse.text.output import say

Conf = Annotated[Path | None, typer.Option(help="Settings file (TOML), or cluster.")]


def config(conf: Conf = None) -> None:
    """Print every setting, its meaning and where its value came from, as TOML.

    Example: plumbline config --conf cluster
    """
    say(settings.as_toml(*settings.load(conf)))


@expanded
def pipeline(
    conf: Conf = None,
    *,
    given: Annotated[dict[str, object], Given(settings.Settings)],
) -> None:
    """Count, associate, constrain, score, measure and report; alone: the closed world.

    Without arguments it needs no data and no network: it writes a corpus whose associations are
    known, trains a model on it, and shows whether the model took up the lean of its text.
    With --corpus and --model alone it makes a benchmark of fixed frames around words of the corpus.

    Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' --benchmarks winobias,use-5
    --model train:small
    """
    chosen, _ = settings.load(conf, given)
    from plumbline.pipelines.requests import pipeline as flow

    if chosen.prefect:
        from plumbline.pipelines.flows import as_flow

        flow.run(chosen, as_flow)
    else:
        flow.run(chosen)
