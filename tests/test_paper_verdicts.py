"""No row of `docs/papers.md` goes, and no verdict falls below its floor in `papers.toml`."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from typing import NamedTuple

import pytest

from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "papers.md").read_text(encoding="utf-8")
FLOORS = tomllib.loads((REPOSITORY / "tests" / "papers.toml").read_text(encoding="utf-8"))
#: From worst to best. A verdict is exact in part if ours differs in the rest.
CLASSES = ("not computable", "ours differs", "exact in part", "exact")
LEFT = "left, tag v0.2.0"


class Row(NamedTuple):
    """One row of the page's tables."""

    paper: str
    item: str
    place: str
    command: str
    verdict: str


def rows(page: str = PAGE) -> list[Row]:
    """Return the tables' rows, with the heading that each table is under."""
    found: list[Row] = []
    paper = ""
    for line in page.splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("| ") and not line.startswith("| item "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 4 and all(cells), line
            found.append(Row(paper, *cells))
    return found


def rank(verdict: str) -> tuple[int, Fraction]:
    """Return the class of a verdict or floor, and the share of figures that are exact."""
    best = next(k for k, name in enumerate(CLASSES) if verdict.startswith(name.split(" in ")[0]))
    if best >= 2:
        partly = re.search(r"in part|ours differs|not computable", verdict)
        best = 2 if partly else 3
    number = r"(\d[\d,]*)"
    share = re.match(rf"exact(?: in part)?,?(?: in| for)? {number} of {number}", verdict)
    if share is None:
        return best, Fraction(1)
    n, of = (int(text.replace(",", "")) for text in share.groups())
    return best, Fraction(n, of)


def broken(page: str) -> list[str]:
    """Return what breaks the contract: one line for each row."""
    listed = {(row.paper, row.item): row.verdict for row in rows(page)}
    floors = {
        (paper, item): floor
        for paper, items in FLOORS["floor"].items()
        for item, floor in items.items()
    }
    problems = [f"{item}: the row is missing" for _, item in floors.keys() - listed.keys()]
    for (paper, item), verdict in listed.items():
        if (paper, item) not in floors:
            problems.append(f"{item}: no floor in tests/papers.toml")
        elif verdict.startswith(LEFT):
            if item not in FLOORS["may_leave"]:
                problems.append(f"{item}: its feature doesn't leave")
        elif rank(verdict) < rank(floor := floors[paper, item]):
            problems.append(f"{item}: {verdict[:40]!r} is below {floor!r}")
    return sorted(problems)


def test_no_row_goes_and_no_verdict_falls() -> None:
    assert not broken(PAGE)


@pytest.mark.parametrize(
    ("item", "old", "new", "problem"),
    [
        ("PMI, delta", "exact by", "ours differs because", "is below 'exact'"),
        ("PMI, delta", "| PMI, delta |", "| PMI |", "the row is missing"),
        ("statistics of the sets", "66 of 70", "65 of 70", "is below 'exact in part 66 of 70'"),
    ],
)
def test_a_lower_verdict_is_noticed(item: str, old: str, new: str, problem: str) -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {item} "))
    assert old in line
    problems = broken(PAGE.replace(line, line.replace(old, new)))
    assert any(p.startswith(f"{item}: ") and p.endswith(problem) for p in problems)


def test_every_row_says_where_on_the_page_and_what_came_out() -> None:
    assert len(rows()) > 70
    place = r"(sections?|App\.|abstract)( [0-9A-H.]+)?.*"
    verdict = rf"(exact|ours differs because|not computable because|{re.escape(LEFT)})\b.*"
    for row in rows():
        assert re.fullmatch(place, row.place), row
        assert "`plumbline " in row.command or row.verdict.startswith(LEFT), row
        assert re.fullmatch(verdict, row.verdict), row
    keys = [(row.paper, row.item) for row in rows()]
    assert len(set(keys)) == len(keys)
    assert not re.search("our reading|as described|known to us|could not read", PAGE)
