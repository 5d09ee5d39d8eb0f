"""The report's plots by name, each as a file for a paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.front.first_page import front
from plumbline.pipelines.report.model import Figure, Page
from plumbline.pipelines.report.write import data_of, make_page
from plumbline.warehouse.errors import BadInput, UsageProblem, did_you_mean

FORMATS = ("pdf", "svg", "png")
#: Prefixes of the names of the first page's plots.
_FIRST = ("lean", "slopes", "spread", "words")
_Item = TypeVar("_Item")


def figures(facts: Facts, name: str = "") -> dict[str, Figure]:
    """Every chart of the report by the stem of its file, the first page's first.

    With ``name``, only charts that may have that name are made.
    """
    is_first = not name or name.startswith(_FIRST)
    first = front(facts, Page()).figures if is_first else []
    return {figure.stem: figure for figure in (*first, *make_page(facts, name).figures)}


def figure_files(
    facts: Facts, name: str, form: str = "pdf", width_in: float = 3.3
) -> dict[str, bytes]:
    """A chart of the report as ``pdf``, ``svg`` or ``png``, ``width_in`` inches wide, and its data.

    Keys are the endings of the files; the data's are those of ``write.data_of``. Text has 8 points
    (charts of several panels are scaled as a whole), and fonts are embedded in PDF. Raises
    ``UsageProblem`` for a format or a name that doesn't exist.
    """
    from plumbline.pipelines.report.charts.theme import on_paper

    if form not in FORMATS:
        raise UsageProblem(f"format {form}", f"expected {', '.join(FORMATS)}")
    figure = named(figures(facts, name) or figures(facts), "figure", name)
    return {f".{form}": on_paper(figure.chart, form, width_in), **data_of(figure)}


def named(items: Mapping[str, _Item], kind: str, name: str) -> _Item:
    """The item with a name. Raises ``UsageProblem`` with similar names if there is none.

    >>> named({"us": 1, "pd": 2}, "figure", "pd")
    2
    """
    if name in items:
        return items[name]
    fix = did_you_mean(name, items, f"`plumbline report {kind}` lists all")
    raise UsageProblem(f"{kind} {name}", f"this warehouse has no such {kind}", fix)


def write_file(path: Path, content: bytes) -> Path:
    """Write a file, and its directory if that is missing. Raises ``BadInput`` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as e:
        problem = f"cannot be written: {e.strerror or e}"
        raise BadInput(str(path), problem, "give another --out") from e
    return path
