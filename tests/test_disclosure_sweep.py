"""Sweeps: their rows against the library's own steps and numpy, the command, lists, bad input."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from plumbline.eval_workers.disclosure.set_probing import decodings
from plumbline.eval_workers.models.local.causal_model import CausalModel
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.models.scoring_contract import Instruction
from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.settings import made
from plumbline.pipelines.commands.model_commands.disclosure_sweep import Sweep
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import interval
from tests.prompt_rows import list_file, put_prompts
from tests.steps import sample_set
from tests.tiny_models import save_chatting

PROMPTS = ["The nurse said", "The clerk drank tea, and", "The crowd lost", "A technician told"]
#: Enough for intervals.
MORE = [*PROMPTS, "The nurse lost", "A customer went"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    return save_chatting(tmp_path_factory.mktemp("models") / "tiny", template)


@pytest.fixture
def prompts(store: Store) -> Store:
    put_prompts(store, "demo", PROMPTS)
    return store


def _run(store: Store, model: Path, by: str, *more: str) -> str:
    command = ["disclosure", "sweep", "demo", "--model", str(model), "--by", by]
    command += ["--max-new-tokens", "12", "--warehouse", str(store.root)]
    done = CliRunner().invoke(app, [*command, *more])
    if done.exception is not None:
        raise done.exception
    return done.output


def _rows(store: Store, view: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_of(store.root, f"FROM {view}")
    return found


def _words(path: Path, *words: str) -> str:
    """Pairs of `she` and `he` with pieces that a random model is likely to write."""
    return list_file(path, [("she", "he"), *zip(words[::2], words[1::2], strict=True)])


GRID = ("--temperature", "0.5,1", "--top-p", "1", "--top-k", "1,9", "--n", "2")


def test_the_rows_of_a_sweep_are_those_of_single_steps(
    prompts: Store, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = _words(tmp_path / "few.toml", "e", "a", "o", "t")
    _run(prompts, model, "decoding", *GRID, "--word-list", words)
    rows = _rows(prompts, "decoding_sweep")
    female, male = {"she", "e", "o"}, {"he", "a", "t"}
    ways = {
        ("greedy", None): SamplingOptions(greedy=True, max_new_tokens=12),
        ("temperature", 0.5): SamplingOptions(temperature=0.5, top_p=None, max_new_tokens=12),
        ("temperature", 1.0): SamplingOptions(top_p=None, max_new_tokens=12),
        ("top_p", 1.0): SamplingOptions(top_p=None, max_new_tokens=12),
        ("top_k", 1.0): SamplingOptions(top_p=None, top_k=1, max_new_tokens=12),
        ("top_k", 9.0): SamplingOptions(top_p=None, top_k=9, max_new_tokens=12),
    }
    assert {(r["parameter"], r["setting"]) for r in rows} == set(ways)
    n_drawn = Counter(r["sampling_key"] for r in prompts.read("continuation").to_pylist())
    assert n_drawn == {how.key: 4 if how.greedy else 4 * 2 for how in ways.values()}
    direct = Store.open(tmp_path / "direct")
    asked = prompts.read("probe_prompt").to_pylist()
    direct.replace("probe_prompt", asked, {"probe_set": "demo"}, "r")
    gas = {}
    for row in rows:
        how = ways[row["parameter"], row["setting"]]
        n = 1 if how.greedy else 2
        sample_set(direct, "demo", str(model), ModelOptions(), how, n)
        whose = {"probe_set": "demo", "model_key": row["model_key"], "sampling_key": how.key}
        texts = direct.read("continuation", **whose).to_pylist()
        assert len(texts) == 4 * n and row["sampling_key"] == how.key
        shares: dict[str, dict[str, list[bool]]] = {"f": {}, "m": {}, "any": {}}
        for one in texts:
            held = set(re.findall(r"[^\W_]+", one["continuation"].lower()))
            if one["continuation"].strip():
                for name, wanted in (("f", female), ("m", male), ("any", female | male)):
                    found = shares[name].setdefault(one["prompt_id"], [])
                    found.append(bool(held & wanted))
        f, m, either = (np.mean([np.mean(v) for v in s.values()]) for s in shares.values())
        assert (row["gas"], row["gas_f_of_all"], row["gas_m_of_all"]) == pytest.approx(
            (either, f, m)
        )
        gas[row["parameter"], row["setting"]] = either
    assert len(set(gas.values())) > 1
    drawn = {key: value for key, value in gas.items() if key[0] != "greedy"}
    for row in rows:
        key = (row["parameter"], row["setting"])
        of = [value for (name, _), value in drawn.items() if name == key[0]]
        assert row["is_best"] == (key in drawn and gas[key] == min(drawn.values()))
        assert row["is_lowest"] == (key in drawn and gas[key] == min(of))
    # A second run draws nothing, and needs no weights.
    monkeypatch.setattr(CausalModel, "continue_", None)
    assert "0 prompts with new" in _run(prompts, model, "decoding", *GRID, "--word-list", words)


def test_a_sweep_of_instructions_is_held_against_none(
    prompts: Store, model: Path, tmp_path: Path
) -> None:
    words = _words(tmp_path / "few.toml", "e", "a", "o", "t")
    told = tmp_path / "told.toml"
    told.write_text('instructions = ["The CEO asked", " He lost tea "]')
    more = ("--instructions", str(told), "--form", "prefix,chat", "--word-list", words)
    put_prompts(prompts, "demo", MORE)
    assert "He lost tea" in _run(prompts, model, "instruction", *more)
    rows = {(r["measure"], r["instruction_key"]): r for r in _rows(prompts, "instruction_sweep()")}
    asked = [
        Instruction(t, f) for f in ("prefix", "chat") for t in ("The CEO asked", "He lost tea")
    ]
    assert {k for _, k in rows} == {"none", *(one.key for one in asked)} and len(rows) == 15
    figures: dict[tuple[str, str], dict[str, float]] = {key: {} for key in rows}
    views = {"gld": "disclosure_prompt()", "add_nats": "disclosure_prompt()", "gas": "gas_prompt"}
    for measure, view in views.items():
        for one in _rows(prompts, view):
            if one[measure] is not None:
                figures[measure, one["instruction_key"]][one["prompt_id"]] = one[measure]
    n_intervals = Counter[str]()
    for (measure, key), row in rows.items():
        mine, none = figures[measure, key], figures[measure, "none"]
        assert row["figure"] == pytest.approx(np.mean([*mine.values()]))
        if key == "none":
            assert row["change"] is None and row["n_compared"] == 0
            continue
        changes = [mine[i] - none[i] for i in sorted(mine.keys() & none.keys())]
        n = len(changes)
        assert row["change"] == pytest.approx(np.mean(changes)) and row["n_compared"] == n
        ends = None if measure == "add_nats" else (-1, 1)
        most = n if measure == "gas" else math.inf
        low, _, high = interval(changes, ends, most) if n >= 5 else (None,) * 3
        assert (row["change_low"], row["change_high"]) == pytest.approx((low, high), rel=2e-3)
        n_intervals[measure] += low is not None
    assert all(n_intervals[measure] for measure in views)
    for one in _rows(prompts, "gas WHERE topic IS NULL"):
        row = rows["gas", one["instruction_key"]]
        assert (row["figure_low"], row["figure_high"]) == (one["gas_low"], one["gas_high"])


def test_a_grid_draws_each_way_once() -> None:
    """The values of section 5.1, one at a time, the others off."""
    assert [way.greedy for way in decodings((), (0, 0.5), (), 50, 0)] == [True, False]
    usual = {"probe_set": "topics", "model": "m", "by": "decoding"}
    ways = made(Sweep, usual).decodings()
    assert {w.temperature for w in ways} == {0.3, 0.5, 0.7, 1.0}
    assert {w.top_p for w in ways if not w.greedy} == {None, 0.3, 0.5, 0.7}
    varied = [
        (w.temperature not in (None, 1), w.top_p is not None, w.top_k is not None) for w in ways
    ]
    assert all(sum(each) <= 1 for each in varied)
    assert len({w.key for w in ways}) == len(ways) == 13 and sum(w.greedy for w in ways) == 1
    assert sorted(w.top_k for w in ways if w.top_k) == [10, 50, 100, 150, 200]
