"""Masked models and encoder-decoders by one pass at a time and by peers; what they refuse."""

import math
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoTokenizer
from transformers.utils import is_sentencepiece_available

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.local.encoder_decoder import EncoderDecoderModel
from plumbline.eval_workers.models.local.masked import MaskedModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import SAME_TOKENS
from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.steps import score_sets
from tests.test_sampling import PROMPTS, _continued
from tests.tiny_models import ENCODER_DECODERS, MASKED, SENTENCES, save

#: Nats between a score in float32 and the one in float64; CPUs differed by up to 1.2e-4.
TOLERANCE = 3e-4
#: Tokens that the decoder reads before a text: the start token, and BART's `<s>`.
LED = {"t5": [0], "bart": [2, 0]}
TEXTS = [*SENTENCES[:5], SENTENCES[8]]


def _opened(path: Path, **options: Any) -> Any:
    return open_backend(str(path), ModelOptions(**options))


@pytest.mark.parametrize("name", MASKED)
def test_pseudo_log_likelihoods_are_those_of_one_mask_at_a_time(
    saved: dict[str, Path], name: str
) -> None:
    expected = pll_one_by_one(saved[name], TEXTS)
    assert len({round(sum(values), 2) for values in expected}) == len(TEXTS)
    for batch_tokens in (1, 100):
        how = ("transformers", str(saved[name]), TEXTS, TOLERANCE)
        scores = check_backend(*how, batch_tokens=batch_tokens)
        for score, values in zip(scores, expected, strict=True):
            assert score.token_logprobs_nats == pytest.approx(values, abs=TOLERANCE)
            assert score.logprob_nats == math.fsum(score.token_logprobs_nats)
    backend = _opened(saved[name])
    assert isinstance(backend, MaskedModel)
    assert backend.identity.measure == "PLL within-word-l2r"


def test_a_pair_whose_sentences_are_the_same_tokens_is_rejected(
    saved: dict[str, Path], store: Store
) -> None:
    """BERT's tokenizer drops case: a model can't prefer either sentence, which is no neutrality."""
    parsed = Parsed("demo")
    for i in range(2):
        row = {"pair_id": f"{i}", "source_file": "f", "source_row": i + 1}
        parsed.add(template="{pronoun} drank tea.", **row)
    rows = [{"benchmark": "demo", **pair} for pair in parsed.pairs]
    rows[0] |= {"sentence_a": "The Nurse drank tea.", "sentence_b": "The nurse drank tea."}
    store.publish("benchmark_pair", rows, unit="demo", run_id="r")
    (done,) = score_sets(store, ["demo"], str(saved["bert"]), ModelOptions())
    assert (done.n_wanted, done.n_done, done.n_rejected) == (2, 1, 1)
    (row,) = store.read("reject").to_pylist()
    assert "pair 0" in row["reason"] and row["reason"].endswith(SAME_TOKENS)
    (scored,) = store.read("pair_score").to_pylist()
    assert done.n_new == 1 and scored["pair_id"] == "1"


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_encoder_decoders_score_a_text_token_by_token_after_an_empty_input(
    saved: dict[str, Path], name: str
) -> None:
    expected = [written_one_by_one(saved[name], text, LED[name]) for text in TEXTS]
    assert len({round(sum(values), 2) for values in expected}) == len(TEXTS)
    for batch_tokens in (1, 100):
        how = ("transformers", str(saved[name]), TEXTS, TOLERANCE)
        for score, values in zip(
            check_backend(*how, batch_tokens=batch_tokens), expected, strict=True
        ):
            assert score.token_logprobs_nats == pytest.approx(values, abs=TOLERANCE)
    backend = _opened(saved[name])
    assert isinstance(backend, EncoderDecoderModel)
    assert backend.identity.bos_policy == "decoder_start_token_id"
    assert backend.identity.measure == "log-likelihood given an empty input"


def test_what_a_masked_model_cannot_score_is_a_problem(saved: dict[str, Path]) -> None:
    backend = _opened(saved["bert"])
    room = 64 - 2  # [CLS] and [SEP] take two positions
    texts = ["", "a [MASK] b", "a" + " a" * room, "a" + " a" * (room - 1), "\u6c34"]
    *bad, fits, unknown = backend.score(texts)
    words = ["empty", "special token [MASK]", f"context of {room}"]
    for score, word in zip([*bad, unknown], [*words, "special token [UNK]"], strict=True):
        assert word in score.problem and math.isnan(score.logprob_nats)
    assert fits.problem is None and fits.n_tokens == room
    roberta = _opened(saved["roberta"])  # two more positions are lost to the padding token's
    assert roberta.score(["x" * 60])[0].problem is None
    assert "context of 60" in roberta.score(["x" * 61])[0].problem


