"""The ledger against the tables, and corpora that grow, change and shrink."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.jobs.counting.corpus_lookup import run_checks
from plumbline.jobs.counting.partials import partials_directory
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import sql_names
from plumbline.warehouse.storage.store import Store
from tests.test_count_kill import contents

TEXTS = [f"She gave the queen {i % 7} teas and he saw word{i} again." for i in range(90)]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A counted corpus of three shards: one good, one with a rejected line, one cut short."""
    place = tmp_path_factory.mktemp("ledger")
    write_jsonl_zst(place / "a.jsonl.zst", TEXTS)
    (place / "b.jsonl").write_bytes(b'{"text": "she ran, he ran"}\nnot json\n{"text": "tea"}\n')
    write_jsonl_zst(place / "cut.jsonl.zst", TEXTS)
    cut = place / "cut.jsonl.zst"
    cut.write_bytes(cut.read_bytes()[:-3])
    shards = [place / name for name in ("a.jsonl.zst", "b.jsonl", "cut.jsonl.zst")]
    with pytest.raises(BadInput):
        count_corpus(Store.open(place / "w"), "c", shards)
    return place


@pytest.fixture
def broken(counted: Path, tmp_path: Path) -> Store:
    """A copy of the counted warehouse, to be broken."""
    shutil.copytree(counted / "w", tmp_path / "w")
    return Store.open(tmp_path / "w")


def edit(store: Store, table: str, change: Callable[[list[Row]], list[Row]]) -> None:
    """Write the corpus's part of a table anew with other rows."""
    where = {"stage": "count", "subject": "c"} if table == "reject" else {"corpus": "c"}
    rows = store.read(table, **where).to_pylist()
    assert rows
    changed = change([dict(r) for r in rows])
    assert changed != rows
    store.replace(table, changed, where, "r")


def first(**values: Any) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def one_more(column: str, **where: Any) -> Callable[[list[Row]], list[Row]]:
    """Add one to a column of the first row that fits."""

    def change(rows: list[Row]) -> list[Row]:
        row = next(r for r in rows if where.items() <= r.items())
        row[column] += 1
        return rows

    return change


def without(**where: Any) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [r for r in rows if not where.items() <= r.items()]


def extra(**values: Any) -> Callable[[list[Row]], list[Row]]:
    """Add the first row once more, with other values."""
    return lambda rows: [*rows, {**rows[0], **values}]


BREAKS: list[tuple[str, Callable[[list[Row]], list[Row]], set[str]]] = [
    ("word_count", one_more("n_word"), {"word_total"}),
    ("word_count", without(word="tea"), {"word_total"}),
    ("word_count", extra(), {"word_total", "word_key"}),
    ("word_count", extra(word="nothing", n_word=0), {"word_total", "count_positive"}),
    ("pair_count", one_more("n_pair", word="she", target="he"), {"pair_symmetry"}),
    ("pair_count", without(word="he", target="she"), {"pair_symmetry"}),
    ("pair_count", extra(), {"pair_key"}),
    ("pair_count", extra(word="nowhere", n_pair=1), {"pair_word"}),
    ("pair_count", extra(word="tea", target="ran", n_pair=1), {"pair_setting"}),
    ("pair_count", extra(word="tea", target="she", n_pair=0), {"count_positive"}),
    ("pair_count", extra(word="tea", n_pair=10**9), {"pair_total"}),
    ("pair_count", first(window_tokens=5), {"pair_setting"}),
    ("corpus", first(n_kept_tokens=1), {"corpus_total"}),
    ("corpus", first(n_shards_failed=0), {"corpus_total"}),
    ("corpus", first(n_words=1), {"word_pruned"}),
    ("corpus", first(n_words_kept=1), {"word_total", "word_pruned"}),
    ("corpus", first(min_count=0), {"word_pruned"}),
    ("corpus", first(min_count=2), {"word_rare"}),
    ("corpus_shard", one_more("n_documents_in"), {"document"}),
    ("corpus_shard", one_more("n_pairs", status="failed"), {"corpus_total", "document"}),
    ("corpus_shard", lambda rows: [*rows, rows[2]], {"corpus_total", "shard_key"}),
    ("reject", lambda rows: [], {"reject"}),
    ("reject", extra(), {"reject", "reject_key"}),
]


@pytest.mark.parametrize(("table", "change", "expected"), BREAKS)
def test_each_kind_of_damage_is_seen(
    broken: Store, table: str, change: Callable[[list[Row]], list[Row]], expected: set[str]
) -> None:
    edit(broken, table, change)
    found = {c.name: c for c in run_checks(broken, "c") if c.n_violations}
    assert found.keys() == expected
    assert all(c.first for c in found.values())


def test_every_check_is_broken_by_a_test() -> None:
    broken = {f"checks/{n}" for _, _, names in BREAKS for n in names}
    assert broken == set(sql_names("checks"))


def test_an_undamaged_corpus_holds(counted: Path, broken: Store) -> None:
    checks = run_checks(broken, "c")
    assert len(checks) == len(sql_names("checks")) and not any(c.n_violations for c in checks)
    with pytest.raises(UsageProblem, match="only c"):
        run_checks(broken, "d")
    edit(broken, "corpus", first(source="imported"))
    with pytest.raises(UsageProblem, match="imported"):
        run_checks(broken, "c")


def test_failed_shards_are_listed_until_they_are_repaired(
    counted: Path, broken: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--warehouse", str(broken.root)]
    assert main(["corpus", "list", "c", *where]) == 3
    out, err = capsys.readouterr()
    assert "1 of 3 shards failed" in err and out.index("cut.jsonl.zst") < out.index("b.jsonl")
    count_corpus(broken, "c", [counted / "a.jsonl.zst", counted / "b.jsonl"])
    assert main(["corpus", "list", "c", *where]) == 0


@pytest.mark.slow
def test_a_corpus_grows_changes_and_shrinks(store: Store, tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.jsonl.zst" for n in range(4)]
    for n, path in enumerate(paths):
        write_jsonl_zst(path, TEXTS[n::4])
    options = CorpusOptions()
    partials = partials_directory(store, options.listed, options)

    def becomes(shards: list[Path], n_new: int) -> None:
        """Count; the tables are those of a fresh count, and only so many shards were counted."""
        before = {p: p.stat().st_mtime_ns for p in partials.iterdir()}
        count_corpus(store, "c", shards)
        after = {p: p.stat().st_mtime_ns for p in partials.iterdir()}
        assert before.items() <= after.items(), "counted again"
        assert len(after.keys() - before.keys()) == n_new
        fresh = Store.open(tmp_path / f"fresh-{len(list(tmp_path.iterdir()))}")
        count_corpus(fresh, "c", shards)
        assert contents(store.root) == contents(fresh.root)
        assert not any(c.n_violations for c in run_checks(store, "c"))

    becomes(paths[:3], 3)
    becomes(paths, 1)
    write_jsonl_zst(paths[1], ["He alone drinks coffee."])
    becomes(paths, 1)
    words = store.read("word_count")["word"].to_pylist()
    assert "coffee" in words and "word1" not in words and "word2" in words
    becomes([paths[0], *paths[2:]], 0)
    assert "coffee" not in store.read("word_count")["word"].to_pylist()
