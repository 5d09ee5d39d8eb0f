"""Push and pull of a warehouse, to a directory by its file:// URI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.pipelines.cli.main import main as plumbline
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage import mirror, remote
from plumbline.warehouse.storage.store import Store


def words(corpus: str, n: int) -> list[dict[str, object]]:
    return [{"corpus": corpus, "word": f"w{k}", "n_word": k} for k in range(n)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A warehouse with three files besides its marker, and unfinished work."""
    store = Store.open(tmp_path / "here")
    for corpus in ("a/b", "c", "d"):
        store.publish("word_count", words(corpus, 4), unit="all", run_id="r")
    (store.work_directory("score") / "chunk.parquet").write_text("unfinished")
    return store.root


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "there").as_uri()


def published(root: Path) -> dict[str, bytes]:
    """Every file outside of work directories, read without the code under test."""
    files = (f for f in root.rglob("*") if f.is_file() and "_work" not in f.parts)
    return {str(f.relative_to(root)): f.read_bytes() for f in files}


def test_there_and_back_only_what_changed(root: Path, uri: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert mirror.push(root, uri).n_copied == 4
    assert mirror.pull(uri, copy).n_copied == 4
    assert published(copy) == published(root)
    assert not (copy / "_work" / "pull").exists()
    Store.open(root).publish("word_count", words("c", 9), unit="all", run_id="r")
    assert mirror.push(root, uri).n_copied == mirror.pull(uri, copy).n_copied == 1
    assert published(copy) == published(root)
    assert mirror.push(root, uri) == mirror.pull(uri, copy) == mirror.Mirrored(4, 0, 0, 0)
    assert Store.open(copy, create=False).read("word_count", corpus="c").num_rows == 9


def test_a_push_that_was_stopped_goes_on(
    root: Path, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = remote.Remote.send

    def stops(self: remote.Remote, source: Path, name: str) -> None:
        if len(sent) == 2:
            raise KeyboardInterrupt
        send(self, source, name)
        sent.append(name)

    monkeypatch.setattr(remote.Remote, "send", stops)
    with pytest.raises(KeyboardInterrupt):
        mirror.push(root, uri)
    with pytest.raises(BadInput, match="no warehouse was pushed there"):
        mirror.pull(uri, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    first = sent.copy()
    sent[:] = ["-"] * 3  # no longer stops
    assert mirror.push(root, uri).n_copied == 2
    assert len(sent) == 3 + 2 and not set(first) & set(sent)
    mirror.pull(uri, tmp_path / "copy")
    assert published(tmp_path / "copy") == published(root)


def test_a_pull_that_was_stopped_leaves_the_copy_as_it_was(
    root: Path, uri: str, tmp_path: Path
) -> None:
    copy, there = tmp_path / "copy", tmp_path / "there"
    mirror.push(root, uri)
    mirror.pull(uri, copy)
    before = published(copy)
    for corpus in ("c", "d"):
        Store.open(root).publish("word_count", words(corpus, 9), unit="all", run_id="r")
    mirror.push(root, uri)
    damaged = there / "word_count" / "corpus=d" / "all.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + b"?")
    with pytest.raises(BadInput, match=r"corpus=d/all\.parquet.*differs from the list"):
        mirror.pull(uri, copy)
    assert published(copy) == before
    with pytest.raises(UsageProblem, match="lacks"):
        mirror.push(tmp_path / "copy" / "nothing", uri)
    damaged.write_bytes(whole)
    mirror.pull(uri, copy)
    assert published(copy) == published(root)


def test_a_file_lost_or_cut_there_is_sent_again(root: Path, uri: str, tmp_path: Path) -> None:
    mirror.push(root, uri)
    (tmp_path / "there" / "word_count" / "corpus=c" / "all.parquet").unlink()
    (tmp_path / "there" / "word_count" / "corpus=d" / "all.parquet").write_bytes(b"PAR1")
    assert mirror.push(root, uri).n_copied == 2


def test_what_only_one_side_has_goes_only_when_told(root: Path, uri: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirror.push(root, uri)
    mirror.pull(uri, copy)
    Store.open(copy).publish("word_count", words("own", 1), unit="all", run_id="r")
    with pytest.raises(UsageProblem, match=r"holds 1 files.*corpus=own"):
        mirror.pull(uri, copy)
    mirror.push(copy, uri)
    with pytest.raises(UsageProblem, match="--delete"):
        mirror.push(root, uri)
    assert mirror.push(root, uri, delete=True).n_removed == 1
    assert mirror.pull(uri, copy, delete=True).n_removed == 1
    assert published(copy) == published(root)


@pytest.mark.parametrize("name", ["../x.parquet", "word_count/../../x.parquet", "/etc/x.parquet"])
def test_a_list_that_leads_elsewhere_is_refused(
    root: Path, uri: str, tmp_path: Path, name: str
) -> None:
    mirror.push(root, uri)
    file = tmp_path / "there" / remote.LIST
    listed = json.loads(file.read_text())
    listed["files"][name] = {"size": 1, "sha256": "0" * 64}
    file.write_text(json.dumps(listed))
    with pytest.raises(BadInput, match="not a file of a warehouse"):
        mirror.pull(uri, tmp_path / "copy")


def test_pull_spares_a_directory_of_something_else(root: Path, uri: str, tmp_path: Path) -> None:
    mirror.push(root, uri)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("unsaved")
    with pytest.raises(BadInput, match=r"holds thesis\.txt"):
        mirror.pull(uri, tmp_path / "mine")


def test_the_commands(
    root: Path, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plumbline(["warehouse", "push", uri, "--warehouse", str(root)]) == 0
    copy = str(tmp_path / "copy")
    assert plumbline(["warehouse", "pull", uri, "--warehouse", copy]) == 0
    assert "4 of 4 files copied" in capsys.readouterr().out
    assert plumbline(["warehouse", "pull", f"{uri}/none", "--warehouse", copy]) == 3
    assert plumbline(["warehouse", "pull", "nowhere://x:secret@y", "--warehouse", copy]) == 2
    assert "secret" not in capsys.readouterr().err
