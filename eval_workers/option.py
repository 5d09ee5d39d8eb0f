"""Options that many commands share: where the warehouse is, and how a model is loaded.

Where a command takes a file of options too, ``None`` says that an option was not given: the types
that begin with ``Given`` are for those.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_WAREHOUSE = Path("out/warehouse")
Warehouse = Annotated[
    Path,
    typer.Option("--warehouse", envvar="PLUMBLINE_WAREHOUSE", help="Directory of the warehouse."),
]

_MODELS = typer.Option(help="In place of --model a list: a TOML file, or unstereoeval.")
_DTYPE = typer.Option(help="float32, bfloat16 or float16.")
_DEVICE = typer.Option(help="auto, cpu or cuda.")
_BACKEND = typer.Option(help="transformers or vllm.")
_TENSOR_PARALLEL = typer.Option(help="GPUs that share a model (vllm).")

Models = Annotated[str, _MODELS]
GivenModels = Annotated[str | None, _MODELS]
Revision = Annotated[str | None, typer.Option(help="Hub revision: branch, tag, commit.")]
Dtype = Annotated[str, _DTYPE]
GivenDtype = Annotated[str | None, _DTYPE]
Device = Annotated[str, _DEVICE]
GivenDevice = Annotated[str | None, _DEVICE]
BatchTokens = Annotated[
    int | None, typer.Option(help="Tokens of one forward pass; default: by the device.")
]
Bos = Annotated[str | None, typer.Option(help="Context token, for a model that names none.")]
Backend = Annotated[str, _BACKEND]
GivenBackend = Annotated[str | None, _BACKEND]
TensorParallel = Annotated[int, _TENSOR_PARALLEL]
GivenTensorParallel = Annotated[int | None, _TENSOR_PARALLEL]
Adapter = Annotated[
    str | None, typer.Option(help="PEFT adapter for the model: hub id or directory.")
]
Quantisation = Annotated[
    str | None, typer.Option(help="int8 or nf4, done while loading (bitsandbytes).")
]
TrustRemoteCode = Annotated[
    str | None,
    typer.Option(help="The model's name once more: run the Python code that comes with it."),
]
WordList = Annotated[
    str, typer.Option("--word-list", help="Pairs of gendered words: name, or path of a TOML file.")
]
