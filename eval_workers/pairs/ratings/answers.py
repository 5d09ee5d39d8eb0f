"""Reads answers of raters from CSV files; each answer is used, or rejected with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.ratings.rater_agreement import agreement
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import printable, records, rejected
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]

#: Stage of the rejects; their subject is BENCHMARK/RATER.
STAGE = "ratings"
#: The answers to every question, from least to most.
ANSWERS = ("no", "yes")
#: Columns that every file needs, and further ones that are no questions.
NEEDED = ("benchmark", "pair_id")
_SENTENCES = ("sentence_1", "sentence_2")
_FURTHER = ("rater", "design", "item", *_SENTENCES)
_QUESTION = re.compile("[a-z][a-z0-9_]{0,29}")
_RATER = re.compile(r"[\w. -]{1,40}")


@dataclass
class Answered:
    """Answers in a rater's file: ``rows`` of `rating`, and ``rejects``, including empty answers."""

    path: Path
    benchmark: str
    rater: str
    rows: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)

    def __str__(self) -> str:
        n_used, n_rejected = len(self.rows), len(self.rejects)
        return (
            f"{self.rater} ({self.benchmark}): {n_used + n_rejected:,} answers = {n_used:,} used + "
            f"{n_rejected:,} rejected"
        )


def import_answers(store: Store, paths: Sequence[Path], run_id: str) -> list[Answered]:
    """Read files into `rating` and `reject`, replacing earlier answers of the same raters.

    Updates `rating_agreement` of their benchmarks. All files are read before anything is written.
    Raises ``UsageProblem`` for a missing file, and for two files of one rater, ``BadInput`` for a
    file without questions, of no benchmark in the warehouse, or without a usable answer.
    """
    by_rater: dict[tuple[str, str], Answered] = {}
    for path in paths:
        file = _read(store, path)
        if (earlier := by_rater.setdefault((file.benchmark, file.rater), file)) is not file:
            problem = f"holds answers of {file.rater}, as {earlier.path} does"
            raise UsageProblem(str(path), problem, "give one of them")
        if not file.rows:
            first = f"; the first: {file.rejects[0]['reason']}" if file.rejects else ""
            raise BadInput(str(path), f"no usable answer, {len(file.rejects)} rejected{first}")
    with store.transaction(run_id, "ratings"):
        for benchmark in dict.fromkeys(file.benchmark for file in by_rater.values()):
            new = [file for file in by_rater.values() if file.benchmark == benchmark]
            raters = {file.rater for file in new}
            stored = store.read("rating", benchmark=benchmark).to_pylist()
            ratings = [row for row in stored if row["rater"] not in raters]
            ratings += [row for file in new for row in file.rows]
            for file in new:
                kept = ({**row, "run_id": run_id} for row in file.rows)
                rejects = [{**row, "run_id": run_id} for row in file.rejects]
                where = {"benchmark": benchmark, "rater": file.rater}
                store.replace("rating", [*kept], where, run_id)
                subject = {"stage": STAGE, "subject": f"{benchmark}/{file.rater}"}
                store.replace("reject", rejects, subject, run_id)
            rows = [{"benchmark": benchmark, **row, "run_id": run_id} for row in agreement(ratings)]
            store.replace("rating_agreement", rows, {"benchmark": benchmark}, run_id)
    return list(by_rater.values())


def _read(store: Store, path: Path) -> Answered:
    if not path.exists():
        raise UsageProblem(str(path), "no such file", "check the path")
    rows = list(records(path, NEEDED))
    first = next((row.fields for row in rows if row.problem is None), {})
    questions = [n for n in first if n and n not in (*NEEDED, *_FURTHER)]
    if not questions:
        problem = "has no answers" if first else "has no rows"
        raise BadInput(str(path), problem, "expected a column for each question, such as natural")
    benchmark = first["benchmark"].strip()
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    if not pairs:
        problem = f"no pairs of benchmark '{printable(benchmark)}' are in this warehouse"
        raise BadInput(str(path), problem, "import it first, or mend the column benchmark")
    rater = first.get("rater", "").strip() or path.stem
    if not _RATER.fullmatch(rater):
        raise BadInput(str(path), f"'{printable(rater)}' can't name a rater", "expected ana")
    by_id = {pair["pair_id"]: pair for pair in pairs}
    answered, seen = Answered(path, benchmark, rater), dict[str, int]()
    for record in rows:
        fields = {name: value.strip() for name, value in record.fields.items()}
        pair_id = fields.get("pair_id", "")
        row_problem = record.problem or _row_problem(answered, fields, by_id.get(pair_id), seen)
        if row_problem is None:
            seen[pair_id] = record.number
        source = {"source_file": str(path), "source_row": record.number}
        for question in questions:
            answer = fields.get(question, "").lower()
            unusable = row_problem or _answer_problem(question, answer)
            if unusable is not None:
                reason = f"{printable(question)}: {unusable}"
                row = rejected(source, reason, f"{pair_id} {answer}")
                subject = {"stage": STAGE, "subject": f"{benchmark}/{rater}"}
                answered.rejects.append({**subject, **row})
                continue
            about = {"benchmark": benchmark, "rater": rater, "pair_id": pair_id}
            level = ANSWERS.index(answer)
            said = {"question": question, "answer": answer, "answer_level": level}
            said |= {"design": printable(fields.get("design", "")) or None, "is_yes": level > 0}
            answered.rows.append({**about, **said, **source})
    return answered


def _row_problem(
    file: Answered, fields: Mapping[str, str], pair: Row | None, seen: Mapping[str, int]
) -> str | None:
    """Reason to reject all answers of a row about ``pair``; ``seen``: pair id -> earlier row."""
    if fields["benchmark"] != file.benchmark:
        return f"the row is of another benchmark, expected {file.benchmark}"
    if (rater := fields.get("rater", "")) not in ("", file.rater):
        return f"the row is of {printable(rater)}, expected {file.rater}"
    if pair is None:
        return f"no pair has the pair_id '{printable(fields['pair_id'])}'"
    if (pair_id := fields["pair_id"]) in seen:
        return f"pair {pair_id} was answered in row {seen[pair_id]} already"
    shown = {fields[name] for name in _SENTENCES if name in fields}
    if not shown <= {pair["sentence_a"].strip(), pair["sentence_b"].strip()}:
        return f"the sentences of pair {pair_id} are others today"
    return None


def _answer_problem(question: str, answer: str) -> str | None:
    if not _QUESTION.fullmatch(question):
        return "no name of a question, expected a-z, 0-9 and _"
    if answer in ANSWERS:
        return None
    problem = f"'{printable(answer)}' is not an answer" if answer else "no answer"
    return f"{problem}, expected {' or '.join(ANSWERS)}"
