"""What ``sql/`` offers to people, read from its files: worked questions, views and functions.

``docs/sql.md`` is filled from here (``python -m plumbline.warehouse.query.reference docs/sql.md``),
and the shell shows the questions from here, so that neither can differ from what runs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from plumbline.warehouse.query.connection import sql, sql_names

_GRAIN = "-- grain: "
_CREATE = re.compile(
    r"^CREATE OR REPLACE (VIEW|MACRO) (\w+)(\(.*?\))? AS( TABLE\b)?", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Question:
    """A worked question: its number from 1, the question, what the answer means, the query."""

    number: int
    question: str
    meaning: str
    query: str


@dataclass(frozen=True)
class Entry:
    """A view, table macro or function: how it is written, its kind, grain and description.

    ``grain`` is empty for functions, which have no rows. The description ends at the comment's
    first empty line.
    """

    signature: str
    kind: str
    grain: str
    description: str


def questions() -> list[Question]:
    """The worked questions of ``sql/examples`` in their order.

    >>> questions()[0].question
    'Which words lean most to each side?'
    """
    found = []
    for number, name in enumerate(sql_names("examples"), 1):
        comment, query = _comment(sql(name))
        # The first line states the grain for maintainers, the second asks.
        found.append(Question(number, comment[1], " ".join(comment[2:]), query))
    return found


def entries() -> list[Entry]:
    """Every view and macro of ``sql/views``, with the comment of its paragraph.

    >>> [e.kind for e in entries() if e.signature.startswith("us(")]
    ['function']
    """
    found = []
    for name in sql_names("views"):
        text = sql(name)
        grain = text.split("\n", 1)[0].removeprefix(_GRAIN)
        for paragraph in text.split("\n\n"):
            comment, code = _comment(paragraph)
            told = comment[: comment.index("")] if "" in comment else comment
            description = " ".join(line for line in told if not line.startswith("grain: "))
            for what, named, parameters, is_table in _CREATE.findall(code):
                kind = "view" if what == "VIEW" else "table macro" if is_table else "function"
                signature = named + " ".join(parameters.split()).replace("( ", "(")
                of_kind = "" if kind == "function" else grain
                found.append(Entry(signature.replace(" )", ")"), kind, of_kind, description))
    return found


def _comment(text: str) -> tuple[list[str], str]:
    """The leading comment lines, without their dashes, and the rest."""
    lines = text.strip().splitlines()
    n = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return [line[2:].strip() for line in lines[:n]], "\n".join(lines[n:])


def _reference_markdown() -> str:
    titles = {"view": "Views", "table macro": "Table macros", "function": "Functions"}
    parts = []
    for kind, title in titles.items():
        lines = [f"### {title}", ""]
        last = ""
        for entry in (e for e in entries() if e.kind == kind):
            grain = f" A row a {entry.grain}." if entry.grain else ""
            # Functions of one paragraph share its comment; it is told once.
            told = "" if entry.description == last else f" {entry.description}"
            last = entry.description
            lines.append(f"- `{entry.signature}`{':' if grain or told else ''}{grain}{told}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _questions_markdown() -> str:
    return "\n\n".join(
        f"### {q.number}. {q.question}\n\n{q.meaning}\n\n```sql\n{q.query}\n```"
        for q in questions()
    )


def filled(document: str) -> str:
    """``document`` with the text between the marks ``reference`` and ``questions`` made anew.

    >>> filled("<!-- questions: begin -->old<!-- questions: end -->").count("```sql")
    14
    """
    made = {"reference": _reference_markdown, "questions": _questions_markdown}
    for name, make in made.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin in document:
            head, rest = document.split(begin)
            document = f"{head}{begin}\n\n{make()}\n\n{end}{rest.split(end)[1]}"
    return document


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
