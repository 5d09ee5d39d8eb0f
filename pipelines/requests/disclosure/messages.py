"""What the commands of disclosure say at the end: figures, losses, what was left out and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from plumbline.eval_workers.disclosure.measure import Disclosed
from plumbline.eval_workers.mitigation.card import tuned_by
from plumbline.pipelines.report.model import digits_of, estimate
from plumbline.pipelines.requests import DEFAULT_WAREHOUSE, command_path
from plumbline.pipelines.requests.disclosure import DisclosureOutcome, DisclosureRequest
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.storage.store import Store

Row = Mapping[str, Any]

_HEADINGS = ("GAS, %", "GAS (F), %", "GLD", "ADD, nats")
_REASONS = 3


def reasons(rejects: Sequence[Row]) -> str:
    """The commonest reasons of rejects, those alike but for a word or a number told as one.

    >>> causes = ["has 3 fields", "has 4 fields", "is empty"]
    >>> reasons([{"reason": reason} for reason in causes])
    '"has 3 fields" and alike (2), "is empty" (1)'
    >>> reasons([])
    ''
    """
    found: dict[str, list[str]] = {}
    for row in rejects:
        # Several words are the same reason as one.
        kind = re.sub(r"words?( '[^']*',?)+|\d+", "", str(row["reason"]))
        found.setdefault(kind, []).append(str(row["reason"]))
    kinds = sorted(found.values(), key=lambda alike: -len(alike))
    listed = [
        f'"{alike[0]}"{" and alike" if len(set(alike)) > 1 else ""} ({len(alike):,})'
        for alike in kinds[:_REASONS]
    ]
    return ", ".join([*listed, *(["..."] if len(kinds) > _REASONS else [])])


def after_probe(
    request: DisclosureRequest, outcome: DisclosureOutcome, store: Store
) -> Iterator[str]:
    """Closing lines of measuring."""
    yield from figures(request, outcome.measured, store)
    tables = "pronoun_probability, continuation, attribute_pair"
    yield f"Wrote {tables} in {store.root}"
    if outcome.page:
        yield f"Wrote {outcome.page}"
    where = command_path(store.root, DEFAULT_WAREHOUSE, "--warehouse")
    e = f"smoothing := {request.options.smoothing:g}" if request.options.smoothing else ""
    yield f'Next: open the report, or plumbline sql{where} "FROM disclosure({e})"'


def after_tune(
    request: DisclosureRequest, outcome: DisclosureOutcome, store: Store
) -> Iterator[str]:
    """Closing lines of tuning."""
    (row,) = store.read("tuning", tuning=outcome.tuned).to_pylist()
    state = "was there already" if outcome.reused else f"tuned in {row['seconds']:.0f} s"
    yield (
        f"{row['tuning']}, {row['n_parameters']:,} parameters for {row['base']} in "
        f"{row['layers']}: {row['n_steps']:,} steps on {row['n_prompts']:,} prompts of "
        f"{row['probe_sets']}, {state}"
    )
    yield f"  {tuned_by(row)}"
    for name, column, unit in (
        ("L_d", "distance", "_nats"),
        ("L_g", "total", ""),
        ("L_l", "difference", ""),
    ):
        start, end = (row[f"{column}_{when}{unit}"] for when in ("start", "end"))
        weight = row[f"{column}_weight"]
        yield f"  {name} ({column}, weight {weight:g}): {start:.4g} -> {end:.4g}"
    if row["chosen_step"] is not None:
        yield (
            f"  the adapter is that of step {row['chosen_step']:,}: its loss on "
            f"{row['n_dev_prompts']:,} prompts of {row['dev_sets']} is the least, "
            f"{row['dev_loss']:.4g} ({row['dev_loss_end']:.4g} after the last)"
        )
    rejects = store.read("reject", stage="tune", subject=row["tuning"]).to_pylist()
    held = f"; compared with {row['test_sets'] or 'no test set'}"
    left = f": {reasons(rejects)}" if rejects else ""
    yield f"  {row['n_left_out']:,} prompts left out, {row['n_leaks']:,} as leaks{left}{held}"
    if n := row["n_leaks_kept"]:
        yield f"  {n:,} of the prompts tuned on are in a test set: its figures show memory, too"
    yield from figures(request, outcome.measured, store)
    yield f"Wrote the adapter {row['path']}, its card, and tuning, tuning_step in {store.root}"
    if outcome.page:
        yield f"Wrote {outcome.page}"
    where = command_path(store.root, DEFAULT_WAREHOUSE, "--warehouse")
    yield f"Next: plumbline disclosure compare {request.subjects[0].model} {row['path']}{where}"


def figures(
    request: DisclosureRequest, measured: Sequence[Disclosed], store: Store
) -> Iterator[str]:
    """Figures of sets under models: the whole set and its topics, with 95% intervals."""
    if not measured:
        return
    found = rows_of(store.root, sql("report/disclosure"), {"smoothing": request.options.smoothing})
    for one in measured:
        probed, continued = one.probed, one.sampled
        yield (
            f"{probed.probe_set} by {_called(store, one)}, key {probed.model_key}: "
            f"{probed.n_prompts:,} prompts, {probed.n_new:,} probed and {continued.n_new:,} "
            f"continued now"
        )
        if probed.n_rejected or continued.n_rejected:
            yield (
                f"  {probed.n_rejected:,} can't be probed, {continued.n_rejected:,} can't be "
                "continued (table `reject`)"
            )
        if one.n_empty:
            yield f"  {one.n_empty:,} continuations are empty: GAS leaves them out"
        if probed.left_out:
            words = ", ".join(probed.left_out)
            yield f"  can't be spelled, left out of {probed.word_list}: {words}"
        rows = [r for r in found if _is_of(r, one)]
        yield from _aligned([_cells(r) for r in rows])


def _is_of(row: Row, one: Disclosed) -> bool:
    whose = (one.probed.probe_set, one.probed.model_key, one.probed.word_list)
    same = (row["probe_set"], row["model_key"], row["word_list"]) == whose
    return same and row["sampling_key"] in (None, one.sampled.sampling_key)


def _called(store: Store, one: Disclosed) -> str:
    wanted = pc.field("model_key") == one.probed.model_key
    (adapter,) = store.read("model", wanted)["adapter"].to_pylist() or [None]
    return f"{one.probed.model} with {adapter}" if adapter else one.probed.model


def _cells(row: Row) -> list[str]:
    return [
        row["topic"] or "all",
        *(
            estimate(row, 1, scale=100, of=(name, f"{name}_low", f"{name}_high")).text
            for name in ("gas", "gas_f_of_gendered")
        ),
        estimate(row, 4, of=("gld", "gld_low", "gld_high")).text,
        estimate(
            row, digits_of(row["add_nats"]) + 1, of=("add_nats", "add_nats_low", "add_nats_high")
        ).text,
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of cells under each other, below their headings."""
    lines = [("", *_HEADINGS), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
