"""``make bench``: every benchmark in one run, figures as ratios to ours."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import (
    all_pairs,
    counting,
    evidence,
    fairpair,
    gpu,
    growth,
    languages,
    ngram,
    on_spark,
    results,
    sampling,
    scale,
    scoring,
    snippets,
    stages,
    storage,
)
from benchmarks.shards import grown, joined, rotated
from plumbline.jobs.counting.corpus_options import CorpusOptions
from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import MissingComponent

#: Corpora of the reference data that are measured when there is one, each as one shard.
REAL = ("gutenberg", "nltk")
#: The model of the part `gpu`, and where it runs.
GPU = ("6.9b", "cuda")
#: How often the real text is repeated for the part `large`: to about a gigabyte.
LARGE_TIMES = 21
#: How often each shard that is counted through Spark holds all real text.
SPARK_TIMES = 16
#: The same, of the shards of the part `scale`: a gigabyte each.
SCALE_TIMES = 21

_PARTS = (
    *("peers", "all-pairs", "evidence", "snippets", "growth", "large", "languages"),
    *(
        "spark",
        "scoring",
        "sampling",
        "results",
        "fairpair",
        "storage",
        "scale",
        "ngram",
        "gpu",
    ),
)

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: python -m benchmarks peers all-pairs")
def main(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="Any of " + ", ".join(_PARTS) + "; all without one."),
    ] = None,
) -> None:
    """Time counting, scoring and FairPair; with PLUMBLINE_DATA on real text as well."""
    data = os.environ.get("PLUMBLINE_DATA")
    wanted = parts or list(_PARTS)
    if not data:
        print("PLUMBLINE_DATA is not set: only the closed world beside its peers is measured")
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        shards = {"closed world": _world(here)} if "peers" in wanted else {}
        real = sorted((Path(data) / "corpora").glob("*/*.jsonl.zst")) if data else []
        for name in REAL if real else ():
            own = [path for path in real if path.parent.name == name]
            shards[name] = joined(own, here / f"{name}.jsonl.zst")
        if real:
            shards["all real text"] = joined(real, here / "real.jsonl.zst")
        for name, shard in shards.items() if "peers" in wanted else ():
            report(name, shard)
        for name, before in zip(REAL, reversed(REAL), strict=True):
            if real and "all-pairs" in wanted:
                report_all_pairs(name, shards[name], shards[before])
        if real and "evidence" in wanted:
            (here / "evidence").mkdir()
            report_evidence(evidence.run(shards["all real text"], real, here / "evidence"))
        if real and "snippets" in wanted:
            (here / "snippets").mkdir()
            report_snippets(snippets.run(real, here / "snippets"))
        if real and "growth" in wanted:
            report_growth(growth.run(real))
        if real and "large" in wanted:
            report_large(grown(real, here / "large.jsonl.zst", LARGE_TIMES))
        if data and "languages" in wanted:
            report_languages(languages.run(Path(data)))
        if real and "spark" in wanted:
            report_on_spark(rotated(real, here, SPARK_TIMES))
        if real and "scale" in wanted:
            (here / "scale").mkdir()
            report_scale(list(scale.run(real, here / "scale", SCALE_TIMES)))
        if real and "scoring" in wanted:
            report_scoring(*scoring.run(real, here))
        if real and "sampling" in wanted:
            report_sampling(list(sampling.run(real, here)))
        if data and "results" in wanted:
            report_results(list(results.run(Path(data), here)))
        if real and "fairpair" in wanted:
            report_fairpair(*fairpair.run(real))
        if "storage" in wanted:
            report_storage(storage.run(here))
            report_commits(*storage.many_commits(here))
        if real and "ngram" in wanted:
            (here / "ngram").mkdir()
            report_ngram(*ngram.run(real, here / "ngram"))
        if real and "gpu" in wanted:
            try:
                report_gpu(gpu.run(real, here, *GPU))
                report_agreement(*gpu.agreement(real, here, GPU[1]))
            except MissingComponent as e:
                print(e)


def report_gpu(found: gpu.Outcome) -> None:
    """Print pairs a second of each way, beside the better harness, and the share of the peak."""
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


def report_agreement(n_sentences: int, found: list[gpu.Agreement]) -> None:
    """Print how far the scores of a GPU are from those of a CPU in float32."""
    title = f"70 M parameters, {n_sentences} sentences of Winogender, beside float32 on a CPU"
    table = _table(title, "way", "largest difference, nats")
    for one in found:
        table.add_row(one.name, "missing" if one.nats is None else f"{one.nats:.1e}")
    Console(width=120).print(table)


def report_ngram(found: list[ngram.Trained], peer: float) -> None:
    """Print what training takes, beside ``nltk.lm``, and the seconds to the first score."""
    table = _table(
        "5-grams: all real text, and ten times as long with changed words",
        *("M words", "M n-grams", "seconds", "CPU s", "M words/CPU s", "nltk.lm is slower by"),
        *("own memory, MB", "with mapped files", "model, MB", "first score, s"),
    )
    for one in found:
        rate = one.n_words / one.cpu_seconds
        cells = (f"{one.n_ngrams / 1e6:.1f}", f"{one.seconds:.0f}", f"{one.cpu_seconds:.0f}")
        ratios = (f"{rate / 1e6:.2f}", f"{rate / peer:.0f}x")
        sizes = (one.peak_bytes, one.resident_bytes, one.model_bytes)
        megabytes = (f"{size / 1e6:,.0f}" for size in sizes)
        words = f"{one.n_words / 1e6:.1f}"
        table.add_row(words, *cells, *ratios, *megabytes, f"{one.first_score_s:.2f}")
    Console(width=130).print(table)


def report_languages(found: list[languages.Counted]) -> None:
    """Print the rates of other languages beside those of the English rules on the same text."""
    table = _table(
        "other languages: MB per CPU second, and the share of the English rules' rate",
        *("text", "MB", "once, from nothing", "English", "repeated", "English", "share"),
    )
    for one in found:
        repeated = (f"{one.repeated:.0f}", f"{one.english_repeated:.0f}")
        share = f"{one.repeated / one.english_repeated:.0%}"
        once = (f"{one.megabytes:.1f}", f"{one.once:.1f}", f"{one.english_once:.0f}")
        table.add_row(one.name, *once, *repeated, share)
    Console(width=110).print(table)


def report_storage(found: list[storage.Beside]) -> None:
    """Print what the warehouse's commits and opening take beside Delta Lake's."""
    table = _table("storage, seconds", "", "Plumbline", "Delta Lake", "ratio")
    for one in found:
        ratio = f"{one.delta_s / one.ours_s:.2f}"
        table.add_row(one.what, f"{one.ours_s:.3f}", f"{one.delta_s:.3f}", ratio)
    Console(width=100).print(table)


def report_commits(ours: storage.Commits, delta: storage.Commits, took: dict[str, float]) -> None:
    """Print whether a commit costs more the more there were, and what the log takes."""
    table = _table(
        f"{storage.N_COMMITS:,} commits of a row",
        *("", f"first {storage.EDGE}, ms", f"last {storage.EDGE}, ms", "log, MB"),
    )
    for name, one in (("Plumbline", ours), ("Delta Lake", delta)):
        times = (f"{1e3 * seconds:.1f}" for seconds in (one.first_s, one.last_s))
        table.add_row(name, *times, f"{one.n_bytes / 1e6:.1f}")
    Console(width=100).print(table)
    print("then, seconds: " + ", ".join(f"{what} {s:.2f}" for what, s in took.items()))


def _world(directory: Path) -> Path:
    from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import (
        WorldOptions,
        write_world,
    )

    world = write_world(WorldOptions(n_tokens=1_000_000, n_shards=1), directory)
    return Path(world.shards[0])


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left")
    return table


def report_all_pairs(name: str, shard: Path, before: Path) -> None:
    """Count all pairs of a shard under two caps of memory and print the outcome."""
    table = _table(
        f"{name}: all pairs, one core, to files",
        *("memory cap", "seconds", "M kept tokens/s", "peak, own memory", "rows", "files", "MB"),
    )
    for cap_mb in (512, 2048):
        done = all_pairs.run(shard, before, cap_mb)
        rate = f"{done.n_kept / done.seconds / 1e6:.2f}"
        peak, size = f"{done.peak_mb:.0f} MiB", f"{done.megabytes:.0f}"
        written = (f"{done.n_rows:,}", str(done.n_files), size)
        cells = (f"{done.seconds:.2f}", rate, peak, *written)
        table.add_row(f"{cap_mb} MiB", *cells)
    Console(width=100).print(table)


def report_evidence(found: evidence.Outcome) -> None:
    """Print the price of keeping documents, and the rate of counting another list from them."""
    title = f"all real text in one shard, one core, {found.n_kept:,} kept tokens"
    table = _table(title, "what", "seconds", "M kept tokens/s")
    for way in found.ways:
        table.add_row(way.name, f"{way.seconds:.3f}", f"{found.n_kept / way.seconds / 1e6:.2f}")
    console = Console(width=100)
    console.print(table)
    for line in found.missing:
        console.print(line, markup=False)
    rows_per_s = found.n_rows / found.merge_seconds / 1e6
    console.print(
        f"keeping the documents: {found.cpu_price:+.1%} of the processor time, {found.price:+.1%} "
        f"of the wall time (medians of the rounds); {found.bytes_per_token:.2f} bytes/kept token"
    )
    console.print(
        f"counting again: {found.n_targets} targets, {found.n_rows:,} rows, which are summed in "
        f"{found.merge_seconds:.2f} s ({rows_per_s:.1f} M rows/s)"
    )
    console.print(f"corpus associate --targets {evidence.ADDED}: {found.associate:.1f} s")
    console.print(
        f"in a shard of {evidence.LARGE} times this text: {found.large_rate:.1f} M kept tokens/s; "
        f"the Pile's ({evidence.PILE_TIMES:,} times this text) on {evidence.PILE_CORES} cores at "
        f"this rate: {found.pile_minutes:.1f} minutes, without merge and tables"
    )


def report_snippets(found: snippets.Outcome) -> None:
    """Print what sentences for every word cost while counting, and those of some words later."""
    table = _table("sentences: all real text", "what", "processor seconds", "of counting")
    ways = {
        "counting, documents kept": found.counting,
        f"collecting for all {found.n_words:,} words": found.collecting,
        f"`why` of {len(snippets.WORDS)} words, afterwards": found.later,
    }
    for what, seconds in ways.items():
        table.add_row(what, f"{seconds:.3f}", f"{seconds / found.counting:.0%}")
    console = Console(width=100)
    console.print(table)
    console.print(f"collecting holds {found.n_bytes / 1e6:.0f} MB for {snippets.N} per side")


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


def report_large(shard: Path) -> None:
    """Print the time of each step on a shard of the Pile's size, and the bare reading beside it."""
    targets = Targets(wordlists.load("gendered").targets)
    options = CorpusOptions(evidence=False)
    kept = count_shard(shard, targets, options).n_kept_tokens
    whole = ("shard to counts", "decompress and parse only")
    work: list[Callable[[], object]] = [
        lambda: count_shard(shard, targets, options),
        lambda: counting.read_only(shard),
    ]
    seconds = dict(zip(whole, counting.median_seconds(work, 3), strict=True))
    parts = stages.stages(shard, targets, 3)
    size = parts[0].megabytes
    table = _table(f"a shard of {size:,.0f} MB of JSON, {kept:,} kept tokens", "what", "seconds")
    for name, value in {**seconds, **{part.name: part.seconds for part in parts}}.items():
        table.add_row(name, f"{value:.2f}")
    console = Console(width=100)
    console.print(table)
    first, second = (p.seconds for p in parts if "pass" in p.name)
    console.print(
        f"{kept / seconds[whole[0]] / 1e6:.2f} M kept tokens/s; {first / second - 1:.0%} more in a "
        f"first pass; {seconds[whole[1]] / seconds[whole[0]]:.2f} of decompress and parse"
    )


