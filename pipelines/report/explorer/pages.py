"""The explorers as files: their pages, words and pairs in chunks, and a page for one word."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from plumbline.pipelines.report.explorer.explored_words import ExploredText, Explorer, Word
from plumbline.pipelines.report.explorer.sentence_pairs import Pair, SentencePairs
from plumbline.pipelines.report.findings.estimates import finding
from plumbline.pipelines.report.findings.sentences import word_leans
from plumbline.pipelines.report.model import numbered, shown, stem
from plumbline.pipelines.report.rows import Row, with_ends
from plumbline.pipelines.report.site import BARE, PageFrame
from plumbline.pipelines.report.templates import rendered
from plumbline.warehouse.query.finding import Finding

#: Words per chunk, and pairs per chunk.
_CHUNK, _PAIRS = 100, 250
#: Width of a drawing of leans, and height of its bars.
_WIDTH, _HEIGHT = 400, 34
_FILES = ("style.css", "explorer/page.css")
#: Note on a text that was imported without counts of co-occurrences.
UNKNOWN = (
    "Imported without counts of co-occurrences: this lean has no interval, and its sources and "
    "sentences are not known."
)
_SOURCE = ("source", "n_pair_f", "n_pair_m", *with_ends("delta_nats"))


def explorer_page(
    found: Explorer, pages: Mapping[str, str] | None = None, frame: PageFrame = BARE
) -> str:
    """The page ``words.html``, which loads files of ``word_files`` from the directory ``words``.

    Args:
        pages: word -> the file in ``words`` that is the word's own page.
        frame: links above the page, and sources below it.
    """
    index = {
        "texts": [vars(text) | {"area": area(text), "name": text.name} for text in found.texts],
        "models": found.models,
        "benchmarks": found.benchmarks,
        "reach": found.reach,
        "sets": found.sets,
        "size": _CHUNK,
        "pages": dict(pages or {}),
        "unknown": UNKNOWN,
        "words": [word.word for word in found.words],
        "deltas": [_brief(word) for word in found.words],
    }
    return _page("words", index, found=found, shown=shown, frame=frame)


def pair_page(found: SentencePairs, frame: PageFrame = BARE) -> str:
    """The page ``pairs.html``, which loads files of ``pair_files`` from the directory ``pairs``."""
    index = {
        "sets": found.sets,
        "models": found.models,
        "set_models": found.set_models,
        "texts": found.texts,
        "epsilon": found.epsilon_nats,
        "more_by_word": found.n_models_by_word - found.n_shown_by_word,
        "size": _PAIRS,
        "furthest": found.furthest,
        "keys": [pair.key for pair in found.pairs],
        "set": [pair.of_set for pair in found.pairs],
        "parts": [pair.parts for pair in found.pairs],
        "prefer": [[pair.n_first, pair.n_second] for pair in found.pairs],
    }
    return _page("pairs", index, found=found, shown=shown, frame=frame)


def _page(kind: str, index: Mapping[str, Any], **values: object) -> str:
    """A page with a search, by its template and script; ``index`` is what is searched."""
    scripts = ("explorer/page.js", f"explorer/{kind}.js")
    values |= {"kind": kind, "index": _json(index)}
    return rendered(f"explorer/{kind}.html", styles=_FILES, scripts=scripts, **values)


def word_files(
    found: Explorer, is_site: bool = False, frame: PageFrame = BARE
) -> Iterator[tuple[str, str]]:
    """Names and contents of the files in the directory ``words``.

    They are all words in chunks and, for a site, the pages of ``page_names``. Chunks are scripts,
    since a page that is opened from a disk may load nothing else.
    """
    yield from _chunks([_record(found, word) for word in found.words], _CHUNK)
    names = page_names(found) if is_site else {}
    for word in found.words:
        if word.word in names:
            yield names[word.word], word_page(found, word, frame)


def pair_files(found: SentencePairs, words: Explorer | None) -> Iterator[tuple[str, str]]:
    """Names and contents of the files in the directory ``pairs``, which hold all pairs.

    Args:
        words: the explorer of words, which the words of pairs link to.
    """
    known = {word.word for word in words.words} if words else set[str]()
    yield from _chunks([_pair(pair, known) for pair in found.pairs], _PAIRS)


def _chunks(records: Sequence[object], size: int) -> Iterator[tuple[str, str]]:
    """Scripts that pass their records to the page."""
    for k, start in enumerate(range(0, len(records), size)):
        yield f"{k}.js", f"plumblineRecords({k}, {_json(records[start : start + size])});\n"


def word_page(found: Explorer, word: Word, frame: PageFrame = BARE) -> str:
    """The page of one word, which needs no script and no other file."""
    values = {"found": found, "word": word, "up": "../", "shown": shown, "area": area}
    values |= {"says": word_leans, "counts": counts, "x": x_of, "side": side_of}
    values |= {"lean": _lean, "preference": _preference, "frame": frame, "unknown": UNKNOWN}
    return rendered("explorer/word.html", styles=_FILES, scripts=(), **values)


def page_names(found: Explorer) -> dict[str, str]:
    """Word -> the file of its own page, for words of benchmarks and those that lean furthest."""
    far = {word for text in found.texts for side in text.furthest for word, _ in side}
    seen: Counter[str] = Counter()
    names = {}
    for word in found.words:
        if word.preferences or word.word in far:
            names[word.word] = numbered(seen, stem("w", word.word)) + ".html"
    return names


def counts(text: ExploredText, row: Row) -> str:
    """Counts of a word in a text, and near its two sides, as a sentence."""
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
    """The outline of the distribution of all leans, as an SVG path above y = _HEIGHT.

    >>> area(ExploredText("c", "she/he", "she", "he", 1.0, [0.5, 1.0], "", ([], []), True))
    'M0 34V17.0H200.0V0.0H400.0V34Z'
    """
    step = _WIDTH / len(text.bars)
    steps = "".join(
        f"V{_HEIGHT * (1 - bar):.1f}H{step * (k + 1):.1f}" for k, bar in enumerate(text.bars)
    )
    return f"M0 {_HEIGHT}{steps}V{_HEIGHT}Z"


def x_of(value: float, reach: float, width: float = _WIDTH) -> float:
    """The x of a value on an axis from -reach to reach; values beyond are put at the ends.

    >>> x_of(0.5, 1.0), x_of(-9, 1.0), x_of(0.5, 1.0, 100)
    (300.0, 0.0, 75.0)
    """
    return round(width * (1 + max(-1.0, min(1.0, value / reach))) / 2, 1)


def side_of(of: Finding) -> str:
    """The side that colours a figure on the pages, ``first`` or ``second``; empty if unclear.

    >>> side_of(Finding("tea", "lean", 0.5, 0.2, 0.8)), side_of(Finding("tea", "lean", 0.5))
    ('first', '')
    """
    return of.pick(above="first", below="second", untold="")


def _lean(row: Row) -> Finding:
    return finding(row, "delta_nats")


def _preference(value: float, low: float | None, high: float | None) -> Finding:
    return Finding("", "log ratio", value, low, high, unit="nats")


def _brief(word: Word) -> float | None:
    """The lean beside a word in a list, from the first text with a finite one; else ``None``."""
    leans = (row["delta_nats"] for _, row in sorted(word.leans.items()))
    return next((round(x, 2) for x in leans if x is not None and math.isfinite(x)), None)


def _record(found: Explorer, word: Word) -> dict[str, Any]:
    leans = {
        k: {
            "says": word_leans(row, found.texts[k].first, found.texts[k].second),
            "counts": counts(found.texts[k], row),
            "lean": [*_rounded(map(row.get, with_ends("delta_nats"))), side_of(_lean(row))],
            "sources": [_rounded(map(source.get, _SOURCE)) for source in row["sources"]],
            "sentences": row["sentences"],
        }
        for k, row in word.leans.items()
    }
    preferences = [[*_rounded(p), side_of(_preference(*p[2:5]))] for p in word.preferences]
    return {"leans": leans, "preferences": preferences, "sets": word.sets}


def _pair(pair: Pair, known: Collection[str]) -> list[Any]:
    """A pair's figures; its words link to the explorer of words if they are ``known`` there."""

    def linked(word: str) -> list[str]:
        return [word, word.lower()] if word.lower() in known else [word]

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
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
