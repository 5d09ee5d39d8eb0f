"""A secret that a server repeats is in no error line."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.escape import hidden

_SECRET = "wJalr/XUtnFEMI+K7MDENG"


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
