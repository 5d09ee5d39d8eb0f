"""Sentences of the closed world around a given word: frames of its grammar, filled at random. Pure.

They also hold other words of the lexicon with leans of their own, as a chat model's sentences
around a seed word do. A model trained on the closed world knows only its lexicon and frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from random import Random

from plumbline.eval_workers.pairs.closed_world_corpus.truth import (
    PRONOUN_SLOTS,
    grammar,
    lexicon,
    slots,
)
from plumbline.warehouse.errors import UsageProblem


def templates_around(
    word: str, n: int, max_words: int, rng: Random, *, pronoun_first: bool
) -> list[tuple[int, str]]:
    """``n`` templates of different frames that hold ``word``, each with its frame's number, from 1.

    Shapes take turns, so that a shape with many frames isn't more common. Other slots get random
    words of their class. Frames of the closed world's benchmark are left out. Raises
    ``UsageProblem`` for a word that no slot takes, and if fewer than ``n`` frames of the pronoun
    position have at most ``max_words`` words.

    >>> templates = templates_around("baker", 2, 10, Random(0), pronoun_first=True)
    >>> [template.startswith("{pronoun") and "baker" in template for _, template in templates]
    [True, True]
    """
    word_class = next((name for name, words in lexicon().items() if word in words), None)
    if word_class is None:
        fix = "take words of table `planted_word` whose class is not `frame`"
        raise UsageProblem(f"word {word!r}", "does not fit into the closed world's frames", fix)
    shapes = [
        [(k, f) for k, f in shape if len(f.split()) <= max_words]
        for shape in _shapes()[word_class, pronoun_first]
    ]
    n_frames = sum(map(len, shapes))
    if n_frames < n:
        frames = f"{n_frames} frames of at most {max_words} words per pronoun position"
        fix = "ask for fewer sentences"
        raise UsageProblem("the closed world", f"has {frames} for {word!r}", fix)
    rng.shuffle(shapes)
    turns = zip_longest(*(rng.sample(shape, len(shape)) for shape in shapes))
    chosen = [frame for turn in turns for frame in turn if frame is not None][:n]
    return [(k, _filled(frame, word_class, word, rng)) for k, frame in chosen]


@cache
def _shapes() -> Mapping[tuple[str, bool], list[list[tuple[int, str]]]]:
    """(Word class, True if the pronoun is first) -> per shape, its frames with numbers from 1."""
    shapes: dict[tuple[str, bool], list[list[tuple[int, str]]]] = {}
    number = 0
    for shape in grammar().openings + grammar().followups:
        kinds: dict[tuple[str, bool], list[tuple[int, str]]] = {}
        for frame in shape:
            number += 1
            for name in dict.fromkeys(slots(frame)):
                kinds.setdefault((name, frame.startswith("{pronoun")), []).append((number, frame))
        for kind, frames in kinds.items():
            shapes.setdefault(kind, []).append(frames)
    return shapes


def _filled(frame: str, word_class: str, word: str, rng: Random) -> str:
    for name in slots(frame):
        if name not in PRONOUN_SLOTS:
            filler = word if name == word_class else rng.choice(lexicon()[name])
            frame = frame.replace(f"{{{name}}}", filler, 1)
    return frame
