"""Lists of instructions: the packaged one, or a file of one."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.eval_workers.models.sampling_contract import NONE, Instruction
from plumbline.warehouse.text.toml_file import Stripped, load, toml_table

_SHIPPED = "instructions.toml"


def _once_each(texts: tuple[str, ...]) -> tuple[str, ...]:
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise ValueError(f"{twice!r} is there twice")
    return texts


@toml_table
class _Instructions:
    instructions: Annotated[
        tuple[Stripped, ...],
        Field(min_length=1),
        AfterValidator(_once_each),
    ]


def load_instructions(path: Path | None = None) -> tuple[str, ...]:
    """Instructions of a TOML file in order, without blanks around them; by default the packaged.

    Raises ``UsageProblem`` when there is no such file. Raises ``BadInput`` for one that isn't a
    list ``instructions`` of texts, each there once.

    >>> len(load_instructions())
    4
    """
    file = path or resources.files("plumbline.eval_workers.disclosure") / _SHIPPED
    return load(_Instructions, file, str(path or _SHIPPED)).instructions


def in_each_form(texts: tuple[str, ...], forms: tuple[str, ...]) -> list[Instruction]:
    """The instruction ``NONE``, then one for each text in each form.

    >>> [i.form for i in in_each_form(("Go on.",), ("prefix", "chat"))[1:]]
    ['prefix', 'chat']
    """
    return [NONE, *(Instruction(text, form) for form in dict.fromkeys(forms) for text in texts)]
