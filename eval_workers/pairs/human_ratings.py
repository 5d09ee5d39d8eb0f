"""Imports people's answers about pairs from CSV files, and computes how far the people agree.

Each answer is used, or rejected with a reason. Agreement is Krippendorff's alpha, with an interval
from resampled pairs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import krippendorff
import numpy as np
import numpy.typing as npt

from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import printable, records, rejected
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.step import Row
from plumbline.warehouse.storage.store import Store

#: Stage of the rejects; a reject's subject is BENCHMARK/RATER.
STAGE = "ratings"
#: The possible answers to every question, in ascending order.
ANSWERS = ("no", "yes")
#: Columns that every file needs; any column not named here or in ``_FURTHER`` is a question.
NEEDED = ("benchmark", "pair_id")
_SENTENCES = ("sentence_1", "sentence_2")
_FURTHER = ("rater", "item", *_SENTENCES)
_QUESTION = re.compile("[a-z][a-z0-9_]{0,29}")
_RATER = re.compile(r"[\w. -]{1,40}")

_N_RESAMPLES = 2_000
#: An interval needs at least this many pairs with two answers.
_FEWEST_PAIRS = 10
#: An interval needs a defined alpha in at least this share of the resamples.
_LEAST_DEFINED = 0.95
#: Query for the share of yes answers and the agreement, by question.
_FIGURES = """
SELECT s.*, a.alpha, a.alpha_low, a.alpha_high,
    (SELECT string_agg(DISTINCT r.rater, ', ' ORDER BY r.rater) FROM rating AS r
     WHERE r.benchmark = s.benchmark AND r.question = s.question) AS raters
FROM rating_share AS s
JOIN rating_agreement AS a USING (benchmark, question)
WHERE s.benchmark = $benchmark
ORDER BY s.question
"""


@dataclass
class RaterAnswers:
    """One rater's answers: the usable ones in ``rows``, and the others in ``rejects``."""

    path: Path
    benchmark: str
    rater: str
    rows: list[Row] = field(default_factory=list)
    rejects: list[Row] = field(default_factory=list)

    def __str__(self) -> str:
        n_used, n_rejected = len(self.rows), len(self.rejects)
        counts = f"{n_used + n_rejected:,} answers = {n_used:,} used + {n_rejected:,} rejected"
        return f"{self.rater} ({self.benchmark}): {counts}"


def import_answers(store: Store, paths: Sequence[Path], run_id: str) -> list[RaterAnswers]:
    """Read raters' files into `rating` and `reject`, replacing earlier answers of these raters.

    Also updates `rating_agreement` for the files' benchmarks. Reads all files before it writes.
    Raises ``UsageProblem`` if a file is missing or two files are from the same rater. Raises
    ``BadInput`` if a file has no questions or no usable answer, or if its benchmark isn't in the
    warehouse.
    """
    by_rater: dict[tuple[str, str], RaterAnswers] = {}
    for path in paths:
        file = _read(store, path)
        if (earlier := by_rater.setdefault((file.benchmark, file.rater), file)) is not file:
            problem = f"holds answers of {file.rater}, as {earlier.path} does"
            raise UsageProblem(str(path), problem, "give one of them")
        if not file.rows:
            first = f"; the first: {file.rejects[0]['reason']}" if file.rejects else ""
            raise BadInput(str(path), f"no usable answer, {len(file.rejects)} rejected{first}")
    with store.transaction(run_id, "ratings"):
        for (benchmark, rater), file in by_rater.items():
            store.replace("rating", file.rows, {"benchmark": benchmark, "rater": rater}, run_id)
            subject = {"stage": STAGE, "subject": f"{benchmark}/{rater}"}
            store.replace("reject", file.rejects, subject, run_id)
        for benchmark in dict.fromkeys(benchmark for benchmark, _ in by_rater):
            stored = store.read("rating", benchmark=benchmark).to_pylist()
            ratings = [row for row in stored if (benchmark, row["rater"]) not in by_rater]
            files = (file for (name, _), file in by_rater.items() if name == benchmark)
            ratings += [{**row, "rater": file.rater} for file in files for row in file.rows]
            found = agreement(ratings)
            store.replace("rating_agreement", found, {"benchmark": benchmark}, run_id)
    return list(by_rater.values())


def _read(store: Store, path: Path) -> RaterAnswers:
    if not path.exists():
        raise UsageProblem(str(path), "no such file", "check the path")
    rows = list(records(path, NEEDED))
    first = next((row.fields for row in rows if row.problem is None), {})
    questions = [n for n in first if n and n not in (*NEEDED, *_FURTHER)]
    if not questions:
        problem = "has no answers" if first else "has no rows"
        raise BadInput(str(path), problem, "expected a column for each question, such as natural")
    if odd := next((name for name in questions if not _QUESTION.fullmatch(name)), ""):
        problem = f"column '{printable(odd)}' can't name a question"
        raise BadInput(str(path), problem, "expected a-z, 0-9 and _")
    benchmark = first["benchmark"].strip()
    pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
    if not pairs:
        problem = f"no pairs of benchmark '{printable(benchmark)}' are in this warehouse"
        raise BadInput(str(path), problem, "import it first, or correct the column benchmark")
    rater = first.get("rater", "").strip() or path.stem
    if not _RATER.fullmatch(rater):
        raise BadInput(str(path), f"'{printable(rater)}' can't name a rater", "such as ana")
    by_id = {pair["pair_id"]: pair for pair in pairs}
    answered, seen = RaterAnswers(path, benchmark, rater), dict[str, int]()
    for record in rows:
        fields = {name: value.strip() for name, value in record.fields.items()}
        pair_id = fields.get("pair_id", "")
        row_problem = record.problem or _row_problem(answered, fields, by_id.get(pair_id), seen)
        if row_problem is None:
            seen[pair_id] = record.number
        source = {"source_file": str(path), "source_row": record.number}
        for question in questions:
            answer = fields.get(question, "").lower()
            reason = row_problem
            if reason is None and answer not in ANSWERS:
                problem = f"'{printable(answer)}' is not an answer" if answer else "no answer"
                reason = f"{problem}, expected {' or '.join(ANSWERS)}"
            if reason is not None:
                excerpt = f"{pair_id} {answer}"
                answered.rejects.append(rejected(source, f"{question}: {reason}", excerpt))
                continue
            level = ANSWERS.index(answer)
            said = {"pair_id": pair_id, "question": question, "answer": answer}
            said |= {"answer_level": level, "is_yes": level > 0}
            answered.rows.append({**said, **source})
    return answered


