"""Files of the explorers: both pages, and words and pairs in chunks."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from plumbline.pipelines.report.explorer.explored_words import ExploredText, Explorer, Word
from plumbline.pipelines.report.explorer.sentence_pairs import Pair, SentencePairs
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import word_leans
from plumbline.pipelines.report.model import shown
from plumbline.pipelines.report.rows import Row, with_ends
from plumbline.pipelines.report.templates import rendered
from plumbline.warehouse.finding import Finding

#: Words per file of ``word_files``, and pairs per file of ``pair_files``.
_CHUNK, _PAIRS = 100, 250
#: Width of a plot of leans, and height of its bars, in units of its viewBox.
_WIDTH, _HEIGHT = 400, 34
_FILES = ("style.css", "explorer/page.css")
#: Note on a text that was imported without counts of co-occurrences.
UNKNOWN = (
    "Imported without counts of co-occurrences: this lean has no interval, and its sources and "
    "sentences are not known."
)
_SOURCE = ("source", "n_pair_f", "n_pair_m", *with_ends("delta_nats"))


def explorer_page(explorer: Explorer) -> str:
    """The page ``words.html``, which loads files of ``word_files`` from the directory ``words``."""
    index = {
        "texts": [vars(text) | {"area": area(text), "name": text.name} for text in explorer.texts],
        "models": explorer.models,
        "benchmarks": explorer.benchmarks,
        "reach": explorer.reach,
        "sets": explorer.sets,
        "size": _CHUNK,
        "unknown": UNKNOWN,
        "words": [word.word for word in explorer.words],
        "deltas": [_brief(word) for word in explorer.words],
    }
    return _page("words", index, found=explorer, shown=shown)


def pair_page(sentence_pairs: SentencePairs) -> str:
    """The page ``pairs.html``, which loads files of ``pair_files`` from the directory ``pairs``."""
    index = {
        "sets": sentence_pairs.sets,
        "models": sentence_pairs.models,
        "set_models": sentence_pairs.set_models,
        "texts": sentence_pairs.texts,
        "epsilon": sentence_pairs.epsilon_nats,
        "more_by_word": sentence_pairs.n_models_by_word - sentence_pairs.n_shown_by_word,
        "size": _PAIRS,
        "furthest": sentence_pairs.furthest,
        "keys": [pair.key for pair in sentence_pairs.pairs],
        "set": [pair.of_set for pair in sentence_pairs.pairs],
        "parts": [pair.parts for pair in sentence_pairs.pairs],
        "prefer": [[pair.n_first, pair.n_second] for pair in sentence_pairs.pairs],
    }
    return _page("pairs", index, found=sentence_pairs, shown=shown)


def _page(kind: str, index: Mapping[str, Any], **values: object) -> str:
    """The page of a ``kind`` (its template and script); its search reads ``index``."""
    scripts = ("explorer/page.js", f"explorer/{kind}.js")
    values |= {"kind": kind, "index": _json(index)}
    return rendered(f"explorer/{kind}.html", styles=_FILES, scripts=scripts, **values)


def word_files(explorer: Explorer) -> Iterator[tuple[str, str]]:
    """Names and contents of the files in the directory ``words``, which hold all words in chunks.

    Chunks are scripts, because a page that is opened from a disk may load nothing else.
    """
    yield from _chunks([_record(explorer, word) for word in explorer.words], _CHUNK)


def pair_files(sentence_pairs: SentencePairs, words: Explorer | None) -> Iterator[tuple[str, str]]:
    """Names and contents of the files in the directory ``pairs``, which hold all pairs.

    Args:
        words: the explorer of words, to which words of pairs link.
    """
    explored = {word.word for word in words.words} if words else set[str]()
    yield from _chunks([_pair(pair, explored) for pair in sentence_pairs.pairs], _PAIRS)


def _chunks(records: Sequence[object], size: int) -> Iterator[tuple[str, str]]:
    """Names and contents of scripts that pass ``size`` records each to the page."""
    for k, start in enumerate(range(0, len(records), size)):
        yield f"{k}.js", f"plumblineRecords({k}, {_json(records[start : start + size])});\n"


def counts(text: ExploredText, row: Row) -> str:
    """A sentence on a word's counts in a text and near both sides; empty if no count is known."""
    parts = [] if row["n_word"] is None else [f"{row['n_word']:,} times"]
    if row["per_million"] is not None:
        parts.append(
            f"{row['per_million']:,.{1 if row['per_million'] >= 1 else 3}f} per million kept tokens"
        )
    if row["frequency_rank"]:
        parts.append(f"rank {row['frequency_rank']:,}")
    if row["n_pair_f"] is not None:
        near = zip((text.first, text.second), (row["n_pair_f"], row["n_pair_m"]), strict=True)
        parts += [f"{n:,} near {name}" for name, n in near]
    return f"{', '.join(parts)}. Grey: the leans of all words of this text." if parts else ""


