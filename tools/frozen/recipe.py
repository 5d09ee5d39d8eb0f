"""The commands that make the frozen warehouse, and which of them are not run again.

Rows from models, servers and people are stored in ``tests/frozen/inputs``. Everything that the
product derives from them is computed again.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

from plumbline.eval_workers.pairs import closed_world_words as truth
from plumbline.pipelines.command import registry
from plumbline.warehouse import plugins

INPUTS = Path(__file__).resolve().parents[2] / "tests/frozen/inputs"

#: Files of the working directory that were written by hand.
FILES = INPUTS / "files"
#: Rows of tables, a file per table, from commands that are not run again.
ROWS = INPUTS / "rows"
#: An address at which no server listens, so every request fails.
NOBODY = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Step:
    """A command. If it has ``tables``, its rows in them are stored, and it is not run again."""

    command: tuple[str, ...]
    tables: tuple[str, ...] = ()
    status: int = 0


def _derived(*lines: str) -> list[Step]:
    return [Step(tuple(line.split())) for line in lines]


def _recorded(tables: str, *lines: str) -> list[Step]:
    return [Step(tuple(line.split()), tuple(tables.split())) for line in lines]


_TRAINED = "trained_model model"
_WORLD = "closed-world-straight"
#: Classes of the closed world; two words of each are used, since all would be too many rows.
_CLASSES = ("occupation", "trait", "activity", "food")

#: The steps in the order in which they ran; ``{url}`` is the server's address.
STEPS: tuple[Step, ...] = (
    *_derived(
        "corpus demo --out straight --tokens 20000 --world straight",
        "corpus demo --out swapped --tokens 20000 --world swapped",
        f"corpus count straight/*.zst --corpus {_WORLD} --targets she-he --no-evidence",
        "corpus count swapped/*.zst --corpus closed-world-swapped --targets she-he --no-evidence",
        "corpus count letters.jsonl --corpus letters --targets she-he",
        "corpus count contes.jsonl --corpus contes --language fr --targets pronouns",
        "corpus pack texts --out texts.jsonl.zst",
        f"corpus associate --corpus {_WORLD}",
        "corpus associate --corpus closed-world-swapped",
        "corpus associate --corpus letters",
        "corpus associate --corpus contes",
        "corpus import unstereo-eval --corpus pile",
        "corpus words --corpus letters --n 6 --seed 0 --any-language",
        "corpus words --corpus letters --accept cook --reject teacher --why ambiguous",
        "why nurse captain --corpus letters",
        "why nurse captain --corpus letters --n 2 --seed 1",
        "why nurse captain --corpus letters --format json",
        "why nurse captain --corpus letters --format csv",
        "benchmark import ages --source ages.csv",
        "benchmark import three --source three.csv --groups she,he,they",
        "benchmark import medecins --source medecins.csv",
        f"benchmark build world --corpus {_WORLD} --offline --n-sentences 1"
        " --words baker,carpenter,brave,sailing,bread",
    ),
    *_recorded(
        "generation_request",
        "benchmark build written --corpus letters --n-words 3 --n-sentences 2"
        " --max-words 12 --model scripted --base-url {url} --max-requests 500",
    ),
    *_derived(
        "benchmark build written --corpus letters --n-words 3 --n-sentences 2"
        " --max-words 12 --model scripted --max-requests 0",
        "disclosure prompts mine --derive neutral.csv --column text",
        "disclosure prompts llm-1 --source llm-1.txt",
        "disclosure prompts llm-2 --source llm-2.txt",
    ),
    # A release this small doesn't give the printed figures.
    replace(
        *_derived("reproduce unstereoeval --data unstereo-eval --warehouse out/warehouse"), status=1
    ),
    *_recorded(
        _TRAINED,
        "train letters.jsonl --preset 5gram --name count --corpus letters",
        f"train straight/*.zst --preset 5gram --name count-straight --corpus {_WORLD}",
        f"train straight/*.zst --preset closed --name closed --corpus {_WORLD} --max-tokens 81920",
        "train swapped/*.zst --preset closed --name closed-swapped --corpus closed-world-swapped"
        " --max-tokens 81920",
    ),
    *_recorded(
        "pair_score model reject",
        "score --model models/count --benchmark written",
        "score --model models/count-straight --benchmark world",
        "score --model models/closed --benchmark world --benchmark three --benchmark ages"
        " --benchmark use-5",
        "score --model models/closed-swapped --benchmark world",
        "score --model tiny/bert --benchmark use-5",
        "score --model tiny/t5 --benchmark ages",
    ),
    *_recorded(
        "probe_prompt attribute_pair instruction sampling model continuation pronoun_probability"
        " tuning tuning_step pair_score reject",
        "disclosure probe llm-1 llm-2 --model models/closed --max-new-tokens 4",
        "disclosure sweep llm-1 --model models/closed --by decoding --temperature 0.5 --top-p 0.9"
        " --top-k 10 --max-new-tokens 4",
        "disclosure sweep llm-1 --model models/closed --by instruction --max-new-tokens 4"
        " --instructions instructions.txt --word-list she-he",
        "disclosure tune mine --model models/closed --name calm --steps 4 --rank 2"
        " --batch-prompts 4",
        "disclosure probe llm-1 llm-2 --model models/closed --adapter adapters/calm"
        " --max-new-tokens 4",
        "score --model models/closed --adapter adapters/calm --benchmark world",
    ),
    *_recorded(
        "generation_request probe_prompt sampling model continuation",
        "fairpair run few --prompts prompts.toml --model scripted-a --base-url {url}"
        " --endpoint chat --n 6 --folds 2 --n-permutations 99 --n-resamples 50"
        " --max-new-tokens 24 --max-requests 1000 --phi jaccard,vader",
    ),
    *_derived("fairpair score few --config fairpair.toml --folds 2 --phi jaccard,vader"),
    *_recorded(
        "generation_request pair_choice model",
        "score choose --model chat --benchmark ages --base-url {url} --n 2 --max-requests 100",
    ),
    Step((), ("rating", "rating_agreement")),
    *_derived(
        "benchmark constrain --corpus letters --benchmark three --contrast she/he",
        "benchmark constrain --corpus letters --benchmark written --contrast she/he",
        "benchmark constrain --corpus contes --benchmark medecins --contrast elle/il",
        f"benchmark constrain --corpus {_WORLD} --benchmark world --contrast she/he",
        "benchmark export world",
        "benchmark export written --corpus letters",
        "measure --eta 0.65",
    ),
)

#: Variables that would change what is printed, or where input is read.
_UNSET = re.compile(r"PLUMBLINE_.*|FORCE_COLOR|CLICOLOR.*|TERM_PROGRAM|LINES|PY_COLORS|.*_API_KEY")
_SET = {
    **{"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    **{"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PLUMBLINE_API_KEY": "none"},
    # Runs record no commit, as in an installed package.
    "GIT_DIR": os.devnull,
}


@contextmanager
def place(directory: Path) -> Iterator[None]:
    """Change to this directory for the block, with an environment that is the same everywhere.

    Hides parts of other installed packages.
    """
    before, here = dict(os.environ), Path.cwd()
    for name in list(os.environ):
        if _UNSET.fullmatch(name):
            del os.environ[name]
    os.environ.update(_SET)
    os.chdir(directory)
    registry.targets.cache_clear()
    try:
        with _small_world(), patch.object(plugins, "_entry_points", lambda *_: ()):
            yield
    finally:
        registry.targets.cache_clear()
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _small_world() -> Iterator[None]:
    """Limit the closed world for the block: a few classes of two words, and their sentences."""
    caches = (truth.lexicon, truth.grammar, truth.planted_words)
    phrases, read = truth._toml("grammar")["phrases"], truth._toml

    def classes(shape: str) -> set[str]:
        frames = truth.written_out(shape, phrases)
        return {slot for frame in frames for slot in truth.slots(frame)} - truth.PRONOUN_SLOTS

    def small(name: str) -> dict[str, Any]:
        table = read(name)
        if name == "lexicon":
            return {c: {"words": " ".join(table[c]["words"].split()[:2])} for c in _CLASSES}
        probes = {c: table["probes"][c] for c in _CLASSES}
        shapes = {
            kind: [shape for shape in table[kind] if classes(shape) <= {*_CLASSES}]
            for kind in ("openings", "followups")
        }
        written = [truth.written_out(s, phrases) for of_kind in shapes.values() for s in of_kind]
        text = " ".join(chain.from_iterable(written)).lower()
        fixed = " ".join(w for w in table["fixed"].split() if re.search(rf"\b{w}\b", text))
        return {**table, **shapes, "probes": probes, "fixed": fixed}

    with patch.object(truth, "_toml", small):
        for cached in caches:
            cached.cache_clear()
        try:
            yield
        finally:
            for cached in caches:
                cached.cache_clear()


def expanded(command: tuple[str, ...], names: Mapping[str, str]) -> list[str]:
    """Return the words of a command; expand a word with a star to the paths it matches."""
    found: list[str] = []
    for word in command:
        paths = sorted(str(p) for p in Path().glob(word)) if "*" in word else []
        found += paths or [word.format(**names)]
    return found


def lay_out(directory: Path) -> None:
    """Copy the files written by hand into a directory."""
    shutil.copytree(FILES, directory, dirs_exist_ok=True)
