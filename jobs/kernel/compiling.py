"""Compile the kernel ahead of its first use."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from plumbline.jobs.kernel.cache import is_cached
from plumbline.jobs.kernel.chunk_words import IdState
from plumbline.jobs.kernel.chunks import ChunkCache, scan
from plumbline.jobs.kernel.cooccurrences import RULES, TargetPairs
from plumbline.jobs.kernel.json_parser import ReaderState, read_lines
from plumbline.jobs.kernel.memory import new_record
from plumbline.jobs.kernel.pair_runs import PairRuns
from plumbline.jobs.kernel.tokenizer import tokenize
from plumbline.jobs.kernel.words import WordState


def compile_tokenizer() -> None:
    """Compile the tokenizer, or load it from the cache."""
    tokenize("tea")


def _compile_counter(rules: tuple[str, ...], all_pairs: bool) -> None:
    """Compile the reader and the counting by these rules, or load them from the cache."""
    words, ids = new_record(WordState), new_record(IdState)
    read_lines(new_record(ReaderState), words, 0)
    ChunkCache().grow()
    for rule in rules:
        pairs = TargetPairs(["she"], rule, 2)
        pairs.count(words, ids)
        pairs.grow(0)
    if all_pairs:
        runs = PairRuns()
        runs.add(np.zeros(1, np.int64), 1)
        list(runs.chunks())


def warm_up(everything: bool = False) -> None:
    """Compile the kernel and cache it, or load it from the cache.

    Without ``everything``, leave out functions that only the rule ``windows`` or all pairs need.
    A child process compiles the tokenizer, half of the work, at the same time.
    """
    child = None if is_cached(scan) else _start_tokenizer_compiler()
    _compile_counter(RULES if everything else ("pairs",), all_pairs=everything)
    if child:
        child.wait()
    compile_tokenizer()


def _start_tokenizer_compiler() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    compile_command = [sys.executable, "-P", "-m", "plumbline.jobs.kernel", "tokenizer"]
    return subprocess.Popen(compile_command, env={**os.environ, "PYTHONPATH": paths})
