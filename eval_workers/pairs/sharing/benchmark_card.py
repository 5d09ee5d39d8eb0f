"""What is shared of a benchmark: its pairs, constrained or not, and facts for a card."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.eval_workers.pairs.benchmarks import Benchmark, find
from plumbline.eval_workers.pairs.benchmarks.own.recipe import FACTS, RECIPES, load
from plumbline.eval_workers.pairs.ratings.rating_facts import people_say
from plumbline.eval_workers.pairs.sharing.card_text import DatasetCard
from plumbline.eval_workers.scoring.statistics.power import power_of, said
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.query.connection import connect, query, sql
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Words

#: File of the words that count as gendered, by side; it has more words than the word lists.
GENDERED = "gendered_words.toml"
#: Columns of `benchmark_pair` that are shared, if any row has a value.
_COLUMNS = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    *("word", "split", "stereotype", "category", "direction", "weight"),
)
#: Benchmark -> the licence that its authors state.
_LICENCES = {"winogender": "mit"}
#: Columns of `pair_association` that are shared with a constraint.
_MAX_PMI = ("max_pmi_nats", "max_pmi_word")


@dataclass(frozen=True)
class Constraint:
    """The corpus whose MaxPMI is shared with the pairs, and the limit on MaxPMI.

    With ``eta_nats`` only pairs whose |MaxPMI| is known and at most ``eta_nats`` are shared.
    """

    corpus: str
    contrast: str = "she/he"
    eta_nats: float | None = None

    def __str__(self) -> str:
        """The constraint in words; without ``eta_nats`` it only names the corpus of MaxPMI.

        >>> str(Constraint("pile")), str(Constraint("pile", eta_nats=0.65))[:28]
        ('with MaxPMI in pile (she/he)', 'within |MaxPMI| <= 0.65 nats')
        """
        limit = "with MaxPMI"
        if self.eta_nats is not None:
            limit = f"within |MaxPMI| <= {self.eta_nats:g} nats"
        return f"{limit} in {self.corpus} ({self.contrast})"


class NothingKept(BadInput):
    """Raised if no pair is within a constraint."""


def statistics(
    root: Path, benchmark: str, pair_ids: Sequence[str] | None = None
) -> dict[str, object]:
    """Figures of `sql/benchmarks/statistics.sql`, and as `seed_delta` rows of `seed_delta.sql`.

    They are about the pairs ``pair_ids``, by default all natural pairs. Raises ``UsageProblem``
    without such pairs in the warehouse.
    """
    names = ("benchmarks/statistics", "benchmarks/seed_delta")
    connection = connect(root, "".join(map(sql, names)))
    listed = toml_file.load(dict[str, Words], resources.files(__package__) / GENDERED, GENDERED)
    params = {
        "benchmark": benchmark,
        "female": sorted(listed["female"]),
        "male": sorted(listed["male"]),
        "placeholder": PLACEHOLDER.pattern,
        "pair_ids": None if pair_ids is None else list(pair_ids),
    }
    rows = query(connection, names[0], params).to_pylist()
    if not rows:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no natural pair in the warehouse", fix)
    return {**rows[0], "seed_delta": query(connection, names[1], params).to_pylist()}


def described(
    store: Store,
    benchmark: str,
    licence: str | None = None,
    made: Mapping[str, object] | None = None,
    constraint: Constraint | None = None,
) -> tuple[DatasetCard, Shared]:
    """Content of a card, and the pairs shared with it; see ``export``. Stores ``made``."""
    shared = shared_pairs(store, benchmark, constraint)
    data, constraint, run_id = shared.data, shared.constraint, shared.run_id
    figures = statistics(store.root, benchmark, data["pair_id"].to_pylist())
    if made is not None:
        texts = [(fact, str(value)) for fact, value in made.items() if value is not None]
        rows = [
            {"benchmark": benchmark, "position": k, "fact": fact, "said": text, "run_id": run_id}
            for k, (fact, text) in enumerate(texts, 1)
        ]
        with disk_problems(store.root):
            store.replace("benchmark_fact", rows, {"benchmark": benchmark}, run_id)
    stored = _stored_facts(store, benchmark, run_id)
    facts = _provenance(store, benchmark, shared)
    if constraint and constraint.eta_nats is not None:
        facts[f"Pairs left out, not {constraint}"] = f"{shared.n_beyond:,}"
    if "Source" in stored:
        facts = {"Source": stored["Source"], "Files": facts.pop("Source"), **facts}
    facts |= {fact: text for fact, text in stored.items() if fact not in FACTS}
    card = DatasetCard(
        benchmark,
        f"{(stored.get('About') or _description(benchmark)).rstrip('.')}.",
        licence or stored.get("Licence") or _LICENCES.get(benchmark, "unknown"),
        described_columns(data, constraint),
        data.slice(0, 1).to_pylist()[0],
        figures,
        {**facts, **people_say(store.root, benchmark)},
        tuple(by_groups(data)),
        stored.get("Language") or _language(store, benchmark),
        n_bytes=laid_out(data).nbytes,
        power=said(power_of(store.root, benchmark)),
        citation=stored.get("Citation", ""),
        stored=stored,
    )
    return card, shared


def _stored_facts(store: Store, benchmark: str, run_id: str) -> dict[str, str]:
    """Facts about the pairs that a run made: from a recipe, and on how they were built."""
    rows = store.read("benchmark_fact", pc.field("run_id") == run_id, benchmark=benchmark)
    return {row["fact"]: row["said"] for row in rows.sort_by("position").to_pylist()}


def described_columns(
    data: pa.Table, constraint: Constraint | None = None
) -> tuple[tuple[str, str, str], ...]:
    """Name, Arrow type and meaning of each column of the shared pairs."""
    return tuple((f.name, str(f.type), _meaning(f.name, constraint)) for f in data.schema)


def by_groups(pairs: pa.Table) -> dict[str, pa.Table]:
    """The two groups compared, as `female/male` -> their pairs; sorted by that name."""
    groups = pc.binary_join_element_wise(pairs["group_a"], pairs["group_b"], "/")
    names = sorted(pc.unique(groups).to_pylist())
    return {name: pairs.filter(pc.equal(groups, name)) for name in names}


def _language(store: Store, benchmark: str) -> str:
    """Code of the language of a benchmark's sentences; empty if unknown."""
    code = benchmark.removesuffix("-pairs")
    if code != benchmark and code in languages.LANGUAGES.names():
        return code
    is_built = store.read("generation_request", benchmark=benchmark).num_rows > 0
    return languages.ENGLISH if is_built or _module(benchmark) else ""


