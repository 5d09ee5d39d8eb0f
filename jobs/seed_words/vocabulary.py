"""Which words of a counted corpus are words to write about: a verdict and its reason for each.

After UnStereoEval (Belem et al., ICLR 2024): words of the letters a-z, English to fastText or in
WordNet, and more frequent than the rarest fifth of those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plumbline.jobs.association.associate import corpus_row
from plumbline.jobs.counting.writer import writes_corpus
from plumbline.jobs.seed_words import language
from plumbline.jobs.seed_words import wordnet as lexicon
from plumbline.jobs.seed_words.language import LanguageModel
from plumbline.jobs.seed_words.wordnet import WordNet
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.provenance.runs import recorded
from plumbline.warehouse.storage.store import Store

NOT_LETTERS, FOREIGN, RARE = "not a-z", "not English", "rare"
FASTTEXT, WORDNET, BOTH, UNCHECKED = "fastText", "WordNet", "fastText and WordNet", "any language"
#: Every reason there is, those of the words that are kept last.
REASONS = (NOT_LETTERS, FOREIGN, RARE, FASTTEXT, WORDNET, BOTH, UNCHECKED)
_LETTERS = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Rules:
    """What a word has to be.

    Attributes:
        quantile: share of the English words that is too rare, from 0 (none is) to below 1.
        min_score: probability from which fastText's word is taken, from 0 to 1.
        any_language: whether a word's language does not matter.
    """

    quantile: float = 0.2
    min_score: float = 0.5
    any_language: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.quantile < 1:
            raise UsageProblem(f"--quantile {self.quantile}", "expected a share from 0 to below 1")
        if not 0 <= self.min_score <= 1:
            raise UsageProblem(f"--min-score {self.min_score}", "expected a probability, 0 to 1")


@dataclass(frozen=True)
class Checks:
    """What can tell English: fastText's model, WordNet, and messages on what is missing of them."""

    model: LanguageModel | None = None
    wordnet: WordNet | None = None
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> str:
        """The checks that are made, as in table `vocabulary`."""
        made = [n for n, c in ((FASTTEXT, self.model), (WORDNET, self.wordnet)) if c is not None]
        return " and ".join(made) or UNCHECKED


@dataclass(frozen=True)
class Verdict:
    """A word, its occurrences, whether it is kept and why; what the two checks said, if asked."""

    word: str
    n_word: int
    is_kept: bool
    reason: str
    language_score: float | None = None
    has_synset: bool | None = None


@dataclass(frozen=True)
class Built:
    """What was written: words by reason, the count that a kept word is above, what was missing."""

    n_words: int
    n_kept: int
    by_reason: dict[str, int]
    rarest: float
    checks: str
    missing: tuple[str, ...]


def find_checks(rules: Rules, model: Path | None) -> Checks:
    """Load what can tell English; what is not installed is named in ``missing``.

    Raises:
        MissingComponent: neither of the two is there, and the language matters.
        BadInput: the model or WordNet is there and can't be used.
    """
    if rules.any_language:
        return Checks()
    missing = []
    scorer = wordnet = None
    try:
        if model is None:
            fix = "give --language-model PATH, or --download"
            raise MissingComponent("fastText", "no language model", fix)
        scorer = language.load(model)
    except MissingComponent as e:
        missing.append(str(e))
    try:
        wordnet = lexicon.load()
    except MissingComponent as e:
        missing.append(str(e))
    if len(missing) == 2:
        problem = f"nothing can tell English words: {'; '.join(missing)}"
        raise MissingComponent("vocabulary", problem, "or keep all with --any-language")
    return Checks(scorer, wordnet, tuple(missing))


