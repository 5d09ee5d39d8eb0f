"""Imports released MaxPMI of sentence pairs into ``pair_association``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.eval_workers.pairs.released.gather import finite, gather
from plumbline.eval_workers.pairs.released.released_files import (
    ReleasedFile,
    grouped,
    max_pmi_files,
)
from plumbline.eval_workers.scoring.pair_scores import check_imported
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import Record, truth
from plumbline.warehouse.storage.store import Store

_MAX_PMI, _UNDEFINED = "max_gender_pmi", "max_gender_pmi_invalid"
_COLUMNS = ("template", _MAX_PMI)
_CONTRAST = "she/he"


@dataclass(frozen=True)
class ImportedMaxPmi:
    """Outcome for one benchmark: ``n_pairs = n_found + n_missing``.

    ``n_missing`` counts the pairs without a usable row, among them every unnatural pair, which the
    released sets leave out. ``n_rejected`` counts the unused rows.
    """

    benchmark: str
    n_pairs: int
    n_found: int
    n_rejected: int
    n_missing: int


def import_max_pmi(store: Store, directory: Path, corpus: str, run_id: str) -> list[ImportedMaxPmi]:
    """Read every ``*-no-maxpmi-constraint.csv[.gz]`` under a directory as MaxPMI of ``corpus``.

    Writes ``pair_association`` (replaces rows of contrast `she/he`; other contrasts stay) and
    ``reject`` (stage `import`). Columns that the files lack are NULL: the word that decides, sums
    and counts of words. Raises as ``max_pmi_files``, ``check_imported`` and ``gather``, and
    ``BadInput`` for a benchmark without a usable row.
    """
    files = max_pmi_files(directory)
    check_imported(store, [file.benchmark for file in files])
    done = []
    for benchmark, parts in grouped(files, lambda f: f.benchmark).items():
        subject = f"{corpus}/{benchmark}"
        pairs = store.read("benchmark_pair", benchmark=benchmark).to_pylist()
        reject = {"subject": subject, "run_id": run_id}
        by_pair, rejects = gather(parts, pairs, _COLUMNS, _figures, reject)
        if not by_pair:
            first = f"; the first: {rejects[0]['reason']}" if rejects else ""
            raise BadInput(f"{parts[0].path}", f"no usable row, {len(rejects)} rejected{first}")
        common = {"corpus": corpus, "contrast": _CONTRAST, "benchmark": benchmark}
        rows = [
            {**common, "pair_id": pair_id, "max_pmi_nats": max_pmi_nats}
            for pair_id, (max_pmi_nats,) in sorted(by_pair.items())
        ]
        with store.transaction(run_id, f"MaxPMI of {subject}"):
            store.publish("pair_association", rows, unit=_CONTRAST, run_id=run_id)
            store.replace("reject", rejects, {"stage": "import", "subject": subject}, run_id)
        counts = (len(pairs), len(by_pair), len(rejects), len(pairs) - len(by_pair))
        done.append(ImportedMaxPmi(benchmark, *counts))
    return done


def _figures(file: ReleasedFile, row: Record) -> tuple[float | None] | str:
    """MaxPMI in nats, ``None`` where the file calls it undefined; or the problem with the row."""
    text = row.fields[_MAX_PMI]
    value = finite(text)
    if value is not None or truth(row.fields.get(_UNDEFINED, "")):
        return (value,)
    return f"{_MAX_PMI} is {text!r}, expected a number, or {_UNDEFINED} to be True"
