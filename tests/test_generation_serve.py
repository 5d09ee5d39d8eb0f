"""A real server of chat completions with a real model, though one that knows nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from plumbline.eval_workers.chat.client import Server
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.writing.build import write_sentences
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.warehouse.storage.store import Store
from tests.chat_server import in_prose
from tests.tiny_models import save

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}1."

SERVE = "from transformers.cli.transformers import main; main()"


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Address and model of `transformers serve`, which runs until the end of the test."""
    model = save("neox", tmp_path / "noise")
    (model / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    port = _free_port()
    command = [sys.executable, "-c", SERVE, "serve", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--device", "cpu", "--default-seed", "1"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    log = tmp_path / "serve.log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
        while True:
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()
            try:
                with urlopen(f"{address}/health", timeout=1):
                    break
            except (URLError, OSError):
                time.sleep(0.1)
        yield f"{address}/v1", str(model)
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
def test_a_model_that_writes_noise_is_asked_and_its_noise_counted(
    served: tuple[str, str], store: Store
) -> None:
    url, model = served
    spec = BuildSpec(
        model=model,
        n_sentences=2,
        max_words=4,
        revise_rounds=2,
        generate_rounds=2,
        prompts=str(in_prose(store.root / "prompts.toml")),
    )
    server = Server(url, 60.0, concurrency=2, max_attempts=1)
    words = ["clock", "tea"]
    written = write_sentences(Build(store, "noise", "run", server), words, spec)
    rows = store.read("generation_request", benchmark="noise").to_pylist()
    assert len(rows) >= 8 and {row["status"] for row in rows} == {"replied"}
    assert all(r["n_input_tokens"] > 0 and 0 < r["n_output_tokens"] <= 128 for r in rows)
    assert {row["finish_reason"] for row in rows} <= {"stop", "length"}
    assert all(p.balances() and not p.kept for p in written)
    assert sum(p.n_in for p in written) > 0
    assert store.read("reject").num_rows == sum(len(p.rejected) for p in written)
    assert write_sentences(Build(store, "noise", "again", None), words, spec) == written
