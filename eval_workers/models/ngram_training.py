"""Train an n-gram model: number the words of a text, and count n-grams of them with DuckDB."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from plumbline.eval_workers.models import NGRAM
from plumbline.eval_workers.models.ngram_model import (
    BOS,
    ORDER,
    UNKNOWN,
    VERSION,
    WEIGHTS,
    Ints,
    NgramModel,
    estimated_discount,
    save,
)
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.text.progress import Update

#: End of an English sentence: a full stop, ! or ? (but no stop after a title such as Mr.), closing
#: quotes or brackets, and white space.
SENTENCE_END = re.compile(r"[.!?](?<!\bMr.)(?<!\bMs.)(?<!\bDr.)(?<!\bMrs.)[\"'”’)]*\s+")
#: Size limit of the vocabulary. The most frequent words are kept. All other words are ``UNKNOWN``.
MOST_WORDS = 1 << 20
#: Number of sentences to tokenise at a time, and of words whose n-grams to count at a time.
_SENTENCES_AT_ONCE, WORDS_AT_ONCE = 1 << 14, 1 << 22
#: The reported loss covers at most this many sentences and words, from the beginning of the text.
_SENTENCES_OF_LOSS, _WORDS_OF_LOSS = 10_000, 1 << 21


def train(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    work: Path,
    text_field: str = "text",
    progress: Update | None = None,
) -> dict[str, Any]:
    """Train a model, save it in the directory ``work`` and return columns of ``trained_model``.

    Words are split at white space and put in lower case. Each punctuation mark is also a word.
    Sentences end at ``SENTENCE_END``. The start loss is the loss if all words are equally likely.
    The end loss is the model's loss on the first sentences. The caller adds the other columns.
    """
    from transformers import PreTrainedTokenizerFast

    start, update = time.monotonic(), progress or (lambda *_, **__: None)
    work.mkdir(parents=True)
    update(0, 0, "1 of 3: reading the words")
    vocabulary, words = numbered(lambda: chain(*(documents(x, text_field) for x in shards)))
    n_tokens = int(np.count_nonzero(words != BOS))
    if not n_tokens:
        raise BadInput(f"corpus {corpus}", "the shards hold no text", "check the shards")
    n_words = len(vocabulary) + UNKNOWN + 1
    update(0, 0, "2 of 3: counting n-grams")
    database = work / "counts.duckdb"
    save(count_ngrams(words, n_words, ORDER, database), work / WEIGHTS)
    database.unlink()
    sizes = {"order": ORDER, "vocab_size": n_words}
    config = json.dumps({"model_type": NGRAM, "version": VERSION, **sizes}, indent=1)
    (work / "config.json").write_text(config, encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(vocabulary), bos_token="<s>")
    tokenizer.save_pretrained(work)
    update(0, 0, "3 of 3: computing the loss")
    model = NgramModel.load(work)
    first = words[:_WORDS_OF_LOSS]
    sentences = np.split(first, np.flatnonzero(first == BOS))[1 : _SENTENCES_OF_LOSS + 1]
    logprobs = list(chain.from_iterable(model.logprobs([s[1:] for s in sentences])))
    return {
        "model": name,
        "corpus": corpus,
        "seed": 0,
        "n_parameters": model.n_parameters,
        "n_steps": 1,
        "n_tokens": n_tokens,
        "loss_start_nats": math.log(n_words - 1),
        "loss_end_nats": -math.fsum(logprobs) / len(logprobs),
        "seconds": time.monotonic() - start,
    }


def tokenizer_of(words: Sequence[str]) -> Tokenizer:
    """Return a tokenizer that numbers these words, starting after ``BOS`` and ``UNKNOWN``."""
    named = ["<s>", "<unk>", *words]  # "<" is a word by itself, so no word is "<s>"
    numbers = {word: number for number, word in enumerate(named)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def numbered(texts: Any) -> tuple[list[str], Ints]:
    """Return the sorted vocabulary, and the words of the texts as numbers.

    ``BOS`` precedes each sentence. ``texts`` is a function that yields the texts. It is called
    twice.
    """
    tokenizer = tokenizer_of([])
    every = trainers.WordLevelTrainer(vocab_size=1 << 62, show_progress=False)
    tokenizer.train_from_iterator(_sentences(texts()), every)  # a sentence's end also ends a word
    counted = tokenizer.get_vocab()
    parts = [np.empty(0, np.uint32)]
    left = _sentences(texts())
    while sentences := list(islice(left, _SENTENCES_AT_ONCE)):
        for encoding in tokenizer.encode_batch_fast(sentences, add_special_tokens=False):
            if encoding.ids:
                parts.append(np.array([0, *(1 + number for number in encoding.ids)], np.uint32))
    words = np.concatenate(parts)
    n = np.bincount(words, minlength=len(counted) + 1)
    by_count = sorted(counted, key=lambda word: (-n[1 + counted[word]], word))
    vocabulary = sorted(by_count[:MOST_WORDS])
    numbers = np.full(len(counted) + 1, UNKNOWN, np.uint32)
    numbers[0] = BOS
    numbers[[1 + counted[word] for word in vocabulary]] = np.arange(len(vocabulary)) + UNKNOWN + 1
    return vocabulary, numbers[words]


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
        yield from (text[start:end] for start, end in pairwise(ends))


def count_ngrams(words: Ints, n_words: int, order: int, database: Path) -> dict[str, Any]:
    """Count the n-grams of all lengths, and return the arrays of an ``NgramModel``.

    ``words`` are numbers below ``n_words``, with ``BOS`` before every sentence. ``database`` is the
    path of a new file, which takes the data that doesn't fit into memory.
    """
    names = [f"w{k}" for k in range(order)]
    with duckdb.connect(str(database)) as db:
        columns = ", ".join(f"{name} UINTEGER" for name in names)
        db.execute(f"CREATE TABLE longest ({columns}, n BIGINT)")
        for start in range(0, len(words), WORDS_AT_ONCE):
            piece = _longest(words[start : start + WORDS_AT_ONCE + order], WORDS_AT_ONCE, order)
            db.register("piece", pa.table(piece, names=names))
            db.execute("INSERT INTO longest SELECT *, count(*) FROM piece GROUP BY ALL")
        for n in range(order, 0, -1):
            db.execute(_grams_sql(names, n))
        levels = [_level(db, names[:n], n_words) for n in range(1, order + 1)]
    starts = np.cumsum([0, *(len(level["word"]) for level in levels)])
    a = np.concatenate([level["a"] for level in levels])
    a[BOS] = 0  # BOS is never predicted
    n_children = np.concatenate([level["n_children"] for level in levels[:-1]] or [[]])
    children = np.append(starts[1] + np.cumsum(n_children) - n_children, starts[-1])
    totals = np.concatenate([level["total"] for level in levels[:-1]] or [[]])
    counts = np.uint32 if len(words) < 1 << 32 else np.uint64
    return {
        "levels": starts,
        "root": np.array([a[:n_words].sum(), np.count_nonzero(a[:n_words])]),
        "discounts": np.array([estimated_discount(a[i:end]) for i, end in pairwise(starts)]),
        "words": np.concatenate([level["word"] for level in levels]).astype(counts),
        "counts": a.astype(counts),
        "children": children.astype(counts),
        "totals": totals.astype(counts),
    }


def _longest(words: Ints, n: int, order: int) -> list[Ints]:
    """Return the n-grams of length ``order`` that begin at the first ``n`` words.

    If an n-gram reaches the end of its sentence, ``BOS`` fills the remaining places.
    """
    padded = np.append(words, np.full(order, BOS, words.dtype))
    columns = [words[:n]]
    is_inside = np.ones(len(columns[0]), bool)
    for k in range(1, order):
        column = padded[k : k + len(columns[0])]
        is_inside = is_inside & (column != BOS)
        columns.append(np.where(is_inside, column, BOS).astype(words.dtype))
    return columns


def _grams_sql(names: Sequence[str], n: int) -> str:
    """Return SQL that makes the table of n-grams of ``n`` words.

    The SQL reads the tables of the longest n-grams and of the n-grams of ``n`` + 1 words. For the
    longest n-grams, and for n-grams that begin a sentence, ``a`` is the number of occurrences. For
    all others, it is the number of distinct words before the n-gram. ``n_children`` is the number
    of n-grams that add one word at the end, and ``total`` is the sum of ``a`` over these.
    """
    gram = ", ".join(names[:n])
    is_whole = " AND ".join(f"{name} <> {BOS}" for name in names[1:n]) or "true"
    counted = f"SELECT {gram}, sum(n) AS n FROM longest WHERE {is_whole} GROUP BY ALL"
    if n == len(names):
        return f"""CREATE TABLE grams_{n} AS
            SELECT * EXCLUDE (n), n AS a, 0 AS n_children, 0 AS total FROM ({counted})"""
    after_first = ", ".join(f"w{k + 1} AS w{k}" for k in range(n))
    return f"""CREATE TABLE grams_{n} AS
        SELECT {gram}, CASE WHEN w0 = {BOS} THEN n ELSE n_before END AS a,
            coalesce(n_children, 0) AS n_children, coalesce(total, 0) AS total
        FROM ({counted})
        LEFT JOIN (
            SELECT {after_first}, count(*) AS n_before FROM grams_{n + 1} GROUP BY ALL
        ) USING ({gram})
        LEFT JOIN (
            SELECT {gram}, count(*) AS n_children, sum(a) AS total FROM grams_{n + 1} GROUP BY ALL
        ) USING ({gram})"""


def _level(db: duckdb.DuckDBPyConnection, gram: Sequence[str], n_words: int) -> dict[str, Any]:
    """Return the last word, ``a``, ``n_children`` and ``total`` of each n-gram of one length."""
    query = f"""SELECT {gram[-1]} AS word, a::BIGINT AS a, n_children::BIGINT AS n_children,
        total::BIGINT AS total FROM grams_{len(gram)} ORDER BY {", ".join(gram)}"""
    found = db.execute(query).fetchnumpy()
    if len(gram) > 1:
        return found
    level: dict[str, Any] = {"word": np.arange(n_words)}  # including words that begin no n-gram
    for column in ("a", "n_children", "total"):
        level[column] = np.zeros(n_words, np.int64)
        level[column][found["word"]] = found[column]
    return level
