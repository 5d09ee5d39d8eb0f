"""The transformers backend keeps the contract of backends."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from plumbline.eval_workers.backends.transformers_backend import TransformersBackend
from plumbline.eval_workers.options import ModelOptions
from plumbline.warehouse.errors import MissingComponent, UsageProblem
from tests.backend_contract import BackendContract


class TestTransformers(BackendContract):
    backend = "transformers"
    open_model = TransformersBackend
    tolerance = 1e-4
    limit = 64
    batch_tokens = (1, 40, 100_000)

    def test_tokenizers_that_add_bos_themselves_do_so(self, saved: dict[str, Path]) -> None:
        """The kinds are what they say: some tokenizers add BOS when let, the others do not."""
        from transformers import AutoTokenizer

        for kind, path in saved.items():
            tokenizer = AutoTokenizer.from_pretrained(path)
            starts_with_bos = tokenizer("She ran.")["input_ids"][0] == tokenizer.bos_token_id
            assert starts_with_bos == kind.endswith("adds-bos")

    def test_devices_that_are_not_there(self, saved: dict[str, Path]) -> None:
        with pytest.raises(UsageProblem, match="no such option"):
            self.opened(saved["gpt2"], tensor_parallel=2)
        if not torch.cuda.is_available():
            with pytest.raises(MissingComponent, match="no CUDA device"):
                self.opened(saved["gpt2"], device="cuda").score(["a"])


def test_without_vllm_its_backend_names_the_install_line(tmp_path: Path) -> None:
    from importlib.util import find_spec

    from plumbline.eval_workers.backends import BACKENDS, open_backend

    assert BACKENDS.names() == ["transformers", "vllm"]
    if find_spec("vllm"):
        pytest.skip("vLLM is installed here")
    with pytest.raises(MissingComponent, match="make setup-vllm") as caught:
        open_backend(str(tmp_path), ModelOptions(backend="vllm"))
    assert "\n" not in str(caught.value)
