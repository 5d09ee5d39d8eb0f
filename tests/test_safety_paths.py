"""Hostile names, links and directories: nothing is written or removed outside its place."""

from __future__ import annotations

import ast
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.training.trained_models import plain_name
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.paths import segment
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY
from tests.metric_rows import delta, fill, pair

NAMES = [
    "../../x",
    "/etc/passwd",
    "..",
    "a\0b",
    "a/b=c/d",
    "corpus=evil",
    "~root",
    "C:\\x",
    "%2e%2e%2f",
    "e\u0301",
    "é",
    "p\u0430ypal",
    "_staging",
    "{a,b}[c]*?",
    "x\n../y",
]


def everything(root: Path) -> set[Path]:
    return {p.relative_to(root) for p in root.rglob("*")}


def words(corpus: str, word: str = "tea") -> list[dict[str, object]]:
    return [{"corpus": corpus, "word": word, "n_word": 2}]


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_in_their_place_and_come_back(tmp_path: Path, name: str) -> None:
    store = Store.open(tmp_path / "w")
    before = everything(tmp_path)
    other = unicodedata.normalize("NFC", name)
    if other != name:  # looks alike, is another name
        store.publish("word_count", words(other, "other"), unit=other, run_id="r")
    store.publish("word_count", words(name), unit=name, run_id=name)
    store.replace("word_delta", [], {"corpus": name}, "r")
    new = everything(tmp_path) - before
    assert all(p.parts[1] in ("_log", "word_count", "word_delta") for p in new)
    assert all(len(p.parts) <= 4 for p in new)
    assert store.read("word_count", corpus=name).to_pylist() == words(name)
    store.drop("word_count", {"corpus": name})
    left = {row["word"] for row in store.read("word_count").to_pylist()}
    assert left == ({"other"} if other != name else set())


@given(st.text(max_size=30), st.text(max_size=30))
def test_different_names_are_different_parts(a: str, b: str) -> None:
    def made(name: str) -> str | None:
        try:
            return segment(name)
        except BadInput:
            return None

    for name in (a, b):
        part = made(name)
        assert part is None or ((Path("x") / part).parent == Path("x") and "\0" not in part)
    if made(a) is not None and a != b:
        assert made(a) != made(b)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_work_never_lies_above_its_place(store: Store, name: str) -> None:
    with pytest.raises(BadInput, match="can't name a file"):
        store.work_directory("generate", name)


@pytest.mark.parametrize("name", ["x" * 300, "é" * 60, "half\udce4"])
def test_names_no_file_can_have_are_one_line(store: Store, name: str) -> None:
    for call in (
        lambda: store.stage("word_count", {"corpus": name}, "r"),
        lambda: store.work_directory("count", name),
    ):
        with pytest.raises(BadInput, match=r"too long to name a file|not Unicode") as raised:
            call()
        assert len(str(raised.value)) < 250


def linked(store: Store, place: str, outside: Path) -> None:
    """A link at ``place`` of the warehouse to a directory full of somebody's files."""
    outside.mkdir()
    (outside / "part-0.parquet").write_text("precious")
    link = store.root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        link.rmdir()
    os.symlink(outside, link)


WRITES: dict[str, Callable[[Store], object]] = {
    "publish": lambda s: s.publish("word_count", words("c"), unit="part-0", run_id="r"),
    "replace": lambda s: s.replace("word_count", words("c"), {"corpus": "c"}, "r"),
    "empty": lambda s: s.replace("word_count", [], {"corpus": "c"}, "r"),
    "drop": lambda s: s.drop("word_count", {"corpus": "c"}),
    "drop all": lambda s: s.drop("word_count", {}),
    "work": lambda s: s.work_directory("count", "c"),
}


