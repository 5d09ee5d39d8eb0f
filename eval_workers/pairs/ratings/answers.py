"""Reads answers of raters from CSV files; each answer is used, or rejected with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.ratings.questions import COLUMNS, Question, from_row
from plumbline.eval_workers.pairs.ratings.rater_agreement import agreement
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.work.rejects import printable, rejected
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import Record, records

Row = dict[str, Any]

#: Stage of the rejects; their subject is BENCHMARK/RATER.
STAGE = "ratings"


@dataclass
class Answered:
    """Answers in a rater's file: ``rows`` of `rating`, and ``rejects``, including empty answers.

    ``n_asked`` is the number of answers that the rater's sheet asks for.
    """

    path: Path
    benchmark: str
    rater: str
    n_asked: int
    rows: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)

    def __str__(self) -> str:
        n_used, n_rejected = len(self.rows), len(self.rejects)
        return (
            f"{self.rater} ({self.benchmark}): {n_used + n_rejected:,} answers = {n_used:,} used + "
            f"{n_rejected:,} rejected; the sheet asks for {self.n_asked:,}"
        )


def import_answers(store: Store, paths: Sequence[Path], run_id: str) -> list[Answered]:
    """Read files into `rating` and `reject`, replacing earlier answers of the same raters.

    Updates `rating_agreement` of their benchmarks. All files are read before anything is written.
    Raises ``UsageProblem`` without any sheets in the warehouse, for a missing file, and for two
    files of one rater, ``BadInput`` for a file that belongs to no sheet or has no usable answer.
    """
    sheets = {row["item"]: row for row in store.read("rating_sheet").to_pylist()}
    if not sheets:
        fix = "run `plumbline benchmark export-ratings NAME`"
        raise UsageProblem("ratings", "the warehouse has no rating sheets", fix)
    by_rater: dict[tuple[str, str], Answered] = {}
    for path in paths:
        file = _read(store, path, sheets)
        if (earlier := by_rater.setdefault((file.benchmark, file.rater), file)) is not file:
            problem = f"holds answers of {file.rater}, as {earlier.path} does"
            raise UsageProblem(str(path), problem, "give one of them")
        if not file.rows:
            first = f"; the first: {file.rejects[0]['reason']}" if file.rejects else ""
            raise BadInput(str(path), f"no usable answer, {len(file.rejects)} rejected{first}")
    with store.together(run_id, "ratings"):
        for benchmark in dict.fromkeys(file.benchmark for file in by_rater.values()):
            new = [file for file in by_rater.values() if file.benchmark == benchmark]
            raters = {file.rater for file in new}
            stored = store.read("rating", benchmark=benchmark).to_pylist()
            ratings = [row for row in stored if row["rater"] not in raters]
            ratings += [row for file in new for row in file.rows]
            for file in new:
                _publish(store, file, run_id)
            rows = [{"benchmark": benchmark, **row, "run_id": run_id} for row in agreement(ratings)]
            store.replace("rating_agreement", rows, {"benchmark": benchmark}, run_id)
    return list(by_rater.values())


def _publish(store: Store, file: Answered, run_id: str) -> None:
    parts = (file.rows, file.rejects)
    rows, rejects = ([{**row, "run_id": run_id} for row in part] for part in parts)
    store.replace("rating", rows, {"benchmark": file.benchmark, "rater": file.rater}, run_id)
    subject = f"{file.benchmark}/{file.rater}"
    store.replace("reject", rejects, {"stage": STAGE, "subject": subject}, run_id)


def _read(store: Store, path: Path, sheets: Mapping[str, Row]) -> Answered:
    if not path.exists():
        raise UsageProblem(str(path), "no such file", "check the path")
    rows = list(records(path, COLUMNS[:1]))
    sheet = next((sheets[i] for r in rows if (i := _item(r)) in sheets), None)
    if sheet is None:
        item = printable(_item(rows[0])) if rows else ""
        first = f"the first item is '{item}'" if rows else "it has no rows"
        problem = f"no row is of a sheet in this warehouse, {first}"
        fix = "expected items such as rater-1-001-0123abcd, as in the sheet that was sent out"
        raise BadInput(str(path), problem, fix)
    benchmark, rater = sheet["benchmark"], sheet["rater"]
    questions = store.read("rating_question", benchmark=benchmark).sort_by("position")
    n_items = store.read("rating_sheet", benchmark=benchmark, rater=rater).num_rows
    answered = Answered(path, benchmark, rater, n_items * questions.num_rows)
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    reader = _AnswerReader(
        answered,
        {row["question"]: from_row(row) for row in questions.to_pylist()},
        {item: row for item, row in sheets.items() if row["benchmark"] == benchmark},
        {pair["pair_id"]: text_id(pair) for pair in pairs},
    )
    for record in rows:
        reader.take(record)
    return answered


def _item(record: Record) -> str:
    return record.fields.get(COLUMNS[0], "").strip()


@dataclass
class _AnswerReader:
    """Adds the answers of a file's rows to ``into``: to its ``rows`` or its ``rejects``."""

    into: Answered
    questions: Mapping[str, Question]
    sheets: Mapping[str, Row]
    text_ids: Mapping[str, str]
    seen: dict[str, int] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Add all answers of a row: one per question, and the values of further columns."""
        item, fields = _item(record), record.fields
        row_problem = record.problem or self._problem(item)
        if row_problem is None:
            self.seen[item] = record.number
        answers = {name: fields.get(name, "").strip().lower() for name in self.questions}
        for name, value in fields.items():
            if name not in answers and name not in COLUMNS and value.strip():
                answers[name] = value.strip()
        source = {"source_file": str(self.into.path), "source_row": record.number}
        for name, answer in answers.items():
            if problem := row_problem or self._answer_problem(name, answer, name in fields):
                reason = f"{printable(name)}: {problem}"
                subject = f"{self.into.benchmark}/{self.into.rater}"
                row = rejected(source, reason, f"{item} {answer}")
                self.into.rejects.append({"stage": STAGE, "subject": subject, **row})
            else:
                row = _row(self.sheets[item], self.questions[name], answer)
                self.into.rows.append(row | source)

    def _problem(self, item: str) -> str | None:
        """Reason to reject all answers of a row, or ``None``."""
        sheet = self.sheets.get(item)
        if sheet is None:
            return f"item '{printable(item)}' is on no sheet, expected one of {self.into.rater}'s"
        if sheet["rater"] != self.into.rater:
            return f"item {item} is on {sheet['rater']}'s sheet, expected {self.into.rater}'s"
        if item in self.seen:
            return f"item {item} was answered in row {self.seen[item]} already"
        if self.text_ids.get(sheet["pair_id"]) != sheet["text_id"]:
            return f"the sentences of item {item} have changed since, expected those of the sheet"
        return None

    def _answer_problem(self, name: str, answer: str, has_column: bool) -> str | None:
        if name not in self.questions:
            return f"unknown question, expected {', '.join(self.questions)}"
        answers = self.questions[name].answers
        if answer in answers:
            return None
        problem = f"'{printable(answer)}' is not an answer" if answer else "no answer"
        problem = problem if has_column else "the file has no such column"
        return f"{problem}, expected {' or '.join(answers)}"


def _row(sheet: Row, question: Question, answer: str) -> Row:
    return {
        **{name: sheet[name] for name in ("benchmark", "design", "rater", "pair_id")},
        "question": question.name,
        "answer": answer,
        "answer_level": question.answers.index(answer),
        "is_yes": answer in question.yes,
    }
