"""A small language model of fastText, trained on text that lies here, and whether WordNet does."""

import re
from pathlib import Path

import pytest

from plumbline.jobs.seed_words.english import INSTALL_WORDNET, WORDNET_DIRECTORY
from tests.conftest import REPOSITORY

#: For tests that read WordNet's own files.
needs_wordnet = pytest.mark.skipif(
    not (WORDNET_DIRECTORY / "index.noun").is_file(),
    reason=f"no WordNet: {INSTALL_WORDNET.split(',')[0]}",
)

#: fastText gives each thread a tenth of the weights, rounded down, to set at the start. With fewer
#: than ten threads, or a size that ten does not divide, the others stay as the memory was.
_THREADS = 10


def train(directory: Path) -> Path:
    """A model that tells English (this repository's pages) from German and French (spaCy's)."""
    import fasttext
    from spacy.lang.de import examples as german
    from spacy.lang.de.stop_words import STOP_WORDS as german_words
    from spacy.lang.fr import examples as french
    from spacy.lang.fr.stop_words import STOP_WORDS as french_words

    pages = sorted((REPOSITORY / "docs").glob("*.md"))
    words = {
        "en": re.findall(r"\b[a-z]+\b", " ".join(p.read_text(encoding="utf-8") for p in pages)),
        "de": " ".join([*german.sentences, *sorted(german_words)]).lower().split(),
        "fr": " ".join([*french.sentences, *sorted(french_words)]).lower().split(),
    }
    text = directory / "languages.txt"
    lines = [f"__label__{name} {word}" for name in words for word in sorted(set(words[name]))]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {"dim": 20, "minn": 2, "maxn": 4, "epoch": 50, "lr": 0.1, "bucket": 20_000}
    model = fasttext.train_supervised(str(text), thread=_THREADS, verbose=0, **settings)
    path = directory / "languages.bin"
    model.save_model(str(path))
    return path
