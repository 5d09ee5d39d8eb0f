"""Model directories that somebody else made: nothing in them runs."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from plumbline.eval_workers.models import model_lists
from plumbline.eval_workers.models.local.loading import _refuse_pickles
from plumbline.eval_workers.models.local.source import Source
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.transformers_backend import TransformersBackend
from plumbline.eval_workers.training import trainer
from plumbline.eval_workers.training.mitigation import adapter_trainer as tune
from plumbline.jobs.seed_words.english import load_model as load_language
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.hub_server import environment, hub
from tests.test_model_sources import TARGETS, lora, refused, scored
from tests.tiny_models import save


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gpt2", tmp_path_factory.mktemp("models") / "gpt2")


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


def copied(base: Path, out: Path, file: str = "config.json", **changes: Any) -> Path:
    """A copy of a model whose JSON file says more."""
    shutil.copytree(base, out)
    path = out / file
    said = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(said | changes))
    return out


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


def test_a_hub_repository_of_pickles_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    files: set[str] = set()
    where = "plumbline.eval_workers.models.local.loading._on_hub_if_any"
    monkeypatch.setattr(where, lambda source, name: name in files)

    def check(name: str, *held: str) -> None:
        files.clear()
        files.update(held)
        _refuse_pickles(Source(name, name, "0" * 40, is_local=False))

    for pickled in ("pytorch_model.bin", "pytorch_model.bin.index.json"):
        with pytest.raises(BadInput, match="as pickles, no safetensors"):
            check("somebody/model", pickled)
        check("somebody/model", pickled, "model.safetensors")
        check("somebody/model", pickled, "model.safetensors.index.json")
        check("facebook/opt-350m", pickled)  # of a shipped list


#: Scores a sentence by each model named, or says why not.
_SCORES = """
import sys
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput
for name in sys.argv[1:]:
    try:
        print("scored", open_backend(name, ModelOptions()).score(["She ran."])[0].logprob_nats)
    except BadInput as e:
        print("refused", e)
