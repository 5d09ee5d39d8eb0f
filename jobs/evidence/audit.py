"""What a filter or deduplication does to a text's leans, and what it would do to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os.path import commonpath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plumbline.jobs.association.bounds import adjusted
from plumbline.jobs.corpus_lookup import corpus_contrast, corpus_lists, sole_writer
from plumbline.jobs.counting.kept_documents import Documents, evidence_of
from plumbline.jobs.evidence.change import (
    Bools,
    ComparedText,
    Floats,
    MomentSums,
    influence_weights,
    question_of,
)
from plumbline.jobs.evidence.copies import OFTEN
from plumbline.jobs.evidence.curation import Curation, of_corpora, of_shards
from plumbline.jobs.evidence.explanation import widest_clusters
from plumbline.jobs.evidence.sightings import (
    ALL_SOURCES,
    DocumentTable,
    Inquiry,
    Ints,
    look,
    read_shards,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store

Row = dict[str, Any]
#: Most sums of words in groups of documents: a hundred bytes each. More sources share groups.
MOST_CELLS = 4_000_000

_RESPONSES = """
SELECT study, benchmark, response, response_low, response_high, n_seeds FROM dose_response
WHERE kind = 'gender' AND words = 'all' AND outcome = 'slope' AND contrast = $contrast
    AND corpus = $corpus AND ($study = '' OR $study IN (study, study || ':' || benchmark))
