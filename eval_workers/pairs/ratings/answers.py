"""Answers of raters from CSV files: each answer is used, or rejected with its reason."""

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
from plumbline.warehouse.text.csv_rows import Record, read_text, records_of

Row = dict[str, Any]

#: Stage of the rejects; their subject is BENCHMARK/RATER.
STAGE = "ratings"


@dataclass
class Answered:
    """Answers in a rater's file: ``rows`` of `rating` + ``rejects``, empty answers among them.

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
    Raises ``UsageProblem`` without any sheets, for a missing file, and for two of one rater,
    ``BadInput`` for a file that is not of a sheet or holds no usable answer.
    """
    sheets = {row["item"]: row for row in store.read("rating_sheet").to_pylist()}
    if not sheets:
        fix = "run `plumbline benchmark export-ratings NAME`"
        raise UsageProblem("ratings", "of no benchmark were asked for", fix)
    by_rater: dict[tuple[str, str], Answered] = {}
    for path in paths:
        one = _read(store, path, sheets)
        if (earlier := by_rater.setdefault((one.benchmark, one.rater), one)) is not one:
            problem = f"holds answers of {one.rater}, as {earlier.path} does"
            raise UsageProblem(str(path), problem, "give one of them")
        if not one.rows:
            first = f"; the first: {one.rejects[0]['reason']}" if one.rejects else ""
            raise BadInput(str(path), f"no usable answer, {len(one.rejects)} rejected{first}")
    with store.together(run_id, "ratings"):
        for benchmark in dict.fromkeys(one.benchmark for one in by_rater.values()):
            new = [one for one in by_rater.values() if one.benchmark == benchmark]
            raters = {one.rater for one in new}
            held = store.read("rating", benchmark=benchmark).to_pylist()
            ratings = [row for row in held if row["rater"] not in raters]
            ratings += [row for one in new for row in one.rows]
            for one in new:
                _publish(store, one, run_id)
            rows = [{"benchmark": benchmark, **row, "run_id": run_id} for row in agreement(ratings)]
            store.replace("rating_agreement", rows, {"benchmark": benchmark}, run_id)
    return list(by_rater.values())


def _publish(store: Store, one: Answered, run_id: str) -> None:
    rows, rejects = ([{**row, "run_id": run_id} for row in of] for of in (one.rows, one.rejects))
    store.replace("rating", rows, {"benchmark": one.benchmark, "rater": one.rater}, run_id)
    subject = f"{one.benchmark}/{one.rater}"
    store.replace("reject", rejects, {"stage": STAGE, "subject": subject}, run_id)


def _read(store: Store, path: Path, sheets: Mapping[str, Row]) -> Answered:
    if not path.exists():
        raise UsageProblem(str(path), "no such file", "check the path")
    text = read_text(path)
    header = text.partition("\n")[0]
    # Spreadsheets save with the mark that is usual in their country.
    names = header.replace('"', "").strip()
    delimiter = next((mark for mark in ";\t" if COLUMNS[0] in names.split(mark)), ",")
    records = list(records_of(text, str(path), COLUMNS[:1], delimiter))
    sheet = next((sheets[i] for r in records if (i := _item(r)) in sheets), None)
    if sheet is None:
        item = printable(_item(records[0])) if records else ""
        first = f"the first item is '{item}'" if records else "it has no rows"
        problem = f"no row is of a sheet in this warehouse, {first}"
        fix = "expected items such as rater-1-001-0123abcd, as in the sheet that was sent out"
        raise BadInput(str(path), problem, fix)
    benchmark, rater = sheet["benchmark"], sheet["rater"]
    asked = store.read("rating_question", benchmark=benchmark).sort_by("position")
    n_items = store.read("rating_sheet", benchmark=benchmark, rater=rater).num_rows
    answered = Answered(path, benchmark, rater, n_items * asked.num_rows)
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    reader = _AnswerReader(
        answered,
        {row["question"]: from_row(row) for row in asked.to_pylist()},
        {item: row for item, row in sheets.items() if row["benchmark"] == benchmark},
        {pair["pair_id"]: text_id(pair) for pair in pairs},
    )
    for record in records:
        reader.take(record)
    return answered


def _item(record: Record) -> str:
    return record.fields.get(COLUMNS[0], "").strip()


@dataclass
class _AnswerReader:
    """Sorts the answers of a file's rows into used and rejected ones."""

    into: Answered
    questions: Mapping[str, Question]
    sheets: Mapping[str, Row]
    text_ids: Mapping[str, str]
    seen: dict[str, int] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """All answers of a row: one per question, and values of further columns."""
        item, fields = _item(record), record.fields
        of_row = record.problem or self._problem(item)
        if of_row is None:
            self.seen[item] = record.number
        answers = {name: fields.get(name, "").strip().lower() for name in self.questions}
        for name, value in fields.items():
            if name not in answers and name not in COLUMNS and value.strip():
                answers[name] = value.strip()
        source = {"source_file": str(self.into.path), "source_row": record.number}
        for name, answer in answers.items():
            if problem := of_row or self._answer_problem(name, answer, name in fields):
                reason = f"{printable(name)}: {problem}"
                subject = f"{self.into.benchmark}/{self.into.rater}"
                row = rejected(source, reason, f"{item} {answer}")
                self.into.rejects.append({"stage": STAGE, "subject": subject, **row})
            else:
                row = _row(self.sheets[item], self.questions[name], answer)
                self.into.rows.append(row | source)

    def _problem(self, item: str) -> str | None:
        """Reason why no answer of a row counts, or ``None``."""
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
