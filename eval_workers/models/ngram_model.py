"""An n-gram model of words, made from counts by interpolated Kneser-Ney smoothing.

    P(w | c) = max(a(cw) - D, 0) / a(c.) + D t(c) / a(c.) P(w | c')

where w is a word, c its context (the words before it) and c' the context without its first word
(Chen and Goodman, 1999, doi:10.1006/csla.1999.0128). a is the count of an n-gram. For the longest
n-grams, and for n-grams that begin a sentence, a is the number of occurrences. For all other
n-grams, a is the number of distinct words before the n-gram. a(c.) is the sum of a(cw) over all
words w, and t(c) is the number of distinct words after c. The empty context backs off to equal
probabilities of all words, including the unknown word.

D is a discount (Ney, Essen and Kneser, 1994). Each n-gram length has its own D = n1 / (n1 + 2 n2).
n1 is the number of n-grams with a = 1, and n2 the number with a = 2.

``train`` turns the words of a text into numbers, and counts n-grams of these with DuckDB.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from plumbline.eval_workers.models import NGRAM
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.text.progress import progress

#: Increase this when a text's probabilities, or the format of a model's files, change.
VERSION = 2
#: Number of words in the longest n-grams of a model.
ORDER = 5
#: The number of the word before each sentence, and the number of all unknown words.
BOS, UNKNOWN = 0, 1
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
WEIGHTS = "model.safetensors"
#: Discount to use if the text is too small to estimate a discount.
_USUAL_DISCOUNT = 0.5

#: A sentence, as the numbers of its words.
Sentence = Sequence[int] | Ints
#: End of an English sentence: a full stop, ! or ? (but no stop after a title such as Mr.), closing
#: quotes or brackets, and white space.
SENTENCE_END = re.compile(r"[.!?](?<!\bMr.)(?<!\bMs.)(?<!\bDr.)(?<!\bMrs.)[\"'”’)]*\s+")
#: Size limit of the vocabulary. The most frequent words are kept. All other words are ``UNKNOWN``.
MOST_WORDS = 1 << 20
#: Number of sentences to tokenise at once, and number of words whose n-grams to count at once.
_SENTENCES_AT_ONCE, WORDS_AT_ONCE = 1 << 14, 1 << 22
#: The reported loss covers at most this many sentences and words, from the beginning of the text.
_SENTENCES_OF_LOSS, _WORDS_OF_LOSS = 10_000, 1 << 21


@dataclass(frozen=True)
class NgramModel:
    """A tree of n-grams. Its nodes are sorted by length: n-grams of one word, of two, and so on.

    The children of a node are the n-grams with one more word at the end, sorted by that word. The
    module's docstring defines a, t and D.

    Attributes:
        levels: index of the first node of each length, followed by the total number of nodes.
        root: a(c.) and t(c) of the empty context.
        discounts: the discount D of each length.
        words: the last word of each n-gram, as a number.
        counts: the count a of each n-gram.
        children: index of the first child of each n-gram, followed by the total number of nodes.
            Neither ``children`` nor ``totals`` includes the longest n-grams.
        totals: a(c.) of each n-gram.
    """

    levels: Ints
    root: Ints
    discounts: np.ndarray[Any, np.dtype[np.float64]]
    words: Ints
    counts: Ints
    children: Ints
    totals: Ints

    @property
    def n_parameters(self) -> int:
        """Number of n-grams of all lengths."""
        return len(self.words)

    @property
    def n_embedded(self) -> int:
        """Number of words, including ``BOS`` and ``UNKNOWN``."""
        return int(self.levels[1])

    def logprobs(self, sentences: Sequence[Sentence]) -> list[list[float]]:
        """Return ln P(word | BOS, earlier words) for every word of each sentence."""
        words, position = laid_out(sentences)
        total, types = map(float, self.root)
        values = np.full(len(words), 1.0 / (self.n_embedded - 1))  # BOS is never predicted
        nodes = words
        for n, discount in enumerate(self.discounts):
            if n:
                context = np.where(position >= n, np.concatenate([[-1], nodes[:-1]]), -1)
                at = np.flatnonzero(context >= 0)
                first, end = (self.children[context[at] + k].astype(np.int64) for k in (0, 1))
                at, first, end = (x[end > first] for x in (at, first, end))
                nodes = np.full(len(words), -1)
                nodes[at] = self._find(words[at], first, end)
                total, types = self.totals[context[at]], end - first
            else:
                at = np.arange(len(words))
            a = np.where(nodes[at] >= 0, self.counts[nodes[at]].astype(np.float64), 0.0)
            values[at] = np.maximum(a - discount, 0) / total + discount * types / total * values[at]
        values[words == BOS] = 1.0
        ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
        return [part.tolist() for part in np.split(np.log(values[position > 0]), ends)]

    def _find(self, words: Ints, first: Ints, end: Ints) -> Ints:
        """Return each word's node among the nodes ``first`` to ``end`` - 1; -1 if it has none."""
        low, high = first, end  # ``low`` becomes the last node with a word <= the given word
        while (high - low > 1).any():
            middle = (low + high) // 2
            is_after = self.words[middle] > words
            low, high = np.where(is_after, low, middle), np.where(is_after, middle, high)
        return np.where(self.words[low] == words, low, -1)

    @classmethod
    def load(cls, directory: Path) -> NgramModel:
        """Open a saved model. Raise ``BadInput`` if its file is damaged."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            return cls(**load_file(directory / WEIGHTS))
        except (OSError, SafetensorError, TypeError) as e:
            problem, fix = f"its {WEIGHTS} is damaged: {e}", "train it or copy it again"
            raise BadInput(f"model {directory}", problem, fix) from e


def save(arrays: Mapping[str, Any], path: Path) -> None:
    """Write arrays to a safetensors file in the given order. Equal arrays give equal bytes.

    safetensors would sort the arrays by name, which would change the hashes of existing models.
    """
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        entry = {"dtype": f"{array.dtype.kind.upper()}{8 * array.itemsize}"}
        header[name] = {**entry, "shape": [*array.shape], "data_offsets": [start, end]}
    content = json.dumps(header).encode()
    content += b" " * (-len(content) % 8)
    with path.open("wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        for array in arrays.values():
            array.tofile(file)


def laid_out(sentences: Sequence[Sentence]) -> tuple[Ints, Ints]:
    """Join sentences, with BOS before each. Return the words and their positions in the sentences.

    >>> [part.tolist() for part in laid_out([[7, 8], [9]])]
    [[0, 7, 8, 0, 9], [0, 1, 2, 0, 1]]
    """
    lengths = np.array([len(sentence) + 1 for sentence in sentences], dtype=np.int64)
    n = int(lengths.sum())
    position = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    words = np.full(n, BOS)
    if n > len(sentences):
        words[position > 0] = np.concatenate(sentences)
    return words, position


def estimated_discount(adjusted: Ints) -> float:
    """Return the discount D of one n-gram length. ``adjusted`` has the count a of each n-gram.

    D is 0.5 if no n-gram has a = 1, or if no n-gram has a = 2.

    >>> estimated_discount(np.array([1, 1, 2, 5])), estimated_discount(np.array([3]))
    (0.5, 0.5)
    """
    ones, twos = (int(np.count_nonzero(adjusted == k)) for k in (1, 2))
    return ones / (ones + 2 * twos) if ones and twos else _USUAL_DISCOUNT


def train(
    shards: Sequence[Path], name: str, corpus: str, work: Path, text_field: str = "text"
) -> dict[str, Any]:
    """Train a model, save it in the directory ``work`` and return columns of ``trained_model``.

    Words are split at white space and put in lower case. Each punctuation mark is also a word.
    Sentences end at ``SENTENCE_END``. The start loss is the loss if all words are equally likely.
    The end loss is the model's loss on the first sentences of the text.
    """
    from transformers import PreTrainedTokenizerFast

    start = time.monotonic()
    work.mkdir(parents=True)
    with progress(f"read the words of {corpus}"):
        vocabulary, words = numbered(lambda: chain(*(documents(x, text_field) for x in shards)))
    n_tokens = int(np.count_nonzero(words != BOS))
    if not n_tokens:
        raise BadInput(f"corpus {corpus}", "the shards hold no text", "check the shards")
    n_words = len(vocabulary) + UNKNOWN + 1
    database = work / "counts.duckdb"
    with progress(f"count n-grams of {corpus}"):
        save(count_ngrams(words, n_words, ORDER, database), work / WEIGHTS)
    database.unlink()
    sizes = {"order": ORDER, "vocab_size": n_words}
    config = json.dumps({"model_type": NGRAM, "version": VERSION, **sizes}, indent=1)
    (work / "config.json").write_text(config, encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(vocabulary), bos_token="<s>")
    tokenizer.save_pretrained(work)
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
    named = ["<s>", "<unk>", *words]  # the tokenizer splits off "<", so no word is "<s>"
    numbers = {word: number for number, word in enumerate(named)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def numbered(texts: Any) -> tuple[list[str], Ints]:
    """Return the sorted vocabulary, and the words of the texts as numbers.

    ``BOS`` precedes each sentence. The function ``texts`` yields the texts, and is called twice.
    """
    tokenizer = tokenizer_of([])
    every = trainers.WordLevelTrainer(vocab_size=1 << 62, show_progress=False)
    tokenizer.train_from_iterator(_sentences(texts()), every)  # no sentence ends inside a word
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
    path of a new file for the data that doesn't fit into memory.
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
    n_children = np.concatenate([level["n_children"] for level in levels])[: starts[-2]]
    children = np.append(starts[1] + np.cumsum(n_children) - n_children, starts[-1])
    totals = np.diff(np.append(0, np.cumsum(a))[children])  # sums of the children's counts
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
    """Return the n-gram of ``order`` words that begins at each of the first ``n`` words.

    The first array has the first word of each n-gram, the second array has the second word, and so
    on. If an n-gram goes beyond the end of its sentence, ``BOS`` fills the remaining places.
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
    """Return SQL that creates the table of the n-grams of ``n`` words.

    The SQL reads the table of the longest n-grams, and the table of n-grams of ``n`` + 1 words. The
    module's docstring defines the column ``a``. ``n_children`` is the number of n-grams that
    extend this n-gram by one word.
    """
    gram = ", ".join(names[:n])
    is_whole = " AND ".join(f"{name} <> {BOS}" for name in names[1:n]) or "true"
    counted = f"SELECT {gram}, sum(n) AS n FROM longest WHERE {is_whole} GROUP BY ALL"
    if n == len(names):
        return f"""CREATE TABLE grams_{n} AS
            SELECT * EXCLUDE (n), n AS a, 0 AS n_children FROM ({counted})"""
    after_first = ", ".join(f"w{k + 1} AS w{k}" for k in range(n))
    return f"""CREATE TABLE grams_{n} AS
        SELECT {gram}, CASE WHEN w0 = {BOS} THEN n ELSE n_before END AS a,
            coalesce(n_children, 0) AS n_children
        FROM ({counted})
        LEFT JOIN (
            SELECT {after_first}, count(*) AS n_before FROM grams_{n + 1} GROUP BY ALL
        ) USING ({gram})
        LEFT JOIN (
            SELECT {gram}, count(*) AS n_children FROM grams_{n + 1} GROUP BY ALL
        ) USING ({gram})"""


def _level(db: duckdb.DuckDBPyConnection, gram: Sequence[str], n_words: int) -> dict[str, Any]:
    """Return the last word, ``a`` and ``n_children`` of each n-gram of one length."""
    query = f"""SELECT {gram[-1]} AS word, a::BIGINT AS a, n_children::BIGINT AS n_children
        FROM grams_{len(gram)} ORDER BY {", ".join(gram)}"""
    found = db.execute(query).fetchnumpy()
    if len(gram) > 1:
        return found
    level: dict[str, Any] = {"word": np.arange(n_words)}  # words that don't occur also get a row
    for column in ("a", "n_children"):
        level[column] = np.zeros(n_words, np.int64)
        level[column][found["word"]] = found[column]
    return level
