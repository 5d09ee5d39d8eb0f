"""Answers of raters from CSV files: each answer is used, or rejected with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.ratings.agreement import agreement
from plumbline.eval_workers.pairs.ratings.questions import COLUMNS, Question, from_row
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.eval_workers.work.rejects import printable, reject_row
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import Record, read_text, records_of

Row = dict[str, Any]

#: Stage of the rejects; their subject is BENCHMARK/RATER.
STAGE = "ratings"


@dataclass
class Answered:
    """What a file of a rater holds: answers in = ``rows`` of `rating` + ``rejects``.

    An answer is a question of a row; one that is left empty counts too. ``n_asked`` are the answers
    that the rater's sheet asks for.
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
    """Read files into `rating` and `reject`, in place of what the same raters answered before.

    Also makes `rating_agreement` of their benchmarks anew. All files are read before anything is
    written. Raises ``UsageProblem`` without any sheets, for a missing file, and for two of one
    rater, ``BadInput`` for a file that is not of a sheet or holds no usable answer.
    """
    sheets = {row["item"]: row for row in store.read("rating_sheet").to_pylist()}
    if not sheets:
        fix = "run `plumbline benchmark export-ratings NAME`"
        raise UsageProblem("ratings", "of no benchmark were asked for", fix)
    found: dict[tuple[str, str], Answered] = {}
    for path in paths:
        one = _read(store, path, sheets)
        if (earlier := found.setdefault((one.benchmark, one.rater), one)) is not one:
            problem = f"holds answers of {one.rater}, as {earlier.path} does"
            raise UsageProblem(str(path), problem, "give one of them")
        if not one.rows:
            first = f"; the first: {one.rejects[0]['reason']}" if one.rejects else ""
            raise BadInput(str(path), f"no usable answer, {len(one.rejects)} rejected{first}")
    with store.together(run_id, "ratings"):
        for one in found.values():
            _publish(store, one, run_id)
        for benchmark in dict.fromkeys(one.benchmark for one in found.values()):
            new = [one for one in found.values() if one.benchmark == benchmark]
            raters = {one.rater for one in new}
            held = store.read("rating", benchmark=benchmark).to_pylist()
            ratings = [row for row in held if row["rater"] not in raters]
            ratings += [row for one in new for row in one.rows]
            rows = [{"benchmark": benchmark, **row, "run_id": run_id} for row in agreement(ratings)]
            store.replace("rating_agreement", rows, {"benchmark": benchmark}, run_id)
    return list(found.values())


def _publish(store: Store, one: Answered, run_id: str) -> None:
    rows, rejects = (
        [{**row, "run_id": run_id} for row in kind] for kind in (one.rows, one.rejects)
    )
    store.replace("rating", rows, {"benchmark": one.benchmark, "rater": one.rater}, run_id)
    subject = f"{one.benchmark}/{one.rater}"
    store.replace("reject", rejects, {"stage": STAGE, "subject": subject}, run_id)


def _read(store: Store, path: Path, sheets: Mapping[str, Row]) -> Answered:
    if not path.exists():
        raise UsageProblem(str(path), "no such file")
    text = read_text(path)
    header = text.partition("\n")[0]
    # Spreadsheets save with the mark that is usual in their country.
    names = header.replace('"', "").strip()
    delimiter = next((mark for mark in ";\t" if COLUMNS[0] in names.split(mark)), ",")
    records = list(records_of(text, str(path), COLUMNS[:1], delimiter))
    sheet = next((sheets[i] for r in records if (i := _item(r)) in sheets), None)
    if sheet is None:
        problem = "no row is of a sheet in this warehouse"
        first = (
            f"the first item is '{printable(_item(records[0]))}'" if records else "it has no rows"
        )
        fix = "expected items such as rater-1-001-0123abcd, as in the sheet that was sent out"
        raise BadInput(str(path), f"{problem}, {first}", fix)
    benchmark, rater = sheet["benchmark"], sheet["rater"]
    asked = store.read("rating_question", benchmark=benchmark).sort_by("position")
    n_items = store.read("rating_sheet", benchmark=benchmark, rater=rater).num_rows
    one = Answered(path, benchmark, rater, n_items * asked.num_rows)
    pairs = store.read("benchmark_pair", benchmark=one.benchmark).to_pylist()
    reader = _Reader(
        one,
        {row["question"]: from_row(row) for row in asked.to_pylist()},
        {item: row for item, row in sheets.items() if row["benchmark"] == one.benchmark},
        {pair["pair_id"]: text_id(pair) for pair in pairs},
    )
    for record in records:
        reader.take(record)
    return one


def _item(record: Record) -> str:
    return record.fields.get(COLUMNS[0], "").strip()


@dataclass
class _Reader:
    """Sorts the answers of a file's rows into used and rejected ones."""

    into: Answered
    questions: Mapping[str, Question]
    sheets: Mapping[str, Row]
    text_ids: Mapping[str, str]
    seen: dict[str, int] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """All answers of a row: one per question, and what stands in further columns."""
        item = _item(record)
        of_row = record.problem or self._problem(item)
        if of_row is None:
            self.seen[item] = record.number
        for name, given in self._given(record):
            problem = of_row or self._answer_problem(name, given, name in record.fields)
            if problem:
                self._reject(record, f"{printable(name)}: {problem}", f"{item} {given}")
            else:
                self._use(record, self.sheets[item], self.questions[name], given)

    def _given(self, record: Record) -> Iterator[tuple[str, str]]:
        for name in self.questions:
            yield name, record.fields.get(name, "").strip().lower()
        for name, value in record.fields.items():
            if name not in self.questions and name not in COLUMNS and value.strip():
                yield name, value.strip()

    def _problem(self, item: str) -> str | None:
        """Why no answer of a row counts, or ``None``."""
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

    def _answer_problem(self, name: str, given: str, has_column: bool) -> str | None:
        if name not in self.questions:
            return f"unknown question, expected {', '.join(self.questions)}"
        answers = self.questions[name].answers
        if given in answers:
            return None
        said = f"'{printable(given)}' is not an answer" if given else "no answer"
        said = said if has_column else "the file has no such column"
        return f"{said}, expected {' or '.join(answers)}"

    def _use(self, record: Record, sheet: Row, question: Question, given: str) -> None:
        known = {name: sheet[name] for name in ("benchmark", "design", "rater", "pair_id")}
        self.into.rows.append(
            {
                **known,
                "question": question.name,
                "answer": given,
                "answer_level": question.answers.index(given),
                "is_yes": given in question.yes,
                "source_file": str(self.into.path),
                "source_row": record.number,
            }
        )

    def _reject(self, record: Record, reason: str, excerpt: str) -> None:
        row = reject_row(
            stage=STAGE,
            subject=f"{self.into.benchmark}/{self.into.rater}",
            source_file=str(self.into.path),
            source_row=record.number,
            reason=reason,
            excerpt=excerpt,
        )
        self.into.rejects.append(row)
