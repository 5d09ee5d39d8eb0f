"""Models, adapters and servers of somebody else × what reads or asks them: nothing of them runs."""

import asyncio
import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from plumbline.eval_workers.chat.client import LARGEST, ChatClient, ServerOptions
from plumbline.eval_workers.chat.requests import Failure, Reply, Request
from plumbline.warehouse.errors import UsageProblem
from tests.backend_contract import changed
from tests.chat_server import Say, serving
from tests.hostile import peak_mb
from tests.test_model_sources import TARGETS, lora, refused, scored

# Models


@pytest.fixture
def base(saved: dict[str, Path]) -> Path:
    return saved["gpt2"]


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


#: What a configuration says, and what its error says.
CONFIGURATIONS: list[tuple[dict[str, object], str]] = [
    ({"n_layer": 10**12}, "claims n_layer 1,000,000,000,000, more than 4,096"),
    ({"text_config": {"num_local_experts": 10**6}}, "num_local_experts 1,000,000, more than"),
    ({"num_layers": 10**400}, f"claims num_layers {f'{10**400:,}'[:40]}, more than 4,096"),
    ({"n_embd": 10**400}, "can't be loaded"),
    ({"vocab_size": 10**9}, "its weights have other sizes than its config.json says"),
    ({"n_inner": 4096}, "its weights have other sizes than its config.json says"),
]


@pytest.mark.parametrize(("said", "told"), CONFIGURATIONS)
def test_a_configuration_that_is_none_is_refused(
    base: Path, tmp_path: Path, said: dict[str, object], told: str
) -> None:
    assert told in refused(changed(base, tmp_path, **said))


def test_pickles_beside_a_model_are_not_read(base: Path, tmp_path: Path) -> None:
    expected, mark = scored(base), tmp_path / "ran"
    model = shutil.copytree(base, tmp_path / "model")
    names = ["pytorch_model.bin", "training_args.bin", "optimizer.pt", "scheduler.pt"]
    names += ["adapter_model.bin", "tokenizer.pkl", "vocab.pkl", "rng_state.pth", "consolidated.pt"]
    for name in names:
        (model / name).write_bytes(pickle.dumps(_Touch(mark)))
    assert scored(model) == expected
    adapter = lora(base, tmp_path / "adapter", TARGETS["gpt2"])
    theirs = scored(base, adapter=str(adapter))
    (adapter / "adapter_model.bin").write_bytes(pickle.dumps(_Touch(mark)))
    assert scored(base, adapter=str(adapter)) == theirs
    (adapter / "adapter_model.safetensors").write_bytes(pickle.dumps(_Touch(mark)))
    assert "adapter_model.safetensors can't be read" in refused(base, adapter=str(adapter))
    assert not mark.exists()


@pytest.mark.parametrize("whole", [True, False])
def test_a_malicious_pickle_for_weights_runs_nothing(
    base: Path, tmp_path: Path, whole: bool
) -> None:
    model, mark = shutil.copytree(base, tmp_path / "model"), tmp_path / "ran"
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    evil = weights | {"extra": _Touch(mark)}
    if whole:
        torch.save(evil, model / "pytorch_model.bin")
    else:
        torch.save(evil, model / "pytorch_model-00001-of-00001.bin")
        index = {
            "metadata": {},
            "weight_map": dict.fromkeys(evil, "pytorch_model-00001-of-00001.bin"),
        }
        (model / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert "can't be loaded" in refused(model)
    assert not mark.exists()


CODE = "from pathlib import Path\nPath({mark!r}).touch()\nclass T: pass\nclass TFast: pass\n"


def test_a_tokenizer_with_code_of_its_own_is_refused(base: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    maps = {"AutoTokenizer": ["tokenization_own.T", "tokenization_own.TFast"]}
    said = {"auto_map": maps, "tokenizer_class": "OwnTokenizer"}
    model = changed(base, tmp_path, "tokenizer_config.json", **said)
    (model / "tokenization_own.py").write_text(CODE.format(mark=str(mark)))
    try:
        assert "code of its own, which is never run" in refused(model, UsageProblem)
    except pytest.fail.Exception:
        assert scored(model)  # a class of the library's in its place
    assert not mark.exists()


# Servers


def asked(url: str) -> Reply | Failure:
    async def ask() -> Reply | Failure:
        async with ChatClient(ServerOptions(url)) as client:
            return await client.attempt(Request("m", "Write.", (), "generate", "tea", "she", 1, 16))

    return asyncio.run(ask())


#: Twenty times as much as is read of a reply.
_ENDLESS = b'{"choices": [{"message": {"content": "' + b"a" * (20 * LARGEST)


@pytest.mark.parametrize("status", [200, 400])
def test_a_reply_that_states_a_huge_length_is_not_read(status: int) -> None:
    with serving(lambda *_: Say(body=_ENDLESS, status=status)) as server:
        before = peak_mb()
        outcome = asked(server.url)
        assert isinstance(outcome, Failure) and "more than 16,777,216 bytes" in outcome.error
        assert outcome.retry and outcome.charged
        assert peak_mb() - before < 200


@pytest.mark.parametrize("status", [302, 404])
def test_a_redirect_is_not_followed_and_shows_no_password(status: int) -> None:
    there = "http://user:p@ssw0rd@host/v1?key=secret"
    with serving(lambda *_: Say("no such model", status, headers={"Location": there})) as server:
        outcome = asked(server.url)
    assert isinstance(outcome, Failure) and "no such model" in outcome.error
    assert "ssw0rd" not in outcome.error and "secret" not in outcome.error
