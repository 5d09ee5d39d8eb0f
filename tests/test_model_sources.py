"""What can be loaded and scored: adapters, quantised weights, models with code; what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
import transformers
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.models.local import model_files, tree, weights
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from tests.tiny_models import KINDS, SENTENCES, one_by_one, save

BOS = "<|endoftext|>"
TARGETS = {"gpt2": "c_attn", "neox": "query_key_value"}
RANK, ALPHA = 4, 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {kind: save(kind, root / kind) for kind in TARGETS}


def scored(model: Path | str, **options: str) -> list[float]:
    backend = CausalModel(str(model), ModelOptions(**options))  # type: ignore[arg-type]
    scores = backend.score(SENTENCES)
    assert all(score.problem is None for score in scores)
    return [score.logprob_nats for score in scores]


def key(model: Path | str, **options: str) -> str:
    return CausalModel(str(model), ModelOptions(**options)).identity.key  # type: ignore[arg-type]


def refused(model: Path | str, kind: type[Exception] = BadInput, **options: str) -> str:
    with pytest.raises(kind) as caught:
        CausalModel(str(model), ModelOptions(**options)).score(["a"])  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def lora(base: Path, out: Path, target: str) -> Path:
    """Save a LoRA adapter for ``base`` whose B is not zero."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    options = LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=[target], task_type="CAUSAL_LM", lora_dropout=0.5
    )
    adapted = get_peft_model(model, options)
    torch.manual_seed(0)
    for name, weight in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.2)
    adapted.save_pretrained(out)
    return out


def merged_by_hand(base: Path, adapter: Path, out: Path) -> Path:
    """W + alpha / r B A on the saved tensors, in float64."""
    shutil.copytree(base, out)
    weights = load_file(out / "model.safetensors")
    for name, a in load_file(adapter / "adapter_model.safetensors").items():
        if not name.endswith("lora_A.weight"):
            continue
        b = load_file(adapter / "adapter_model.safetensors")[name.replace("lora_A", "lora_B")]
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        change = ALPHA / RANK * (b.double() @ a.double())
        weights[f"{module}.weight"] = weights[f"{module}.weight"].double() + change
    save_file(weights, out / "model.safetensors", {"format": "pt"})
    return out


def test_adapters_that_do_not_fit(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = saved["neox"]
    adapter = lora(base, tmp_path / "tuned", TARGETS["neox"])
    fix = f"--model BASE --adapter {adapter}"
    assert "is an adapter" in refused(adapter) and fix in refused(adapter)
    whole = shutil.copytree(base, tmp_path / "both")
    shutil.copytree(adapter, whole, dirs_exist_ok=True)
    assert "is an adapter" in refused(whole)
    assert "does not fit" in refused(saved["gpt2"], adapter=str(adapter))
    assert "holds no adapter_config.json" in refused(base, adapter=str(base))
    assert "holds no adapter_config.json" in refused(base, adapter=str(tmp_path / "none"))
    assert "neither a directory nor a hub id" in refused(base, adapter="two words")
    assert "can't be had from the hub" in refused(base, adapter="nobody/plumbline-test-adapter")
    # As wide, but with other layers: weights that are absent would be as good as none.
    for n_layers in (1, 3):
        config = transformers.AutoConfig.from_pretrained(base)
        config.num_hidden_layers = n_layers
        other = shutil.copytree(base, tmp_path / f"layers-{n_layers}")
        (other / "model.safetensors").unlink()
        transformers.GPTNeoXForCausalLM(config).save_pretrained(other)
        assert "2 weights differ" in refused(other, adapter=str(adapter))
    model = AutoModelForCausalLM.from_pretrained(base)
    prompts = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    get_peft_model(model, prompts).save_pretrained(tmp_path / "prompts")
    assert "PROMPT_TUNING" in refused(base, adapter=str(tmp_path / "prompts"))
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"revision": "0" * 16}))
    assert "of revision 0000000000000000, neox is " in refused(base, adapter=str(adapter))
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"task_type": "SEQ_CLS"}))
    assert "SEQ_CLS" in refused(base, adapter=str(adapter))
    (adapter / "adapter_config.json").write_text("[")
    assert "can't be read" in refused(base, adapter=str(adapter))
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    assert "holds no adapter_model.safetensors" in refused(base, adapter=str(adapter))

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert "peft" in refused(base, metadata.PackageNotFoundError, adapter=str(adapter))
    assert "pip install bitsandbytes" in refused(base, MissingComponent, quantisation="nf4")