def area(text: ExploredText) -> str:
    """The outline of the distribution of all leans, as an SVG path with its base at ``_HEIGHT``.

    >>> area(ExploredText("c", "she/he", "she", "he", 1.0, [0.5, 1.0], "", ([], []), True))
    'M0 34V17.0H200.0V0.0H400.0V34Z'
    """
    step = _WIDTH / len(text.bars)
    steps = "".join(
        f"V{_HEIGHT * (1 - bar):.1f}H{step * (k + 1):.1f}" for k, bar in enumerate(text.bars)
    )
    return f"M0 {_HEIGHT}{steps}V{_HEIGHT}Z"


def side_of(result: Finding) -> str:
    """The side whose colour an estimate gets, ``first`` or ``second``; empty if it is unclear.

    >>> side_of(Finding("tea", "lean", 0.5, 0.2, 0.8)), side_of(Finding("tea", "lean", 0.5))
    ('first', '')
    """
    return result.pick(above="first", below="second", untold="")


def _lean(row: Row) -> Finding:
    return finding(row, "delta_nats")


def _preference(value: float, low: float | None, high: float | None) -> Finding:
    return Finding("", "log ratio", value, low, high, unit="nats")


def _brief(word: Word) -> float | None:
    """A word's lean in the first text with a finite one, for a list of words; else ``None``."""
    leans = (row["delta_nats"] for _, row in sorted(word.leans.items()))
    return next((round(x, 2) for x in leans if x is not None and math.isfinite(x)), None)


def _record(explorer: Explorer, word: Word) -> dict[str, Any]:
    leans = {
        k: {
            "says": word_leans(row, explorer.texts[k].first, explorer.texts[k].second),
            "counts": counts(explorer.texts[k], row),
            "lean": [*_rounded(map(row.get, with_ends("delta_nats"))), side_of(_lean(row))],
            "sources": [_rounded(map(source.get, _SOURCE)) for source in row["sources"]],
            "sentences": row["sentences"],
        }
        for k, row in word.leans.items()
    }
    preferences = [[*_rounded(p), side_of(_preference(*p[2:5]))] for p in word.preferences]
    return {"leans": leans, "preferences": preferences, "sets": word.sets}


def _pair(pair: Pair, explored: Collection[str]) -> list[Any]:
    """A pair's record for the script; words that were ``explored`` link to their explorer."""

    def linked(word: str) -> list[str]:
        return [word, word.lower()] if word.lower() in explored else [word]

    by_word = [[k, [round(value, 3) for value in values]] for k, values in pair.by_word]
    return [
        pair.ratios,
        pair.is_natural,
        linked(pair.word) if pair.word else None,
        [[text, round(value, 3), linked(word)] for text, value, word in pair.max_pmi],
        [pair.rows, by_word] if by_word else None,
    ]


def _rounded(values: Iterable[Any]) -> list[Any]:
    """Values for a script; infinite ones and NaN, which JSON lacks, become ``None``."""
    finite = (None if isinstance(v, float) and not math.isfinite(v) else v for v in values)
    return [round(v, 5) if isinstance(v, float) else v for v in finite]


def _json(value: object) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
