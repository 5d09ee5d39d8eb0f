"""Instructions as a prefix and in a chat, and the measuring step, against transformers itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from plumbline.eval_workers.disclosure.set_measures import Disclosed, measure_sets
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Instruction
from plumbline.eval_workers.scoring import model_step
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.prompt_rows import put_prompts
from tests.test_disclosure_probe import Oracle
from tests.tiny_models import KINDS, save

PROMPTS = ["The nurse said", "The clerk drank tea, and"]
TOLD = "The crowd waited"
#: A template that writes BOS and another special token, and one whose answer begins with a blank.
TEMPLATES = {
    "neox": "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
    "\n{% endfor %}",
    "llama-adds-bos": "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token }}"
    "{{ m.content | trim }}</s>{% else %} {{ m.content | trim }} </s>{% endif %}{% endfor %}",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    found = {}
    for kind, template in TEMPLATES.items():
        found[kind] = save(kind, root / f"tiny-{kind}")
        tokenizer = transformers.AutoTokenizer.from_pretrained(found[kind])
        tokenizer.chat_template = template
        tokenizer.save_pretrained(found[kind])
    found["plain"] = save("gpt2", root / "tiny-plain")
    return found


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
        assert found[0] == self._bos
        return list(found[1:])


def _generated(directory: Path, ids: Sequence[int], n: int) -> list[int]:
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    given = torch.tensor([ids])
    out = model.generate(
        given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=n
    )
    return [int(i) for i in out[0, len(ids) :]]


def _measure(store: Store, model: Path, *asked: Instruction, n_new: int = 5) -> list[Disclosed]:
    return measure_sets(
        store,
        ["demo"],
        str(model),
        ModelOptions(),
        "run",
        word_list="she-he",
        instructions=asked,
        max_new_tokens=n_new,
    )


ALL = (Instruction(), Instruction(TOLD), Instruction(TOLD, "chat"))


def test_a_set_is_measured_under_each_instruction_by_a_model_opened_once(
    store: Store, saved: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, opened = "neox", []
    open_backend = model_step.open_backend

    def counted(model: str, options: ModelOptions) -> Any:
        opened.append(model)
        return open_backend(model, options)

    monkeypatch.setattr(model_step, "open_backend", counted)
    put_prompts(store, "demo", PROMPTS)
    done = _measure(store, saved[kind], *ALL)
    assert len(opened) == 1
    assert [m.probed.n_new for m in done] == [m.sampled.n_new for m in done] == [2, 2, 2]
    plain, chat = (made(saved[kind], KINDS[kind].bos) for made in (Oracle, ChatOracle))
    bos, tokenizer = plain._bos, transformers.AutoTokenizer.from_pretrained(saved[kind])
    for measured, oracle, before in zip(
        done, (plain, plain, chat), ("", f"{TOLD} ", ""), strict=True
    ):
        key = measured.instruction.key
        whose = {"probe_set": "demo", "model_key": measured.probed.model_key}
        words = store.read("pronoun_probability", **whose, word_list="she-he", instruction_key=key)
        assert words.num_rows == 4
        for row in words.to_pylist():
            wanted, _ = oracle.word(before + PROMPTS[int(row["prompt_id"])], row["word"])
            assert row["probability"] == pytest.approx(wanted, rel=1e-4, abs=0)
        written = store.read(
            "continuation", **whose, sampling_key=measured.sampled.partition["sampling_key"]
        ).to_pylist()
        assert len(written) == 2
        for row in written:
            ids = oracle.ids(before + PROMPTS[int(row["prompt_id"])])
            new = _generated(saved[kind], [bos, *ids], 5)
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


def test_what_can_t_be_asked_is_refused(store: Store, saved: dict[str, Path]) -> None:
    put_prompts(store, "demo", PROMPTS)
    with pytest.raises(UsageProblem, match=r"tiny-plain: has no chat template.*use the form pref"):
        _measure(store, saved["plain"], *ALL)
    assert not store.read("pronoun_probability").num_rows  # refused before anything was done
    backend = CausalModel(str(saved["neox"]), ModelOptions())
    for template, problem in (
        ("{{ raise_exception('no assistants here') }}", "refuses.*no assistants here"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "leaves out the instruction"),
        (
            "{% for m in messages %}{{ m.content }} {% if 'Plumbline' not in m.content %}"
            "(she means he) {% endif %}{% endfor %}",
            "changes the words of a message",
        ),
    ):
        backend.tokenizer.chat_template = template
        with pytest.raises(UsageProblem, match=problem):
            backend.lead(Instruction(TOLD, "chat"))
