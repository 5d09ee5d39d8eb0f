"""Shards in a bucket, on a web server and on the hub are counted like those on a disk."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.jobs.counting import partials
from plumbline.jobs.counting.shard import count_shard
from plumbline.jobs.ingest.count_corpus import Counted, count_corpus
from plumbline.warehouse.errors import BadInput, Interrupted, UsageProblem
from plumbline.warehouse.input import remote_files as sources
from plumbline.warehouse.input.shards import expand_shards, write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.hub_server import environment, hub
from tests.test_count_kill import contents

_ENTRY = "from plumbline.pipelines.command.main import entry; entry()"
TEXTS = [f"She drinks tea {i}." for i in range(40)] + [f"He likes tea {i}." for i in range(40)]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards, of each kind one, with a reject in each."""
    top = tmp_path / "shards"
    write_jsonl_zst(top / "a.jsonl.zst", TEXTS[:50])
    (top / "c.jsonl").write_text('{"text": "she ran"}\n{"texts": "no"}\n')
    pq.write_table(pa.table({"text": [*TEXTS[50:], None], "n": range(31)}), top / "b.parquet")
    return top


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No server of an earlier test is remembered, and requests are repeated once."""
    few = {"max_retries": 1, "retry_timeout": timedelta(seconds=2)}
    monkeypatch.setattr(sources, "CLIENT", {**sources.CLIENT, "retry_config": few})
    sources._file_system.cache_clear()
    yield
    sources._file_system.cache_clear()


@pytest.fixture
def uploaded(shards: Path, bucket: str) -> str:
    """The address of the shards in a bucket of their own."""
    for path in shards.iterdir():
        boto3.client("s3").upload_file(str(path), bucket, f"text/{path.name}")
    return f"s3://{bucket}/text"


def count(where: Path, patterns: list[str], **more: Any) -> Counted:
    shards = expand_shards(patterns)
    return count_corpus(Store.open(where), "c", shards, **more)


def rows(where: Path) -> dict[str, list[dict[str, Any]]]:
    """What was counted, without where the shards were."""
    return contents(where, "fingerprint", "shard", "source_file")


@pytest.fixture
def local(shards: Path, tmp_path: Path) -> dict[str, list[dict[str, Any]]]:
    count(tmp_path / "local", [str(shards / "*")])
    return rows(tmp_path / "local")


@pytest.fixture
def web(shards: Path) -> Iterator[str]:
    with hub(top=shards) as url:
        yield url


def check_same(where: Path, scheme: str, local: dict[str, Any]) -> None:
    """The rows of the shards on a disk, under addresses that are still what was counted."""
    assert rows(where) == local
    store = Store.open(where)
    names = store.read("corpus_shard")["shard"].to_pylist()
    assert all(name.startswith(f"{scheme}://") for name in names) and len(names) == 3


@pytest.mark.slow
def test_a_bucket(local: dict[str, Any], bucket: str, uploaded: str, tmp_path: Path) -> None:
    where, all_of_it = tmp_path / "w", [f"{uploaded}/*"]
    assert count(where, all_of_it).changed
    check_same(where, "s3", local)
    assert not count(where, all_of_it).changed
    boto3.client("s3").put_object(Bucket=bucket, Key="text/c.jsonl", Body=b'{"text": "she sat"}')
    before = {x.shard: x.seconds for x in count(where, all_of_it).ledgers}
    again = {x.shard: x.seconds for x in count(where, all_of_it).ledgers}
    assert before == again
    assert "sat" in Store.open(where).read("word_count")["word"].to_pylist()


@pytest.mark.slow
def test_the_hub(shards: Path, local: dict[str, Any], tmp_path: Path) -> None:
    with hub({"org/text": shards}) as url:
        names = ["hf://datasets/org/text/*.jsonl*", "hf://datasets/org/text/b.parquet"]
        command = [sys.executable, "-c", _ENTRY, "corpus", "count", *names, "--corpus", "c"]
        variables = environment(url, tmp_path / "home") | {"HF_TOKEN": "hf_madeup"}
        where = ["--warehouse", str(tmp_path / "w")]
        done = subprocess.run([*command, *where], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check_same(tmp_path / "w", "hf", local)
    kept = [path.read_bytes() for path in (tmp_path / "w").rglob("*") if path.is_file()]
    assert not any(b"hf_madeup" in content for content in [*kept, done.stderr.encode()])


def test_an_outage_in_one_shard_leaves_the_others(web: str, shards: Path, tmp_path: Path) -> None:
    """Its connection breaks off in the middle: it may succeed later, whatever ails another."""
    (shards / "broken.jsonl").write_text("".join(f'{{"text": "tea {i}"}}\n' for i in range(9)))
    (shards / "cut.jsonl.zst").write_bytes((shards / "a.jsonl.zst").read_bytes()[:-3])
    names = [f"{web}/{name}" for name in ("a.jsonl.zst", "broken.jsonl", "cut.jsonl.zst")]
    with pytest.raises(Interrupted, match=r"broken\.jsonl: .*run the same command again") as caught:
        count(tmp_path / "w", names)
    assert "\n" not in str(caught.value)
    (row,) = Store.open(tmp_path / "w").read("corpus").to_pylist()
    assert (row["n_shards"], row["n_shards_failed"], row["n_documents"]) == (1, 2, 50)


def test_a_shard_that_is_replaced_while_it_is_read(
    web: str, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_and_replace(path: Path, *more: Any) -> Any:
        counts = count_shard(path, *more)
        (shards / "c.jsonl").write_text('{"text": "replaced"}\n')
        return counts

    with monkeypatch.context() as patched:
        patched.setattr(partials, "count_shard", count_and_replace)
        with pytest.raises(BadInput, match="was replaced while it was read"):
            count(tmp_path / "w", [f"{web}/c.jsonl"])
    count(tmp_path / "w", [f"{web}/c.jsonl"])
    assert Store.open(tmp_path / "w").read("word_count")["word"].to_pylist() == ["replaced"]


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("WEB/none.jsonl", BadInput, "none.jsonl: no such file"),
        ("WEB/*.jsonl", UsageProblem, "a web server doesn't list its files (name each file"),
        ("WEB/a.txt", BadInput, "no such file"),
        ("S3/none-*.jsonl", BadInput, "no such file (check the path or the pattern"),
        ("S3/none.jsonl", BadInput, "no such file"),
        ("S3", BadInput, "is a directory"),
        ("http://127.0.0.1:9/a.jsonl", Interrupted, "check the address and the credentials"),
    ],
)
def test_what_is_not_at_an_address_is_one_line(
    pattern: str, error: type[Exception], message: str, web: str, uploaded: str
) -> None:
    with pytest.raises(error) as caught:
        expand_shards([pattern.replace("S3", uploaded).replace("WEB", web)])
    assert message in str(caught.value) and "\n" not in str(caught.value)
