"""Importing published word statistics, and MaxPMI against the values released with them."""

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.jobs.association.max_pmi import constrain
from plumbline.jobs.ingest.released_statistics import import_statistics
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store

HEADER = ["", "word", "pmi_diff", "counts", "freq"]
TOTAL = 3_000
GOOD = [
    ["0", "nurse", "1.5", "30", repr(30 / TOTAL)],
    ["1", "army", "-2.25", "7", repr(7 / TOTAL)],
    ["2", "nan", "0.125", "600", repr(600 / TOTAL)],
]
TABLE = Path("unstereo-eval/data/pmi_file_w_counts.csv.gz")


def write(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> Path:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def contents(store: Store, *tables: str) -> dict[str, list[dict[str, Any]]]:
    return {
        t: [{k: v for k, v in row.items() if k != "run_id"} for row in store.read(t).to_pylist()]
        for t in tables
    }


#: A usable row of a word that only unusable rows had before.
TEA = ["16", "tea", "0.5", "3", repr(3 / TOTAL)]


def test_every_row_is_a_word_or_a_reject(store: Store, tmp_path: Path) -> None:
    bad = {
        4: (["3", " ", "0.5", "1", repr(1 / TOTAL)], "no word"),
        5: (["4", "tea", "0.5", "0", "0.1"], "counts is '0'"),
        6: (["5", "tea", "0.5", "1.5", "0.1"], "counts is '1.5'"),
        7: (["6", "tea", "0.5", "9" * 19, "0.1"], "counts is '9999"),
        8: (["7", "tea", "nan", "3", repr(3 / TOTAL)], "pmi_diff is 'nan'"),
        9: (["8", "tea", "", "3", repr(3 / TOTAL)], "pmi_diff is ''"),
        10: (["9", "tea", "0.5", "3", "0"], "freq is '0'"),
        11: (["10", "tea", "0.5", "3", repr(3 / 2_999)], "counts / freq is 2,999"),
        12: (["11", "nurse", "0.5", "3", repr(3 / TOTAL)], "already in row 1"),
        13: (["12", "tea"], "2 fields"),
        14: (["13", "t\udcffa", "0.5", "3", repr(3 / TOTAL)], "UTF-8"),
        15: (["14", "tea", "0.5", "9" * 400, "0.1"], "counts is '9999"),
        16: (["15", "tea", "0.5", "+5", repr(5 / TOTAL)], "counts is '+5'"),
    }
    path = write(tmp_path / "s.csv", [*GOOD, *(row for row, _ in bad.values()), TEA])
    done = import_statistics(store, "pile", path, "run")
    assert (done["n_words"], done["n_rejected"], done["n_tokens"]) == (4, len(bad), TOTAL)
    rejects = {r["source_row"]: r for r in store.read("reject").to_pylist()}
    assert rejects.keys() == bad.keys()
    for number, (_, reason) in bad.items():
        assert reason in rejects[number]["reason"], number
    assert {(r["stage"], r["subject"], r["source_file"]) for r in rejects.values()} == {
        ("import", "pile", "s.csv")
    }
    counts = {r["word"]: r["n_word"] for r in store.read("word_count").to_pylist()}
    assert counts == {"nurse": 30, "army": 7, "nan": 600, "tea": 3}
    deltas = store.read("word_delta").to_pylist()
    assert [(r["word"], r["delta_nats"]) for r in deltas] == [
        ("nurse", 1.5),
        ("army", -2.25),
        ("nan", 0.125),
        ("tea", 0.5),
    ]
    assert {(r["contrast"], r["n_pair_f"], r["delta_nats_se"]) for r in deltas} == {
        ("she/he", None, None)
    }
    (corpus,) = store.read("corpus").to_pylist()
    assert (corpus["source"], corpus["n_kept_tokens"], corpus["n_words_kept"]) == (
        *("imported", TOTAL),
        4,
    )
    assert corpus["n_tokens_pruned"] == TOTAL - 640
    assert {corpus[k] for k in ("n_documents", "n_tokens", "n_words", "n_pairs", "min_count")} == {
        None
    }


def test_files_that_are_something_else_leave_one_line(store: Store, tmp_path: Path) -> None:
    import_statistics(store, "pile", write(tmp_path / "s.csv", GOOD), "run")
    before = contents(store, "corpus", "word_count", "word_delta", "reject")
    whole = gzip.compress((tmp_path / "s.csv").read_bytes())
    files = {
        "truncated.csv.gz": (whole[:-9], "Compressed file ended before"),
        "parquet": (b"PAR1\0\0" + bytes(range(256)) * 999, "header"),
        "empty.csv": (b"", "no column word"),
        "only.csv": (b"word,pmi_diff,counts,freq\n", "no usable row"),
        "other.csv": (b"word,pmi_diff,counts\ntea,1,2\n", "no column freq"),
        "none.csv": (b"word,pmi_diff,counts,freq\ntea,x,2,0.5\n", "the first of 1: pmi_"),
        "odd.csv": (b"word,pmi_diff,counts,freq\na,1,2,0.5\nb,1,2,0.1\n", "only 1 of 2 rows agree"),
        "sum.csv": (b"word,pmi_diff,counts,freq\na,1,2,0.5\nb,1,3,0.75\n", "more than the 4"),
    }
    for name, (data, message) in files.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadInput, match=message) as e:
            import_statistics(store, "pile", tmp_path / name, "run")
        assert name in str(e.value) and "\n" not in str(e.value)
    for place in (tmp_path / "absent", tmp_path):
        with pytest.raises(BadInput, match="pmi_file_w_counts"):
            import_statistics(store, "pile", place, "run")
    assert contents(store, *before) == before


