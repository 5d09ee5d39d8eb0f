"""The count-based model: its probabilities, its directory, and its scores."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.local.source import is_ngram
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.ngram import (
    SENTENCE_END,
    NgramOptions,
    ngram_counting,
    ngram_training,
)
from plumbline.eval_workers.models.ngram.ngram_counting import count_ngrams
from plumbline.eval_workers.models.ngram.ngram_model import (
    NgramModel,
    laid_out,
)
from plumbline.eval_workers.models.ngram.text_words import BOS, UNKNOWN, numbered_words
from plumbline.eval_workers.models.ngram_backend import NgramBackend
from plumbline.eval_workers.models.sampling_contract import Draw, SamplingOptions
from plumbline.eval_workers.models.size_forecast import prospect
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.pipelines.command.app import app
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import documents, write_jsonl_zst
from tests.conftest import reference_directory

N_WORDS = 12
TEXT = ["She ran. He, too, ran far!\nThe nurse said she ran home.", "Mr. Bell saw the nurse run."]


def sentences(n: int, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    words = range(UNKNOWN + 1, N_WORDS)
    weights = [1 / (w - UNKNOWN) for w in words]
    return [draw.choices(words, weights, k=draw.randint(1, 9)) for _ in range(n)]


def count(text: list[list[int]], n_words: int, order: int) -> NgramModel:
    with TemporaryDirectory() as directory:
        words, _ = laid_out(text)
        count_ngrams(words.astype(np.uint32), n_words, order, Path(directory), Path(directory))
        return NgramModel.load(Path(directory))


def probability(model: NgramModel, context: list[int], word: int) -> float:
    return math.exp(model.logprobs([[*context, word]])[0][-1])


def test_probabilities_are_those_of_nltk() -> None:
    """Where a sentence's beginning is not in reach: there NLTK pads, and has no unknown words."""
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import everygrams

    text, order = sentences(60), 4
    theirs = KneserNeyInterpolated(order, discount=0.1)
    grams = [list(everygrams(["<s>", *map(str, s)], max_len=order)) for s in text]
    theirs.fit(grams, [str(w) for s in text for w in s])
    ours = replace(count(text, N_WORDS, order), discounts=np.array([0.0] + [0.1] * (order - 1)))
    asked = 0
    for sentence in sentences(80, seed=1):
        values = ours.logprobs([sentence])[0]
        for end in range(order - 1, len(sentence)):
            context, word = sentence[end - order + 1 : end], sentence[end]
            expected = theirs.score(str(word), tuple(map(str, context)))
            assert math.exp(values[end]) == pytest.approx(expected, rel=1e-9)
            asked += 1
    assert asked > 100


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


def test_probabilities_sum_to_1_behind_every_context() -> None:
    model = count(sentences(40), N_WORDS, 3)
    for context in itertools.product(range(UNKNOWN, N_WORDS), repeat=2):
        total = sum(probability(model, list(context), w) for w in range(UNKNOWN, N_WORDS))
        assert total == pytest.approx(1, abs=1e-12)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ngrams")
    write_jsonl_zst(root / "text.jsonl.zst", TEXT)
    return train_model([root / "text.jsonl.zst"], "five", "c", NgramOptions(), root).path


def test_it_does_what_a_backend_does(directory: Path) -> None:
    texts = ["The nurse said she ran.", "The nurse said he ran.", "An ÿnknown word"]
    she, he, unknown = check_backend("ngram", str(directory), texts)
    assert she.logprob_nats > he.logprob_nats
    assert [s.n_tokens for s in (she, he, unknown)] == [6, 6, 3]
    again = open_backend(str(directory), ModelOptions())
    assert again.identity.backend == "ngram" and again.identity.dtype == "float64"
    assert again.score(texts)[0] == she
    assert list(again.pieces([she.token_ids[1]]).values()) == [" nurse"]


def test_a_sentence_starts_anew(directory: Path) -> None:
    """What began a sentence is likely to begin one; a title's mark ends none."""
    model = open_backend(str(directory), ModelOptions())
    he, she, far = (s.token_logprobs_nats[0] for s in model.score(["He", "She", "far"]))
    assert min(he, she) > far + 0.3
    mr, other = (s.token_logprobs_nats[-1] for s in model.score(["Mr. Bell", "! Bell"]))
    assert mr > other + 0.5


