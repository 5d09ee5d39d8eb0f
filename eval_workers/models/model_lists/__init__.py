"""Lists of models to score, one TOML file per list: ours are here, any other is given by its path.

An entry names a model and may say how it is loaded, in the fields of ``ModelOptions``, and by how
many processes; what it does not say is what the command line says::

    [[model]]
    id = "EleutherAI/pythia-70m"  # hub id or directory
    dtype = "bfloat16"
    workers = 2                   # optional: processes that score it
    name = "Pythia 70M"           # optional: what others call it
    unavailable = "no longer served"  # optional: why it is listed but never loaded
    n_parameters = 70_426_624     # optional: its weights, for released scores, which name none

``FILE#model`` are the entries of a file that holds other things too, such as the settings.
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
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.output import say
from plumbline.warehouse.text.toml_file import Text, checked, parsed, read_text, toml_table


@dataclasses.dataclass(frozen=True)
class ListedModel:
    """A model of a list: ``id`` is what is loaded, ``name`` what others call it.

    ``workers`` are the processes that score it, ``n_parameters`` its weights; ``None`` where its
    entry says nothing. ``unavailable`` is why it can't be loaded; empty for one that can.
    """

    id: str
    name: str
    overrides: Mapping[str, Any]
    workers: int | None = None
    unavailable: str = ""
    n_parameters: int | None = None

    def options(self, defaults: ModelOptions) -> ModelOptions:
        """How it is loaded: as its entry says, and as ``defaults`` say where that says nothing.

        >>> ListedModel("m", "m", {"dtype": "bfloat16"}).options(ModelOptions(device="cpu")).dtype
        'bfloat16'
        """
        return options.changed(defaults, self.overrides)


#: After the path of a file: it holds more than a list.
AMONG_OTHERS = "#model"
#: Without entry points: what our lists name may be loaded from pickles, see ``backends``.
LISTS = Registry("model list", __name__, ".toml", instead="give the path of a .toml file")


def load(name: str) -> list[ListedModel]:
    """Read a list by its name or by the path of a TOML file.

    Raises ``UsageProblem`` if it doesn't exist, ``BadInput`` for an invalid list: it
    names the entry (counted from 1) and what may stand there.

    >>> [model.id for model in load("unstereoeval")][:2]
    ['EleutherAI/pythia-70m', 'EleutherAI/pythia-70m-deduped']
    """
    file = name.removesuffix(AMONG_OTHERS)
    if not file.endswith(".toml"):
        return _parse(f"model list {name}", LISTS.text(name))
    what = f"model list {file}"
    return _parse(what, read_text(Path(file), what), among_others=file != name)


def load_available(name: str) -> list[ListedModel]:
    """``load`` without the models that can't be loaded, of which it says a line each.

    Raises as ``load``, and ``UsageProblem`` when none is left.

    >>> [model.name for model in load_available("fairpair")]
    skipped LLaMa: its weights are given out on request: give --model DIRECTORY
    skipped InstructGPT: behind servers only: give --base-url ADDRESS --model NAME
    ['GPT2', 'GPT2-XL', 'Tk', 'GPTJ']
    """
    models = load(name)
    for model in models:
        if model.unavailable:
            say(f"skipped {model.name}: {model.unavailable}")
    available = [model for model in models if not model.unavailable]
    if not available:
        raise UsageProblem(f"model list {name}", "all its models are unavailable", "list another")
    return available


@dataclass(frozen=True, kw_only=True, config=STRICT)
class _Entry(ModelOptions):
    id: Text
    name: str = ""
    unavailable: str = ""
    workers: Annotated[int | None, Field(ge=1)] = None
    n_parameters: Annotated[int | None, Field(ge=1)] = None


@toml_table
class _List:
    model: Annotated[tuple[_Entry, ...], Field(title="[[model]] entries")]


def _parse(what: str, text: str, *, among_others: bool = False) -> list[ListedModel]:
    content = parsed(text, what)
    if among_others:
        content = {key: value for key, value in content.items() if key == "model"}
    entries = checked(_List, content, what).model
    known, models = {field.name for field in dataclasses.fields(ModelOptions)}, []
    for one, given in zip(entries, content["model"], strict=True):
        overrides = {key: value for key, value in given.items() if key in known}
        more = (one.workers, one.unavailable, one.n_parameters)
        models.append(ListedModel(one.id, one.name or one.id, overrides, *more))
    _check_distinct(models, what)
    return models


def _check_distinct(models: list[ListedModel], what: str) -> None:
    first: dict[str, int] = {}
    for number, model in enumerate(models, 1):
        key = repr((model.id, sorted(model.overrides.items())))
        if key in first:
            raise BadInput(what, f"model {number} ({model.id}) repeats model {first[key]}")
        first[key] = number
