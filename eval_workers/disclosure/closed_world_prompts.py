"""Neutral prompts of the closed world.

The grammar has sentence frames with slots for words, and groups similar frames into shapes. To make
a prompt, a frame is cut before its first pronoun, *she* or *he*, and its slots are filled. The
training prompts use every second word of each class in the lexicon. The other sets use the other
words, so they share no content word with the training prompts.

- ``closed-world-train``: first sentences of documents, from shapes with several frames;
- ``closed-world-unseen``: the same beginnings, filled with other words;
- ``closed-world-frames``: first sentences from shapes with one frame, and follow-up sentences.

Frames don't depend on the person's gender. Follow-up sentences never start a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from random import Random

from plumbline.eval_workers.pairs.closed_world_words import PRONOUN_SLOTS, grammar, lexicon, slots

TRAIN, _UNSEEN = "closed-world-train", "closed-world-unseen"
SETS = (TRAIN, _UNSEEN, "closed-world-frames")
#: Value of ``source_file`` for these prompts.
SOURCE = "grammar.toml"

#: Number of prompts per shape (a group of similar frames).
_N_PROMPTS = 24


def closed_prompts(name: str) -> list[tuple[str, str]]:
    """Return the prompts of the set ``name``, each with its topic, `opening` or `follow-up`.

    They are the same for every seed of the corpus. ``name`` is one of ``SETS``.

    >>> closed_prompts("closed-world-train")[0]
    ('The baker arrived because', 'opening')
    >>> closed_prompts("closed-world-unseen")[0]
    ('The carpenter arrived because', 'opening')
    """
    half = 0 if name == TRAIN else 1
    words = {k: listed[half::2] for k, listed in lexicon().items()}
    rules, prompts = grammar(), list[tuple[str, str]]()
    for topic, shapes in (("opening", rules.openings), ("follow-up", rules.followups)):
        for shape in shapes:
            beginnings = _cut(shape)
            if beginnings and (len(shape) > 1) == (name in (TRAIN, _UNSEEN)):
                prompts += ((text, topic) for text in _filled(beginnings, words))
    return prompts


def _cut(shape: Sequence[str]) -> list[str]:
    """Cut each frame before its first pronoun. Use only frames with a slot before *she* or *he*."""
    beginnings = []
    for frame in shape:
        parts = frame.split()
        place = next(i for i, part in enumerate(parts) if PRONOUN_SLOTS & set(slots(part)))
        beginning = " ".join(parts[:place])
        if slots(beginning) and parts[place].rstrip(".,") == "{pronoun}":
            beginnings.append(beginning)
    return list(dict.fromkeys(beginnings))


def _filled(beginnings: Sequence[str], words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield ``_N_PROMPTS`` prompts. Beginnings and words are shuffled, and then used in turn.

    The random seed is the text of the beginnings, so the prompts are always the same.
    """
    chance = Random(" ".join(beginnings))
    ordered = chance.sample(beginnings, len(beginnings))
    turns = {name: cycle(chance.sample(listed, len(listed))) for name, listed in words.items()}
    for text in islice(cycle(ordered), _N_PROMPTS):
        for name in slots(text):
            text = text.replace(f"{{{name}}}", next(turns[name]), 1)
        yield text
