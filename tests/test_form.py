"""Warehouses of older and newer forms: what opens, what is migrated, what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.pipelines.cli.main import main
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table, tables
from plumbline.warehouse.storage import format as formats
from plumbline.warehouse.storage.compaction import compact
from plumbline.warehouse.storage.format import Migration, constant, newest_version
from plumbline.warehouse.storage.migration import migrate
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, score
from tests.old_warehouse import downgrade

OLD, GROWN, REKEYED = tables("""
planted: Old.
by: corpus count
key: corpus / word
    corpus word

planted: With a column that may be NULL.
by: corpus count
key: corpus / word
    corpus word
    note: text? -- n

planted: With a column of key and partitions.
by: corpus count
key: corpus form / word
    corpus
    form: text -- f
    word
    note: text? -- n
""")
#: Those of the project.
REAL = formats.MIGRATIONS
NOW = newest_version()
STEP = Migration("forms", {"planted": constant("form", "none")})


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A warehouse written when its table had two columns."""
    monkeypatch.setitem(TABLES, "planted", OLD)
    store = Store.open(tmp_path / "w")
    for corpus, words in (("c", ["tea", "cup"]), ("d", ["pot"])):
        rows = [{"corpus": corpus, "word": word} for word in words]
        store.publish("planted", rows, unit="all", run_id=f"run-{corpus}")
    return store


def rows(store: Store) -> list[tuple[object, ...]]:
    with connect(store.root) as connection:
        return connection.execute("SELECT * FROM planted ORDER BY ALL").fetchall()


def rekey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "planted", REKEYED)
    monkeypatch.setattr(formats, "MIGRATIONS", (*REAL, STEP))


def test_an_added_column_is_null_in_older_files(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", GROWN)
    store = Store.open(old.root)
    assert rows(store) == [("c", "cup", None), ("c", "tea", None), ("d", "pot", None)]
    assert {row["note"] for row in store.read("planted").to_pylist()} == {None}
    new = {"corpus": "a", "word": "jug", "note": "new"}
    store.publish("planted", [new], unit="all", run_id="r")  # sorted before the older files
    assert rows(store)[0] == ("a", "jug", "new") and len(rows(store)) == 4
    done = migrate(store.root)
    assert [path.parent.name for path in done.files] == ["corpus=c", "corpus=d"]
    assert migrate(store.root).files == () and len(rows(store)) == 4


def test_an_added_table_is_an_empty_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "planted", OLD)
    assert rows(Store.open(store.root)) == []


