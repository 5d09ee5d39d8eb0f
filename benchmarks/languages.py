"""Text of other languages beside the same text by English rules, and text that grows."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: MB of text that each language's is repeated to.
REPEATED_MB = 80
_ROUNDS = 3


@dataclass(frozen=True)
class Counted:
    """MB of JSON a CPU second, counted once from nothing and repeated; and the English rules'."""

    name: str
    megabytes: float
    once: float
    english_once: float
    repeated: float
    english_repeated: float


def run(data: Path) -> list[Counted]:
    """Count the languages of the reference data, and English text by way of spaCy."""
    from plumbline.jobs.kernel.counter import warm_up
    from plumbline.warehouse import languages
    from plumbline.warehouse.input.shards import documents
    from plumbline.warehouse.languages import TokenRules

    warm_up()
    found = []
    for path in sorted((data / "languages").glob("*.jsonl.zst")):
        code = path.name.split(".")[0]
        rules = languages.load(code).token_rules
        found.append(_beside(code, list(documents(path)), rules, REPEATED_MB))
    novels = sorted((data / "corpora" / "gutenberg").glob("*.jsonl.zst"))
    texts = [text for path in novels for text in documents(path)]
    return [*found, _beside("English novels by way of spaCy", texts, TokenRules("en").text, 0)]


def _beside(name: str, texts: Sequence[str], rules: str, repeated_mb: int) -> Counted:
    from plumbline.jobs.kernel.memory import SLACK

    lines = "".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in texts).encode()
    block = np.frombuffer(lines + bytes(SLACK), np.uint8).copy()
    times = max(1, round(repeated_mb * 1e6 / len(lines)))
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(_ROUNDS):
        for language in (rules, ""):
            for n in {1, times}:
                rate = n * len(lines) / _seconds(block, len(lines), language, n) / 1e6
                rates.setdefault((language, n), []).append(rate)
    median = {key: statistics.median(found) for key, found in rates.items()}
    return Counted(
        name,
        len(lines) / 1e6,
        *(median[language, 1] for language in (rules, "")),
        *(median[language, times] for language in (rules, "")),
    )


def _seconds(block: NDArray[np.uint8], n_bytes: int, language: str, times: int) -> float:
    from plumbline.jobs.counting.corpus_options import CorpusOptions
    from plumbline.jobs.kernel.counter import Counter
    from plumbline.jobs.kernel.tokens.tokenizer import Targets

    counter = Counter(Targets(("elle", "il"), language), CorpusOptions(evidence=False))
    start = time.process_time()
    for _ in range(times):
        counter.feed_lines(block, n_bytes)
    counter.result()
    return time.process_time() - start
