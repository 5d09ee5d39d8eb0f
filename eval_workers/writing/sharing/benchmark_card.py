"""A benchmark of the warehouse as a dataset for others: its rows in two formats, and a card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.eval_workers.pairs.benchmarks import find
from plumbline.eval_workers.pairs.benchmarks.own.recipe import RECIPES, load
from plumbline.eval_workers.pairs.ratings.summary import people_say
from plumbline.eval_workers.scoring.statistics.power import power_of, said
from plumbline.eval_workers.writing.sharing.card_text import Card, card_text
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.files import kept_object
from plumbline.warehouse.query.connection import connect, query, sql
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Column
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Words

#: Words that are counted as gendered, by side; more than a word list's pairs.
GENDERED = "gendered_words.toml"
#: Columns of `benchmark_pair` that go out; those without a value in any row stay behind.
_COLUMNS = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    *("word", "split", "stereotype", "category", "direction", "weight"),
)
#: What their authors say; the licences of the others are for the user to find out.
_LICENCES = {"winogender": "mit"}
#: Columns of `pair_association` that go out with a constraint.
_MAX_PMI = ("max_pmi_nats", "max_pmi_word")


@dataclass(frozen=True)
class Constraint:
    """The corpus whose MaxPMI goes out with the pairs.

    With ``eta_nats`` only pairs go out whose MaxPMI is known to be at most so much either way.
    """

    corpus: str
    contrast: str = "she/he"
    eta_nats: float | None = None


class NothingKept(BadInput):
    """No pair is within a constraint."""


@dataclass(frozen=True)
class Written:
    """What was written: pairs, the limit on their MaxPMI if they have one, and the files."""

    n_pairs: int
    eta_nats: float | None
    paths: tuple[Path, ...]


def statistics(
    root: Path, benchmark: str, pair_ids: Sequence[str] | None = None
) -> dict[str, object]:
    """The figures of `sql/benchmarks/statistics.sql`; under `seed_delta` those of its seed words.

    ``pair_ids`` are the pairs they are of, ``None`` for all natural ones. Raises ``UsageProblem``
    when the warehouse has no such benchmark.
    """
    names = ("benchmarks/statistics", "benchmarks/seed_delta")
    connection = connect(root, "".join(map(sql, names)))
    listed = toml_file.load(dict[str, Words], resources.files(__package__) / GENDERED, GENDERED)
    params = {
        "benchmark": benchmark,
        **{side: sorted(listed[side]) for side in ("female", "male")},
        "placeholder": PLACEHOLDER.pattern,
        "pair_ids": None if pair_ids is None else list(pair_ids),
    }
    rows = query(connection, names[0], params).to_pylist()
    if not rows:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no pair in the warehouse", fix)
    deltas = query(connection, names[1], params).to_pylist()
    return {**rows[0], "seed_delta": deltas}


def write_card(
    store: Store,
    benchmark: str,
    out: Path,
    licence: str | None = None,
    made: Mapping[str, object] | None = None,
    constraint: Constraint | None = None,
) -> Written:
    """Write `README.md`, `data.parquet` and `data.jsonl` of a benchmark into a directory.

    Both files hold the same pairs in the order of their identifiers: those that metrics use, so not
    the ones that their own source calls unnatural, and none beyond the constraint.

    Args:
        licence: identifier of a licence; ``None`` for what is known, else `unknown`.
        made: how the pairs were made, such as model and prompts, beside what the warehouse knows.
            It is kept in ``benchmark_fact`` for the cards that are written later; ``None`` for
            what was kept of these pairs.
        constraint: ``None`` for the one that the benchmark was built with, if it was.

    Raises:
        UsageProblem: the warehouse has no such benchmark, or no MaxPMI of it.
        NothingKept: no pair is within the constraint.
        BadInput: the directory can't be written.
    """
    card, shared = described(store, benchmark, licence, made, constraint)
    data = shared.data
    parquet, lines, readme = (out / n for n in ("data.parquet", "data.jsonl", "README.md"))
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, parquet, compression="zstd")
        lines.write_text(json_lines(data), encoding="utf-8", newline="\n")
        readme.write_text(card_text(card), encoding="utf-8", newline="\n")
    eta_nats = constraint.eta_nats if constraint else None
    return Written(data.num_rows, eta_nats, (readme, parquet, lines))


def described(
    store: Store,
    benchmark: str,
    licence: str | None = None,
    made: Mapping[str, object] | None = None,
    constraint: Constraint | None = None,
) -> tuple[Card, Shared]:
    """What a card says, and the pairs that go out with it; arguments as of ``write_card``."""
    shared = shared_pairs(store, benchmark, constraint)
    data, constraint, run_id = shared.data, shared.constraint, _run_of_pairs(store, benchmark)
    figures = statistics(store.root, benchmark, data["pair_id"].to_pylist())
    if made is not None:
        _keep(store, benchmark, made, run_id)
    found = _provenance(store, benchmark, shared.n_unnatural, run_id)
    if constraint and constraint.eta_nats is not None:
        found[f"Pairs left out, not {within(constraint)}"] = f"{shared.n_beyond:,}"
    card = Card(
        benchmark,
        _description(benchmark),
        licence or _LICENCES.get(benchmark, "unknown"),
        described_columns(data, constraint),
        data.slice(0, 1).to_pylist()[0],
        figures,
        {**found, **_kept(store, benchmark, run_id), **people_say(store.root, benchmark)},
        groups_of(data),
        _language(store, benchmark),
        n_bytes=laid_out(data).nbytes,
        power=said(power_of(store.root, benchmark)),
    )
    return card, shared


def described_columns(
    data: pa.Table, constraint: Constraint | None = None
) -> tuple[tuple[str, str, str], ...]:
    """Name, Arrow type and meaning of the columns of pairs that go out."""
    return tuple((f.name, str(f.type), _meaning(f.name, constraint)) for f in data.schema)


def groups_of(pairs: pa.Table) -> tuple[str, ...]:
    """Which groups pairs compare, as `female/male`, sorted."""
    both = pc.binary_join_element_wise(pairs["group_a"], pairs["group_b"], "/")
    return tuple(sorted(pc.unique(both).to_pylist()))


def _language(store: Store, benchmark: str) -> str:
    """Code of the language of a benchmark's sentences; empty where nobody said which it is."""
    code = benchmark.removesuffix("-pairs")
    if code != benchmark and code in languages.LANGUAGES.names():
        return code
    is_built = store.read("generation_request", benchmark=benchmark).num_rows > 0
    try:
        find(benchmark)
    except UsageProblem:
        return languages.ENGLISH if is_built else ""
    return languages.ENGLISH


