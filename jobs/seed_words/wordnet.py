"""Which words have a synset in WordNet, read with nltk: the only file that imports it."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import BadInput, MissingComponent

INSTALL = "apt-get install wordnet-base, or python -m nltk.downloader wordnet"
#: Where Debian's package `wordnet-base` puts WordNet's own files.
SYSTEM = Path("/usr/share/wordnet")
# Names of the lexicographers' files, which the package lacks and no look-up of a word needs.
_LEXNAMES = "".join(f"{n:02} file-{n:02} 0\n" for n in range(45))


@dataclass(frozen=True)
class WordNet:
    """A loaded WordNet: its version, and where it was found (`nltk` or a directory)."""

    version: str
    place: str
    _reader: Any = field(repr=False)

    def has_synset(self, word: str) -> bool:
        """Whether a word, or a base form of it, is in WordNet: `mice` and `ran` are."""
        # The first base form found is enough: no synset has to be built.
        return self._reader.morphy(word.lower()) is not None


def load(directory: Path = SYSTEM) -> WordNet:
    """WordNet from nltk's data where it is installed, else from a directory of its own files.

    Raises:
        MissingComponent: nltk or WordNet's files are not installed.
        BadInput: the files can't be read.
    """
    try:
        from nltk.corpus import wordnet
    except ImportError as e:
        raise MissingComponent(
            "nltk", "is not installed", "pip install 'plumbline[vocabulary]'"
        ) from e
    try:
        wordnet.ensure_loaded()
        return WordNet(str(wordnet.get_version()), "nltk", wordnet)
    except LookupError:
        pass
    if not (directory / "index.noun").is_file():
        raise MissingComponent("WordNet", "its files are not installed", INSTALL)
    try:
        reader = _own_files(directory)
    except (OSError, ValueError, AssertionError, StopIteration) as e:
        raise BadInput(f"WordNet in {directory}", f"can't be read: {e}", INSTALL) from e
    return WordNet(str(reader.get_version()), str(directory), reader)


def _own_files(directory: Path) -> Any:
    """nltk's reader on WordNet's files as they are distributed, without what nltk's copy adds."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc,unused-ignore]
        def open(self, file: str) -> Any:
            return io.StringIO(_LEXNAMES) if file == "lexnames" else super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """No numbers of another version are asked for."""

    # nltk opens files below these directories only.
    if str(directory) not in nltk.data.path:
        nltk.data.path.append(str(directory))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that other languages are missing
        return Reader(nltk.data.FileSystemPathPointer(str(directory)), None)
