"""Two models compared in SQL, against numpy and scipy on made-up rows."""

from __future__ import annotations

import pytest

from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill
from tests.prompt_rows import put_prompts


@pytest.mark.parametrize("as_published", [None, False, True])
def test_sets_that_were_tuned_on_are_marked(store: Store, as_published: bool | None) -> None:
    """`late` holds a prompt of `train`; `held` does too, but was held out, except as published."""
    put_prompts(store, "train", ["A man  ran, and", "A cat ran"])
    put_prompts(store, "late", ["a man ran.", "The boss ran", "The poet ran"])
    put_prompts(store, "held", ["A MAN ran, and", "The nurse ran"])
    fill(store, "model", [model_row("tuned", "calm@1"), model_row("base", None)])
    row = tuning_row("calm@1", "train", "held") | {"as_published": as_published}
    fill(store, "tuning", [row])
    found = rows_of(store.root, "FROM tuned_prompt ORDER BY probe_set")
    numbers = [(r["model_key"], r["probe_set"], r["n_prompts"], r["n_tuned_on"]) for r in found]
    n_held = 1 if as_published else 0
    expected = [("tuned", "held", 2, n_held), ("tuned", "late", 3, 1), ("tuned", "train", 2, 2)]
    assert numbers == expected


def model_row(key: str, adapter: str | None) -> dict[str, object]:
    row = {"model_key": key, "model": "m", "backend": "transformers", "run_id": "r"}
    return {**row, "dtype": "float32", "adapter": adapter, "revision": "1"}


def tuning_row(adapter: str, sets: str, tests: str) -> dict[str, object]:
    from plumbline.warehouse.schema.catalog import TABLES

    row: dict[str, object] = {}
    for column in TABLES["tuning"].columns:
        row[column.name] = {"string": "x", "bool": False}.get(str(column.type), 1)
    return row | {"tuning": "calm", "adapter": adapter, "probe_sets": sets, "test_sets": tests}