@dataclass(frozen=True)
class Shared:
    """Pairs that go out, in the order of their identifiers, and how many stay behind, and why."""

    data: pa.Table
    n_unnatural: int
    n_beyond: int
    constraint: Constraint | None


def shared_pairs(store: Store, benchmark: str, constraint: Constraint | None = None) -> Shared:
    """The pairs that metrics use, with the columns that are for others; as ``write_card`` says."""
    everything = _pairs(store, benchmark)
    natural = everything.filter(pc.fill_null(everything["is_natural"], True)).sort_by("pair_id")
    constraint = constraint or _built_with(store, _run_of_pairs(store, benchmark))
    data = _columns(natural)
    if constraint:
        data = _constrained(store, benchmark, data, constraint)
    n_unnatural, n_natural = everything.num_rows - natural.num_rows, natural.num_rows
    return Shared(data, n_unnatural, n_natural - data.num_rows, constraint)


def all_pairs(store: Store, benchmark: str, constraint: Constraint | None = None) -> pa.Table:
    """Every pair with every column that has a value, by identifier; with a constraint its MaxPMI.

    No pair is left out. Raises as ``write_card``.
    """
    pairs = _pairs(store, benchmark).sort_by("pair_id").replace_schema_metadata(None)
    names = [c.name for c in TABLES["benchmark_pair"].columns if c.name != "benchmark"]
    pairs = pairs.select([c for c in names if pairs[c].null_count < pairs.num_rows])
    if constraint is None:
        return pairs
    return _constrained(store, benchmark, pairs, replace(constraint, eta_nats=None))


def _pairs(store: Store, benchmark: str) -> pa.Table:
    found = store.read("benchmark_pair", benchmark=benchmark)
    if not found.num_rows:
        statistics(store.root, benchmark)  # says what is missing
    return found


def laid_out(pairs: pa.Table) -> pa.Table:
    """The same rows in memory of their own: their bytes, and those of a file, depend on them alone.

    >>> table = pa.table({"word": ["tea", "cup", "pot"]})
    >>> laid_out(table.slice(1)) == table.slice(1)
    True
    """
    return pa.Table.from_pylist(pairs.to_pylist(), pairs.schema)


