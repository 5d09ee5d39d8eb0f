"""A word list added to a corpus of all pairs gives the rows of a count with its words."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting.corpus_lookup import failed_checks
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import write_jsonl_zst
from plumbline.warehouse.storage.store import Store
from tests.prompt_rows import list_file

OWN, ADDED = ("she", "he"), ("queen", "king", "nurse", "tea", "w3")
#: The words of both, in one list and in two.
BOTH = [("she", "he"), ("queen", "king"), ("nurse", "tea")]


def texts(n: int) -> list[str]:
    """Documents of all lengths, some empty; their words are common and rare ones and targets."""
    rng = np.random.default_rng(7)
    vocabulary = np.array([*OWN, *ADDED] * 6 + ["the", "...", "\u00e9t\u00e9"])
    made = []
    for _ in range(n):
        words = rng.choice(vocabulary, rng.integers(0, 60)).tolist()
        words += [f"w{k}" for k in rng.zipf(1.3, len(words)) % 60_000]
        rng.shuffle(words)
        made.append(" ".join(words))
    return made


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Three, one of them twice, and one without documents."""
    top, made = tmp_path_factory.mktemp("shards"), texts(150)
    parts = {"0": made[::3], "1": made[1::3], "2": made[2::3], "twin": made[::3], "empty": []}
    for name, documents in parts.items():
        write_jsonl_zst(top / f"{name}.jsonl.zst", documents)
    return tuple(top / f"{name}.jsonl.zst" for name in parts)


def sorted_tables(store: Store, corpus: str) -> list[pa.Table]:
    """Return the rows on the words of ``BOTH``, but for the contrast of each list as a whole."""
    tables = []
    targets = [word for pair in BOTH for word in pair] + ["w3"]
    for name, column, values in (
        ("word_association", "target", targets),
        ("word_delta", "contrast", ["/".join(pair) for pair in BOTH]),
    ):
        rows = store.read(name, ds.field(column).isin(values), corpus=corpus)
        rows = rows.drop_columns("corpus")
        tables.append(rows.sort_by([(c, "ascending") for c in rows.column_names]))
    return tables


@pytest.mark.parametrize("rule", ["pairs", "windows"])
def test_equals_a_fresh_count(
    rule: str, store: Store, shards: tuple[Path, ...], tmp_path: Path
) -> None:
    added = list_file(tmp_path / "added.toml", BOTH[1:], ("w3", "unheard"))
    all_of_it = list_file(tmp_path / "fresh.toml", BOTH, ("w3", "unheard"))
    for name, targets in (("fresh", all_of_it), ("c", "all")):
        options = CorpusOptions(targets=targets, rule=rule, window=4, min_count=3)
        count_corpus(store, name, shards, options)
    associate(store, "fresh")
    before = store.read("pair_count", corpus="c")
    associate(store, "c", added)
    contrasts = set(store.read("word_delta", corpus="c")["contrast"].to_pylist())
    assert {"she/he", "queen/king", "nurse/tea", "added", "added-sum"} < contrasts
    for ours, others in zip(*(sorted_tables(store, c) for c in ("c", "fresh")), strict=True):
        assert ours.equals(others) and ours.num_rows
    assert store.read("pair_count", corpus="c").equals(before)
    assert not failed_checks(store, "c")


def test_what_cannot_be_added(
    store: Store, shards: tuple[Path, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count_corpus(store, "c", shards[:1], CorpusOptions(targets="she-he"))
    count_corpus(store, "all", shards[:1], CorpusOptions(targets="all"))

    def line_of(corpus: str, listed: str) -> str:
        arguments = ["--corpus", corpus, "--warehouse", str(store.root), "--targets", listed]
        assert main(["corpus", "associate", *arguments]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        return line

    they = list_file(tmp_path / "they.toml", BOTH[1:2], ("they", "her"))
    line = line_of("c", they)
    assert "its count lacks the targets her, king, queen, they of list they" in line
    assert f"plumbline corpus count ... --targets {they} --replace" in line
    assert "its count lacks the targets they of list they" in line_of("all", they)
    two = list_file(tmp_path / "two.toml", [("step-mother", "king")])
    assert "is not one lowercase token" in line_of("all", two)
    assert "there are gendered, names" in line_of("all", "nobody")
    assert {row["word_list"] for row in store.read("word_list", corpus="c").to_pylist()} == {
        "she-he"
    }
    assert associate(store, "c")["n_contrasts"] == 1
