"""Recipes: TOML files that describe how the rows of a data set become pairs.

Ours are in ``recipes``; other packages add theirs through ``plumbline.recipes`` entry points. A
recipe names the file's columns, and sets values that all rows share::

    about = "what the data set is"
    source = "where it comes from"
    licence = "cc-by-4.0"        # an SPDX identifier
    language = "en"              # code of the sentences' language
    groups = ["old", "young"]    # the groups of sentence a and b
    citation = '''@misc{...}'''  # BibTeX; the keys from licence to citation are optional
    location = "name/file.csv"   # under PLUMBLINE_DATA; optional
    rows = "data.items"          # path of the list of rows in a JSON document; optional

    [columns]                    # our column = the file's column; a.b means b in column a
    sentence_a = "sent_more"
    [fixed]                      # the same for every row
    group_a = "stereotype"
    [only]                       # rows with other values are rejected; * matches any text
    context = ["*BLANK*"]
    [direction]                  # values of the column `direction` that mean a or b
    a = ["stereo"]

    [choices]                    # if a row lists several texts with labels
    each = "sentences"           # the row's list of texts
    text = "sentence"            # an item's text
    label = "gold_label"         # an item's label
    a = ["stereotype"]           # labels of sentence a
    b = ["anti-stereotype"]
    sentence = "{context} {choice}"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from plumbline.eval_workers.pairs.file_rows import files_of
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.remote_files import open_file, reading
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Stripped, Text, Texts, one_of, toml_table

#: Our columns. A recipe maps each to a column of the file, or sets one value for every row.
COLUMNS = (
    *("id", "item", "sentence_a", "sentence_b", "template", "group_a", "group_b"),
    *("category", "direction", "weight", "word", "cluster", "cluster_2"),
)
_Column: TypeAlias = Annotated[str, one_of(*COLUMNS)]

RECIPES = Registry(
    "recipe",
    "plumbline.eval_workers.pairs.recipes",
    ".toml",
    "plumbline.recipes",
    instead="give the path of a .toml file",
)

#: Name of a fact in `benchmark_fact` -> the field of ``Recipe`` that holds it.
FACTS = {
    **{"About": "about", "Source": "source", "Licence": "licence", "Language": "language"},
    "Citation": "citation",
}
#: Key in the metadata of a Parquet file; its value is a JSON object of facts.
IN_PARQUET = b"plumbline_facts"
#: One BibTeX entry.
_Citation: TypeAlias = Annotated[Stripped, Field(pattern=r"(?s)^@[A-Za-z]+\{[^\s,{}]+,.*\}$")]
_Licence: TypeAlias = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9.+-]*$")]
_Language: TypeAlias = Annotated[str, Field(pattern="^[a-z]{2,3}$")]


def _groups(names: tuple[str, ...]) -> tuple[str, ...]:
    are_names = all(name.strip() and "/" not in name for name in names)
    if len(set(names)) < max(2, len(names)) or not are_names:
        raise ValueError(f"{list(names)} are not two or more different names without /")
    return names


@toml_table
class Choices:
    """How to find the labelled texts in a row, and which labels sentences a and b have."""

    each: Text
    text: Text
    label: Text
    a: Annotated[Texts, Field(min_length=1)]
    b: Annotated[Texts, Field(min_length=1)]
    sentence: Text = "{choice}"


@toml_table
class Recipe:
    """One recipe: how to make pairs from rows. The module's docstring explains each field."""

    about: Text
    source: Text
    licence: _Licence | None = None
    language: _Language | None = None
    groups: Annotated[Texts, AfterValidator(_groups)] | None = None
    citation: _Citation | None = None
    location: Text | None = None
    rows: str = ""
    columns: Mapping[_Column, Text] = field(default_factory=dict)
    fixed: Mapping[_Column, Text] = field(default_factory=dict)
    only: Mapping[str, Texts] = field(default_factory=dict)
    direction: Mapping[Annotated[str, one_of("a", "b")], Texts] = field(default_factory=dict)
    choices: Choices | None = None

    def __post_init__(self) -> None:
        for name in ("group_a", "group_b"):
            if self.groups and self.fixed.get(name, self.groups[0]) not in self.groups:
                problem = f"is not one of groups ({', '.join(self.groups)})"
                raise ValueError(f"fixed.{name}: {self.fixed[name]!r} {problem}")

    def facts(self) -> dict[str, str]:
        """Return the facts that the recipe states: a map from names, such as Licence, to texts.

        >>> load("crows-pairs").facts()["Licence"]
        'cc-by-sa-4.0'
        """
        return {name: fact for name, key in FACTS.items() if (fact := getattr(self, key))}

    def filled_groups(self) -> tuple[str, ...]:
        """Return the groups to fill templates for; ``()`` if there are no templates or groups."""
        is_filled = "template" in self.columns or "template" in self.fixed
        return (self.groups or ()) if is_filled else ()


def facts_in(source: Path) -> dict[str, str]:
    """Return the facts stored in a file of `benchmark export`. Return ``{}`` for other files.

    Raises ``BadInput`` if a fact would not be valid in a recipe.
    """
    import pyarrow.parquet as pq

    path, *others = files_of(source)
    if others or path.suffix != ".parquet":
        return {}
    with reading(path), open_file(path) as raw, pq.ParquetFile(raw) as file:
        text = (file.schema_arrow.metadata or {}).get(IN_PARQUET, b"{}")
    where = f"{path}, plumbline_facts"
    try:
        facts = TypeAdapter(dict[str, str]).validate_json(text)
    except ValidationError as e:
        raise BadInput(where, "is not a JSON object of texts") from e
    stated = {key: facts[name] for name, key in FACTS.items() if name in facts}
    toml_file.checked(Recipe, {"about": "-", "source": "-", **stated}, where)
    return facts


#: The recipe for files whose columns have our names.
NO_RECIPE = Recipe("columns with our names", "their own")


def load(name: str) -> Recipe:
    """Return a recipe by its name, or by the path of its TOML file.

    Raises ``UsageProblem`` for an unknown name, and ``BadInput`` for a file that is not a recipe.

    >>> load("crows-pairs").columns["sentence_a"]
    'sent_more'
    """
    source = Path(name) if name.endswith(".toml") else RECIPES.text(name)
    return toml_file.load(Recipe, source, f"recipe {name}")
