"""Lists of models to score, one TOML file per list. The built-in lists are in this directory.

An entry names a model. It may also set fields of ``ModelOptions``; other options come from the
command line::

    [[model]]
    id = "EleutherAI/pythia-70m"  # hub id or directory
    dtype = "bfloat16"
    name = "Pythia 70M"           # optional: name in tables; entries of one name are versions
    unavailable = "no longer served"  # optional: why it is listed but never loaded
    n_parameters = 70_426_624     # optional: for released scores, which don't include the size

``FILE#model`` names the list in a file that also has other content, such as the settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse import options
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.toml_file import Text, checked, parsed, read_text, toml_table


@dataclasses.dataclass(frozen=True)
class ListedModel:
    """A model of a list: its hub id or directory, and its name in published tables.

    ``overrides`` has the fields of ``ModelOptions`` that the entry sets. ``n_parameters`` is the
    number of the model's weights; ``None`` if the entry doesn't say. ``given_name`` is the entry's
    name, if any: the model counts as a version of that name. ``unavailable`` says why the model
    can't be loaded; otherwise it is empty.
    """

    id: str
    name: str
    overrides: Mapping[str, Any]
    unavailable: str = ""
    n_parameters: int | None = None
    given_name: str | None = None

    def options(self, defaults: ModelOptions) -> ModelOptions:
        """Return the model's options: the fields that the entry sets, and ``defaults`` for others.

        >>> ListedModel("m", "m", {"dtype": "bfloat16"}).options(ModelOptions(device="cpu")).dtype
        'bfloat16'
        """
        return options.changed(defaults, self.overrides)


#: Suffix for the path of a file that also has content other than the list.
AMONG_OTHERS = "#model"
LISTS = Registry("model list", __name__, ".toml", instead="give the path of a .toml file")


def load(name: str) -> list[ListedModel]:
    """Read a built-in list by name, or a TOML file by path.

    Raises ``UsageProblem`` if there is no such list. Raises ``BadInput`` if an entry is invalid;
    the error names the entry, counted from 1.

    >>> [model.id for model in load("unstereoeval")][:2]
    ['EleutherAI/pythia-70m', 'EleutherAI/pythia-70m-deduped']
    """
    file = name.removesuffix(AMONG_OTHERS)
    if not file.endswith(".toml"):
        return _parse(f"model list {name}", LISTS.text(name))
    what = f"model list {file}"
    return _parse(what, read_text(Path(file), what), among_others=file != name)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Entry(ModelOptions):
    id: Text
    name: str = ""
    unavailable: str = ""
    n_parameters: Annotated[int | None, Field(ge=1)] = None


@toml_table
class _List:
    model: tuple[_Entry, ...]


def _parse(what: str, text: str, *, among_others: bool = False) -> list[ListedModel]:
    content = parsed(text, what)
    if among_others:
        content = {key: value for key, value in content.items() if key == "model"}
    names = {field.name for field in dataclasses.fields(ModelOptions)}
    models: list[ListedModel] = []
    first: dict[str, int] = {}
    entries = checked(_List, content, what).model
    for number, (entry, fields) in enumerate(zip(entries, content["model"], strict=True), 1):
        overrides = {key: value for key, value in fields.items() if key in names}
        earlier = first.setdefault(repr((entry.id, sorted(overrides.items()))), number)
        if earlier != number:
            raise BadInput(what, f"model {number} ({entry.id}) repeats model {earlier}")
        more = (entry.unavailable, entry.n_parameters, entry.name or None)
        models.append(ListedModel(entry.id, entry.name or entry.id, overrides, *more))
    return models