ORDER BY ALL
"""
#: How far words are from the line: their changes at the largest dose less the fitted ones.
_SCATTER = """
WITH arm AS (
    SELECT a.seed, a.dose, p.word, p.mean_log_ratio_nats, d.delta_nats
    FROM intervention_arm AS a JOIN trained_key AS k USING (model)
    JOIN word_preference AS p USING (model_key) JOIN word_delta AS d USING (word)
    WHERE a.study = $study AND a.kind = 'gender' AND a.window_start = 0 AND a.window_end = 1
        AND p.benchmark = $benchmark AND d.corpus = $corpus AND d.contrast = $contrast
),
moved AS (
    SELECT
        e.seed, e.delta_nats AS x, e.mean_log_ratio_nats - s.mean_log_ratio_nats AS y
    FROM arm AS e JOIN arm AS s USING (seed, word)
    WHERE e.dose = (SELECT max(dose) FROM arm) AND s.dose = 0
),
of_seed AS (
    SELECT (regr_syy(y, x) - regr_sxy(y, x) ** 2 / regr_sxx(y, x)) / (count(*) - 2) AS variance
    FROM moved GROUP BY seed HAVING count(*) > 2 AND regr_sxx(y, x) > 0
)
SELECT sqrt(avg(variance)) AS scatter FROM of_seed
"""


@dataclass(frozen=True)
class Response:
    """The fitted response of a study: nats of preference per nat of delta.

    ``scatter`` is the standard deviation of words' changes about the fit, in nats, between two
    trainings with one seed.
    """

    study: str
    benchmark: str
    slope: float
    slope_se: float
    n_seeds: int
    scatter: float

    @property
    def name(self) -> str:
        """The study and benchmark."""
        return f"{self.study}:{self.benchmark}"


@dataclass(frozen=True)
class Audited:
    """Outcome: the curation, the rows of ``corpus_audit``, and what the model part rests on.

    Without a ``response`` there is no model part, and ``lack`` says why.
    """

    after: str
    curation: Curation
    rows: list[Row]
    response: Response | None
    lack: str


def audit(
    store: Store,
    before: str,
    after: Sequence[str],
    run_id: str,
    removed: Sequence[str] = (),
    contrast: str = "she/he",
    min_pairs: int = 5,
    model_from: str = "",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Audited:
    """Compare a corpus with those of its documents that a curation kept; writes ``corpus_audit``.

    Documents, or whole sources where there are ten, are drawn and then curated, so that a document
    that stays counts in both texts and what it adds to both leans cancels. Copies of a document are
    drawn together. See ``lean`` and ``change`` for errors; t has one degree of freedom fewer than
    there are clusters with the word, or clusters with it of which a document was removed.

    Args:
        after: a counted corpus, or shards of the documents kept. removed: shards of the others.
        model_from: ``STUDY`` or ``STUDY:BENCHMARK`` of ``intervene run``; by default the only one
            of the corpus.

    Raises:
        UsageProblem: as ``change.compare``; or most documents of AFTER match none.
        BadInput: as ``curation.of_shards``.
    """
    corpora = set(store.read("corpus")["corpus"].to_pylist())
    names = [before, *after] if len(after) == 1 and after[0] in corpora else [before]
    contrast = corpus_contrast(store, before, contrast)
    texts = [ComparedText(name, evidence_of(store, name), None) for name in names]
    question, evidence = question_of(store, texts, contrast), texts[0].evidence
    if names[0] == names[-1] and len(names) > 1:
        raise UsageProblem(f"texts {before!r}", "are the same", "name what was kept of it")
    with ExitStack() as held:
        for name in sorted(names):
            held.enter_context(sole_writer(store, name))
        table, *others = (
            look(x.evidence, question, progress=progress, most_sources=ALL_SOURCES).documents
            for x in texts
        )
        if others:
            label, curation = after[0], of_corpora(table, others[0])
        else:
            label = after[0] if len(after) == 1 else commonpath(after)
            curation = of_shards(evidence, table, after, removed, progress)
        if 2 * curation.n_new > curation.n_after:
            problem = f"{curation.n_new:,} of {curation.n_after:,} documents match none of {before}"
            fix = "keep their ids, or compare the texts as they are with plumbline corpus compare"
            raise UsageProblem(f"text {label}", problem, fix)
        words, groups = _candidates(store, before, contrast, min_pairs), _groups(store, evidence)
        clusters = widest_clusters(evidence)
        sums = _Sums(question, words, table, curation.kept, clusters == "source", groups)
        read_shards(evidence, question, sums.add, progress)
        rows = [*_documents(table, curation, question.targets), *sums.rows(min_pairs)]
        response, lack = fitted_response(store, before, contrast, model_from)
        if response:
            _predict(rows, response)
        key = {"text_before": before, "text_after": label}
        constant = {"clusters": clusters, "study": response and response.name, "run_id": run_id}
        whole = [{**key, "contrast": contrast, **row, **constant} for row in rows]
        store.replace("corpus_audit", whole, key, run_id)
        rows = store.read("corpus_audit", **key).to_pylist()
    return Audited(label, curation, rows, response, lack)


def _candidates(store: Store, corpus: str, contrast: str, min_pairs: int) -> list[str]:
    """Words with enough co-occurrences on both sides in the corpus."""
    sides = contrast.split("/")
    pairs = store.read("pair_count", pc.field("target").isin(sides), corpus=corpus)
    enough = pairs.filter(pc.greater_equal(pairs["n_pair"], min_pairs))
    n = enough.group_by("word").aggregate([("target", "count")])
    words = n.filter(pc.equal(n["target_count"], 2))["word"].to_pylist()
    return sorted(set(words) - set(sides))


def _groups(store: Store, evidence: Any) -> dict[str, tuple[str, ...]]:
    """The groups of the corpus's word lists; of a list that names none each word is one."""
    groups: dict[str, tuple[str, ...]] = {}
    for one in corpus_lists(store, evidence.corpus):
        rest = one.targets
        if one.groups:
            sides = (tuple(p.a for p in one.pairs), tuple(p.b for p in one.pairs))
            groups |= {f"{one.name}: {g}": x for g, x in zip(one.groups, sides, strict=True)}
            rest = one.unpaired
        groups |= {f"{one.name}: {word}": (word,) for word in rest}
    return groups


def _documents(table: DocumentTable, curation: Curation, targets: Sequence[str]) -> Iterator[Row]:
    """What came in and out, by source, and how many are copies."""
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


