"""Benchmark of the closed world, a made-up corpus in which each word's lean to she or he is known.

A pair tests one word in a sentence frame that the corpus doesn't contain. All other words of the
frame lean to neither she nor he. So if a model learns the corpus perfectly, the pair's log ratio
equals the lean of the tested word, which is in the table `planted_word`. The pairs are the same for
every seed and world.

Every word is tested in four frames. Two frames start with the pronoun; in the other two the word
comes before the pronoun. Models have far stronger preferences if the pronoun comes first
(UnStereoEval, Belem et al., ICLR 2024).
"""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.eval_workers.pairs.closed_world_words import grammar, lexicon

NAMES = ("closed-world",)
DESCRIPTION = "Words of the closed world, whose leans are known, in frames that its text lacks."
DEFAULT_LOCATION: str | None = None

#: Value of ``source_file`` for the pairs of a closed world.
LEXICON = "eval_workers/pairs/closed_world_corpus/lexicon.toml"


def read(name: str, source: Path | None) -> Parsed:
    """Return all pairs. ``source`` isn't used. ``source_row`` is the word's place in the lexicon.

    >>> parsed = read("closed-world", None)
    >>> len(parsed.pairs), len(parsed.rejects)
    (2296, 0)
    >>> [pair["word"] for pair in parsed.pairs[:4]]
    ['baker', 'baker', 'baker', 'baker']
    """
    parsed = Parsed(name)
    entries = [(word_class, word) for word_class, words in lexicon().items() for word in words]
    for row, (word_class, word) in enumerate(entries, 1):
        for number, frame in enumerate(grammar().probes[word_class], 1):
            parsed.add(
                pair_id=f"{word_class}-{word}-{number}",
                template=frame.replace(f"{{{word_class}}}", word),
                source_file=LEXICON,
                source_row=row,
                word=word,
            )
    return parsed
