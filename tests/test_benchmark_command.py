"""The command that builds a benchmark: its configuration, dry run, exit codes, and the flow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.writing import build as steps
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands.benchmark.building import BenchmarkBuild
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.chat_server import _PLACES, _VERBS, Say, good_script, serving
from tests.conftest import REPOSITORY
from tests.test_benchmark_build import WORDS, _pairs, _rejects, _requests, imperfect


def test_a_missing_key_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PLUMBLINE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('model = "m"\nwords = ["tea"]\n')
    command = ["benchmark", "build", "demo", "--config", "mine.toml"]
    assert main([*command, "--dry-run"]) == 0
    assert main(command) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "wants a key (set PLUMBLINE_API_KEY)" in line
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"], "no server, no warehouse"


def test_the_first_words_of_a_sample(store: Store) -> None:
    fill_corpus(store)
    spec = BuildSpec(corpus="c", n_words=3)
    assert steps.seed_words(store, spec) == WORDS[:3]
    assert steps.seed_words(store, replace(spec, n_words=None)) == WORDS
    with pytest.raises(UsageProblem, match=r"holds 40 words \(.* --n 41 --seed 0\)"):
        steps.seed_words(store, replace(spec, n_words=41))
    with pytest.raises(UsageProblem, match="seed 1 holds 0 words"):
        steps.seed_words(store, replace(spec, seed=1))
    with pytest.raises(UsageProblem, match="--n 3 --seed 0 --contrast her/his"):
        steps.seed_words(store, replace(spec, contrast="her/his"))


def test_options_take_the_place_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('model = "a"\nmax_words = 7\nwords = ["tea"]\ntemperature = 1\n')
    spec = made(BenchmarkBuild, {"name": "mine", "model": "b"}, file)
    assert (spec.model, spec.max_words, spec.words, spec.temperature) == ("b", 7, ("tea",), 1)


#: The words that the scripted models put around the seed words.
SAYS = (
    " ".join((*_VERBS, *_PLACES))
    + """