def report_on_spark(shards: list[Path]) -> None:
    """Count the same shards with and without Spark and print the outcome."""
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
    """Print rows, files, bytes, memory and seconds of each count, and a model of a terabyte."""
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
    """Print pairs a second of each way, and how much faster ours is; ``busy`` comes last."""
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
    """All benchmarks together: every pair of them, at its benchmark's rate."""
    n_pairs = sum(one.n_pairs for one in timed)

    def mean(way: str) -> float:
        return sum(getattr(one, way) * one.n_pairs for one in timed) / n_pairs

    ways = (mean("ours"), mean("naive"), mean("harness"))
    n_texts, differs = sum(one.n_texts for one in timed), max(one.differs_nats for one in timed)
    return scoring.Timed("all", n_pairs, n_texts, *ways, differs)


def report_sampling(rates: list[sampling.Rate]) -> None:
    """Print continuations per second of each way."""
    title = f"70 M parameters, {sampling.N_TOKENS} new tokens: continuations per second"
    table = _table(title, "what", "n", "ours", "generate", "its batch", "ratio", "ours by vLLM")
    for rate in rates:
        by_vllm = "not installed" if rate.vllm is None else f"{rate.vllm:.1f}"
        cells = (f"{rate.ours:.1f}", f"{rate.generate:.1f}", str(rate.batch))
        ratio = f"{rate.ours / rate.generate:.2f}x"
        table.add_row(rate.what, str(rate.n), *cells, ratio, by_vllm)
    Console(width=100).print(table)


