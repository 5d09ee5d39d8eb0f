"""What can be loaded and scored: adapters, quantised weights, models with code; what is refused."""

import importlib.util
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
import transformers
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.warehouse.errors import BadInput, UsageProblem
from tests.backend_contract import changed
from tests.steps import python
from tests.tiny_models import SENTENCES, one_by_one, save

BOS = "<|endoftext|>"
TARGETS = {"gpt2": "c_attn", "neox": "query_key_value"}
RANK, ALPHA = 4, 12


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


def test_an_adapter_that_does_not_fit_is_refused(saved: dict[str, Path], tmp_path: Path) -> None:
    base, adapter = saved["neox"], lora(saved["neox"], tmp_path / "tuned", TARGETS["neox"])
    assert f"is an adapter (give --model BASE --adapter {adapter})" in refused(adapter)
    model = AutoModelForCausalLM.from_pretrained(base)
    prompts = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    get_peft_model(model, prompts).save_pretrained(tmp_path / "prompts")
    # As wide, but with another number of layers: weights that are absent would be as good as none.
    deep = changed(base, tmp_path / "deep")
    config = transformers.AutoConfig.from_pretrained(base, num_hidden_layers=3)
    transformers.GPTNeoXForCausalLM(config).save_pretrained(deep)
    file = "adapter_config.json"
    other = changed(adapter, tmp_path / "a", file, revision="0" * 16)
    classifier = changed(adapter, tmp_path / "b", file, task_type="SEQ_CLS")
    broken, pickled = (changed(adapter, tmp_path / name) for name in "cd")
    (broken / file).write_text("[")
    (pickled / "adapter_model.safetensors").rename(pickled / "adapter_model.bin")
    cases: list[tuple[Path, Path | str, str]] = [
        (saved["gpt2"], adapter, "does not fit"),
        (deep, adapter, "2 weights differ"),
        (base, base, "holds no adapter_config.json"),
        (base, "two words", "Repo id must use"),
        (base, "nobody/plumbline-test-adapter", "can't be loaded from the hub"),
        (base, tmp_path / "prompts", "PROMPT_TUNING"),
        (base, other, "on revision 0000000000000000 of "),
        (base, classifier, "SEQ_CLS"),
        (base, broken, "can't be read"),
        (base, pickled, "holds no adapter_model.safetensors"),
    ]
    for model_path, given, said in cases:
        assert said in refused(model_path, adapter=str(given))


def test_an_adapter_scores_as_the_merged_weights(saved: dict[str, Path], tmp_path: Path) -> None:
    adapter = lora(saved["neox"], tmp_path / "tuned", TARGETS["neox"])
    whole = merged_by_hand(saved["neox"], adapter, tmp_path / "merged")
    exact = [total for total, _ in one_by_one(whole, BOS, SENTENCES)]
    assert scored(saved["neox"], adapter=str(adapter)) == pytest.approx(exact, abs=1e-4)


_HUB = """
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.warehouse.errors import BadInput
for revision in (None, "v2", "c" * 40):
    identity = CausalModel("somebody/base", ModelOptions(revision=revision)).identity
    print(identity.revision, identity.key)
print(CausalModel("somebody/base", ModelOptions(adapter="somebody/tuned")).identity.adapter)
try:
    CausalModel("somebody/tuned", ModelOptions())
except BadInput as e:
    print(e)
"""


