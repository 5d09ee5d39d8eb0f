"""The wordings that ask for a choice: read from TOML, checked, filled."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import names_in
from plumbline.warehouse.text.toml_file import toml_table


def _once_each(wording: str) -> str:
    if sorted(names_in(wording)) != ["first", "second"]:
        raise ValueError("has to hold {first} and {second} once each")
    return wording.strip()


@toml_table
class _File:
    choose: Annotated[tuple[Annotated[str, AfterValidator(_once_each)], ...], Field(min_length=1)]


def load(path: Path | None = None) -> tuple[str, ...]:
    """The wordings of a file, or those that come with Plumbline.

    Raises ``UsageProblem`` for a missing file, ``BadInput`` for a wording (numbered from 1) that
    doesn't hold {first} and {second} once each and no other placeholder.

    >>> len(load())
    2
    """
    file = path or resources.files("plumbline.eval_workers.scoring.choices") / "prompts.toml"
    return toml_file.load(_File, file, f"prompts {path or ''}".rstrip()).choose
