"""Writing the documents of a corpus that a rule keeps as new shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.jobs.corpus_options import Copies
from plumbline.jobs.counting.document_words import Evidence, evidence_of
from plumbline.jobs.evidence.concordance import texts_of
from plumbline.jobs.evidence.duplicates import Signatures, first_copies, first_of_near, signatures
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    UNNAMED,
    Inquiry,
    Meetings,
    Sightings,
    look,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.remote_files import located
from plumbline.warehouse.input.shards import fingerprint, kind_of, lines
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.regular_files import begin_directory
from plumbline.warehouse.storage.store import Store

#: File in the directory of the shards that records their corpus, run and rule.
LEDGER = "filter.json"


@dataclass(frozen=True)
class SubsetRule:
    """A rule that selects the documents to keep.

    Attributes:
        copies: ``once`` keeps only the first copy among the sources that stay; ``near-once``
            leaves out near copies too.
        sources: the only sources that stay; empty for all.
        without: sources left out.
    """

    copies: Copies = "keep"
    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subset:
    """Outcome: numbers of the corpus's documents and of kept ones; the shards written."""

    n_documents: int
    n_kept: int
    shards: tuple[Path, ...]


def write_subset(
    store: Store,
    corpus: str,
    rule: SubsetRule,
    out: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Subset:
    """Write the kept documents of a counted corpus: a new shard for each shard that has any.

    Lines of JSON stay as they are; documents of other shards become ``{"text": ...}`` with their
    source, if they name one, in the field that counting read. Documents that counting rejected are
    left out. A shard appears whole; after an interruption the same call writes all shards again.

    Raises:
        UsageProblem: no such corpus or source, a corpus without evidence, or ``out`` holds files
            that the same call did not write.
        MissingComponent: its kept documents are not on this machine.
        BadInput: a shard is gone or has changed since it was counted, or ``out`` can't be written.
    """
    evidence = evidence_of(store, corpus)
    seen, signed = _documents(store, evidence, rule)
    table = seen.documents
    for name in (*rule.sources, *rule.without):
        if name not in table.sources:
            fix = f"its sources include {', '.join(table.sources[:8])}"
            raise UsageProblem(f"source {name!r}", f"is not one of corpus {corpus}", fix)
    names = np.array(table.sources, object)[table.source]
    kept = np.isin(names, rule.sources or table.sources) & ~np.isin(names, rule.without)
    if rule.copies == "once":
        kept = first_copies(seen, kept)
    elif rule.copies == "near-once":
        kept = first_of_near(seen, signed, among=kept)
    facts = {"corpus": corpus, "run_id": evidence.corpus["run_id"], **asdict(rule)}
    begin_directory(out, LEDGER, facts)
    shards = []
    for index in range(len(evidence.shards)):
        chosen = np.flatnonzero(kept & (table.shard == index))
        if chosen.size:
            rows = dict(zip(table.row[chosen].tolist(), names[chosen].tolist(), strict=True))
            shards.append(_write(evidence, index, rows, out))
        progress(index + 1, len(evidence.shards))
    return Subset(len(table.row), int(kept.sum()), tuple(shards))


def _documents(store: Store, evidence: Evidence, rule: SubsetRule) -> tuple[Sightings, Signatures]:
    words = store.read("word_count", corpus=evidence.corpus["corpus"])["word"].combine_chunks()
    question = Inquiry((), (), (), (), "pairs", evidence.options.window, words)
    parts = [Signatures(*(np.empty(0, np.int64),) * 2, np.empty((0, 128), np.uint32))]

    def watch(shard: int, met: Meetings, _: NDArray[np.uint64]) -> None:
        every = np.arange(len(met.documents.row))
        parts.append(signatures(shard, met.documents, every, question.keys))

    watcher = watch if rule.copies == "near-once" else None
    seen = look(evidence, question, watcher, most_sources=ALL_SOURCES)
    return seen, Signatures(*map(np.concatenate, zip(*parts, strict=True)))


def _write(evidence: Evidence, index: int, rows: dict[int, str], out: Path) -> Path:
    shard = evidence.shards[index]
    source = located(shard.name)
    if fingerprint(source) != shard.fingerprint:
        fix = "count the corpus again first"
        raise BadInput(f"shard {shard.name}", "has changed since it was counted", fix)
    stem = source.name.split(".", 1)[0]
    path = out / f"{index:05}-{stem}.jsonl.zst"
    try:
        with (
            replacing(path) as temporary,
            pa.OSFile(str(temporary), "wb") as raw,
            pa.CompressedOutputStream(raw, "zstd") as stream,
        ):
            for line in _lines(evidence, source, rows):
                stream.write(line + b"\n")
    except OSError as e:
        raise BadInput(f"{path}", f"can't be written: {e.strerror or e}") from e
    return path


def _lines(evidence: Evidence, source: Path, rows: dict[int, str]) -> Iterator[bytes]:
    if kind_of(source) is None:
        yield from (line for row, line in enumerate(lines(source), 1) if row in rows)
        return
    for row, text, _ in texts_of(source, evidence, set(rows)):
        record: object = rows[row]
        for name in reversed(evidence.options.source_field.split(".")):
            record = {name: record}
        is_named = evidence.options.source_field and rows[row] != UNNAMED
        fields = record if isinstance(record, dict) and is_named else {}
        yield json.dumps({"text": text, **fields}, ensure_ascii=False).encode()
