"""The questions that raters answer, read from TOML or from rows of `rating_question`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field

from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.toml_file import Stripped, Texts, toml_table

#: Columns of a sheet, besides one per question.
COLUMNS = ("item", "sentence_1", "sentence_2")
#: Separator of answers in a column of `rating_question`; no answer can hold it.
_SEPARATOR = "|"


@dataclass(frozen=True)
class Question:
    """One question: ``answers`` are ordered from least to most, ``yes`` are those that affirm."""

    name: str
    wording: str
    answers: tuple[str, ...]
    yes: tuple[str, ...]

    def row(self, position: int) -> dict[str, object]:
        """The row of `rating_question` without its benchmark and run."""
        return {
            "question": self.name,
            "position": position,
            "wording": self.wording,
            "answers": _SEPARATOR.join(self.answers),
            "yes_answers": _SEPARATOR.join(self.yes),
        }


def from_row(row: Mapping[str, str]) -> Question:
    """The question of a row of `rating_question`.

    >>> one = Question("natural", "Is it?", ("no", "yes"), ("yes",))
    >>> from_row(one.row(1)) == one
    True
    """
    answers, yes = (tuple(row[c].split(_SEPARATOR)) for c in ("answers", "yes_answers"))
    return Question(row["question"], row["wording"], answers, yes)


@toml_table
class _Question:
    wording: Stripped
    answers: Annotated[
        tuple[Annotated[str, Field(pattern="^[a-z0-9][a-z0-9 -]{0,29}$")], ...],
        Field(min_length=2, title="two or more different texts of a-z, 0-9, blanks and -"),
    ]
    yes: Annotated[Texts, Field(min_length=1)]

    def __post_init__(self) -> None:
        if len(set(self.answers)) < len(self.answers):
            raise ValueError("answers holds the same answer twice")
        if not set(self.yes) < set(self.answers):
            raise ValueError("yes has to hold some of the answers, and not all of them")


@toml_table
class _QuestionsFile:
    title: Stripped
    intro: Stripped
    questions: Annotated[
        Mapping[Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,29}$")], _Question],
        Field(min_length=1, title="one or more tables such as [questions.natural]"),
    ]

    def __post_init__(self) -> None:
        for name in COLUMNS:
            if name in self.questions:
                raise ValueError(f"questions.{name} has the name of another column; rename it")


@dataclass(frozen=True)
class Questionnaire:
    """Title and introduction of a sheet, and its questions in order."""

    title: str
    intro: str
    questions: tuple[Question, ...]


def load(path: Path | None = None) -> Questionnaire:
    """The questions of a file, or those that come with Plumbline.

    Raises ``UsageProblem`` when there is no such file, ``BadInput`` with the key that is wrong.

    >>> [(q.name, q.answers) for q in load().questions]
    [('natural', ('no', 'yes')), ('neutral', ('no', 'yes'))]
    """
    file = path or resources.files("plumbline.eval_workers.pairs.ratings") / "questions.toml"
    content = toml_file.load(_QuestionsFile, file, f"questions {path or ''}".rstrip())
    questions = tuple(
        Question(name, q.wording, q.answers, q.yes) for name, q in content.questions.items()
    )
    return Questionnaire(content.title, content.intro, questions)