def report_results(costs: list[results.Cost]) -> None:
    """Print seconds and memory of each command."""
    table = _table("28 models, five benchmarks", "command", "seconds", "CPU seconds", "peak MB")
    for cost in costs:
        cells = (f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}", f"{cost.peak_bytes / 1e6:.0f}")
        table.add_row(cost.command, *cells)
    Console(width=100).print(table)


def report_fairpair(beside: list[fairpair.Beside], whole: list[fairpair.Whole]) -> None:
    """Print FairPair's figures beside plain loops, and the seconds of a whole set of prompts."""
    table = _table(
        f"FairPair, one core, 2 x {fairpair.N_LOOP} samples: ms",
        *("what", "ours", "plain loop", "ours is faster by", "largest difference"),
    )
    for one in beside:
        cells = (f"{1e3 * one.ours:.2f}", f"{1e3 * one.loop:.2f}", f"{one.loop / one.ours:.1f}x")
        table.add_row(one.what, *cells, f"{one.differs:.1e}")
    size = f"{fairpair.N_PROMPTS} prompts x 2 x {fairpair.N_SAMPLES} samples"
    all_of_it = _table(f"{size}, one core: seconds", "Phi", "items", "B and V", "both", "CPU")
    for part in whole:
        cells = (f"{part.items:.1f}", f"{part.means:.1f}", f"{part.items + part.means:.1f}")
        all_of_it.add_row(part.phi, *cells, f"{part.cpu:.1f}")
    console = Console(width=100)
    console.print(table)
    console.print(all_of_it)
    console.print(f"together {sum(part.items + part.means for part in whole):.1f} s")


def report(name: str, shard: Path) -> None:
    """Measure one shard and print its two tables."""
    console = Console(width=100)
    timings, kept = counting.run(shard)
    ours = timings[0]
    title = f"{name}: one core, {ours.megabytes:.1f} MB of JSON, {kept:,} kept tokens"
    table = _table(title, "what", "seconds", "MB/s", "ours is faster by")
    for timing in timings:
        ratio = ours.megabytes_per_second / timing.megabytes_per_second
        cells = (f"{timing.seconds:.3f}", f"{timing.megabytes_per_second:.1f}", f"{ratio:.2f}x")
        table.add_row(timing.name, *cells)
    console.print(table)
    console.print(f"plumbline: {kept / ours.seconds / 1e6:.2f} M kept tokens/s on one core")
    parts = _table(f"{name}: where the time goes", "stage", "ms")
    for part in stages.stages(shard, Targets(wordlists.load("gendered").targets)):
        parts.add_row(part.name, f"{1e3 * part.seconds:.1f}")
    console.print(parts)


if __name__ == "__main__":
    app()
