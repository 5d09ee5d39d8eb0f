"""The card of a benchmark, for people and dataset hubs: the template ``card.md``, filled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, StrictUndefined

from plumbline.eval_workers.pairs.benchmarks import discover
from plumbline.eval_workers.pairs.benchmarks.own.recipe import FACTS
from plumbline.eval_workers.pairs.ratings.rating_facts import people_say
from plumbline.eval_workers.pairs.sharing.shared_pairs import MAX_PMI, Shared
from plumbline.eval_workers.scoring.statistics.power import power_of, said
from plumbline.warehouse import languages
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import connect, query, rows_of, sql
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Words

#: File of the words that count as gendered, by side; it has more words than the word lists.
GENDERED = "gendered_words.toml"
#: Name of the file that holds the pairs.
DATA = "data.parquet"
#: What a benchmark is, if nobody said it.
_ABOUT = "Sentence pairs, each two versions of one sentence"
#: Benchmark -> the licence that its authors state.
_LICENCES = {"winogender": "mit"}


def statistics(
    root: Path, benchmark: str, pair_ids: Sequence[str] | None = None
) -> dict[str, object]:
    """Figures of `sql/benchmarks/statistics.sql`, and as `seed_delta` rows of `seed_delta.sql`.

    They are about the pairs ``pair_ids``, by default all natural pairs. Raises ``UsageProblem``
    without such pairs in the warehouse.
    """
    names = ("benchmarks/statistics", "benchmarks/seed_delta")
    listed = toml_file.load(dict[str, Words], resources.files(__package__) / GENDERED, GENDERED)
    params = {
        "benchmark": benchmark,
        "female": sorted(listed["female"]),
        "male": sorted(listed["male"]),
        "placeholder": PLACEHOLDER.pattern,
        "pair_ids": None if pair_ids is None else list(pair_ids),
    }
    with connect(root, "".join(map(sql, names))) as connection:
        figures, deltas = (query(connection, name, params).to_pylist() for name in names)
    if not figures:
        fix = f"run `plumbline benchmark import {benchmark}`"
        raise UsageProblem(f"benchmark {benchmark!r}", "has no natural pair in the warehouse", fix)
    return {**figures[0], "seed_delta": deltas}


def card(store: Store, shared: Shared, licence: str | None = None) -> tuple[str, dict[str, str]]:
    """The card's text in Markdown, and the facts that an import of the shared pairs stores.

    Args:
        licence: identifier as dataset hubs know it. By default the stored or known one, or else
            `unknown`, which asks the reader to fill it in.
    """
    name, data = shared.benchmark, shared.data
    rows = store.read("benchmark_fact", pc.field("run_id") == shared.run_id, benchmark=name)
    stored = {row["fact"]: row["said"] for row in rows.sort_by("position").to_pylist()}
    (origin,) = rows_of(store.root, sql("benchmarks/origin"), {"benchmark": name})
    known = discover()
    about = stored.get("About") or known.get(name, _ABOUT)
    about = f"{about.rstrip('.')}."
    is_english = name in known or origin["n_requests"] > 0
    language = stored.get("Language") or _language(name, is_english)
    licence = licence or stored.get("Licence") or _LICENCES.get(name, "unknown")
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = (resources.files(__package__) / "card.md").read_text(encoding="utf-8")
    text = environment.from_string(template).render(
        about=about,
        columns=[(f.name, str(f.type), _meaning(f.name, shared)) for f in data.schema],
        example=json.dumps(data.slice(0, 1).to_pylist()[0], ensure_ascii=False, indent=2),
        facts={fact: text for fact, text in stored.items() if fact not in FACTS},
        file=DATA,
        figures=statistics(store.root, name, data["pair_id"].to_pylist()),
        groups=list(shared.by_groups()),
        language=language,
        licence=licence,
        # A table of its own: the bytes of a part of a table may be those of the whole.
        n_bytes=pa.Table.from_pylist(data.to_pylist(), data.schema).nbytes,
        name=name,
        origin=origin,
        people=people_say(store.root, name),
        power=said(power_of(store.root, name)),
        shared=shared,
        stored=stored,
    )
    stated = {"About": about, "Licence": licence.replace("unknown", ""), "Language": language}
    return f"{text}\n", {**stored, **{fact: text for fact, text in stated.items() if text}}


def _language(benchmark: str, is_english: bool) -> str:
    """Code of the language of a benchmark's sentences; empty if unknown."""
    code = benchmark.removesuffix("-pairs")
    if code != benchmark and code in languages.LANGUAGES.names():
        return code
    return languages.ENGLISH if is_english else ""


def _meaning(column: str, shared: Shared) -> str:
    """Description of a column; for MaxPMI also its corpus and contrast."""
    table, corpus = "benchmark_pair", ""
    if shared.constraint and column in MAX_PMI:
        table = "pair_association"
        corpus = f"; in {shared.constraint.corpus} ({shared.constraint.contrast})"
    return next(c.description for c in TABLES[table].columns if c.name == column) + corpus
