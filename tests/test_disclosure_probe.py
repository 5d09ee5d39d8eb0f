"""Probing prompts, under instructions too: every kind of model against full softmaxes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from plumbline.eval_workers.disclosure.set_probing import measure_sets
from plumbline.eval_workers.disclosure.word_probabilities import probabilities, texts_to_score
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Instruction
from plumbline.eval_workers.scoring import model_step
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.steps.step import StepCounts
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordPair
from tests.prompt_rows import list_file, put_prompts
from tests.steps import probe_set
from tests.tiny_models import KINDS, Plain, save_chatting


class Oracle(Plain):
    """P(word | prompt): full softmax in float64 at each position."""

    def word(self, prompt: str, word: str) -> tuple[float, int]:
        """The probability, and the most tokens that a form of the word adds."""
        begin = self.ids(prompt)
        added = set()
        for text in (f"{prompt} {word}", f"{prompt} {word.capitalize()}"):
            tokens = self.tokenizer.encode(text, add_special_tokens=False).tokens
            if not {"<unk>", "[UNK]"} & set(tokens):
                ids = self.ids(text)
                assert ids[: len(begin)] == begin
                added.add(tuple(ids[len(begin) :]))
        total = 0.0
        for rest in added:
            rows = self.after([*begin, *rest])[len(begin) : -1]
            total += math.exp(sum(float(row[t]) for row, t in zip(rows, rest, strict=True)))
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


# ---- instructions, as a prefix and in a chat, against transformers itself

ASKED = ["The nurse said", "The clerk drank tea, and"]
TOLD = "The crowd waited"
ALL = (Instruction(), Instruction(TOLD), Instruction(TOLD, "chat"))


@pytest.fixture(scope="module")
def chatting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_chatting(tmp_path_factory.mktemp("models") / "tiny-neox")


class ChatOracle(Oracle):
    """Texts are the assistant's words in a chat that transformers renders and encodes."""

    def __init__(self, directory: Path, bos: str) -> None:
        super().__init__(directory, bos)
        self._chat: Any = transformers.AutoTokenizer.from_pretrained(directory)

    def ids(self, text: str) -> list[int]:
        messages = [{"role": "user", "content": TOLD}, {"role": "assistant", "content": text}]
        found = self._chat.apply_chat_template(
            messages, tokenize=True, continue_final_message=True, return_dict=False
        )
        assert found[0] == self.bos
        return list(found[1:])


def _generated(directory: Path, ids: Sequence[int], n: int) -> list[int]:
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    given = torch.tensor([ids])
    out = model.generate(
        given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=n
    )
    return [int(i) for i in out[0, len(ids) :]]


def _measure(store: Store, model: Path) -> list[tuple[StepCounts, StepCounts]]:
    how = {"word_list": "she-he", "instructions": ALL, "max_new_tokens": 5}
    return measure_sets(store, ["demo"], str(model), ModelOptions(), "run", **how)


def test_a_set_is_measured_under_each_instruction_by_a_model_opened_once(
    store: Store, chatting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    open_backend = model_step.open_backend

    def counted(model: str, options: ModelOptions) -> Any:
        opened.append(model)
        return open_backend(model, options)

    monkeypatch.setattr(model_step, "open_backend", counted)
    put_prompts(store, "demo", ASKED)
    done = _measure(store, chatting)
    assert len(opened) == 1
    assert [(probed.n_new, sampled.n_new) for probed, sampled in done] == [(2, 2)] * 3
    plain, chat = (made(chatting, KINDS["neox"].bos) for made in (Oracle, ChatOracle))
    bos, tokenizer = plain.bos, transformers.AutoTokenizer.from_pretrained(chatting)
    for (probed, sampled), oracle, before in zip(
        done, (plain, plain, chat), ("", f"{TOLD} ", ""), strict=True
    ):
        key = probed.partition["instruction_key"]
        whose = {"probe_set": "demo", "model_key": probed.model_key}
        words = store.read("pronoun_probability", **whose, word_list="she-he", instruction_key=key)
        assert words.num_rows == 4
        for row in words.to_pylist():
            wanted, _ = oracle.word(before + ASKED[int(row["prompt_id"])], row["word"])
            assert row["probability"] == pytest.approx(wanted, rel=1e-4, abs=0)
        written = store.read(
            "continuation", **whose, sampling_key=sampled.partition["sampling_key"]
        ).to_pylist()
        assert len(written) == 2
        for row in written:
            ids = oracle.ids(before + ASKED[int(row["prompt_id"])])
            new = _generated(chatting, [bos, *ids], 5)
            new = new[: new.index(bos)] if bos in new else new
            assert row["continuation"] == tokenizer.decode(new) and row["n_tokens"] == len(new)
    rows = {r["instruction_key"]: r for r in store.read("instruction").to_pylist()}
    assert {(r["instruction"], r["form"]) for r in rows.values()} == {
        (None, None),
        (TOLD, "prefix"),
        (TOLD, "chat"),
    }
    assert rows["none"]["form"] is None
    for view in ("gas", "gas_prompt", "disclosure()", "disclosure_prompt()"):
        found = rows_of(store.root, f"SELECT DISTINCT instruction_key FROM {view}")
        assert {row["instruction_key"] for row in found} == set(rows)


def test_what_can_t_be_asked_is_refused(
    store: Store, saved: dict[str, Path], chatting: Path
) -> None:
    put_prompts(store, "demo", ASKED)
    with pytest.raises(UsageProblem, match=r"tiny-gpt2: has no chat template.*use the form pref"):
        _measure(store, saved["gpt2"])
    assert not store.read("pronoun_probability").num_rows  # refused before anything was done
    backend = CausalModel(str(chatting), ModelOptions())
    for template, problem in (
        ("{{ raise_exception('no assistants here') }}", "refuses.*no assistants here"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "leaves out the instruction"),
        (
            "{% for m in messages %}{{ m.content if m.role == 'assistant' else m.content | upper }}"
            "{% endfor %}",
            "changes or leaves out",
        ),
    ):
        backend.tokenizer.chat_template = template
        with pytest.raises(UsageProblem, match=problem):
            backend.lead(Instruction(TOLD, "chat"))
