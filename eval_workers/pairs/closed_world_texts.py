"""Writes the closed world's corpus in the Pile's format, and makes sentences with a given word.

The documents of the corpus depend only on the options and numpy's PCG64 stream; the compressed
bytes also depend on the zstandard library. A sentence made for a given word may also contain other
words that lean to she or he.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from backports import zstd

from plumbline.eval_workers.pairs.closed_world_words import (
    PRONOUN_SLOTS,
    grammar,
    lexicon,
    planted_words,
    slots,
)
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import Gender, fill
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.paths import replacing

if TYPE_CHECKING:
    import numpy as np

PILE_SET_NAME = "PlumblineClosedWorld"
_SLOT = re.compile(r"\{(?!pronoun)\w+\}")
_BLOCK = 8192

_Frame = tuple[str, list[Iterator[str]]]


@dataclass(frozen=True)
class WorldOptions:
    """Options for writing a closed world's corpus.

    ``n_tokens`` is the number of words; slightly more are written, since the last document of each
    shard is completed. In ``world`` `swapped`, she and he are exchanged compared to `straight`.

    >>> WorldOptions(world="swapped").name
    'closed-world-swapped'
    """

    n_tokens: int = 3_000_000
    seed: int = 0
    world: str = "straight"
    n_shards: int = 4

    def __post_init__(self) -> None:
        planted_words(self.seed, self.world)  # raises for an unknown world

    @property
    def name(self) -> str:
        return f"closed-world-{self.world}"


def write_world(options: WorldOptions, directory: str | Path) -> tuple[list[Path], int, int]:
    """Write the world's shards, ``<directory>/<name>-NN.jsonl.zst``, replacing existing files.

    Return their paths, and the numbers of documents and words. If an earlier call wrote more shards
    than this one, the extra shards aren't deleted.
    """
    shards = [Path(directory, f"{options.name}-{k:02d}.jsonl.zst") for k in range(options.n_shards)]
    counts = [_write_shard(options, k, path) for k, path in enumerate(shards)]
    n_documents, n_tokens = map(sum, zip(*counts, strict=True))
    return shards, n_documents, n_tokens


def documents(options: WorldOptions, shard: int) -> Iterator[tuple[str, int]]:
    """Yield an endless series of texts for one shard, each with its number of words.

    A text is about one person. There are two kinds of person: one is called she, the other he. The
    kind, the frames and the words depend only on the seed and the shard. ``world`` only decides
    which kind is called she.

    >>> text, n = next(documents(WorldOptions(), 0))
    >>> n == len(text.split())
    True
    """
    import numpy as np

    rules = grammar()
    shapes = rules.openings + rules.followups
    starts = np.cumsum([0, *map(len, shapes)])
    frames = [frame for shape in shapes for frame in shape]
    compiled = _compiled(options, shard, frames)
    lengths = [len(frame.split()) for frame in frames]
    rng = np.random.default_rng([options.seed, 1, shard])
    while True:
        # Draw a shape (see ``Grammar``), then one of its frames. So all shapes are equally common.
        opening = rng.integers(0, len(rules.openings), (_BLOCK, 1))
        followups = rng.integers(len(rules.openings), len(shapes), (_BLOCK, 2))
        chosen = np.hstack([opening, followups])
        sizes = np.diff(starts)[chosen]
        chosen = starts[chosen] + (rng.random(chosen.shape) * sizes).astype(np.int64)
        people = rng.integers(0, 2, _BLOCK).tolist()
        n_sentences = rng.integers(2, 4, _BLOCK).tolist()
        for person, n, frame_ids in zip(people, n_sentences, chosen.tolist(), strict=True):
            by_frame = compiled[person]
            sentences = (by_frame[i][0] % tuple(map(next, by_frame[i][1])) for i in frame_ids[:n])
            yield " ".join(sentences), sum(lengths[i] for i in frame_ids[:n])


def _compiled(options: WorldOptions, shard: int, frames: Sequence[str]) -> list[list[_Frame]]:
    """Prepare the frames for each kind of person: a %-format, and a word stream for each slot."""
    import numpy as np

    genders: tuple[Gender, Gender] = ("m", "f") if options.world == "swapped" else ("f", "m")
    people = []
    for person, gender in enumerate(genders):
        streams = {}
        for number, name in enumerate(sorted(lexicon())):
            words = [w for w in planted_words(options.seed) if w.word_class == name]
            shares = [w.p_he if person else w.p_she for w in words]
            rng = np.random.default_rng([options.seed, 2, shard, person, number])
            streams[name] = _stream([w.word for w in words], shares, rng)
        of_frames = ([streams[s] for s in slots(f) if s not in PRONOUN_SLOTS] for f in frames)
        formats = (fill(_SLOT.sub("%s", frame), gender) for frame in frames)
        people.append(list(zip(formats, of_frames, strict=True)))
    return people


def _stream(words: list[str], shares: list[float], rng: np.random.Generator) -> Iterator[str]:
    import numpy as np

    cumulative = np.cumsum(shares)
    cumulative[-1] = 1.0  # rounding could make the sum less than 1
    while True:
        for i in np.searchsorted(cumulative, rng.random(_BLOCK), side="right").tolist():
            yield words[i]


def _write_shard(options: WorldOptions, shard: int, path: Path) -> tuple[int, int]:
    share = -(-options.n_tokens // options.n_shards)
    meta = json.dumps({"pile_set_name": PILE_SET_NAME})
    n_tokens, lines = 0, []
    for text, n in documents(options, shard):
        lines.append(f'{{"text": {json.dumps(text)}, "meta": {meta}}}\n')
        n_tokens += n
        if n_tokens >= share:
            break
    with replacing(path) as temporary:
        temporary.write_bytes(zstd.compress("".join(lines).encode(), level=3))
    return len(lines), n_tokens


def templates_around(
    word: str, n: int, max_words: int, rng: Random, *, pronoun_first: bool
) -> list[tuple[int, str]]:
    """Return ``n`` templates that contain ``word``, each with its frame's number (from 1).

    ``pronoun_first`` says whether frames start with the pronoun. All frames differ. They are taken
    from each shape (see ``Grammar``) in turn, so shapes with many frames aren't more common. Random
    words fill the other slots. The closed world's benchmark uses other frames. Raises
    ``UsageProblem`` if the word isn't in the lexicon, or if there are fewer than ``n`` such frames
    of at most ``max_words`` words.

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
    """Map (word class, pronoun comes first) to shapes. A shape is a list of (number, frame)."""
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