def _row_problem(
    file: RaterAnswers, fields: Mapping[str, str], pair: Row | None, seen: Mapping[str, int]
) -> str | None:
    """Return why a row is rejected, or ``None``. ``seen`` maps pair ids to earlier row numbers."""
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
        return f"the sentences of pair {pair_id} have changed"
    return None


def alpha(counts: npt.ArrayLike) -> float:
    """Return Krippendorff's alpha for ordered answers.

    Alpha is 1 for full agreement and 0 for agreement by chance. This is the ordinal form of
    Krippendorff, *Content Analysis* (2004), chapter 11. ``counts[pair, answer]`` is the number of
    raters who gave the answer, with answers in ascending order. Pairs with fewer than two answers
    are ignored. Alpha is NaN if all remaining answers are the same.

    >>> round(alpha([[2, 0], [0, 2], [1, 1]]), 3)  # 1 - 2 * 5 / (2 * 3 * 3)
    0.444
    >>> alpha([[2, 0], [1, 0]])
    nan
    """
    n = np.asarray(counts)
    n = n[n.sum(1) > 1]
    if np.count_nonzero(n.any(0)) < 2:
        return math.nan
    return float(krippendorff.alpha(value_counts=n, level_of_measurement="ordinal"))


def agreement(ratings: Sequence[Row]) -> list[Row]:
    """Return a row of `rating_agreement` for each question, without ``benchmark`` and ``run_id``.

    ``ratings`` are rows of `rating`. The 95% interval is a percentile bootstrap that resamples
    pairs. The interval is NULL if fewer than ten pairs have two answers, or if alpha is undefined
    in more than 5% of the resamples.

    >>> ask = lambda rater, pair, level: {"rater": rater, "pair_id": pair, "question": "natural",
    ...                                   "answer_level": level}
    >>> [row] = agreement([ask(r, p, int(p == "x")) for r in "ab" for p in "xyz"])
    >>> row["alpha"], row["n_pairs"], row["n_answers"]
    (1.0, 3, 6)
    """
    by_question: dict[str, list[Row]] = {}
    for row in ratings:
        by_question.setdefault(row["question"], []).append(row)
    return [{"question": question, **_of_question(rows)} for question, rows in by_question.items()]


def _of_question(rows: Sequence[Row]) -> Row:
    places = {pair: k for k, pair in enumerate(sorted({row["pair_id"] for row in rows}))}
    counts = np.zeros((len(places), len(ANSWERS)), np.int64)
    for row in rows:
        counts[places[row["pair_id"]], row["answer_level"]] += 1
    counts = counts[counts.sum(1) > 1]
    value, n = alpha(counts), len(counts)
    low, high = _interval(counts) if n >= _FEWEST_PAIRS else (None, None)
    return {
        "n_raters": len({row["rater"] for row in rows}),
        "n_pairs": n,
        "n_answers": int(counts.sum()),
        "alpha": None if math.isnan(value) else value,
        "alpha_low": low,
        "alpha_high": high,
    }


def _interval(counts: npt.NDArray[np.int64]) -> tuple[float | None, float | None]:
    """Return alpha's interval; both ends are ``None`` if too many resamples have no alpha."""
    n = len(counts)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _N_RESAMPLES)
    resampled = np.array([alpha(np.repeat(counts, times, 0)) for times in drawn])
    defined = resampled[~np.isnan(resampled)]
    if len(defined) < _LEAST_DEFINED * _N_RESAMPLES:
        return None, None
    low, high = np.quantile(defined, (0.025, 0.975)).tolist()
    return low, high


def people_say(root: Path, benchmark: str) -> dict[str, str]:
    """Describe each question in a line: the raters, the share of yes answers, and agreement."""
    facts = {}
    for row in rows_of(root, _FIGURES, {"benchmark": benchmark}):
        alpha = "undefined" if row["alpha"] is None else f"{row['alpha']:.2f}"
        if row["alpha_low"] is not None:
            alpha += f" ({row['alpha_low']:.2f} to {row['alpha_high']:.2f})"
        facts[f"People on `{row['question']}`"] = (
            f"{row['raters']}: on average {100 * row['mean_share']:.1f}% said yes, over "
            f"{row['n_pairs']:,} pairs; Krippendorff's alpha {alpha}"
        )
    return facts
