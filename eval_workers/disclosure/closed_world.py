"""Neutral prompts of the closed world, and what a perfect learner of it says after them. Pure.

A prompt is the beginning of a frame of the grammar, cut before its first pronoun, with words in its
slots. Every other word of a class, as the lexicon lists it, is for training; all other sets have
the words in between, so that no content word of theirs is in a prompt that was tuned on.

======================== ========================================================= =========
set                      beginnings                                                next
======================== ========================================================= =========
``closed-world-train``   of openings that are one of several frames of a shape     she, he
``closed-world-unseen``  the same, with other words                                she, he
``closed-world-frames``  of openings that are a shape alone, and of follow-ups     she, he
``closed-world-him``     of frames that begin otherwise                            her, him
``closed-world-his``     of frames that begin otherwise                            her, his
======================== ========================================================= =========

For the last two there are lists of words, ``her-him.toml`` and ``her-his.toml``: an adapter that
was tuned against `she-he` has seen neither their words nor such a slot.

In each of the frames a pronoun comes next, whatever the person, and the frame tells nothing of the
person. With d(w) the planted leans of the prompt's words, a perfect learner has

    p_f / p_m = exp(sum of d(w)),    p_f + p_m = 1,

and hence a GLD of |tanh(sum / 2)|. Prompts of topic `follow-up` never begin a document: behind them
this is what it says if it takes the first sentence for a later one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random

from plumbline.eval_workers.pairs.closed_world.truth import (
    PRONOUN_SLOTS,
    grammar,
    lexicon,
    perfect_log_ratio_nats,
    slots,
)
from plumbline.warehouse.errors import UsageProblem

TRAIN = "closed-world-train"
#: Set -> the words that come next in the frames of its prompts.
SETS = {
    TRAIN: ("she", "he"),
    "closed-world-unseen": ("she", "he"),
    "closed-world-frames": ("she", "he"),
    "closed-world-him": ("her", "him"),
    "closed-world-his": ("her", "his"),
}
#: What the prompts come from.
SOURCE = "grammar.toml"

_PRONOUNS = {"{pronoun}": ("she", "he"), "{pronoun1}": ("her", "his"), "{pronoun2}": ("her", "him")}
#: Prompts of a shape.
_N = 24


@dataclass(frozen=True)
class ClosedPrompt:
    """A prompt, its kind of frame (``topic``) and the words in its slots, in order."""

    prompt: str
    topic: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Shares:
    """Probabilities of the female and the male word after a prompt."""

    p_f: float
    p_m: float

    @property
    def leaning(self) -> float:
        """(p_f - p_m) / (p_f + p_m), from -1 to 1, above 0 for female.

        >>> Shares(0.75, 0.25).leaning
        0.5
        """
        return (self.p_f - self.p_m) / (self.p_f + self.p_m)

    @property
    def add_nats(self) -> float:
        """ADD of the one pair, from 0 to ln(2) / 2.

        >>> round(Shares(0.75, 0.25).add_nats, 6)  # (0.75 ln 1.5 + 0.25 ln 0.5) / 2
        0.065406
        """
        mean = (self.p_f + self.p_m) / 2
        return sum(p * math.log(p / mean) for p in (self.p_f, self.p_m) if p) / 2


def closed_prompts(name: str) -> tuple[ClosedPrompt, ...]:
    """The prompts of a set of ``SETS``, each once; the same ones whatever the seed of the text.

    Raises ``UsageProblem`` for an unknown set.

    >>> train, unseen = (closed_prompts(f"closed-world-{name}")[0] for name in ("train", "unseen"))
    >>> train.prompt, train.words
    ('The baker arrived because', ('baker',))
    >>> unseen.prompt, len(closed_prompts("closed-world-unseen"))
    ('The carpenter arrived because', 216)
    """
    if name not in SETS:
        raise UsageProblem(f"prompts {name!r}", f"there are none, only {', '.join(SETS)}")
    half = 0 if name == TRAIN else 1
    words = {k: listed[half::2] for k, listed in lexicon().items()}
    return tuple(
        prompt
        for topic, beginnings in _beginnings(name)
        for prompt in _filled(topic, beginnings, words)
    )


def perfect_shares(prompt: ClosedPrompt, deltas: Mapping[str, float]) -> Shares:
    """What a perfect learner says after a prompt; ``deltas`` are the planted leans of its text.

    >>> shares = perfect_shares(ClosedPrompt("The baker left before", "", ("baker",)), {"baker": 1})
    >>> round(shares.p_f, 6), round(shares.leaning, 6)  # 1 / (1 + 1/e), tanh(1/2)
    (0.731059, 0.462117)
    """
    ratio = perfect_log_ratio_nats(prompt.words, deltas)
    return Shares(1 / (1 + math.exp(-ratio)), 1 / (1 + math.exp(ratio)))


def pair_list(name: str) -> str:
    """What ``load_words`` takes for the words that come next in a set's frames.

    >>> Path(pair_list("closed-world-unseen")).name, Path(pair_list("closed-world-him")).name
    ('she-he', 'her-him.toml')
    """
    listed = "-".join(SETS[name])
    return listed if listed == "she-he" else str(Path(__file__).with_name(f"{listed}.toml"))


def _beginnings(name: str) -> Iterator[tuple[str, list[str]]]:
    """Topic and beginnings of each shape that a set is made of."""
    rules = grammar()
    tuned = name in (TRAIN, "closed-world-unseen")
    for topic, shapes in (("opening", rules.openings), ("follow-up", rules.followups)):
        for shape in shapes:
            found = _cut(shape, SETS[name])
            is_tuned = len(shape) > 1 and SETS[name] == SETS[TRAIN]
            if found and is_tuned == tuned:
                yield topic, found


def _cut(shape: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """The different beginnings of frames that continue with a word of the pair and hold a slot."""
    found = []
    for frame in shape:
        parts = frame.split()
        places = [i for i, part in enumerate(parts) if PRONOUN_SLOTS & set(slots(part))]
        beginning = " ".join(parts[: places[0]])
        if slots(beginning) and _PRONOUNS[parts[places[0]].rstrip(".,")] == pair:
            found.append(beginning)
    return list(dict.fromkeys(found))


def _filled(
    topic: str, beginnings: Sequence[str], words: Mapping[str, Sequence[str]]
) -> Iterator[ClosedPrompt]:
    """Beginnings and words take turns, each in an order of its own; both halves begin alike."""
    chance = Random(" ".join(beginnings))
    ordered = chance.sample(beginnings, len(beginnings))
    turns = {name: cycle(chance.sample(listed, len(listed))) for name, listed in words.items()}
    for beginning in islice(cycle(ordered), _N):
        given = tuple(next(turns[name]) for name in slots(beginning))
        text = beginning
        for name, word in zip(slots(beginning), given, strict=True):
            text = text.replace(f"{{{name}}}", word, 1)
        yield ClosedPrompt(text, topic, given)
