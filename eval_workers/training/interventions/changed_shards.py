"""Shards with a share of their documents changed, and a ledger of every change.

Dose, seed, a shard's name and a document's row alone decide which documents are chosen. A larger
dose includes the documents of a smaller one, and a placebo chooses the same documents.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field
from pydantic.dataclasses import dataclass as options_class

from plumbline.eval_workers.training.interventions.exchange import (
    Exchange,
    gender_exchange,
    neutral_exchange,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import (
    DEFAULT,
    RecordForm,
    documents,
    field_value,
    fingerprint,
    kind_of,
    lines,
)
from plumbline.warehouse.options import STRICT
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.regular_files import begin_directory, json_object

#: File in the directory of the shards that describes them.
LEDGER = "intervention.json"
#: Characters of text shown before and after a change.
_AROUND = 50
#: Suffix of a shard's ledger, which has one row per change.
CHANGES = ".changes.parquet"
_SCHEMA = pa.schema(
    {"row": pa.int64(), "start": pa.int64(), "written": pa.string(), "new": pa.string()}
)


@options_class(frozen=True, kw_only=True, config=STRICT)
class InterventionOptions:
    """Words that are exchanged in a text, and in what share of its documents.

    >>> InterventionOptions(placebo="rain,snow").exchange.apply("Rain fell on her.").text
    'Snow fell on her.'
    """

    dose: Annotated[
        float,
        Field(ge=0, le=1, allow_inf_nan=False, description="Share of the documents changed."),
    ] = 1.0
    near: Annotated[
        str, Field(description="Change only sentences that hold one of these: words with commas.")
    ] = ""
    placebo: Annotated[
        str, Field(description="Exchange these two words instead of the gendered ones: rain,snow.")
    ] = ""
    seed: Annotated[
        int, Field(ge=0, le=(1 << 32) - 1, description="Decides which documents are changed.")
    ] = 0

    @property
    def exchange(self) -> Exchange:
        """Build the exchange; raises ``UsageProblem`` for a placebo that is not two words."""
        near = frozenset(w.strip().lower() for w in self.near.split(",") if w.strip())
        if self.placebo:
            first, _, second = self.placebo.partition(",")
            return neutral_exchange(first.strip(), second.strip(), near)
        return gender_exchange(near)


@dataclass(frozen=True)
class ChangedText:
    """Written shards, and numbers of documents read, chosen by the dose, and changed.

    ``n_changes`` words were exchanged; ``n_undecided`` pronouns of chosen documents stayed.
    """

    shards: tuple[Path, ...]
    n_documents: int
    n_chosen: int
    n_changed: int
    n_changes: int
    n_undecided: int


def is_chosen(name: str, row: int, options: InterventionOptions) -> bool:
    """True if the dose includes a document, by its shard's name and its row from 1.

    >>> whole, half = InterventionOptions(), InterventionOptions(dose=0.5)
    >>> sum(is_chosen("a", row, half) for row in range(1, 1001))
    477
    >>> all(is_chosen("a", row, whole) for row in range(1, 1001))
    True
    """
    digest = hashlib.sha256(f"{options.seed}/{name}/{row}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < options.dose * 2**64


def write_changed(
    shards: Sequence[Path],
    options: InterventionOptions,
    out: Path,
    form: RecordForm = DEFAULT,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ChangedText:
    """Write shards with words of some documents exchanged, each beside its ledger of changes.

    Documents keep their order and, in JSON lines, their other fields; lines without a text stay as
    they are. Each shard is renamed when complete; after an interruption the same call resumes.

    Raises:
        UsageProblem: two shards that would get one name, a directory that holds something else, or
            a placebo that is not two words.
        BadInput: a shard can't be read, or ``out`` can't be written.
    """
    paths = _places(shards, out)
    marks = {to.name: fingerprint(path) for to, path in zip(paths, shards, strict=True)}
    exchange, totals = options.exchange, Counter[str]()  # raises before anything is written
    begin_directory(out, LEDGER, {**asdict(options), "shards": marks, "field": form.text_field})
    for done, (shard, path) in enumerate(zip(shards, paths, strict=True), 1):
        if not path.exists():
            _write(shard, path, exchange, options, form)
        counts = pq.read_schema(ledger_of(path)).metadata
        totals.update({name: int(counts[name.encode()]) for name in _COUNTS})
        progress(done, len(shards))
    return ChangedText(tuple(paths), **{name: totals[name] for name in _COUNTS})


def _places(shards: Sequence[Path], out: Path) -> list[Path]:
    """Paths of the changed shards; names start with the directory if two shards share a name."""
    names = [path.name.split(".", 1)[0] for path in shards]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}-{name}" for path, name in zip(shards, names, strict=True)]
    if len(set(names)) < len(names):
        raise UsageProblem("shards", "two have the same name", "rename one, or change them apart")
    return [out / f"{name}.jsonl.zst" for name in names]


_COUNTS = ("n_documents", "n_chosen", "n_changed", "n_changes", "n_undecided")


def ledger_of(shard: Path) -> Path:
    """Path of the ledger of a written shard."""
    return shard.with_name(shard.name.removesuffix(".jsonl.zst") + CHANGES)


def _write(
    shard: Path, path: Path, exchange: Exchange, options: InterventionOptions, form: RecordForm
) -> None:
    """Write a shard's ledger, then the shard: once the shard exists, it counts as complete."""
    counts = dict.fromkeys(_COUNTS, 0)
    changes: list[dict[str, object]] = []

    def changed(row: int, text: str) -> str:
        counts["n_documents"] += 1
        if not is_chosen(path.name, row, options):
            return text
        exchanged = exchange.apply(text)
        counts["n_chosen"] += 1
        counts["n_changed"] += bool(exchanged.changes)
        counts["n_changes"] += len(exchanged.changes)
        counts["n_undecided"] += len(exchanged.undecided)
        changes.extend({"row": row, **vars(change)} for change in exchanged.changes)
        return exchanged.text

    with replacing(path) as temporary:
        with (
            pa.OSFile(str(temporary), "wb") as raw,
            pa.CompressedOutputStream(raw, "zstd") as out,
        ):
            for line in _changed_lines(shard, form, changed):
                out.write(line)
        facts = {name.encode(): str(n).encode() for name, n in counts.items()}
        with replacing(ledger_of(path)) as ledger:
            table = pa.Table.from_pylist(changes, _SCHEMA.with_metadata(facts))
            pq.write_table(table, ledger)


