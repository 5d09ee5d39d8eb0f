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
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from plumbline.eval_workers.pairs.closed_world_words import PRONOUN_SLOTS, grammar, lexicon, slots
from plumbline.warehouse.errors import UsageProblem

TRAIN, _UNSEEN = "closed-world-train", "closed-world-unseen"
SETS = (TRAIN, _UNSEEN, "closed-world-frames")
#: Value of ``source_file`` for these prompts.
SOURCE = "grammar.toml"

#: Number of prompts per shape (a group of similar frames).
_N_PROMPTS = 24


@dataclass(frozen=True)
class ClosedPrompt:
    """A prompt. ``topic`` is `opening` or `follow-up`. ``words`` lists the words in its slots."""

    prompt: str
    topic: str
    words: tuple[str, ...]


def closed_prompts(name: str) -> tuple[ClosedPrompt, ...]:
    """Return the prompts of the set ``name``, which are the same for every seed of the corpus.

    Raises ``UsageProblem`` if ``name`` isn't in ``SETS``.

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
    """Cut each frame before its first pronoun. Use only frames with a slot before *she* or *he*."""
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
    """Yield ``_N_PROMPTS`` prompts. Beginnings and words are shuffled, and then used in turn.

    The random seed is the text of the beginnings, so the prompts are always the same.
    """
    chance = Random(" ".join(beginnings))
    ordered = chance.sample(beginnings, len(beginnings))
    turns = {name: cycle(chance.sample(listed, len(listed))) for name, listed in words.items()}
    for beginning in islice(cycle(ordered), _N_PROMPTS):
        text, chosen = beginning, []
        for name in slots(beginning):
            chosen.append(next(turns[name]))
            text = text.replace(f"{{{name}}}", chosen[-1], 1)
        yield ClosedPrompt(text, topic, tuple(chosen))
