"""The ledger against the tables; corpora that grow, change, shrink, and lose rare words."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting import partials as partial_counts
from plumbline.jobs.counting.corpus_lookup import failed_checks
from plumbline.jobs.counting.partials import partials_directory
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.main import main
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.query.connection import sql_names
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import oracle
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
    assert failed_checks(broken, "c").keys() == expected


def test_every_check_is_broken_by_a_test() -> None:
    broken = {f"checks/{n}" for _, _, names in BREAKS for n in names}
    assert broken == set(sql_names("checks"))


def test_an_undamaged_corpus_holds(counted: Path, broken: Store) -> None:
    assert not failed_checks(broken, "c")
    with pytest.raises(UsageProblem, match="only c"):
        failed_checks(broken, "d")
    edit(broken, "corpus", first(source="imported"))
    with pytest.raises(UsageProblem, match="imported"):
        failed_checks(broken, "c")


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
        assert not failed_checks(store, "c")

    becomes(paths[:3], 3)
    becomes(paths, 1)
    write_jsonl_zst(paths[1], ["He alone drinks coffee."])
    becomes(paths, 1)
    words = store.read("word_count")["word"].to_pylist()
    assert "coffee" in words and "word1" not in words and "word2" in words
    becomes([paths[0], *paths[2:]], 0)
    assert "coffee" not in store.read("word_count")["word"].to_pylist()


N = 5
TARGETS = wordlists.load("gendered").targets


def texts() -> list[str]:
    """Words of all frequencies, common targets, and a rare one (queen) that meets itself once."""
    rng = np.random.default_rng(3)
    rank = np.minimum(rng.zipf(1.4, (240, 12)), 400)
    words = [[f"word{k}" for k in row] for row in rank]
    for row, pronoun in zip(words, rng.choice(["she", "he", "her", "his"], (240, 2)), strict=True):
        row[2], row[7] = pronoun
    return [" ".join(row) for row in words] + ["queen word1 queen word2 word399999"]


def rows(store: Store, table: str, corpus: str) -> list[Row]:
    """A corpus's rows, sorted; without the corpus and the run."""
    found = store.read(table, corpus=corpus)
    found = found.drop_columns([c for c in ("corpus", "run_id") if c in found.column_names])
    return found.sort_by([(c, "ascending") for c in found.column_names]).to_pylist()


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("shards")
    paths = [place / f"{k}.jsonl.zst" for k in range(6)]
    for k, path in enumerate(paths):
        write_jsonl_zst(path, texts()[k::6])
    return paths


@pytest.fixture(scope="module", params=["pairs", "windows"])
def both(request: pytest.FixtureRequest, shards: list[Path], tmp_path_factory: Any) -> Store:
    """Corpus `all` with every word and `some` without the rare ones, associated."""
    store = Store.open(tmp_path_factory.mktemp("both") / "w")
    for corpus, least in (("all", 1), ("some", N)):
        count_corpus(
            store, corpus, tuple(shards), CorpusOptions(rule=request.param, min_count=least)
        )
        associate(store, corpus)
    return store


@pytest.mark.slow
def test_the_tables_are_those_of_brute_force(both: Store) -> None:
    rule = both.read("corpus", corpus="some")["rule"][0].as_py()
    counts = oracle(texts(), TARGETS, rule, 10)
    for corpus, least in (("all", 1), ("some", N)):
        stay = {w for w, n in counts.words.items() if n >= least or w in TARGETS}
        words = {r["word"]: r["n_word"] for r in rows(both, "word_count", corpus)}
        pairs = {(r["word"], r["target"]): r["n_pair"] for r in rows(both, "pair_count", corpus)}
        assert words == {w: n for w, n in counts.words.items() if w in stay}
        assert pairs == {p: n for p, n in counts.pairs.items() if p[0] in stay}
        (row,) = rows(both, "corpus", corpus)
        assert row["n_kept_tokens"] == sum(counts.words.values()) and row["min_count"] == least
        assert row["n_words"] == len(counts.words) and row["n_words_kept"] == len(stay)
        assert row["n_tokens_pruned"] == sum(counts.words.values()) - sum(words.values())
        assert row["n_pairs"] == counts.total
        assert not failed_checks(both, corpus)
    assert words["queen"] == 2 and pairs["queen", "queen"] == 1, "a target, and rare"
    by_shard = [oracle(texts()[k::6], TARGETS, rule, 10).words for k in range(6)]
    frequent = {w for words in by_shard for w, n in words.items() if n >= N}
    assert stay - frequent - set(TARGETS), "words that are rare in every shard, not in all"
    assert len(stay) < len(counts.words)


def test_another_min_count_is_merged_not_counted(
    store: Store, shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of what reads and cuts texts counts again."""
    count_corpus(store, "c", shards)
    partials = partials_directory(store, CorpusOptions().listed, CorpusOptions())
    made = {p: p.stat().st_mtime_ns for p in partials.iterdir()}
    counted = count_corpus(store, "c", shards, CorpusOptions(min_count=N))
    assert counted.changed and counted.row["n_words_kept"] < counted.row["n_words"]
    assert made == {p: p.stat().st_mtime_ns for p in partials.iterdir()}
    assert list(partials.parent.iterdir()) == [partials]
    options, several = CorpusOptions(), {partials}
    for name, other in (("_READER", 0), ("tokenizer_version", lambda _: "other")):
        monkeypatch.setattr(partial_counts, name, other)
        several.add(partials_directory(store, options.listed, options))
    assert len(several) == 3
