"""Effect of a filter or deduplication on a text's leans, and its predicted effect on a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os.path import commonpath
from typing import Any

import numpy as np
import pyarrow.compute as pc

from plumbline.jobs.association.lean_intervals import adjusted
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists, sole_writer
from plumbline.jobs.counting.document_words import Documents, evidence_of
from plumbline.jobs.evidence.change import (
    Bools,
    ComparedText,
    Floats,
    MomentSums,
    Progress,
    influence_weights,
    matched,
    question_of,
    tested,
)
from plumbline.jobs.evidence.curation.curated_documents import Curation, curation_of, of_shards
from plumbline.jobs.evidence.curation.predicted_preference import (
    Response,
    predict,
    trusted_response,
)
from plumbline.jobs.evidence.duplicates import OFTEN
from plumbline.jobs.evidence.explanation import widest_clusters
from plumbline.jobs.evidence.lean import as_rows
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    DocumentTable,
    Inquiry,
    Ints,
    look,
    read_shards,
)
from plumbline.jobs.evidence.survey import MOST_CELLS
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]


@dataclass(frozen=True)
class Audited:
    """Outcome: the curation, the rows of ``corpus_audit``, and the response for predictions.

    Without a trusted ``response`` rows have no predictions. ``basis`` says why the response is
    trusted, or why there is none.
    """

    after: str
    curation: Curation
    rows: list[Row]
    response: Response | None
    basis: str


def audit(
    store: Store,
    before: str,
    after: Sequence[str],
    run_id: str,
    removed: Sequence[str] = (),
    contrast: str = "she/he",
    min_pairs: int = 5,
    model_from: str = "",
    progress: Progress = lambda *_: None,
) -> Audited:
    """Compare a corpus with the documents that a curation kept; writes ``corpus_audit``.

    The sampling units are documents, or whole sources if there are ten or more; copies of a
    document are one unit. Units are drawn and then curated: a document that stays counts in both
    texts, and its influences on the two leans cancel. See ``lean`` and ``change`` for standard
    errors. Student's t has one degree of freedom fewer than units that lost a co-occurrence of the
    word or, if no unit did, than units with one.

    Args:
        after: name of a counted corpus, or shards of the kept documents.
        removed: shards of the removed documents.
        model_from: ``STUDY`` or ``STUDY:BENCHMARK`` of ``intervene run``; by default the corpus's
            only study.

    Raises:
        UsageProblem: as ``change.compare``; or most documents of AFTER match none, or none is kept.
        BadInput: as ``curated_documents.of_shards``.
    """
    corpora = set(store.read("corpus")["corpus"].to_pylist())
    names = [before, *after] if len(after) == 1 and after[0] in corpora else [before]
    contrast = corpus_contrast(store, before, contrast)
    texts = [ComparedText(name, evidence_of(store, name), None) for name in names]
    question, evidence = question_of(store, texts, contrast), texts[0].evidence
    if names[0] == names[-1] and len(names) > 1:
        raise UsageProblem(f"texts {before!r}", "are the same", "name what was kept of it")
    with ExitStack() as locks:
        for name in sorted(names):
            locks.enter_context(sole_writer(store, name))
        table, *others = (
            look(x.evidence, question, progress=progress, most_sources=ALL_SOURCES).documents
            for x in texts
        )
        label = after[0] if len(after) == 1 else commonpath(after)
        if others:  # documents match if their kept words are equal
            curation = curation_of(*matched(table.mark, others[0].mark))
        else:
            curation = of_shards(evidence, table, after, removed, progress)
        if not curation.kept.any():
            problem = f"holds no document of {before}"
            raise UsageProblem(f"text {label}", problem, "name what was kept, not what was removed")
        if 2 * curation.n_new > curation.n_after:
            problem = f"{curation.n_new:,} of {curation.n_after:,} documents match none of {before}"
            fix = "keep their ids, or compare the texts as they are with plumbline corpus compare"
            raise UsageProblem(f"text {label}", problem, fix)
        words, groups = _candidates(store, before, contrast, min_pairs), _groups(store, evidence)
        clusters = widest_clusters(evidence)
        sums = _CurationSums(question, words, table, curation.kept, clusters == "source", groups)
        read_shards(evidence, question, sums.add, progress)
        rows = [*_documents(table, curation, question.targets), *sums.rows(min_pairs)]
        response, basis = trusted_response(store, before, contrast, model_from)
        if response:
            predict(rows, response)
        key = {"text_before": before, "text_after": label}
        constant = {"clusters": clusters, "study": response and response.name, "run_id": run_id}
        full_rows = [{**key, "contrast": contrast, **row, **constant} for row in rows]
        store.replace("corpus_audit", full_rows, key, run_id)
        rows = store.read("corpus_audit", **key).to_pylist()
    return Audited(label, curation, rows, response, basis)


def _candidates(store: Store, corpus: str, contrast: str, min_pairs: int) -> list[str]:
    """Words with enough co-occurrences on both sides in the corpus."""
    sides = contrast.split("/")
    pairs = store.read("pair_count", pc.field("target").isin(sides), corpus=corpus)
    enough = pairs.filter(pc.greater_equal(pairs["n_pair"], min_pairs))
    n = enough.group_by("word").aggregate([("target", "count")])
    words = n.filter(pc.equal(n["target_count"], 2))["word"].to_pylist()
    return sorted(set(words) - set(sides))


def _groups(store: Store, evidence: Any) -> dict[str, tuple[str, ...]]:
    """Words of each group of the corpus's lists; a word in no group is a group of its own."""
    groups: dict[str, tuple[str, ...]] = {}
    for words in corpus_lists(store, evidence.corpus):
        rest = words.targets
        if words.groups:
            sides = (tuple(p.a for p in words.pairs), tuple(p.b for p in words.pairs))
            groups |= {f"{words.name}: {g}": x for g, x in zip(words.groups, sides, strict=True)}
            rest = words.unpaired
        groups |= {f"{words.name}: {word}": (word,) for word in rest}
    return groups


