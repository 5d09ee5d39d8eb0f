"""Options of every command that loads a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT

Dtype = Literal["float32", "bfloat16", "float16"]
Device = Literal["auto", "cpu", "cuda"]
Quantisation = Literal["nf4"]


@dataclass(frozen=True, config=STRICT)
class ModelOptions:
    """Options for loading and running a model.

    All options can change scores, except ``batch_tokens``, ``tensor_parallel``, ``device``,
    ``base_url`` and ``concurrency``.
    """

    revision: Annotated[str | None, Field(description="Hub revision: branch, tag or commit.")] = (
        None
    )
    dtype: Annotated[Dtype, Field(description="Data type of the weights.")] = "float32"
    device: Annotated[
        Device, Field(description="Where to run the model; auto uses a GPU if there is one.")
    ] = "auto"
    batch_tokens: Annotated[
        int | None,
        Field(
            gt=0,
            le=10**9,
            description="Maximum tokens per forward pass (default: 512 on a CPU, 4096 on a GPU).",
        ),
    ] = None
    bos: Annotated[
        str | None, Field(description="Start token (BOS) to use instead of the model's own.")
    ] = None
    backend: Annotated[
        str, Field(description="Backend to use: transformers, vllm, server, or a plugin's name.")
    ] = "transformers"
    base_url: Annotated[
        str, Field(description="Server's address with --backend server, such as http://HOST/v1.")
    ] = ""
    concurrency: Annotated[
        int,
        Field(gt=0, le=1_024, description="Number of parallel requests (--backend server)."),
    ] = 8
    tensor_parallel: Annotated[
        int,
        Field(gt=0, le=1_024, description="Number of GPUs that share the model (--backend vllm)."),
    ] = 1
    adapter: Annotated[
        str | None, Field(description="Hub id or directory of a PEFT adapter for the model.")
    ] = None
    quantisation: Annotated[
        Quantisation | None,
        Field(description="Quantise the weights to 4 bits while loading them (bitsandbytes)."),
    ] = None


def refuse_options(options: ModelOptions, names: Iterable[str], problem: str) -> None:
    """Raise ``UsageProblem`` if one of the named options differs from its default.

    >>> refuse_options(ModelOptions(dtype="float16"), ["dtype"], "the server has loaded the model")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: --dtype float16: the server has loaded the model \
(leave it out)
    """
    defaults = ModelOptions()
    for name in names:
        if (value := getattr(options, name)) != getattr(defaults, name):
            raise UsageProblem(f"--{name.replace('_', '-')} {value}", problem, "leave it out")