def test_what_does_not_apply_is_refused(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="--dtype bfloat16"):
        open_backend(str(directory), ModelOptions(dtype="bfloat16"))
    with pytest.raises(UsageProblem, match="no such option"):
        open_backend(str(directory), ModelOptions(quantisation="int8"))
    with pytest.raises(BadInput, match="not the directory of an n-gram model"):
        open_backend(str(tmp_path), ModelOptions(backend="ngram"))
    model = NgramBackend(str(directory), ModelOptions())
    with pytest.raises(UsageProblem, match=r"can't continue a text .give a neural model"):
        model.continue_([Draw("She", 0, 1)], SamplingOptions(max_new_tokens=1))
    write_jsonl_zst(tmp_path / "empty.jsonl.zst", [])
    with pytest.raises(BadInput, match="hold no text"):
        train_model([tmp_path / "empty.jsonl.zst"], "x", "c", NgramOptions(), tmp_path)


@pytest.mark.slow
def test_the_command_trains_and_scores(tmp_path: Path) -> None:
    shard, out = tmp_path / "text.jsonl.zst", tmp_path / "models"
    write_jsonl_zst(shard, TEXT)
    pairs = tmp_path / "own.csv"
    pairs.write_text(
        "sentence_a,sentence_b,group_a,group_b\nShe ran.,He ran.,female,male\n", encoding="utf-8"
    )
    warehouse = ["--warehouse", str(tmp_path / "warehouse")]

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, *warehouse])
        assert done.exit_code == 0, done.output
        return done.output

    train = ["train", str(shard), "--name", "five", "--corpus", "c", "--out", str(out)]
    for is_new in (True, False):
        (row,) = json.loads(run(*train, "--preset", "5gram", "--format", "json"))["rows"]
        assert (row["trained_now"], round(row["loss_start_nats"], 2)) == (is_new, 2.83)
    refused = CliRunner().invoke(app, [*train, "--preset", "5gram", "--seed", "1", *warehouse])
    assert "leave out --seed" in str(refused.exception)
    run("benchmark", "import", "own", "--source", str(pairs))
    run("score", "--model", str(out / "five"), "--benchmark", "own")
    assert "ngram" in run("sql", "SELECT model, backend FROM model JOIN trained_key USING (model)")
    assert "has scores" not in run("measure")
    pairs.write_text(pairs.read_text("utf-8") + "She sat.,He sat.,female,male\n", encoding="utf-8")
    run("benchmark", "import", "own", "--source", str(pairs))
    assert "five has scores of 1 of the 2 pairs of own; figures are of these" in run("measure")
    text = [str(tmp_path / "text.jsonl.zst"), "--corpus-name", "c", "--out", str(tmp_path / "out")]
    said = run("pipeline", "--corpus", *text, "--model", str(out / "five"))
    assert "five counts n-grams: it scores sentences" in said
    assert "report/index.html" in said


def test_a_text_of_short_sentences_has_the_probabilities_of_its_longest() -> None:
    text = [[2, 3], [3, 2], [2]]
    long, short = (count(text, N_WORDS, order) for order in (5, 3))
    asked = [[2, 3, 2, 3, 4], [3]]
    assert long.logprobs(asked) == short.logprobs(asked)


def test_a_damaged_model_is_told(directory: Path, tmp_path: Path) -> None:
    model = shutil.copytree(directory, tmp_path / "m")
    weights = model / "model.safetensors"
    whole = weights.read_bytes()
    for content in (whole[:5], whole[:-100], b""):
        weights.write_bytes(content)
        with pytest.raises(BadInput, match=r"model\.safetensors is damaged"):
            open_backend(str(model), ModelOptions()).score(["She ran."])


def test_a_model_of_another_version_is_told(directory: Path, tmp_path: Path) -> None:
    model = shutil.copytree(directory, tmp_path / "m")
    config = json.loads((model / "config.json").read_text())
    del config["version"]  # as the first version wrote it
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"by another version of Plumbline.*train it again"):
        open_backend(str(model), ModelOptions())


def test_a_dry_run_says_that_nothing_is_known_of_its_size(directory: Path) -> None:
    with pytest.raises(UsageProblem, match="the size of an n-gram model is unknown"):
        prospect(str(directory), ModelOptions())


def test_a_home_directory_may_be_short(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(directory.parent))
    assert is_ngram(f"~/{directory.name}") and not is_ngram("~/nothing")


def test_equal_texts_give_equal_files(directory: Path, tmp_path: Path) -> None:
    shard = directory.parent / "text.jsonl.zst"
    trained = train_model([shard], "five", "c", NgramOptions(), tmp_path)
    again = trained.path
    assert trained.n_tokens == sum(len(s) for text in TEXT for s in split_by_tokenizers(text)) == 25
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (again / name).read_bytes() == (directory / name).read_bytes()
    assert np.isfinite(open_backend(str(again), ModelOptions()).score(["Zz"])[0].logprob_nats)


