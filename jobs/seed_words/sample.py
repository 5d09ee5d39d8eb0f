"""Seed words of a corpus: those that lean least, sampled into ``seed_word``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from plumbline.jobs.association.associate import corpus_row
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.jobs.seed_words.selection import neutral_interval, stratified, within
from plumbline.jobs.seed_words.vetting import REJECTED, verdicts
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store


@dataclass(frozen=True)
class Selected:
    """What was sampled, and of how many words.

    Attributes:
        n_defined: words with a delta, of the vocabulary where the corpus has one.
        n_outside: words with a delta that the vocabulary leaves out; ``None`` without one.
        n_within: words in the interval, whose ends are ``low_nats`` and ``high_nats``.
        n_excluded, n_rejected: of these, words on the lists to exclude, and others rejected by a
            person.
        words: the sample.
    """

    n_defined: int
    n_outside: int | None
    n_within: int
    n_excluded: int
    n_rejected: int
    low_nats: float
    high_nats: float
    words: tuple[str, ...]


@writes_corpus
def select_seed_words(
    store: Store,
    corpus: str,
    n: int | None = 500,
    seed: int = 0,
    contrast: str = "she/he",
    exclude: Collection[str] = (),
    n_bands: int = 1,
) -> Selected:
    """Sample ``n`` words, or all, from the interval of delta that holds 0 (``selection.py``).

    Where the corpus has a ``vocabulary``, its kept words alone are there to choose from; it decides
    the interval too. Of a closed world the words that its frames are made of count as excluded:
    no frame takes them. Excluded and rejected words do not change the interval. The sample
    replaces one of the same corpus, contrast and seed; others stay.

    Args:
        n: how many; ``None`` for all there are, in the order of which a sample is the start.
        exclude: words that are not to be sampled.
        n_bands: bands of frequency that give equally many words; 1 for none.

    Raises:
        UsageProblem: no such corpus, no delta of the contrast, or fewer than ``n`` words.
    """
    corpus_row(store, corpus)
    of = _leans(store, corpus, contrast)
    kept, vocabulary_run = _vocabulary(store, corpus)
    usable = of if kept is None else {word: row for word, row in of.items() if word in kept}
    if not usable:
        problem = f"no word of its vocabulary has a delta of {contrast}"
        raise UsageProblem(f"corpus {corpus!r}", problem)
    deltas = {word: row["delta_nats"] for word, row in usable.items()}
    low, high = interval = neutral_interval(deltas.values())
    inside = within(deltas, interval)
    excluded = set(inside) & (set(exclude) | _of_frames(store, corpus))
    said = verdicts(store, corpus)
    rejected = {w for w in inside if w in said and said[w]["verdict"] == REJECTED} - excluded
    left = {w: usable[w]["n_word"] or 0 for w in inside if w not in excluded | rejected}
    n = len(left) if n is None else n
    chosen = stratified(left, n, seed, n_bands)
    config = {"corpus": corpus, "contrast": contrast, "seed": seed}
    options = {"n": n, "n_bands": n_bands, "vocabulary": vocabulary_run}
    left_out = {"excluded": sorted(excluded), "rejected": sorted(rejected)}
    with recorded(store, "corpus words", {**config, **options, **left_out}) as run_id:
        fixed = {**config, "low_nats": low, "high_nats": high, "run_id": run_id}
        sampled = [
            {**fixed, "position": k, **{c: of[word][c] for c in ("word", "n_word", "delta_nats")}}
            for k, word in enumerate(chosen, start=1)
        ]
        store.publish("seed_word", sampled, unit=f"{contrast} {seed}", run_id=run_id)
    n_outside = None if kept is None else len(of) - len(usable)
    counts = len(usable), n_outside, len(inside), len(excluded), len(rejected)
    return Selected(*counts, low, high, tuple(chosen))


def _leans(store: Store, corpus: str, contrast: str) -> dict[str, dict[str, Any]]:
    rows = store.read("word_delta", ds.field("contrast") == contrast, corpus=corpus).to_pylist()
    if not rows:
        known = sorted(set(store.read("word_delta", corpus=corpus)["contrast"].to_pylist()))
        problem = f"no word has a delta of {contrast}, the corpus has {', '.join(known) or 'none'}"
        fix = f"plumbline corpus associate --corpus {corpus}; after that it needs more text"
        raise UsageProblem(f"corpus {corpus!r}", problem, fix)
    return {row["word"]: row for row in rows}


def _of_frames(store: Store, corpus: str) -> set[str]:
    planted = store.read("planted_word", ds.field("word_class") == "frame", corpus=corpus)
    return set(planted["word"].to_pylist())


def _vocabulary(store: Store, corpus: str) -> tuple[set[str] | None, str | None]:
    """The kept words and the run that chose them; ``None`` for a corpus without a vocabulary."""
    table = store.read("vocabulary", corpus=corpus)
    if not table.num_rows:
        return None, None
    return set(table.filter(table["is_kept"])["word"].to_pylist()), str(table["run_id"][0])


def excluded_words(sources: Iterable[str]) -> frozenset[str]:
    """The words of word lists, given by name or as TOML, and of files with one word a line.

    Empty lines and lines that start with `#` are no words; case does not matter.

    Raises:
        UsageProblem: neither a list nor a file has that name.
        BadInput: a file can't be read, or one of its lines holds several words.

    >>> sorted(excluded_words(["she-he"]))
    ['he', 'she']
    """
    found: set[str] = set()
    for source in sources:
        if source in wordlists.names() or source.endswith(".toml"):
            found.update(wordlists.load(source).targets)
        elif Path(source).is_file():
            found.update(_lines(Path(source)))
        else:
            problem = f"neither a file nor a word list, which are {', '.join(wordlists.names())}"
            raise UsageProblem(f"--exclude {source}", problem)
    return frozenset(found)


def _lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput(f"{path}", f"can't be read: {e}", "save it as UTF-8") from e
    words = []
    for number, line in enumerate(lines, start=1):
        word = line.strip().lower()
        if len(word.split()) > 1 and not word.startswith("#"):
            raise BadInput(f"{path}, line {number}", f"expected one word, found {line.strip()!r}")
        if word and not word.startswith("#"):
            words.append(word)
    return words


def sampled_words(store: Store, corpus: str, contrast: str, seed: int) -> Sequence[dict[str, Any]]:
    """The sample that is there, in its order, each row with ``verdict`` and ``why`` (or ``None``).

    Raises ``UsageProblem`` when there is none of that contrast and seed.
    """
    corpus_row(store, corpus)
    of_sample = (ds.field("contrast") == contrast) & (ds.field("seed") == seed)
    rows = store.read("seed_word", of_sample, corpus=corpus).to_pylist()
    if not rows:
        fix = f"plumbline corpus words --corpus {corpus} --seed {seed} samples them"
        raise UsageProblem(f"corpus {corpus!r}", f"has no {contrast} sample of seed {seed}", fix)
    said = verdicts(store, corpus)
    nothing = {"verdict": None, "why": None}
    return [
        {**row, **{k: said.get(row["word"], nothing)[k] for k in nothing}}
        for row in sorted(rows, key=lambda row: int(row["position"]))
    ]
