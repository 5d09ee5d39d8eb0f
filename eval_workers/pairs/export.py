"""Exports a benchmark to a folder: its pairs, a card, and a task for lm-evaluation-harness.

Unnatural pairs are left out. If there is a constraint, pairs that don't meet it are left out too.
The card describes the benchmark to people and dataset hubs; its template is ``card.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from plumbline.eval_workers.pairs.benchmarks import discover
from plumbline.eval_workers.pairs.harness_logs import PREFIX
from plumbline.eval_workers.pairs.human_ratings import people_say
from plumbline.eval_workers.pairs.recipe import FACTS, IN_PARQUET
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput, UsageProblem, disk_problems
from plumbline.warehouse.query.connection import arrow_rows, connect, rows_of, sql
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text import toml_file
from plumbline.warehouse.text.placeholders import PLACEHOLDER
from plumbline.warehouse.text.toml_file import Words

#: Columns of `benchmark_pair` that are exported if any row has a value in them.
_COLUMNS = (
    *("pair_id", "item_id", "template", "sentence_a", "sentence_b", "group_a", "group_b"),
    *("word", "split", "stereotype", "category", "direction", "weight"),
)
#: Columns of `pair_association` that are exported if there is a constraint.
MAX_PMI = ("max_pmi_nats", "max_pmi_word")
#: File with the words that count as gendered, by gender; it has more words than the word lists.
GENDERED = "gendered_words.toml"
#: Name of the file that holds the pairs.
DATA = "data.parquet"
#: Default description of a benchmark.
_ABOUT = "Sentence pairs, each two versions of one sentence"
#: Module that has the functions of a task for lm-evaluation-harness.
_TASK_MODULE = "plumbline_pairs"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Constraint:
    """A corpus whose MaxPMI is exported with each pair, and an optional limit on MaxPMI.

    If ``eta_nats`` is set, a pair is only exported if |MaxPMI| is known and at most ``eta_nats``.
    """

    corpus: str
    contrast: str = "she/he"
    eta_nats: float | None = None

    def __str__(self) -> str:
        """Return the constraint in words.

        >>> str(Constraint("pile")), str(Constraint("pile", eta_nats=0.65))[:28]
        ('with MaxPMI in pile (she/he)', 'within |MaxPMI| <= 0.65 nats')
        """
        has_limit = self.eta_nats is not None
        limit = f"within |MaxPMI| <= {self.eta_nats:g} nats" if has_limit else "with MaxPMI"
        return f"{limit} in {self.corpus} ({self.contrast})"


@dataclass(frozen=True)
class Export:
    """The exported pairs, sorted by identifier, and how many pairs are left out.

    ``n_unnatural`` pairs are left out as unnatural. ``n_beyond`` pairs don't meet the constraint.
    ``run_id`` is the run that made the pairs; ``run`` is its row in the table ``run``, or ``None``.
    ``tasks`` are the names of the harness tasks; ``paths`` are the files written, the card first.
    """

    benchmark: str
    data: pa.Table
    n_unnatural: int
    n_beyond: int
    constraint: Constraint | None
    run_id: str
    run: Mapping[str, Any] | None
    tasks: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    def by_groups(self) -> dict[str, pa.Table]:
        """Divide the pairs by the groups that they compare, such as `female/male`."""
        groups = pc.binary_join_element_wise(self.data["group_a"], self.data["group_b"], "/")
        names = sorted(pc.unique(groups).to_pylist())
        return {name: self.data.filter(pc.equal(groups, name)) for name in names}


def export(
    store: Store,
    benchmark: str,
    out: Path,
    licence: str | None = None,
    constraint: Constraint | None = None,
) -> Export:
    """Write a folder: the card `README.md`, the pairs, and an lm-eval task for every two groups.

    ``pairs_to_export`` chooses the pairs. `data.parquet` holds the pairs and the facts on the card;
    `benchmark import` can read both. A task scores each sentence with only BOS before it, so its
    log-likelihoods equal those of ``plumbline score``.

    Args:
        licence: the licence's identifier; the default is the stored licence, or else `unknown`.
        constraint: the default is the constraint that the benchmark was built with, if any.

    Raises what ``pairs_to_export`` raises, and ``BadInput`` if the folder can't be written.
    """
    shared = pairs_to_export(store, benchmark, constraint)
    text, known = card(store, shared, licence)
    name = PREFIX + _NOT_IN_NAMES.sub("_", benchmark)
    parts = shared.by_groups()
    tasks = {f"{name}_{k}_{_NOT_IN_NAMES.sub('_', g)}": g for k, g in enumerate(parts, 1)}
    if len(parts) == 1:
        tasks = {name: next(iter(parts))}
    module = resources.files(__package__) / f"{_TASK_MODULE}.py"
    texts = {"README.md": text, f"{_TASK_MODULE}.py": module.read_text("utf-8")}
    for task, groups in tasks.items():
        metadata = {"version": 1.0, "benchmark": benchmark, "groups": groups}
        texts[f"{task}.yaml"] = _yaml(task, "" if task == name else name, parts[groups], metadata)
    in_parquet = {IN_PARQUET: json.dumps(known, ensure_ascii=False).encode()}
    with disk_problems(out):
        out.mkdir(parents=True, exist_ok=True)
        data = shared.data.replace_schema_metadata(in_parquet)
        pq.write_table(data, out / DATA, compression="zstd")
        for file, text in texts.items():
            (out / file).write_text(text, encoding="utf-8", newline="\n")
    paths = tuple(out / file for file in ("README.md", DATA, *list(texts)[1:]))
    return replace(shared, tasks=tuple(tasks), paths=paths)


def _yaml(task: str, tag: str, pairs: pa.Table, metadata: dict[str, object]) -> str:
    lines = [
        f"task: {json.dumps(task)}",
        *([f"tag: {json.dumps(tag)}"] if tag else []),
        f"custom_dataset: !function {_TASK_MODULE}.dataset",
        f"dataset_kwargs: {json.dumps({'file': DATA, 'groups': metadata['groups']})}",
        "test_split: test",
        "output_type: multiple_choice",
        "num_fewshot: 0",
        'doc_to_text: ""',
        "doc_to_target: 0",
        f"doc_to_choice: !function {_TASK_MODULE}.choices",
        'target_delimiter: ""',
        f"process_results: !function {_TASK_MODULE}.process_results",
        "metric_list:",
    ]
    has_direction = "direction" in pairs.schema.names and pairs["direction"].null_count < len(pairs)
    for metric in ("us", "pd", *(["stereotype"] if has_direction else [])):
        better = json.dumps(metric == "us")
        lines.append(f"  - {{metric: {metric}, aggregation: mean, higher_is_better: {better}}}")
    return "\n".join([*lines, f"metadata: {json.dumps(metadata, ensure_ascii=False)}"]) + "\n"


def pairs_to_export(store: Store, benchmark: str, constraint: Constraint | None = None) -> Export:
    """Return the pairs to export: the natural pairs that meet a constraint, sorted by identifier.

    The default constraint is the one that the benchmark was built with, if any. Raises
    ``UsageProblem`` if the warehouse has no natural pair of the benchmark, or no MaxPMI for the
    constraint. Raises ``BadInput`` if no pair meets the constraint.
    """
    files = store.snapshot().files("benchmark_pair", {"benchmark": benchmark})
    run_id = files[0].units[0].run_id if files else ""
    run = next(iter(store.read("run", pc.field("run_id") == run_id).to_pylist()), None)
    built = json.loads(run["config"]) if run else {}
    if constraint is None and built.get("corpus") and "eta" in built:
        constraint = Constraint(built["corpus"], built["contrast"], built["eta"])
    limits = asdict(constraint or Constraint(""))
    text = sql("benchmarks/shared_pair")
    with connect(store.root, text) as connection:
        pairs = arrow_rows(connection, text, {"benchmark": benchmark, **limits})
    natural = pairs.filter(pc.fill_null(pairs["is_natural"], True))
    if not natural.num_rows:
        raise _no_pairs(benchmark)
    if constraint and not pairs["has_max_pmi"][0].as_py():
        corpus = constraint.corpus
        fix = f"run `plumbline benchmark constrain --corpus {corpus} --benchmark {benchmark}`"
        problem = f"there is no MaxPMI ({constraint.contrast}) of {benchmark}"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    kept = natural.filter(natural["is_within"])
    if not kept.num_rows:
        fix = f"a larger --eta of `plumbline benchmark export {benchmark}` keeps more pairs"
        fix += "; a smaller `plumbline benchmark constrain --least-count` makes more MaxPMI known"
        raise BadInput(f"benchmark {benchmark}", f"no pair is {constraint}", fix)
    filled = [c for c in _COLUMNS if natural[c].null_count < natural.num_rows]
    columns = kept.select([*filled, "pronoun_first", *(MAX_PMI if constraint else ())])
    left_out = pairs.num_rows - natural.num_rows, natural.num_rows - kept.num_rows
    return Export(benchmark, columns, *left_out, constraint, run_id, run)


def _no_pairs(benchmark: str) -> UsageProblem:
    fix = f"run `plumbline benchmark import {benchmark}`"
    return UsageProblem(f"benchmark {benchmark!r}", "has no natural pair in the warehouse", fix)


def statistics(
    root: Path, benchmark: str, pair_ids: Sequence[str] | None = None
) -> dict[str, object]:
    """Return a card's figures: each column of `benchmarks/statistics.sql`, and `seed_delta`.

    `seed_delta` has the rows of `benchmarks/seed_delta.sql`. The figures describe the pairs
    ``pair_ids``, by default all natural pairs. Raises ``UsageProblem`` if there are no pairs.
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
    texts = [sql(name) for name in names]
    with connect(root, "".join(texts)) as connection:
        figures, deltas = (arrow_rows(connection, text, params).to_pylist() for text in texts)
    if not figures:
        raise _no_pairs(benchmark)
    return {**figures[0], "seed_delta": deltas}


