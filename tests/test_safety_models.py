"""Models, adapters and servers of somebody else × what reads or asks them: nothing of them runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from plumbline.eval_workers.chat.client import LARGEST, ChatClient, Server
from plumbline.eval_workers.chat.requests import Failure, Reply, Request
from plumbline.warehouse.errors import UsageProblem
from tests.backend_contract import changed
from tests.chat_server import Say, completion, serving
from tests.hostile import peak_mb
from tests.test_model_sources import TARGETS, lora, refused, scored
from tests.tiny_models import save

# Models


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gpt2", tmp_path_factory.mktemp("models") / "gpt2")


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return Path.touch, (self.path,)


#: What a configuration says, and what its error says.
CONFIGURATIONS: list[tuple[dict[str, object], str]] = [
    ({"n_layer": 10**12}, "claims n_layer 1,000,000,000,000, more than 4,096"),
    ({"text_config": {"num_local_experts": 10**6}}, "num_local_experts 1,000,000, more than"),
    ({"n_embd": 10**400}, f"claims n_embd {f'{10**400:,}'[:40]}, more than 134,217,728"),
    ({"vocab_size": 10**9}, "claims vocab_size 1,000,000,000, more than 134,217,728"),
    ({"n_inner": 4096}, "its weights are of other sizes than its config.json says"),
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


def test_a_tokenizer_with_code_of_its_own_is_refused(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


_PART = b"a" * (1 << 16)
#: More than any test machine should give away; what is sent in vain stops here.
_ENDLESS = 8 << 30


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with suppress(BrokenPipeError, ConnectionResetError):
                answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def head(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def endless(handler: BaseHTTPRequestHandler, status: int = 200) -> None:
    head(handler, status)
    handler.wfile.write(b'{"choices": [{"message": {"content": "')
    for _ in range(_ENDLESS // len(_PART)):
        handler.wfile.write(_PART)


def endless_refusal(handler: BaseHTTPRequestHandler) -> None:
    endless(handler, 400)


def bomb(handler: BaseHTTPRequestHandler) -> None:
    """A gigabyte of a thousandth that size."""
    head(handler, 200, Content_Encoding="gzip")
    handler.wfile.write(gzip.compress(b"a" * (1 << 20)) * 1024)


def too_long(handler: BaseHTTPRequestHandler) -> None:
    body = completion("a" * LARGEST, "")
    head(handler, 200, Content_Length=str(len(body)))
    handler.wfile.write(body)


def asked(url: str) -> Reply | Failure:
    async def ask() -> Reply | Failure:
        async with ChatClient(Server(url)) as client:
            return await client.attempt(Request("m", "Write.", (), "generate", "tea", "she", 1, 16))

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (endless, "more than 16,777,216 bytes"),
        (endless_refusal, "more than 16,777,216 bytes"),
        (too_long, "more than 16,777,216 bytes"),
        (bomb, "compressed (gzip), which was not requested"),
    ],
)
def test_a_reply_without_end_is_no_reply(
    answer: Callable[[BaseHTTPRequestHandler], None], said: str
) -> None:
    with answering(answer) as url:
        before = peak_mb()
        outcome = asked(url)
        assert isinstance(outcome, Failure) and said in outcome.error and "\n" not in outcome.error
        assert outcome.retry and outcome.charged
        assert peak_mb() - before < 200


@pytest.mark.parametrize(("status", "shown"), [(302, "http://host/v1 "), (404, "no such model")])
def test_a_location_hides_no_message_and_shows_no_password(status: int, shown: str) -> None:
    there = "http://user:p@ssw0rd@host/v1?key=secret"
    with serving(lambda *_: Say("no such model", status, headers={"Location": there})) as server:
        outcome = asked(server.url)
    assert isinstance(outcome, Failure) and shown in outcome.error
    assert "ssw0rd" not in outcome.error and "secret" not in outcome.error
