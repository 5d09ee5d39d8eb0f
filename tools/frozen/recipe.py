"""Which commands make the frozen warehouse, and which of them are not run again.

What models, servers and people produced is kept in ``tests/frozen/inputs``; everything that the
product derives from it is computed anew.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INPUTS = Path(__file__).resolve().parents[2] / "tests/frozen/inputs"

#: Files of the working directory that are written by hand.
FILES = INPUTS / "files"
#: Rows of tables, a file per table, from commands that are not run again.
ROWS = INPUTS / "rows"
#: An address at which nobody listens: whoever asks it fails.
NOBODY = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Step:
    """A command; where ``tables`` are named its rows of these are kept, and it is not run again."""

    command: tuple[str, ...]
    tables: tuple[str, ...] = ()


def _derived(*lines: str) -> list[Step]:
    return [Step(tuple(line.split())) for line in lines]


def _recorded(tables: str, *lines: str) -> list[Step]:
    return [Step(tuple(line.split()), tuple(tables.split())) for line in lines]


_TRAINED = "trained_model model"
_WORLD = "closed-world-straight"
_SEEDS = (
    "baker,chef,pilot,poet,nurse,tailor,brave,gentle,lantern,kettle,violin,sailing,"
    "clever,loyal,proud,shy,knife,mirror,clock,necklace,knitting,hunting,chess,sewing"
)

#: In the order in which they ran; ``{url}`` is the server's address.
STEPS: tuple[Step, ...] = (
    *_derived(
        "corpus demo --out straight --tokens 40000 --world straight",
        "corpus demo --out swapped --tokens 40000 --world swapped",
        f"corpus count straight/*.zst --corpus {_WORLD} --targets she-he --no-evidence",
        "corpus count swapped/*.zst --corpus closed-world-swapped --targets she-he --no-evidence",
        "corpus count letters.jsonl --corpus letters --targets gendered",
        f"corpus associate --corpus {_WORLD}",
        "corpus associate --corpus closed-world-swapped",
        "corpus associate --corpus letters",
        "corpus vocabulary --corpus letters --any-language",
        "corpus words --corpus letters --n 6 --seed 0",
        "corpus vet --corpus letters --accept cook --reject teacher --why ambiguous",
        "why nurse captain cook --corpus letters",
        "why nurse captain --corpus letters --format markdown --n 2 --seed 1",
        "why nurse captain --corpus letters --format json",
        "why nurse captain --corpus letters --format csv",
        "corpus compare letters:letters letters:diaries",
        "benchmark import ages --source ages.csv",
        "benchmark import three --source three.csv --groups she,he,they",
        f"benchmark build world --corpus {_WORLD} --offline --words {_SEEDS}",
    ),
    *_recorded(
        "generation_request",
        "benchmark build written --corpus letters --words lamp,kettle,bridge,cook --n-sentences 3"
        " --max-words 12 --model scripted --base-url {url} --max-requests 500",
    ),
    *_derived(
        "benchmark build written --corpus letters --words lamp,kettle,bridge,cook --n-sentences 3"
        " --max-words 12 --model scripted --max-requests 500 --replay",
    ),
    *_recorded(
        _TRAINED,
        "train letters.jsonl --preset 5gram --name count --corpus letters",
        f"train straight/*.zst --preset 5gram --name count-straight --corpus {_WORLD}",
        f"train straight/*.zst --preset closed --name closed --corpus {_WORLD}"
        " --max-tokens 163840 --checkpoints 8",
        "train swapped/*.zst --preset closed --name closed-swapped --corpus closed-world-swapped"
        " --max-tokens 163840",
    ),
    *_recorded(
        "pair_score token_logprob model reject",
        "score --model models/count --benchmark ages --benchmark three --benchmark written"
        " --per-token",
        "score --model models/count-straight --benchmark world",
        *(
            f"score --model models/closed/checkpoints/step{step} --benchmark world"
            for step in range(0, 160, 20)
        ),
        "score --model models/closed --benchmark world --benchmark three --benchmark ages"
        " --benchmark written",
        "score --model models/closed-swapped --benchmark world --benchmark three"
        " --benchmark written",
    ),
    *_recorded(
        "corpus corpus_shard word_list word_count pair_count step_word_count step_pair_count",
        "corpus count models/closed/text.bin --tokenizer models/closed --step-sequences 8"
        " --block-steps 80 --corpus steps --targets she-he",
    ),
    *_derived(
        "benchmark export-ratings world --pairs 12 --raters ana,ben,cleo --per-pair 2 --out sheets",
        "benchmark import-ratings answers/ana.csv answers/ben.csv answers/cleo.csv",
        "disclosure prompts mine --derive neutral.csv --column text",
    ),
    *_recorded(
        "probe_prompt attribute_pair instruction sampling model continuation pronoun_probability"
        " tuning tuning_step pair_score perplexity",
        "disclosure probe mine --model models/closed,models/closed/checkpoints/step0"
        " --max-new-tokens 4",
        "disclosure sweep mine --model models/closed --by decoding --temperature 0.5,1 --top-p 0.9"
        " --top-k 10 --n 2 --max-new-tokens 4",
        "disclosure tune closed-world-train --model models/closed --name calm --steps 4 --rank 2"
        " --batch-prompts 4",
        "disclosure compare models/closed adapters/calm --sets mine --benchmarks world"
        " --text held.jsonl --window 32 --gas-tokens 4",
    ),
    *_recorded(
        "generation_request probe_prompt sampling model continuation",
        "fairpair run few --prompts prompts.toml --model scripted-a,scripted-b --base-url {url}"
        " --endpoint chat --n 12 --folds 2 --n-permutations 99 --n-resamples 50"
        " --max-new-tokens 24 --max-requests 1000 --phi jaccard,vader",
    ),
    *_derived("fairpair score few --config fairpair.toml --folds 2 --phi jaccard,vader"),
    *_recorded(
        "intervention_arm trained_model model pair_score",
        f"intervene run straight/*.zst --name exchange --corpus {_WORLD} --benchmark world"
        " --preset closed --max-tokens 8000 --doses 0,1 --seeds 2 --placebo friends,nobody",
    ),
    *_recorded(
        "generation_request pair_choice model",
        "choose --model chat --benchmark ages --base-url {url} --n 2 --max-requests 100",
    ),
    *_derived(
        "constrain --corpus letters --benchmark ages --contrast she/he",
        "constrain --corpus letters --benchmark three --contrast she/he",
        "constrain --corpus letters --benchmark written --contrast she/he",
        f"constrain --corpus {_WORLD} --benchmark world --contrast she/he",
        "constrain --corpus closed-world-swapped --benchmark world --contrast she/he",
        "measure",
    ),
)

#: Variables that would change what is printed or where it is read.
_UNSET = re.compile(r"PLUMBLINE_.*|FORCE_COLOR|CLICOLOR.*|TERM_PROGRAM|LINES|PY_COLORS|.*_API_KEY")
_SET = {
    **{"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    **{"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PLUMBLINE_API_KEY": "none"},
    # Runs record no commit, as in an installed package.
    "GIT_DIR": os.devnull,
}


@contextmanager
def place(directory: Path) -> Iterator[None]:
    """Inside, the working directory is this one, and the environment is the same everywhere."""
    before, here = dict(os.environ), Path.cwd()
    for name in list(os.environ):
        if _UNSET.fullmatch(name):
            del os.environ[name]
    os.environ.update(_SET)
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def expanded(command: tuple[str, ...], names: Mapping[str, str]) -> list[str]:
    """The words of a command; a word with a star is the paths that it matches."""
    found: list[str] = []
    for word in command:
        paths = sorted(str(p) for p in Path().glob(word)) if "*" in word else []
        found += paths or [word.format(**names)]
    return found


def lay_out(directory: Path) -> None:
    """Put the files written by hand into a directory."""
    shutil.copytree(FILES, directory, dirs_exist_ok=True)
    lines = (directory / "letters.jsonl").read_text("utf-8").splitlines(keepends=True)
    (directory / "held.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