def card(store: Store, shared: Export, licence: str | None = None) -> tuple[str, dict[str, str]]:
    """Return the card's text in Markdown, and the facts to store in the exported Parquet file.

    Args:
        licence: an identifier that dataset hubs know; the default is the stored licence. If there
            is none, the card asks its reader to fill in the licence.
    """
    name, data = shared.benchmark, shared.data
    rows = store.read("benchmark_fact", pc.field("run_id") == shared.run_id, benchmark=name)
    stored = {row["fact"]: row["said"] for row in rows.sort_by("position").to_pylist()}
    (origin,) = rows_of(store.root, sql("benchmarks/origin"), {"benchmark": name})
    known = discover()
    about = stored.get("About") or known.get(name, _ABOUT)
    about = f"{about.rstrip('.')}."
    language = stored.get("Language", "")
    if not language and (name in known or origin["n_requests"] > 0):
        code = name.removesuffix("-pairs")
        language = code if code in languages.LANGUAGES.names() else languages.ENGLISH
    licence = licence or stored.get("Licence", "unknown")
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
        # Copied to a new table, since a slice may report the bytes of the whole table.
        n_bytes=pa.Table.from_pylist(data.to_pylist(), data.schema).nbytes,
        name=name,
        origin=origin,
        people=people_say(store.root, name),
        power=rows_of(store.root, sql("benchmarks/power"), {"benchmark": name}),
        shared=shared,
        stored=stored,
    )
    stated = {"About": about, "Licence": licence.replace("unknown", ""), "Language": language}
    return f"{text}\n", {**stored, **{fact: text for fact, text in stated.items() if text}}


def _meaning(column: str, shared: Export) -> str:
    table, corpus = "benchmark_pair", ""
    if shared.constraint and column in MAX_PMI:
        table = "pair_association"
        corpus = f"; in {shared.constraint.corpus} ({shared.constraint.contrast})"
    return next(c.description for c in TABLES[table].columns if c.name == column) + corpus
