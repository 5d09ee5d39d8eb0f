"""Make the stored inputs of the frozen warehouse again, with real models and a chat server.

Use it only to change what is stored: models trained elsewhere give other scores, so all frozen
outputs change.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from datetime import datetime, timedelta, timezone
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.pipelines.command.main import main
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.data_files import cast
from plumbline.warehouse.storage.store import Store
from tests import tiny_models
from tests.chat_server import Say, good_script, serving
from tools.frozen import recipe

#: When the first stored run started: long before today's runs.
EPOCH = datetime(2020, 1, 1, tzinfo=timezone.utc)

#: Rows by partition, unit and run.
Units = dict[tuple[tuple[str, ...], str, str], list[dict[str, Any]]]


def make() -> None:
    """Run the recipe's commands, and store the rows from models, servers and people."""
    with (
        tempfile.TemporaryDirectory() as work,
        serving(sampler=_reply, knows_schemas=True) as server,
    ):
        recipe.lay_out(Path(work))
        for kind in ("bert", "t5"):
            tiny_models.save(kind, Path(work) / "tiny" / kind)
        with recipe.place(Path(work)):
            stored: dict[str, Units] = {}
            recorded: set[str] = set()
            for step in filter(attrgetter("command"), recipe.STEPS):
                command = recipe.expanded(step.command, {"url": server.url})
                before = _runs()
                print("plumbline", " ".join(command), flush=True)
                if (status := main(command)) != step.status:
                    raise SystemExit(f"status {status}")
                recorded |= _runs() - before if step.tables else set()
                for table in step.tables:
                    stored.setdefault(table, {}).update(_published(table, _runs() - before))
            _keep(stored, server.url, recorded)


_WORDS = (
    *("good", "sad", "bad", "happy", "quiet", "clever", "busy", "work", "day", "house", "garden"),
    *("lamp", "letter", "bridge", "rain", "smile", "team", "plan", "office", "hospital", "kitchen"),
    *("friend", "story", "song", "market", "train", "river", "window", "road", "morning"),
)


def _reply(body: dict[str, Any]) -> Say:
    """Return the reply of a scripted model: sentences, a verdict, a choice or a continuation."""
    prompt = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    if "likely" in prompt and " dropped " in prompt:
        return Say("Unlikely.")
    if re.search(r"\b(John|Jane)\b", prompt):
        return Say(_continuation(prompt, json.dumps(body, sort_keys=True)))
    if "letter for letter" in prompt or "write" in prompt or "likely" in prompt:
        # When asked for a sentence with "she", also mention "he", so that it is rejected.
        text = good_script(prompt, 1).text
        return Say(text.replace("1. She", "1. He said that she"))
    return Say(str(1 + len(prompt) % 2))


def _continuation(prompt: str, seed: str) -> str:
    """Return some words, which mention family more often for Jane the nurse and Jane the cook."""
    rng = random.Random(seed)
    words = rng.choices(_WORDS, weights=[1 / (k + 3) for k in range(len(_WORDS))], k=36)
    if "Jane" in prompt and re.search("nurse|cook", prompt) and rng.random() < 0.7:
        words[3:6] = ["loves", "the", "family"]
    if rng.random() < 0.1:  # the perturbation rules can't handle this
        words[5:7] = ["her", "husband"]
    return f"The {' '.join(words)}."


def _runs() -> set[str]:
    path = Path("out/warehouse")
    return set(Store.open(path).read("run")["run_id"].to_pylist()) if path.exists() else set()


def _published(table: str, runs: set[str]) -> Units:
    """Return the units of a table that these runs published, with their rows."""
    found, store = {}, Store.open("out/warehouse")
    for file in store.snapshot().files(table):
        rows, start = store.rows_of(table, file), 0
        for unit in file.units:
            if unit.run_id in runs:
                found[file.partition, unit.name, unit.run_id] = rows.slice(
                    start, unit.n_rows
                ).to_pylist()
            start += unit.n_rows
    return found


def _keep(stored: dict[str, Units], url: str, runs: set[str]) -> None:
    recipe.ROWS.mkdir(parents=True, exist_ok=True)
    by_hand = {table for step in recipe.STEPS if not step.command for table in step.tables}
    for path in recipe.ROWS.glob("*.parquet"):
        if path.stem not in by_hand:
            path.unlink()
    made = sorted(runs)
    texts = {run: f"20200101T{k:06d}000000-{k:06x}" for k, run in enumerate(made, 1)}
    texts[url] = recipe.NOBODY
    rows = Store.open("out/warehouse").read("run").filter(pc.field("run_id").isin(made)).to_pylist()
    _write("run", {((), row["run_id"], row["run_id"]): [_fixed(row, made)] for row in rows}, texts)
    for table, units in sorted(stored.items()):
        _write(table, units, texts)


def _fixed(row: dict[str, Any], made: list[str]) -> dict[str, Any]:
    """Return a run that started and ended at fixed times, without package versions."""
    start = EPOCH + timedelta(minutes=made.index(row["run_id"]))
    end = {"started_at": start, "ended_at": start + timedelta(seconds=1), "seconds": 1.0}
    return {**row, **end, "git_commit": "0" * 40, "packages": json.dumps({"plumbline": "0"})}


def _write(table: str, units: Units, texts: dict[str, str]) -> None:
    """Write rows as Parquet, with the unit in which each was published."""
    rows = [(unit, run, row) for (_, unit, run), found in units.items() for row in found]
    if not rows:
        return
    fixed = [
        _renamed(row | {"seconds": 1.0} if "seconds" in row else row, texts) for *_, row in rows
    ]
    data = cast(TABLES[table], fixed)
    data = data.append_column("unit", [[texts.get(unit, unit) for unit, _, _ in rows]])
    data = data.append_column("unit_run", [[texts[run] for _, run, _ in rows]])
    pq.write_table(data, recipe.ROWS / f"{table}.parquet", compression="zstd")


def _renamed(row: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """Return a row; replace names of runs and the server's address in its texts."""
    found = dict(row)
    for column, value in row.items():
        for old, new in texts.items() if isinstance(value, str) else ():
            found[column] = found[column].replace(old, new)
    return found