def _published(data: Path) -> Iterator[tuple[str, str, str, float]]:
    """Benchmark, pair_id, template and released MaxPMI (NaN: none) of the 15,810 natural pairs."""
    sets = data / "unstereo-eval" / "data" / "datasets"
    parts = [("use-5", "USE-5"), ("use-10", "USE-10"), ("use-20", "USE-20")]
    parts += [("winobias", "Winobias-dev"), ("winobias", "Winobias-test")]
    for benchmark, part in [*parts, ("winogender", "Winogender")]:
        path = sets / "preprocessed" / f"{part}-no-maxpmi-constraint.csv.gz"
        rows = pd.read_csv(path, keep_default_na=False).to_dict("records")
        natural: list[int] = []
        if part.startswith("USE"):
            raw = pd.read_csv(sets / "raw" / f"{part}.csv.gz", index_col=0)
            natural = raw.index[raw["is_natural"]].tolist()
        for row in rows:
            index = row["orig_index"]
            if benchmark == "winogender":
                pair_id = str(row["example_id"])
            elif natural:
                pair_id = f"{natural[int(index)]:05d}"
            else:
                pair_id = f"{part.partition('-')[2]}-{int(index):05d}"
            value = row["max_gender_pmi"]
            max_pmi = math.nan if value == "" else float(value)
            yield benchmark, pair_id, str(row["template"]), max_pmi


def _differ(ours: float | None, published: float) -> bool:
    if ours is None or math.isnan(published):
        return not (ours is None and math.isnan(published))
    return abs(ours - published) > 1e-9


@pytest.mark.slow
@pytest.mark.reference
def test_max_pmi_is_the_released_one(
    store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUMBLINE_DATA", str(data))
    done = import_statistics(store, "pile", data / "unstereo-eval", "run")
    assert (done["n_words"], done["n_rejected"], done["n_tokens"]) == (65_914, 0, 129_703_637_020)
    table = pd.read_csv(data / TABLE, keep_default_na=False, float_precision="round_trip")
    assert (table["counts"] / done["n_tokens"] == table["freq"]).all()
    (corpus,) = store.read("corpus").to_pylist()
    assert corpus["n_tokens_pruned"] == done["n_tokens"] - table["counts"].sum()
    published = list(_published(data))
    found, templates = {}, {}
    for benchmark in dict.fromkeys(b for b, *_ in published):
        import_benchmark(store, benchmark, None, "run")
        constrain(store, "pile", benchmark)
        for row in store.read("benchmark_pair", benchmark=benchmark).to_pylist():
            templates[benchmark, row["pair_id"]] = row["template"]
        for row in store.read("pair_association", corpus="pile", benchmark=benchmark).to_pylist():
            found[benchmark, row["pair_id"]] = row["max_pmi_nats"]
    assert len(published) == len({p[:2] for p in published}) == 15_810
    assert all(templates[p[:2]] == p[2] for p in published)
    assert [p for p in published if _differ(found[p[:2]], p[3])] == []
