"""Recipes: how the rows of a data set become pairs, in a few lines of TOML.

Ours are in ``recipes``; other packages add theirs through entry points of ``plumbline.recipes``. A
recipe says which column is which, and what is the same for every row::

    about = "what the data set is"
    source = "where it comes from"
    location = "name/file.csv"   # under PLUMBLINE_DATA; optional
    rows = "data.items"          # place of the list of rows in a JSON document; optional

    [columns]                    # ours = theirs; a.b is b in a
    sentence_a = "sent_more"
    [fixed]                      # the same for every row
    group_a = "stereotype"
    [only]                       # rows with other values are rejected
    context_condition = ["ambig"]
    [direction]                  # values of the column `direction` that mean a or b
    a = ["stereo"]

    [choices]                    # where a row lists several texts with labels
    each = "sentences"           # a list in the row, or: texts = [...], labels = [...]
    text = "sentence"
    label = "gold_label"
    a = ["stereotype"]           # labels of sentence a, or: a_in = "column with such labels"
    b = ["anti-stereotype"]      # or: neither = [...], what is left being b
    same = [["F", "woman"]]      # labels that mean the same
    sentence = "{context} {choice}"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.plugins import Registry
from plumbline.warehouse.text.toml_file import Section, parsed, read_text

#: What a recipe may take from a column, or say of every row.
COLUMNS = (
    *("id", "item", "sentence_a", "sentence_b", "template", "group_a", "group_b"),
    *("category", "direction", "weight", "word", "cluster", "cluster_2"),
)
_PARTS = ("about", "source", "location", "rows", "columns", "fixed", "only", "direction", "choices")
_CHOICES = ("each", "text", "label", "texts", "labels", "a", "b", "a_in", "neither", "same")

RECIPES = Registry(
    *("recipe", "plumbline.eval_workers.benchmarks.own.recipes", ".toml", "plumbline.recipes"),
    instead="give the path of a .toml file",
)


@dataclass(frozen=True)
class Choices:
    """The texts of a row of which two make the pair, and how their labels tell which two."""

    each: str = ""
    text: str = ""
    label: str = ""
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    a: tuple[str, ...] = ()
    b: tuple[str, ...] = ()
    a_in: str = ""
    neither: tuple[str, ...] = ()
    same: tuple[tuple[str, ...], ...] = ()
    sentence: str = "{choice}"


@dataclass(frozen=True)
class Recipe:
    """How rows become pairs; without anything in it, columns have our names."""

    name: str = ""
    about: str = ""
    source: str = ""
    location: str | None = None
    rows: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    direction: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    choices: Choices | None = None

    def with_columns(self, given: Sequence[str]) -> Recipe:
        """With further ``ours=theirs``, which replace the recipe's own.

        A second ``cluster`` is the pair's other one. Raises ``UsageProblem`` for anything else,
        naming the columns that there are.

        >>> Recipe().with_columns(["sentence_a=Old sentence"]).columns
        {'sentence_a': 'Old sentence'}
        """
        columns = dict(self.columns)
        free = ["cluster", "cluster_2"]
        for text in given:
            ours, is_pair, theirs = text.partition("=")
            if ours == "cluster":
                if not free:
                    raise UsageProblem(f"--column {text}", "a pair has at most two clusters")
                ours = free.pop(0)
            if not is_pair or ours not in COLUMNS or not theirs:
                known = f"expected OURS=THEIRS, where OURS is one of {', '.join(COLUMNS)}"
                raise UsageProblem(f"--column {text}", "is not a column", known)
            columns[ours] = theirs
        return replace(self, columns=columns)


def load(name: str) -> Recipe:
    """A recipe by name, or by the path of a TOML file.

    Raises ``UsageProblem`` for one that there isn't, ``BadInput`` for one that is not a recipe.

    >>> load("crows-pairs").columns["sentence_a"]
    'sent_more'
    """
    if name.endswith(".toml"):
        what = f"recipe {name}"
        return _parse(Path(name).stem, read_text(Path(name), what), what)
    return _parse(name, RECIPES.text(name), f"recipe {name}")


def _parse(name: str, text: str, what: str) -> Recipe:
    top = Section(what, parsed(text, what))
    top.only(*_PARTS)
    columns, fixed = (_texts(top.section(key), COLUMNS) for key in ("columns", "fixed"))
    only = {key: _values(top.section("only"), key) for key in top.section("only").content}
    direction = top.section("direction")
    direction.only("a", "b")
    choices = _choices(top.section("choices")) if "choices" in top.content else None
    return Recipe(
        name,
        top.text("about"),
        top.text("source"),
        top.text("location") if "location" in top.content else None,
        top.text("rows") if "rows" in top.content else "",
        columns,
        fixed,
        only,
        {side: _values(direction, side) for side in direction.content},
        choices,
    )


def _texts(section: Section, known: Sequence[str]) -> dict[str, str]:
    section.only(*known)
    return {key: section.text(key) for key in section.content}


def _values(section: Section, key: str) -> tuple[str, ...]:
    return section.texts(key)


def _choices(section: Section) -> Choices:
    section.only(*_CHOICES, "sentence")
    found = section.content.get("same", [])
    if not isinstance(found, list) or not all(isinstance(s, list) and s for s in found):
        raise section.fault("same", "a list of lists of labels")

    def one(key: str) -> str:
        return section.text(key) if key in section.content else ""

    made = Choices(
        each=one("each"),
        text=one("text"),
        label=one("label"),
        texts=section.texts("texts", ()),
        labels=section.texts("labels", ()),
        a=section.texts("a", ()),
        b=section.texts("b", ()),
        a_in=one("a_in"),
        neither=section.texts("neither", ()),
        same=tuple(tuple(map(str, labels)) for labels in found),
        sentence=section.text("sentence", "{choice}"),
    )
    if not made.each and len(made.texts) < 2:
        raise section.fault("each", "a list in the row, or texts and labels")
    if len(made.texts) != len(made.labels):
        raise section.fault("labels", "one for each of texts")
    if bool(made.a) == bool(made.a_in):
        raise section.fault("a", "labels, or a_in and a column")
    return made
