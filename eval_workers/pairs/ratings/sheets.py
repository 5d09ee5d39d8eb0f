"""Sheets of raters: a sample of pairs, dealt out evenly, in a random order for each rater."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

from plumbline.eval_workers.pairs.ratings.questions import Questionnaire
from plumbline.eval_workers.pairs.ratings.rater_agreement import agreement
from plumbline.eval_workers.scoring.pair_scores import text_id
from plumbline.warehouse.errors import UsageProblem, disk_problems
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import as_csv
from plumbline.warehouse.text.escape import policy_hash, terminal

Row = dict[str, Any]

_RATER = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")


@dataclass(frozen=True)
class RatingDesign:
    """Number of pairs, names of raters, and number of raters per pair.

    Attributes:
        n_per_pair: number of raters of each pair; ``None``: all raters judge the same pairs.
        with_unnatural: True to draw from pairs marked unnatural, too.
    """

    n_pairs: int
    raters: tuple[str, ...]
    n_per_pair: int | None = None
    seed: int = 0
    with_unnatural: bool = False

    @property
    def each(self) -> int:
        """Number of raters per pair."""
        return len(self.raters) if self.n_per_pair is None else self.n_per_pair

    def named(self, n_pairs: int) -> str:
        """The design's name in `rating_sheet`; ends with a hash of raters, seed and options.

        >>> design = RatingDesign(100, raters("6"))
        >>> design.named(100), RatingDesign(100, design.raters, seed=1).named(100)
        ('100 pairs, 6 of 6 raters (aa86db)', '100 pairs, 6 of 6 raters (5f2b8e)')
        """
        drawn = repr((self.raters, self.each, self.seed, self.with_unnatural))
        mark = hashlib.sha256(drawn.encode()).hexdigest()[:6]
        return f"{n_pairs} pairs, {self.each} of {len(self.raters)} raters ({mark})"


@dataclass(frozen=True)
class Sheets:
    """Rows of `rating_sheet` by rater, and the paths of all files."""

    rows: dict[str, list[Row]]
    paths: tuple[Path, ...]

    @property
    def n_pairs(self) -> int:
        """Number of pairs to judge."""
        return len({row["pair_id"] for rows in self.rows.values() for row in rows})

    @property
    def n_each(self) -> tuple[int, int]:
        """The fewest and the most pairs that a rater has."""
        counts = [len(rows) for rows in self.rows.values()]
        return min(counts), max(counts)


def raters(text: str) -> tuple[str, ...]:
    """Names of raters from a text: their number, or their names between commas.

    Raises ``UsageProblem`` for a name of other characters, and for two names equal but for case.

    >>> raters("3"), raters("ana, ben")
    (('rater-1', 'rater-2', 'rater-3'), ('ana', 'ben'))
    """
    if text.isdecimal() and 0 < int(text) < 1000:
        return tuple(f"rater-{k + 1}" for k in range(int(text)))
    names = tuple(name.strip() for name in text.split(","))
    if not all(map(_RATER.fullmatch, names)) or len({n.lower() for n in names}) < len(names):
        fix = "give a number, or different names of letters, figures, - and _, such as ana,ben"
        raise UsageProblem(f"--raters {text}", "is not a list of raters", fix)
    return names


def deal(pairs: Sequence[str], design: RatingDesign) -> dict[str, list[str]]:
    """Rater -> pairs to judge, random by the seed; each pair goes to ``design.each`` raters.

    Raters' numbers of pairs differ by at most one. Among raters with equally few pairs, the next is
    the one who shares the fewest pairs with the pair's raters so far, so that any two raters can be
    compared.

    >>> dealt = deal("abcdef", RatingDesign(6, ("x", "y", "z"), 2))
    >>> {rater: len(set(own)) for rater, own in dealt.items()}
    {'x': 4, 'y': 4, 'z': 4}
    >>> sorted("".join(p for own in dealt.values() for p in own))
    ['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd', 'e', 'e', 'f', 'f']
    """
    draw = random.Random(f"deal {design.seed}")
    dealt: dict[str, list[str]] = {rater: [] for rater in design.raters}
    n_shared = dict.fromkeys(map(frozenset, combinations(dealt, 2)), 0)
    for pair in draw.sample(list(pairs), len(pairs)):
        chosen: list[str] = []
        for _ in range(design.each):
            rater = min(
                (r for r in dealt if r not in chosen),
                key=lambda r: (
                    len(dealt[r]),
                    sum(n_shared[frozenset((r, c))] for c in chosen),
                    draw.random(),
                ),
            )
            for other in chosen:
                n_shared[frozenset((rater, other))] += 1
            chosen.append(rater)
        for rater in chosen:
            dealt[rater].append(pair)
    return dealt


def sample(pairs: Sequence[Row], design: RatingDesign) -> list[Row]:
    """The ``design.n_pairs`` pairs with the smallest hashes of seed and pair id.

    A pair added to or removed from ``pairs`` changes at most one pair of the sample. Without
    ``with_unnatural``, pairs that metrics leave out are not drawn. If there are too few, all are
    taken.
    """

    def rank(row: Row) -> bytes:
        return hashlib.sha256(f"{design.seed} {row['pair_id']}".encode()).digest()

    fit = [row for row in pairs if design.with_unnatural or row["is_natural"] is not False]
    return sorted(fit, key=rank)[: design.n_pairs]


def make(
    store: Store,
    benchmark: str,
    design: RatingDesign,
    wordings: Questionnaire,
    out: Path,
    run_id: str,
) -> Sheets:
    """Draw pairs, deal them out, store the sheets, and write a form and a CSV for each rater.

    The same options on the same pairs give the same files. Raises ``UsageProblem`` for a benchmark
    without pairs, too many raters per pair, too few pairs for all raters, and if a rater's sheet or
    the questions would change after answers were imported.
    """
    if design.each > len(design.raters):
        problem = f"there are {len(design.raters)} raters"
        fix = f"give --raters {design.each}, or --per-pair {len(design.raters)}"
        raise UsageProblem(f"{design.each} raters per pair", problem, fix)
    pairs = sample(store.read("benchmark_pair", benchmark=benchmark).to_pylist(), design)
    if not pairs:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no pair to judge", fix)
    by_id = {row["pair_id"]: row for row in pairs}
    dealt = deal(sorted(by_id), design)
    if not all(dealt.values()):
        problem = f"are too few for {len(dealt)} raters, {design.each} per pair"
        raise UsageProblem(f"{len(pairs)} pairs", problem, "name fewer raters")
    rows = {
        rater: _sheet(benchmark, rater, [by_id[i] for i in pair_ids], design.seed)
        for rater, pair_ids in dealt.items()
    }
    _store_sheets(store, benchmark, rows, design.named(len(pairs)), wordings, run_id)
    return Sheets(rows, _write(out, rows, by_id, wordings))


def _sheet(benchmark: str, rater: str, pairs: Sequence[Row], seed: int) -> list[Row]:
    """Rows of one rater's sheet: the pairs in random order, with a random sentence first."""
    draw = random.Random(f"sheet {seed} {rater}")
    rows = []
    for k, pair in enumerate(draw.sample(pairs, len(pairs)), 1):
        row = {"benchmark": benchmark, "rater": rater, "pair_id": pair["pair_id"]}
        row |= {"shown_first": draw.choice("ab"), "text_id": text_id(pair)}
        # The hash makes items of other sheets differ, so answers can't be assigned to wrong pairs.
        mark = hashlib.sha256(repr(tuple(row.values())).encode()).hexdigest()[:8]
        rows.append({**row, "item": f"{rater}-{k:03d}-{mark}", "position": k})
    return rows


