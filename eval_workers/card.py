"""A benchmark of the warehouse as a dataset for others: its rows in two formats, and a card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eval_workers.benchmarks import find
from eval_workers.card_text import Card, card_text
from warehouse import wordlists
from warehouse.connect import connect, query
from warehouse.errors import UsageProblem, disk_problems
from warehouse.placeholders import PLACEHOLDER
from warehouse.schemas import TABLES
from warehouse.store import Store

#: The list whose words are counted as gendered.
GENDERED = "gendered"
#: Columns of `benchmark_pair` that go out; those without a value in any row stay behind.
_COLUMNS = ("pair_id", "template", "sentence_f", "sentence_m", "word", "split", "stereotype")
#: What their authors say; the licences of the others are for the user to find out.
_LICENCES = {"winogender": "mit"}


@dataclass(frozen=True)
class Written:
    """What was written: pairs, and the files."""

    n_pairs: int
    paths: tuple[Path, ...]


def statistics(root: Path, benchmark: str) -> dict[str, object]:
    """The figures of `benchmark_statistics.sql`, and under `seed_delta` those of its seed words.

    Raises ``UsageProblem`` when the warehouse has no such benchmark.
    """
    connection = connect(root)
    gendered = list(wordlists.load(GENDERED).targets)
    pattern = PLACEHOLDER.pattern
    params = {"benchmark": benchmark, "gendered": gendered, "placeholder": pattern}
    rows = query(connection, "benchmark_statistics", params).to_pylist()
    if not rows:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no pair in the warehouse", fix)
    deltas = query(connection, "benchmark_seed_delta", params).to_pylist()
    return {**rows[0], "seed_delta": deltas}


def write_card(
    store: Store,
    benchmark: str,
    out: Path,
    licence: str | None = None,
    made: Mapping[str, object] | None = None,
) -> Written:
    """Write `README.md`, `data.parquet` and `data.jsonl` of a benchmark into a directory.

    Both files hold the same pairs in the order of their identifiers: those that metrics use, so not
    the ones that their own source calls unnatural.

    Args:
        licence: identifier of a licence; ``None`` for what is known, else `unknown`.
        made: how the pairs were made, such as model and prompts, beside what the warehouse knows.
            It is kept in ``benchmark_fact`` for the cards that are written later; ``None`` for
            what was kept of these pairs.

    Raises:
        UsageProblem: the warehouse has no such benchmark.
        BadInput: the directory can't be written.
    """
    figures = statistics(store.root, benchmark)
    everything = store.read("benchmark_pair", benchmark=benchmark)
    pairs = everything.filter(pc.fill_null(everything["is_natural"], True)).sort_by("pair_id")
    data = _columns(pairs)
    n_left_out = everything.num_rows - pairs.num_rows
    run_id = _run_of_pairs(store, benchmark)
    if made is not None:
        _keep(store, benchmark, made, run_id)
    meanings = {c.name: c.description for c in TABLES["benchmark_pair"].columns}
    card = Card(
        benchmark,
        _description(benchmark),
        licence or _LICENCES.get(benchmark, "unknown"),
        tuple((f.name, str(f.type), meanings[f.name]) for f in data.schema),
        data.slice(0, 1).to_pylist()[0],
        figures,
        {**_provenance(store, benchmark, n_left_out, run_id), **_kept(store, benchmark, run_id)},
    )
    parquet, lines, readme = (out / n for n in ("data.parquet", "data.jsonl", "README.md"))
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, parquet, compression="zstd")
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in data.to_pylist())
        lines.write_text(text, encoding="utf-8", newline="\n")
        readme.write_text(card_text(card), encoding="utf-8", newline="\n")
    return Written(data.num_rows, (readme, parquet, lines))


def _columns(pairs: pa.Table) -> pa.Table:
    filled = [c for c in _COLUMNS if pairs[c].null_count < pairs.num_rows]
    # The warehouse's own notes on its files are not for others.
    return pairs.select([*filled, "pronoun_first"]).replace_schema_metadata(None)


def _description(benchmark: str) -> str:
    try:
        return find(benchmark).DESCRIPTION.rstrip(".") + "."
    except UsageProblem:
        return "Sentence pairs that differ only in the gender of their pronouns."


def _run_of_pairs(store: Store, benchmark: str) -> str:
    directory = store.directory("benchmark_pair", {"benchmark": benchmark})
    metadata = pq.read_schema(sorted(directory.glob("*.parquet"))[0]).metadata or {}
    return str(metadata.get(b"plumbline.run_id", b"").decode())


def _keep(store: Store, benchmark: str, made: Mapping[str, object], run_id: str) -> None:
    said = [(fact, str(value)) for fact, value in made.items() if value is not None]
    rows = [
        {"benchmark": benchmark, "position": k, "fact": fact, "said": value, "run_id": run_id}
        for k, (fact, value) in enumerate(said, 1)
    ]
    with disk_problems(store.root):
        store.replace("benchmark_fact", rows, {"benchmark": benchmark}, run_id)


def _kept(store: Store, benchmark: str, run_id: str) -> dict[str, object]:
    rows = store.read("benchmark_fact", pc.field("run_id") == run_id, benchmark=benchmark)
    return {row["fact"]: row["said"] for row in rows.sort_by("position").to_pylist()}


def _provenance(store: Store, benchmark: str, n_left_out: int, run_id: str) -> dict[str, object]:
    """Where the pairs came from, as far as the warehouse knows."""
    pairs = store.read("benchmark_pair", benchmark=benchmark)
    found = {
        **_sources(store, benchmark, set(pairs["source_file"].to_pylist())),
        "Pairs left out as unnatural": f"{n_left_out:,}",
    }
    for run in store.read("run", pc.field("run_id") == run_id).to_pylist():
        found["Made by"] = f"Plumbline's `{run['command']}`, run {run_id}"
        found["Date"] = f"{run['started_at']:%Y-%m-%d}"
        found["Version of the code"] = run["git_commit"]
    return found


def _sources(store: Store, benchmark: str, sources: set[str]) -> dict[str, object]:
    """Files the pairs came from, or the model that wrote them: then each source is a request."""
    requests = store.read("generation_request", benchmark=benchmark)
    if not sources <= set(requests["request_id"].to_pylist()):
        rejects = store.read("reject", stage="benchmark", subject=benchmark).num_rows
        files = ", ".join(sorted(sources))
        return {"Source": files, "Rows of the source not used": f"{rejects:,}"}
    steps = [f"{benchmark}/{step}" for step in ("write", "pair")]
    n_rejects = sum(store.read("reject", stage="generate", subject=s).num_rows for s in steps)
    theirs = requests.filter(pc.is_in(requests["request_id"], pa.array(sorted(sources))))
    models = ", ".join(sorted(set(theirs["model"].to_pylist())))
    source = f"sentences that a chat model wrote ({models}), {requests.num_rows:,} requests"
    return {"Source": source, "Sentences that make no pair": f"{n_rejects:,}"}
