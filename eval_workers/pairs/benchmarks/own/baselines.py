"""Baselines of pairs whose groups differ by content words, and a warning about such pairs.

The log ratio of a pair such as *old* and *quiet* mostly shows how frequent the two words are. So
the words of such a pair are also scored in a neutral sentence: columns ``baseline_a`` and
``baseline_b``. View ``scored_pair`` subtracts the log ratio of these sentences. No baseline is
needed for function words, nor for words that our lists assign to a group (pronouns, gendered words,
first names). Nor for the groups female and male: in other languages, grammar tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from plumbline.eval_workers.pairs.benchmarks.own.filler import load_words
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import USUAL, Parsed, Row
from plumbline.warehouse import languages, wordlists
from plumbline.warehouse.text.toml_file import read

_SENTENCE = "The word here is {}."
#: A baseline takes at most this many words from a sentence: a clause needs its own context.
_MOST_WORDS = 3
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
#: Function words that may differ within a pair: articles, auxiliaries, pronouns, titles.
_FUNCTION_WORDS = """
a an the am is are was were be been has have had do does don't doesn't isn't aren't wasn't weren't
hasn't haven't his her hers him himself herself their theirs them themself themselves they she he
they're she's he's they've they'd she'd he'd they'll she'll he'll mr mrs ms miss
"""
#: Common English words that aren't words of the languages we have templates for.
_ENGLISH = frozenset(
    ["the", "and", "with", "this", "that", "they", "my", "your", "were", "from", "who", "what"]
)
#: A benchmark counts as English if at least this share of its pairs has one of these words.
_LEAST_ENGLISH = 0.25


def frequency_warning(pairs: Sequence[Row]) -> Iterator[str]:
    """Yield a warning if pairs differ by content words: PD also reflects how frequent these are."""
    if differing := [*_differing(pairs)]:
        n = sum(pair.get("baseline_a") is not None for pair, _, _ in differing)
        baseline = f"subset `less baseline` has {n:,} of them, less what the words score alone"
        yield (
            "Warning: pairs that differ by words other than listed names, pronouns and gendered "
            f"words: {len(differing):,}, such as {' / '.join(differing[0][1])}; PD also tells how "
            f"frequent these are ({baseline if n else 'no pair has a baseline: docs/pairs.md'})"
        )


def add_baselines(benchmark: Parsed) -> None:
    """Set ``baseline_a`` and ``baseline_b`` of the pairs that need a baseline and can have one.

    A pair can have a baseline if it is English, and if in each sentence the words that differ are
    consecutive and at most three.

    >>> pair = {"sentence_a": "The old man.", "sentence_b": "The quiet man."}
    >>> benchmark = Parsed("demo", [{**pair, "group_a": "old", "group_b": "quiet"}])
    >>> add_baselines(benchmark)
    >>> benchmark.pairs[0]["baseline_a"], benchmark.pairs[0]["baseline_b"]
    ('The word here is old.', 'The word here is quiet.')
    """
    if _is_english(benchmark.pairs, benchmark.facts):
        for pair, words, is_run in _differing(benchmark.pairs):
            if is_run:
                pair["baseline_a"], pair["baseline_b"] = map(_SENTENCE.format, words)


def _is_english(pairs: Sequence[Row], facts: Mapping[str, str]) -> bool:
    """Return whether the recipe says ``en``, or without a recipe, whether the pairs look English.

    >>> _is_english([{"sentence_a": "Der alte Mann."}], {}), _is_english([], {"Language": "en"})
    (False, True)
    """
    if language := facts.get("Language"):
        return language.partition("-")[0] == languages.ENGLISH
    words = [_WORD.findall(str(pair["sentence_a"]).lower()) for pair in pairs]
    return sum(not _ENGLISH.isdisjoint(w) for w in words) >= max(1, _LEAST_ENGLISH * len(pairs))


def _differing(pairs: Sequence[Row]) -> Iterator[tuple[Row, tuple[str, str], bool]]:
    """Yield each pair that needs a baseline, the words that differ, and ``is_run``.

    The words are those in only one of the two sentences, a's and b's. ``is_run`` is true if in both
    sentences they are consecutive and at most three.
    """
    for pair in pairs:
        if (pair["group_a"], pair["group_b"]) == USUAL:
            continue
        a, b = (_WORD.findall(str(pair[f"sentence_{side}"])) for side in "ab")
        own_a, own_b = _own(a, b), _own(b, a)
        if own_a and own_b:
            words = " ".join(a[k] for k in own_a), " ".join(b[k] for k in own_b)
            is_run = all(k[-1] - k[0] < len(k) <= _MOST_WORDS for k in (own_a, own_b))
            yield pair, words, is_run


def _own(words: Sequence[str], other: Sequence[str]) -> list[int]:
    """Return the positions of words that are neither in the other sentence nor in our lists."""
    known = _listed().union(map(_stem, other))
    return [k for k, word in enumerate(words) if _stem(word) not in known]


def _stem(word: str) -> str:
    """Return a word in lower case, without the endings of plurals, verbs and possessives.

    >>> [_stem(word) for word in ("carries", "carry", "goes", "go", "Emily’s", "don’t")]
    ['carri', 'carri', 'go', 'go', 'emili', "don't"]
    """
    stem = word.lower().replace("’", "'").removesuffix("'s").rstrip("es")
    return re.sub("y$", "i", stem)


@cache
def _listed() -> frozenset[str]:
    """Return the stems of function words, and of words that our lists assign to a group."""
    words = set(_FUNCTION_WORDS.split())
    for name in wordlists.LISTS.names():
        words.update(wordlists.load(name).targets)
    folder = resources.files("plumbline.eval_workers")
    gendered = read(folder / "pairs" / "sharing" / "gendered_words.toml")
    words.update(f"{gendered['female']} {gendered['male']}".split())
    nouns = read(folder / "fairpair" / "perturbation" / "gender_en.toml")["nouns"]
    words.update(word for both in nouns for word in both)
    for name in ("names-by-group", "kinship"):
        for group in load_words(name).values():
            words.update(group.words)
    return frozenset(map(_stem, words))
