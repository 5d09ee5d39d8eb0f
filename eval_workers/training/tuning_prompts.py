"""Choose the prompts to tune on: all prompts, or neutral prompts that are in no test set."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.eval_workers.disclosure.neutral import gendered_problem
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.run_records import config_hash
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]

_TAIL = re.compile(r"(?<![\s.,;:!?…])[\s.,;:!?…]*(?:\band)?[\s.,;:!?…]*$")


@dataclass(frozen=True)
class TuningPrompts:
    """The prompts to tune on, and the prompts that are left out.

    Attributes:
        rows: rows of ``probe_prompt`` to tune on.
        rejects: rows of ``reject`` for prompts left out, without stage, subject and run_id.
        test_sets: the test sets.
        n_leaks: number of prompts left out because they are in a test or dev set.
        n_leaks_kept: number of prompts in ``rows`` that are in a test set.
        dev: rows of the dev sets. The loss on these decides which weights are saved.
    """

    rows: list[Row]
    rejects: list[Row]
    test_sets: tuple[str, ...]
    n_leaks: int
    n_leaks_kept: int
    dev: list[Row]

    @property
    def hash(self) -> str:
        """Hash of the prompts in ``rows`` and their order (16 hex digits)."""
        return config_hash({"prompts": [row["prompt"] for row in self.rows]})


def plain(prompt: str) -> str:
    """Return a prompt in lower case, with single spaces, and without final punctuation or `and`.

    >>> plain("My Friend  sings, and"), plain("my friend sings.")
    ('my friend sings', 'my friend sings')
    >>> plain("My Friend likes sand, and")
    'my friend likes sand'
    """
    text = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    return _TAIL.sub("", text)


def tuning_prompts(
    store: Store,
    sets: Sequence[str],
    test_sets: Sequence[str] | None,
    dev_sets: Sequence[str] = (),
    keep_all: bool = False,
) -> TuningPrompts:
    """Return the prompts of ``sets`` to tune on, and the usable prompts of ``dev_sets``.

    A prompt is left out if it holds a gendered word or is in a test set. A prompt of ``sets`` is
    also left out if it is in a dev set. By default, ``test_sets`` are all other sets of the
    warehouse. A test set includes its perturbed prompts. Two prompts count as equal if ``plain``
    returns the same text for both. Equal prompts are used once. With ``keep_all``, every prompt of
    ``sets`` and ``dev_sets`` is used. Raises ``BadInput`` if no prompt is left.
    """
    rows_of: dict[str, list[Row]] = {}
    for row in store.read("probe_prompt").sort_by("prompt_id").to_pylist():
        rows_of.setdefault(row["probe_set"], []).append(row)
    others = sorted(rows_of.keys() - {*sets, *dev_sets})
    tests = tuple(others if test_sets is None else dict.fromkeys(test_sets))
    held_out: dict[str, str] = {}
    for row in (row for name in tests for row in rows_of[name]):
        for prompt in filter(None, (row["prompt"], row["perturbed_prompt"])):
            held_out.setdefault(plain(prompt), f"the test set {row['probe_set']}")
    rows, dev = (
        [row for name in dict.fromkeys(names) for row in rows_of[name]]
        for names in (sets, dev_sets)
    )
    if keep_all:
        n_kept = sum(plain(row["prompt"]) in held_out for row in rows)
        return TuningPrompts(rows, [], tests, 0, n_kept, dev)
    neutral_dev, dev_rejects = _neutral(dev, held_out, "choose an adapter by")
    leaks = {plain(row["prompt"]): f"the dev set {row['probe_set']}" for row in neutral_dev}
    neutral, rejects = _neutral(rows, leaks | held_out, "tune on")
    rejects += dev_rejects
    n_leaks = sum(reject["reason"].startswith("is in the ") for reject in rejects)
    return TuningPrompts(neutral, rejects, tests, n_leaks, 0, neutral_dev)


def _neutral(
    rows: Sequence[Row], held_out: Mapping[str, str], use: str
) -> tuple[list[Row], list[Row]]:
    """Return the usable prompts, and rows of ``reject`` for the other prompts.

    A prompt is usable if it has no gendered word, isn't in ``held_out`` and isn't a repetition. The
    keys of ``held_out`` are prompts as ``plain`` returns them, and the values describe the sets of
    these prompts. Raises ``BadInput`` if no prompt is usable. The error says what the ``use`` is.
    """
    kept: dict[str, Row] = {}
    rejects: list[Row] = []
    for row in rows:
        text = plain(row["prompt"])
        problem = gendered_problem(row["prompt"])
        if text in kept:
            problem = f"the same prompt as {kept[text]['probe_set']} {kept[text]['prompt_id']}"
        if text in held_out:
            problem = f"is in {held_out[text]}"
        if problem:
            rejects.append(rejected(row, problem, row["prompt"]))
        else:
            kept[text] = row
    if rows and not kept:
        names = ", ".join(dict.fromkeys(row["probe_set"] for row in rows))
        problem = f"none is left to {use}; the first: {rejects[0]['reason']}"
        raise BadInput(f"prompts {names}", problem, "name other sets, or other test sets")
    return list(kept.values()), rejects
