"""The command that builds a benchmark: its configuration, dry run, exit codes, and the flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store
from tests.chat_server import _PLACES, _VERBS, good_script, serving
from tests.test_benchmark_build import WORDS, _requests, imperfect

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
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a warehouse of a corpus, as the working directory."""
    fill_corpus(Store.open(tmp_path / "out/warehouse"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _configured(here: Path, url: str) -> list[str]:
    (here / "mine.toml").write_text(CONFIG.format(url=url))
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
    fewer = planned(capsys, [*command, "--revise-rounds", "10", "--no-reject-longer"])
    assert fewer["demo", "requests"][1].endswith(f"{80 * (3 * (1 + 3 * 10) + 12) + 40 * 9:,}")
    assert sorted(here.rglob("*")) == sorted([*files, here / "mine.toml"])
    offline = planned(capsys, ["benchmark", "build", "demo", "--offline", "--corpus", "c"])
    assert offline["demo", "requests"][0] == 0


def test_a_judge_of_its_own_is_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(good_script) as server:
        command = [*_configured(here, server.url), "--words", ",".join(WORDS[12:14])]
        assert main([*command, "--judge-model", "arbiter"]) == 0
    rows = _requests(Store.open(here / "out/warehouse"))
    assert {(r["purpose"], r["model"]) for r in rows} == {
        ("generate", "scripted"),
        ("judge", "arbiter"),
    }
    assert "- Judged by: arbiter" in (here / "out/benchmarks/demo/README.md").read_text("utf-8")
    assert main([*command, "--judge-model", "arbiter", "--replay"]) == 0
    capsys.readouterr()
    assert main([*command, "--judge-model", "a", "--no-judge"]) == 2
    assert "judge" in capsys.readouterr().err