_HUB = """
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.warehouse.errors import BadInput
backend = CausalModel("somebody/base", ModelOptions(adapter="somebody/tuned"))
print(backend.identity.adapter, backend.score(["She ran."])[0].logprob_nats)
try:
    CausalModel("somebody/tuned", ModelOptions())
except BadInput as e:
    print(e)
"""


@pytest.mark.slow
def test_adapters_of_the_hub_are_held_to_a_commit(saved: dict[str, Path], tmp_path: Path) -> None:
    """A cache laid out as the hub library does, with no network."""
    commits = {"base": "a" * 40, "tuned": "b" * 40}
    for name, commit in commits.items():
        repository = tmp_path / f"models--somebody--{name}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text(commit)
        (repository / "snapshots").mkdir()
    base, adapter = (tmp_path / f"models--somebody--{n}/snapshots/{c}" for n, c in commits.items())
    shutil.copytree(saved["neox"], base)
    lora(base, adapter, TARGETS["neox"])
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", _HUB]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    scored_as, told = done.stdout.splitlines()
    name, value = scored_as.split()
    assert name == f"somebody/tuned@{commits['tuned']}"
    whole = merged_by_hand(saved["neox"], adapter, tmp_path / "merged")
    assert abs(float(value) - one_by_one(whole, BOS, ["She ran."])[0][0]) < 1e-4
    assert "is an adapter" in told and "--model BASE --adapter somebody/tuned" in told


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """As `llama-adds-bos`, with matrices of whole blocks of 64 weights, which nf4 asks for."""
    path = save("llama-adds-bos", tmp_path / "wide")
    config = transformers.AutoConfig.from_pretrained(path)
    config.hidden_size, config.intermediate_size, config.head_dim = 64, 128, 16
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    return path


@pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None,
    reason="bitsandbytes is not installed: pip install bitsandbytes",
)
@pytest.mark.parametrize("method", ["int8", "nf4"])
def test_quantised_weights(wide: Path, method: str, tmp_path: Path) -> None:
    exact = [total for total, _ in one_by_one(wide, "<s>", SENTENCES)]
    options = ModelOptions(quantisation=method)
    backend = CausalModel(str(wide), options)
    version = metadata.version("bitsandbytes")
    assert backend.identity.quantisation == f"bitsandbytes {method} {version}"
    assert backend.identity.key != key(wide)
    together = [score.logprob_nats for score in backend.score(SENTENCES)]
    alone = [backend.score([text])[0].logprob_nats for text in SENTENCES]
    differences = [abs(a - b) for a, b in zip(together, exact, strict=True)]
    print(f"{method}: {sum(differences):.1f} of {sum(map(abs, exact)):.1f} nats")
    assert max(differences) > 1e-3  # it is quantised
    # Of all texts together: a short one of a random model can err by half of what it has.
    assert sum(differences) < 0.1 * sum(map(abs, exact))
    assert together == pytest.approx(alone, abs=1e-4)
    assert backend.n_parameters == CausalModel(str(wide), ModelOptions()).n_parameters
    adapter = lora(wide, tmp_path / "tuned", "q_proj")
    assert scored(wide, quantisation=method, adapter=str(adapter)) != together
    kept = shutil.copytree(wide, tmp_path / "kept")
    # Saved unused: on CPU a first pass packs nf4 in another way.
    CausalModel(str(wide), options)._model.save_pretrained(kept)
    own = CausalModel(str(kept), ModelOptions())
    assert own.identity.quantisation == "bitsandbytes"
    found = [score.logprob_nats for score in own.score(SENTENCES)]
    assert found == pytest.approx(together, abs=1e-3)


def test_heads_that_share_one_key_attend_without_the_fused_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen on a GPU alone; with it a tree's scores are those of single texts."""
    for kind in KINDS:
        config = transformers.AutoConfig.from_pretrained(save(kind, tmp_path / kind))
        shares = kind in ("llama-adds-bos", "mistral")
        assert model_files._attention(config, "cuda") == ("eager" if shares else None)
        assert model_files._attention(config, "cpu") is None
    falcon = transformers.FalconConfig(multi_query=True)
    assert model_files._attention(falcon, "cuda") == "eager"
    monkeypatch.setattr(model_files, "_attention", lambda *_: "eager")
    shared = tmp_path / "llama-adds-bos"
    backend = CausalModel(str(shared), ModelOptions())
    found = [score.logprob_nats for score in backend.score(SENTENCES)]
    assert backend.weights.model.config._attn_implementation == "eager"
    exact = [total for total, _ in one_by_one(shared, "<s>", SENTENCES)]
    assert found == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("kind", TARGETS)
