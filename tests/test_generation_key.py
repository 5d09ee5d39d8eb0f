"""The key is sent, and appears nowhere else."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest

from plumbline.eval_workers.chat.client import find_key
from plumbline.eval_workers.writing.build import write_sentences
from plumbline.warehouse.errors import PlumblineError
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, completion, serving
from tests.test_generation import SPEC, _build, _requests

KEY = 'sk-secret/"4711"+déjà'.encode("ascii", "ignore").decode()
SPELLINGS = {KEY, json.dumps(KEY)[1:-1], quote(KEY), quote(KEY, safe="")}


def _everything_under(root: Path) -> str:
    return "\n".join(
        str(path) + path.read_bytes().decode("latin-1")
        for path in root.rglob("*")
        if path.is_file()
    )


ECHOES = {
    "error": Say(f"Incorrect API key provided: {KEY}.", 401),
    "error body": Say(body=f"no JSON {KEY}".encode(), status=500),
    "escaped": Say(body=json.dumps({"error": {"message": KEY, "at": KEY}}).encode(), status=400),
    "quoted": Say(f"see /login?key={quote(KEY, safe='')}", 403),
    "reply": Say(f"1. She wound the clock {KEY}."),
    "no choices": Say(body=json.dumps({"choices": [], "key": KEY}).encode()),
    "finish reason": Say(body=completion("x", "x").replace(b"stop", quote(KEY).encode())),
    "header": Say("slow", 429, headers={"Retry-After": f"3600{quote(KEY)}", "X-Key": quote(KEY)}),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_the_key_stays_secret_though_the_server_repeats_it(
    store: Store,
    echo: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PLUMBLINE_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    said = ""
    with serving(lambda prompt, count: ECHOES[echo]) as server:
        try:
            with recorded(store, "benchmark build", {"words": ["clock"]}) as run_id:
                write_sentences(_build(store, server, run_id), ["clock"], SPEC)
        except PlumblineError as e:
            said = "".join(traceback.format_exception(e)) + repr(e) + repr(e.args)
            causes = [e.__cause__, e.__context__]
            said += "".join(map(repr, causes))
    assert server.keys == {f"Bearer {KEY}"}
    out, err = capfd.readouterr()
    seen = "\n".join([said, out, err, caplog.text, _everything_under(store.root)])
    seen += json.dumps(_requests(store)) + str(store.read("reject").to_pylist())
    seen += str(store.read("run").to_pylist())
    assert len(_requests(store)) > 0
    for spelling in SPELLINGS:
        assert spelling not in seen
    if echo != "header":
        assert "[key]" in seen


def test_which_key_is_sent() -> None:
    """The first that is set, without blanks around it."""
    url, openai = "http://localhost:8000/v1", {"OPENAI_API_KEY": "sk-4711\n"}
    assert find_key(url, {"PLUMBLINE_API_KEY": " \n", **openai}) == "sk-4711"
    assert find_key(url, {"PLUMBLINE_API_KEY": "mine", **openai}) == "mine"
    assert find_key(url, {}) == ""


def test_short_dummies_are_left_in_replies(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_API_KEY", "EMPTY")
    say = Say("1. She found the EMPTY clock.\n2. Her clock stopped.\n3. She is the clock.")
    with serving(lambda prompt, count: say) as server:
        write_sentences(_build(store, server), ["clock"], SPEC)
    assert any("EMPTY" in row["reply"] for row in _requests(store))
