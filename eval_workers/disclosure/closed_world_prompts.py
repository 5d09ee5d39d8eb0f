"""Neutral prompts of the closed world. Pure.

A prompt is the beginning of a frame of the grammar, cut before its first pronoun, *she* or *he*,
with words in its slots. A shape of the grammar stands for one frame or several. Every second word
of a class in the lexicon is for training. The other sets take the words in between, so they share
no content word with the prompts of the tuning.

- ``closed-world-train``: beginnings of openings whose shape has several frames.
- ``closed-world-unseen``: the same, with other words.
- ``closed-world-frames``: beginnings of openings whose shape has one frame, and of follow-ups.

Frames don't depend on the person's gender. In the text, sentences of topic `follow-up` never begin
a document. As prompts they do, and the learner has to treat them like later sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from plumbline.eval_workers.pairs.closed_world_corpus.truth import (
    PRONOUN_SLOTS,
    grammar,
    lexicon,
    slots,
)
from plumbline.warehouse.errors import UsageProblem

TRAIN, _UNSEEN = "closed-world-train", "closed-world-unseen"
SETS = (TRAIN, _UNSEEN, "closed-world-frames")
#: Source of the prompts.
SOURCE = "grammar.toml"

#: Prompts per shape.
_N_PROMPTS = 24


@dataclass(frozen=True)
class ClosedPrompt:
    """A prompt, its kind of frame (``topic``) and the words in its slots, in order."""

    prompt: str
    topic: str
    words: tuple[str, ...]


def closed_prompts(name: str) -> tuple[ClosedPrompt, ...]:
    """Distinct prompts of a set of ``SETS``; they don't depend on the seed of the text.

    Raises ``UsageProblem`` for an unknown set.

    >>> train, unseen = (closed_prompts(f"closed-world-{name}")[0] for name in ("train", "unseen"))
    >>> train.prompt, train.words
    ('The baker arrived because', ('baker',))
    >>> unseen.prompt, len(closed_prompts("closed-world-unseen"))
    ('The carpenter arrived because', 216)
    """
    if name not in SETS:
        raise UsageProblem(f"prompts {name!r}", f"unknown, there are {', '.join(SETS)}")
    half = 0 if name == TRAIN else 1
    words = {k: listed[half::2] for k, listed in lexicon().items()}
    rules, prompts = grammar(), list[ClosedPrompt]()
    for topic, shapes in (("opening", rules.openings), ("follow-up", rules.followups)):
        for shape in shapes:
            beginnings = _cut(shape)
            if beginnings and (len(shape) > 1) == (name in (TRAIN, _UNSEEN)):
                prompts += _filled(topic, beginnings, words)
    return tuple(prompts)


def _cut(shape: Sequence[str]) -> list[str]:
    """Distinct beginnings of frames whose first pronoun is she or he and follows a slot."""
    beginnings = []
    for frame in shape:
        parts = frame.split()
        place = next(i for i, part in enumerate(parts) if PRONOUN_SLOTS & set(slots(part)))
        beginning = " ".join(parts[:place])
        if slots(beginning) and parts[place].rstrip(".,") == "{pronoun}":
            beginnings.append(beginning)
    return list(dict.fromkeys(beginnings))


def _filled(
    topic: str, beginnings: Sequence[str], words: Mapping[str, Sequence[str]]
) -> Iterator[ClosedPrompt]:
    """Prompts that take beginnings and words in turn, in a random order fixed by beginnings."""
    chance = Random(" ".join(beginnings))
    ordered = chance.sample(beginnings, len(beginnings))
    turns = {name: cycle(chance.sample(listed, len(listed))) for name, listed in words.items()}
    for beginning in islice(cycle(ordered), _N_PROMPTS):
        text, chosen = beginning, []
        for name in slots(beginning):
            chosen.append(next(turns[name]))
            text = text.replace(f"{{{name}}}", chosen[-1], 1)
        yield ClosedPrompt(text, topic, tuple(chosen))
