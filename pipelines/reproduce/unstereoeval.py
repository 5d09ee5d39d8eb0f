"""Import UnStereoEval's release (Belem et al., ICLR 2024), and recompute the printed figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from plumbline.eval_workers.scoring.measure import MeasureOptions, measure
from plumbline.pipelines.report.model import counted
from plumbline.pipelines.reproduce import claims
from plumbline.pipelines.reproduce.claims import DEDUPLICATION, SIZE, Row, joined
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.escape import say

if TYPE_CHECKING:
    from plumbline.eval_workers.pairs.released_scores import ImportedScores

#: Outcomes of a comparison.
OUTCOMES = (AGREE, OFF, NOT_RUN, CONTRADICTED) = (
    *(claims.AGREE, claims.OFF, claims.NOT_RUN),
    "contradicted by the release",
)
#: Benchmarks of the release and their tables under `data/datasets/raw`.
_TABLES = {
    "use-5": ("USE-5",),
    "use-10": ("USE-10",),
    "use-20": ("USE-20",),
    "winobias": ("coref__Winobias__templates.dev", "coref__Winobias__templates.test"),
    "winogender": ("coref__Winogender__templates",),
}
#: Prints progress to standard error, so that it doesn't mix with results.
_announce = partial(say, err=True)
_PRINTED = pa.schema(
    {"table": pa.int64(), "eta_nats": pa.float64(), "log_base": pa.float64(), "value": pa.float64()}
    | dict.fromkeys(("metric", "benchmark", "model"), pa.string())
)
#: Columns of the tables of ``neighbours``.
_NEAR = pa.schema({"word": pa.string(), "targets": pa.list_(pa.string())})
_TAU = pa.schema(
    {"contrast_a": pa.string(), "contrast_b": pa.string()}
    | {"n_words": pa.int64(), "tau_b": pa.float64()}
)


class ReleaseResult(NamedTuple):
    """The paper's printed figures, compared with figures computed from the paper's release.

    Attributes:
        compared: the figures in the paper's tables, as rows of ``compare``.
        claims: the numbers in the paper's text, as rows of ``claims.check``.
        models: hub ids of the models that have scores.
        incomplete: a line for each model and benchmark with missing pairs or rejected rows.
    """

    compared: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    models: tuple[str, ...]
    incomplete: list[str]

    def lines(self) -> Iterator[str]:
        yield f"{counted(len(self.models), 'model')}: {', '.join(self.models)}"
        yield from (f"incomplete: {line}" for line in self.incomplete)
        yield outcomes("figures of models", (r for r in self.compared if r["metric"] != SIZE))
        yield outcomes("sizes of sets", (r for r in self.compared if r["metric"] == SIZE))
        if self.claims:
            yield outcomes("claims", self.claims)
        else:
            yield "Claims need all 28 models and five sets: not run"
        agree = [abs(row["difference"]) for row in self.compared if row["outcome"] == AGREE]
        yield f"largest difference among figures that agree: {max(agree, default=0.0):.4f}"


def outcomes(kind: str, rows: Iterable[Row]) -> str:
    """Return a line that says how many of the rows have each outcome. ``kind`` names the rows.

    >>> outcomes("claims", [{"outcome": AGREE}])
    'claims: 1 agree, 0 off, 0 not run, 0 contradicted by the release'
    """
    counts = Counter(row["outcome"] for row in rows)
    return f"{kind}: {', '.join(f'{counts[outcome]:,} {outcome}' for outcome in OUTCOMES)}"


def reproduce(
    store: Store, data: Path, figures: Sequence[Row], corpus: str, run_id: str
) -> ReleaseResult:
    """Import the release from ``data``, compute all metrics, and compare them with the paper.

    Raises ``BadInput`` if a part of the release is missing, damaged or invalid.
    """
    release = Release.at(data)
    imported = import_release(store, release, corpus, run_id)
    _announce("measuring")
    etas = sorted({row["eta_nats"] for row in figures if row["eta_nats"] is not None})
    bases = tuple({row["log_base"] for row in figures})
    table = measure(store, run_id, MeasureOptions(eta=tuple(etas), log_base=bases))
    released = rows_of(store.root, "SELECT model_key FROM model WHERE backend = 'released'")
    keys = {row["model_key"] for row in released}
    sets = {(x.model, x.benchmark) for x in imported}
    # The warehouse may also have other scores. Compare only those that were just imported.
    metrics = [
        row
        for row in table.to_pylist()
        if row["corpus"] in ("", corpus)
        and row["model_key"] in keys
        and (row["model"], row["benchmark"]) in sets
    ]
    models = tuple(sorted({x.model for x in imported}))
    changed_etas = {row["eta_nats"] for row in figures if row["metric"] == DEDUPLICATION}
    changes = deduplication_rows(store, corpus, changed_etas, models)
    paper_claims = claims.claims_of("unstereoeval").claim
    of_words = neighbours(store, release.statistics, corpus)
    return ReleaseResult(
        compare(figures, [*metrics, *changes]),
        claims.check(store, models, corpus, paper_claims, of_words),
        models,
        [
            f"{x.model} on {x.benchmark}: {x.n_scored:,} of {x.n_pairs:,} pairs scored, "
            f"{x.n_rejected:,} rows rejected"
            for x in imported
            if x.n_missing or x.n_rejected
        ],
    )


def compare(figures: Sequence[Row], metrics: Iterable[Row]) -> list[dict[str, Any]]:
    """Return a row for each printed figure, with our figure beside it.

    ``metrics`` has rows of ``metric_value`` and of ``deduplication_rows``. The columns are those of
    ``sql/reproduce/release_compared.sql``. ``ours`` is None if our figure is undefined or wasn't
    computed. Standard deviations and benchmark sizes have no interval.
    """
    printed = pa.Table.from_pylist(list(figures), _PRINTED)
    schema = TABLES["metric_value"].arrow
    nullable = pa.schema([pa.field(field.name, field.type) for field in schema])
    measured = pa.Table.from_pylist(list(metrics), nullable)
    return joined("release_compared", printed=printed, measured=measured)


def deduplication_rows(
    store: Store, corpus: str, etas: Collection[float | None], models: Collection[str]
) -> list[dict[str, Any]]:
    """Return how US differs between each model and its deduped twin (twin minus model).

    The rows are like those of ``metric_value``, and come from view `deduplication`. Each limit on
    |MaxPMI| in ``etas`` has its own rows. If the limit is None, the rows are about all pairs.
    """
    text = f"""
        SELECT model, benchmark, subset, n, '{DEDUPLICATION}' AS metric, '{{}}' AS options,
            difference AS value, difference_low AS value_low, difference_high AS value_high
        FROM deduplication(eta_limit := $eta)
        WHERE scores = 'released' AND corpus IN ('', $corpus) AND measure = 'us'
    """
    return [
        {**row, "eta_nats": eta}
        for eta in etas
        for row in rows_of(store.root, text, {"corpus": corpus, "eta": eta or 0.0})
        if (row["subset"] == "all") == (eta is None) and row["model"] in models
    ]


def neighbours(store: Store, statistics: Path, corpus: str) -> dict[str, pa.Table]:
    """Return the tables that claims' queries read; empty ones if the release has no PMI file.

    ``near`` lists the target words near each word. ``tau`` has tau-b for every two contrasts.
    """
    from plumbline.jobs.ingest.released_statistics import LIST, pmi_file_of, read_pmi
    from plumbline.pipelines.reproduce.word_lists import agreement_of

    near, tau = list[dict[str, Any]](), list[dict[str, Any]]()
    if pmi := pmi_file_of(statistics):
        near = [{"word": r.word, "targets": [*r.values]} for r in read_pmi(pmi) if not r.reason]
        tau = agreement_of(store, corpus, LIST)
    return {"near": pa.Table.from_pylist(near, _NEAR), "tau": pa.Table.from_pylist(tau, _TAU)}


@dataclass(frozen=True)
class Release:
    """The benchmarks in a release, and the paths of its word statistics, tables and scores."""

    benchmarks: tuple[str, ...]
    statistics: Path
    raw: Path
    results: Path

    @staticmethod
    def at(data: Path) -> Release:
        """Find the files of a release in the directory ``data``.

        Raises ``BadInput`` if benchmarks, word statistics or scores are missing.
        """
        raw, results = data / "data" / "datasets" / "raw", data / "results"
        for part in (data, raw, results):
            if not part.is_dir():
                fix = "give --data the folder that holds `data` and `results` of the release"
                lacks = f"no directory {part.relative_to(data)}"
                raise BadInput(f"{data}", "no such directory" if part == data else lacks, fix)
        benchmarks = tuple(
            name
            for name, stems in _TABLES.items()
            if all(list(raw.glob(f"{stem}.csv*")) for stem in stems)
        )
        if not benchmarks:
            expected = f"expected {', '.join(stem for stems in _TABLES.values() for stem in stems)}"
            raise BadInput(f"{raw}", f"holds no table of a benchmark, {expected}")
        names = ("pmi_file_w_counts.csv.gz", "pmi_file_w_counts.csv")
        statistics = next(filter(Path.is_file, (data / "data" / name for name in names)), None)
        if statistics is None:
            raise BadInput(f"{data}", "holds no word statistics", f"put {names[0]} into `data`")
        return Release(benchmarks, statistics, raw, results)


def import_release(
    store: Store, release: Release, corpus: str, run_id: str
) -> list[ImportedScores]:
    """Import a release, replacing earlier imports; return what was imported for each model.

    MaxPMI is computed from the word statistics, with Plumbline's tokeniser. Raises ``BadInput`` if
    a part of the release is damaged or invalid.
    """
    from plumbline.eval_workers.pairs.benchmarks import import_benchmark
    from plumbline.eval_workers.pairs.released_scores import import_scores
    from plumbline.jobs.association.max_pmi import constrain
    from plumbline.jobs.ingest.released_statistics import import_statistics

    for name in release.benchmarks:
        _announce(f"importing {name}")
        import_benchmark(store, name, release.raw, run_id)
    _announce("importing the word statistics")
    import_statistics(store, corpus, release.statistics, run_id)
    for name in release.benchmarks:
        _announce(f"MaxPMI of {name}")
        constrain(store, corpus, name, least_count=0)
    _announce("importing the scores")
    return import_scores(store, release.results, run_id)
