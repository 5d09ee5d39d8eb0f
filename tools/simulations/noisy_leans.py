"""Slopes on leans that were counted in a sample of what a model read."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, documents
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_words
from plumbline.jobs.kernel.tokens.tokenizer import tokenize_all
from plumbline.pipelines.report.findings.fits import LEAST_RELIABLE
from tools.simulations.fits import Bounds, Floats, Row, centred, hc3_df, line, t975

ABOUT = (
    "A model follows the leans of a closed world of 3 million words with a slope of 0.8 nats per "
    "nat; they are counted in a sample of its documents. Coverage of the 95% intervals, in "
    "percent, of the slope and of the corrected slope with errors over documents, and of the "
    "corrected slope with errors from counts."
)
DRAWS = 200
#: Words of the sampled text, and words that are fitted.
SAMPLES = (
    *((60_000, n) for n in (40, 84)),
    *((300_000, n) for n in (40, 84, 574)),
    *((3_000_000, n) for n in (40, 84, 574)),
)
#: Hundreds of rare words: the bias of logarithms of small counts is as large as the interval.
RARE = (150_000, 574)
FOLLOWED = 0.8
_TEXT, _NEAR = 3_000_000, 9


def rows(draws: int, seed: int) -> list[Row]:
    """A line per size of the sample and number of words."""
    rng = np.random.default_rng(seed)
    return [of_sample(rng, *sample, draws) for sample in (*SAMPLES, RARE)]


class Leans(NamedTuple):
    """Deltas of words, their errors over documents and from counts, and which words have them."""

    delta: Floats
    of_documents: Floats
    of_counts: Floats
    known: npt.NDArray[np.bool_]


@cache
def _text() -> tuple[list[Any], Floats]:
    """A closed world's co-occurrences of words with she and he, and these pronouns, by document."""
    place = {word.word: k for k, word in enumerate(planted_words(0))}
    texts, n_words = [], 0
    for text, n in documents(WorldOptions(), 0):
        texts.append(text)
        n_words += n
        if n_words >= _TEXT:
            break
    targets = ("she", "he")
    found: tuple[list[tuple[int, int]], ...] = ([], [])
    pronouns = np.zeros((2, len(texts)))
    for document, words in enumerate(tokenize_all(texts, targets, "")):
        for at, word in enumerate(words):
            if word not in targets:
                continue
            side = targets.index(word)
            pronouns[side, document] += 1
            near = words[max(at - _NEAR, 0) : at] + words[at + 1 : at + _NEAR + 1]
            found[side].extend((document, place[w]) for w in near if w in place)
    shape = (len(texts), len(place))
    return [_counted(of, shape) for of in found], pronouns


def _counted(found: list[tuple[int, int]], shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_matrix

    documents, words = np.array(found).T
    return csr_matrix((np.ones(len(found)), (documents, words)), shape=shape)


def _leans(times: Floats) -> Leans:
    """Of a text in which each document stands so many times; as in `jobs/evidence/lean.py`."""
    near, pronouns = _text()
    delta, over, by_count, known = 0.0, 0.0, 0.0, True
    for sign, counts, n in zip((1, -1), near, pronouns, strict=True):
        c, total = times @ counts, times @ n
        with np.errstate(divide="ignore", invalid="ignore"):
            delta = delta + sign * np.log(c / total)
            by_count = by_count + 1 / c
            # A document is about one person, so it holds one of the pronouns.
            both = (times @ counts.multiply(n[:, None])) / (c * total)
            squares = (times @ counts.power(2)) / c**2
            over = over + squares - 2 * both + (times @ n**2) / total**2
        known = known & (c > 0)
    return Leans(*(np.asarray(v) for v in (delta, np.sqrt(over), np.sqrt(by_count), known)))


def of_sample(rng: np.random.Generator, n_tokens: int, n: int, draws: int) -> Row:
    """Coverage of the slope that a model of the whole text follows, from samples of documents."""
    n_documents = _text()[1].shape[1]
    whole = _leans(np.ones(n_documents))
    plain, shares, of_documents, of_counts = [], [], [], []
    for _ in range(draws):
        sample = rng.integers(0, n_documents, n_documents * n_tokens // _TEXT)
        leans = _leans(np.bincount(sample, minlength=n_documents).astype(float))
        chosen = rng.permutation(whole.delta.size)[:n]
        kept = chosen[leans.known[chosen]]
        x, y = leans.delta[kept], FOLLOWED * whole.delta[kept] + rng.normal(0, 0.5, kept.size)
        plain.append(line(x[None], y[None]).covers(FOLLOWED))
        share, bounds = corrected(x, y, leans.of_documents[kept])
        shares.append(share)
        if share >= LEAST_RELIABLE:
            of_documents.append(bounds)
        of_counts.append(corrected(x, y, leans.of_counts[kept])[1].covers(FOLLOWED))
    return {
        "tokens": n_tokens,
        "words": n,
        "reliability": float(np.mean(shares)),
        "slope": float(np.mean(plain)),
        "corrected": float(np.mean([of.covers(FOLLOWED) for of in of_documents])),
        "mean corrected slope": float(np.mean([of.figure for of in of_documents])),
        "errors from counts": float(np.mean(of_counts)),
    }


def corrected(x: Floats, y: Floats, error: Floats) -> tuple[float, Bounds]:
    """Reliability of the leans of one fit, and the slope over it, with its interval."""
    n, (off, sxx), (up, _) = x.size, centred(x[None]), centred(y[None])
    left, noise, sxy = n / (n - 1), (error**2).sum(), (off * up).sum()
    share = 1 - noise / left / sxx[0, 0]
    without = (sxy - left * off * up) / (
        sxx - left * off**2 - (n - 2) / (n - 1) * (noise - error**2)
    )
    df = hc3_df(off, sxx, 1 / n + off**2 / sxx)
    half = t975(df) * np.sqrt(n - 1) * without.std()
    return float(share), Bounds(sxy / sxx[:, 0] / share, half)
