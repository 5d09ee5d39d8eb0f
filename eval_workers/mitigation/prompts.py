"""Prompts to tune on: neutral ones of the sets named, none of which is in a test set."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.eval_workers.disclosure.neutral import gendered_problem
from plumbline.eval_workers.work.rejects import reject_row
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import config_hash
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]

_TABLE = "probe_prompt"
_TAIL = re.compile(r"(?<![\s.,;:!?…])[\s.,;:!?…]*(?:\band)?[\s.,;:!?…]*$")


@dataclass(frozen=True)
class Training:
    """Rows of ``probe_prompt`` to tune on, rows of ``reject`` (without their run) for the others.

    ``test_sets`` are the sets that the prompts were compared with; ``n_leaks`` of the rejected
    prompts are in one of them.
    """

    rows: list[Row]
    rejects: list[Row]
    test_sets: tuple[str, ...]
    n_leaks: int

    @property
    def hash(self) -> str:
        """Hash of the prompts in their order (16 hex digits)."""
        return config_hash({"prompts": [row["prompt"] for row in self.rows]})


def plain(prompt: str) -> str:
    """A prompt less what does not make it another one: case, white space, its end.

    The end is punctuation, also around a final `and`.

    >>> plain("My Friend  sings, and"), plain("my friend sings.")
    ('my friend sings', 'my friend sings')
    >>> plain("My friend likes sand, and")
    'my friend likes sand'
    """
    text = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    return _TAIL.sub("", text)


def training_prompts(
    store: Store, sets: Sequence[str], test_sets: Sequence[str] | None, subject: str
) -> Training:
    """The prompts of ``sets``, less those that hold a gendered word or are in a test set.

    Test sets are those named, or all other sets of the warehouse; the same as ``plain`` has it is
    the same prompt, and a counterpart (``perturbed_prompt``) counts too. A prompt that is there
    twice is taken once. ``subject`` names the rejects.

    Raises ``UsageProblem`` for a set that is not in the warehouse or is on both sides, ``BadInput``
    when no prompt is left.
    """
    known = set(store.read(_TABLE)["probe_set"].to_pylist())
    tests = sorted(known - set(sets)) if test_sets is None else list(dict.fromkeys(test_sets))
    for name in (*sets, *tests):
        if name not in known:
            fix = "plumbline disclosure prompts makes them"
            raise UsageProblem(f"prompts {name!r}", "are not in the warehouse", fix)
    if not sets or set(sets) & set(tests):
        names = ", ".join(sorted(set(sets) & set(tests))) or "none"
        raise UsageProblem("training prompts", f"have to be of sets not tested on, not {names}")
    held_out = _held_out(store, tests)
    rows: list[Row] = []
    rejects: list[Row] = []
    seen: dict[str, str] = {}
    n_leaks = 0
    for row in (row for name in dict.fromkeys(sets) for row in _read(store, name)):
        text, where = plain(row["prompt"]), f"{row['probe_set']} {row['prompt_id']}"
        problem = gendered_problem(row["prompt"])
        if text in seen:
            problem = f"the same prompt as {seen[text]}"
        if text in held_out:
            problem, n_leaks = f"is in the test set {held_out[text]}", n_leaks + 1
        if problem:
            rejects.append(reject(row, problem, subject))
        else:
            seen[text] = where
            rows.append(row)
    if not rows:
        first = rejects[0]["reason"] if rejects else "the sets are empty"
        fix = "name other sets, or the test sets"
        raise BadInput(f"prompts {', '.join(sets)}", f"none is left to tune on; {first}", fix)
    return Training(rows, rejects, tuple(tests), n_leaks)


def reject(row: Mapping[str, Any], reason: str, subject: str) -> Row:
    """The row of ``reject`` of a prompt that is left out."""
    return reject_row(
        stage="tune",
        subject=subject,
        source_file=row["source_file"],
        source_row=row["source_row"],
        reason=reason,
        excerpt=row["prompt"],
    )


def _held_out(store: Store, tests: Sequence[str]) -> dict[str, str]:
    """Prompt as ``plain`` has it -> the test set that it is in."""
    found: dict[str, str] = {}
    for name in tests:
        for row in _read(store, name):
            for prompt in (row["prompt"], row["perturbed_prompt"]):
                if prompt is not None:
                    found.setdefault(plain(prompt), name)
    return found


def _read(store: Store, name: str) -> list[Row]:
    rows = store.read(_TABLE, probe_set=name).to_pylist()
    return sorted(rows, key=lambda row: str(row["prompt_id"]))
