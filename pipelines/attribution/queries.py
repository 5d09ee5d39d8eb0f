"""Queries, the preferences to attribute, from the pairs of imported benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plumbline.pipelines.attribution.contract import Query, TextPair
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

_GROUPS = {("female", "male"), ("male", "female")}


def of_words(store: Store, words: Iterable[str], benchmark: str | None = None) -> list[Query]:
    """One query per word: the mean preference over its pairs in one benchmark, or in all.

    Raises ``UsageProblem`` for a word without a pair.
    """
    rows = _pairs(store, benchmark)
    queries = []
    for word in dict.fromkeys(w.strip().lower() for w in words):
        word_rows = [row for row in rows if (row["word"] or "").lower() == word]
        if not word_rows:
            where = f"benchmark {benchmark}" if benchmark else "the imported benchmarks"
            fix = "plumbline benchmark import, or `benchmark build`, with pairs for it"
            raise UsageProblem(f"word {word!r}", f"no female/male pair of {where} is for it", fix)
        queries.append(
            _query(f"word {word}" + (f" in {benchmark}" if benchmark else ""), word_rows)
        )
    return queries


def of_benchmark(store: Store, benchmark: str) -> Query:
    """The query of the mean over a benchmark's female/male pairs that aren't judged unnatural.

    Raises ``UsageProblem`` if there are none.
    """
    return _query(f"benchmark {benchmark}", _pairs(store, benchmark))


def _pairs(store: Store, benchmark: str | None) -> list[dict[str, Any]]:
    filters = {} if benchmark is None else {"benchmark": benchmark}
    rows: list[dict[str, Any]] = store.read("benchmark_pair", **filters).to_pylist()
    named = f"benchmark {benchmark!r}" if benchmark else "benchmarks"
    if not rows:
        raise UsageProblem(named, "has no pairs", "run `plumbline benchmark import`")
    gendered = [r for r in rows if (r["group_a"], r["group_b"]) in _GROUPS]
    gendered = [r for r in gendered if r["is_natural"] is not False]
    if not gendered:
        fix = "import pairs with `group_a` and `group_b` female or male: docs/pairs.md"
        raise UsageProblem(named, "has no natural pair of female and male", fix)
    return sorted(gendered, key=lambda row: (row["benchmark"], row["pair_id"]))


def _query(name: str, rows: Sequence[dict[str, Any]]) -> Query:
    pairs = []
    for row in rows:
        texts = row["sentence_a"], row["sentence_b"]
        female, male = texts if row["group_a"] == "female" else texts[::-1]
        pairs.append(TextPair(female, male, (row["word"] or "").lower() or None, 1 / len(rows)))
    return Query(name, tuple(pairs))
