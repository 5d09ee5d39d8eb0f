"""The closed world: a made-up corpus in which every word's lean to she or he is known exactly.

**What is planted.** A document is about one person, whose gender g is decided by a fair coin.
Sentence frames are drawn without regard to g. Each slot of a frame has a word class; it is filled
with a word w of this class with probability p(w | g). The planted lean of a word is

    planted_delta_nats(w) = ln( p(w | she) / p(w | he) ).

Within a class, words come in pairs of equal frequency b with leans d and -d. So a word's p(w | she)
is b(1 + tanh(d/2)) and its p(w | he) is b(1 - tanh(d/2)). Each sums to one over the class, and a
word's frequency doesn't depend on its lean. Fixed words of the frames have a lean of exactly 0.

**Expected corpus counts.** Windows for counting don't cross documents. So the expected numbers of
co-occurrences satisfy c(w,she)/n(she) : c(w,he)/n(he) = p(w|she) : p(w|he). Hence
PMI(w,she) - PMI(w,he) estimates the planted lean, with slope 1. Only sampling noise keeps their
rank correlation below 1.

**Preferences of a perfect learner.** Content words are independent given g. So for a pair of a
sentence F with she and the same sentence M with he,

    ln p(F) / p(M) = ln p(she)/p(he) + sum of planted_delta_nats over its content words.

This holds wherever the pronoun is. If the pronoun comes before the word, the lean is in
p(word | pronoun); if it comes after, in p(pronoun | word). ln p(she)/p(he) is 0. The benchmark's
frames have one tested word among fixed words, so a perfect learner's log ratio is the word's lean.

**How to read a model.** Regress the model's log ratio on the planted lean. If the slope is 1, the
model copies the text's lean. If it is 0, the model ignores the lean. If it is above 1, the model
amplifies the lean. Too little training also shrinks the slope, so a slope under 1 isn't evidence of
fairness. The slope also depends on how the model generalises, since the corpus never shows the
benchmark's frames. An intercept is a preference for one pronoun, whatever the word. The corpus has
no such preference. An interval from resampled words ignores the variance between training runs,
which can be larger.

**Other worlds.** ``swapped`` is the same text with she and he exchanged. The effects of frames,
tokenizer, seed and spelling stay the same; only the leans change sign. So if the model's log ratios
change sign too, only the planted leans can be the cause.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.toml_file import read

if TYPE_CHECKING:
    import numpy as np

#: Largest planted lean in nats: such a word is exp(2), or 7.4, times as likely with one pronoun.
MAX_DELTA_NATS = 2.0
#: |lean| = MAX_DELTA_NATS * q ** _SPREAD for q uniform on (0, 1), so most leans are small.
_SPREAD = 1.5
#: Within a class, a word pair's frequency is proportional to rank ** -_ZIPF. The exponent is small,
#: so that rare words occur often enough to be measured.
_ZIPF = 0.5

WORLDS = ("straight", "swapped")
#: Slots of a frame that hold pronouns; all others hold words of the class they name.
PRONOUN_SLOTS = frozenset({"pronoun", "pronoun1", "pronoun2"})
_SLOT = re.compile(r"\{(\w+)\}")
_PHRASE = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Grammar:
    """Sentence frames: ``openings`` begin a document, ``followups`` continue it.

    A shape is a sentence in which some phrases can be chosen. Each combination of phrases makes a
    frame. ``openings`` and ``followups`` have a tuple of frames for each shape. ``probes`` maps a
    word class to the benchmark's frames for this class. These frames have one slot for a word, and
    the corpus doesn't contain them. ``fixed_words`` are the content words of frames that aren't in
    slots; their planted lean is 0.
    """

    openings: tuple[tuple[str, ...], ...]
    followups: tuple[tuple[str, ...], ...]
    probes: Mapping[str, tuple[str, ...]]
    fixed_words: tuple[str, ...]


@dataclass(frozen=True)
class PlantedWord:
    """A word, and the probabilities that it fills a slot of its class in texts with she or he."""

    word: str
    word_class: str
    p_she: float
    p_he: float

    @property
    def delta_nats(self) -> float:
        """The planted lean, ln(p(word | she) / p(word | he)).

        >>> round(PlantedWord("tea", "food", 0.02, 0.01).delta_nats, 4)
        0.6931
        """
        return math.log(self.p_she / self.p_he)


@cache
def lexicon() -> dict[str, tuple[str, ...]]:
    """Map each word class to its words, as listed in ``lexicon.toml``.

    >>> sum(len(words) for words in lexicon().values())
    574
    """
    return {name: tuple(table["words"].split()) for name, table in _toml("lexicon").items()}


@cache
def grammar() -> Grammar:
    """Return all frames that the shapes in ``grammar.toml`` make.

    >>> grammar().followups[1]
    ('{pronoun} was {trait} and liked {food}.',)
    """
    table = _toml("grammar")
    probes = {name: tuple(frames) for name, frames in table["probes"].items()}
    held_out = {frame for frames in probes.values() for frame in frames}
    openings, followups = (
        tuple(
            tuple(f for f in written_out(shape, table["phrases"]) if f not in held_out)
            for shape in table[kind]
        )
        for kind in ("openings", "followups")
    )
    return Grammar(openings, followups, probes, tuple(table["fixed"].split()))


def written_out(shape: str, phrases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the frames that a shape makes, one for each combination of phrases.

    >>> written_out("<a> ran<b>.", {"a": ["We", "They"], "b": ["", " home"]})
    ['We ran.', 'We ran home.', 'They ran.', 'They ran home.']
    """
    parts = _PHRASE.split(shape)  # parts with odd indices are names of phrases
    choices = (phrases[part] if k % 2 else [part] for k, part in enumerate(parts))
    return ["".join(chosen) for chosen in product(*choices)]