@dataclass(frozen=True)
class Shared:
    """Shared pairs sorted by identifier, and the numbers of pairs that are left out.

    ``run_id`` is the run that made the pairs, ``run`` its row of the table ``run``, if any.
    """

    data: pa.Table
    n_unnatural: int
    n_beyond: int
    constraint: Constraint | None
    run_id: str
    run: Mapping[str, Any] | None


def shared_pairs(store: Store, benchmark: str, constraint: Constraint | None = None) -> Shared:
    """Pairs that metrics use, with the columns that are shared; see ``export``."""
    everything = _pairs(store, benchmark)
    natural = everything.filter(pc.fill_null(everything["is_natural"], True)).sort_by("pair_id")
    files = store.snapshot().files("benchmark_pair", {"benchmark": benchmark})
    run_id = files[0].units[0].run_id
    run = next(iter(store.read("run", pc.field("run_id") == run_id).to_pylist()), None)
    constraint = constraint or _built_with(run)
    filled = [c for c in _COLUMNS if natural[c].null_count < natural.num_rows]
    # The schema metadata are the warehouse's own and are not shared.
    data = natural.select([*filled, "pronoun_first"]).replace_schema_metadata(None)
    if constraint:
        data = _constrained(store, benchmark, data, constraint)
    n_unnatural, n_natural = everything.num_rows - natural.num_rows, natural.num_rows
    return Shared(data, n_unnatural, n_natural - data.num_rows, constraint, run_id, run)


def _pairs(store: Store, benchmark: str) -> pa.Table:
    pairs = store.read("benchmark_pair", benchmark=benchmark)
    if not pairs.num_rows:
        statistics(store.root, benchmark)  # raises, naming what is missing
    return pairs


def laid_out(pairs: pa.Table) -> pa.Table:
    """Copy of the rows whose bytes, in memory and in a file, depend only on the values.

    >>> table = pa.table({"word": ["tea", "cup", "pot"]})
    >>> laid_out(table.slice(1)) == table.slice(1)
    True
    """
    return pa.Table.from_pylist(pairs.to_pylist(), pairs.schema)


