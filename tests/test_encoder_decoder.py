"""Continuations by encoder-decoders: `generate`, the softmax by brute force, FairPair's command."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.utils import is_sentencepiece_available

from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import Sample, SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Tokens
from plumbline.warehouse.errors import MissingComponent
from tests import tiny_kinds
from tests.test_sampling import PROMPTS, check_frequencies, truncated

#: Tokens that the decoder reads before it writes: the start token, and BART's `<s>`.
LED = {"t5": [0], "bart": [2, 0]}
NAMES = pytest.mark.parametrize("name", tiny_kinds.ENCODER_DECODERS)
#: Random weights this wide are nearly certain of each token.
HOT = 3.0


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("encoder-decoders")
    return {name: tiny_kinds.save(name, root / name) for name in tiny_kinds.ENCODER_DECODERS}


def _opened(path: Path, **options: Any) -> Any:
    return open_backend(str(path), ModelOptions(**options))


def _continued(backend: Any, wanted: list[tuple[str, int]], **how: Any) -> list[Sample]:
    options = SamplingOptions(**how)
    found: list[Sample] = backend.continue_([options.draw(*one) for one in wanted], options)
    return found


class Plain:
    """A model and its tokenizer by transformers alone, a prompt a pass, nothing kept."""

    def __init__(self, path: Path, name: str) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.model = transformers.AutoModelForSeq2SeqLM.from_pretrained(path).eval()
        self.led = LED[name]

    def read(self, prompt: str) -> torch.Tensor:
        ids: torch.Tensor = self.tokenizer(prompt, return_tensors="pt")["input_ids"]
        return ids

    def kept(self, prompt: str, written: Tokens, how: SamplingOptions) -> dict[int, float]:
        """The truncated distribution of the next token."""
        before = torch.tensor([[*self.led, *written]])
        with torch.no_grad():
            logits = self.model(input_ids=self.read(prompt), decoder_input_ids=before).logits
        return truncated(logits[0, -1], how)


@NAMES
def test_greedy_is_what_generate_gives(saved: dict[str, Path], name: str) -> None:
    plain, n = Plain(saved[name], name), 24
    found = _continued(
        _opened(saved[name]), [(p, 0) for p in PROMPTS], greedy=True, max_new_tokens=n
    )
    for prompt, sample in zip(PROMPTS, found, strict=True):
        made = plain.model.generate(
            plain.read(prompt),
            decoder_input_ids=torch.tensor([plain.led]),
            do_sample=False,
            max_new_tokens=n,
            forced_eos_token_id=None,
        )[0, len(plain.led) :].tolist()
        stopped = made[-1] == plain.model.generation_config.eos_token_id
        text = plain.tokenizer.decode(made, skip_special_tokens=True)
        assert sample.finish == ("stop" if stopped else "length")
        assert sample.n_tokens == len(made) - stopped
        assert sample.text.removeprefix(" ") == text.removeprefix(" ")
        assert sample.text[:1].isspace() or not sample.text
    assert len({sample.text for sample in found}) > 1  # the prompts are read


@NAMES
def test_two_tokens_are_drawn_as_often_as_the_softmax_says(
    saved: dict[str, Path], name: str
) -> None:
    plain, backend = Plain(saved[name], name), _opened(saved[name], batch_tokens=4096)
    options, n, prompt = SamplingOptions(max_new_tokens=2, temperature=HOT), 4000, PROMPTS[0]
    ids = tuple(plain.tokenizer(prompt, add_special_tokens=False)["input_ids"])
    seeds = [options.draw(prompt, k).seed for k in range(n)]
    seen = Counter[Tokens](backend.weights.new_tokens([ids] * n, seeds, options, backend.ends))
    expected: dict[Tokens, float] = {}
    for first, p in plain.kept(prompt, (), options).items():
        if first in backend.ends:
            expected[(first,)] = n * p
            continue
        for second, q in plain.kept(prompt, (first,), options).items():
            expected[(first, second)] = n * p * q
    check_frequencies(seen, expected)


@NAMES
def test_a_sample_depends_on_its_seed_and_prompt_alone(saved: dict[str, Path], name: str) -> None:
    how = {"temperature": HOT, "max_new_tokens": 16}
    wanted = [(prompt, k) for prompt in PROMPTS for k in range(6)]
    found = _continued(_opened(saved[name]), wanted, **how)
    assert len({s.text for s in found}) > 25
    assert _continued(_opened(saved[name]), wanted[::-1], **how) == found[::-1]
    assert _continued(_opened(saved[name], batch_tokens=1), wanted[::3], **how) == found[::3]
    other = _continued(_opened(saved[name]), wanted, seed=1, **how)
    assert sum(a.text == b.text for a, b in zip(found, other, strict=True)) < 3


def test_what_cannot_be_read_or_written_is_a_problem(saved: dict[str, Path]) -> None:
    backend = _opened(saved["bart"])  # 64 positions; `<s>` and `</s>` take two of the encoder's
    wanted = [("x" * 62, 0), ("x" * 63, 0), ("", 0), ("a </s>", 0)]
    fits, long, empty, special = _continued(backend, wanted, max_new_tokens=63)
    assert fits.problem is None
    assert long.problem == "65 tokens, more than the 64 that the model's encoder reads"
    assert empty.problem == "the text is empty" and "special token" in str(special.problem)
    (much,) = _continued(backend, [("x", 0)], max_new_tokens=64)
    assert much.problem == "64 new tokens, more than the 63 that the decoder writes"


def test_the_text_of_a_blank_and_no_special_token_joins_the_prompt(saved: dict[str, Path]) -> None:
    backend = _opened(saved["t5"])
    write = backend.tokenizer.convert_tokens_to_ids
    for tokens in (["\u2581the"], ["t", "h", "e"], ["<pad>", "\u2581the", "<unk>"]):
        assert backend._text_after((), tuple(write(tokens))) == " the"
    assert backend._text_after((), ()) == ""


def test_a_tokenizer_to_be_converted_names_what_converts_it(tmp_path: Path) -> None:
    """As T5's own, a SentencePiece file alone."""
    if is_sentencepiece_available():
        pytest.skip("sentencepiece is installed: it would convert the tokenizer")
    path = tiny_kinds.save("t5", tmp_path / "t5")
    (path / "tokenizer.json").unlink()
    (path / "spiece.model").write_bytes(b"\n\x0e\n\x05<unk>")
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    with pytest.raises(MissingComponent, match="pip install sentencepiece protobuf"):
        _opened(path)


PROMPTS_FILE = """
language = "en"
axis = "gender"
groups = ["m", "f"]
names = [["John", "Jane"]]
occupations = ["nurse", "clerk"]

[templates]
plain = "{name} is working as a {occupation}."
"""
