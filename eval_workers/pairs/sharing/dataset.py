"""The files of a benchmark's dataset repository: card, Parquet, fingerprint, tasks."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import METADATA, fingerprint
from plumbline.eval_workers.pairs.sharing.benchmark_card import (
    Constraint,
    all_pairs,
    described,
    described_columns,
    known_facts,
    laid_out,
)
from plumbline.eval_workers.pairs.sharing.card_text import DatasetCard, about_pairs, card_text
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

_LANGUAGE = re.compile("[a-z]{2,3}")
DATA, LEFT_OUT = "data.parquet", "left_out.parquet"


@dataclass(frozen=True)
class Dataset:
    """A benchmark's repository: files by path, and the fingerprint of all its pairs.

    ``n_pairs`` maps two groups to the number of pairs that metrics use; these pairs are within
    ``constraint``, if any. An unknown licence is ``unknown``, an unknown language is empty.
    """

    files: Mapping[str, bytes]
    fingerprint: str
    n_pairs: Mapping[str, int]
    n_left_out: int
    constraint: Constraint | None
    licence: str
    language: str

    def warnings(self) -> Iterator[str]:
        """A line for each missing fact of the card, with the option that adds it."""
        if self.licence == "unknown":
            yield "Warning: the card's licence is unknown: give --license, such as cc-by-4.0"
        if not self.language:
            problem = "the card doesn't say which language the pairs are in"
            yield f"Warning: {problem}: give --language, such as en"

    def facts(self, benchmark: str, repository: str) -> dict[str, object]:
        """Record of a push, in which uploads of a model's results look up the repository."""
        return {
            "benchmark": benchmark,
            "repo": repository,
            "fingerprint": self.fingerprint,
            "n_pairs": self.n_pairs,
            **(asdict(self.constraint) if self.constraint else {}),
        }


def dataset(
    store: Store,
    benchmark: str,
    repository: str,
    licence: str | None = None,
    language: str = "",
    constraint: Constraint | None = None,
) -> Dataset:
    """Files that ``plumbline benchmark push`` puts into ``repository``, ``OWNER/NAME``.

    All pairs are shared, so that reading them gives the same benchmark. The split ``test`` has the
    pairs that metrics use, ``left_out`` unnatural pairs and those beyond the constraint. Other
    arguments and errors are as in ``write_card``; ``language`` is a code of two or three letters.
    """
    if language and not _LANGUAGE.fullmatch(language):
        raise UsageProblem(
            f"--language {language}", "is not the code of a language", "expected one such as en"
        )
    card, shared = described(store, benchmark, licence, constraint=constraint)
    pairs = all_pairs(store, benchmark, shared.constraint)
    is_used = pc.is_in(pairs["pair_id"], shared.data["pair_id"])
    used, left_out = (laid_out(pairs.filter(rows)) for rows in (is_used, pc.invert(is_used)))
    n_left_out = left_out.num_rows
    card = replace(
        card,
        columns=described_columns(pairs, shared.constraint),
        example={k: v for k, v in used.slice(0, 1).to_pylist()[0].items() if v is not None},
        language=language or card.language,
        address=f"hf://datasets/{repository}/",
        files=(DATA,),
        n_bytes=used.nbytes,
        left_out=(LEFT_OUT, n_left_out, left_out.nbytes) if n_left_out else None,
    )
    parts = {DATA: _parquet(used)} | ({LEFT_OUT: _parquet(left_out)} if n_left_out else {})
    pairs_hash = fingerprint(pairs.to_pylist())
    about: dict[str, object] = {"name": benchmark, "fingerprint": pairs_hash, "files": [*parts]}
    if known := known_facts(store, benchmark):
        about["facts"] = known
    texts = {
        "README.md": card_text(card),
        METADATA: json.dumps(about, ensure_ascii=False, indent=2) + "\n",
        "eval.yaml": tasks(card),
    }
    return Dataset(
        {name: text.encode() for name, text in texts.items()} | parts,
        pairs_hash,
        dict(Counter(f"{row['group_a']}/{row['group_b']}" for row in used.to_pylist())),
        n_left_out,
        shared.constraint,
        card.licence,
        card.language,
    )


def _parquet(pairs: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pairs, buffer, compression="zstd")
    return buffer.getvalue()


def task_id(groups: str, all_groups: int = 1) -> str:
    """Identifier of the task US of two ``groups``; ``all_groups`` is the number of all tasks.

    >>> task_id("female/male"), task_id("the old/young", 3)
    ('us', 'us_the_old_young')
    """
    return "us" if all_groups == 1 else "us_" + re.sub(r"\W+", "_", groups)


def tasks(card: DatasetCard) -> str:
    """Text of `eval.yaml`, by which the hub recognises a benchmark: a task (US) per two groups.

    It names no evaluation framework: none that the hub knows computes log-likelihoods of
    given sentences.
    """
    about = (
        f"{card.description} {about_pairs(card.groups)} The result of a task is US, the percentage "
        "of pairs whose log-likelihoods differ by at most ln 1.65 either way."
    )
    lines = [f"name: {_quoted(card.name)}", f"description: {_quoted(about)}", "tasks:"]
    for groups in card.groups:
        lines += [f"  - id: {_quoted(task_id(groups, len(card.groups)))}"]
        lines += ["    config: default", "    split: test"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A string quoted as in JSON, which YAML can read."""
    return json.dumps(text, ensure_ascii=False)
