"""Checks for English words: fastText's language identification (lid.176) and WordNet.

fastText and nltk are imported only when used. Neither the model nor WordNet's files are part of the
project: the user installs WordNet and gives the model's path.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput, MissingComponent
from plumbline.warehouse.plugins import install_line

ENGLISH = "__label__en"
#: The compressed lid.176 (938 kB, CC BY-SA 3.0).
MODEL_URL = "https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz"
INSTALL = install_line("vocabulary")
#: Directory of WordNet's own files in Debian's package `wordnet-base`.
WORDNET_DIRECTORY = Path("/usr/share/wordnet")
INSTALL_WORDNET = "apt-get install wordnet-base, or python -m nltk.downloader wordnet"
# Debian's package lacks `lexnames`, which nltk reads but no look-up needs.
_LEXNAMES = "".join(f"{n:02} file-{n:02} 0\n" for n in range(45))


@dataclass(frozen=True)
class LanguageModel:
    """A loaded fastText model, with its file's name and SHA-256."""

    name: str
    sha256: str
    _model: Any = field(repr=False)

    def english(self, words: Sequence[str]) -> list[float]:
        """Return the probability that each word is English. If below 1e-5, it is set to 0."""
        if not words:
            return []
        labels, shares = self._model.predict(list(words), k=-1)
        by_label = (dict(zip(*pair, strict=True)) for pair in zip(labels, shares, strict=True))
        # fastText adds a little to each probability before its logarithm, so one may exceed 1.
        return [min(1.0, float(row.get(ENGLISH, 0.0))) for row in by_label]


def load_model(path: Path | None) -> LanguageModel:
    """Load a model that distinguishes English from at least one other language.

    Raises:
        MissingComponent: fastText is not installed, or no model is given.
        BadInput: the file does not exist, or is not such a model.
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
    """A loaded WordNet. ``place`` is `nltk`, or the directory of its files."""

    version: str
    place: str
    _reader: Any = field(repr=False)

    def has_synset(self, word: str) -> bool:
        """Return whether a word or its base form is in WordNet, as for `mice` and `ran`."""
        # The first base form is enough: no synset has to be built.
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
    """Return nltk's reader for WordNet's own files, which lack some of the files in nltk's copy."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc,unused-ignore]
        def open(self, file: str) -> Any:
            return io.StringIO(_LEXNAMES) if file == "lexnames" else super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Do nothing: only look-ups by synset numbers of another version need this map."""

    # nltk opens files only in these directories.
    if str(directory) not in nltk.data.path:
        nltk.data.path.append(str(directory))
    # The reader requires a second argument, for other languages, but never uses it.
    return Reader(nltk.data.FileSystemPathPointer(str(directory)), nltk.corpus.extended_omw)
