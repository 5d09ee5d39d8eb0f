"""Words of the explorer: their lean by text, sources, sentences, and models' preferences."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from plumbline.pipelines.report.explorer.sentence_pairs import SentencePairs
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import estimate
from plumbline.pipelines.report.rows import Row, Rows, brief, set_name, sides
from plumbline.pipelines.report.words import TOP_WORDS
from plumbline.warehouse.text.escape import terminal

#: Most words of each text: the most frequent ones. Words of benchmarks and of `plumbline why` are
#: added.
MOST_WORDS = 20_000
#: Most sentences per side, and most sources, shown for a word.
_SENTENCES, _SOURCES = 3, 12
#: Number of bars of the distribution of all leans, and the largest ``reach`` of its axis in nats.
_BARS, _WIDEST = 60, 6.0

_WORDS = """
WITH chosen AS (
    SELECT corpus, contrast, word FROM word_evidence
    UNION
    SELECT corpus, contrast, word FROM ($listed)
    UNION
    SELECT corpus, contrast, word FROM word_lean SEMI JOIN shown_contrast USING (corpus, contrast)
    WHERE word IN (SELECT word FROM word_preference)
    UNION
    (SELECT corpus, contrast, word
    FROM word_lean SEMI JOIN shown_contrast USING (corpus, contrast)
    QUALIFY row_number() OVER (
        PARTITION BY corpus, contrast ORDER BY n_word DESC NULLS LAST, word
    ) <= $most)
)
SELECT
    corpus,
    contrast,
    word,
    coalesce(l.n_word, e.n_word) AS n_word,
    coalesce(l.n_pair_f, e.n_pair_f) AS n_pair_f,
    coalesce(l.n_pair_m, e.n_pair_m) AS n_pair_m,
    coalesce(l.delta_nats, e.delta_nats) AS delta_nats,
    coalesce(l.delta_nats_low, e.delta_nats_low) AS delta_nats_low,
    coalesce(l.delta_nats_high, e.delta_nats_high) AS delta_nats_high,
    e.clusters,
    e.n_clusters,
    coalesce(e.per_million, 1e6 * l.n_word / c.n_kept_tokens) AS per_million,
    e.frequency_rank
FROM chosen
LEFT JOIN word_evidence AS e USING (corpus, contrast, word)
LEFT JOIN word_lean AS l USING (corpus, contrast, word)
LEFT JOIN corpus AS c USING (corpus)
ORDER BY corpus, contrast, n_word DESC NULLS LAST, word
"""
_SOURCE_ROWS = f"""
SELECT
    corpus, contrast, word, source, n_pair_f, n_pair_m, n_pair_f + n_pair_m AS n_near,
    delta_nats, delta_nats_low, delta_nats_high
FROM word_source
QUALIFY row_number() OVER (
    PARTITION BY corpus, contrast, word ORDER BY n_pair_f + n_pair_m DESC, source
) <= {_SOURCES}
ORDER BY n_pair_f + n_pair_m DESC, source
"""
_SNIPPETS = f"""
SELECT corpus, contrast, word, side, target, text_before, keyword, text_after,
    coalesce(file, source) AS source
FROM word_snippet WHERE place <= {_SENTENCES} ORDER BY side, place
"""
#: Mean log ratio of each model over the pairs made for a word, with Student's interval.
PREFERENCES = """
SELECT
    model_key,
    model,
    benchmark,
    groups,
    lower(word) AS word,
    count(*) AS n_pairs,
    avg(log_ratio_nats ORDER BY pair_id) AS mean_nats,
    mean_nats - student_half(log_ratio_nats) AS low_nats,
    mean_nats + student_half(log_ratio_nats) AS high_nats