"""


def pickled(base: Path, out: Path, mark: Path | None, *, is_zip: bool = True) -> Path:
    """A model with its weights as a pickle, which makes the file ``mark`` when it is unpickled."""
    shutil.copytree(base, out)
    weights: dict[str, object] = dict(load_file(out / "model.safetensors"))
    (out / "model.safetensors").unlink()
    weights |= {"extra": _Touch(mark)} if mark else {}
    torch.save(weights, out / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)
    return out


@pytest.mark.slow
def test_a_pickle_on_the_hub_runs_nothing_whoever_names_the_model(
    base: Path, tmp_path: Path
) -> None:
    """Of models of a shipped list tensors alone are read, of others nothing; both from a server."""
    mark = tmp_path / "ran"
    honest, evil, older = (listed.id for listed in model_lists.load("unstereoeval")[:3])
    made = {
        honest: pickled(base, tmp_path / "honest", None),
        evil: pickled(base, tmp_path / "evil", mark),
        older: pickled(base, tmp_path / "older", mark, is_zip=False),
        "somebody/model": pickled(base, tmp_path / "other", None),
    }
    for name in (evil, older):  # each would run if it were read as what it is
        torch.load(made[name] / "pytorch_model.bin", weights_only=False)
        mark.unlink()
    with hub(made) as server:
        done = subprocess.run(
            [sys.executable, "-c", _SCORES, *made],
            env=environment(server, tmp_path / "hf"),
            capture_output=True,
            text=True,
            check=True,
        )
    lines = done.stdout.splitlines()
    (expected,) = TransformersBackend(str(base), ModelOptions()).score(["She ran."])
    assert lines[0] == f"scored {expected.logprob_nats}"
    assert all(line.startswith("refused model") for line in lines[1:]) and len(lines) == 4
    assert "as pickles, no safetensors" in lines[3]
    assert not mark.exists()


def test_our_own_checkpoints_are_read_as_tensors_alone(tmp_path: Path) -> None:
    mark, work = tmp_path / "ran", tmp_path / "work"
    work.mkdir()
    (work / "tokenizer.json").write_text("{}")
    torch.save({"key": "k", "x": _Touch(mark)}, work / trainer._CHECKPOINT)
    assert trainer._restore(work, "k") is None
    assert not mark.exists() and list(work.iterdir()) == []
    place = tmp_path / "tuned" / f"{tune._MARK}00000001"
    place.mkdir(parents=True)
    torch.save({"log": [], "seconds": 0.0, "x": _Touch(mark)}, place / tune._STATE)
    run = object.__new__(tune._Run)
    run.work = place.parent
    run.restore()
    assert not mark.exists() and not place.exists()


CODE = "from pathlib import Path\nPath({mark!r}).touch()\nclass T: pass\nclass TFast: pass\n"


def test_a_tokenizer_with_code_of_its_own_is_refused(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    maps = {"AutoTokenizer": ["tokenization_own.T", "tokenization_own.TFast"]}
    said = {"auto_map": maps, "tokenizer_class": "OwnTokenizer"}
    model = copied(base, tmp_path / "model", "tokenizer_config.json", **said)
    (model / "tokenization_own.py").write_text(CODE.format(mark=str(mark)))
    try:
        told = refused(model, UsageProblem)
        assert f"--trust-remote-code {model}" in told
    except pytest.fail.Exception:
        assert scored(model)  # a class of the library's in its place
    assert not mark.exists()


def test_a_generate_of_its_own_is_not_run(base: Path, tmp_path: Path) -> None:
    mark, model = tmp_path / "ran", shutil.copytree(base, tmp_path / "model")
    (model / "custom_generate").mkdir()
    code = CODE.format(mark=str(mark)) + "def generate(model, **kwargs): pass\n"
    (model / "custom_generate" / "generate.py").write_text(code)
    try:
        scored(model)
    except UsageProblem as e:
        assert "code of its own" in str(e)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("architectures", [["GPT2LMHeadModel"]]),
        ("architectures", [None]),
        ("architectures", 5),
        ("model_type", ["gpt2"]),
        ("problem_type", ["regression"]),
        ("dtype", ["float32"]),
        ("quantization_config", "int8"),
    ],
)
def test_a_configuration_whose_names_are_no_texts(
    base: Path, tmp_path: Path, key: str, value: object
) -> None:
    assert "config.json" in refused(copied(base, tmp_path / "model", **{key: value}))


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_foreign_kernels_are_not_fetched(base: Path, tmp_path: Path, key: str) -> None:
    model = copied(base, tmp_path / "model", **{key: "somebody/kernel"})
    backend = None
    try:
        backend = TransformersBackend(str(model), ModelOptions())
    except BadInput as e:
        assert "asks for foreign code" in str(e)
    if backend is not None:
        assert "/" not in str(backend.config._attn_implementation)


def test_an_adapter_that_names_a_module_is_refused(base: Path, tmp_path: Path) -> None:
    adapter = lora(base, tmp_path / "adapter", TARGETS["gpt2"])
    path = adapter / "adapter_config.json"
    said = {"megatron_config": {"x": 1}, "megatron_core": "antigravity"}
    path.write_text(json.dumps(json.loads(path.read_text()) | said))
    assert "names itself" in refused(base, adapter=str(adapter))


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"\x00" * 64, b"\xba\x16\x4f\x2f" * 99])
def test_a_language_model_that_is_none(tmp_path: Path, content: bytes) -> None:
    path, mark = tmp_path / "lid.bin", tmp_path / "ran"
    path.write_bytes(content or pickle.dumps(_Touch(mark)))
    with pytest.raises(BadInput, match=r"not a fastText model|expected __label__en and others"):
        load_language(path)
    assert not mark.exists()


def test_numpy_reads_no_pickles(tmp_path: Path) -> None:
    """The default that `allow_pickle`, which no file of ours names, would turn off."""
    np.save(tmp_path / "a.npy", np.array([_Touch(tmp_path / "ran")], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(tmp_path / "a.npy")
