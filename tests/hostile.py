"""What attack tests share: hostile texts, a filled warehouse, and files that are damaged."""

import os
import resource
import unicodedata
from pathlib import Path

from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, corpus_row, delta, fill, pair, score, scored_by

WORDS = [f"word{k}" for k in range(20)]
#: Clears the screen, sets the title, rings, turns the direction of text, hides and links.
STEERS = "x\x1b[2J\x07\x9b31m\u202ee\u200b\r"
MARKUP = "[bold red]x[/] :skull:[/]"
HTML = "</script><script src=//x><img onerror=alert(1)>{{ 7*7 }}\"'"
HOSTILE = f"{STEERS}{MARKUP}{HTML}"
#: A link needs more letters than a file name has room for beside the rest.
LINK = "[link=https://evil.test]y[/link]"
MEANT = set("\n\t")


def is_harmless(text: str) -> bool:
    """No control, no mark without a width, nothing that turns the direction of text."""
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return all(c in MEANT or unicodedata.category(c) not in unseen for c in text)


def peak_mb() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def filled(store: Store) -> Store:
    """A warehouse with the tables that commands read."""
    return _with_tables(store, "c", "b", "m", WORDS)


def filled_with_hostile_texts(store: Store) -> Store:
    """The same; every text in it is hostile."""
    words = [f"{HOSTILE}{k}" for k in range(20)]
    texts = dict.fromkeys(("template", "sentence_a", "sentence_b", "word"), LINK + HOSTILE)
    return _with_tables(store, HOSTILE, HOSTILE, HOSTILE, words, **texts)


def _with_tables(
    store: Store, corpus: str, benchmark: str, model: str, words: list[str], **texts: str
) -> Store:
    row = corpus_row(corpus=corpus, targets=texts.get("word", "she-he"))
    pairs = [pair(benchmark, w, **(texts or {"word": w})) for w in words]
    with recorded(store, "fill", {}):
        fill(store, "corpus", [row])
        fill(store, "word_count", [{"corpus": corpus, "word": w, "n_word": 9} for w in words])
        fill(store, "word_delta", [delta(w, k - 9.5, corpus) for k, w in enumerate(words)])
        fill(store, "benchmark_pair", pairs)
        fill(store, "pair_score", [score(benchmark, w, 0.5, model, "k") for w in words])
        fill(store, "model", [scored_by(model, key="k")])
        if not texts:
            fill(store, "pair_association", [association(benchmark, w, 0.5) for w in words])
    return store


def spoilt(path: Path, damage: str) -> None:
    """Make a file what nobody expects there."""
    path.unlink()
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "directory":
        path.mkdir()
    elif damage == "circle":
        path.symlink_to(path)
    else:
        path.write_bytes(damage.encode("latin-1"))
