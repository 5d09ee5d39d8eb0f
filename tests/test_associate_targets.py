"""Word lists added to a counted corpus give the rows of a count with all these words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plumbline.jobs.association.associations import associate
from plumbline.jobs.counting import partials
from plumbline.jobs.counting.corpus_lookup import corpus_row, run_checks
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel import counter, document_stream
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.memory import Limits
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import oracle
from tests.test_min_count import rows

OWN, ADDED = ("she", "he"), ("queen", "king", "nurse", "tea", "w3")
#: The words of both, in one list and in two.
BOTH = [("she", "he"), ("queen", "king"), ("nurse", "tea")]


def word_list(path: Path, *pairs: tuple[str, str], targets: tuple[str, ...] = ()) -> str:
    entries = ", ".join(f'{{ a = "{f}", b = "{m}" }}' for f, m in pairs)
    unpaired = json.dumps(targets)
    head = 'description = "d"\nsource = "s"\ngroups = ["female", "male"]\n'
    path.write_text(f"{head}pairs = [{entries}]\nunpaired = {unpaired}\n")
    return str(path)


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


def write(path: Path, made: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": t}) + "\n" for t in made), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Three, one of them twice, and one without documents."""
    top, made = tmp_path_factory.mktemp("shards"), texts(150)
    paths = [write(top / f"{k}.jsonl", made[k::3]) for k in range(3)]
    (top / "twin.jsonl").write_bytes(paths[0].read_bytes())
    (top / "empty.jsonl").write_text("")
    return (*paths, top / "twin.jsonl", top / "empty.jsonl")


def assert_equal(store: Store, corpus: str, other: str) -> None:
    """Equal rows, but for the contrast of each list as a whole; all checks hold."""
    found = {name: sorted_tables(store, name) for name in (corpus, other)}
    for ours, others in zip(*found.values(), strict=True):
        assert ours.equals(others) and ours.num_rows
    for name in found:
        assert not [c for c in run_checks(store, name) if c.n_violations]


def sorted_tables(store: Store, corpus: str) -> list[pa.Table]:
    tables = []
    for name in ("word_count", "pair_count", "word_association", "word_delta"):
        rows = store.read(name, corpus=corpus).drop_columns("corpus")
        if "contrast" in rows.column_names:
            rows = rows.filter(pc.match_substring(rows["contrast"], "/"))
        tables.append(rows.sort_by([(c, "ascending") for c in rows.column_names]))
    return tables


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["pairs", "windows"])
@pytest.mark.parametrize("little", [False, True])
def test_equals_a_fresh_count(
    rule: str,
    little: bool,
    store: Store,
    shards: tuple[Path, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where documents are cut into tables and segments, and targets come a few at a time."""
    if little:  # more words than have room
        long = " ".join(f"v{k} tea" if k % 7 else f"v{k} she nurse w3" for k in range(17_000))
        shards = (*shards, write(tmp_path / "long.jsonl", [long, "tea", long]))
        monkeypatch.setattr(counter, "BATCH_BYTES", 1 << 12)
        monkeypatch.setattr(document_stream, "_TABLE", 500)
        monkeypatch.setattr(partials, "limits_within", lambda *_: Limits(1 << 19, 1 << 10))
    added = word_list(tmp_path / "added.toml", *BOTH[1:], targets=("w3", "unheard"))
    all_of_it = word_list(tmp_path / "fresh.toml", *BOTH, targets=("w3", "unheard"))
    count_corpus(store, "fresh", shards, CorpusOptions(targets=all_of_it, rule=rule, window=4))
    associate(store, "fresh")
    count_corpus(store, "c", shards, CorpusOptions(targets="she-he", rule=rule, window=4))
    done = associate(store, "c", added)
    if little:
        assert len(list(store.root.glob("_work/count/*/*/*.tokens.parquet"))) > 8
    assert done.contrasts == ("she/he", "queen/king", "nurse/tea", "added", "added-sum")
    assert_equal(store, "c", "fresh")
    made = [json.loads(line)["text"] for path in shards for line in path.open(encoding="utf-8")]
    expected = oracle(made, OWN, rule, 4, [*OWN, *ADDED])
    found = rows(store, "pair_count", "c")
    assert {(r["word"], r["target"]): r["n_pair"] for r in found} == expected.pairs


def test_pruned_words(store: Store, shards: tuple[Path, ...], tmp_path: Path) -> None:
    """They keep their places between the others: what is left has the rows of a fresh count."""
    added = word_list(tmp_path / "added.toml", *BOTH[1:])
    fresh = word_list(tmp_path / "fresh.toml", *BOTH)
    for name, listed in (("c", "she-he"), ("fresh", fresh)):
        count_corpus(store, name, shards, CorpusOptions(targets=listed, min_count=30))
    assert corpus_row(store, "c")["n_words"] > corpus_row(store, "c")["n_words_kept"]
    associate(store, "fresh")
    associate(store, "c", added)
    assert_equal(store, "c", "fresh")
    rare = word_list(tmp_path / "rare.toml", ("w299", "w3"))
    associate(store, "c", rare)
    assert "w299" not in store.read("pair_count", corpus="c")["target"].to_pylist()
    assert not [c for c in run_checks(store, "c") if c.n_violations]


def test_what_cannot_be_added(
    store: Store, shards: tuple[Path, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count_corpus(store, "c", shards[:1], CorpusOptions(targets="she-he"))
    arguments = ["corpus", "associate", "--corpus", "c", "--warehouse", str(store.root)]

    def line_of(status: int, listed: str) -> str:
        assert main([*arguments, "--targets", listed]) == status
        (line,) = capsys.readouterr().err.strip().splitlines()
        return line

    they = word_list(tmp_path / "they.toml", ("queen", "king"), targets=("they", "her"))
    line = line_of(2, they)
    assert "its count dropped the stop words her, they of list they" in line
    assert "count it with a list that holds them" in line
    assert "is not one lowercase token" in line_of(
        2, word_list(tmp_path / "two.toml", ("step-mother", "king"))
    )
    assert "there are gendered, names" in line_of(2, "nobody")
    (tokens,) = store.root.glob("_work/count/*/*/*.tokens.parquet")
    good, listed = tokens.read_bytes(), word_list(tmp_path / "good.toml", ("queen", "king"))
    tokens.write_bytes(good[:100])
    assert "tokens.parquet: is damaged" in line_of(3, listed)
    tokens.write_bytes(good)
    # A whole file of tokens that isn't the one counted.
    count_corpus(store, "d", shards[1:2], CorpusOptions(targets="she-he"))
    files = set(store.root.glob("_work/count/*/*/*.parquet"))
    ours = sorted(f for f in files if f.parent == tokens.parent)
    for mine, other in zip(ours, sorted(files - set(ours)), strict=True):
        mine.write_bytes(other.read_bytes())
    assert "is damaged" in line_of(3, listed)
    assert store.read("word_list", corpus="c").num_rows == 1
    for file in files:
        file.unlink()
    assert "can't be read" in line_of(3, listed)
    shutil.rmtree(tokens.parent)
    assert "is not on this machine" in line_of(4, listed)
    with pytest.raises(MissingComponent):
        associate(store, "c", listed)
    assert associate(store, "c").contrasts == ("she/he",)
