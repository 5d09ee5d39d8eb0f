"""The house rules on top of spaCy's own tokenizer: what the kernel is tested against."""

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from plumbline.jobs.kernel.tokens.tokenizer import DEFAULT_TARGETS, Tokenizer, tokenize
from plumbline.warehouse.input.shards import documents

HARD_CASES = Path(__file__).with_name("data") / "hard_cases.jsonl"


def words(text: str, language: str = "") -> list[str]:
    """All word tokens of a text in order, stop words too, by our own rules."""
    return Tokenizer([], keep_stops=True, language=language).tokens(text)


@lru_cache(maxsize=1)
def tokenizer() -> Any:
    import spacy

    return spacy.blank("en").tokenizer


def strip(token: str) -> str:
    """Keep from the first letter or number to the last letter, mark or number."""
    start = next((i for i, c in enumerate(token) if unicodedata.category(c)[0] in "LN"), None)
    if start is None:
        return ""
    end = max(i for i, c in enumerate(token) if unicodedata.category(c)[0] in "LMN")
    return token[start : end + 1]


def _lowered(text: str) -> Iterator[tuple[str, str]]:
    """spaCy's tokens in lowercase, each with what is left of it after stripping."""
    for token in tokenizer()(text):
        lowered = token.text.lower()
        word = strip(lowered)
        if word:
            yield lowered, word


def reference_words(text: str) -> list[str]:
    """All words in order by spaCy's tokenizer and ``str.lower``."""
    return [word for _, word in _lowered(text)]


def reference_tokens(text: str, targets: Collection[str]) -> list[str]:
    """Kept tokens by spaCy's tokenizer, stop words by spaCy's list."""
    from spacy.lang.en.stop_words import STOP_WORDS

    return [
        word
        for lowered, word in _lowered(text)
        if word in targets or (word not in STOP_WORDS and lowered not in STOP_WORDS)
    ]


@lru_cache(maxsize=16)
def blank(code: str) -> Any:
    import spacy

    return spacy.blank(code)


def language_words(code: str, text: str) -> list[str]:
    """All words in order by spaCy's tokenizer of a language and ``str.lower``."""
    return [w for t in blank(code).tokenizer(text) if (w := strip(t.text.lower()))]


def language_tokens(code: str, text: str, targets: Collection[str]) -> list[str]:
    """Kept tokens by spaCy's tokenizer and stop words of a language."""
    stops = blank(code).Defaults.stop_words
    lowered = [t.text.lower() for t in blank(code).tokenizer(text)]
    return [
        word
        for token in lowered
        if (word := strip(token))
        and (word in targets or (word not in stops and token not in stops))
    ]


def agreement(ours: list[str], theirs: list[str]) -> tuple[int, int]:
    """Tokens in common as multisets, and the larger of the two lengths."""
    common = Counter(ours) & Counter(theirs)
    return sum(common.values()), max(len(ours), len(theirs))


@dataclass(frozen=True)
class Figures:
    """How far kernel and reference agree: texts, kept tokens, common ones; which texts differ."""

    texts: int
    identical: int
    kept: int
    common: int
    different: tuple[str, ...]

    @property
    def share(self) -> str:
        """Agreement averaged by token, to six decimals of a per cent; "no tokens" without any."""
        return f"{self.common / self.kept:.6%}" if self.kept else "no tokens"


def compare(texts: Iterable[str]) -> Figures:
    """Tokenise texts with the kernel and with the reference."""
    n = kept = common = 0
    different = []
    for text in texts:
        ours, theirs = tokenize(text), reference_tokens(text, DEFAULT_TARGETS)
        same, length = agreement(ours, theirs)
        n, kept, common = n + 1, kept + length, common + same
        if ours != theirs:
            different.append(text)
    return Figures(n, n - len(different), kept, common, tuple(different))


def hard_cases() -> dict[str, list[str]]:
    """Texts of ``data/hard_cases.jsonl`` by class, in the order of the file."""
    cases: dict[str, list[str]] = {}
    for line in HARD_CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        cases.setdefault(row["class"], []).append(row["text"])
    return cases


def main(shards: list[str]) -> None:
    """Print the agreement on whole shards: ``python -m tests.spacy_reference SHARDS...``"""
    for shard in shards:
        f = compare(documents(Path(shard)))
        print(f"{shard}: {f.kept:,} kept, {f.identical:,} of {f.texts:,} identical, {f.share}")


if __name__ == "__main__":
    main(sys.argv[1:])
