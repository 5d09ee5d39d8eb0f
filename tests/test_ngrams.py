"""The count-based model: its probabilities, its directory, and its scores."""

import hashlib
import itertools
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import ngram_model, open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.ngram_backend import NgramBackend
from plumbline.eval_workers.models.ngram_model import (
    BOS,
    SENTENCE_END,
    UNKNOWN,
    VERSION,
    NgramModel,
    count_ngrams,
    laid_out,
    numbered,
)
from plumbline.eval_workers.models.sampling_contract import SamplingOptions, SeededPrompt
from plumbline.eval_workers.training.trained_models import MARKER, train_model
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.backend_contract import changed

N_WORDS = 12
TEXT = ["She ran. He, too, ran far!\nThe nurse said she ran home.", "Mr. Bell saw the nurse run."]


def sentences(n: int, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    words = range(UNKNOWN + 1, N_WORDS)
    weights = [1 / (w - UNKNOWN) for w in words]
    return [draw.choices(words, weights, k=draw.randint(1, 9)) for _ in range(n)]


def count(text: list[list[int]], n_words: int, order: int) -> NgramModel:
    with TemporaryDirectory() as directory:
        words = laid_out(text)[0].astype(np.uint32)
        return NgramModel(**count_ngrams(words, n_words, order, Path(directory) / "counts"))


class BruteForce:
    """The formula, word by word, from lists of n-grams."""

    def __init__(self, text: list[list[int]], order: int) -> None:
        self.order = order
        padded = [tuple([BOS, *s]) for s in text]
        self.seen = Counter(
            s[i : i + n] for n in range(1, order + 1) for s in padded for i in range(len(s) - n + 1)
        )

    def adjusted(self, gram: tuple[int, ...]) -> int:
        if len(gram) == self.order or gram[0] == BOS:
            return self.seen[gram] if gram != (BOS,) else 0
        return sum(len(g) == len(gram) + 1 and g[1:] == gram for g in self.seen)

    def discount(self, n: int) -> float:
        found = Counter(self.adjusted(g) for g in self.seen if len(g) == n)
        return found[1] / (found[1] + 2 * found[2]) if found[1] and found[2] else 0.5

    def __call__(self, context: tuple[int, ...], word: int) -> float:
        below = self(context[1:], word) if context else 1 / (N_WORDS - 1)
        behind = [self.adjusted((*context, w)) for w in range(N_WORDS)]
        if not sum(behind):
            return below
        d = self.discount(len(context) + 1)
        own = max(self.adjusted((*context, word)) - d, 0)
        return (own + d * sum(b > 0 for b in behind) * below) / sum(behind)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_are_those_of_the_formula(order: int) -> None:
    text = sentences(12)
    model, expected = count(text, N_WORDS, order), BruteForce(text, order)
    for sentence in [*text[:3], *sentences(4, seed=2), [UNKNOWN, 3, UNKNOWN]]:
        for end, value in enumerate(model.logprobs([sentence])[0]):
            context = tuple([BOS, *sentence][: end + 1][max(0, end + 2 - order) :])
            assert math.exp(value) == pytest.approx(expected(context, sentence[end]), rel=1e-9)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ngrams")
    write_jsonl_zst(root / "text.jsonl.zst", TEXT)
    return Path(train_model([root / "text.jsonl.zst"], "five", "c", None, root)[0]["path"])


def test_what_does_not_apply_is_refused(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="--dtype bfloat16"):
        open_backend(str(directory), ModelOptions(dtype="bfloat16"))
    with pytest.raises(UsageProblem, match="no such option"):
        open_backend(str(directory), ModelOptions(quantisation="nf4"))
    with pytest.raises(BadInput, match="not the directory of an n-gram model"):
        open_backend(str(tmp_path), ModelOptions(backend="ngram"))
    model = NgramBackend(str(directory), ModelOptions())
    with pytest.raises(UsageProblem, match=r"can't continue a text .give a neural model"):
        model.continue_([SeededPrompt("She", 0, 1)], SamplingOptions(max_new_tokens=1))
    write_jsonl_zst(tmp_path / "empty.jsonl.zst", [])
    with pytest.raises(BadInput, match="hold no text"):
        train_model([tmp_path / "empty.jsonl.zst"], "x", "c", None, tmp_path)


def test_a_damaged_model_or_one_of_another_version_is_told(directory: Path, tmp_path: Path) -> None:
    model = shutil.copytree(directory, tmp_path / "m")
    whole = (model / "model.safetensors").read_bytes()
    for content in (whole[:5], whole[:-100], b""):
        (model / "model.safetensors").write_bytes(content)
        with pytest.raises(BadInput, match=r"model\.safetensors is damaged"):
            open_backend(str(model), ModelOptions()).score(["She ran."])
    old = changed(directory, tmp_path / "old", version=None)  # as the first version wrote it
    with pytest.raises(BadInput, match=r"by another version of Plumbline.*train it again"):
        open_backend(str(old), ModelOptions())


def test_equal_texts_give_equal_files(directory: Path, tmp_path: Path) -> None:
    shard = directory.parent / "text.jsonl.zst"
    trained, _ = train_model([shard], "five", "c", None, tmp_path)
    again = Path(trained["path"])
    n_tokens = sum(len(s) for text in TEXT for s in split_by_tokenizers(text))
    assert trained["n_tokens"] == n_tokens == 25
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (again / name).read_bytes() == (directory / name).read_bytes()
    # Other bytes would give the same model another key: then increase VERSION.
    digest = hashlib.sha256((again / "model.safetensors").read_bytes()).hexdigest()
    assert (VERSION, digest[:12]) == (2, "fed7ff57f0cb")
    assert json.loads((again / MARKER).read_text())["identity"].keys() == {
        *("options", "corpus", "shards", "text_field", "trainer_version", "ngram_version")
    }
    she, _ = check_backend("ngram", str(again), ["The nurse said she ran.", "Zz"])
    assert she.n_tokens == 6


def split_by_tokenizers(text: str) -> Iterator[list[str]]:
    """The words of each sentence, as the library that splits scored sentences has them."""
    from tokenizers import normalizers, pre_tokenizers

    lower, splitter = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    starts = [0, *(match.end() for match in SENTENCE_END.finditer(text))]
    for start, end in itertools.zip_longest(starts, starts[1:]):
        pieces = splitter.pre_tokenize_str(lower.normalize_str(text[start:end]))
        if pieces:
            yield [piece for piece, _ in pieces]


def test_words_are_those_of_the_scored_text() -> None:
    """Drawn texts of characters that end words and sentences, split as a scored text is."""
    draw, parts = random.Random(1), [*"aMrsDd.!?\"'”)  \n\x1c\x85İΣςé_7-—\u3000😀𠀀𐐀K", "Mrs. "]
    texts = ["".join(draw.choices(parts, k=draw.randint(0, 25))) for _ in range(2000)]
    vocabulary, words = numbered(lambda: iter(texts))
    named = ["<s>", "<unk>", *vocabulary]
    expected = [["<s>", *sentence] for text in texts for sentence in split_by_tokenizers(text)]
    assert [named[k] for k in words] == list(itertools.chain.from_iterable(expected))
    assert vocabulary == sorted(vocabulary) and UNKNOWN not in words


@pytest.mark.parametrize("order", [1, 2, 5])
def test_a_text_counted_in_parts_gives_the_same_arrays(
    tmp_path: Path, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = laid_out(sentences(200))[0].astype(np.uint32)
    whole = count_ngrams(words, N_WORDS, order, tmp_path / "one")
    monkeypatch.setattr(ngram_model, "WORDS_AT_ONCE", 70)
    parts = count_ngrams(words, N_WORDS, order, tmp_path / "many")
    for name, array in whole.items():
        assert np.array_equal(array, parts[name]), name
