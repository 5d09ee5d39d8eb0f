"""Options of probing, for its command and the pipeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.disclosure.attributes import WORD_LIST
from plumbline.warehouse.options import STRICT


@dataclass(frozen=True, config=STRICT)
class ProbeOptions:
    """Words whose probabilities are measured, and length of the one greedy continuation.

    ``smoothing`` changes only printed figures: stored probabilities stay as they are.
    """

    word_list: Annotated[
        str, Field(description="Pairs of gendered words: name, or path of a TOML file.")
    ] = WORD_LIST
    smoothing: Annotated[float, Field(ge=0, le=1, description="e of ADD in what is printed.")] = 0.0
    max_new_tokens: Annotated[
        int, Field(gt=0, le=100_000, description="Tokens of a greedy continuation.")
    ] = 50