def split_by_tokenizers(text: str) -> Iterator[list[str]]:
    """The words of each sentence, as the library that splits scored sentences has them."""
    from tokenizers import normalizers, pre_tokenizers

    lower, splitter = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    starts = [0, *(match.end() for match in SENTENCE_END.finditer(text))]
    for start, end in itertools.zip_longest(starts, starts[1:]):
        pieces = splitter.pre_tokenize_str(lower.normalize_str(text[start:end]))
        if pieces:
            yield [piece for piece, _ in pieces]


def split_by_us(texts: list[str]) -> list[list[str]]:
    numbers, words = numbered_words(texts)
    names = [word.decode() for word in words.to_pylist()]
    ends = np.flatnonzero(numbers == BOS)
    assert not len(numbers) or ends[-1] == len(numbers) - 1
    starts = [0, *(ends[:-1] + 1)]
    return [[names[k - 2] for k in numbers[a:b]] for a, b in zip(starts, ends, strict=False)]


@pytest.mark.slow
def test_words_are_those_of_tokenizers() -> None:
    """Every character, between letters; and drawn texts of those that end words and sentences."""
    every = "".join(f"a{chr(k)}b " for k in range(0x110000) if not 0xD800 <= k < 0xE000)
    assert split_by_us([every]) == list(split_by_tokenizers(every))
    draw, parts = (
        random.Random(1),
        [*"aMrsDd.!?\"'”)  \n\x1c\x85İΣςé_7-—\u3000\u200b😀𠀀𐐀K", "Mrs. "],
    )
    for _ in range(2000):
        texts = ["".join(draw.choices(parts, k=draw.randint(0, 25))) for _ in range(2)]
        assert split_by_us(texts) == [s for text in texts for s in split_by_tokenizers(text)]
    assert split_by_us([]) == []


@pytest.mark.reference
def test_words_of_real_text_are_those_of_tokenizers() -> None:
    for shard in sorted((reference_directory() / "corpora").glob("*/00.jsonl.zst")):
        texts = list(itertools.islice(documents(shard), 10))
        assert split_by_us(texts) == [s for text in texts for s in split_by_tokenizers(text)]


def texts_of(n: int) -> list[str]:
    draw = random.Random(3)
    words = ["tea", "nurse", "she", "he", "ran.", "home!", "far", "Mr. Bell", "saw,", "É"]
    return [" ".join(draw.choices(words, k=draw.randint(0, 40))) for _ in range(n)]


#: Sizes of which this text has many: texts of a block, rows of a run, words read at a time.
SMALL = ((ngram_training, "CHARACTERS_OF_BLOCK", 500), (ngram_counting, "ROWS_AT_ONCE", 100))
SMALL += ((ngram_counting, "_WORDS_AT_ONCE", 70),)


def test_a_text_in_many_parts_gives_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one part, in many, and in many after interruptions, of which every one gets further."""
    shards = [tmp_path / f"{k}.jsonl.zst" for k in range(3)]
    for k, shard in enumerate(shards):
        write_jsonl_zst(shard, texts_of(60)[20 * k : 20 * k + 20])

    def content(name: str) -> dict[str, bytes]:
        path = train_model(shards, name, "c", NgramOptions(), tmp_path).path
        return {file.name: file.read_bytes() for file in path.glob("[!p]*")}

    whole = content("one")
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)
    made: list[str] = []
    interrupted_every = 1 << 30

    def counted(work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            made.append(name)
            if len(made) % interrupted_every == 0:
                raise KeyboardInterrupt
            return work(*arguments)

        return step

    for module, name in ((ngram_training, "numbered_words"), (ngram_counting, "_sorted")):
        monkeypatch.setattr(module, name, counted(getattr(module, name), name))
    assert content("many") == whole and len(whole) == 4
    n_parts = Counter(made)
    assert min(n_parts.values()) > 6
    made.clear()
    interrupted_every = 4
    for n_interrupted in itertools.count():
        try:
            assert content("resumed") == whole
            break
        except KeyboardInterrupt:
            assert n_interrupted < 100
    # What was made before an interruption is not made again.
    assert n_interrupted > 3 and len(made) == n_parts.total() + n_interrupted


def test_a_part_that_decayed_is_made_again(tmp_path: Path) -> None:
    words, _ = laid_out(sentences(50))
    whole: list[bytes] = []
    for _ in range(2):
        count_ngrams(words.astype(np.uint32), N_WORDS, 3, tmp_path, tmp_path)
        (run,) = tmp_path.glob("*.npy")
        whole.append((tmp_path / "model.safetensors").read_bytes() + run.read_bytes())
        run.write_bytes(run.read_bytes()[:-8] + bytes(8))
    assert whole[0] == whole[1]
