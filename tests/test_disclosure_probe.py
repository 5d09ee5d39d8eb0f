"""Probabilities of gendered words: every kind of model against full softmaxes; the step."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers

from plumbline.eval_workers.disclosure.word_probabilities import probabilities, texts_to_score
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair
from tests.prompt_rows import list_file, put_prompts
from tests.steps import probe_set
from tests.tiny_models import KINDS


class Oracle:
    """P(word | prompt): full softmax in float64 at each position, one text a pass."""

    def __init__(self, directory: Path, bos: str) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._bos = self._tokenizer.token_to_id(bos)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager"
        )
        self._model = model.double().eval()

    def ids(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def spelled(self, text: str) -> bool:
        tokens = self._tokenizer.encode(text, add_special_tokens=False).tokens
        return not {"<unk>", "[UNK]"} & set(tokens)

    def after(self, ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Probabilities of the whole vocabulary after BOS, and after each of these; rows."""
        with torch.no_grad():
            logits = self._model(torch.tensor([[self._bos, *ids]])).logits[0]
        assert logits.dtype == torch.float64
        found: np.ndarray[Any, np.dtype[np.float64]] = torch.softmax(logits, -1).numpy()
        return found

    def word(self, prompt: str, word: str) -> tuple[float, int]:
        """The probability, and the most tokens that a form of the word adds."""
        begin = self.ids(prompt)
        added = set()
        for form in (word, word.capitalize()):
            text = f"{prompt} {form}"
            if self.spelled(text):
                ids = self.ids(text)
                assert ids[: len(begin)] == begin
                added.add(tuple(ids[len(begin) :]))
        total = 0.0
        for rest in added:
            rows = self.after([*begin, *rest])[len(begin) : -1]
            total += math.prod(float(row[t]) for row, t in zip(rows, rest, strict=True))
        return total, max(map(len, added))


PROMPTS = ["The clerk drank tea, and", "The nurse said", "The crowd lost the key, and"]
WORDS = ("she", "he", "her", "his", "herself", "himself", "hers", "heroine")
PAIRS = [WordPair(*WORDS[k : k + 2]) for k in range(0, 8, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_words_have_their_full_conditional_probability(saved: dict[str, Path], kind: str) -> None:
    oracle = Oracle(saved[kind], KINDS[kind].bos)
    backend = CausalModel(str(saved[kind]), ModelOptions())
    longest, several = 0, set()
    for prompt in PROMPTS:
        texts = texts_to_score(prompt, WORDS)
        scores = dict(zip(texts, backend.score(texts), strict=True))
        found = probabilities(prompt, PAIRS, scores)
        assert isinstance(found, dict) and len(set(found.values())) == len(WORDS)
        for word, (probability, n_variants) in found.items():
            wanted, n_tokens = oracle.word(prompt, word)
            assert probability == pytest.approx(wanted, rel=1e-4)
            longest = max(longest, n_tokens)
            several.add(n_variants)
    assert longest > 1  # the product matters
    assert several <= ({1} if kind == "gpt2-wordpiece" else {1, 2})


def _probe(store: Store, model: Path, word_list: str = "gendered", **options: Any) -> StepCounts:
    return probe_set(store, "demo", str(model), ModelOptions(**options), word_list)


def _rows(store: Store) -> list[dict[str, Any]]:
    rows = store.read("pronoun_probability").to_pylist()
    return sorted(rows, key=lambda r: (r["prompt_id"], r["word"]))


def test_a_set_is_probed_from_prompts_to_figures(
    store: Store, saved: dict[str, Path], tmp_path: Path
) -> None:
    pairs = [("she", "he"), ("her", "his"), ("her", "him")]
    put_prompts(store, "demo", [*PROMPTS, PROMPTS[0]])  # the same prompt twice is two prompts
    done = _probe(store, saved["neox"], list_file(tmp_path / "mine.toml", pairs))
    assert (done.n_wanted, done.n_done, done.n_new, done.n_rejected) == (4, 4, 4, 0)
    assert done.partition["word_list"] == "mine"
    rows = _rows(store)
    assert len(rows) == 4 * 5
    oracle = Oracle(saved["neox"], KINDS["neox"].bos)
    for row in rows:
        prompt = [*PROMPTS, PROMPTS[0]][int(row["prompt_id"])]
        wanted, _ = oracle.word(prompt, row["word"])
        assert row["probability"] == pytest.approx(wanted, rel=1e-4)
        assert row["gender"] == ("f" if row["word"] in ("she", "her") else "m")
        assert row["n_variants"] == 2
    (figure,) = rows_of(store.root, "FROM disclosure()")
    assert figure["n_prompts"] == 4
    (identity,) = store.read("model").to_pylist()
    assert identity["model_key"] == done.model_key == figure["model_key"]


def test_words_that_can_t_be_spelled_take_their_pairs_along(
    store: Store, saved: dict[str, Path], tmp_path: Path
) -> None:
    """The small vocabulary has no `v`, `x` or `z`."""
    words = list_file(tmp_path / "mine.toml", [("she", "he"), ("vixen", "his"), ("her", "him")])
    put_prompts(store, "demo", PROMPTS)
    done = _probe(store, saved["llama-adds-bos"], words)
    assert done.n_done == 3
    assert {r["word"] for r in _rows(store)} == {"she", "he", "her", "him"}
    assert replace(_probe(store, saved["llama-adds-bos"], words), n_new=3) == done
    unspelled = list_file(tmp_path / "other.toml", [("vixen", "his")])
    with pytest.raises(BadInput, match=r"could probe nothing of demo: .*<unk>"):
        _probe(store, saved["llama-adds-bos"], unspelled)
    reasons = store.read("reject", stage="probe")["reason"].to_pylist()
    assert len(reasons) == 3 and "no pair of words can be spelled after it; 'vixen'" in reasons[0]


def test_what_contradicts_itself_is_refused(
    store: Store, saved: dict[str, Path], tmp_path: Path
) -> None:
    model = saved["gpt2"]
    with pytest.raises(UsageProblem, match="are not in the warehouse"):
        _probe(store, model)
    put_prompts(store, "demo", PROMPTS)
    with pytest.raises(UsageProblem, match="is for benchmarks"):
        _probe(store, model, text_form="released")
    _probe(store, model, list_file(tmp_path / "mine.toml", [("she", "he")]))
    with pytest.raises(UsageProblem, match="stands for other words"):
        _probe(store, model, list_file(tmp_path / "mine.toml", [("her", "him")]))
    with pytest.raises(BadInput, match="'her' on both sides"):
        _probe(store, model, list_file(tmp_path / "both.toml", [("she", "her"), ("her", "him")]))
    male_first = Path(list_file(tmp_path / "male.toml", [("he", "she")]))
    text = male_first.read_text().replace('"female", "male"', '"male", "female"')
    male_first.write_text(text)
    with pytest.raises(BadInput, match="the first words of pairs have to be female"):
        _probe(store, model, str(male_first))
