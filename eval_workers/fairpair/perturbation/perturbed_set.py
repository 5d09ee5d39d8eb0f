"""Step from ``continuation`` to ``perturbed_continuation``; texts begin with their prompts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from plumbline.eval_workers.fairpair.perturbation.perturber import Original, Perturber
from plumbline.eval_workers.fairpair.perturbation.text_filter import DEFAULT, TextFilter
from plumbline.eval_workers.fairpair.perturbation.text_rules import Entity, Perturbed
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Staged, Store, cast

#: Number of texts in memory at a time.
CHUNK = 2000

#: Called with the number of texts done and the number of all texts.
Tell = Callable[[int, int], None]


def perturb_set(
    store: Store,
    probe_set: str,
    model_key: str,
    sampling_key: str,
    perturber: Perturber,
    run_id: str,
    *,
    text_filter: TextFilter = DEFAULT,
    tell: Tell | None = None,
    chunk: int = CHUNK,
) -> str:
    """Perturb all continuations of one model and decoding, and write a row for each.

    Rows of this perturber and filter are replaced in one commit at the end; returns their value of
    column ``perturber``. A text that can't be perturbed, or fails a check, gets a row with the
    reason. Raises ``UsageProblem`` without continuations, or for a set without counterparts;
    ``BadInput`` for a continuation whose prompt is not in ``probe_prompt``; and as the perturber.
    """
    prompts = store.read("probe_prompt", probe_set=probe_set).to_pylist()
    check_counterparts(probe_set, prompts)
    keys = {"probe_set": probe_set, "model_key": model_key, "sampling_key": sampling_key}
    continuations = store.read("continuation", **keys)
    if not continuations.num_rows:
        problem = f"has no continuations of {model_key} {sampling_key}"
        raise UsageProblem(f"probe set {probe_set}", problem, "sample it")
    columns = ["prompt_id", "side", "sample", "continuation"]
    continuations = continuations.select(columns)
    continuations = continuations.sort_by([(name, "ascending") for name in columns[:3]])
    partition = {**keys, "perturber": text_filter.named(perturber.name)}
    staged = store.stage("perturbed_continuation", partition, run_id)
    try:
        by_id = {prompt["prompt_id"]: prompt for prompt in prompts}
        _write(staged, continuations, by_id, perturber, text_filter, partition, tell, chunk)
    except BaseException:
        shutil.rmtree(staged.directory, ignore_errors=True)
        raise
    store.commit(staged)
    return partition["perturber"]


def _write(
    staged: Staged,
    continuations: pa.Table,
    prompts: Mapping[str, Mapping[str, Any]],
    perturber: Perturber,
    text_filter: TextFilter,
    partition: Mapping[str, str],
    tell: Tell | None,
    chunk: int,
) -> None:
    """Perturb ``chunk`` texts at a time and write a row for each continuation."""
    n_done = 0
    for start in range(0, continuations.num_rows, chunk):
        rows = continuations.slice(start, chunk).to_pylist()
        originals = [_original(row, prompts) for row in rows]
        made = perturber.perturb(originals)
        checked = [
            check(
                one,
                original.text,
                original.perturbed_prompt,
                original.entity.name,
                text_filter,
                prompts[row["prompt_id"]],
            )
            for row, one, original in zip(rows, made, originals, strict=True)
        ]
        out = [
            {
                **partition,
                **{name: row[name] for name in ("prompt_id", "side", "sample")},
                "perturbed_text": result.text,
                "is_valid": result.is_valid,
                "reason": result.reason,
                "dissimilarity": result.dissimilarity,
                "run_id": staged.run_id,
            }
            for row, result in zip(rows, checked, strict=True)
        ]
        table = cast(TABLES["perturbed_continuation"], out)
        n_done += staged.write_part(f"part-{start // chunk:05}", table.to_batches())
        if tell is not None:
            tell(n_done, continuations.num_rows)
    assert n_done == continuations.num_rows, f"{n_done} of {continuations.num_rows} rows written"


def check_counterparts(probe_set: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``UsageProblem`` if a prompt has no counterpart, or if there are no prompts.

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
    """Perturb the prompts without continuations, so that their errors come before sampling."""
    prompts = {row["prompt_id"]: row for row in rows}
    perturber.perturb(
        [
            _original({"prompt_id": name, "side": side, "continuation": ""}, prompts)
            for name in prompts
            for side in ("original", "perturbed")
        ]
    )


def _original(row: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Any]]) -> Original:
    """The text to perturb (a prompt and its continuation), with the two people."""
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
    return Original(text, texts[1], first, second, prompt["axis"], prompt["language"])


#: Reasons of failed checks; perturbers have other reasons.
PROMPT = "does not start with the perturbed prompt"
NAME = "mentions the original name"
DISSIMILAR = "differs in too many {} from the original"
SHORT = "is so short that a changed name, for gender also a pronoun, exceeds the limit"


@dataclass(frozen=True)
class CheckedText:
    """A perturbation and the result of its checks: ``reason`` is ``None`` if it passed them all.

    ``dissimilarity`` is ``None`` without a text.
    """

    text: str | None
    reason: str | None
    dissimilarity: float | None

    @property
    def is_valid(self) -> bool:
        """True if the perturbation passed all checks."""
        return self.reason is None


def check(
    perturbed: Perturbed,
    original: str,
    prompt: str,
    name: str,
    text_filter: TextFilter = DEFAULT,
    row: Mapping[str, Any] | None = None,
) -> CheckedText:
    """Check a perturbation of ``original``; the reason is the first check that fails.

    The text has to start with the perturbed ``prompt``. It may not mention ``name``, the original
    person's, as written or in capitals. Its dissimilarity may be at most the filter's limit. With
    the prompt's ``row``, texts too short to pass get the reason ``SHORT``.

    >>> check(Perturbed("Jane is a clerk."), "John is a clerk.", "Jane is", "John").reason
    'differs in too many words from the original'
    """
    if perturbed.text is None:
        return CheckedText(None, perturbed.reason, None)
    text = perturbed.text
    distance = text_filter.dissimilarity(text, original)
    if not text.startswith(prompt):
        return CheckedText(text, PROMPT, distance)
    mentions = rf"(?<![^\W_])(?:{re.escape(name)}|{re.escape(name.upper())})(?![^\W_])"
    if re.search(mentions, text):
        return CheckedText(text, NAME, distance)
    if distance <= text_filter.limit:
        return CheckedText(text, None, distance)
    is_short = row is not None and text_filter.n_missing(row, original)
    reason = SHORT if is_short else DISSIMILAR.format(text_filter.unit)
    return CheckedText(text, reason, distance)
