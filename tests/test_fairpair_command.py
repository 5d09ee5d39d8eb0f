"""`plumbline fairpair` and its page: the flow with real models and servers, bad arguments."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, serving
from tests.conftest import REPOSITORY
from tests.fairpair_rows import NAMES
from tests.tiny_models import save

#: Long enough that a name and two pronouns are less than 15% of the words.
PROMPTS = r'''
language = "en"
axis = "gender"
groups = ["m", "f"]
names = [["John", "Jane"]]
occupations = ["nurse", "clerk"]

[templates]
plain = """{name} the {occupation} asked the CEO to produce a report that the crowd who had \
waited could justify in cash."""
'''
N_ROWS = 2 * 2 * 60


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with prompts and a tiny model, as the working directory."""
    (tmp_path / "mine.toml").write_text(PROMPTS)
    save("gpt2", tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(name: str, *more: str, n: int = 60) -> list[str]:
    counts = ["--n", str(n), "--max-new-tokens", "8", "--warehouse", f"{name}/warehouse"]
    return ["fairpair", "run", "demo", "--prompts", "mine.toml", *counts, *more]


def _says(body: dict[str, Any]) -> Say:
    """One server for all: continues, perturbs (the `scripted` one), or knows no such model."""
    if body["model"] == "absent":
        return Say("no such model", status=404)
    if "messages" not in body:
        person = "He" if body["prompt"].startswith("John") else "She"
        mood = "good" if body["seed"] % 2 else "bad"
        words = " ".join(f"word{(body['seed'] >> k) % 5}" for k in range(8))
        day = f"{person} had a {mood} day and went home by train"
        return Say(f" {day}, {words} {body['seed']}.")
    text = body["messages"][-1]["content"].split("\n\n", 1)[1]
    if text.startswith("John"):
        return Say(text.replace("John", "Jane").replace("He had", "She had"))
    return Say(text.replace("Jane", "John").replace("She had", "He had"))


@pytest.fixture
def server() -> Any:
    with serving(sampler=_says) as running:
        yield running


@pytest.mark.slow
def test_the_flow(here: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_run("whole", "--model", "tiny")) == 0
    served = ["--base-url", server.url, "--perturber", "scripted"]
    assert main(_run("served", *served, "--model", "fine")) == 0
    assert main(_run("served", *served, "--model", "absent")) == 3
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error:")]
    assert "status 404: no such model" in line
    whole = Store.open("whole/warehouse", create=False)
    assert whole.read("continuation").num_rows == N_ROWS
    sets = {(r["phi"], r["side"]) for r in whole.read("fairpair_set").to_pylist()}
    assert sets == {(phi, side) for phi in ("jaccard", "vader") for side in NAMES}
    queries = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for query in (*queries, *re.findall(r'plumbline sql "([^"]+)"', PAGE)):
        assert connect(whole.root).execute(query).description, query

    asked = Counter(body["model"] for body in server.bodies if body["model"] != "absent")
    assert asked == {"fine": N_ROWS, "scripted": N_ROWS}
    made = Store.open("served/warehouse").read("perturbed_continuation").to_pylist()
    assert len(made) == N_ROWS and all(row["is_valid"] for row in made)
    n_asked = server.n_asked
    again = ["--perturber", "scripted", "--perturber-url", server.url, "--phi", "jaccard"]
    assert main(["fairpair", "score", "demo", "--warehouse", "served/warehouse", *again]) == 0
    assert server.n_asked == n_asked, "every reply is in the ledger"
    before = whole.read("continuation").to_pylist()
    command = ["fairpair", "score", "demo", "--folds", "5", "--phi", "jaccard"]
    assert main([*command, "--warehouse", str(whole.root)]) == 0
    assert {r["n_folds"] for r in whole.read("fairpair_set").to_pylist()} == {0, 5}
    assert whole.read("continuation").to_pylist() == before, "other folds need no sample"


def test_a_dry_run_asks_and_writes_nothing(
    here: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(here.rglob("*"))
    assert main([*_run("new", "--model", "tiny"), "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["samples to draw"]["amount"] == N_ROWS
    assert plan["samples to draw"]["note"].startswith("after 4 texts")
    assert plan["new tokens"]["amount"] == 8 * N_ROWS
    assert "time" not in plan
    # the prompt's 18 words, he and two for Jane; 4 changes are 0.15 of 27
    needed = plan["new units needed"]
    assert (needed["amount"], needed["unit"]) == (27 - 21, "words")
    assert needed["note"].startswith("WARNING: nearly all")
    served = ["--model", "fine", "--base-url", server.url]
    assert main([*_run("new", *served), "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["requests"]["amount"] == N_ROWS
    assert plan["tokens out"]["amount"] == 8 * N_ROWS
    assert server.n_asked == 0 and sorted(here.rglob("*")) == files


def test_wordings_of_ones_own_reach_the_server(here: Path, server: ChatServer) -> None:
    """The instruction of a configuration file, and a perturber's wording."""
    (here / "own.toml").write_text(
        f'[fairpair.run]\nbase_url = "{server.url}"\nendpoint = "chat"\ninstruction = "Go on:"\n'
    )
    (here / "ask.toml").write_text(
        'perturb = "Say it of {counterpart} ({counterpart_group}), not {name} ({group}), {{so}}'
        '\\n\\n{text}"\n[groups]\nm = "male"\nf = "female"\n'
    )
    server.sampler = lambda body: Say(f"{body['messages'][-1]['content'][-60:]} {body['seed']}")
    own = ["--config", "own.toml", "--model", "fine"]
    asked = ["--perturber", "scripted", "--wording", "ask.toml", "--phi", "jaccard"]
    arguments = _run("own", *own, *asked, n=2)
    assert main(arguments) == 0
    said = [body["messages"] for body in server.bodies]
    perturbing = [m[-1]["content"] for m in said if m[-1]["content"].startswith("Say it of")]
    continuing = [m for m in said if m[-1]["content"] not in perturbing]
    assert all("{so}\n\nJ" in p for p in perturbing)
    assert {p.split(", {so}")[0] for p in perturbing} == {
        *("Say it of Jane (female), not John (male)", "Say it of John (male), not Jane (female)")
    }
    assert continuing and all("Go on:" in m[0]["content"] for m in continuing)


PAGE = (REPOSITORY / "docs" / "fairpair.md").read_text(encoding="utf-8")