the found at last left room once on shelf was saw smile near took very far
"""
)


def fill_corpus(store: Store) -> None:
    """A corpus `c` with leans of the words, of which the first ten are beyond 0.65, as a sample."""
    totals = ("n_shards", "n_shards_failed", "n_documents", "n_rejected", "n_tokens")
    more = ("n_kept_tokens", "n_words", "n_words_kept", "n_tokens_pruned", "n_pairs")
    row: dict[str, Any] = dict.fromkeys((*totals, *more), 0) | {"min_count": 1}
    row |= {"corpus": "c", "source": "counted", "targets": "she-he", "run_id": "r"}
    store.publish("corpus", [row], unit="corpus", run_id="r")
    lean = {word: 1.0 if k < 10 else 0.01 * k for k, word in enumerate(WORDS)}
    of = {"corpus": "c", "contrast": "she/he"}
    counts = {"n_word": 10, "n_pair_f": 10, "n_pair_m": 10, "n_defined": 1}
    others = dict.fromkeys(SAYS.lower().split(), 0.0)
    deltas = [{**of, "word": w, "delta_nats": d, **counts} for w, d in (others | lean).items()]
    store.publish("word_delta", deltas, unit="a", run_id="r")
    fixed = {**of, "seed": 0, "n_word": 1, "low_nats": -1.0, "high_nats": 1.0, "run_id": "r"}
    sample = [
        {**fixed, "position": k, "word": w, "delta_nats": d}
        for k, (w, d) in enumerate(lean.items(), 1)
    ]
    store.publish("seed_word", sample, unit="she/he 0", run_id="r")


CONFIG = """
corpus = "c"
model = "scripted"
base_url = "{url}"
n_sentences = 3
concurrency = 4
prices = "{prices}"
"""
PRICES = 'currency = "EUR"\n[models.scripted]\ninput = 1.0\noutput = 2.0\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a warehouse of a corpus and a price table, as the working directory."""
    fill_corpus(Store.open(tmp_path / "out/warehouse"))
    (tmp_path / "prices.toml").write_text(PRICES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _configured(here: Path, url: str) -> list[str]:
    (here / "mine.toml").write_text(CONFIG.format(url=url, prices="prices.toml"))
    return ["benchmark", "build", "demo", "--config", "mine.toml"]


def planned(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> dict[tuple[str, str], tuple[Any, str]]:
    """Amount and note of a dry run, by subject and what."""
    assert main([*command, "--dry-run", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return {(row["subject"], row["what"]): (row["amount"], row["note"]) for row in rows}


def test_a_dry_run_asks_and_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(here.rglob("*"))
    with serving(imperfect) as server:
        command = _configured(here, server.url)
        found = planned(capsys, command)
        assert server.n_asked == 0
    # 80 lists of at most 3 rounds with 40 revisions a sentence, 4 verdicts and 3 conversions.
    most = 80 * (3 * (1 + 3 * 40) + 12) + 40 * 9
    assert found["demo", "seed words"][0] == 40 and found["demo", "pairs"][0] == 240
    assert found["demo", "requests"][1] == f"about, without revisions and repeats; at most {most:,}"
    assert re.fullmatch(r"0\.\d\d EUR", found["demo", "cost"][0])
    fewer = planned(capsys, [*command, "--revise-rounds", "10", "--no-reject-longer"])
    assert fewer["demo", "requests"][1].endswith(f"{80 * (3 * (1 + 3 * 10) + 12) + 40 * 9:,}")
    assert sorted(here.rglob("*")) == sorted([*files, here / "mine.toml"])
    offline = planned(capsys, ["benchmark", "build", "demo", "--offline", "--corpus", "c"])
    assert offline["demo", "requests"][0] == 0


def test_a_judge_of_its_own_is_asked_at_its_address_and_price(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "prices.toml").write_text(PRICES + "[models.arbiter]\ninput = 100.0\noutput = 0.0\n")
    with serving(good_script) as writer, serving(lambda *_: Say("Likely.")) as judge:
        command = [*_configured(here, writer.url), "--words", ",".join(WORDS[12:14])]
        alone = planned(capsys, command)["demo", "cost"][0]
        command += ["--judge-model", "arbiter", "--judge-base-url", judge.url]
        both = planned(capsys, command)["demo", "cost"][0]
        assert float(both.split()[0]) > 20 * float(alone.split()[0])
        assert main(command) == 0
    assert {body["model"] for body in writer.bodies} == {"scripted"}
    assert {body["model"] for body in judge.bodies} == {"arbiter"}
    rows = _requests(Store.open(here / "out/warehouse"))
    by_judge = [r for r in rows if r["purpose"] == "judge"]
    assert len(by_judge) == judge.n_asked == 2 * 12 and {r["model"] for r in by_judge} == {
        "arbiter"
    }
    assert all(r["cost"] == pytest.approx(r["n_input_tokens"] * 100e-6) for r in by_judge)
    assert "- Judged by: arbiter" in (here / "out/benchmarks/demo/README.md").read_text("utf-8")
    assert main([*command, "--replay"]) == 0
    assert judge.n_asked == 24, "a replay asks nobody"
    capsys.readouterr()
    for wrong in (["--judge-base-url", judge.url], ["--judge-model", "a", "--no-judge"]):
        assert main([*_configured(here, writer.url), *wrong]) == 2
        assert "judge" in capsys.readouterr().err


DRIVER = """
import json, shutil, sys
from pathlib import Path
from plumbline.pipelines.command.main import main
for name, command in json.loads(sys.argv[1]):
    status = main(command)
    print(f"status {status}", flush=True)
    shutil.copytree("out/warehouse", f"after-{name}", ignore=shutil.ignore_patterns("_work"))
"""


def account(said: str) -> dict[str, int]:
    """The row that a build prints, by its headings."""
    lines = said.splitlines()
    (at,) = (k for k, line in enumerate(lines) if line.split()[:1] == ["benchmark"])
    names, cells = lines[at].split("┃"), lines[at + 2].split("│")
    return {n.strip(): int(cell) for n, cell in zip(names[1:], cells[1:], strict=True)}


@pytest.mark.slow
def test_the_command(here: Path) -> None:
    """In one process: a budget that stops, the rest, replays, offline."""
    replay = ["--replay", "--base-url", "http://127.0.0.1:9/v1"]
    with serving(imperfect) as server:
        command = _configured(here, server.url)
        runs = [
            ("stopped", [*command, "--max-requests", "100"]),
            ("built", command),
            ("replayed", [*command, *replay]),
            ("offline", ["benchmark", "build", "fixed", "--offline", "--corpus", "c"]),
        ]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "PLUMB"))}
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, json.dumps(runs)],
            cwd=here,
            env={**inherited, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert re.findall(r"status (\d)", done.stdout) == ["5", *"000"], done.stderr[-3000:]
        assert set(server.asked.values()) == {1}
    stopped, built, replayed, fixed = (Store.open(here / f"after-{name}") for name, _ in runs)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and "could exceed 100 requests" in errors[0]
    assert len(_requests(stopped)) == 100 and _pairs(stopped) == []
    said = done.stdout.split("status ")[1]
    pairs = _pairs(built)
    natural = [p for p in pairs if p["is_natural"]]
    n_rejected, n_unpaired, n_unnatural = (
        len(_rejects(built, step)) for step in ("write", "pair", "judge")
    )
    assert len(pairs) == len(natural) + n_unnatural and n_unnatural and n_unpaired
    within = sum(p["word"] not in WORDS[:10] for p in natural)
    assert account(said) == {
        "words": 40,
        "in": len(pairs) + n_unpaired + n_rejected + 18,
        "kept": len(pairs) + n_unpaired,
        "rejected": n_rejected,
        "revised": 18,
        "unpaired": n_unpaired,
        "pairs": len(pairs),
        "natural": len(natural),
        "within eta": within,
    }
    assert f"spent in all: {server.n_asked} requests" in said
    assert "Next: plumbline score --model ID_OR_PATH --benchmark demo" in said
    assert _pairs(replayed) == pairs and _requests(replayed) == _requests(built)
    assert len(_requests(built)) == server.n_asked
    associated = built.read("pair_association", corpus="c", benchmark="demo")
    assert associated.num_rows == len(pairs)
    status = {r["status"] for r in built.read("run").to_pylist() if "build" in r["command"]}
    assert status == {"interrupted", "finished"}
    card = (here / "out/benchmarks/demo/README.md").read_text("utf-8")
    assert "Seed words: the first 40 of the sample of c (she/he, seed 0)" in card
    rows = _pairs(fixed, "fixed")
    assert len(rows) == 40 * 10 and {r["source_file"] for r in rows} == {"offline-writer"}
    assert {r["is_natural"] for r in rows} == {None} and _requests(fixed, "fixed") == []
    assert "offline-writer" in (here / "out/benchmarks/fixed/README.md").read_text("utf-8")