def _changed_lines(
    shard: Path, form: RecordForm, changed: Callable[[int, str], str]
) -> Iterator[bytes]:
    if kind_of(shard):
        for row, text in enumerate(documents(shard, form), 1):
            record = {form.text_field: changed(row, text)}
            yield json.dumps(record, ensure_ascii=False).encode() + b"\n"
        return
    for row, line in enumerate(lines(shard), 1):
        try:
            record = json.loads(line)
            value = field_value(record, form.text_field) if isinstance(record, dict) else None
            if isinstance(value, str):
                holder, name = record, form.text_field
                while name not in holder:
                    first, _, name = name.partition(".")
                    holder = holder[first]
                holder[name] = changed(row, value)
                line = json.dumps(record, ensure_ascii=False).encode()
        except (ValueError, UnicodeEncodeError):
            pass  # not a document: the line stays
        yield line.rstrip(b"\r\n") + b"\n"


def shown(directory: Path, n: int, seed: int = 0) -> Iterator[tuple[str, int, str, str]]:
    """Draw ``n`` changes from the ledgers: shard, row, excerpt of the changed text, original word.

    The new word is in brackets. Raises ``BadInput`` for a directory that ``write_changed`` did not
    write.
    """
    ledgers = sorted(directory.glob(f"*{CHANGES}"))
    if not (directory / LEDGER).is_file() or not ledgers:
        fix = "give the --out of `plumbline intervene text`"
        raise BadInput(f"directory {directory}", "holds no changed text", fix)
    field = json_object(directory / LEDGER)["field"]
    rng = np.random.default_rng(seed)
    sizes = [pq.read_metadata(path).num_rows for path in ledgers]
    drawn = np.sort(rng.permutation(sum(sizes))[:n])
    firsts = np.cumsum([0, *sizes])
    for path, first, last in zip(ledgers, firsts, firsts[1:], strict=False):
        places = drawn[(drawn >= first) & (drawn < last)] - first
        if places.size:
            yield from _shown(path, pq.read_table(path), places.tolist(), field)


def _shown(
    path: Path, changes: pa.Table, places: list[int], field: str
) -> Iterator[tuple[str, int, str, str]]:
    shard = path.with_name(path.name.removesuffix(CHANGES) + ".jsonl.zst")
    # A change's start is in the original text; earlier changes of the document shift it.
    growths = pc.subtract(pc.utf8_length(changes["new"]), pc.utf8_length(changes["written"]))
    rows, shifts = changes["row"].to_numpy(), np.cumsum([0, *growths.to_pylist()])
    drawn = {int(rows[k]) for k in places}
    texts = {}
    for row, line in enumerate(islice(lines(shard), max(drawn)), 1):
        if row in drawn:
            text = field_value(record := json.loads(line), field)
            texts[row] = text if isinstance(text, str) else record["text"]  # from Parquet, by 0.2
    for k in places:
        change = changes.slice(k, 1).to_pylist()[0]
        row, text = change["row"], texts[change["row"]]
        start = change["start"] + int(shifts[k] - shifts[np.searchsorted(rows, row)])
        end = start + len(change["new"])
        before, after = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
        yield shard.name, row, f"{before}[{text[start:end]}]{after}", change["written"]