FROM scored_pair
WHERE word IS NOT NULL
GROUP BY ALL
ORDER BY model, model_key, benchmark, groups, word;
"""


@dataclass(frozen=True)
class ExploredText:
    """A corpus and a contrast.

    Attributes:
        first, second: the names of the sides above and below 0.
        reach: the axis is from -reach to reach, in nats.
        bars: the distribution of all words' leans: heights from 0 to 1 of bars of equal width.
        how: the command that explains a word, with the placeholder ``WORD``; empty for an imported
            corpus, whose words it can't explain.
        furthest: words that lean to the first and to the second side, surest first, with leans.
        is_clear: True if these words have intervals, which then exclude 0.
    """

    corpus: str
    contrast: str
    first: str
    second: str
    reach: float
    bars: list[float]
    how: str
    furthest: tuple[list[tuple[str, str]], list[tuple[str, str]]]
    is_clear: bool

    @property
    def name(self) -> str:
        """The corpus, with the contrast unless it is she/he."""
        return self.corpus if self.contrast == "she/he" else f"{self.corpus}, {self.contrast}"


@dataclass(frozen=True)
class Word:
    """A word: its lean in each text, and the models' preferences.

    Attributes:
        leans: index of the text -> a row of ``_WORDS``, with ``sources`` and ``sentences`` (their
            parts are from ``marked``).
        preferences: for each model and benchmark: their indices, mean, low, high (nats), pairs.
        sets: for each set of sentence pairs with the word: the set's index, and the numbers of
            pairs that contain the word, were made for it, and have a MaxPMI that it decides.
    """

    word: str
    leans: dict[int, Row] = field(default_factory=dict)
    preferences: list[tuple[int, int, float, float | None, float | None, int]] = field(
        default_factory=list
    )
    sets: list[tuple[int, int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Explorer:
    """Data of the page of words.

    ``benchmarks`` have a name and the groups preferred above and below 0. The axis of preferences
    is from -``reach`` to ``reach``, in nats. ``sets`` are the names of the sets of sentence pairs.
    """

    texts: list[ExploredText]
    models: list[str]
    benchmarks: list[tuple[str, str, str]]
    reach: float
    words: list[Word]
    sets: list[str] = field(default_factory=list)


def explorer(
    facts: Facts, pairs: SentencePairs | None = None, most: int = MOST_WORDS
) -> Explorer | None:
    """The words of a warehouse, the most frequent ones first; ``None`` without any.

    Args:
        pairs: sentence pairs that can be searched.
        most: most words of each text; words of benchmarks and of `plumbline why` are added.
    """
    listed = _listed(facts).sql.rstrip().removesuffix(";")
    word_rows = facts.query(_WORDS.replace("$listed", listed).replace("$most", str(most)))
    if not word_rows:
        return None
    sources, sentences = defaultdict(list), defaultdict(list)
    for row in facts.query(_SOURCE_ROWS):
        sources[row["corpus"], row["contrast"], row["word"]].append(
            {**row, "source": terminal(row["source"])}
        )
    for row in facts.query(_SNIPPETS):
        sentences[row["corpus"], row["contrast"], row["word"]].append(
            {
                "side": row["side"],
                "source": terminal(row["source"] or ""),
                "parts": marked(row),
            }
        )
    rows_by_text = defaultdict(list)
    for row in word_rows:
        rows_by_text[row["corpus"], row["contrast"]].append(row)
    texts, words = [], dict[str, Word]()
    for k, ((corpus, contrast), rows) in enumerate(rows_by_text.items()):
        texts.append(_text(facts, corpus, contrast, rows))
        for row in rows:
            key, name = (corpus, contrast, row["word"]), terminal(row["word"])
            lean = {**row, "sources": sources.get(key, []), "sentences": sentences.get(key, [])}
            words.setdefault(name, Word(name)).leans[k] = lean
    models, benchmarks, reach = _add_preferences(facts, words)

    def place(word: Word) -> tuple[int, str]:
        return -max((r["n_word"] or 0 for r in word.leans.values()), default=0), word.word

    sets = pairs.sets_of_words if pairs else {}
    ordered_words = [
        replace(w, sets=sets.get(w.word, [])) for w in sorted(words.values(), key=place)
    ]
    names = [name for name, _, _ in pairs.sets] if pairs else []
    return Explorer(texts, models, benchmarks, reach, ordered_words, names)


def _listed(facts: Facts) -> Rows:
    return facts.rows("word", top=TOP_WORDS)


def _text(facts: Facts, corpus: str, contrast: str, rows: Sequence[Row]) -> ExploredText:
    first, second = facts.contrast_sides(corpus, contrast)
    subject = {"corpus": corpus, "contrast": contrast}
    query = "SELECT delta_nats FROM word_delta WHERE corpus = $corpus AND contrast = $contrast"
    leans = facts.connection.execute(query, subject).fetchnumpy()["delta_nats"]
    deltas: NDArray[np.float64] = np.array(
        [*leans, *(r["delta_nats"] for r in rows if not leans.size)], float
    )
    deltas = deltas[np.isfinite(deltas)]
    reach = float(min(_WIDEST, np.ceil(2 * np.abs(deltas).max(initial=0.5)) / 2))
    counts, _ = np.histogram(deltas.clip(-reach, reach), _BARS, (-reach, reach))
    (source,) = facts.connection.execute(
        "SELECT any_value(source) FROM corpus WHERE corpus = $corpus", {"corpus": corpus}
    ).fetchall()
    contrast_option = "" if contrast == "she/he" else f" --contrast {shlex.quote(contrast)}"
    command = f"plumbline why WORD --corpus {shlex.quote(corpus)}{contrast_option}"
    furthest, is_clear = _furthest(_listed(facts).where(**subject))
    return ExploredText(
        terminal(corpus),
        terminal(contrast),
        terminal(first),
        terminal(second),
        reach,
        (counts / max(counts.max(initial=0), 1)).round(3).tolist(),
        "" if source == ("imported",) else terminal(command),
        furthest,
        is_clear,
    )


def _furthest(
    rows: Sequence[Row],
) -> tuple[tuple[list[tuple[str, str]], list[tuple[str, str]]], bool]:
    """``furthest`` and ``is_clear`` of an ``ExploredText``, from the rows of ``_listed``."""
    up, down = list[tuple[str, str]](), list[tuple[str, str]]()
    for row in sorted(rows, key=lambda r: r["place"]):
        side = up if row["lean_bound_nats"] > 0 else down
        side.append((terminal(row["word"]), estimate(row, "delta_nats").text))
    return (up, down), any(r["delta_nats_low"] is not None for r in rows)


def _add_preferences(
    facts: Facts, words: dict[str, Word]
) -> tuple[list[str], list[tuple[str, str, str]], float]:
    """Add preferences to ``words``; returns models, benchmarks and reach of ``Explorer``."""
    rows = [r for r in facts.query(PREFERENCES) if np.isfinite(r["mean_nats"])]
    models = {name: k for k, name in enumerate(dict.fromkeys(r["model"] for r in rows))}
    sets: dict[tuple[str, str, str], int] = {}
    for row in rows:
        label = (set_name(row), *sides(row))
        number = sets.setdefault(label, len(sets))
        name = terminal(row["word"])
        word = words.setdefault(name, Word(name))
        ends = row["mean_nats"], row["low_nats"], row["high_nats"]
        word.preferences.append((models[row["model"]], number, *ends, row["n_pairs"]))
    sizes = [abs(r["mean_nats"]) for r in rows]
    reach = float(np.ceil(np.quantile(sizes, 0.98))) if sizes else 1.0
    labels = [(terminal(name), terminal(first), terminal(second)) for name, first, second in sets]
    return [terminal(brief(m, [*models])) for m in models], labels, max(reach, 1.0)


def marked(snippet: Row) -> list[tuple[int, str]]:
    """A sentence in parts (mark, text). Mark 1 is the word, 2 the nearest target, 0 other text.

    >>> text = {"text_before": "And she", "keyword": "wet-nurse,", "text_after": "as he"}
    >>> marked({**text, "word": "nurse", "target": "she"})
    [(0, 'And '), (2, 'she'), (0, ' wet-'), (1, 'nurse'), (0, ', as he')]
    """
    before, after = (terminal(snippet[name]) for name in ("text_before", "text_after"))
    target = re.compile(rf"(?<!\w){re.escape(snippet['target'])}(?!\w)", re.IGNORECASE)
    left, right = list(target.finditer(before))[-1:], list(target.finditer(after))[:1]
    if left and right:
        is_left = len(before) - left[0].end() <= right[0].start()
        left, right = (left, []) if is_left else ([], right)
    word = re.compile(re.escape(snippet["word"]), re.IGNORECASE)
    keyword = terminal(snippet["keyword"])
    parts = [
        *_around(before, left),
        (0, " "),
        *_around(keyword, list(word.finditer(keyword))[:1], 1),
    ]
    parts += [(0, " "), *_around(after, right)]
    return _joined(part for part in parts if part[1])


def _around(text: str, hits: list[re.Match[str]], mark: int = 2) -> list[tuple[int, str]]:
    if not hits:
        return [(0, text)]
    return [(0, text[: hits[0].start()]), (mark, hits[0].group()), (0, text[hits[0].end() :])]


def _joined(parts: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    joined: list[tuple[int, str]] = []
    for mark, text in parts:
        if joined and not mark and not joined[-1][0]:
            joined[-1] = (0, joined[-1][1] + text)
        else:
            joined.append((mark, text))
    return joined
