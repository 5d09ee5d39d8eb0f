"""A person's verdicts on words: accepted or rejected, and why, in table ``seed_verdict``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from plumbline.jobs.counting.corpus_lookup import corpus_row, writes_corpus
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import records
from plumbline.warehouse.storage.store import Store

ACCEPTED, REJECTED = "accepted", "rejected"
_VERDICTS = {"accept": ACCEPTED, "reject": REJECTED, ACCEPTED: ACCEPTED, REJECTED: REJECTED}


@dataclass(frozen=True)
class SeedVerdict:
    """A word, ``accepted`` or ``rejected``, and why (``None`` without a reason)."""

    word: str
    verdict: str
    why: str | None = None


@dataclass(frozen=True)
class Vetted:
    """Numbers of words with each verdict, and the words whose verdict changed."""

    n_accepted: int
    n_rejected: int
    changed: tuple[str, ...]


def verdicts(store: Store, corpus: str) -> dict[str, dict[str, Any]]:
    """The rows of ``seed_verdict`` of a corpus, by word."""
    return {row["word"]: row for row in store.read("seed_verdict", corpus=corpus).to_pylist()}


def verdicts_on(
    accept: Sequence[str], reject: Sequence[str], why: str | None = None
) -> list[SeedVerdict]:
    """Verdicts on two lists of words, all with the same reason.

    >>> [(v.word, v.verdict) for v in verdicts_on(["Tea", "rum"], ["ale"])]
    [('tea', 'accepted'), ('rum', 'accepted'), ('ale', 'rejected')]
    """
    lists = (accept, ACCEPTED), (reject, REJECTED)
    return [SeedVerdict(w.lower(), verdict, why or None) for words, verdict in lists for w in words]


def read_verdicts(path: Path) -> list[SeedVerdict]:
    """Verdicts from a CSV file with the columns word, verdict (accept or reject) and why.

    Raises ``BadInput`` naming the first row that can't be used.
    """
    rows = []
    for record in records(path, ("word", "verdict", "why")):
        word, verdict, why = (record.fields.get(c, "").strip() for c in ("word", "verdict", "why"))
        problem = record.problem
        if problem is None and not word:
            problem = "the row has no word"
        if problem is None and verdict.lower() not in _VERDICTS:
            problem = f"verdict is {verdict!r}, expected accept or reject"
        if problem:
            raise BadInput(f"{path}, row {record.number}", problem)
        rows.append(SeedVerdict(word.lower(), _VERDICTS[verdict.lower()], why or None))
    return rows


@writes_corpus
def vet(store: Store, corpus: str, given: Sequence[SeedVerdict], run_id: str) -> Vetted:
    """Record verdicts; a word's new verdict replaces its old one.

    Raises:
        UsageProblem: the corpus is unknown, no verdict is given, a word is both accepted and
            rejected, or is not in the corpus. Nothing is recorded then.
    """
    corpus_row(store, corpus)
    if not given:
        problem, fix = "no word to accept or reject", "--accept w1,w2 --reject w3, or --from FILE"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    words = set(store.read("word_count", corpus=corpus)["word"].to_pylist())
    new: dict[str, str] = {}
    for v in given:
        if new.setdefault(v.word, v.verdict) != v.verdict:
            raise UsageProblem(f"word {v.word!r}", "is both accepted and rejected")
        if v.word not in words:
            raise UsageProblem(f"word {v.word!r}", f"is not in corpus {corpus!r}")
    before = verdicts(store, corpus)
    fixed = {"corpus": corpus, "vetted_at": datetime.now(timezone.utc), "run_id": run_id}
    after = {**before, **{v.word: {**fixed, **vars(v)} for v in given}}
    store.replace("seed_verdict", after.values(), {"corpus": corpus}, run_id)
    changed = tuple(
        w for w, new_v in new.items() if before.get(w, {}).get("verdict", new_v) != new_v
    )
    n_rejected = sum(row["verdict"] == REJECTED for row in after.values())
    return Vetted(len(after) - n_rejected, n_rejected, changed)
