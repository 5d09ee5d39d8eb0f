"""A count-based n-gram model of words: interpolated Kneser-Ney over sorted arrays.

    P(w | c) = max(a(cw) - D, 0) / a(c.) + D t(c) / a(c.) P(w | c')

where a(c.) is the sum of a(cw) over words, t(c) the number of distinct words after the context c,
and c' the context without its first word (Chen and Goodman, 1999, doi:10.1006/csla.1999.0128).
a is a count for the longest n-grams and those that begin a sentence, else the number of distinct
words before an n-gram. Below single words every word is equally likely, even unknown ones. D is
that of Ney, Essen and Kneser (1994), of each length: n1 / (n1 + 2 n2) from the numbers of n-grams
with a = 1 and a = 2.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from plumbline.eval_workers.models.local.source import NGRAM
from plumbline.eval_workers.models.ngram import SENTENCE_END, NgramOptions
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.shards import DEFAULT, RecordForm, documents

#: To be raised when the probabilities of a text change.
VERSION = 1
#: The start of every sentence, and words that the text lacks.
BOS, UNKNOWN = 0, 1
#: Number of most frequent words that are counted; others are one word, ``UNKNOWN``.
MOST_WORDS = 1 << 20
#: Of a text too small for an estimate.
_USUAL_DISCOUNT = 0.5
_SENTENCES_AT_ONCE = 100_000
_SENTENCES_OF_LOSS = 10_000
_WEIGHTS = "model.safetensors"

Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
#: A sentence: the numbers of its words.
Sentence = Sequence[int] | Ints
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of one length in a text.

    ``keys`` (sorted) are the number of an n-gram's first n-1 words among those of that length,
    times the number of words, plus the last word; of single words, their own numbers.
    ``probabilities`` are P(last word | the words before it). ``left`` of an n-gram is the
    probability left for words never seen after it; 1 where none was seen.
    """

    keys: Ints
    probabilities: Floats
    left: Floats

    def find(self, keys: Ints) -> Ints:
        """The number of each key's n-gram, -1 without one."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)


@dataclass(frozen=True)
class NgramModel:
    """N-grams of 1 word, 2 words, and so on; words are numbers from 0, ``BOS`` and ``UNKNOWN``.

    >>> model = count([[2, 3], [2, 4]], n_words=5, order=2)
    >>> [round(float(np.exp(x)), 3) for x in model.logprobs([[2, 3]])[0]]
    [0.823, 0.396]
    """

    n_words: int
    lengths: tuple[Ngrams, ...]

    def logprobs(self, sentences: Sequence[Sentence]) -> list[list[float]]:
        """ln P(word | BOS, earlier words) in nats of every word of each sentence."""
        words, position = laid_out(sentences)
        ids, values = words, self.lengths[0].probabilities[words]
        for n, ngrams in enumerate(self.lengths[1:], start=2):
            if not len(ngrams.keys):
                break  # no sentence of the text was that long
            context = np.where(position >= n - 1, np.concatenate([[-1], ids[:-1]]), -1)
            ids = np.where(context >= 0, ngrams.find(context * self.n_words + words), -1)
            left = np.where(context >= 0, self.lengths[n - 2].left[context], 1.0)
            values = np.where(ids >= 0, ngrams.probabilities[ids], left * values)
        ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
        return [part.tolist() for part in np.split(np.log(values[position > 0]), ends)]

    def save(self, directory: Path) -> None:
        """Write the arrays and a configuration."""
        arrays = {
            f"{name}_{n}": value
            for n, ngrams in enumerate(self.lengths, start=1)
            for name, value in vars(ngrams).items()
        }
        save_file(arrays, directory / _WEIGHTS)
        config = {"model_type": NGRAM, "order": len(self.lengths), "vocab_size": self.n_words}
        (directory / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, directory: Path, order: int, n_words: int) -> NgramModel:
        """Load a saved model; raises ``BadInput`` for one that is damaged."""
        names = ("keys", "probabilities", "left")
        try:
            arrays = load_file(directory / _WEIGHTS)
            lengths = [Ngrams(*(arrays[f"{x}_{n}"] for x in names)) for n in range(1, order + 1)]
        except (OSError, SafetensorError, KeyError) as e:
            problem, fix = f"its {_WEIGHTS} is damaged: {e}", "train it again, or copy it anew"
            raise BadInput(f"model {directory}", problem, fix) from e
        return cls(n_words, tuple(lengths))


def laid_out(sentences: Sequence[Sentence]) -> tuple[Ints, Ints]:
    """Concatenated sentences, each after a BOS, and every word's position; a BOS has 0.

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


def count(
    sentences: Sequence[Sentence],
    n_words: int,
    order: int,
    discounts: Sequence[float] | None = None,
) -> NgramModel:
    """The model of some sentences, whose words are numbers from ``UNKNOWN`` to ``n_words`` - 1.

    ``discounts``: D of each length, by default from the counts. Memory is about 300 bytes per word
    of the text.
    """
    words, position = laid_out(sentences)
    occurrences = np.bincount(words, minlength=n_words)
    ids, lengths, adjusted = [words], [np.arange(n_words)], []
    firsts = [np.array([], dtype=np.int64)]
    for n in range(2, order + 1):
        ends = np.flatnonzero(position >= n - 1)
        keys, first, inverse, counts = np.unique(
            ids[-1][ends - 1] * n_words + words[ends],
            return_index=True, return_inverse=True, return_counts=True,
        )  # fmt: skip
        every = np.full(len(words), -1)
        every[ends] = inverse
        adjusted.append(np.bincount(ids[-1][ends[first]], minlength=len(lengths[-1])))
        if n > 2:  # nothing is before a sentence's beginning
            begins = position[firsts[-1]] == n - 2
            adjusted[-1][begins] = occurrences[begins]
        ids.append(every)
        lengths.append(keys)
        firsts.append(ends[first])
        occurrences = counts
    adjusted.append(occurrences)
    adjusted[0][BOS] = 0
    return _smoothed(n_words, lengths, adjusted, ids, firsts, discounts)


