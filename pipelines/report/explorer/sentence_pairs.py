"""Sentence pairs of the explorer: their MaxPMI, and every model's log ratio, also by word."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, TypeAlias

from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.rows import Row, set_name, sides
from plumbline.warehouse.query.connection import arrow_rows
from plumbline.warehouse.text.escape import terminal

#: Most pairs, log ratios, and lists of log ratios by word (per pair and model) that a page loads.
_PAIRS, _RATIOS, _BY_WORD = 50_000, 3_000_000, 100_000
#: Most pairs per side that the page lists first for each set.
_FURTHEST = 5
#: Split a sentence into words: as view `word_logprob` does, and as the search does.
_WORDS, _SEARCHED = re.compile(r"[^\t\n\f\r ]+").findall, re.compile(r"[^\W_]+").findall

#: Pairs with their log ratios, rounded to 3 decimals unless that moves a ratio across epsilon.
_SCORED = """
WITH scored AS (SELECT unnest($benchmarks) AS benchmark, unnest($keys) AS model_key),
ratio AS (
    SELECT
        benchmark,
        pair_id,
        model_key,
        finite(logprob_a_nats) - finite(logprob_b_nats) AS exact,
        lean(exact, $epsilon) AS side,
        CASE WHEN lean(round(exact, 3), $epsilon) = side THEN round(exact, 3) ELSE exact END AS nats
    FROM pair_score
),
pair AS (
    SELECT
        benchmark,
        group_a || '/' || group_b AS groups,
        pair_id,
        sentence_a,
        sentence_b,
        word,
        is_natural,
        list(nats ORDER BY model_key) AS ratios,
        count_if(side IS NOT DISTINCT FROM 1)::INTEGER AS n_first,
        count_if(side IS NOT DISTINCT FROM -1)::INTEGER AS n_second,
        avg(exact ORDER BY model_key) AS mean_nats
    FROM benchmark_pair
    JOIN scored USING (benchmark)
    LEFT JOIN ratio USING (benchmark, pair_id, model_key)
    GROUP BY ALL
)
FROM pair
ORDER BY row_number() OVER (PARTITION BY benchmark ORDER BY pair_id), benchmark
LIMIT $most
"""
_MODELS = """
SELECT benchmark, model_key, any_value(model) AS model FROM pair_score GROUP BY ALL ORDER BY ALL
"""
_MAX_PMI = """
SELECT benchmark, pair_id, corpus, contrast, max_pmi_nats, max_pmi_word FROM pair_association
WHERE max_pmi_nats IS NOT NULL ORDER BY corpus, contrast
"""
_LOGPROBS = """
SELECT
    benchmark,
    pair_id,
    model_key,
    map_from_entries(list((position, logprob_nats)) FILTER (side = 'a')) AS a,
    map_from_entries(list((position, logprob_nats)) FILTER (side = 'b')) AS b
