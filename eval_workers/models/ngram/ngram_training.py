"""Train an n-gram model: blocks of numbered words, one vocabulary, then ``count_ngrams``.

The files of each step are kept until the model is complete: an interrupted run resumes.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from safetensors.numpy import load_file, save_file

from plumbline.eval_workers.models.local.source import NGRAM
from plumbline.eval_workers.models.ngram import VERSION, NgramOptions
from plumbline.eval_workers.models.ngram.ngram_counting import count_ngrams, hashed, is_whole
from plumbline.eval_workers.models.ngram.ngram_model import NgramModel
from plumbline.eval_workers.models.ngram.text_words import BOS, UNKNOWN, Ints, numbered_words
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.paths import replacing

#: Most words of the vocabulary, the most frequent ones; all others are ``UNKNOWN``.
MOST_WORDS = 1 << 20
#: Characters of text per block; an interrupted run loses at most one block.
CHARACTERS_OF_BLOCK = 1 << 26
#: Most sentences and words, from the text's beginning, whose loss is reported.
_SENTENCES_OF_LOSS, _WORDS_OF_LOSS = 10_000, 1 << 21


def train(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: NgramOptions,
    key: str,
    work: Path,
    text_field: str = "text",
) -> dict[str, Any]:
    """Write the model to the directory ``work`` and return its columns of ``trained_model``.

    Words are lower-case runs of characters between white space and punctuation marks; a mark is a
    word too. Sentences end at ``SENTENCE_END``. The start loss is the loss of equally likely words,
    the end loss the model's on the first sentences. ``key`` identifies options and shards: files of
    an interrupted run with another key are removed. The caller adds the other columns.
    """
    from transformers import PreTrainedTokenizerFast

    start = time.monotonic()
    scratch = work / key
    if not scratch.is_dir():
        shutil.rmtree(work, ignore_errors=True)
        scratch.mkdir(parents=True)
    blocks = _blocks(shards, text_field, scratch)
    vocabulary, n_tokens = _vocabulary(blocks)
    if not n_tokens:
        raise BadInput(f"corpus {corpus}", "the shards hold no text", "check the shards")
    words = _numbered(blocks, vocabulary, scratch / "words")
    n_words = len(vocabulary) + UNKNOWN + 1
    count_ngrams(words, n_words, options.order, scratch, work)
    sizes = {"order": options.order, "vocab_size": n_words}
    config = json.dumps({"model_type": NGRAM, "version": VERSION, **sizes}, indent=1)
    (work / "config.json").write_text(config, encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(vocabulary), bos_token="<s>")
    tokenizer.save_pretrained(work)
    model = NgramModel.load(work)
    first = np.array(words[:_WORDS_OF_LOSS])
    sentences = np.split(first, np.flatnonzero(first == BOS))[1 : _SENTENCES_OF_LOSS + 1]
    logprobs = list(chain.from_iterable(model.logprobs([s[1:] for s in sentences])))
    shutil.rmtree(scratch)
    return {
        "model": name,
        "corpus": corpus,
        "seed": 0,
        "n_parameters": len(model.words),
        "n_steps": 1,
        "n_tokens": n_tokens,
        "loss_start_nats": math.log(n_words - 1),
        "loss_end_nats": -math.fsum(logprobs) / len(logprobs),
        "seconds": time.monotonic() - start,
    }


def _blocks(shards: Sequence[Path], text_field: str, work: Path) -> list[Path]:
    """Files with the ``numbers`` of words, and with ``letters`` and ``offsets`` of distinct words.

    A block holds whole documents; its ``n_documents`` counts the documents up to its end.
    """
    blocks = list(takewhile(is_whole, sorted(work.glob("*.block"))))
    n_documents = int(load_file(blocks[-1])["n_documents"]) if blocks else 0
    texts = islice((text for x in shards for text in documents(x, text_field)), n_documents, None)
    while block := list(_up_to(CHARACTERS_OF_BLOCK, texts)):
        n_documents += len(block)
        numbers, words = numbered_words(block)
        _, offsets, letters = words.buffers()
        arrays = {"numbers": numbers, "n_documents": np.array(n_documents)}
        arrays["offsets"] = np.frombuffer(offsets, np.int64)[: len(words) + 1]
        arrays["letters"] = np.frombuffer(letters, np.uint8)
        blocks.append(work / f"{len(blocks):08}.block")
        with hashed(blocks[-1]) as path:
            save_file(arrays, path)
    return blocks


def _up_to(n_characters: int, texts: Iterator[str]) -> Iterator[str]:
    """The next texts, up to and including the one that brings them to ``n_characters``."""
    for text in texts:
        yield text
        n_characters -= len(text)
        if n_characters <= 0:
            return


def _vocabulary(blocks: Sequence[Path]) -> tuple[pa.LargeBinaryArray, int]:
    """The ``MOST_WORDS`` most frequent words in alphabetical order, and the number of tokens.

    Words are numbered in this order after ``BOS`` and ``UNKNOWN``.
    """
    table = pa.table({"word": pa.array([], pa.large_binary()), "n": pa.array([], pa.int64())})
    for block in map(load_file, blocks):
        n = np.bincount(block["numbers"], minlength=len(block["offsets"]) + 1)
        counts = pa.table({"word": _words_of(block), "n": n[UNKNOWN + 1 :]})
        table = pa.concat_tables([table, counts]).group_by("word").aggregate([("n", "sum")])
        table = table.select(["word", "n_sum"]).rename_columns(["word", "n"])
    n_tokens = pc.sum(table["n"]).as_py() or 0
    table = table.sort_by([("n", "descending"), ("word", "ascending")])[:MOST_WORDS]
    return table.sort_by("word")["word"].combine_chunks(), n_tokens


def _words_of(block: dict[str, Ints]) -> pa.LargeBinaryArray:
    """The distinct words of a block, in the order of their numbers."""
    buffers = [None, pa.py_buffer(block["offsets"]), pa.py_buffer(block["letters"])]
    return pa.Array.from_buffers(pa.large_binary(), len(block["offsets"]) - 1, buffers)


def _numbered(blocks: Sequence[Path], vocabulary: pa.LargeBinaryArray, path: Path) -> Ints:
    """The words of all blocks as numbers of the vocabulary, with ``BOS`` before every sentence."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.array(BOS, np.uint32).tofile(file)
        for block in map(load_file, blocks):
            places = pc.index_in(_words_of(block), value_set=vocabulary).fill_null(-1).to_numpy()
            numbers = np.concatenate([[BOS, UNKNOWN], places + UNKNOWN + 1]).astype(np.uint32)
            numbers[block["numbers"]].tofile(file)
    return np.memmap(path, np.uint32, "r")[:-1]


def tokenizer_of(vocabulary: pa.LargeBinaryArray) -> Any:
    """A tokenizer of the ``tokenizers`` library that splits like ``text_words``."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    words = ["<s>", "<unk>", *vocabulary.cast(pa.large_string()).to_pylist()]
    numbers = {word: number for number, word in enumerate(words)}  # no word is "<s>": "<" is one
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
