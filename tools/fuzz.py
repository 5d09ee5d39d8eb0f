"""Read mutated files: no crash, no hang, and no wrong row without an error.

A developer's tool, see docs/warehouse.md. Each input is a file with bytes flipped, removed,
repeated or overwritten. A child process with limited memory and time reads the input, so that
crashes of libraries are noticed too. A reader may read the input, or refuse it with a one-line
error. Rows that are read from a warehouse must be the original rows, since every file has a hash.

    python tools/fuzz.py --inputs 10000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from plumbline.pipelines.command import settings  # noqa: E402
from plumbline.pipelines.commands.pipeline import Pipeline  # noqa: E402
from plumbline.warehouse.errors import PlumblineError  # noqa: E402
from plumbline.warehouse.input.shards import documents, write_jsonl_zst  # noqa: E402
from plumbline.warehouse.query.connection import connect  # noqa: E402
from plumbline.warehouse.storage import log  # noqa: E402
from plumbline.warehouse.storage.store import Store  # noqa: E402
from plumbline.warehouse.text import toml_file  # noqa: E402

_TEXTS = [f"She said that he had {k} cups of tea, naïve as it was. " * 20 for k in range(60)]
_SECONDS, _BYTES = 20, 4 << 30
#: How a child ends: it read the input, refused it, or read something that wasn't there.
_READ, _REFUSED, _WRONG = 0, 3, 9


def seeds(here: Path) -> dict[str, tuple[Path, Callable[[Path], bool]]]:
    """Return undamaged files by name, each with a reader that says whether its rows are right."""
    found: dict[str, tuple[Path, Callable[[Path], bool]]] = {}
    plain = "".join(json.dumps({"text": text}) + "\n" for text in _TEXTS).encode()
    shard = here / "shard.jsonl"
    shard.write_bytes(plain)
    write_jsonl_zst(here / "shard.jsonl.zst", _TEXTS)
    pq.write_table(pa.table({"text": _TEXTS}), here / "shard.parquet")
    for name in ("shard.jsonl", "shard.jsonl.zst", "shard.parquet"):
        found[name] = here / name, _documents
    (here / "settings.toml").write_text('seed = 5\nbenchmarks = ["use-5"]\n[fairpair.run]\nn = 3\n')
    found["settings.toml"] = here / "settings.toml", _settings
    (here / "lists.toml").write_text('title = "x"\nwords = ["a", "b"]\n[deep.er]\nn = 1.5e3\n')
    found["lists.toml"] = here / "lists.toml", _toml
    store = Store.open(here / "w")
    rows = [{"corpus": "c", "word": f"w{k}", "n_word": k} for k in range(5_000)]
    store.publish("word_count", rows, unit="u", run_id="r")
    (file,) = store.snapshot().files("word_count")
    commits = here / "w" / log.COMMITS
    found["data file"] = here / "w" / file.path, _sums
    found["commit"] = max(commits.iterdir()), _sums
    found["marker"] = here / "w" / "plumbline.json", _sums
    return found


def _documents(path: Path) -> bool:
    return all(isinstance(text, str) for text in documents(path))


def _settings(path: Path) -> bool:
    settings.made(Pipeline, {}, settings.configured(Pipeline, path, {}))
    return True


def _toml(path: Path) -> bool:
    toml_file.read(path)
    return True


def _sums(path: Path) -> bool:
    root = next(parent for parent in path.parents if parent.name == "w")
    text = "SELECT count(*), sum(n_word), max(word) FROM word_count"
    with connect(root, text) as connection:
        return connection.execute(text).fetchone() == (5_000, 12_497_500, "w999")


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """Return a file with one to four changes."""
    made = bytearray(whole)
    for _ in range(rng.randint(1, 4)):
        at, n = rng.randrange(len(made) + 1), rng.choice((1, 1, 2, 8, 64, 512))
        how = rng.randrange(5)
        if how == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del made[at : at + n]
        elif how == 2:
            made[at:at] = made[at : at + n]
        elif how == 3:
            made[at : at + n] = rng.randbytes(n)
        else:
            made[at:at] = rng.choice((b"\0", b"\xff" * n, b"[" * n, b"9" * n, b'"', b"\n", b"null"))
    return bytes(made)


def read_in_child(path: Path, read: Callable[[Path], bool], said: Path) -> int:
    """Read a file in a child process with limits. Return its status; negative for a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        status = _READ if read(path) else _WRONG
    except PlumblineError as e:
        status = _REFUSED if "\n" not in str(e) else 1
    except BaseException as e:
        said.write_text(f"{type(e).__name__}: {e}", encoding="utf-8", errors="replace")
    os._exit(status)


def fuzz(n_inputs: int, seed: int, here: Path) -> tuple[Counter[str], list[str]]:
    """Return how many inputs were read or refused, by file, and what should not have happened."""
    ends: Counter[str] = Counter()
    findings = []
    cases, said = seeds(here), here / "said.txt"
    for k in range(n_inputs):
        rng = random.Random(f"{seed}-{k}")
        name = rng.choice(sorted(cases))
        path, read = cases[name]
        whole = path.read_bytes()
        path.write_bytes(mutated(whole, rng))
        said.unlink(missing_ok=True)
        status = read_in_child(path, read, said)
        path.write_bytes(whole)
        ends[f"{name}: {'read' if status == _READ else 'refused'}"] += 1
        if status not in (_READ, _REFUSED):
            why = said.read_text() if said.exists() else ""
            findings.append(f"input {k}, {name}: status {status} {why[:300]}")
    return ends, findings


def main() -> int:
    """Print what happened; return status 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options, started = parser.parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        ends, findings = fuzz(options.inputs, options.seed, Path(directory).resolve())
    for name, n in sorted(ends.items()):
        print(f"{name} {n:,}")
    print(f"{options.inputs:,} inputs, {time.monotonic() - started:.0f} s")
    for finding in findings:
        print(f"FOUND {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