def _store_sheets(
    store: Store,
    benchmark: str,
    rows: dict[str, list[Row]],
    design: str,
    wordings: Questionnaire,
    run_id: str,
) -> None:
    """Store sheets and questions. Raises ``UsageProblem`` if earlier answers don't fit them."""
    questions = [q.row(k) for k, q in enumerate(wordings.questions, 1)]
    earlier = store.read("rating_question", benchmark=benchmark).sort_by("position")
    is_changed = earlier.select(list(questions[0])).to_pylist() != questions
    answered = set(store.read("rating", benchmark=benchmark)["rater"].to_pylist())
    if answered and is_changed:
        problem = f"was judged already ({', '.join(sorted(answered))}) with other questions"
        fix = "give the same --questions, or import it under another name"
        raise UsageProblem(f"benchmark {benchmark!r}", problem, fix)
    for rater in sorted(answered & set(rows)):
        old = store.read("rating_sheet", benchmark=benchmark, rater=rater)["item"].to_pylist()
        if set(old) != {row["item"] for row in rows[rater]}:
            problem = f"has answered a sheet of {benchmark} with other pairs"
            raise UsageProblem(rater, problem, "name other raters, such as --raters ana,ben")
    with store.together(run_id, f"rating sheets of {benchmark}"):
        if is_changed:
            store.drop("rating_sheet", {"benchmark": benchmark}, run_id)
        new = [{"benchmark": benchmark, **row, "run_id": run_id} for row in questions]
        store.replace("rating_question", new, {"benchmark": benchmark}, run_id)
        for rater, items in rows.items():
            sheet = [{**row, "design": design, "run_id": run_id} for row in items]
            store.replace("rating_sheet", sheet, {"benchmark": benchmark, "rater": rater}, run_id)
        _move(store, benchmark, sorted(answered & set(rows)), design, run_id)