def _built_with(run: Mapping[str, Any] | None) -> Constraint | None:
    """Constraint of the build that made the pairs; ``None`` without a corpus and eta."""
    config = json.loads(run["config"]) if run else {}
    if config.get("corpus") and "eta" in config:
        return Constraint(config["corpus"], config["contrast"], config["eta"])
    return None


def _constrained(store: Store, benchmark: str, data: pa.Table, constraint: Constraint) -> pa.Table:
    """Pairs with their MaxPMI, in the same order; with an eta only those known to be within it."""
    corpus, where = constraint.corpus, pc.field("contrast") == constraint.contrast
    rows = store.read("pair_association", where, corpus=corpus, benchmark=benchmark)
    if not rows.num_rows:
        fix = f"run `plumbline benchmark constrain --corpus {corpus} --benchmark {benchmark}`"
        problem = f"there is no MaxPMI ({constraint.contrast}) of {benchmark}"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    by_id = {row["pair_id"]: row for row in rows.to_pylist()}
    associations = [by_id.get(i, {}) for i in data["pair_id"].to_pylist()]
    for column in _MAX_PMI:
        kind = TABLES["pair_association"].arrow.field(column).type
        data = data.append_column(column, pa.array([row.get(column) for row in associations], kind))
    if constraint.eta_nats is None:
        return data
    # The same condition as the SQL macro `meets_constraint`, so that metrics use the same pairs.
    most = constraint.eta_nats + 1e-9
    meets = [
        row.get("max_pmi_nats") is not None
        and abs(row["max_pmi_nats"]) <= most
        and not row.get("n_words_unknown")
        for row in associations
    ]
    if not any(meets):
        fix = f"a larger --eta of `plumbline benchmark export {benchmark}` keeps more pairs"
        fix += "; with a smaller `plumbline benchmark constrain --least-count` more MaxPMI is known"
        raise NothingKept(f"benchmark {benchmark}", f"no pair is {constraint}", fix)
    return data.filter(pa.array(meets))


def _meaning(column: str, constraint: Constraint | None) -> str:
    """Description of a column; for MaxPMI also its corpus and contrast."""
    table, corpus = TABLES["benchmark_pair"], ""
    if constraint and column in _MAX_PMI:
        table = TABLES["pair_association"]
        corpus = f"; in {constraint.corpus} ({constraint.contrast})"
    return next(c.description for c in table.columns if c.name == column) + corpus


def _description(benchmark: str) -> str:
    if module := _module(benchmark):
        return module.DESCRIPTION
    if benchmark in RECIPES.names():
        return load(benchmark).about
    return "Sentence pairs, each two versions of one sentence"


def _module(benchmark: str) -> Benchmark | None:
    try:
        return find(benchmark)
    except UsageProblem:
        return None


def _provenance(store: Store, benchmark: str, shared: Shared) -> dict[str, object]:
    """Facts about the origin of the pairs: sources, pairs left out, and the run, if known."""
    facts = _sources(store, benchmark)
    facts["Pairs left out as unnatural"] = f"{shared.n_unnatural:,}"
    if run := shared.run:
        facts["Made by"] = f"Plumbline's `{run['command']}`, run {shared.run_id}"
        facts["Date"] = f"{run['started_at']:%Y-%m-%d}"
        facts["Version of the code"] = run["git_commit"]
    return facts


def _sources(store: Store, benchmark: str) -> dict[str, object]:
    """Facts about the source: its files, or the chat model that wrote the pairs."""
    pairs = store.read("benchmark_pair", benchmark=benchmark)
    sources = set(pairs["source_file"].to_pylist())
    requests = store.read("generation_request", benchmark=benchmark)
    if not sources <= set(requests["request_id"].to_pylist()):
        rejects = store.read("reject", stage="benchmark", subject=benchmark).num_rows
        files = ", ".join(sorted(sources))
        return {"Source": files, "Rows of the source not used": f"{rejects:,}"}
    steps = [f"{benchmark}/{step}" for step in ("write", "pair")]
    n_rejects = sum(store.read("reject", stage="generate", subject=s).num_rows for s in steps)
    used_requests = requests.filter(pc.is_in(requests["request_id"], pa.array(sorted(sources))))
    models = ", ".join(sorted(set(used_requests["model"].to_pylist())))
    source = f"sentences that a chat model wrote ({models}), {requests.num_rows:,} requests"
    return {"Source": source, "Sentences that make no pair": f"{n_rejects:,}"}
