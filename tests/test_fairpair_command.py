"""`plumbline fairpair`: the flow with real models and servers, kill and resume, bad arguments."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.fairpair import fairpair_spec as spec
from plumbline.eval_workers.fairpair.perturbation.perturbed_set import SHORT
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands.fairpair import FairpairRun
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, serving
from tests.conftest import REPOSITORY
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
DRIVER = """
import json, sys
from plumbline.pipelines.command.main import main
for command in json.loads(sys.argv[1]):
    print(f"status {main(command)}", flush=True)
"""
COUNTS = ["--n", "60", "--max-new-tokens", "8"]
N_ROWS = 2 * 2 * 60


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with prompts and a tiny model, as the working directory."""
    (tmp_path / "mine.toml").write_text(PROMPTS)
    save("gpt2", tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _start(here: Path, *commands: list[str]) -> subprocess.Popen[str]:
    """Commands one after the other in a session of their own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "PLUMB"))}
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, json.dumps(commands)],
        cwd=here,
        env={**inherited, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _run(name: str, *more: str) -> list[str]:
    where = ["--warehouse", f"{name}/warehouse"]
    return ["fairpair", "run", "demo", "--prompts", "mine.toml", *COUNTS, *where, *more]


def _kill_midway(here: Path, command: list[str]) -> None:
    """Start a command and kill it, and all it started, once some samples are on the disk."""
    process = _start(here, command)
    try:
        deadline = time.monotonic() + 180
        while not (parts := list((here / "killed/warehouse/_work").glob("sample/**/*.parquet"))):
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert len(parts) == 1


def _contents(store: Store) -> dict[str, Counter[str]]:
    """Rows of every table but `run`, without the ids of runs."""
    found = {}
    for table in TABLES:
        rows = store.read(table).to_pylist()
        kept = ({k: v for k, v in row.items() if k != "run_id"} for row in rows)
        found[table] = Counter(json.dumps(row, default=str) for row in kept)
    return {table: rows for table, rows in found.items() if rows and table != "run"}


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
def test_the_flow(
    here: Path,
    server: ChatServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Killed and resumed as undisturbed; served models, one of which is absent; other folds."""
    local = ["--model", "tiny"]
    served = ["--model", "fine,absent", "--base-url", server.url, "--perturber", "scripted"]
    _kill_midway(here, _run("killed", *local))
    process = _start(
        here,
        _run("killed", *local),
        _run("whole", *local),
        _run("served", *served),
    )
    out, err = process.communicate(timeout=300)
    assert re.findall(r"^status (\d)$", out, re.MULTILINE) == list("003"), err[-3000:]
    whole = Store.open("whole/warehouse", create=False)
    rows = _contents(whole)
    assert sum(rows["continuation"].values()) == N_ROWS
    assert _contents(Store.open("killed/warehouse")) == rows
    _check_lines(whole, out.split("status 0\n")[1])
    states = [r["status"] for r in Store.open("killed/warehouse").read("run").to_pylist()]
    assert sorted(states) == ["finished", "running"]

    asked = Counter(body["model"] for body in server.bodies if body["model"] != "absent")
    assert asked == {"fine": N_ROWS, "scripted": N_ROWS}
    assert all(n == 1 for body, n in server.asked.items() if '"absent"' not in body)
    made = Store.open("served/warehouse").read("perturbed_continuation").to_pylist()
    assert len(made) == N_ROWS and all(row["is_valid"] for row in made)
    (line,) = [x for x in err.splitlines() if x.startswith("error:")]
    assert "1 of 2 failed: absent" in line and "404" in line
    n_asked = server.n_asked
    again = ["--perturber", "scripted", "--perturber-url", server.url, "--phi", "jaccard"]
    assert main(["fairpair", "score", "demo", "--warehouse", "served/warehouse", *again]) == 0
    assert server.n_asked == n_asked, "every reply is in the ledger"
    _check_score(whole, capsys)


def _check_lines(store: Store, said: str) -> None:
    """The closing lines are what the tables hold."""
    made = store.read("perturbed_continuation").to_pylist()
    for side in ("original", "perturbed"):
        some = [row for row in made if row["side"] == side]
        n_valid = sum(row["is_valid"] for row in some)
        reasons = Counter(r["reason"] for r in some if r["reason"])
        n_short = reasons.pop(SHORT, 0)
        short = f"; {n_short} are too short for the filter (--filter" if n_short else ""
        (most, n), *_ = reasons.most_common(1) or [("", 0)]
        assert f"{n_valid} of {len(some)} valid ({n_valid / len(some):.1%}){short}" in said
        assert f'most others: "{most}" ({n})' in said or not reasons
        assert 0 < n_valid < len(some)
    sets = store.read("fairpair_set").to_pylist()
    assert {(r["phi"], r["side"]) for r in sets} == {
        (phi, side) for phi in ("jaccard", "vader") for side in ("original", "perturbed")
    }
    for row in sets:
        line = next(
            x for x in said.splitlines() if f"{row['phi']}, filtered, {row['side']}: B" in x
        )
        f, low, high = (row[f"fairpair_f{end}"] for end in ("", "_low", "_high"))
        assert f"F {'–' if f is None else format(f, '.4f')}" in line
        assert (low is None) == (f is None or row["n_prompts"] < 5)
        assert low is None or f"({low:.4f} to {high:.4f})" in line
    assert any(row["fairpair_f"] for row in sets)


def _check_score(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Other folds are added without a sample."""
    before = {r["sample"]: r for r in store.read("continuation").to_pylist()}
    where = ["--warehouse", str(store.root)]
    command = ["fairpair", "score", "demo", "--folds", "5", "--phi", "jaccard", *where]
    capsys.readouterr()
    assert main([*command, "--model", "nobody"]) == 2
    assert "has no samples of nobody (there are those of tiny)" in capsys.readouterr().err
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "jaccard, filtered, 5 folds, original: B" in said and f"{N_ROWS} samples" in said
    assert {r["n_folds"] for r in store.read("fairpair_set").to_pylist()} == {0, 5}
    assert {r["sample"]: r for r in store.read("continuation").to_pylist()} == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["novel", "--model", "m"], 2, "common-sents-plain; or give --prompts FILE.toml)"),
        (["a/b", "--model", "m"], 2, "is not a valid name for a set of prompts"),
        (["common-sents"], 2, "model: is not given"),
        (["common-sents", "--model", "m", "--models", "l.toml"], 2, "exclude each other"),
        (["common-sents", "--model", "m", "--n", "1"], 2, "should be greater than or equal to 2"),
        (["common-sents", "--model", "m", "--n", "9" * 20], 2, "less than or equal to 100000"),
        (["common-sents", "--model", "m", "--folds", "101"], 2, "are more than 100 samples"),
        (
            ["common-sents", "--model", "m", "--top-p", "0"],
            2,
            "top_p = 0.0: should be greater than 0",
        ),
        (["common-sents", "--model", "m", "--phi", "mood"], 2, "there are jaccard, vader"),
        (["common-sents", "--model", "m", "--endpoint", "chat"], 2, "needs a server"),
        (["common-sents", "--model", "m", "--perturber-url", "http://h"], 2, "chat perturber"),
        (["common-sents", "--model", "m", "--perturber", "p"], 2, "wants a key"),
        (["common-sents", "--model", "m", "--prompts", "none.toml"], 2, "no such file"),
        (["common-sents", "--model", "m", "--prompts", "german.toml"], 2, "are for gender in en"),
        (["common-sents", "--model", "m", "--config", "bad.toml"], 2, "key 'samples': is unknown"),
        (["common-sents", "--model", "./nowhere"], 3, "does not exist"),
        (["common-sents", "--model", "m", "--base-url", "h"], 2, "is not an http(s) address"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    for name in ("PLUMBLINE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "german.toml").write_text(PROMPTS.replace('"en"', '"de"'))
    (tmp_path / "bad.toml").write_text("samples = 7\n")
    files = sorted(tmp_path.iterdir())
    assert main(["fairpair", "run", *arguments]) == status
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert sorted(tmp_path.iterdir()) == files


def test_a_dry_run_asks_and_writes_nothing(
    here: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = 'currency = "EUR"\n[models.fine]\ninput = 0.0\noutput = 1000.0\n'
    (here / "prices.toml").write_text(prices)
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
    roomy = ["--max-new-tokens", "9"]
    for more in (["--filter-unit", "characters"], ["--filter-limit", "0.9"], roomy):
        words = [*_run("new", "--model", "tiny"), *more, "--dry-run", "--format", "json"]
        assert main(words) == 0
        (row,) = (r for r in json.loads(capsys.readouterr().out) if r["what"] == "new units needed")
        assert "WARNING" not in row["note"]
    served = ["--model", "fine", "--base-url", server.url, "--prices", "prices.toml"]
    assert main([*_run("new", *served), "--dry-run", "--format", "json"]) == 0
    plan = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert plan["requests"]["amount"] == N_ROWS
    assert plan["cost"]["amount"] == f"{8 * N_ROWS * 1000 / 1e6:.2f} EUR"
    assert server.n_asked == 0 and sorted(here.rglob("*")) == files


def test_wordings_of_ones_own_reach_the_server(here: Path, server: ChatServer) -> None:
    """The instruction of a configuration file, and a perturber's wording."""
    (here / "own.toml").write_text(
        f'base_url = "{server.url}"\nendpoint = "chat"\ninstruction = "Go on:"\n'
    )
    (here / "ask.toml").write_text(
        'perturb = "Say it of {counterpart} ({counterpart_group}), not {name} ({group}), {{so}}'
        '\\n\\n{text}"\n[groups]\nm = "male"\nf = "female"\n'
    )
    server.sampler = lambda body: Say(f"{body['messages'][-1]['content'][-60:]} {body['seed']}")
    own = ["--config", "own.toml", "--model", "fine"]
    asked = ["--perturber", "scripted", "--wording", "ask.toml", "--n", "2", "--phi", "jaccard"]
    arguments = [*_run("own", *own), *asked]
    assert main(arguments) == 0
    said = [body["messages"] for body in server.bodies]
    perturbing = [m[-1]["content"] for m in said if m[-1]["content"].startswith("Say it of")]
    continuing = [m for m in said if m[-1]["content"] not in perturbing]
    assert all("{so}\n\nJ" in p for p in perturbing)
    assert {p.split(", {so}")[0] for p in perturbing} == {
        *("Say it of Jane (female), not John (male)", "Say it of John (male), not Jane (female)"),
    }
    assert continuing and all("Go on:" in m[0]["content"] for m in continuing)


def test_options_take_the_place_of_keys_and_chat_models_are_told_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = "a"\nn = 500\nphi = ["jaccard"]\nbase_url = "http://h/v1"\n')
    found = made(FairpairRun, {"probe_set": "cs", "model": "b", "endpoint": "chat"}, file)
    assert (found.model, found.n, found.phi) == ("b", 500, ("jaccard",))
    assert found.sampling().instruction == spec.INSTRUCTION
    assert made(FairpairRun, {"probe_set": "cs"}, file).sampling().instruction is None
    (target,) = found.targets()
    assert target.served is not None and target.served.endpoint == "chat"