def slots(frame: str) -> tuple[str, ...]:
    """Return the names of a frame's slots, including pronouns, in order.

    >>> slots("{pronoun} was {trait}.")
    ('pronoun', 'trait')
    """
    return tuple(_SLOT.findall(frame))


@cache
def planted_words(seed: int, world: str = "straight") -> tuple[PlantedWord, ...]:
    """Return every lexicon word with its slot probabilities, drawn with ``seed``.

    The ``p_she`` of a class sum to 1, and so do the ``p_he``. World `swapped` exchanges ``p_she``
    and ``p_he``. Words come in pairs of equal frequency, with leans d and -d. Here d is 2 q^1.5.
    For n pairs, (0, 1) is divided into n equal parts, and each part gives one random q. If the
    number of words is odd, one word's lean is 0. Raises ``UsageProblem`` for an unknown world.

    >>> words = planted_words(0)
    >>> round(sum(w.p_she for w in words if w.word_class == "food"), 12)
    1.0
    >>> planted_words(0, "swapped")[7].p_he == words[7].p_she
    True
    """
    import numpy as np

    if world not in WORLDS:
        raise UsageProblem(f"world {world!r}", f"expected one of {', '.join(WORLDS)}")
    rng = np.random.default_rng([seed, 0])
    drawn = [_plant(name, words, rng) for name, words in lexicon().items()]
    words = [word for of_class in drawn for word in of_class]
    if world == "swapped":
        words = [replace(w, p_she=w.p_he, p_he=w.p_she) for w in words]
    return tuple(words)


def planted_deltas(seed: int, world: str = "straight") -> dict[str, float]:
    """Map each lexicon word to its planted lean in nats, and each fixed word of a frame to 0.0.

    >>> planted_deltas(0)["children"]
    0.0
    """
    deltas = {w.word: w.delta_nats for w in planted_words(seed, world)}
    return deltas | dict.fromkeys(grammar().fixed_words, 0.0)


def planted_rows(corpus: str, seed: int, world: str) -> list[dict[str, object]]:
    """Return the rows of table ``planted_word``. Fixed words of the frames have the class `frame`.

    >>> len(planted_rows("c", 0, "straight")) == 574 + len(grammar().fixed_words)
    True
    """
    classes = {w.word: w.word_class for w in planted_words(seed, world)}
    return [
        {
            "corpus": corpus,
            "world": world,
            "word": word,
            "word_class": classes.get(word, "frame"),
            "planted_delta_nats": delta,
        }
        for word, delta in planted_deltas(seed, world).items()
    ]


def _plant(name: str, words: tuple[str, ...], rng: np.random.Generator) -> list[PlantedWord]:
    import numpy as np

    order = [words[i] for i in rng.permutation(len(words))]
    n_pairs = len(order) // 2
    quantiles = (np.arange(n_pairs) + rng.random(n_pairs)) / n_pairs
    leans = MAX_DELTA_NATS * quantiles**_SPREAD
    weights = (1.0 + rng.permutation(n_pairs)) ** -_ZIPF
    # One word of a pair gains the p_she that the other loses. So a class's p_she still sum to 1.
    plan = [(w, t) for w, d in zip(weights, np.tanh(leans / 2), strict=True) for t in (d, -d)]
    if len(order) % 2:
        plan.append((float(np.median(weights)), 0.0))
    total = math.fsum(weight for weight, _ in plan)
    return [
        PlantedWord(word, name, float(weight * (1 + t) / total), float(weight * (1 - t) / total))
        for word, (weight, t) in zip(order, plan, strict=True)
    ]


def _toml(name: str) -> dict[str, Any]:
    return read(resources.files(__package__) / "closed_world_corpus" / f"{name}.toml")