@pytest.mark.parametrize("place", ["word_count/corpus=c", "word_count", "_staging", "_work"])
def test_links_in_a_warehouse_are_not_written_through(tmp_path: Path, place: str) -> None:
    store, outside = Store.open(tmp_path / "w"), tmp_path / "home"
    linked(store, place, outside)
    refused = 0
    for write in WRITES.values():
        try:
            write(store)
        except BadInput as e:
            assert "is a link or below one" in str(e)
            refused += 1
        assert [p.read_text() for p in outside.iterdir()] == ["precious"]
    assert refused >= 1


def test_a_link_to_another_table_or_in_a_circle(store: Store) -> None:
    store.publish("word_count", words("mine"), unit="a", run_id="r")
    os.symlink("corpus=mine", store.root / "word_count" / "corpus=theirs")
    (store.root / "word_delta").mkdir()
    os.symlink("corpus=x", store.root / "word_delta" / "corpus=x")
    with pytest.raises(BadInput, match="is a link"):
        store.replace("word_count", words("theirs"), {"corpus": "theirs"}, "r")
    with pytest.raises(BadInput, match="is a link"):
        store.publish("word_delta", [delta("tea", 0.5, "x")], unit="u", run_id="r")
    assert store.read("word_count", corpus="mine").num_rows == 1


def test_a_warehouse_that_is_itself_a_link_works(tmp_path: Path) -> None:
    Store.open(tmp_path / "there")
    os.symlink(tmp_path / "there", tmp_path / "here")
    store = Store.open(tmp_path / "here")
    store.replace("word_count", words("c"), {"corpus": "c"}, "r")
    assert Store.open(tmp_path / "there").read("word_count").num_rows == 1


@pytest.mark.parametrize("name", ["../x", "/x", "..", ".", "", "a/b", "a\0b", ".hidden"])
def test_models_that_are_made_have_plain_names(name: str) -> None:
    with pytest.raises(UsageProblem, match="plain directory name"):
        plain_name(name)


def test_cards_and_shards_of_hostile_names(tmp_path: Path, store: Store) -> None:
    """`--out` is the user's to choose; what is made from a name is not."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    fill(store, "benchmark_pair", [pair("../../x", "1")])
    before = everything(tmp_path)
    here = Path.cwd()
    os.chdir(inside)
    try:
        assert main(["benchmark", "card", "../../x", "--warehouse", str(store.root)]) == 0
    finally:
        os.chdir(here)
    new = {p for p in everything(tmp_path) - before if p.parts[0] != "warehouse"}
    assert new and all(p.parts[:3] == ("a", "b", "out") for p in new)


def test_no_archive_is_unpacked_and_no_data_is_run() -> None:
    """Archives are written, never unpacked; no pickle or code is read from data. YAML is in one
    module, which reads the wordings of UnStereoEval's release, as plain data."""
    plain_yaml = REPOSITORY / "eval_workers" / "writing" / "wordings.py"
    forbidden = {"extractall", "extract", "unpack_archive", "eval", "exec", "yaml", "pickle"}
    forbidden |= {"dill", "joblib", "cloudpickle", "shelve", "marshal", "tarfile", "allow_pickle"}
    for room in ("warehouse", "jobs", "eval_workers", "pipelines"):
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names: set[str] = set()
                if isinstance(node, ast.Import):
                    names = {a.name.split(".")[0] for a in node.names}
                elif isinstance(node, ast.ImportFrom):
                    names = {(node.module or "").split(".")[0]}
                elif isinstance(node, ast.Call):
                    names = {ast.unparse(node.func)} | {str(k.arg) for k in node.keywords}
                    if ast.unparse(node.func) == "torch.load":
                        assert any(
                            k.arg == "weights_only" and ast.unparse(k.value) == "True"
                            for k in node.keywords
                        ), f"{path.name}:{node.lineno}"
                if path == plain_yaml:
                    names -= {"yaml"}
                    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "yaml":
                        assert node.attr in ("safe_load", "YAMLError")
                found = names & forbidden
                assert not found, f"{path.relative_to(REPOSITORY)}:{node.lineno}: {found}"
