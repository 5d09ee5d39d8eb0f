"""The transformers backend keeps the contract of backends."""

import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import peft
import pytest
import torch
import transformers

from plumbline.eval_workers.models import BACKENDS, open_backend, vllm_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import Identity
from plumbline.eval_workers.scoring.pair_scores import PairScores
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    MissingComponent,
    PlumblineError,
    UsageProblem,
)
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests import tiny_models
from tests.backend_contract import BackendContract
from tests.tiny_models import KINDS, SENTENCES


class TestTransformers(BackendContract):
    backend = "transformers"
    open_model = CausalModel
    tolerance = 1e-4
    limit = 64
    batch_tokens = (1, 40, 100_000)

    def test_devices_that_are_not_there(self, saved: dict[str, Path]) -> None:
        with pytest.raises(UsageProblem, match="no such option"):
            self.opened(saved["gpt2"], tensor_parallel=2)
        if not torch.cuda.is_available():
            with pytest.raises(MissingComponent, match="no CUDA device"):
                self.opened(saved["gpt2"], device="cuda").score(["a"])


#: Fields that depend on a model's files and on installed packages.
_OF_FILES = ("model", "revision", "backend_version", "adapter")


def test_identities_have_the_keys_of_version_0_2_0(tmp_path: Path) -> None:
    """`model_keys.jsonl` was written by the code of that tag, from models made as here."""
    for kind in (*KINDS, *tiny_models.MASKED, *tiny_models.ENCODER_DECODERS):
        tiny_models.save(kind, tmp_path / kind)
    tiny_models.save_chatting(tmp_path / "neox")
    base = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "neox")
    adapter = tmp_path / "adapter"
    peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM")).save_pretrained(adapter)
    write_jsonl_zst(tmp_path / "text.jsonl.zst", SENTENCES)
    train_model([tmp_path / "text.jsonl.zst"], "ngram", "c", None, tmp_path)
    for line in (Path(__file__).parent / "data/model_keys.jsonl").read_text().splitlines():
        row = json.loads(line)
        known, options = Identity(**row["identity"]), row["options"]
        if "adapter" in options:
            options["adapter"] = str(adapter)
        scored = PairScores("demo", options.pop("text_form", "written"))
        found = scored.identity(open_backend(str(tmp_path / row["model"]), ModelOptions(**options)))
        assert (found.adapter is None) == (known.adapter is None)
        same = {field: getattr(known, field) for field in _OF_FILES}
        assert replace(found, **same) == known and known.key == row["key"], line


def test_without_vllm_its_backend_names_the_install_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"ngram", "server", "transformers", "vllm"} <= set(BACKENDS.names())

    def refused() -> str:
        with pytest.raises(MissingComponent, match=re.escape(vllm_backend.INSTALL)) as caught:
            open_backend("org/model", ModelOptions(backend="vllm"))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.delenv("PLUMBLINE_VLLM", raising=False)
    assert "vLLM is not installed" in refused()
    monkeypatch.setenv("PLUMBLINE_VLLM", sys.executable)
    assert f"{sys.executable} has no vLLM" in refused()


@pytest.mark.parametrize(("ends", "kind"), [("kill -9 $$", Interrupted), ("exit 3", BadInput)])
def test_an_engine_of_vllm_that_ends_at_its_start(
    ends: str, kind: type[PlumblineError], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed, another try may help; what it gives up by itself has to be changed first."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho no room >&2\n{ends}\n")
    python.chmod(0o755)
    monkeypatch.setenv("PLUMBLINE_VLLM", str(python))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(kind, match="model m: vLLM's process"):
        vllm_backend.VllmBackend("m", ModelOptions(backend="vllm"))
    (log,) = (path for path in tmp_path.iterdir() if path != python)
    assert log.read_text() == "no room\n"
