"""Prompts to tune on and to choose an adapter by: neutral and in no test set, or as published."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.eval_workers.disclosure.neutral import gendered_problem
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.rejects import rejected
from plumbline.warehouse.storage.run_records import config_hash
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]

_TABLE = "probe_prompt"
_TAIL = re.compile(r"(?<![\s.,;:!?…])[\s.,;:!?…]*(?:\band)?[\s.,;:!?…]*$")


@dataclass(frozen=True)
class Training:
    """Rows of ``probe_prompt`` to tune on, and rows of ``reject`` (without ``run_id``) for others.

    ``dev`` are rows of ``dev_sets`` to choose an adapter by. All prompts were compared with
    ``test_sets``. ``n_leaks`` rejected prompts are in a test or dev set; ``n_leaks_kept`` of the
    prompts to tune on are in a test set.
    """

    rows: list[Row]
    rejects: list[Row]
    test_sets: tuple[str, ...]
    n_leaks: int
    n_leaks_kept: int
    dev: list[Row]
    dev_sets: tuple[str, ...]

    @property
    def hash(self) -> str:
        """Hash of the prompts in their order (16 hex digits)."""
        return config_hash({"prompts": [row["prompt"] for row in self.rows]})


def plain(prompt: str) -> str:
    """Normalise a prompt for comparison: case, white space, final punctuation and final `and`.

    >>> plain("My Friend  sings, and"), plain("my friend sings.")
    ('my friend sings', 'my friend sings')
    >>> plain("My friend likes sand, and")
    'my friend likes sand'
    """
    text = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    return _TAIL.sub("", text)


def training_prompts(
    store: Store,
    sets: Sequence[str],
    test_sets: Sequence[str] | None,
    subject: str,
    dev_sets: Sequence[str] = (),
    keep_all: bool = False,
) -> Training:
    """The prompts of ``sets`` that hold no gendered word and are in no test or dev set.

    ``test_sets`` are by default all other sets of the warehouse; their counterparts
    (``perturbed_prompt``) count too. Prompts are equal if ``plain`` gives the same text; duplicates
    are taken once. Dev prompts may not be in a test set, or hold a gendered word, either. With
    ``keep_all`` every prompt is taken, as published. ``subject`` is the rejects' subject.

    Raises ``UsageProblem`` without ``sets``, for a set that is not in the warehouse or is used
    twice, and with ``keep_all`` for a set that was imported without its gendered prompts. Raises
    ``BadInput`` when no prompt is left.
    """
    available = set(store.read(_TABLE)["probe_set"].to_pylist())
    dev = list(dict.fromkeys(dev_sets))
    others = sorted(available - {*sets, *dev})
    tests = others if test_sets is None else list(dict.fromkeys(test_sets))
    for name in (*sets, *dev, *tests):
        if name not in available:
            fix = "plumbline disclosure prompts makes them"
            raise UsageProblem(f"prompts {name!r}", "are not in the warehouse", fix)
    if not sets or set(sets) & set(tests):
        names = ", ".join(sorted(set(sets) & set(tests))) or "none"
        raise UsageProblem("training prompts", f"have to be of sets not tested on, not {names}")
    if both := set(dev) & {*sets, *tests}:
        problem = f"{', '.join(sorted(both))} is tuned or tested on"
        raise UsageProblem("dev sets", problem, "an adapter is chosen by other prompts")
    held_out = {text: f"the test set {name}" for text, name in _held_out(store, tests).items()}
    if keep_all:
        return _all_prompts(store, sets, dev, tests, held_out)
    chosen_by = _Neutral(store, dev, held_out, subject)
    leaks = {text: f"the dev set {row['probe_set']}" for text, row in chosen_by.rows.items()}
    tuned_on = _Neutral(store, sets, leaks | held_out, subject)
    rejects = [*tuned_on.rejects, *chosen_by.rejects]
    n_leaks = tuned_on.n_leaks + chosen_by.n_leaks
    for prompts, use in ((tuned_on, "tune on"), (chosen_by, "choose an adapter by")):
        if prompts.names and not prompts.rows:
            first = prompts.rejects[0]["reason"] if prompts.rejects else "the sets are empty"
            fix = "name other sets, or the test sets"
            problem = f"none is left to {use}; {first}"
            raise BadInput(f"prompts {', '.join(prompts.names)}", problem, fix)
    rows, dev_rows = list(tuned_on.rows.values()), list(chosen_by.rows.values())
    return Training(rows, rejects, tuple(tests), n_leaks, 0, dev_rows, tuple(dev))


def _all_prompts(
    store: Store,
    sets: Sequence[str],
    dev: Sequence[str],
    tests: Sequence[str],
    held_out: Mapping[str, str],
) -> Training:
    """Every prompt of the sets and of the dev sets, even if gendered or in a test set.

    Raises ``UsageProblem`` for a set that was imported without its gendered prompts.
    """
    for name in (*sets, *dev):
        reasons = store.read("reject", stage="prompts", subject=name)["reason"].to_pylist()
        if n := sum(reason.startswith("holds the gendered") for reason in reasons):
            raise UsageProblem(
                f"prompts {name!r}",
                f"lack {n:,} with gendered words, which the paper has",
                f"plumbline disclosure prompts {name} --allow-gendered",
            )
    rows, dev_rows = (
        [row for name in dict.fromkeys(names) for row in _read(store, name)]
        for names in (sets, dev)
    )
    n_kept = sum(plain(row["prompt"]) in held_out for row in rows)
    return Training(rows, [], tuple(tests), 0, n_kept, dev_rows, tuple(dev))


class _Neutral:
    """Usable prompts of some sets by their ``plain`` text, and rejects for the others.

    ``held_out``: texts that must not be taken, with their sets; ``n_leaks`` counts their rejects.
    """

    def __init__(
        self, store: Store, names: Sequence[str], held_out: Mapping[str, str], subject: str
    ) -> None:
        self.names = list(dict.fromkeys(names))
        self.rows: dict[str, Row] = {}
        self.rejects: list[Row] = []
        self.n_leaks = 0
        for row in (row for name in self.names for row in _read(store, name)):
            text = plain(row["prompt"])
            problem = gendered_problem(row["prompt"])
            if text in self.rows:
                first = self.rows[text]
                problem = f"the same prompt as {first['probe_set']} {first['prompt_id']}"
            if text in held_out:
                problem, self.n_leaks = f"is in {held_out[text]}", self.n_leaks + 1
            if problem:
                self.rejects.append(reject(row, problem, subject))
            else:
                self.rows[text] = row


def reject(row: Mapping[str, Any], reason: str, subject: str) -> Row:
    """Row of ``reject`` for a prompt that is left out."""
    return rejected(row, reason, row["prompt"], stage="tune", subject=subject)


def _held_out(store: Store, tests: Sequence[str]) -> dict[str, str]:
    """``plain`` text of each prompt and counterpart -> the first test set that has it."""
    set_of: dict[str, str] = {}
    for name in tests:
        for row in _read(store, name):
            for prompt in (row["prompt"], row["perturbed_prompt"]):
                if prompt is not None:
                    set_of.setdefault(plain(prompt), name)
    return set_of


def _read(store: Store, name: str) -> list[Row]:
    rows = store.read(_TABLE, probe_set=name).to_pylist()
    return sorted(rows, key=lambda row: str(row["prompt_id"]))
