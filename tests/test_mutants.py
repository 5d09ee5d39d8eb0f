"""The seeded faults of `mutants.toml` still have their texts and tests, and the tool tells them."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import jinja2
import pytest

from tests.conftest import REPOSITORY
from tools.mutants import (
    BadMutant,
    Copy,
    Mutant,
    changed,
    main,
    mutated,
    place,
    product,
    read,
    sound,
    within,
)

#: How many faults there are, by what they break; moving code may not lose one.
LEAST = {"counts": 12, "measures": 10, "metrics": 14, "clusters": 10, "storage": 14} | {
    **{"models": 14, "pairs": 10, "writing": 10, "fairpair": 8, "disclosure": 8, "evidence": 6},
    **{"commands": 4, "report": 4},
}


def test_no_fault_is_lost() -> None:
    mutants = read()
    found = Counter(mutant.group for mutant in mutants)
    assert found.keys() == LEAST.keys()
    assert all(found[group] >= n for group, n in LEAST.items())
    assert len({mutant.id for mutant in mutants}) == len(mutants)


def test_every_fault_has_its_text_once_and_is_no_error_of_syntax() -> None:
    texts = product(REPOSITORY)
    for mutant in read():
        path = place(mutant, texts)
        faulty = mutated(mutant, texts[path])
        assert faulty != texts[path], mutant.id
        if path.suffix == ".py":
            ast.parse(faulty)
        elif path.suffix == ".jinja":
            jinja2.Environment().parse(faulty)
        else:
            duckdb.extract_statements(faulty)


def test_the_named_tests_are_there() -> None:
    contract = (REPOSITORY / "tests/backend_contract.py").read_text(encoding="utf-8")
    for mutant in read():
        assert mutant.tests, mutant.id
        for test in mutant.tests:
            file, name, *methods = test.partition("[")[0].split("::")
            tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
            kinds = ast.ClassDef if methods else ast.FunctionDef
            assert name in {node.name for node in tree.body if isinstance(node, kinds)}, test
            for method in methods:  # a class of a backend inherits its tests
                assert f"    def {method}(" in contract, f"{mutant.id}: {test}"


HALF = Mutant(
    *("half", "counts", "halves are doubled", "x / 2", "x * 2"),
    tests=("tests/test_half.py::test_half",),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A product of one function and its two tests, one of which notices nothing."""
    files = {
        "jobs/half.py": "def half(x: float) -> float:\n    return x / 2\n",
        "tests/test_half.py": """
import pytest
from jobs.half import half

def test_half() -> None:
    assert half(4) == 2

def test_nothing() -> None:
    assert half(0) == 0

@pytest.mark.skip
def test_skipped() -> None:
    pass
""",
    }
    for name, text in files.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True)
        (tmp_path / "source" / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "source", check=True)
    return tmp_path / "source"


def test_a_folder_has_the_faults_that_lie_in_it(tree: Path) -> None:
    assert within([HALF], [Path("jobs")], tree) == [HALF]
    assert within([HALF], [Path("warehouse"), Path("job")], tree) == []


def test_the_last_commit_selects_faults_and_a_clone_without_history_a_tenth(tree: Path) -> None:
    def commit(name: str) -> list[Mutant]:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("")
        subprocess.run(["git", "add", "."], cwd=tree, check=True)
        author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        subprocess.run(["git", *author, "commit", "-q", "-m", name], cwd=tree, check=True)
        return changed([HALF] * 25, tree)

    assert commit("warehouse/first.py") == [HALF] * 3  # there is no commit before it
    assert commit("warehouse/other.py") == []
    assert commit("jobs/beside.py") == [HALF] * 25
    (tree / "jobs/beside.py").unlink()
    assert commit("tests/test_more.py") == [HALF] * 25  # a removed file, too


def test_no_fault_is_started_late(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.mutants.Copy", lambda *_: None)  # nothing runs in it
    assert main(["--folder", "warehouse/sql", "--minutes", "0"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("0 of ") and said[1].endswith("not run, no time left")


@pytest.mark.slow
def test_a_fault_is_noticed_in_a_copy_only(tree: Path, tmp_path: Path) -> None:
    before = (tree / "jobs/half.py").read_bytes()
    copy = Copy(tree, tmp_path)
    sound(copy, [HALF])
    with copy.applied(HALF):
        found = copy.run([*HALF.tests, "tests/test_half.py::test_nothing"])
        assert (found.n, list(found.failed)) == (2, list(HALF.tests))
        assert (tree / "jobs/half.py").read_bytes() == before
    assert not copy.run(HALF.tests).failed  # the copy is whole again, and not a stale compilation


@pytest.mark.slow
def test_what_cannot_tell_a_fault_is_an_error(tree: Path, tmp_path: Path) -> None:
    texts = product(tree)
    with pytest.raises(BadMutant, match="no file"):
        place(replace(HALF, find="x / 3"), texts)
    with pytest.raises(BadMutant, match=r"half.py \(2\)"):
        place(replace(HALF, find="float"), texts)
    copy = Copy(tree, tmp_path)
    with copy.applied(HALF), pytest.raises(BadMutant, match="fail without a fault"):
        sound(copy, [HALF])
    skipped = "tests/test_half.py::test_skipped"
    assert sound(copy, [replace(HALF, tests=(*HALF.tests, skipped))]) == {skipped}
    with pytest.raises(BadMutant, match="not found"):
        copy.run(["tests/test_half.py::test_gone"])