FROM word_logprob
WHERE list_contains($keys, model_key)
GROUP BY ALL
HAVING a IS NOT NULL AND b IS NOT NULL
ORDER BY model_key
"""
_N_SCORED = "SELECT count(*) AS n FROM benchmark_pair WHERE list_contains($benchmarks, benchmark)"

#: Matched words of sentences a and b: start and end in a, start and end in b.
Aligned: TypeAlias = list[tuple[int, int, int, int]]


@dataclass(frozen=True)
class Pair:
    """A sentence pair.

    Attributes:
        key: its benchmark and identifier, which end its address on the page.
        of_set: index of its set in ``SentencePairs.sets``.
        a, b: the words of both sentences.
        ratios: log ratio (a minus b, nats) by model of its set; ``None`` without finite scores.
        n_first, n_second: numbers of models that prefer a and b by more than epsilon.
        max_pmi: for each text: index, MaxPMI in nats, the word that decides it.
        by_word: for each model: index, and the nats that each of ``rows`` adds to the log ratio.
    """

    key: str
    of_set: int
    a: list[str]
    b: list[str]
    word: str
    is_natural: bool | None
    ratios: list[float | None]
    n_first: int
    n_second: int
    mean_nats: float | None
    max_pmi: list[tuple[int, float, str]] = field(default_factory=list)
    by_word: list[tuple[int, list[float]]] = field(default_factory=list)

    @cached_property
    def aligned(self) -> Aligned:
        """The matched words of a and b."""
        return align(self.a, self.b)

    @cached_property
    def parts(self) -> list[str]:
        """In turns, words that both sentences share, words of a alone, and words of b alone."""
        return parts(self.a, self.b, self.aligned)

    @property
    def rows(self) -> list[list[str]]:
        """The matched words of both sentences: one text if they are equal, else two."""
        both = ((self.a[i:j], self.b[k:m]) for i, j, k, m in self.aligned)
        return [[_joined(words) for words in ((a,) if a == b else (a, b))] for a, b in both]

    @property
    def words(self) -> set[str]:
        """The words, in lower case, by which a search finds the pair."""
        return set(_SEARCHED(" ".join(self.parts).lower()))


@dataclass(frozen=True)
class SentencePairs:
    """Data of the page of sentence pairs.

    Attributes:
        sets: for each set: its ``set_name`` and the names of both sides.
        models: the models' labels.
        set_models: for each set: the indices of its models, in the order of ``Pair.ratios``.
        epsilon_nats: largest absolute log ratio that counts as no preference.
        n_left_out: number of pairs that are not on the page.
        n_models_by_word: number of models with log ratios by word; the page has those of
            ``n_shown_by_word``.
    """

    sets: list[tuple[str, str, str]]
    models: list[str]
    set_models: list[list[int]]
    texts: list[str]
    epsilon_nats: float
    n_left_out: int
    n_models_by_word: int
    n_shown_by_word: int
    pairs: list[Pair]

    @property
    def furthest(self) -> list[list[list[int]]]:
        """For each set: indices of the natural pairs that lean furthest to each side."""
        return [[_furthest(self.pairs, k, sign) for sign in (1, -1)] for k in range(len(self.sets))]

    @property
    def sets_of_words(self) -> dict[str, list[tuple[int, int, int, int]]]:
        """Word -> its ``Word.sets`` in the explorer of words."""
        counts = defaultdict[tuple[str, int], list[int]](lambda: [0, 0, 0])
        for pair in self.pairs:
            roles = (pair.words, {pair.word.lower()}, {word for _, _, word in pair.max_pmi})
            for k, words in enumerate(roles):
                for word in words:
                    counts[word, pair.of_set][k] += 1
        by_word = defaultdict[str, list[tuple[int, int, int, int]]](list)
        for (word, of_set), (held, made, decided) in sorted(counts.items()):
            by_word[word].append((of_set, held, made, decided))
        return by_word


def pairs(facts: Facts) -> SentencePairs | None:
    """The pairs that the facts' models scored; ``None`` without any."""
    keys, labels = defaultdict[str, list[str]](list), dict[str, str]()
    scored = facts.query(_MODELS)
    for row in scored:
        keys[row["benchmark"]].append(row["model_key"])
        labels[row["model_key"]] = terminal(row["model"])
    epsilon = next((r["epsilon_nats"] for r in facts.metrics("us")), None) or math.log(1.65)
    most = min(_PAIRS, _RATIOS // max(1, len(labels)))
    ids = {
        "benchmarks": [r["benchmark"] for r in scored],
        "keys": [r["model_key"] for r in scored],
    }
    rows = sorted(
        _rows(facts, _SCORED, epsilon=epsilon, most=most, **ids) if scored else [],
        key=lambda r: (r["benchmark"], r["groups"], r["pair_id"]),
    )
    if not rows:
        return None
    models = {key: k for k, key in enumerate(sorted(labels, key=lambda key: (labels[key], key)))}
    sets = {(row["benchmark"], row["groups"]): row for row in rows}
    set_index = {key_of_set: k for k, key_of_set in enumerate(sets)}
    by_id = {
        (row["benchmark"], row["pair_id"]): _pair(row, set_index[row["benchmark"], row["groups"]])
        for row in rows
    }
    texts = _add_max_pmi(facts, by_id)
    n_by_word, n_shown = _add_words(facts, by_id, models)
    (n_pairs,) = _rows(facts, _N_SCORED, benchmarks=ids["benchmarks"])
    return SentencePairs(
        [_set_and_sides(row) for row in sets.values()],
        [labels[key] for key in models],
        [[models[key] for key in keys[benchmark]] for benchmark, _ in sets],
        texts,
        epsilon,
        n_pairs["n"] - len(rows),
        n_by_word,
        n_shown,
        list(by_id.values()),
    )


def _set_and_sides(row: Row) -> tuple[str, str, str]:
    first, second = sides(row)
    return terminal(set_name(row)), terminal(first), terminal(second)


def _rows(facts: Facts, text: str, **params: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = arrow_rows(facts.connection, text, params).to_pylist()
    return rows


def _pair(row: Row, of_set: int) -> Pair:
    return Pair(
        terminal(f"{row['benchmark']}/{row['pair_id']}"),
        of_set,
        _WORDS(row["sentence_a"]),
        _WORDS(row["sentence_b"]),
        terminal(row["word"] or ""),
        row["is_natural"],
        row["ratios"],
        row["n_first"],
        row["n_second"],
        row["mean_nats"],
    )


def align(a: Sequence[str], b: Sequence[str]) -> Aligned:
    """Match the words of two sentences: by position if they are equally long, else equal words.

    >>> align(["she", "left"], ["he", "left"])
    [(0, 1, 0, 1), (1, 2, 1, 2)]
    >>> align(["the", "old", "cook", "left"], ["the", "cook", "left"])
    [(0, 1, 0, 1), (1, 2, 1, 1), (2, 3, 1, 2), (3, 4, 2, 3)]
    """
    if len(a) == len(b):
        return [(i, i + 1, i, i + 1) for i in range(len(a))]
    aligned: Aligned = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            aligned += [(i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i)]
        else:
            aligned.append((i, j, k, m))
    return aligned


def parts(a: Sequence[str], b: Sequence[str], aligned: Aligned) -> list[str]:
    """In turns, words that two sentences share, words of a alone, and words of b alone.

    >>> a, b = "She lost her own key".split(), "He lost his key".split()
    >>> parts(a, b, align(a, b))
    ['', 'She', 'He', 'lost', 'her own', 'his', 'key']
    """
    turns = [list[str]()]
    for i, j, k, m in aligned:
        if a[i:j] != b[k:m]:
            if len(turns) == 1 or turns[-1]:
                turns += [[], [], []]
            turns[-3] += a[i:j]
            turns[-2] += b[k:m]
        else:
            turns[-1] += a[i:j]
    return [_joined(words) for words in turns]


def _joined(words: Sequence[str]) -> str:
    return terminal(" ".join(words))


def _add_max_pmi(facts: Facts, by_id: dict[tuple[str, str], Pair]) -> list[str]:
    """Add each pair's MaxPMI to ``by_id``; returns the names of the texts."""
    texts: dict[str, int] = {}
    for row in facts.query(_MAX_PMI):
        contrast = "" if row["contrast"] == "she/he" else f", {row['contrast']}"
        text = texts.setdefault(terminal(row["corpus"] + contrast), len(texts))
        if pair := by_id.get((row["benchmark"], row["pair_id"])):
            pair.max_pmi.append((text, row["max_pmi_nats"], terminal(row["max_pmi_word"] or "")))
    return list(texts)


def _add_words(
    facts: Facts, by_id: dict[tuple[str, str], Pair], models: dict[str, int]
) -> tuple[int, int]:
    """Add log ratios by word to ``by_id``; returns how many models have them, and are shown."""
    scored = {r["model_key"] for r in _rows(facts, "SELECT DISTINCT model_key FROM token_logprob")}
    shown = [key for key in models if key in scored][: max(1, _BY_WORD // len(by_id))]
    if not shown:
        return 0, 0
    for row in _rows(facts, _LOGPROBS, keys=shown):
        if pair := by_id.get((row["benchmark"], row["pair_id"])):
            logprobs_a, logprobs_b = dict(row["a"]), dict(row["b"])
            values = [
                sum(logprobs_a.get(n, 0.0) for n in range(i, j))
                - sum(logprobs_b.get(n, 0.0) for n in range(k, m))
                for i, j, k, m in pair.aligned
            ]
            pair.by_word.append((models[row["model_key"]], values))
    return len(scored & set(models)), len(shown)


def _furthest(all_pairs: Sequence[Pair], of_set: int, sign: int) -> list[int]:
    """Indices of the set's natural pairs with the mean log ratio furthest to the side ``sign``."""
    leaning = [
        (sign * pair.mean_nats, k)
        for k, pair in enumerate(all_pairs)
        if pair.of_set == of_set and pair.is_natural is not False and pair.mean_nats is not None
    ]
    far = sorted((lean, -k) for lean, k in leaning if lean > 0)
    return [-k for _, k in far[: -_FURTHEST - 1 : -1]]
