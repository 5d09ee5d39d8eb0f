"""Choose a corpus's candidate seed words. Table ``vocabulary`` says why each word is kept or not.

As in UnStereoEval (Belem et al., ICLR 2024), a candidate consists of the letters a-z and is English
according to fastText or WordNet. The rarest fifth of these words is left out. In a corpus of
another language, a candidate consists of letters, and its language isn't checked.

fastText and nltk are imported only when used. Neither fastText's model (lid.176) nor WordNet's
files are part of the project. The user installs WordNet and gives the model's path.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.jobs.counting.corpus_lookup import corpus_row, writes_corpus
from plumbline.jobs.kernel.corpus_options import VocabularyOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.plugins import install_line
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store

NOT_LETTERS, FOREIGN, RARE = "not a-z", "not English", "rare"
FASTTEXT, WORDNET, BOTH, UNCHECKED = "fastText", "WordNet", "fastText and WordNet", "any language"
#: All reasons. The first three are for words that are left out, the others for kept words.
REASONS = (NOT_LETTERS, FOREIGN, RARE, FASTTEXT, WORDNET, BOTH, UNCHECKED)
_LETTERS = re.compile(r"[a-z]+")
#: fastText accepts a word if its probability of being English is at least this.
LEAST_SCORE = 0.5
ENGLISH = "__label__en"
#: Address of the compressed model lid.176 (938 kB, CC BY-SA 3.0).
MODEL_URL = "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz"
INSTALL = install_line("vocabulary")
#: Directory of WordNet's own files in Debian's package `wordnet-base`.
WORDNET_DIRECTORY = Path("/usr/share/wordnet")
INSTALL_WORDNET = "apt-get install wordnet-base, or python -m nltk.downloader wordnet"
# Dummy `lexnames`. nltk requires this file, Debian's package lacks it, and no look-up uses it.
_LEXNAMES = "".join(f"{n:02} file-{n:02} 0\n" for n in range(45))


@dataclass(frozen=True)
class LanguageModel:
    """A loaded fastText model, with its file's name and SHA-256."""

    name: str
    sha256: str
    _model: Any = field(repr=False)

    def english(self, words: Sequence[str]) -> list[float]:
        """Return the probability that each word is English, or 0 if it is below 1e-5."""
        if not words:
            return []
        labels, shares = self._model.predict(list(words), k=-1)
        by_label = (dict(zip(*pair, strict=True)) for pair in zip(labels, shares, strict=True))
        # fastText adds a little to each probability, so a probability may exceed 1.
        return [min(1.0, float(row.get(ENGLISH, 0.0))) for row in by_label]


def load_model(path: Path | None) -> LanguageModel:
    """Load a fastText model that distinguishes English from other languages.

    Raises:
        MissingComponent: fastText is not installed, or no model is given.
        BadInput: the file does not exist, is not a fastText model, or lacks the label for English.
    """
    try:
        import fasttext
    except ImportError as e:
        raise MissingComponent("fastText", "is not installed", INSTALL) from e
    if path is None:
        raise MissingComponent("fastText", "no model given", f"--language-model PATH, {MODEL_URL}")
    if not path.is_file():
        raise BadInput(f"language model {path}", "no such file", f"download {MODEL_URL}")
    try:
        model = fasttext.load_model(str(path))
        labels = set(model.get_labels())
    except (ValueError, RuntimeError, MemoryError) as e:
        raise BadInput(f"language model {path}", "not a fastText model", MODEL_URL) from e
    if ENGLISH not in labels or len(labels) < 2:
        problem = f"has {len(labels)} labels, expected {ENGLISH} and others"
        raise BadInput(f"language model {path}", problem, "lid.176.ftz has them")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return LanguageModel(path.name, sha256, model)


@dataclass(frozen=True)
class WordNet:
    """A loaded WordNet. ``place`` is `nltk` for nltk's copy, else the files' directory."""

    version: str
    place: str
    _reader: Any = field(repr=False)

    def has_synset(self, word: str) -> bool:
        """Return True if WordNet has the word or its base form, such as `mouse` for `mice`."""
        # `morphy` finds a base form without reading any synset.
        return self._reader.morphy(word.lower()) is not None


def load_wordnet() -> WordNet:
    """Load WordNet from nltk's data if installed there, otherwise from ``WORDNET_DIRECTORY``.

    Raises:
        MissingComponent: nltk or WordNet's files are not installed.
        BadInput: the files can't be read.
    """
    try:
        from nltk.corpus import wordnet
    except ImportError as e:
        raise MissingComponent("nltk", "is not installed", INSTALL) from e
    try:
        wordnet.ensure_loaded()
        return WordNet(str(wordnet.get_version()), "nltk", wordnet)
    except LookupError:
        pass
    if not (WORDNET_DIRECTORY / "index.noun").is_file():
        raise MissingComponent("WordNet", "its files are not installed", INSTALL_WORDNET)
    try:
        reader = _own_files(WORDNET_DIRECTORY)
    except (OSError, ValueError, AssertionError, StopIteration) as e:
        what = f"WordNet in {WORDNET_DIRECTORY}"
        raise BadInput(what, f"can't be read: {e}", INSTALL_WORDNET) from e
    return WordNet(str(reader.get_version()), str(WORDNET_DIRECTORY), reader)


def _own_files(directory: Path) -> Any:
    """Return an nltk reader that works without the files that nltk adds to WordNet's own."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc,unused-ignore]
        def open(self, file: str) -> Any:
            return io.StringIO(_LEXNAMES) if file == "lexnames" else super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Do nothing. The map of synset numbers between WordNet versions isn't needed here."""

    # nltk opens only files in the directories of this list.
    if str(directory) not in nltk.data.path:
        nltk.data.path.append(str(directory))
    # The reader requires a second argument, for other languages, but never uses it.
    return Reader(nltk.data.FileSystemPathPointer(str(directory)), nltk.corpus.extended_omw)


def classify(
    counts: Mapping[str, int],
    rules: VocabularyOptions,
    score: Callable[[Sequence[str]], Sequence[float]] | None = None,
    has_synset: Callable[[str], bool] | None = None,
    is_lettered: Callable[[str], object] = _LETTERS.fullmatch,
) -> tuple[list[dict[str, Any]], float]:
    """Return a row of ``vocabulary`` for each word, and a limit. Kept words have counts above it.

    The rows are in the order of ``counts``, and lack the columns corpus, checks and run. The limit
    is the quantile ``rules.quantile`` (linearly interpolated) of the counts of all words that pass
    the other checks. The limit is 0 if ``rules.quantile`` is 0 or no word passes. The checks
    ``score`` and ``has_synset`` are skipped if they are ``None``.

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
) -> dict[str, Any]:
    """Write a row of ``vocabulary`` for every word of a corpus, replacing earlier rows.

    Every row names the checks that were made. The row of ``run`` says why others weren't made.

    Args:
        model: file of fastText's language model. Without a model, WordNet alone decides.

    Returns:
        A dictionary. ``n_words`` and ``n_kept`` are the number of words and of kept words, and
        ``by_reason`` gives the number of words for each reason. Every kept word occurs more than
        ``rarest`` times. ``checks`` names the checks made. ``missing`` says why others weren't.

    Raises:
        UsageProblem: the corpus is unknown, has no words, or isn't English (if words are checked).
        MissingComponent: words have to be checked, but fastText's model and WordNet are missing.
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
    numbers = {"n_words": len(words), "n_kept": n_kept, "by_reason": by_reason, "rarest": rarest}
    return {**numbers, "checks": checks, "missing": missing}
