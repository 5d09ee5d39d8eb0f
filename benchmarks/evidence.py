"""What keeping the documents costs, and counting another word list from them; beside others.

All ways work on one shard of all real text, one after the other in every round.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.counting import WINDOW, texts_of
from benchmarks.shards import joined

#: The list that is added to a corpus counted with ``gendered``.
ADDED = "names"
#: Kept tokens of the Pile: it is 33,000 times as long as all real text (docs/cluster.md).
PILE_TIMES = 33_000
#: A shard of it is as large as this many times all real text.
LARGE = 16
#: Cores of the estimate for the Pile.
PILE_CORES = 16


@dataclass(frozen=True)
class Way:
    """A way to do a part of the work, and its median seconds."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What was found.

    Attributes:
        ways: counting without and with evidence and counting again come first.
        missing: the ways that could not be timed, each with the reason.
        price, cpu_price: median over the rounds of seconds with evidence / without it, less 1; the
            same of seconds of processor time, which don't count what other programs take.
        bytes_per_token: size of the kept documents.
        n_kept: kept tokens.
        n_rows: pairs counted again, with ``n_targets`` targets.
        merge_seconds: of summing these rows.
        large_rate: million kept tokens counted again per second and core, in a shard that holds
            all real text ``LARGE`` times.
        associate: seconds of ``corpus associate --targets``, of a corpus in the six shards.
    """

    ways: list[Way]
    missing: list[str]
    price: float
    cpu_price: float
    bytes_per_token: float
    n_kept: int
    n_rows: int
    n_targets: int
    merge_seconds: float
    large_rate: float
    associate: float

    @property
    def pile_minutes(self) -> float:
        """Counting the Pile's kept tokens again on 16 cores, without merge and tables."""
        return self.n_kept * PILE_TIMES / (self.large_rate * 1e6 * PILE_CORES) / 60


def run(shard: Path, shards: Sequence[Path], directory: Path, rounds: int = 7) -> Outcome:
    """Time all ways on one shard, and the whole command on a corpus of several."""
    from plumbline.jobs.corpus_options import CorpusOptions
    from plumbline.jobs.counting.partials import ShardJob, partial_files, token_files
    from plumbline.jobs.kernel.tokenizer import Targets
    from plumbline.warehouse import wordlists

    own, added = (wordlists.load(name).targets for name in ("gendered", ADDED))
    new = tuple(word for word in added if word not in own)
    targets = {"bare": Targets(own), "kept": Targets(own), "again": Targets(new)}

    def count(name: str, source: Path) -> str:
        out = directory / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        options = CorpusOptions(evidence=name == "kept")
        job = ShardJob(str(out), targets[name], options, name == "again")
        ledger = job.count(str(source))
        assert ledger.status == "counted", ledger.error
        return ledger.fingerprint

    mark = count("kept", shard)
    n_kept = int(json.loads((directory / "kept" / f"{mark}.json").read_text())["n_kept_tokens"])
    texts = texts_of(shard)
    steps: dict[str, Callable[[], object]] = {
        "plumbline: shard to counts, --no-evidence": lambda: count("bare", shard),
        "plumbline: shard to counts and kept documents": lambda: count("kept", shard),
        "plumbline: kept documents to pairs of another list": lambda: count(
            "again", token_files(directory / "kept", mark)[0][0]
        ),
    }
    missing = []
    if find_spec("stringzilla"):
        steps["StringZilla: split at white space, in memory"] = lambda: _split(texts)
        steps["StringZilla: the same, words counted by hash"] = lambda: _count_words(texts)
    else:
        missing.append("StringZilla: not installed (pip install stringzilla)")
    if shutil.which("cooccur") and shutil.which("vocab_count"):
        lines = _tokens(texts, own, directory)
        steps["GloVe: vocab_count and cooccur, on kept tokens"] = lambda: _glove(lines, directory)
    else:
        missing.append("GloVe: not timed, cooccur and vocab_count are not on the PATH")
    seconds = np.zeros((2, len(steps), rounds))  # wall, processor
    for step in list(steps.values())[:3]:
        step()  # compiles
    for n in range(rounds):
        for k, step in enumerate(steps.values()):
            before = np.array([time.perf_counter(), time.process_time()])
            step()
            seconds[:, k, n] = [time.perf_counter(), time.process_time()] - before
    prices = np.median(seconds[:, 1] / seconds[:, 0], axis=1) - 1
    size = sum(file.stat().st_size for file, _ in token_files(directory / "kept", mark))
    pairs = partial_files(directory / "again", mark, "pairs")
    n_rows, merge_seconds = _merge(pairs, directory / "kept", mark, directory)
    large = count("kept", joined([shard] * LARGE, directory / "large.jsonl.zst"))
    tokens, again = token_files(directory / "kept", large)[0][0], []
    for _ in range(3):
        start = time.perf_counter()
        count("again", tokens)
        again.append(time.perf_counter() - start)
    return Outcome(
        list(map(Way, steps, np.median(seconds[0], axis=1).tolist())),
        missing,
        *map(float, prices),
        size / n_kept,
        n_kept,
        n_rows,
        len(new),
        merge_seconds,
        LARGE * n_kept / statistics.median(again) / 1e6,
        _associate(shards, directory),
    )


