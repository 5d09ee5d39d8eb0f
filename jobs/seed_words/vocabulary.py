"""The candidate seed words of a corpus: table ``vocabulary``, with a reason for every word.

As in UnStereoEval (Belem et al., ICLR 2024), a candidate consists of the letters a-z, is English
according to fastText or WordNet, and is more frequent than the rarest fifth of such words. In a
corpus of another language, a candidate consists of letters, and its language isn't checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.jobs.counting.corpus_lookup import corpus_row, writes_corpus
from plumbline.jobs.kernel.corpus_options import VocabularyOptions
from plumbline.jobs.seed_words.english import load_model, load_wordnet
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

NOT_LETTERS, FOREIGN, RARE = "not a-z", "not English", "rare"
FASTTEXT, WORDNET, BOTH, UNCHECKED = "fastText", "WordNet", "fastText and WordNet", "any language"
#: All reasons; the reasons of kept words come last.
REASONS = (NOT_LETTERS, FOREIGN, RARE, FASTTEXT, WORDNET, BOTH, UNCHECKED)
_LETTERS = re.compile(r"[a-z]+")
#: Least probability of English for fastText to accept a word.
LEAST_SCORE = 0.5


@dataclass(frozen=True)
class VocabularySummary:
    """Numbers of words, and the checks that were made or missing.

    Kept words have a count above ``rarest``.
    """

    n_words: int
    n_kept: int
    by_reason: dict[str, int]
    rarest: float
    checks: str
    missing: tuple[str, ...]


def classify(
    counts: Mapping[str, int],
    rules: VocabularyOptions,
    score: Callable[[Sequence[str]], Sequence[float]] | None = None,
    has_synset: Callable[[str], bool] | None = None,
    is_lettered: Callable[[str], object] = _LETTERS.fullmatch,
) -> tuple[list[dict[str, Any]], float]:
    """Return a row of ``vocabulary`` for every word, in order, and the count that is too rare.

    The rows lack corpus, checks and run. The count is the ``rules.quantile`` (linearly
    interpolated) of the counts of words that pass the other checks. It is 0 if the quantile is 0 or
    no word passes. A kept word has a higher count. A check that is ``None`` is skipped. Without any
    check, a word passes if ``is_lettered`` accepts it.

    >>> counts = {"tea": 9, "rum": 5, "u.s.": 7, "ale": 2}
    >>> words, rarest = classify(counts, VocabularyOptions(quantile=0.5))
    >>> rarest, [(row["word"], row["reason"]) for row in words if row["is_kept"]]
    (5.0, [('tea', 'any language')])
    """
    lettered = [word for word in counts if is_lettered(word)]
    scores = dict(zip(lettered, score(lettered), strict=True)) if score else {}
    synsets = {word: has_synset(word) for word in lettered} if has_synset else {}

    def reason(word: str) -> str:
        if score is None and has_synset is None:
            return UNCHECKED
        by_model, by_wordnet = scores.get(word, -1.0) >= LEAST_SCORE, synsets.get(word, False)
        if by_model and by_wordnet:
            return BOTH
        return FASTTEXT if by_model else WORDNET if by_wordnet else FOREIGN

    reasons = {word: reason(word) for word in lettered}
    passed = {word: counts[word] for word in lettered if reasons[word] != FOREIGN}
    rarest = 0.0
    if passed and rules.quantile:
        rarest = float(np.quantile(list(passed.values()), rules.quantile))
    reasons |= {word: RARE for word, n in passed.items() if n <= rarest}
    rows = []
    for word, n in counts.items():
        why = reasons.get(word, NOT_LETTERS)
        kept = {"is_kept": why not in (NOT_LETTERS, FOREIGN, RARE), "reason": why}
        checked = {"language_score": scores.get(word), "has_synset": synsets.get(word)}
        rows.append({"word": word, "n_word": n, **kept, **checked})
    return rows, rarest


@writes_corpus
def build_vocabulary(
    store: Store, corpus: str, rules: VocabularyOptions | None = None, model: Path | None = None
) -> VocabularySummary:
    """Write a row of ``vocabulary`` for every word of a corpus, replacing earlier rows.

    Every row names the checks made, and the row of ``run`` names the missing checks.

    Args:
        model: file of fastText's language model. Without a model, WordNet alone decides.

    Raises:
        UsageProblem: the corpus is unknown or has no words, or isn't English but is to be checked.
        MissingComponent: words are to be checked, but fastText's model and WordNet are missing.
        BadInput: the model or WordNet can't be read.
    """
    row = corpus_row(store, corpus)
    table = store.read("word_count", corpus=corpus)
    if not table.num_rows:
        raise UsageProblem(f"corpus {corpus!r}", "has no words")
    counts = dict(zip(table["word"].to_pylist(), table["n_word"].to_pylist(), strict=True))
    rules = rules or VocabularyOptions()
    if row["language"] and not rules.any_language:
        problem = f"is in language {row['language']}, and the checks are for English"
        raise UsageProblem(f"corpus {corpus!r}", problem, "keep all words with --any-language")
    missing = list[str]()
    language_model = wordnet = None
    if not rules.any_language:
        try:
            language_model = load_model(model)
        except MissingComponent as e:
            missing.append(str(e))
        try:
            wordnet = load_wordnet()
        except MissingComponent as e:
            missing.append(str(e))
        if len(missing) == 2:
            problem = f"nothing can recognise English words: {'; '.join(missing)}"
            raise MissingComponent("vocabulary", problem, "or keep all with --any-language")
    found = (FASTTEXT, language_model), (WORDNET, wordnet)
    checks = " and ".join(name for name, check in found if check) or UNCHECKED
    config = {
        "corpus": corpus,
        **vars(rules),
        "language_model": language_model
        and {"file": language_model.name, "sha256": language_model.sha256},
        "wordnet": wordnet and {"version": wordnet.version, "place": wordnet.place},
        "missing": missing,
    }
    with recorded(store, "corpus words", config) as run_id:
        score = language_model.english if language_model else None
        has_synset = wordnet.has_synset if wordnet else None
        is_lettered = str.isalpha if row["language"] else _LETTERS.fullmatch
        words, rarest = classify(counts, rules, score, has_synset, is_lettered)
        fixed = {"corpus": corpus, "checks": checks, "run_id": run_id}
        rows = [{**fixed, **row} for row in words]
        store.replace("vocabulary", rows, {"corpus": corpus}, run_id)
    n_of = Counter(row["reason"] for row in words)
    by_reason = {reason: n_of[reason] for reason in REASONS if reason in n_of}
    n_kept = sum(row["is_kept"] for row in words)
    return VocabularySummary(len(words), n_kept, by_reason, rarest, checks, tuple(missing))
