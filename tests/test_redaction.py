"""A secret that a server repeats is in no error line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage import place
from plumbline.warehouse.text.escape import hidden

_SECRET = "wJalr/XUtnFEMI+K7MDENG"
_TOKEN = "FwoGZXIvYXdzEJr-session"


@pytest.fixture
def echoing() -> Iterator[str]:
    """An object store that refuses every request and repeats its headers and the secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"no access with {_SECRET} or {quote(_SECRET, safe='')}: {self.headers}"
            body = f"<Error><Message>{' '.join(said.split())}</Message></Error>".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_HEAD = do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_bucket_that_repeats_the_keys_does_not_get_them_printed(
    echoing: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"AWS_ENDPOINT_URL": echoing, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    values |= {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": _SECRET}
    values |= {"AWS_SESSION_TOKEN": _TOKEN, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    place._store.cache_clear()
    for command in (
        ["runs", "--warehouse", "s3://shut/w"],
        ["corpus", "count", "s3://shut/a.jsonl", "--corpus", "c", "--warehouse", str(tmp_path)],
    ):
        assert main(command) == 3
        said = capfd.readouterr().err
        assert "403" in said or "denied" in said.lower() or "***" in said, said
        for secret in (_SECRET, quote(_SECRET, safe=""), _TOKEN, "AKIAIOSFODNN7EXAMPLE"):
            assert secret[:12] not in said, said
    place._store.cache_clear()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", _SECRET),
        ("AZURE_STORAGE_ACCOUNT_KEY", "azure-key-1=="),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=bcd"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", '{"private_key": "abc"}'),
        ("HF_TOKEN", "hf_abcdefgh"),
        ("OPENAI_APIKEY", "sk-abcdefgh"),
        ("API_KEYS", "sk-abcdefgh,sk-bcdefghi"),
        ("http_proxy_password", "hunter2hunter2"),
    ],
)
def test_what_variables_hold_is_in_no_part_of_an_error(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    error = BadInput(f"shard {value}", f"says {value} {quote(value, safe='')}", f"not {value[:-1]}")
    assert str(error) == "shard ***: says *** *** (not ***)"
    assert value not in repr(error) + repr(error.args) + error.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:word@host/a", "https://***@host/a"),
        ("https://me:wo@rd@host/a@b", "https://***@host/a@b"),
        ("s3://id:key@bucket/a", "s3://***@bucket/a"),
        ("abfs://container@account.host/a", "abfs://container@account.host/a"),
        ("x?X-Amz-Signature=ab12&X-Amz-Date=1", "x?X-Amz-Signature=***&X-Amz-Date=1"),
        ("<x?sv=1&sig=a%2Fb>", "<x?sv=1&sig=***>"),
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("Basic tokenizer is missing", "Basic tokenizer is missing"),
        ("AWS4 Credential=AKIA/1/s3, Signature=ab1", "AWS4 Credential=***, Signature=***"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n", "-----BEGIN PRIVATE KEY-----***"),
        ("the word key = tea; sign of a token", "the word key = tea; sign of a token"),
    ],
)
def test_credentials_are_known_by_their_form(text: str, shown: str) -> None:
    assert hidden(text, {}) == shown
    assert hidden(shown, {}) == shown


def test_places_and_dummies_stay() -> None:
    environment = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/run/secrets/token", "OPENAI_API_KEY": "EMPTY"}
    environment |= {
        "TOKENIZERS_PARALLELISM": "disabled!",
        "GOOGLE_APPLICATION_CREDENTIALS": "a.json",
    }
    text = "/run/secrets/token EMPTY disabled! a.json"
    assert hidden(text, environment) == text
