"""The kept documents of a corpus equal its texts, read line by line by Python's own JSON parser."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.jobs.counting import partials
from plumbline.jobs.counting.kept_documents import Evidence, Shard, evidence_of
from plumbline.jobs.counting.partials import ShardJob, token_files
from plumbline.jobs.kernel import counter, document_stream
from plumbline.jobs.kernel.cooccurrences import RULES
from plumbline.jobs.kernel.corpus_options import CorpusOptions
from plumbline.jobs.kernel.json_parser import MAX_SOURCE
from plumbline.jobs.kernel.memory import Limits
from plumbline.jobs.kernel.tokens.tokenizer import Targets, tokenize
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import TARGETS

#: Row, source and kept words of a document.
Kept = tuple[int, str | None, list[str]]


def kept_of(evidence: Evidence, shard: Shard) -> list[Kept]:
    """The documents of a shard as the reader gives them."""
    names: dict[str, int] = {}

    def number(words: pa.StringArray) -> np.ndarray[Any, Any]:
        found = [names.setdefault(word, len(names)) for word in words.to_pylist()]
        return np.array(found, np.int32)

    found: list[Kept] = []
    for some in evidence.documents(shard, number):
        words = list(names)
        assert len(some.offsets) == len(some.row) + 1 == len(some.source) + 1
        assert some.document.tolist() == [
            k for k, n in enumerate(np.diff(some.offsets)) for _ in range(n)
        ]
        found += [
            (int(row), source, [words[k] for k in some.values[start:end].tolist()])
            for row, source, start, end in zip(
                some.row, some.source.to_pylist(), some.offsets, some.offsets[1:], strict=False
            )
        ]
    return found


def kept(store: Store, corpus: str) -> list[list[Kept]]:
    """The documents of each shard of a corpus, in the order of its shards."""
    evidence = evidence_of(store, corpus)
    return [kept_of(evidence, shard) for shard in evidence.shards]


def expected_of(path: Path, source_field: str) -> list[Kept]:
    """The same by brute force from JSON lines."""
    found: list[Kept] = []
    for row, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            record = json.loads(line.decode())
            record["text"].encode()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        source: Any = record if source_field else None
        for name in source_field.split("."):
            source = source.get(name) if isinstance(source, dict) else None
        named = source if isinstance(source, str) and source else None
        found.append((row, named, tokenize(record["text"], TARGETS)))
    return found


def counted(path: Path, options: CorpusOptions, directory: Path) -> list[Kept]:
    """The documents of one shard after a count of it alone."""
    directory.mkdir()
    ledger = ShardJob(str(directory), Targets(TARGETS), options).count(str(path))
    # Of a shard whose lines are all rejected there is nothing to keep.
    assert (ledger.status == "failed") == (ledger.n_rejected > 0 == ledger.n_documents)
    if ledger.status == "failed":
        return []
    evidence = Evidence({}, Targets(TARGETS), options, directory, ())
    found = kept_of(evidence, Shard(path.name, ledger.fingerprint))
    assert len(found) == ledger.n_documents
    assert sum(len(words) for _, _, words in found) == ledger.n_kept_tokens
    return found


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are counted in pieces of a few hundred bytes, and written in tables of a few words."""
    monkeypatch.setattr(counter, "BATCH_BYTES", 300)
    monkeypatch.setattr(document_stream, "_TABLE", 11)
    # A limit of its own, so that no other test's counter is used again.
    monkeypatch.setattr(partials, "limits_within", lambda *_: Limits(1 << 30, 1 << 9))