class _Sums(MomentSums):
    """Sums over groups of documents that were drawn, kept and removed alike.

    A group g has ``k`` times its sums in BEFORE and ``j`` times in AFTER. Of documents a group are
    the first ones of k copies of which j stay; of sources those of a source that stay, or don't.
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
            alike = np.stack([np.bincount(cluster), np.bincount(cluster, kept)])
            (self._k, self._j), of = np.unique(alike, axis=1, return_inverse=True)
            group = np.full(kept.size, -1)
            group[first] = of.ravel()
        super().__init__(question, words, table, group, self._k.size)
        self._words, self._kept, self._by_source, self._n = words, kept, by_source, n
        self._n_of_group = np.stack(
            [
                np.bincount(group[group >= 0], n_t[group >= 0], self._k.size)
                for n_t in table.n_target.T
            ]
        )
        self._names = list(groups)
        self._is_of = [question.table(x) >= 0 for x in groups.values()]
        self._n_of = np.zeros((len(groups), kept.size), np.int32)
        self._n_word = np.zeros((2, len(question.vocabulary)), np.int64)

    def add(self, shard: int, n_before: int, documents: Documents) -> tuple[Ints, Ints, Ints]:
        """Add some documents, see ``read_shards``."""
        start, n = self._first[shard] + n_before, len(documents.row)
        at, values = documents.document, documents.values
        for n_of, is_of in zip(self._n_of, self._is_of, strict=True):
            n_of[start : start + n] = np.bincount(at[is_of[values]], minlength=n)
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

    def _variance(self, x: float, y: float) -> Floats:
        """Of x delta in AFTER less y delta in BEFORE, over the clusters, float64[word]."""
        weights = [influence_weights(*n) for n in zip(self._n_near, self._n_target, strict=True)]
        total = np.zeros(len(self._words))
        influence = np.zeros((self._n, len(self._words)))
        for g, (k, j) in enumerate(zip(self._k, self._j, strict=True)):
            near, target = (
                x * j * after - y * k * before for before, after in zip(*weights, strict=True)
            )
            if self._by_source:
                own, n = self.sums[:2, g], self._n_of_group[:, g]
                influence[g // 2] += (own * near).sum(axis=0) - n @ target
            else:
                moments = self.of(np.arange(self._k.size) == g)
                total += moments.covariance((near, target), (near, target))
        squares = np.square(influence).sum(axis=0) if self._by_source else total
        return np.maximum(squares, 0) * self._n / max(self._n - 1, 1)

    def _n_with(self, groups: Bools) -> Ints:
        """Clusters with a co-occurrence in some groups, int64[word]."""
        n = np.where(groups[:, None], self.n_documents, 0)
        if self._by_source:
            n = (n.reshape(-1, 2, n.shape[1]).sum(axis=1) > 0).astype(np.int64)
        total: Ints = n.sum(axis=0)
        return total

    def rows(self, min_pairs: int) -> list[Row]:
        """The rows of coverage, groups and words."""
        (before, after), (n_before, n_after) = self._n_near, self._n_target
        enough = after.min(axis=0, initial=np.inf) >= min_pairs
        with np.errstate(all="ignore"):
            deltas = [
                np.log(c[0] / c[1]) - np.log(n[0] / n[1])
                for c, n in ((before, n_before), (after, n_after))
            ]
            every = np.ones(self._k.size, np.bool_)
            n_with, n_lost = self._n_with(every), self._n_with(self._j < self._k)
            df = np.minimum(n_with, np.where(n_lost > 0, n_lost, n_with)) - 1
            found = _tested(deltas[1] - deltas[0], self._variance(1, 1), df, enough)
            ends = [
                _tested(deltas[0], self._variance(0, 1), n_with - 1, enough)["p"],
                _tested(deltas[1], self._variance(1, 0), self._n_with(self._j > 0) - 1, enough)[
                    "p"
                ],
            ]
        # It turns if both leans are what they seem: p is the larger of theirs.
        turn = np.where(deltas[0] * deltas[1] < 0, np.fmax(*ends), 1.0)
        columns = {
            "subject": np.array(self._words, object),
            "n_before": before.sum(axis=0).astype(np.int64),
            "n_after": after.sum(axis=0).astype(np.int64),
            "delta_before_nats": deltas[0],
            "delta_after_nats": np.where(enough, deltas[1], np.nan),
            **found,
            "q_turn": np.where(enough, _adjusted(np.where(enough, turn, np.nan)), np.nan),
        }
        words = [{"part": "word", **row} for row in _rows(columns)]
        return [*self._coverage(enough), *self._group_rows(), *words]

    def _coverage(self, enough: Bools) -> Iterator[Row]:
        n = (self._n_word > 0).sum(axis=1).tolist()
        leaning = [len(self._words), int(enough.sum())]
        for subject, of in (("words", n), ("words with a lean", leaning)):
            yield {"part": "coverage", "subject": subject, "n_before": of[0], "n_after": of[1]}

    def _group_rows(self) -> list[Row]:
        """How much more frequent the words of groups are, as a log ratio of shares of all words."""
        n, stays = self.table.n_kept.astype(float), self._kept.astype(float)
        change, variance, df = (np.zeros(len(self._names)) for _ in range(3))
        totals = np.stack([self._n_of.sum(axis=1), self._n_of[:, self._kept].sum(axis=1)])
        for k, own in enumerate(self._n_of.astype(float)):
            with np.errstate(all="ignore"):
                before, after = own / own.sum() - n / n.sum(), own / (own @ stays) - n / (n @ stays)
                change[k] = np.log((own @ stays) / own.sum()) - np.log((n @ stays) / n.sum())
            influence = np.bincount(self.cluster, stays * after - before, self._n)
            variance[k] = np.square(influence).sum() * self._n / max(self._n - 1, 1)
            held, gone = (np.unique(self.cluster[(own > 0) & x]).size for x in (True, ~self._kept))
            df[k] = min(held, gone or held) - 1
        columns = {
            "subject": np.array(self._names, object),
            "n_before": totals[0],
            "n_after": totals[1],
            **_tested(change, variance, df, totals[1] > 0),
        }
        return [{"part": "group", **r} for r in _rows(columns) if r["n_before"]]


def _tested(change: Floats, variance: Floats, df: Any, known: Bools) -> dict[str, Floats]:
    """A change with error, interval, p of none and adjusted p; NaN where it is not known."""
    from scipy.special import stdtr, stdtrit

    known = known & np.isfinite(change)
    se, df = np.sqrt(variance), np.maximum(df, 1)
    half = stdtrit(df, 0.975) * se
    p = 2 * stdtr(df, -np.where(se > 0, np.abs(change) / np.where(se > 0, se, 1), 0))
    columns = {
        "change_nats": change,
        "change_nats_se": se,
        "change_nats_low": change - half,
        "change_nats_high": change + half,
        "p": p,
        "df": df,
    }
    columns = {name: np.where(known, x, np.nan) for name, x in columns.items()}
    return {**columns, "q": _adjusted(columns["p"])}


def _adjusted(p: Floats) -> Floats:
    """``adjusted`` of those that are numbers."""
    q, known = p.copy(), np.isfinite(p)
    q[known] = adjusted(p[known])
    return q


def _rows(columns: dict[str, NDArray[Any]]) -> list[Row]:
    arrays = {name: pa.array(x, from_pandas=True) for name, x in columns.items()}
    rows: list[Row] = pa.table(arrays).to_pylist()
    return rows


def fitted_response(
    store: Store, corpus: str, contrast: str, model_from: str = ""
) -> tuple[Response | None, str]:
    """The response that preferences are predicted with, or why there is none.

    Exchanging the sides of a contrast in all documents changes delta to -delta, and the slope of
    preferences on it by the response of ``dose_response``: half of that, negative, is the change of
    preference per nat of delta.
    """
    from scipy.special import stdtrit

    of = {"corpus": corpus, "contrast": contrast}
    found = rows_of(store.root, _RESPONSES, {**of, "study": model_from})
    names = [f"{row['study']}:{row['benchmark']}" for row in found]
    if not found:
        what = f"no study {model_from}" if model_from else "no study of a response"
        return None, f"{what} on {corpus} and {contrast}: plumbline intervene run"
    if len(found) > 1:
        return None, f"there are several responses; --model-from {' or '.join(names)}"
    row = found[0]
    if row["response_low"] is None or row["response_low"] <= 0 <= row["response_high"]:
        return None, f"the response of {names[0]} can't be told from 0; more --seeds may show one"
    half = (row["response_high"] - row["response_low"]) / 2
    se = half / stdtrit(row["n_seeds"] - 1, 0.975) / 2
    which = {"study": row["study"], "benchmark": row["benchmark"]}
    scatter = rows_of(store.root, _SCATTER, {**of, **which})[0]["scatter"]
    if scatter is None:
        return None, f"{names[0]} has too few words for the scatter about its response"
    return Response(
        **which,
        slope=-row["response"] / 2,
        slope_se=float(se),
        n_seeds=row["n_seeds"],
        scatter=scatter,
    ), ""


def _predict(rows: list[Row], by: Response) -> None:
    """Add to words the predicted change of a model's preference, and the interval of that.

    Its variance is that of a product of two estimates, the change of delta and the slope, and the
    scatter of words about the fit; its degrees of freedom are Welch's.
    """
    from scipy.special import stdtrit

    for row in rows:
        if row["part"] != "word" or row["change_nats"] is None:
            continue
        change, se, df = row["change_nats"], row["change_nats_se"], row["df"]
        of_change, of_slope = (by.slope * se) ** 2, (change * by.slope_se) ** 2
        variance = of_change + of_slope + (se * by.slope_se) ** 2 + by.scatter**2
        spread = of_change**2 / df + of_slope**2 / (by.n_seeds - 1)
        half = np.sqrt(variance) * (stdtrit(variance**2 / spread, 0.975) if spread else 1.96)
        predicted = by.slope * change
        row |= {
            "predicted_nats": predicted,
            "predicted_nats_low": float(predicted - half),
            "predicted_nats_high": float(predicted + half),
        }
