"""What a person says about words: accepted or rejected, and why, kept in ``seed_verdict``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from plumbline.jobs.association.associate import corpus_row
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.text.csv_rows import records

ACCEPTED, REJECTED = "accepted", "rejected"
_SAID = {"accept": ACCEPTED, "reject": REJECTED, ACCEPTED: ACCEPTED, REJECTED: REJECTED}


@dataclass(frozen=True)
class Opinion:
    """A word, ``accepted`` or ``rejected``, and why (``None`` if nobody said)."""

    word: str
    verdict: str
    why: str | None = None


@dataclass(frozen=True)
class Vetted:
    """Words with a verdict from now on, by verdict, and those whose verdict was another before."""

    n_accepted: int
    n_rejected: int
    changed: tuple[str, ...]


def verdicts(store: Store, corpus: str) -> dict[str, dict[str, Any]]:
    """The rows of ``seed_verdict`` of a corpus, by word."""
    return {row["word"]: row for row in store.read("seed_verdict", corpus=corpus).to_pylist()}


def opinions(accept: str, reject: str, why: str | None = None) -> list[Opinion]:
    """Opinions from two lists of words separated by commas, all for the same reason.

    >>> [(o.word, o.verdict) for o in opinions("tea, rum", "ale")]
    [('tea', 'accepted'), ('rum', 'accepted'), ('ale', 'rejected')]
    """
    lists = (accept, ACCEPTED), (reject, REJECTED)
    words = [(w.strip().lower(), verdict) for text, verdict in lists for w in text.split(",")]
    return [Opinion(word, verdict, why or None) for word, verdict in words if word]


def read_opinions(path: Path) -> list[Opinion]:
    """Opinions from a CSV file with the columns word, verdict (accept or reject) and why.

    Raises ``BadInput`` naming the first row that can't be used.
    """
    found = []
    for record in records(path, ("word", "verdict", "why")):
        fields = record.fields
        problem = record.problem
        word = fields.get("word", "").strip().lower()
        said = fields.get("verdict", "").strip().lower()
        if problem is None and not word:
            problem = "the row has no word"
        if problem is None and said not in _SAID:
            problem = f"verdict is {said!r}, expected accept or reject"
        if problem:
            raise BadInput(f"{path}, row {record.number}", problem)
        found.append(Opinion(word, _SAID[said], fields["why"].strip() or None))
    return found


@writes_corpus
def vet(store: Store, corpus: str, said: Sequence[Opinion]) -> Vetted:
    """Record opinions beside earlier ones; of a word that had a verdict the new one counts.

    Raises:
        UsageProblem: no such corpus, nothing said, a word both accepted and rejected, or one that
            the corpus does not have; nothing is recorded then.
    """
    corpus_row(store, corpus)
    if not said:
        problem, fix = "no word to accept or reject", "--accept w1,w2 --reject w3, or --from FILE"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    _check(said, set(store.read("word_count", corpus=corpus)["word"].to_pylist()), corpus)
    before = verdicts(store, corpus)
    config = {"corpus": corpus, "opinions": [vars(o) for o in said]}
    with recorded(store, "corpus vet", config) as run_id:
        fixed = {"corpus": corpus, "vetted_at": datetime.now(timezone.utc), "run_id": run_id}
        after = {**before, **{o.word: {**fixed, **vars(o)} for o in said}}
        store.replace("seed_verdict", after.values(), {"corpus": corpus}, run_id)
    changed = [o.word for o in said if o.word in before and before[o.word]["verdict"] != o.verdict]
    n_rejected = sum(row["verdict"] == REJECTED for row in after.values())
    return Vetted(len(after) - n_rejected, n_rejected, tuple(dict.fromkeys(changed)))


def _check(said: Iterable[Opinion], known: set[str], corpus: str) -> None:
    first: dict[str, str] = {}
    for o in said:
        if first.setdefault(o.word, o.verdict) != o.verdict:
            raise UsageProblem(f"word {o.word!r}", "is both accepted and rejected")
        if o.word not in known:
            raise UsageProblem(f"word {o.word!r}", f"is no word of corpus {corpus!r}")