def _move(store: Store, benchmark: str, raters: Sequence[str], design: str, run_id: str) -> None:
    """Give these raters' ratings the design of their new sheets, and update the agreement."""
    ratings = store.read("rating", benchmark=benchmark).to_pylist()
    moved = {r["rater"] for r in ratings if r["rater"] in raters and r["design"] != design}
    if not moved:
        return
    for row in ratings:
        if row["rater"] in moved:
            row["design"] = design
    for rater in sorted(moved):
        of_rater = [row for row in ratings if row["rater"] == rater]
        store.replace("rating", of_rater, {"benchmark": benchmark, "rater": rater}, run_id)
    rows = [{"benchmark": benchmark, **row, "run_id": run_id} for row in agreement(ratings)]
    store.replace("rating_agreement", rows, {"benchmark": benchmark}, run_id)


def _write(
    out: Path, rows: dict[str, list[Row]], pairs: dict[str, Row], wordings: Questionnaire
) -> tuple[Path, ...]:
    """Write the questions as text, and for each rater a form and a CSV with the same items."""
    empty = dict.fromkeys((q.name for q in wordings.questions), "")
    paths = [out / "questions.txt"]
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        paths[0].write_text(_instructions(wordings), encoding="utf-8", newline="\n")
        for rater, sheet in rows.items():
            items = [_item(row, pairs[row["pair_id"]]) for row in sheet]
            form, table = out / f"{rater}.html", out / f"{rater}.csv"
            form.write_text(form_html(rater, items, wordings), encoding="utf-8", newline="\n")
            # utf-8-sig: spreadsheets need the byte order mark to read the file as UTF-8.
            text = as_csv([{**item, **empty} for item in items])
            table.write_text(text, encoding="utf-8-sig", newline="\n")
            paths += [form, table]
    return tuple(paths)


def _item(row: Row, pair: Row) -> dict[str, str]:
    sides = "ab" if row["shown_first"] == "a" else "ba"
    shown = {f"sentence_{k}": pair[f"sentence_{side}"] for k, side in enumerate(sides, 1)}
    return {"item": row["item"], **shown}


def _instructions(wordings: Questionnaire) -> str:
    questions = [
        f"{q.name}: {q.wording}\n  Answer with {' or '.join(q.answers)}."
        for q in wordings.questions
    ]
    end = "In the table, write your answer into the column of each question."
    return "\n\n".join([wordings.title, wordings.intro, *questions, end]) + "\n"


def form_html(rater: str, items: Sequence[Mapping[str, str]], wordings: Questionnaire) -> str:
    """The page of a rater; the same items and wordings give the same page.

    The page's content security policy forbids network requests. The browser stores the answers; the
    file to send back has a column ``item`` and one per question.

    Args:
        items: ``item``, ``sentence_1`` and ``sentence_2`` of each pair, in their order.

    >>> from plumbline.eval_workers.pairs.ratings.questions import load
    >>> item = {"item": "ana-001-0", "sentence_1": "<b>She ran.", "sentence_2": "<b>He ran."}
    >>> "<q dir=\\"auto\\">&lt;b&gt;She ran.</q>" in form_html("ana", [item], load())
    True
    """
    import jinja2
    from markupsafe import Markup

    here = resources.files(__package__)
    texts = {name: (here / f"form.{name}").read_text("utf-8") for name in ("html", "css", "js")}
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: terminal(v, lines=True) if type(v) is str else v,
    )
    environment.filters["sha256"] = policy_hash
    sheet = hashlib.sha256(" ".join(item["item"] for item in items).encode()).hexdigest()[:16]
    return environment.from_string(texts["html"]).render(
        rater=rater,
        items=items,
        wordings=wordings,
        sheet=sheet,
        style=Markup(texts["css"]),
        script=Markup(texts["js"]),
    )