def test_options_of_other_kinds_are_refused_in_a_line(saved: dict[str, Path]) -> None:
    def refused(name: str, **options: Any) -> str:
        with pytest.raises((UsageProblem, BadInput)) as caught:
            _opened(saved[name], **options).score(["a"])
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "read from left to right" in refused("bert", bos="[CLS]")
    assert "no such option for masked models" in refused("bert", quantisation="nf4")
    with pytest.raises(BadInput, match=r"not a causal .* encoder-decoder \(.*--backend trans"):
        CausalModel(str(saved["t5"]), ModelOptions())  # as any backend of causal models
    start = _opened(saved["t5"], bos="</s>").identity
    assert (start.bos_policy, start.bos_token_id) == ("option: </s>", 1)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("bert", ["disclosure", "probe", "topics"]),
        ("bert", ["fairpair", "run", "common-sents"]),
        ("bart", ["disclosure", "probe", "topics"]),
    ],
)
def test_what_needs_next_tokens_names_what_such_a_model_can_do(
    saved: dict[str, Path],
    store: Store,
    capsys: pytest.CaptureFixture[str],
    name: str,
    command: list[str],
) -> None:
    given = [*command, "--model", str(saved[name]), "--warehouse", str(store.root)]
    assert main(given) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "needs a model that predicts next tokens" in error and "plumbline score" in error
    assert ("plumbline fairpair run" in error) == (name == "bart")


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_greedy_continuations_are_what_generate_gives(saved: dict[str, Path], name: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(saved[name])
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(saved[name]).eval()
    led, n = LED[name], 24
    found = _continued(
        _opened(saved[name]), [(p, 0) for p in PROMPTS], greedy=True, max_new_tokens=n
    )
    for prompt, sample in zip(PROMPTS, found, strict=True):
        made = model.generate(
            tokenizer(prompt, return_tensors="pt")["input_ids"],
            decoder_input_ids=torch.tensor([led]),
            do_sample=False,
            max_new_tokens=n,
            forced_eos_token_id=None,
        )[0, len(led) :].tolist()
        stopped = made[-1] == model.generation_config.eos_token_id
        text = tokenizer.decode(made, skip_special_tokens=True)
        assert sample.finish == ("stop" if stopped else "length")
        assert sample.n_tokens == len(made) - stopped
        assert sample.text.removeprefix(" ") == text.removeprefix(" ")
        assert sample.text[:1].isspace() or not sample.text
    assert len({sample.text for sample in found}) > 1  # the prompts are read


def test_what_an_encoder_decoder_cannot_read_or_write_is_a_problem(saved: dict[str, Path]) -> None:
    backend = _opened(saved["bart"])  # 64 positions; `<s>` and `</s>` take two of the encoder's
    wanted = [("x" * 62, 0), ("x" * 63, 0), ("", 0), ("a </s>", 0)]
    fits, long, empty, special = _continued(backend, wanted, max_new_tokens=63)
    assert fits.problem is None
    assert long.problem == "65 tokens, more than the 64 that the model's encoder reads"
    assert empty.problem == "the text is empty" and "special token" in str(special.problem)
    (much,) = _continued(backend, [("x", 0)], max_new_tokens=64)
    assert much.problem == "64 new tokens, more than the 63 that the decoder writes"


def test_a_tokenizer_to_be_converted_names_what_converts_it(tmp_path: Path) -> None:
    """As T5's own, a SentencePiece file alone."""
    if is_sentencepiece_available():
        pytest.skip("sentencepiece is installed: it would convert the tokenizer")
    path = save("t5", tmp_path / "t5")
    (path / "tokenizer.json").unlink()
    (path / "spiece.model").write_bytes(b"\n\x0e\n\x05<unk>")
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    with pytest.raises(MissingComponent, match="pip install sentencepiece protobuf"):
        _opened(path)


def pll_one_by_one(directory: Path, texts: list[str]) -> list[list[float]]:
    """log p (nats) of each token in a pass of its own, later tokens of its word masked too."""
    model, tokenizer = _loaded(directory, transformers.AutoModelForMaskedLM)
    found = []
    for text in texts:
        whole = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, spans = whole["input_ids"], whole["offset_mapping"]
        pieces = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)
        starts = [start for _, (start, _) in pieces]
        words = [bisect_right(starts, start) for start, _ in spans]
        places = [i for i, is_special in enumerate(whole["special_tokens_mask"]) if not is_special]
        values = []
        for place in places:
            masked = list(ids)
            same = [j for j in places if j > place and words[j] == words[place]]
            for j in [place, *same]:
                masked[j] = tokenizer.mask_token_id
            values.append(_predicted(model, masked, place, ids[place]))
        found.append(values)
    return found


def written_one_by_one(directory: Path, text: str, led: list[int]) -> list[float]:
    """log p (nats) of each token of a text after an empty input, by growing the decoder's input."""
    model, tokenizer = _loaded(directory, transformers.AutoModelForSeq2SeqLM)
    empty = torch.tensor([tokenizer("")["input_ids"]])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    values, before = [], list(led)
    for token in ids:
        with torch.no_grad():
            out = model(input_ids=empty, decoder_input_ids=torch.tensor([before]))
        values.append(float(out.logits[0, -1].log_softmax(-1)[token]))
        before.append(token)
    return values


def _loaded(directory: Path, kind: Any) -> tuple[Any, Any]:
    model = kind.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    return model.double().eval(), AutoTokenizer.from_pretrained(directory)


def _predicted(model: Any, ids: list[int], place: int, token: int) -> float:
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, place]
    assert logits.dtype == torch.float64
    return float(logits.log_softmax(-1)[token])