def judge(
    counts: Mapping[str, int],
    rules: Rules,
    english: Callable[[Sequence[str]], Sequence[float]] | None = None,
    has_synset: Callable[[str], bool] | None = None,
) -> tuple[list[Verdict], float]:
    """A verdict for each word, in the order given, and the count that a kept word is above.

    That count is the quantile of the counts of the words that pass the other checks (by linear
    interpolation), and 0 for a quantile of 0 or without such words. A check that is ``None`` is
    not made; without any, words of a-z pass.

    >>> verdicts, rarest = judge({"tea": 9, "rum": 5, "u.s.": 7, "ale": 2}, Rules(quantile=0.5))
    >>> rarest, [(v.word, v.reason) for v in verdicts if v.is_kept]
    (5.0, [('tea', 'any language')])
    """
    lettered = [word for word in counts if _LETTERS.fullmatch(word)]
    scores = dict(zip(lettered, english(lettered), strict=True)) if english else {}
    synsets = {word: has_synset(word) for word in lettered} if has_synset else {}
    unchecked = english is None and has_synset is None
    reasons = {
        word: UNCHECKED
        if unchecked
        else _english(scores.get(word, -1.0) >= rules.min_score, synsets.get(word, False))
        for word in lettered
    }
    passed = [counts[word] for word, reason in reasons.items() if reason != FOREIGN]
    rarest = float(np.quantile(passed, rules.quantile)) if passed and rules.quantile else 0.0
    verdicts = []
    for word, n in counts.items():
        reason = reasons.get(word, NOT_LETTERS)
        if reason not in (NOT_LETTERS, FOREIGN) and n <= rarest:
            reason = RARE
        is_kept = reason not in (NOT_LETTERS, FOREIGN, RARE)
        verdicts.append(Verdict(word, n, is_kept, reason, scores.get(word), synsets.get(word)))
    return verdicts, rarest


def _english(by_model: bool, by_wordnet: bool) -> str:
    if by_model and by_wordnet:
        return BOTH
    return FASTTEXT if by_model else WORDNET if by_wordnet else FOREIGN


@writes_corpus
def build_vocabulary(
    store: Store, corpus: str, rules: Rules | None = None, model: Path | None = None
) -> Built:
    """Write a verdict for every word of a corpus into ``vocabulary``, in place of earlier ones.

    Which checks were made stands in every row, what was missing in the row of ``run``.

    Args:
        model: fastText's language model; without one WordNet alone decides.

    Raises:
        UsageProblem: no such corpus, or it has no words.
        MissingComponent, BadInput: see ``find_checks``.
    """
    corpus_row(store, corpus)
    rows = store.read("word_count", corpus=corpus)
    if not rows.num_rows:
        raise UsageProblem(f"corpus {corpus!r}", "has no words")
    counts = dict(zip(rows["word"].to_pylist(), rows["n_word"].to_pylist(), strict=True))
    rules = rules or Rules()
    checks = find_checks(rules, model)
    with recorded(store, "corpus vocabulary", _config(corpus, rules, checks)) as run_id:
        english = checks.model.english if checks.model else None
        has_synset = checks.wordnet.has_synset if checks.wordnet else None
        verdicts, rarest = judge(counts, rules, english, has_synset)
        fixed = {"corpus": corpus, "checks": checks.names, "run_id": run_id}
        written = [{**fixed, **vars(v)} for v in verdicts]
        store.replace("vocabulary", written, {"corpus": corpus}, run_id)
    found = Counter(v.reason for v in verdicts)
    by_reason = {reason: found[reason] for reason in REASONS if reason in found}
    n_kept = sum(v.is_kept for v in verdicts)
    return Built(len(verdicts), n_kept, by_reason, rarest, checks.names, checks.missing)


def _config(corpus: str, rules: Rules, checks: Checks) -> dict[str, object]:
    model, wordnet = checks.model, checks.wordnet
    return {
        "corpus": corpus,
        **vars(rules),
        "language_model": model and {"file": model.name, "sha256": model.sha256},
        "wordnet": wordnet and {"version": wordnet.version, "place": wordnet.place},
        "missing": list(checks.missing),
    }
