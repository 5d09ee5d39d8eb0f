"""Read lists of models to score. Each list is a TOML file. This directory has the built-in lists.

An entry names a model and may set fields of ``ModelOptions``. The command line sets all other
fields::

    [[model]]
    id = "EleutherAI/pythia-70m"  # hub id or directory
    dtype = "bfloat16"
    name = "Pythia 70M"           # optional: models with the same name are versions of one model
    n_parameters = 70_426_624     # optional: for released scores, which don't say the model's size

A list in a file with other content, such as settings, is called ``FILE#model``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.toml_file import Text, checked, parsed, read_text, toml_table


@dataclasses.dataclass(frozen=True)
class ListedModel:
    """An entry of a model list.

    Attributes:
        id: hub id or directory.
        name: models with the same name are versions of one model.
        n_parameters: number of parameters, if the entry gives it.
        overrides: fields of ``ModelOptions`` that the entry sets.
    """

    id: str
    name: str | None = None
    n_parameters: int | None = None
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)


#: Suffix for the path of a TOML file that has a list and other content, such as the settings.
AMONG_OTHERS = "#model"
LISTS = Registry("model list", __name__, ".toml", instead="give the path of a .toml file")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Entry(ModelOptions):
    id: Text
    name: Text | None = None
    n_parameters: Annotated[int | None, Field(ge=1)] = None


@toml_table
class _List:
    model: Annotated[tuple[_Entry, ...], Field(min_length=1)]


def load(name: str) -> list[ListedModel]:
    """Read a built-in list by name, or a TOML file by path.

    Raises ``UsageProblem`` if there is no such list. Raises ``BadInput`` if an entry is invalid.
    The error gives the entry's number, counted from 1.

    >>> [model.id for model in load("unstereoeval")][:2]
    ['EleutherAI/pythia-70m', 'EleutherAI/pythia-70m-deduped']
    """
    file = name.removesuffix(AMONG_OTHERS)
    what = f"model list {file}"
    is_file = file.endswith(".toml")
    content = parsed(read_text(Path(file), what) if is_file else LISTS.text(name), what)
    if file != name:
        content = {key: value for key, value in content.items() if key == "model"}
    checked(_List, content, what)
    own = ("id", "name", "n_parameters")
    return [
        ListedModel(
            **{key: entry[key] for key in own if key in entry},
            overrides={key: value for key, value in entry.items() if key not in own},
        )
        for entry in content["model"]
    ]
