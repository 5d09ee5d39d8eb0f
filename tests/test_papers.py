"""`docs/papers.md`: every command of its table runs, in its order, on small input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.chat_server import Say, good_script, serving
from tests.released_files import score_rows, write_scores
from tests.test_fairpair_command import PROMPTS
from tests.test_generation_released import files
from tests.test_generation_released import released as wordings
from tests.test_paper_verdicts import rows
from tests.test_reproduce import released
from tests.tiny_models import save

TEXTS = [
    f"{who} {verb} the {thing} and some tea near the {place}."
    for who in ("She", "He")
    for verb in ("saw", "found")
    for thing in ("lamp", "table", "garden", "letter", "bottle", "window")
    for place in ("river", "station", "harbour")
]


def script(prompt: str, count: int) -> Say:
    """A well-behaved model, for sentences around a word and for prompts like a seed sentence."""
    if "My friend" not in prompt:
        return good_script(prompt, count)
    return Say("1. My friend likes green.\n2. My friend likes tea and cake.\n")


def commands() -> list[list[str]]:
    listed = [c for row in rows() for c in re.findall(r"`plumbline ([^`]+)`", row.command)]
    return [shlex.split(command) for command in dict.fromkeys(listed)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page names, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUMBLINE_API_KEY", "none")
    write_jsonl_zst(Path("novels/a.jsonl.zst"), TEXTS)
    release = released(Path("unstereo-eval"), score_rows())
    for k, size in enumerate(("70m", "160m", "410m", "1b")):
        for twin in ("", "-deduped"):
            name = f"EleutherAI__pythia-{size}{twin}"
            rows = score_rows(name)
            for row in rows:
                less = (k + len(row["template"])) % 3 + (0.5 if twin else 0.0)
                row["F_logprob"] = str(float(row["M_logprob"]) - less)
            write_scores(release / "results", rows, f"{name}.csv")
    for name in ("facebook__opt-125m", "mosaicml__mpt-7b", "allenai__OLMo-1B"):
        write_scores(release / "results", score_rows(name), f"{name}.csv")
    config = save("neox", Path("models/small")) / "config.json"
    longer = json.loads(config.read_text()) | {"max_position_embeddings": 256}
    config.write_text(json.dumps(longer))
    Path("few.toml").write_text(PROMPTS)
    wordings(release / "benchmark-creation-configs", files())
    return tmp_path


@pytest.mark.slow
def test_every_command_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = []
    with serving(script) as server:
        for name, model in (("demo", "model-a"), ("long", "model-b")):
            served = f'corpus = "novels"\nmodel = "{model}"\nbase_url = "{server.url}"\n'
            Path(f"{name}.toml").write_text(f"[benchmark.build]\n{served}")
        for command in commands():
            given = [word.replace("URL", server.url) for word in command]
            # Made scores aren't those that the paper's figures are of.
            fine = (0, 1) if command[:2] == ["reproduce", "unstereoeval"] else (0,)
            if "--models" in command:  # of the hub, which isn't there in tests
                fine = (0, 3, 5)
            status, said = main(given), capsys.readouterr()
            if status not in fine or (command[0] == "sql" and "\n0 rows" in said.out):
                failed.append((command, said.err or said.out))
    assert not failed
