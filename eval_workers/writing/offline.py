"""Make pairs around seed words from fixed frames, without a chat model.

The frames only quote the word, so they fit any word. For words of a closed world, the frames come
from that world's grammar (``closed_world_texts.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from plumbline.eval_workers.pairs.benchmarks import Parsed, Row
from plumbline.eval_workers.pairs.closed_world_texts import templates_around
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.pairing import pair_id
from plumbline.eval_workers.writing.written_sentences import n_words
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store

#: Value of ``source_file`` in ``benchmark_pair``; ``source_row`` is the number of the frame.
SOURCE = "offline-writer"
#: Value of ``source_file`` for pairs of a closed world, whose frames are from the world's grammar.
WORLD_SOURCE = "offline-writer/closed-world"
#: Frames in the first half start with the pronoun. Frames in the second half don't.
_FRAMES = (
    '{pronoun} wrote the word "{word}" on a card.',
    '{pronoun} asked what "{word}" means.',
    '{pronoun} heard "{word}" twice that day.',
    '{pronoun} found "{word}" on the last page.',
    '{pronoun} read the page about "{word}" again.',
    '{pronoun} said "{word}" and nothing else.',
    '{pronoun} typed "{word}" into the empty field.',
    '{pronoun1} next sentence begins with "{word}".',
    '{pronoun1} list ends with the word "{word}".',
    '{pronoun1} answer was the single word "{word}".',
    'The word "{word}" came to {pronoun2} at once.',
    'Under "{word}" {pronoun1} notes fill a page.',
    'Someone asked {pronoun2} to spell "{word}".',
    'The page about "{word}" was new to {pronoun2}.',
    'At the end {pronoun} added the word "{word}".',
    'Nobody had told {pronoun2} what "{word}" means.',
    'The clue was "{word}", and {pronoun} knew it.',
    'On the card {pronoun} saw the word "{word}".',
    'With "{word}" {pronoun} filled the last gap.',
    'Among other words {pronoun} underlined "{word}".',
)
_HALF = len(_FRAMES) // 2


def offline_pairs(
    store: Store | None, name: str, words: Sequence[str], spec: BuildSpec
) -> list[Row]:
    """Return ``2 * n_sentences`` rows of ``benchmark_pair`` for each word.

    If the corpus is a closed world, the frames are from its grammar. Half of a word's sentences
    start with the pronoun. The same options give the same rows, and a word's rows don't depend on
    the other words. Raises ``UsageProblem`` if too few frames have at most ``max_words`` words, or
    if a word isn't in the closed world or fits into no sentence.

    >>> rows = offline_pairs(None, "demo", ["tea", "clock"], BuildSpec(n_sentences=2))
    >>> len(rows), [row["pronoun_first"] for row in rows[:4]]
    (8, [True, True, False, False])
    """
    planted = store.read("planted_word", corpus=spec.corpus) if store and spec.corpus else ()
    source, templates_of = (WORLD_SOURCE, templates_around) if len(planted) else (SOURCE, _filled)
    limits = spec.n_sentences, spec.max_words
    parsed = Parsed(name)
    for word in dict.fromkeys(words):
        rng = Random(f"{spec.seed} {word}")
        for is_first in (True, False):
            templates = templates_of(word, *limits, rng, pronoun_first=is_first)
            for number, template in templates:
                parsed.add(
                    pair_id=pair_id(word, template),
                    template=template,
                    word=word,
                    source_file=source,
                    source_row=number,
                )
        if parsed.rejects:
            problem = f"doesn't fit into a sentence: {parsed.rejects[0]['reason']}"
            raise UsageProblem(f"word {word!r}", problem, "leave it out")
    return parsed.pairs


def _filled(
    word: str, n: int, max_words: int, rng: Random, *, pronoun_first: bool
) -> list[tuple[int, str]]:
    """Put a word into ``n`` random frames. Return each frame's number, from 1, and its template."""
    half = range(_HALF) if pronoun_first else range(_HALF, len(_FRAMES))
    short = [k for k in half if n_words(_FRAMES[k]) <= max_words]
    if len(short) < n:
        problem = f"has {len(short)} frames of at most {max_words} words per pronoun position"
        raise UsageProblem("the offline writer", problem, "ask for fewer sentences")
    return [(k + 1, _FRAMES[k].replace("{word}", word)) for k in sorted(rng.sample(short, n))]
