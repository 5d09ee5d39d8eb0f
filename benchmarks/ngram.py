"""The n-gram model of a text of 10 and of 100 M words, in processes of its own; and ``nltk.lm``."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from benchmarks.peak import own_bytes
from plumbline.warehouse.input.shards import documents, write_jsonl_zst

#: How often the real text, about 10 M words and marks, is read; all but once with changed words.
TIMES = (1, 10)
#: Every so many words one is changed, and every so many of these are new ones.
CHANGED, NEW = 8, 32
#: Words that ``nltk.lm`` counts.
PEER_WORDS = 200_000
SENTENCE = "The nurse said that she would come back in the morning."


@dataclass(frozen=True)
class Trained:
    """A training: words and n-grams, seconds, peaks of memory, and the size of the model.

    ``peak_bytes`` is the process's own memory, ``resident_bytes`` has mapped files as well;
    ``first_score_s`` from opening the model to a sentence's score, libraries loaded.
    """

    n_words: int
    n_ngrams: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    resident_bytes: int
    model_bytes: int
    first_score_s: float


def run(real: Sequence[Path], directory: Path) -> tuple[list[Trained], float]:
    """Train on each text; and words a second that ``nltk.lm`` counts."""
    found = []
    for times in TIMES:
        shard = directory / f"{times}.jsonl.zst"
        write_jsonl_zst(shard, changed(real, times))
        parts = [_in_a_process(part, str(shard), directory / "models") for part in (_train, _score)]
        found.append(Trained(**parts[0], **parts[1]))
    return found, _peer(real[0])


def changed(real: Sequence[Path], times: int) -> Iterator[str]:
    """The text, then again with every eighth word drawn from the text, some with a new ending.

    So about half of the n-grams of five words are new, as they are in a text of that length.
    """
    texts = [text for part in real for text in documents(part)]
    yield from texts
    drawn = [word for text in texts for word in text.split(" ")[::CHANGED]]
    draw = random.Random(0)
    for time_read in range(1, times):
        ending = "q" + chr(96 + time_read)
        for text in texts:
            words = text.split(" ")
            for n, k in enumerate(range(draw.randrange(CHANGED), len(words), CHANGED)):
                words[k] = draw.choice(drawn) + (ending if n % NEW == 0 else "")
            yield " ".join(words)


def _in_a_process(part: object, *arguments: object) -> dict[str, float]:
    name = getattr(part, "__name__", "")
    command = [sys.executable, "-m", "benchmarks.ngram", name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _train(shard: str, out: str) -> dict[str, float]:
    from plumbline.eval_workers.models.ngram import NgramOptions
    from plumbline.eval_workers.training.trained_models import train_model

    small = Path(out) / "small.jsonl"
    small.parent.mkdir(exist_ok=True)
    small.write_text('{"text": "Tea."}\n')
    train_model([small], "small", "c", NgramOptions(), out)  # compiles
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started, cpu = time.perf_counter(), time.process_time()
    made = train_model([Path(shard)], "grams", "c", NgramOptions(), out)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    done.set()
    watcher.join()
    resident = getrusage(RUSAGE_SELF).ru_maxrss << 10
    size = sum(file.stat().st_size for file in made.path.iterdir())
    return {
        **{"n_words": made.n_tokens, "n_ngrams": made.n_parameters, "seconds": seconds},
        **{"cpu_seconds": cpu, "peak_bytes": peak[0], "resident_bytes": resident},
        "model_bytes": size,
    }


def _score(_: str, out: str) -> dict[str, float]:
    from plumbline.eval_workers.models import open_backend
    from plumbline.eval_workers.models.model_options import ModelOptions

    open_backend(str(Path(out) / "small"), ModelOptions()).score([SENTENCE])  # loads libraries
    started = time.perf_counter()
    open_backend(str(Path(out) / "grams"), ModelOptions()).score([SENTENCE])
    return {"first_score_s": time.perf_counter() - started}


def _peer(shard: Path) -> float:
    """Words a second that ``nltk.lm`` counts, from lists of words."""
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm.preprocessing import padded_everygram_pipeline

    words = (word for text in documents(shard) for word in text.lower().split())
    sentences = [list(islice(words, 20)) for _ in range(PEER_WORDS // 20)]
    started = time.process_time()
    KneserNeyInterpolated(5).fit(*padded_everygram_pipeline(5, sentences))
    return PEER_WORDS / (time.process_time() - started)


if __name__ == "__main__":
    print(json.dumps({"_train": _train, "_score": _score}[sys.argv[1]](*sys.argv[2:])))