SOURCES = st.sampled_from(["Pile-CC", "caf\u00e9", "", 'a "b"\\/c\n', "\u4e2d", "x" * MAX_SOURCE])
META = (
    SOURCES.map(lambda source: {"pile_set_name": source, "n": [1, {"pile_set_name": "no"}]})
    | st.just({})
    | st.sampled_from([{"pile_set_name": 3}, {"pile_set_name": {"a": "b"}}, [], "Pile-CC", None])
)
WORDS = ["She", "he", "tea", "nurse", "the", "x-ray", "and", "\u00e9t\u00e9", "queen's", "..."]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join) | st.text(max_size=30)
RECORDS = st.fixed_dictionaries({"text": TEXTS}, optional={"meta": META, "x": META})
LINES = st.builds(
    lambda record, ascii_only: json.dumps(record, ensure_ascii=ascii_only), RECORDS, st.booleans()
) | st.sampled_from(
    [
        "",
        "  ",
        "junk",
        '{"text": 3, "meta": {"pile_set_name": "rejected"}}',
        '{"t\\u0065xt": "she sat", "meta": {"pile_set_name": "escaped key"}}',
        '{"text": "tea", "met\\u0061": {"pile_s\\u0065t_name": "caf\\u00e9"}}',
        '{"text": "tea", "x": NaN, "meta": {"pile_set_name": "left to Python"}}',
        '{"meta": {"pile_set_name": "a"}, "text": "she", "meta": {"pile_set_name": "b"}}',
        '{"meta": {"pile_set_name": "a", "pile_set_name": 3}, "text": "she"}',
        '{"meta": {"pile_set_name": "a"}, "text": "she", "meta": 3}',
        '{"meta": [{"pile_set_name": "in a list"}], "text": "he"}',
        '{"x": {"meta": {"pile_set_name": "too deep"}}, "pile_set_name": "above", "text": "he"}',
        '{"text": "she", "meta": {"pile_set_name": "caf\\u00e9 \\ud83d\\ude00"}}',
    ]
)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "source_field", ["meta.pile_set_name", pytest.param("x", marks=pytest.mark.slow), ""]
)
def test_made_lines(source_field: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.mktemp("made")

    @given(
        st.lists(LINES, max_size=12), st.sampled_from(RULES), st.sampled_from(["gendered", "all"])
    )
    def check(lines: list[str], rule: str, targets: str) -> None:
        path = top / "a.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        options = CorpusOptions(rule=rule, window=3, source_field=source_field, targets=targets)
        assert counted(path, options, top / "w") == expected_of(path, source_field)
        shutil.rmtree(top / "w")

    check()


@pytest.mark.parametrize("targets", ["gendered", "all"])
@pytest.mark.parametrize("rule", RULES)
def test_little_memory(
    rule: str, targets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of words and pairs are emptied inside documents, and ids begin again each time."""
    monkeypatch.setattr(counter, "BATCH_BYTES", 1 << 15)
    monkeypatch.setattr(partials, "limits_within", lambda *_: Limits(1 << 20, 1 << 12))
    n, names = (3_000, ["a", None]) if targets == "all" else (14_000, ["b"])
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for k, name in enumerate([*names, "c"]):
            words = (f"w{i * 7 % 50_000} {TARGETS[i % 4]} v{i % 13_000}" for i in range(k, n))
            record = {"text": " ".join(words), "meta": {"pile_set_name": name}}
            file.write(json.dumps(record) + '\n{"text": ""}\n')
    found = counted(path, CorpusOptions(rule=rule, window=5, targets=targets), tmp_path / "w")
    assert found == expected_of(path, "meta.pile_set_name")
    (folder,) = (tmp_path / "w").iterdir()
    assert len(token_files(tmp_path / "w", folder.name)) > 2


@pytest.mark.slow
def test_parquet(tmp_path: Path) -> None:
    """Sources in a struct, in a dictionary-encoded column, in numbers, and none."""
    texts = ["She sat.", None, "", "The and", *(f"tea{k} he" for k in range(1500))]
    names = ["a", "b", None, "", *("cd"[k % 2] for k in range(1500))]
    columns = {
        "struct": pa.array([{"pile_set_name": name, "n": 1} for name in names]),
        "plain": pa.array(names).dictionary_encode(),
        "number": pa.array(range(len(names))),
    }
    fields = {"struct": "meta.pile_set_name", "plain": "meta", "number": "meta", "none": "meta"}
    for name, field in fields.items():
        path = tmp_path / f"{name}.parquet"
        meta = {"meta": columns[name]} if name in columns else {}
        pq.write_table(pa.table({"text": texts, **meta}), path, row_group_size=700)
        options = CorpusOptions(source_field=field)
        has_source = name in ("struct", "plain")
        expected = [
            (row, (source or None) if has_source else None, tokenize(text, TARGETS))
            for row, (text, source) in enumerate(zip(texts, names, strict=True), 1)
            if text is not None
        ]
        assert counted(path, options, tmp_path / name) == expected, name