def _documents(table: DocumentTable, curation: Curation, targets: Sequence[str]) -> Iterator[Row]:
    """Rows with the numbers of documents, words and copies before and after, and by source."""
    kept = curation.kept

    def row(part: str, subject: str, before: Any, after: Any) -> Row:
        return {"part": part, "subject": subject, "n_before": int(before), "n_after": int(after)}

    yield row("documents", "documents", kept.size, kept.sum())
    yield row("documents", "not matched", curation.n_unmatched, curation.n_new)
    yield row("documents", "kept words", table.n_kept.sum(), table.n_kept[kept].sum())
    for target, n in zip(targets, table.n_target.T, strict=True):
        yield row("documents", target, n.sum(), n[kept].sum())
    copies = []
    for marks in (table.mark, table.mark[kept]):
        _, n = np.unique(marks, return_counts=True)
        copies.append(((n - 1).sum(), n[n > OFTEN].sum()))
    for name, *n in zip(("copies", f"in more than {OFTEN} copies"), *copies, strict=True):
        yield row("copies", name, *n)
    n_of = (
        np.bincount(x, minlength=len(table.sources)) for x in (table.source, table.source[kept])
    )
    for source, *n in zip(table.sources, *n_of, strict=True):
        yield row("source", source, *n)


class _CurationSums(MomentSums):
    """Sums over groups of documents; the documents of a group have the same k and j.

    A group's sums count ``k`` times in BEFORE and ``j`` times in AFTER. If documents are the
    sampling units, a group holds the first copy of each document with k copies, of which j stay. If
    sources are, k is 1, and a source has two groups: documents that stay (j = 1) or don't (j = 0).
    """

    def __init__(
        self,
        question: Inquiry,
        words: Sequence[str],
        table: DocumentTable,
        kept: Bools,
        by_source: bool,
        groups: dict[str, tuple[str, ...]],
    ) -> None:
        if by_source:
            n = min(len(table.sources), max(MOST_CELLS // max(2 * len(words), 1), 2))
            self.cluster = table.source % n
            group = 2 * self.cluster + kept
            self._k, self._j = np.ones(2 * n), np.arange(2 * n) % 2.0
        else:
            _, first, cluster = np.unique(table.mark, return_index=True, return_inverse=True)
            self.cluster, n = cluster, first.size
            n_copies = np.stack([np.bincount(cluster), np.bincount(cluster, kept)])
            (self._k, self._j), inverse = np.unique(n_copies, axis=1, return_inverse=True)
            group = np.full(kept.size, -1)
            group[first] = inverse.ravel()
        super().__init__(question, words, table, group, self._k.size)
        self._words, self._kept, self._by_source, self._n = words, kept, by_source, n
        self._n_target_of_group = np.stack(
            [
                np.bincount(group[group >= 0], n_t[group >= 0], self._k.size)
                for n_t in table.n_target.T
            ]
        )
        self._names = list(groups)
        self._is_in_word_group = [question.table(x) >= 0 for x in groups.values()]
        self._n_in_word_group = np.zeros((len(groups), kept.size), np.int32)
        self._n_word = np.zeros((2, len(question.vocabulary)), np.int64)

    def add(self, shard: int, n_before: int, documents: Documents) -> tuple[Ints, Ints, Ints]:
        """Add some documents, see ``read_shards``."""
        start, n = self._first[shard] + n_before, len(documents.row)
        at, values = documents.document, documents.values
        for n_in, is_in in zip(self._n_in_word_group, self._is_in_word_group, strict=True):
            n_in[start : start + n] = np.bincount(at[is_in[values]], minlength=n)
        stays = self._kept[start : start + n][at]
        for n_word, some in zip(self._n_word, (values, values[stays]), strict=True):
            words, n_some = np.unique(some[some >= 0], return_counts=True)
            with self._lock:
                n_word[words] += n_some
        return super().add(shard, n_before, documents)

    @property
    def _n_near(self) -> tuple[Floats, Floats]:
        """Co-occurrences [target, word] in BEFORE and in AFTER."""
        before, after = (np.einsum("tgw,g->tw", self.sums[:2], x) for x in (self._k, self._j))
        return before, after

    @property
    def _n_target(self) -> tuple[Floats, Floats]:
        n = self.table.n_target
        return n.sum(axis=0).astype(float), n[self._kept].sum(axis=0).astype(float)

    def _variance(self, x: float, y: float, of_targets: bool = True) -> Floats:
        """Variance over clusters of x * (delta in AFTER) - y * (delta in BEFORE), float64[word].

        Without ``of_targets`` delta has only the word's own part, the log odds of co-occurrences.
        """
        weights = [influence_weights(*n) for n in zip(self._n_near, self._n_target, strict=True)]
        total = np.zeros(len(self._words))
        influence = np.zeros((self._n, len(self._words)))
        for g, (k, j) in enumerate(zip(self._k, self._j, strict=True)):
            near, target = (
                x * j * after - y * k * before for before, after in zip(*weights, strict=True)
            )
            target = of_targets * target
            if self._by_source:
                c, n = self.sums[:2, g], self._n_target_of_group[:, g]
                influence[g // 2] += (c * near).sum(axis=0) - n @ target
            else:
                moments = self.of(np.arange(self._k.size) == g)
                total += moments.covariance((near, target), (near, target))
        squares = np.square(influence).sum(axis=0) if self._by_source else total
        return np.maximum(squares, 0) * self._n / max(self._n - 1, 1)

    def _n_with(self, groups: Bools) -> Ints:
        """Number of clusters with a co-occurrence in the ``groups``, int64[word]."""
        n = np.where(groups[:, None], self.n_documents, 0)
        if self._by_source:
            n = (n.reshape(-1, 2, n.shape[1]).sum(axis=1) > 0).astype(np.int64)
        total: Ints = n.sum(axis=0)
        return total

    def rows(self, min_pairs: int) -> list[Row]:
        """The rows of coverage, groups and words."""
        enough = self._n_near[1].min(axis=0, initial=np.inf) >= min_pairs
        return [*self._coverage(enough), *self._group_rows(), *self._word_rows(enough)]

    def _word_rows(self, enough: Bools) -> list[Row]:
        """Rows of words: leans before and after; tests of change, own part and change of sign."""
        (before, after), (n_before, n_after) = self._n_near, self._n_target
        n_with, n_lost = self._n_with(self._k > 0), self._n_with(self._j < self._k)
        df = np.minimum(n_with, np.where(n_lost > 0, n_lost, n_with)) - 1
        with np.errstate(all="ignore"):
            odds = [np.log(near[0] / near[1]) for near in (before, after)]
            base = [np.log(n[0] / n[1]) for n in (n_before, n_after)]
            deltas = odds[0] - base[0], odds[1] - base[1]
            change = _tested(deltas[1] - deltas[0], self._variance(1, 1), df, enough)
            # A word's own part of the change: its co-occurrences, without the shift of all words.
            own = _tested(odds[1] - odds[0], self._variance(1, 1, of_targets=False), df, enough)
            ends = (
                _tested(deltas[0], self._variance(0, 1), n_with - 1, enough),
                _tested(deltas[1], self._variance(1, 0), self._n_with(self._j > 0) - 1, enough),
            )
        # The sign changes if both leans have their estimated signs, so p is the larger of the two.
        turn = np.where(deltas[0] * deltas[1] < 0, np.fmax(*(lean["p"] for lean in ends)), 1.0)
        columns = {
            "subject": np.array(self._words, object),
            "n_before": before.sum(axis=0).astype(np.int64),
            "n_after": after.sum(axis=0).astype(np.int64),
            "delta_before_nats": deltas[0],
            "delta_after_nats": np.where(enough, deltas[1], np.nan),
            "base_change_nats": np.where(enough, base[0] - base[1], np.nan),
            **change,
            "q_own": own["q"],
            "q_turn": adjusted(np.where(enough, turn, np.nan)),
        }
        return [{"part": "word", **row} for row in as_rows(columns)]

    def _coverage(self, enough: Bools) -> Iterator[Row]:
        n = (self._n_word > 0).sum(axis=1).tolist()
        leaning = [len(self._words), int(enough.sum())]
        for subject, (before, after) in (("words", n), ("words with a lean", leaning)):
            yield {"part": "coverage", "subject": subject, "n_before": before, "n_after": after}

    def _group_rows(self) -> list[Row]:
        """Rows of groups: change of the frequency of a group's words, as a log ratio of shares."""
        n, stays = self.table.n_kept.astype(float), self._kept.astype(float)
        change, variance, df = (np.zeros(len(self._names)) for _ in range(3))
        n_in = self._n_in_word_group
        totals = np.stack([n_in.sum(axis=1), n_in[:, self._kept].sum(axis=1)])
        for k, c in enumerate(n_in.astype(float)):
            with np.errstate(all="ignore"):
                before, after = c / c.sum() - n / n.sum(), c / (c @ stays) - n / (n @ stays)
                change[k] = np.log((c @ stays) / c.sum()) - np.log((n @ stays) / n.sum())
            influence = np.bincount(self.cluster, stays * after - before, self._n)
            variance[k] = np.square(influence).sum() * self._n / max(self._n - 1, 1)
            n_with, n_lost = (
                np.unique(self.cluster[(c > 0) & x]).size for x in (True, ~self._kept)
            )
            df[k] = min(n_with, n_lost or n_with) - 1
        columns = {
            "subject": np.array(self._names, object),
            "n_before": totals[0],
            "n_after": totals[1],
            **_tested(change, variance, df, totals[1] > 0),
        }
        return [{"part": "group", **r} for r in as_rows(columns) if r["n_before"]]


def _tested(change: Floats, variance: Floats, df: Any, known: Bools) -> dict[str, Floats]:
    """Columns of ``tested``, and ``df``; NaN where the change is not ``known``."""
    known = known & np.isfinite(change)
    change, variance, df = (
        np.where(known, x, np.nan) for x in (change, variance, np.maximum(df, 1))
    )
    return {**tested(change, variance, df), "df": df}
