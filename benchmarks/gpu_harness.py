"""Time lm-evaluation-harness alone on some texts, after loading the model.

Usage: gpu_harness.py hf|vllm MODEL TEXTS.json DTYPE DEVICE. Run it with the Python that has the
harness and its backend. The last line printed is the seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

#: Number of texts to score before timing, so that kernels are chosen and memory is allocated.
_WARM = 256


def opened(kind: str, model: str, dtype: str, device: str) -> Any:
    """Load the harness's model, with the settings that its documentation recommends for speed."""
    if kind == "vllm":
        from lm_eval.models.vllm_causallms import VLLM

        return VLLM(pretrained=model, dtype=dtype, batch_size="auto", max_model_len=256)
    from lm_eval.models.huggingface import HFLM

    batch = "auto" if device == "cuda" else 16
    return HFLM(pretrained=model, dtype=dtype, device=device, batch_size=batch)


def main() -> None:
    """Time one backend of the harness."""
    from lm_eval.api.instance import Instance

    kind, model, file, dtype, device = sys.argv[1:]
    with open(file, encoding="utf-8") as lines:
        texts = json.load(lines)
    harness = opened(kind, model, dtype, device)
    requests = [Instance("loglikelihood", {}, ("", text), i) for i, text in enumerate(texts)]
    harness.loglikelihood(requests[:_WARM], disable_tqdm=True)
    start = time.perf_counter()
    harness.loglikelihood(requests, disable_tqdm=True)
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
