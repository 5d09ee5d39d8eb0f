"""Perturbing a probe set's continuations: from ``continuation`` to ``perturbed_continuation``.

The text that is perturbed is the prompt with the continuation right behind it, as the model's text
stands; an instruction before the prompt is left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from plumbline.eval_workers.fairpair.perturbation.perturber import Perturber, Wanted
from plumbline.eval_workers.fairpair.perturbation.rules import Entity
from plumbline.eval_workers.fairpair.perturbation.validity import Checked, check
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Staged, Store, cast

#: Texts that are held and perturbed at a time.
CHUNK = 2000

#: Called with the texts done and all texts.
Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Tally:
    """Continuations of a set, and those that gave a valid perturbation."""

    n: int
    n_valid: int


def perturb_set(
    store: Store,
    probe_set: str,
    model_key: str,
    sampling_key: str,
    perturber: Perturber,
    run_id: str,
    *,
    tell: Tell | None = None,
    chunk: int = CHUNK,
) -> Tally:
    """Perturb all continuations of one model and sampling, and write a row for each.

    Rows that this perturber wrote for them before are replaced at once at the end; a run that is
    stopped leaves those as they were. A text that can't be perturbed, or fails a check, is a row
    with its reason.

    Raises ``UsageProblem`` when there are no such continuations or the set has no counterparts,
    ``BadInput`` when a continuation's prompt is not in ``probe_prompt``; what the perturber raises.
    """
    prompts = _prompts(store, probe_set)
    found = store.read(
        "continuation", probe_set=probe_set, model_key=model_key, sampling_key=sampling_key
    )
    if not found.num_rows:
        what = f"probe set {probe_set}"
        raise UsageProblem(what, f"has no continuations of {model_key} {sampling_key}", "sample it")
    columns = ["prompt_id", "side", "sample", "continuation"]
    found = found.select(columns).sort_by([(name, "ascending") for name in columns[:3]])
    partition = {
        "probe_set": probe_set,
        "model_key": model_key,
        "sampling_key": sampling_key,
        "perturber": perturber.name,
    }
    staged = store.stage("perturbed_continuation", partition, run_id)
    try:
        tally = _write(staged, found, prompts, perturber, partition, tell, chunk)
    except BaseException:
        shutil.rmtree(staged.directory, ignore_errors=True)
        raise
    store.commit(staged)
    return tally


def _write(
    staged: Staged,
    found: pa.Table,
    prompts: Mapping[str, Mapping[str, Any]],
    perturber: Perturber,
    partition: Mapping[str, str],
    tell: Tell | None,
    chunk: int,
) -> Tally:
    """Perturb in parts; a row for each continuation."""
    n_done = n_valid = 0
    for number, rows in enumerate(_chunks(found, chunk)):
        made = _perturbed(rows, prompts, perturber)
        fixed = {**partition, "run_id": staged.run_id}
        out = [{**fixed, **_row(row, checked)} for row, checked in zip(rows, made, strict=True)]
        table = cast(TABLES["perturbed_continuation"], out)
        n_done += staged.write_part(f"part-{number:05}", table.to_batches())
        n_valid += sum(checked.is_valid for checked in made)
        if tell is not None:
            tell(n_done, found.num_rows)
    assert n_done == found.num_rows, f"{n_done} rows written of {found.num_rows}"
    return Tally(n_done, n_valid)


def _prompts(store: Store, probe_set: str) -> dict[str, dict[str, Any]]:
    """Rows of the set's prompts by identifier."""
    rows = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    check_counterparts(probe_set, rows)
    return {row["prompt_id"]: row for row in rows}


def check_counterparts(probe_set: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``UsageProblem`` for prompts without a counterpart, and for none at all.

    >>> check_counterparts("novel", [])
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: probe set novel: has no prompts (perturb a set made \
from names)
    """
    needed = ("perturbed_prompt", "entity", "perturbed_entity", "axis")
    if not rows or any(row[name] is None for row in rows for name in needed):
        problem = "has prompts without a counterpart" if rows else "has no prompts"
        raise UsageProblem(f"probe set {probe_set}", problem, "perturb a set made from names")


def try_prompts(rows: Sequence[Mapping[str, Any]], perturber: Perturber) -> None:
    """Perturb the prompts alone: raises what would be raised once their continuations are there.

    For perturbers that cost nothing, before samples are drawn that they can't perturb.
    """
    prompts = {row["prompt_id"]: row for row in rows}
    wanted = [
        _wanted({"prompt_id": name, "side": side, "continuation": ""}, prompts)
        for name in prompts
        for side in ("original", "perturbed")
    ]
    perturber.perturb(wanted)


def _chunks(table: pa.Table, size: int) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size).to_pylist()


def _perturbed(
    rows: list[dict[str, Any]], prompts: Mapping[str, Mapping[str, Any]], perturber: Perturber
) -> list[Checked]:
    wanted = [_wanted(row, prompts) for row in rows]
    made = perturber.perturb(wanted)
    return [
        check(one, asked.text, asked.perturbed_prompt, asked.entity.name)
        for one, asked in zip(made, wanted, strict=True)
    ]


def _wanted(row: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Any]]) -> Wanted:
    prompt = prompts.get(row["prompt_id"])
    if prompt is None:
        problem = f"prompt {row['prompt_id']} of a continuation is not in probe_prompt"
        raise BadInput("table continuation", problem, "make the prompts again, or sample again")
    first = Entity(prompt["entity"], prompt["entity_group"] or "")
    second = Entity(prompt["perturbed_entity"], prompt["perturbed_group"] or "")
    texts = (prompt["prompt"], prompt["perturbed_prompt"])
    if row["side"] == "perturbed":
        first, second, texts = second, first, texts[::-1]
    text = texts[0] + row["continuation"]
    return Wanted(text, texts[1], first, second, prompt["axis"], prompt["language"])


def _row(row: Mapping[str, Any], checked: Checked) -> dict[str, Any]:
    return {
        "prompt_id": row["prompt_id"],
        "side": row["side"],
        "sample": row["sample"],
        "perturbed_text": checked.text,
        "is_valid": checked.is_valid,
        "reason": checked.reason,
        "dissimilarity": checked.dissimilarity,
    }