@pytest.mark.slow
def test_models_and_adapters_of_the_hub_are_held_to_a_commit(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    """A cache laid out as the hub library does, with no network."""
    branches = {"base": {"main": "a" * 40, "v2": "c" * 40}, "tuned": {"main": "b" * 40}}
    for name, commits in branches.items():
        repository = tmp_path / f"models--somebody--{name}"
        (repository / "refs").mkdir(parents=True)
        for branch, commit in commits.items():
            (repository / "refs" / branch).write_text(commit)
            place = repository / "snapshots" / commit
            if name == "base":
                shutil.copytree(saved["neox"], place)
            else:
                lora(saved["neox"], place, TARGETS["neox"])
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = python(_HUB, env=environment)
    assert done.returncode == 0, done.stderr
    main, v2, commit, adapter, told = done.stdout.splitlines()
    assert main.startswith("a" * 40) and v2.startswith("c" * 40) and v2 == commit
    assert main.split()[1] != v2.split()[1] and adapter == f"somebody/tuned@{'b' * 40}"
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
def test_quantised_weights(wide: Path, tmp_path: Path) -> None:
    exact = [total for total, _ in one_by_one(wide, "<s>", SENTENCES)]
    backend = CausalModel(str(wide), ModelOptions(quantisation="nf4"))
    version = metadata.version("bitsandbytes")
    assert backend.identity.quantisation == f"bitsandbytes nf4 {version}"
    assert backend.identity.key != key(wide)
    together = [score.logprob_nats for score in backend.score(SENTENCES)]
    alone = [backend.score([text])[0].logprob_nats for text in SENTENCES]
    differences = [abs(a - b) for a, b in zip(together, exact, strict=True)]
    print(f"nf4: {sum(differences):.1f} of {sum(map(abs, exact)):.1f} nats")
    assert max(differences) > 1e-3  # it is quantised
    # Of all texts together: a short one of a random model can err by half of what it has.
    assert sum(differences) < 0.1 * sum(map(abs, exact))
    assert together == pytest.approx(alone, abs=1e-4)
    assert backend.n_parameters == CausalModel(str(wide), ModelOptions()).n_parameters
    adapter = lora(wide, tmp_path / "tuned", "q_proj")
    assert scored(wide, quantisation="nf4", adapter=str(adapter)) != together


def test_weights_that_were_saved_quantised(saved: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(saved["gpt2"], tmp_path / "saved"))
    config = transformers.AutoConfig.from_pretrained(path)
    config.quantization_config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    config.save_pretrained(path)
    assert CausalModel(str(path), ModelOptions()).identity.quantisation == "bitsandbytes"
    assert "saved quantised" in refused(path, UsageProblem, quantisation="nf4")
    config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    config.save_pretrained(path)
    assert "was saved in int8" in refused(path)


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
    names = {"AutoConfig": "MarkedConfig", "AutoModelForCausalLM": "MarkedLMHeadModel"}
    said = {"model_type": "marked", "architectures": ["MarkedLMHeadModel"]}
    said |= {"auto_map": {auto: f"modeling_marked.{name}" for auto, name in names.items()}}
    mark, model = tmp_path / "ran", changed(saved["gpt2"], tmp_path, **said)
    (model / "modeling_marked.py").write_text(_CODE.format(mark=str(mark)))
    assert "needs code of its own, which is never run" in refused(model, UsageProblem)
    assert not mark.exists()


_NO_HEAD = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 40}
_BERT = {**_NO_HEAD, "intermediate_size": 8}
_VIT = {**_BERT, "image_size": 32}
#: The class that was saved and its configuration; what is said with and without its name in it.
NOT_CAUSAL: dict[str, tuple[str, str, dict[str, int], str, str]] = {
    "masked": ("BertForMaskedLM", "bert", _BERT, *["not a causal language model"] * 2),
    "BERT both ways": ("BertLMHeadModel", "bert", _BERT, "saved without the head", "kind masked"),
    "images": ("ViTForImageClassification", "vit", _VIT, *["neither a causal"] * 2),
    "no head": ("GPTNeoXModel", "gpt_neox", _BERT, "saved without the head", "are missing"),
}


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("case", NOT_CAUSAL)
def test_what_is_no_causal_model(
    saved: dict[str, Path], tmp_path: Path, case: str, is_named: bool
) -> None:
    """Also when the configuration does not say what was saved, as of sentence encoders."""
    kind, model_type, sizes, named, unnamed = NOT_CAUSAL[case]
    path = changed(saved["neox"], tmp_path)
    config = transformers.AutoConfig.for_model(model_type, **sizes)
    getattr(transformers, kind)(config).save_pretrained(path)
    if not is_named:
        path = changed(path, tmp_path / "unnamed", architectures=None)
    assert (named if is_named else unnamed) in refused(path)