def _smoothed(
    n_words: int,
    keys: Sequence[Ints],
    adjusted: Sequence[Ints],
    ids: Sequence[Ints],
    firsts: Sequence[Ints],
    discounts: Sequence[float] | None,
) -> NgramModel:
    """Probabilities, shortest n-grams first; ``firsts``: the last word of each one's occurrence."""
    made: list[Ngrams] = []
    below = np.full(n_words, 1.0 / (n_words - 1))  # BOS is never predicted
    contexts: Ints = np.zeros(n_words, dtype=np.int64)
    for n, (own, a) in enumerate(zip(keys, adjusted, strict=True), start=1):
        discount = _discount(a) if discounts is None else discounts[n - 1]
        if n > 1:
            contexts = own // n_words
            below = made[-1].probabilities[ids[n - 2][firsts[n - 1]]]
        n_contexts = len(keys[n - 2]) if n > 1 else 1
        total = np.bincount(contexts, weights=a, minlength=n_contexts)
        types = np.bincount(contexts, weights=a > 0, minlength=n_contexts)
        left = np.divide(discount * types, total, out=np.ones(n_contexts), where=total > 0)
        seen = np.maximum(a - discount, 0) / np.maximum(total, 1)[contexts]
        if n > 1:
            made[-1] = Ngrams(made[-1].keys, made[-1].probabilities, left)
        made.append(Ngrams(own, seen + left[contexts] * below, np.ones(0)))
    made[0].probabilities[BOS] = 1.0
    return NgramModel(n_words, tuple(made))


def _discount(counts: Ints) -> float:
    """Ney, Essen and Kneser's estimate from the counts that are 1 and 2.

    >>> _discount(np.array([1, 1, 2, 5])), _discount(np.array([3]))
    (0.5, 0.5)
    """
    ones, twos = (int((counts == k).sum()) for k in (1, 2))
    return ones / (ones + 2 * twos) if ones and twos else _USUAL_DISCOUNT


def train(
    shards: Sequence[Path],
    name: str,
    corpus: str,
    options: NgramOptions,
    work: Path,
    form: RecordForm = DEFAULT,
) -> dict[str, Any]:
    """Count into the directory ``work`` and return the columns of ``trained_model``.

    Words are lowercase runs of characters between white space and punctuation marks, and every
    mark. Sentences end at ``SENTENCE_END``. The start loss is that of equally likely words, the end
    loss that of the first sentences of the text. Columns ``path`` and ``run_id`` are the caller's.
    """
    from transformers import PreTrainedTokenizerFast

    start = time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    texts = [text for shard in shards for text in documents(shard, form)]
    tokenizer = _tokenizer(texts)
    n_words = tokenizer.get_vocab_size()
    sentences = list(_sentences(texts, tokenizer))
    del texts
    if not sentences:
        raise BadInput(f"corpus {corpus}", "the shards hold no text", "check the shards")
    model = count(sentences, n_words, options.order)
    logprobs = list(itertools.chain.from_iterable(model.logprobs(sentences[:_SENTENCES_OF_LOSS])))
    model.save(work)
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    whole.save_pretrained(work)
    return {
        "model": name,
        "corpus": corpus,
        "seed": 0,
        "n_parameters": sum(len(ngrams.keys) for ngrams in model.lengths),
        "n_steps": 1,
        "n_tokens": sum(map(len, sentences)),
        "loss_start_nats": math.log(n_words - 1),
        "loss_end_nats": -math.fsum(logprobs) / len(logprobs),
        "seconds": time.monotonic() - start,
    }


def _tokenizer(texts: Sequence[str]) -> Any:
    """The words of some texts, numbered in alphabetical order after ``BOS`` and ``UNKNOWN``."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    def made(model: models.WordLevel) -> Tokenizer:
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    counted = made(models.WordLevel(unk_token="<unk>"))
    trainer = trainers.WordLevelTrainer(vocab_size=MOST_WORDS, show_progress=False)
    counted.train_from_iterator(texts, trainer, length=len(texts))
    words = ["<s>", "<unk>", *sorted(counted.get_vocab())]  # "<" is a word of its own
    numbers = {word: number for number, word in enumerate(words)}
    return made(models.WordLevel(numbers, unk_token="<unk>"))


def _sentences(texts: Sequence[str], tokenizer: Any) -> Iterator[Ints]:
    """The words of each sentence that has any."""
    sentences = (sentence for text in texts for sentence in _cut(text))
    while batch := list(itertools.islice(sentences, _SENTENCES_AT_ONCE)):
        encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        yield from (np.array(e.ids, dtype=np.int32) for e in encoded if e.ids)


def _cut(text: str) -> Iterator[str]:
    """The sentences of a text."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]
