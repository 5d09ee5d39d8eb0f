"""Sentences as answers in a chat: scores by hand, whatever the template, and keys of their own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from plumbline.contracts import check_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.tiny_models import save

SYSTEM, USER = "He drank tea.", "The nurse said"
TEXTS = ["She drank tea.", "He drank tea.", "The nurse said she lost her key.", "Himself."]
#: A template that writes BOS, special tokens and the system text, and one that knows no system text
#: and has a blank before an answer, which belongs to the answer's first token.
TEMPLATES = {
    "neox": "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}"
    "\n{% endfor %}",
    "llama-adds-bos": "{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('no system') }}{% elif m.role == 'user' %}{{ bos_token }}"
    "{{ m.content | trim }}</s>{% else %} {{ m.content | trim }} </s>{% endif %}{% endfor %}",
}
#: What each writes before an answer, by hand.
FRAMES = {
    "neox": f"<|endoftext|>system: {SYSTEM}<|endoftext|>\nuser: {USER}<|endoftext|>\nassistant: ",
    "llama-adds-bos": f"<s>{USER}</s> ",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    found = {"plain": save("gpt2", root / "plain")}
    for kind, template in TEMPLATES.items():
        found[kind] = save(kind, root / kind)
        tokenizer = transformers.AutoTokenizer.from_pretrained(found[kind])
        tokenizer.chat_template = template
        tokenizer.save_pretrained(found[kind])
    return found


def _file(directory: Path, kind: str, user: str = USER) -> str:
    path = directory / "chat.toml"
    system = f"system = {json.dumps(SYSTEM)}\n" if kind == "neox" else ""
    path.write_text(f"{system}user = {json.dumps(user)}\n")
    return str(path)


def _by_hand(path: Path, kind: str, text: str) -> list[float]:
    """log p (nats) of the answer's tokens: those that end behind the template's text."""
    frame = FRAMES[kind]
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path)
    whole = tokenizer(frame + text, add_special_tokens=False, return_offsets_mapping=True)
    ids, spans = whole["input_ids"], whole["offset_mapping"]
    assert ids[0] == tokenizer.bos_token_id and ids.count(ids[0]) == frame.count(
        tokenizer.bos_token
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.no_grad():
        logprobs = model.double().eval()(torch.tensor([ids])).logits[0].log_softmax(-1)
    answer = [i for i, (_, end) in enumerate(spans) if end > len(frame)]
    return [float(logprobs[i - 1, ids[i]]) for i in answer]


@pytest.mark.parametrize("kind", TEMPLATES)
def test_answers_have_their_probability_in_the_conversation(
    saved: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    chat = _file(tmp_path, kind)
    expected = [_by_hand(saved[kind], kind, text) for text in TEXTS]
    for batch_tokens in (1, 1000):
        how = ("transformers", str(saved[kind]), TEXTS)
        for score, values in zip(
            check_backend(*how, batch_tokens=batch_tokens, chat=chat), expected, strict=True
        ):
            assert score.token_logprobs_nats == pytest.approx(values, abs=1e-4)
    backend = CausalModel(str(saved[kind]), ModelOptions(chat=chat))
    assert backend.identity.measure == "log-likelihood in a chat"
    assert backend.identity.conversation == FRAMES[kind]
    bare = CausalModel(str(saved[kind]), ModelOptions()).score(TEXTS)
    assert all(abs(a.logprob_nats - sum(b)) > 0.01 for a, b in zip(bare, expected, strict=True))
    holds = backend.score(["She drank <s> tea.", "She <|endoftext|> drank."])
    assert any(score.problem and "special token" in score.problem for score in holds)


def test_a_template_that_changes_words_changes_no_sentence_and_no_question(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    """A sentence stands behind what the template makes of the question; that is as it was asked."""
    chat = _file(tmp_path, "neox", "he said")
    plain = CausalModel(str(saved["neox"]), ModelOptions(chat=chat)).score(TEXTS)
    changed = tmp_path / "changed"
    shutil.copytree(saved["neox"], changed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(changed)

    def rewriting(role: str, word: str, other: str) -> ModelOptions:
        other_words = f"m.content | replace('{word}', '{other}')"
        said = f"{{{{ {other_words} if m.role == '{role}' else m.content }}}}"
        tokenizer.chat_template = TEMPLATES["neox"].replace("{{ m.content }}", said)
        tokenizer.save_pretrained(changed)
        return ModelOptions(chat=chat)

    backend = CausalModel(str(changed), rewriting("assistant", "She", "He"))
    assert [s.logprob_nats for s in backend.score(TEXTS)] == [s.logprob_nats for s in plain]
    how = rewriting("user", "he", "she")  # which still holds what was asked
    with pytest.raises(UsageProblem, match="changes the words of a message"):
        CausalModel(str(changed), how)


def test_a_chat_that_cannot_be_is_refused_in_a_line(saved: dict[str, Path], tmp_path: Path) -> None:
    def refused(kind: str, chat: str, **options: Any) -> str:
        with pytest.raises((UsageProblem, BadInput)) as caught:
            CausalModel(str(saved[kind]), ModelOptions(chat=chat, **options))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "no chat template" in refused("plain", "default")
    problem = refused("llama-adds-bos", _file(tmp_path, "neox"))
    assert "refuses messages of system and user" in problem and "or its `system`" in problem
    assert "no such file" in refused("neox", str(tmp_path / "none.toml"))
    (tmp_path / "odd.toml").write_text('usr = "Go on."')
    assert "key 'usr': is unknown" in refused("neox", str(tmp_path / "odd.toml"))
    assert "special token <|endoftext|>" in refused(
        "neox", _file(tmp_path, "neox", "a<|endoftext|>")
    )