def test_rows_of_small_trees_have_the_scores_of_single_texts(
    saved: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU lays out a pass: several trees in rows of one width, and longer texts in one."""
    texts = [*SENTENCES, " ".join(SENTENCES[:3])]
    exact = [total for total, _ in one_by_one(saved[kind], BOS, texts)]
    monkeypatch.setitem(weights._TREE_NODES, "cpu", 12)
    monkeypatch.setitem(tree._STEP, "cpu", 5)
    shapes = []
    mask = tree._mask
    monkeypatch.setattr(tree, "_mask", lambda *a: shapes.append(a[0].shape) or mask(*a))
    backend = CausalModel(str(saved[kind]), ModelOptions(device="cpu"))
    found = [score.logprob_nats for score in backend.score(texts)]
    assert found == pytest.approx(exact, abs=1e-4)
    assert max(n_rows for n_rows, _ in shapes) > 1
    assert {width % 5 for _, width in shapes} == {0}


_CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import GPT2Config, GPT2LMHeadModel
class MarkedConfig(GPT2Config):
    model_type = "marked"
class MarkedLMHeadModel(GPT2LMHeadModel):
    config_class = MarkedConfig
"""


def test_a_models_own_code_never_runs(
    saved: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "m"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    mark, model = tmp_path / "ran", shutil.copytree(saved["gpt2"], tmp_path / "coded")
    config = json.loads((model / "config.json").read_text())
    config |= {"model_type": "marked", "architectures": ["MarkedLMHeadModel"]}
    names = {"AutoConfig": "MarkedConfig", "AutoModelForCausalLM": "MarkedLMHeadModel"}
    config["auto_map"] = {auto: f"modeling_marked.{name}" for auto, name in names.items()}
    (model / "config.json").write_text(json.dumps(config))
    (model / "modeling_marked.py").write_text(_CODE.format(mark=str(mark)))
    assert "needs code of its own, which is never run" in refused(model, UsageProblem)
    assert not mark.exists()


_SIZE = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 40}
_BERT = transformers.BertConfig(**_SIZE, intermediate_size=8)
_NEOX = transformers.GPTNeoXConfig(**_SIZE, intermediate_size=8, max_position_embeddings=8)
_VIT = transformers.ViTConfig(
    hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, image_size=32
)
_T5 = transformers.T5Config(vocab_size=40, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=1)
_BART = transformers.BartConfig(
    vocab_size=40,
    d_model=8,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=1,
    decoder_attention_heads=1,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    max_position_embeddings=8,
)
NOT_CAUSAL = {
    "T5": (transformers.T5ForConditionalGeneration, _T5, "not a causal language model"),
    "BART": (transformers.BartForConditionalGeneration, _BART, "not a causal language model"),
    "BERT": (transformers.BertForMaskedLM, _BERT, "not a causal language model"),
    "BERT both ways": (transformers.BertLMHeadModel, _BERT, "saved without the head"),
    "ViT": (transformers.ViTForImageClassification, _VIT, "neither a causal"),
    "no head": (transformers.GPTNeoXModel, _NEOX, "saved without the head"),
}


@pytest.mark.parametrize("architectures", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("case", NOT_CAUSAL)
def test_what_is_no_causal_model(
    saved: dict[str, Path], tmp_path: Path, case: str, architectures: bool
) -> None:
    """Also when the configuration does not say what was saved, as of sentence encoders."""
    kind, config, word = NOT_CAUSAL[case]
    path = shutil.copytree(saved["neox"], tmp_path / "model")
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        (path / name).unlink()
    kind(config).save_pretrained(path)
    if not architectures:
        written = json.loads((path / "config.json").read_text())
        del written["architectures"]
        (path / "config.json").write_text(json.dumps(written))
        unnamed = {"no head": "weights are missing", "BERT both ways": "of the kind masked"}
        word = unnamed.get(case, word)
    assert word in refused(path)
