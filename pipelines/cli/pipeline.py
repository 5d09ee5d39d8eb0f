"""The commands ``plumbline pipeline`` and ``plumbline config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumbline.pipelines import settings
from plumbline.warehouse.text.output import say

Conf = Annotated[Path | None, typer.Option(help="Settings file (TOML), or cluster.")]


def config(conf: Conf = None) -> None:
    """Print every setting, its meaning and where its value came from, as TOML.

    Example: plumbline config --conf cluster
    """
    say(settings.as_toml(*settings.load(conf)))


def pipeline(
    corpus: Annotated[str, typer.Option(help="Shards to count: paths or globs.")] = "",
    benchmarks: Annotated[str, typer.Option(help="Benchmarks, separated by commas.")] = "",
    model: Annotated[str, typer.Option(help="Hub ids, paths or train:small.")] = "",
    out: Annotated[str, typer.Option(help="Directory for everything written.")] = "",
    conf: Conf = None,
    demo_tokens: Annotated[
        int | None, typer.Option(help="Size of each closed-world corpus in tokens.")
    ] = None,
    train_tokens: Annotated[
        int | None, typer.Option(help="Limit on the tokens a model is trained on.")
    ] = None,
    twin: Annotated[
        bool, typer.Option("--twin", help="Also train on the closed world with she/he exchanged.")
    ] = False,
    prefect: Annotated[
        bool, typer.Option("--prefect", help="As a flow on the server of PREFECT_API_URL.")
    ] = False,
) -> None:
    """Count, associate, constrain, score, measure and report; alone: the closed world.

    Without arguments it needs no data and no network: it writes a corpus whose associations are
    known, trains a model on it, and shows whether the model took up the lean of its text.
    With --corpus and --model alone it makes a benchmark of fixed frames around words of the corpus.

    Example: plumbline pipeline --corpus 'shards/*.jsonl.zst' --benchmarks winobias,use-5
    --model train:small
    """
    given: dict[str, object] = {"corpus": corpus, "benchmarks": benchmarks, "model": model}
    given |= {"out": out, "demo_tokens": demo_tokens, "train_tokens": train_tokens}
    given |= {"twin": twin or None, "prefect": prefect or None}
    chosen, _ = settings.load(conf, {k: v for k, v in given.items() if v not in ("", None)})
    from plumbline.pipelines import flow

    flow.run(chosen)
