"""Questions about pairs for a chat model: options of `score choose`, and wordings."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.chat.asking_options import AskingOptions
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import names_in
from plumbline.warehouse.text.toml_file import toml_table


@dataclass(frozen=True, config=STRICT)
class ChoiceOptions(AskingOptions):
    """Number and wording of the questions; ``UsageProblem`` without a model."""

    n: Annotated[int, Field(gt=0, le=1_000, description="Asks of each pair in each order.")] = 4
    temperature: Annotated[float, Field(ge=0, le=10, description="Temperature of the replies.")] = (
        1.0
    )
    max_new_tokens: Annotated[
        int, Field(gt=0, le=100_000, description="Most tokens of a reply.")
    ] = 16
    prompts: Annotated[str, Field(description="Wordings of your own (TOML).")] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise UsageProblem("model", "is not given", "give --model NAME")

    def wordings(self) -> tuple[str, ...]:
        """The wordings, used in turn. Raises the errors of ``load``."""
        return load(Path(self.prompts) if self.prompts else None)

    def key(self) -> str:
        """Hash of the settings that define a choice besides model and pair (16 hex digits).

        >>> one, two = ChoiceOptions(model="m"), ChoiceOptions(model="m", n=9)
        >>> one.key() == two.key(), one.key() == ChoiceOptions(model="m", temperature=0.0).key()
        (True, False)
        """
        parts = [self.wordings(), self.temperature, self.max_new_tokens]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _once_each(wording: str) -> str:
    if sorted(names_in(wording)) != ["first", "second"]:
        raise ValueError("has to hold {first} and {second} once each")
    return wording.strip()


@toml_table
class _File:
    choose: Annotated[tuple[Annotated[str, AfterValidator(_once_each)], ...], Field(min_length=1)]


def load(path: Path | None = None) -> tuple[str, ...]:
    """The wordings of a file, or the packaged ones.

    Raises ``UsageProblem`` for a missing file. Raises ``BadInput``, with the wording's number from
    1, unless each wording holds {first} and {second} once each and no other placeholder.

    >>> len(load())
    2
    """
    file = path or resources.files("plumbline.eval_workers.scoring") / "choice_prompts.toml"
    return toml_file.load(_File, file, f"prompts {path or ''}".rstrip()).choose