def test_what_a_newer_plumbline_added_is_refused(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", GROWN)
    Store.open(old.root).publish(
        "planted", [{"corpus": "e", "word": "w", "note": "n"}], unit="u", run_id="r"
    )
    monkeypatch.setitem(TABLES, "planted", OLD)
    for opening in (connect, migrate):
        with pytest.raises(BadInput, match=r"a newer Plumbline wrote planted\.note .*upgrade"):
            opening(old.root)
    monkeypatch.delitem(TABLES, "planted")
    with pytest.raises(BadInput, match="a newer Plumbline wrote table planted"):
        Store.open(old.root)


def test_a_new_key_column_gets_its_constant_in_old_rows(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rekey(monkeypatch)
    for opening in (Store.open, connect):
        with pytest.raises(BadInput, match=rf"version {NOW}, .*{NOW + 1} .*warehouse migrate"):
            opening(old.root)
    planned = migrate(old.root, dry_run=True)
    assert len(planned.files) == 2 and Store(old.place).snapshot().format == NOW
    done = migrate(old.root)
    assert (done.before, done.after, done.files) == (NOW, NOW + 1, planned.files)
    expected = [("c", "none", "cup", None), ("c", "none", "tea", None), ("d", "none", "pot", None)]
    store = Store.open(old.root)
    assert rows(store) == expected
    files = store.snapshot().files("planted")
    assert [f.partition for f in files] == [("c", "none"), ("d", "none")]
    assert [u.run_id for f in files for u in f.units] == ["run-c", "run-d"]
    assert migrate(old.root).files == ()
    assert all(path.exists() for path in planned.files), "kept until they are compacted"


def test_later_migrations_meet_files_of_several_versions(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are migrated from the version that each was written with."""
    rekey(monkeypatch)
    migrate(old.root)

    def shout(rows: pa.Table) -> pa.Table:
        upper = [word.upper() for word in rows["word"].to_pylist()]
        return rows.set_column(rows.column_names.index("word"), "word", pa.array(upper))

    monkeypatch.setattr(
        formats,
        "MIGRATIONS",
        (*REAL, STEP, Migration("elsewhere", {}), Migration("case", {"planted": shout})),
    )
    assert (migrate(old.root).before, len(migrate(old.root).files)) == (NOW + 1, 0)
    assert [row[2] for row in rows(Store.open(old.root))] == ["CUP", "TEA", "POT"]


def test_a_change_without_a_migration_names_the_file(
    old: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLES, "planted", REKEYED)
    with pytest.raises(BadInput, match=r"planted/corpus=c.*form holds NULL.*no migration"):
        migrate(old.root)


def test_a_warehouse_from_before_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files stay where they are; a merged one still holds its units, a short one is filled in."""
    store = Store.open(tmp_path / "w")
    fill(store, "word_delta", [delta("tea", 1.0)])
    for unit, n in (("a/", 1), ("b", 2)):
        row = {"corpus": "c s", "word": unit, "n_word": n}
        store.publish("word_count", [row], unit=unit, run_id=f"run-{n}")
    compact(store, "r")
    (merged,) = store.snapshot().files("word_count")
    units = {unit.name for unit in merged.units}
    downgrade(store.root)
    short = next((store.root / "word_delta").glob("**/*.parquet"))
    pq.write_table(pq.read_table(short).drop_columns(["delta_nats_se"]), short)
    before = {p: p.read_bytes() for p in store.root.rglob("*.parquet")}
    where = ["--warehouse", str(store.root)]
    assert main(["sql", "FROM word_count", *where]) == 3
    assert "plumbline warehouse migrate" in capsys.readouterr().err
    assert main(["warehouse", "migrate", "--dry-run", *where]) == 0
    assert "would write 1 files" in capsys.readouterr().out
    assert not (store.root / "_log").exists()
    assert main(["warehouse", "migrate", *where]) == 0
    now = Store.open(store.root)
    assert {p: p.read_bytes() for p in before} == before
    assert now.units("word_count", corpus="c s") == units == {"a/", "b"}
    assert [f.units for f in now.snapshot().files("word_count")] == [merged.units]
    assert now.read("word_delta")["delta_nats_se"].to_pylist() == [None]
    assert main(["warehouse", "compact", *where]) == 0
    assert not short.exists() and now.read("word_count").num_rows == 2


def test_every_migration_names_tables_and_says_what_it_is_about() -> None:
    assert REAL
    for step in REAL:
        assert step.about and set(step.changes) <= set(TABLES)


def test_probabilities_from_before_instructions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Models were told nothing then; the measures are those of before."""
    today = TABLES["pronoun_probability"]
    key, partitions = (
        tuple(name for name in names if name != "instruction_key")
        for names in (today.key, today.partitions)
    )
    columns = tuple(c for c in today.columns if c.name != "instruction_key")
    former = dataclasses.replace(today, key=key, partitions=partitions, columns=columns)
    monkeypatch.setitem(TABLES, "pronoun_probability", former)
    root = Store.open(tmp_path / "w").root
    shared = {"probe_set": "s", "model_key": "k", "model": "m", "word_list": "l", "run_id": "r"}
    shared |= {"prompt_id": "1", "n_variants": 2, "text_id": "t"}
    words = (("she", "f", 0.3), ("he", "m", 0.1))
    found = [{**shared, "word": w, "gender": g, "probability": p} for w, g, p in words]
    fill(Store.open(root), "pronoun_probability", found)
    downgrade(root, version=1)
    monkeypatch.setitem(TABLES, "pronoun_probability", today)
    with pytest.raises(BadInput, match="plumbline warehouse migrate"):
        Store.open(root)
    assert len(migrate(root).files) == 1
    store = Store.open(root)
    assert {r["instruction_key"] for r in store.read("pronoun_probability").to_pylist()} == {"none"}
    prompt = {"probe_set": "s", "prompt_id": "1", "prompt": "p", "language": "en", "run_id": "r"}
    fill(store, "probe_prompt", [{**prompt, "source_file": "f", "source_row": 1}])
    pair = {"word_list": "l", "pair": 1, "female": "she", "male": "he", "source": "s"}
    fill(store, "attribute_pair", [{**pair, "run_id": "r"}])
    with connect(store.root) as connection:
        (gld,) = connection.execute("SELECT gld FROM disclosure()").fetchone()
    assert gld == pytest.approx(0.5)


def _former(table: str, names: dict[str, str], without: tuple[str, ...] = ()) -> Table:
    """A table of today with other names for some columns, and without others."""
    today = TABLES[table]
    columns = tuple(
        dataclasses.replace(c, name=names.get(c.name, c.name))
        for c in today.columns
        if c.name not in without
    )
    key = tuple(names.get(k, k) for k in today.key if k not in without)
    return dataclasses.replace(today, columns=columns, key=key)


def test_pairs_from_before_there_were_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every pair was a female and a male sentence; the figures are those of before."""
    sentences = {"sentence_a": "sentence_f", "sentence_b": "sentence_m"}
    scores = {"logprob_a_nats": "logprob_f_nats", "logprob_b_nats": "logprob_m_nats"}
    scores |= {"n_tokens_a": "n_tokens_f", "n_tokens_b": "n_tokens_m"}
    added = ("item_id", "group_a", "group_b", "category", "direction", "weight", "extra")
    rows: dict[str, dict[str, object]] = {
        "benchmark_pair": pair("b", "1"),
        "pair_score": score("b", "1", 2.5),
        "token_logprob": {
            **{"benchmark": "b", "model_key": "key-m", "pair_id": "1", "text_id": "t"},
            **{"side": "m", "position": 0, "token_id": 7, "token": "He"},
            **{"logprob_nats": -1.0, "run_id": "r"},
        },
        "metric_value": {
            **{"metric": "us", "model_key": "key-m", "model": "m", "benchmark": "b"},
            **{"corpus": "", "contrast": "", "subset": "all", "unit": "share", "options": "{}"},
            **{"interval": "none", "n": 1, "value": 0.0, "run_id": "r"},
        },
    }
    with monkeypatch.context() as former:
        former.setattr(formats, "MIGRATIONS", REAL[:2])
        former.setitem(TABLES, "benchmark_pair", _former("benchmark_pair", sentences, added))
        former.setitem(TABLES, "pair_score", _former("pair_score", scores))
        former.setitem(TABLES, "metric_value", _former("metric_value", {}, ("groups",)))
        root = Store.open(tmp_path / "w").root
        for table, row in rows.items():
            names = {**sentences, **scores}
            kept = {names.get(k, k): v for k, v in row.items() if k not in added}
            fill(Store.open(root), table, [kept])
    with pytest.raises(BadInput, match="plumbline warehouse migrate"):
        Store.open(root)
    assert len(migrate(root).files) == 4
    store = Store.open(root)
    (found,) = store.read("benchmark_pair").to_pylist()
    assert found == {**dict.fromkeys(found), **rows["benchmark_pair"]}
    assert (found["item_id"], found["group_a"], found["group_b"]) == ("1", "female", "male")
    assert store.read("token_logprob")["side"].to_pylist() == ["b"]
    assert store.read("metric_value")["groups"].to_pylist() == ["female/male"]
    with connect(store.root) as connection:
        (ratio,) = connection.execute("SELECT log_ratio_nats FROM scored_pair").fetchone()
    assert ratio == 2.5