def _split(texts: Sequence[str]) -> int:
    import stringzilla

    return sum(
        1 for text in texts for _ in stringzilla.Str(text).utf8_split_whitespaces(skip_empty=True)
    )


def _count_words(texts: Sequence[str]) -> int:
    import stringzilla

    counts: Counter[object] = Counter()
    for text in texts:
        counts.update(stringzilla.Str(text).utf8_split_whitespaces(skip_empty=True))
    return len(counts)


def _tokens(texts: Sequence[str], targets: Sequence[str], directory: Path) -> Path:
    """Our kept tokens, a document per line."""
    from plumbline.jobs.kernel.tokenizer import tokenize_all

    path = directory / "tokens.txt"
    path.write_text("\n".join(map(" ".join, tokenize_all(texts, targets))), encoding="utf-8")
    return path


def _glove(lines: Path, directory: Path) -> None:
    """Words, then all pairs, unweighted, at the distances that we count."""
    vocabulary = directory / "vocabulary.txt"
    window = ("-window-size", str(WINDOW - 1), "-distance-weighting", "0", "-memory", "2")
    commands = {
        vocabulary: ["vocab_count", "-min-count", "1", "-verbose", "0"],
        directory / "cooccurrence.bin": [
            *("cooccur", "-vocab-file", str(vocabulary), "-verbose", "0"),
            *window,
            *("-overflow-file", str(directory / "overflow")),
        ],
    }
    for out, command in commands.items():
        with lines.open("rb") as source, out.open("wb") as sink:
            subprocess.run(command, stdin=source, stdout=sink, check=True)


def _merge(pairs: list[Path], kept: Path, mark: str, directory: Path) -> tuple[int, float]:
    """Rows of partial results, and the seconds of summing them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from plumbline.jobs.counting.merge import BATCH_ROWS, PairSum
    from plumbline.jobs.counting.partials import partial_files

    tables = [pq.read_table(file)["word"] for file in partial_files(kept, mark, "words")]
    words = pa.chunked_array([x for t in tables for x in t.chunks]).unique().sort()
    work = directory / "merge"
    work.mkdir()
    start = time.perf_counter()
    sums = PairSum(pairs, words.cast(pa.large_string()), False, work, 1 << 30)
    for _ in sums.sums(BATCH_ROWS):
        pass
    return sum(pq.read_metadata(file).num_rows for file in pairs), time.perf_counter() - start


def _associate(shards: Sequence[Path], directory: Path, rounds: int = 3) -> float:
    """Median seconds of adding a list to a corpus that lacks it, nothing counted for it before."""
    from plumbline.jobs.association.associations import associate
    from plumbline.jobs.corpus_options import CorpusOptions
    from plumbline.jobs.count_corpus import count_corpus
    from plumbline.warehouse.storage.store import Store

    store, seconds = Store.open(directory / "warehouse"), []
    for _ in range(rounds):
        # Merged again from its partial counts, which drops the list.
        count_corpus(store, "c", tuple(shards), CorpusOptions(replace=True))
        associate(store, "c")
        shutil.rmtree(store.root / "_work" / "recount", ignore_errors=True)
        start = time.perf_counter()
        associate(store, "c", ADDED)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
