"""Importing benchmarks: every row of a source is a pair or a reject, and figures are published."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.contracts import check_benchmark
from plumbline.eval_workers.pairs.benchmarks import (
    MODULES,
    discover,
    find,
    import_benchmark,
)
from plumbline.pipelines.command.main import main
from plumbline.warehouse.storage.store import Store

HEADER = ["", "word", "template", "is_natural"]


def _write(path: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def test_names_lead_to_modules_without_importing_the_others() -> None:
    code = (
        "import sys; from plumbline.eval_workers.pairs.benchmarks import find; find('use-20');"
        "print(sorted(m for m in sys.modules if 'pairs.benchmarks.' in m))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "use" in done.stdout and "wino" not in done.stdout


def test_every_module_keeps_the_contract() -> None:
    for name, description in discover().items():
        assert description and name in find(name).NAMES
    assert check_benchmark("closed-world").pairs
    assert {"use", "winobias", "winogender"} <= set(MODULES.names())


def test_rows_in_are_pairs_and_rejects(store: Store, tmp_path: Path) -> None:
    rows = [
        ["0", "tea", "{pronoun} drank {pronoun1} tea.", "True"],
        ["1", "tea", "They drank tea.", "True"],
        ["2", "tea", "", "True"],
        ["3", "tea", "{pronoun} drank tea.", "perhaps"],
        ["x", "tea", "{pronoun} drank tea.", "True"],
        ["0", "tea", "{pronoun} spilt tea.", "True"],
        ["5", "tea", "{pronoun} drank, said {name}.", "True"],
        ["6", "tea", "{pronoun} drank\0 tea.", "True"],
        ["7", "tea"],
        ["8", "", "Two lines:\n{pronoun} drank tea.", "False"],
    ]
    path = _write(tmp_path / "USE-5.csv", rows)
    done = import_benchmark(store, "use-5", tmp_path, "run")
    assert (done.n_pairs, done.n_rejects) == (2, 8)
    pairs = {p["pair_id"]: p for p in store.read("benchmark_pair").to_pylist()}
    assert pairs["00000"]["sentence_a"] == "She drank her tea."
    assert pairs["00000"]["sentence_b"] == "He drank his tea."
    assert pairs["00000"]["pronoun_first"] and not pairs["00008"]["pronoun_first"]
    assert pairs["00008"]["sentence_a"] == "Two lines:\nShe drank tea."
    assert (pairs["00008"]["is_natural"], pairs["00008"]["word"]) == (False, None)
    rejects = store.read("reject").to_pylist()
    assert sorted(r["source_row"] for r in rejects) == list(range(2, 10))
    assert {r["source_file"] for r in rejects} == {path.name}
    reasons = {r["source_row"]: r["reason"] for r in rejects}
    assert "no placeholder" in reasons[2] and "empty" in reasons[3]
    assert "already used" in reasons[6] and "{name}" in reasons[7]
    # a second import replaces the first
    _write(path, rows[:1])
    import_benchmark(store, "use-5", path, "run2")
    assert store.read("benchmark_pair").num_rows == 1
    assert store.read("reject").num_rows == 0


def test_bytes_that_are_not_utf8_reject_their_row_only(store: Store, tmp_path: Path) -> None:
    good = b",word,template,is_natural\n0,tea,{pronoun} drank.,True\n"
    (tmp_path / "USE-5.csv").write_bytes(
        good + b"1,t\xff,{pronoun} ate.,True\n2,tea,{pronoun} \xff.,True\n"
    )
    done = import_benchmark(store, "use-5", tmp_path, "run")
    assert (done.n_pairs, done.n_rejects) == (1, 2)
    assert all("UTF-8" in reason for reason in store.read("reject")["reason"].to_pylist())


def test_of_several_without_files_each_is_named_and_the_advice_is_given_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    names = ["use-5", "bbq", "closed-world", "crows-pairs", "winobias"]
    assert main(["benchmark", "import", *names]) == 4
    out, err = capsys.readouterr()
    assert "--benchmark closed-world" in out.splitlines()[-1]
    lines = err.splitlines()[-4:]
    assert all(line.startswith("error: ") for line in lines)
    assert [name in line for name, line in zip(names[:2], lines, strict=False)] == [True, True]
    assert ["PLUMBLINE_DATA" in line for line in lines] == [False, False, False, True]
    assert "crows_pairs_anonymized.csv" in lines[2] and "winobias" in lines[3]


@pytest.mark.slow
@pytest.mark.reference
def test_released_files_give_the_published_numbers_of_pairs(
    store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_DATA", str(data))
    natural = {"use-5": 4405, "use-10": 4740, "use-20": 4839, "winobias": 0, "winogender": 0}
    rows_in = {"use-5": 4954, "use-10": 4943, "use-20": 4945, "winobias": 1586, "winogender": 240}
    for name in natural:
        done = import_benchmark(store, name, None, "run")
        assert done.n_pairs + done.n_rejects == rows_in[name]
        pairs = store.read("benchmark_pair", benchmark=name).to_pylist()
        assert sum(p["is_natural"] is True for p in pairs) == natural[name]
        assert len({p["pair_id"] for p in pairs}) == rows_in[name]
        check_benchmark(name)
    winobias = store.read("benchmark_pair", benchmark="winobias").to_pylist()
    assert sum(p["split"] == "dev" for p in winobias) == 792
