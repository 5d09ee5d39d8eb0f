"""Run benchmarks and compare Plumbline's speed with other programs: ``make bench``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import counting, evidence, gpu, growth, on_spark, scale, scoring
from benchmarks.shards import joined, rotated
from plumbline.warehouse.errors import MissingComponent

#: The model of the part `gpu`, and where it runs.
GPU = ("6.9b", "cuda")
#: How often each shard of the part `spark` repeats all real text.
SPARK_TIMES = 16
#: How often each shard of the part `scale` repeats it: about a gigabyte.
SCALE_TIMES = 21

_PARTS = ("peers", "evidence", "growth", "spark", "scale", "scoring", "gpu")

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: python -m benchmarks peers growth")
def main(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="Parts to run: " + ", ".join(_PARTS) + "; default: all."),
    ] = None,
) -> None:
    """Time counting and scoring on the text in PLUMBLINE_DATA."""
    data = os.environ.get("PLUMBLINE_DATA")
    if not data:
        raise SystemExit("set PLUMBLINE_DATA to the directory with the reference data")
    real = sorted((Path(data) / "corpora").glob("*/*.jsonl.zst"))
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        runs = {
            "peers": lambda: report_peers(joined(real, here / "real.jsonl.zst")),
            "evidence": lambda: report_evidence(evidence.bytes_per_token(real, here)),
            "growth": lambda: report_growth(growth.run(real)),
            "spark": lambda: report_on_spark(rotated(real, here, SPARK_TIMES)),
            "scale": lambda: report_scale(list(scale.run(real, here, SCALE_TIMES))),
            "scoring": lambda: report_scoring(*scoring.run(real, here)),
            "gpu": lambda: report_gpu(gpu.run(real, here, *GPU)),
        }
        for part in parts or _PARTS:
            try:
                runs[part]()
            except MissingComponent as e:
                print(e)


def report_peers(shard: Path) -> None:
    """Time counting on one core, with Plumbline and with other programs."""
    timings, kept = counting.run(shard)
    ours = timings[0]
    title = f"all real text: one core, {ours.megabytes:.1f} MB of JSON, {kept:,} kept tokens"
    table = _table(title, "what", "seconds", "MB/s", "ours is faster by")
    for timing in timings:
        ratio = ours.megabytes_per_second / timing.megabytes_per_second
        cells = (f"{timing.seconds:.3f}", f"{timing.megabytes_per_second:.1f}", f"{ratio:.2f}x")
        table.add_row(timing.name, *cells)
    Console(width=100).print(table)
    print(f"plumbline: {kept / ours.seconds / 1e6:.2f} M kept tokens/s on one core")


def report_evidence(bytes_per_token: float) -> None:
    """Print the size of the kept documents."""
    print(f"kept documents: {bytes_per_token:.2f} bytes per kept token")


def report_growth(grown: list[growth.Grown]) -> None:
    """Print how the tables grow with the text, and the exponent over the last two steps."""
    table = _table(
        "all real text, documents in turn: growth of a partial result",
        *("JSON, MB", "kept tokens", "words", "pair rows", "files, MB"),
    )
    for part in grown:
        cells = (f"{part.n_kept:,}", f"{part.n_words:,}", f"{part.n_pair_rows:,}")
        table.add_row(f"{part.megabytes:.1f}", *cells, f"{part.file_megabytes:.2f}")
    console = Console(width=100)
    console.print(table)
    for name in ("n_words", "n_pair_rows", "file_megabytes"):
        few, many = ((g.n_kept, getattr(g, name)) for g in (grown[-3], grown[-1]))
        console.print(f"{name} ~ kept tokens^{growth.exponent(few, many):.2f}")


def report_on_spark(shards: list[Path]) -> None:
    """Count the same shards with and without Spark, and print the times."""
    ways, kept = on_spark.run(shards)
    per_core = ways[0].seconds
    table = _table(
        f"{len(shards)} shards, {kept:,} kept tokens: one machine and Spark",
        *("way", "counting, s", "M kept tokens/s", "per core, of the kernel alone"),
        *("merge, s", "CPU, s"),
    )
    for way in ways:
        share = per_core / (way.seconds * way.n_cores)
        cells = (f"{way.seconds:.1f}", f"{kept / way.seconds / 1e6:.2f}", f"{share:.2f}")
        table.add_row(way.name, *cells, f"{way.merge_seconds:.1f}", f"{way.cpu_seconds:.1f}")
    Console(width=100).print(table)


def report_scale(runs: list[scale.Run]) -> None:
    """Print rows, files, bytes, memory and seconds of each count; estimate those of a terabyte."""
    table = _table(
        "corpus count on text of 1 to 8 GB of JSON, in shards of one",
        *("shards", "way", "M kept tokens", "words", "pair rows", "M rows to merge", "files"),
        *("tables, MB", "work, MB", "counting, s", "merge, s", "CPU, s"),
    )
    for run in runs:
        table.add_row(
            *(str(run.n_shards), run.way, f"{run.n_kept / 1e6:.1f}", f"{run.n_words:,}"),
            *(f"{run.n_pair_rows:,}", f"{run.n_merged / 1e6:.2f}", str(run.n_files)),
            *(f"{run.table_bytes / 1e6:.1f}", f"{run.work_bytes / 1e6:.0f}"),
            *(f"{run.seconds:.1f}", f"{run.merge_seconds:.1f}", f"{run.cpu_seconds:.1f}"),
        )
    console = Console(width=140)
    console.print(table)
    peaks = _table("memory of the largest process, MB", "shards", "way", *scale.KINDS)
    for run in runs:
        cells = (run.peak_bytes.get(kind) for kind in scale.KINDS)
        shown = ("" if n_bytes is None else f"{n_bytes / 1e6:.0f}" for n_bytes in cells)
        peaks.add_row(str(run.n_shards), run.way, *shown)
    console.print(peaks)
    console.print(scale.terabyte(runs))


def report_scoring(timed: list[scoring.Timed], busy: scoring.Timed, batch: int) -> None:
    """Print pairs per second of each way, and how much faster ours is; ``busy`` comes last."""
    table = _table(
        "scoring, 70 M parameters of the Pythia shape, float32, CPU: pairs/s",
        *("benchmark", "pairs", "timed", "ours", "naive", "ours is faster by"),
        *("lm-evaluation-harness", "ours is faster by", "largest difference, nats"),
    )
    for one in [*timed, _of_all(timed), busy]:
        cells = (f"{one.n_pairs:,}", f"{one.n_texts // 2:,}", f"{1 / one.ours:.1f}")
        naive = (f"{1 / one.naive:.1f}", f"{one.naive / one.ours:.2f}x")
        harness = (f"{1 / one.harness:.1f}", f"{one.harness / one.ours:.2f}x")
        table.add_row(one.benchmark, *cells, *naive, *harness, f"{one.differs_nats:.1e}")
    console = Console(width=120)
    console.print(table)
    console.print(f"lm-evaluation-harness at its best batch size here, {batch}")


def _of_all(timed: list[scoring.Timed]) -> scoring.Timed:
    """Return the seconds of all benchmarks together, weighted by their numbers of pairs."""
    n_pairs = sum(one.n_pairs for one in timed)

    def mean(way: str) -> float:
        return sum(getattr(one, way) * one.n_pairs for one in timed) / n_pairs

    ways = (mean("ours"), mean("naive"), mean("harness"))
    n_texts, differs = sum(one.n_texts for one in timed), max(one.differs_nats for one in timed)
    return scoring.Timed("all", n_pairs, n_texts, *ways, differs)


def report_gpu(found: gpu.Outcome) -> None:
    """Print pairs per second, the ratio to the faster harness, and the share of the peak."""
    theirs = [w.seconds for w in found.ways if w.name.startswith("lm-") and w.seconds]
    title = f"{GPU[0]} parameters of the Pythia shape on {found.device}: {found.n_pairs:,} pairs"
    table = _table(title, "way", "seconds", "pairs/s", "faster than the better harness", "of peak")
    for way in found.ways:
        if way.seconds is None:
            table.add_row(way.name, "missing", "", "", "")
            continue
        share = found.share(way)
        cells = (f"{way.seconds:.1f}", f"{found.n_pairs / way.seconds:,.1f}")
        ratio = f"{min(theirs) / way.seconds:.2f}x" if theirs else ""
        table.add_row(way.name, *cells, ratio, f"{share:.0%}" if share is not None else "unknown")
    console = Console(width=120)
    console.print(table)
    for way in found.ways:
        if way.missing:
            console.print(f"{way.name}: {way.missing}", markup=False)


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left")
    return table


if __name__ == "__main__":
    app()
