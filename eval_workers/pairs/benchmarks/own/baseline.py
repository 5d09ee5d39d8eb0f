"""Baselines for groups that differ by content words, such as *old* and *quiet*.

Their log ratios are mostly how frequent the words are. So the words of each pair are scored in a
neutral sentence too, as the pair of the same ``pair_id`` of the benchmark ``NAME-baseline``, and
view ``scored_pair`` subtracts that log ratio. Words that lists name as a group's (pronouns,
gendered words, first names) and function words need no baseline, nor do groups called female and
male, which grammar tells apart in other languages. The neutral sentence is English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from plumbline.eval_workers.pairs.benchmarks._parsed import DIFFERS, USUAL, Row, pair_row
from plumbline.warehouse import wordlists
from plumbline.warehouse.text.toml_file import parsed

_FRAME = f"The word here is {DIFFERS}."
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
#: Forms that change with a pronoun or a name, and contractions of these.
_FUNCTION_WORDS = """
a an the am is are was were be been has have had do does don't doesn't isn't aren't wasn't weren't
hasn't haven't his her hers him himself herself their theirs them themself themselves they she he
they're she's he's they've they'd she'd he'd they'll she'll he'll mr mrs ms miss
"""


def baseline_pairs(pairs: Sequence[Row]) -> list[Row]:
    """A pair of the differing words in a neutral sentence, for each pair that needs a baseline.

    They are marked unnatural, so that no metric is over them. A pair that lacks a word on one side
    has no baseline.

    >>> pairs = [{"pair_id": "1", "sentence_a": "An old man.", "sentence_b": "A quiet man.",
    ...           "group_a": "old", "group_b": "quiet", "source_file": "f", "source_row": 1}]
    >>> [(p["sentence_a"], p["sentence_b"]) for p in baseline_pairs(pairs)]
    [('The word here is old.', 'The word here is quiet.')]
    >>> baseline_pairs([{**pairs[0], "sentence_a": "She is in.", "sentence_b": "They are in."}])
    []
    """
    return [
        pair_row(
            str(pair["pair_id"]),
            _FRAME,
            (_FRAME.replace(DIFFERS, a), _FRAME.replace(DIFFERS, b)),
            (str(pair["group_a"]), str(pair["group_b"])),
            source_file=pair["source_file"],
            source_row=pair["source_row"],
            is_natural=False,
        )
        for pair, (a, b) in _differing(pairs)
    ]


def baseline_warning(pairs: Sequence[Row]) -> Iterator[str]:
    """A warning that PD also tells how frequent words are; none if no pair needs a baseline."""
    words = [" / ".join(sides) for _, sides in _differing(pairs)]
    if words:
        yield (
            "Warning: pairs that differ by words other than listed names, pronouns and gendered "
            f"words: {len(words):,}, such as {words[0]}; PD also tells how frequent these are "
            "(subset `less baseline` has it without what they score in a neutral sentence)"
        )


def _differing(pairs: Sequence[Row]) -> Iterator[tuple[Row, tuple[str, str]]]:
    """Pairs that need a baseline, and the words that only one of their sentences has."""
    for pair in pairs:
        if (pair["group_a"], pair["group_b"]) == USUAL:
            continue
        sides = [_WORD.findall(str(pair[f"sentence_{side}"])) for side in "ab"]
        stems = [set(map(_stem, words)) for words in sides]
        own = [
            dict.fromkeys(w for w in words if _stem(w) not in other and w.lower() not in _listed())
            for words, other in zip(sides, stems[::-1], strict=True)
        ]
        if all(own):
            yield pair, (" ".join(own[0]), " ".join(own[1]))


def _stem(word: str) -> str:
    """A word without the ending by which a verb agrees with *she* and not with *they*.

    >>> _stem("goes") == _stem("go")
    True
    """
    return word.lower().removesuffix("s").removesuffix("e")


@cache
def _listed() -> frozenset[str]:
    """Words that name a group in one of our lists, and function words, in lower case."""
    words = set(_FUNCTION_WORDS.split())
    for name in wordlists.LISTS.names():
        words.update(wordlists.load(name).targets)
    folder = resources.files("plumbline.eval_workers.pairs")
    gendered = parsed((folder / "sharing" / "gendered_words.toml").read_text("utf-8"), "words")
    words.update(" ".join(gendered[side] for side in ("female", "male")).split())
    for name in ("names-by-group", "kinship"):
        text = (folder / "benchmarks" / "own" / "words" / f"{name}.toml").read_text("utf-8")
        for group in parsed(text, name)["groups"].values():
            words.update(word.lower() for word in group["words"])
    return frozenset(words)