def json_lines(rows: pa.Table) -> str:
    """A table as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.to_pylist())


def _columns(pairs: pa.Table) -> pa.Table:
    filled = [c for c in _COLUMNS if pairs[c].null_count < pairs.num_rows]
    # The warehouse's own notes on its files are not for others.
    return pairs.select([*filled, "pronoun_first"]).replace_schema_metadata(None)


def _built_with(store: Store, run_id: str) -> Constraint | None:
    """The constraint of the build that made the pairs; ``None`` for pairs that were imported."""
    for run in store.read("run", pc.field("run_id") == run_id).to_pylist():
        config = kept_object(run, "config")
        if config.get("corpus") and "eta" in config:
            return Constraint(config["corpus"], config["contrast"], config["eta"])
    return None


def _constrained(store: Store, benchmark: str, data: pa.Table, constraint: Constraint) -> pa.Table:
    """The pairs with their MaxPMI, in their order, without those beyond eta."""
    corpus, where = constraint.corpus, pc.field("contrast") == constraint.contrast
    rows = store.read("pair_association", where, corpus=corpus, benchmark=benchmark)
    if not rows.num_rows:
        fix = f"run `plumbline benchmark constrain --corpus {corpus} --benchmark {benchmark}`"
        problem = f"there is no MaxPMI ({constraint.contrast}) of {benchmark}"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    found = {row["pair_id"]: row for row in rows.to_pylist()}
    for column in _MAX_PMI:
        values = [found.get(i, {}).get(column) for i in data["pair_id"].to_pylist()]
        kind = TABLES["pair_association"].arrow.field(column).type
        data = data.append_column(column, pa.array(values, kind))
    if constraint.eta_nats is None:
        return data
    eta_nats = constraint.eta_nats
    meets = [_meets(found.get(i, {}), eta_nats) for i in data["pair_id"].to_pylist()]
    if not any(meets):
        fix = f"`plumbline benchmark card {benchmark} --corpus {corpus} --eta` takes a larger one"
        fix += "; a smaller `plumbline benchmark constrain --least-count` decides more pairs"
        raise NothingKept(f"benchmark {benchmark}", f"no pair is {within(constraint)}", fix)
    return data.filter(pa.array(meets))


def _meets(row: Mapping[str, Any], eta_nats: float) -> bool:
    """As the SQL macro `meets_constraint`, so that metrics take the same pairs."""
    most = row.get("max_pmi_nats")
    return most is not None and abs(most) <= eta_nats + 1e-9 and not row.get("n_words_unknown")


def within(constraint: Constraint) -> str:
    """The constraint in words; without eta the pairs only have a MaxPMI in the corpus."""
    if constraint.eta_nats is None:
        return f"with MaxPMI in {constraint.corpus} ({constraint.contrast})"
    limit = f"|MaxPMI| <= {constraint.eta_nats:g} nats"
    return f"within {limit} in {constraint.corpus} ({constraint.contrast})"


def _meaning(column: str, constraint: Constraint | None) -> str:
    columns: dict[str, Column] = {c.name: c for c in TABLES["benchmark_pair"].columns}
    if constraint and column in _MAX_PMI:
        columns = {c.name: c for c in TABLES["pair_association"].columns}
        of = f"; in {constraint.corpus} ({constraint.contrast})"
        return columns[column].description + of
    return columns[column].description


def _description(benchmark: str) -> str:
    try:
        return find(benchmark).DESCRIPTION.rstrip(".") + "."
    except UsageProblem:
        pass
    if benchmark in RECIPES.names():
        return load(benchmark).about.rstrip(".") + "."
    return "Sentence pairs, each two versions of one sentence."


def _run_of_pairs(store: Store, benchmark: str) -> str:
    files = store.snapshot().files("benchmark_pair", {"benchmark": benchmark})
    return files[0].units[0].run_id


def _keep(store: Store, benchmark: str, made: Mapping[str, object], run_id: str) -> None:
    facts = [(fact, str(value)) for fact, value in made.items() if value is not None]
    rows = [
        {"benchmark": benchmark, "position": k, "fact": fact, "said": value, "run_id": run_id}
        for k, (fact, value) in enumerate(facts, 1)
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
