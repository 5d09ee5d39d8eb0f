"""A benchmark's statistics and card: hand-made sentences, the published table, what hubs read."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from plumbline.eval_workers.pairs.benchmarks import import_benchmark, replace_facts
from plumbline.eval_workers.pairs.export import Constraint, export, statistics
from plumbline.eval_workers.pairs.recipe import IN_PARQUET
from plumbline.jobs.ingest.released_statistics import import_statistics
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import association, delta, fill, pair

#: Table 7: sentences, seed words, female and male words, then median/largest, the last of delta.
TABLE_7 = {
    "use-5": (4405, 491, 15, 20, (1, 6), (0, 12), (0, 24), (6, 30), (-0.02, 0.26)),
    "use-10": (4740, 491, 22, 23, (2, 7), (0, 18), (4, 36), (12, 48), (-0.02, 0.26)),
    "use-20": (4839, 491, 36, 36, (2, 7), (1, 28), (9, 37), (20, 48), (-0.02, 0.26)),
    "winobias": (1586, 40, 2, 10, (1, 2), (9, 18), (9, 18), (13, 21), (-0.23, 1.44)),
    "winogender": (240, 83, 0, 0, (1, 2), (8, 19), (8, 19), (14, 25), (-0.08, 1.85)),
}
#: What the released sets have instead; seed words are those with a delta.
DIFFERS = {
    ("use-10", "n_defined"): 493,
    ("use-20", "n_defined"): 493,
    ("use-20", "n_male"): 32,
    ("winogender", "pronouns"): (1, 1),
}
SHAPES = {
    # template: pronouns, first, last, words, tokens, female and male words
    "{pronoun} ran.": (1, 0, 0, 2, 2, 0, 0),
    "'{pronoun1} tea', {pronoun} said.": (2, 0, 2, 4, 6, 0, 0),
    "The cook's sister hurt {pronoun2}self.": (1, 4, 4, 5, 6, 1, 0),
    "The king didn't see {pronoun2} - or his queen.": (1, 4, 4, 8, 10, 1, 2),
}

RECIPE = """
about = "sentences on age"
source = "a survey"
licence = "cc-by-4.0"
language = "en"
groups = ["old", "young"]
citation = "@misc{ages2026, title = {Ages}}"
"""


def shapes(store: Store) -> Store:
    rows = [pair("b", str(k), template=t, word=f"w{k % 3}") for k, t in enumerate(SHAPES)]
    bad = pair("b", "bad", template="{pronoun} " * 9, word="bad", is_natural=False)
    fill(store, "benchmark_pair", [*rows, bad])
    return store


def test_figures_of_a_benchmark(store: Store) -> None:
    shapes(store)
    fill(store, "word_delta", [delta("w0", 0.5), delta("w2", -0.25), delta("other", 3.0)])
    figures = statistics(store.root, "b")
    assert (figures["n_pairs"], figures["n_seed_words"]) == (4, 3)
    assert (figures["n_female"], figures["n_male"]) == (2, 2)
    pairs = ("n_pairs_female", "n_pairs_male", "n_pairs_gendered")
    assert tuple(figures[name] for name in pairs) == (2, 1, 2)
    assert (figures["pronouns_median"], figures["pronouns_max"]) == (1, 2)
    assert (figures["words_median"], figures["words_max"]) == (4.5, 8)
    (row,) = figures["seed_delta"]  # type: ignore[misc]
    assert row == {
        **{"corpus": "c", "contrast": "she/he", "n_defined": 2},
        **{"median_nats": 0.125, "largest_nats": 0.5},
        **{"n_female": 1, "n_male": 1, "median_female_nats": 0.5, "median_male_nats": -0.25},
    }
    with pytest.raises(UsageProblem, match="plumbline benchmark import none"):
        statistics(store.root, "none")


@pytest.mark.reference
@pytest.mark.parametrize("name", TABLE_7)
def test_the_published_table(store: Store, data: Path, name: str) -> None:
    release = data / "unstereo-eval" / "data"
    import_benchmark(store, name, release / "datasets" / "raw", "run")
    import_statistics(store, "pile", release, "run")
    figures: dict[str, Any] = statistics(store.root, name)
    (deltas,) = figures["seed_delta"]
    spreads = ("pronouns", "first_position", "last_position", "tokens")
    found = {
        "n_pairs": figures["n_pairs"],
        "n_defined": deltas["n_defined"],
        **{side: figures[side] for side in ("n_female", "n_male")},
        **{s: (figures[f"{s}_median"], figures[f"{s}_max"]) for s in spreads},
        "delta": (round(deltas["median_nats"], 2), round(deltas["largest_nats"], 2)),
    }
    expected = dict(zip(found, TABLE_7[name], strict=True))
    different = {k: v for (of, k), v in DIFFERS.items() if of == name}
    assert found == {**expected, **different}
    assert all(expected[k] != v for k, v in different.items())


def test_an_exported_benchmark_is_imported_with_its_facts(store: Store, tmp_path: Path) -> None:
    (tmp_path / "ages.toml").write_text(RECIPE)
    (tmp_path / "ages.csv").write_text("sentence_a,sentence_b\nAn old man.,A young man.\n")
    recipe = str(tmp_path / "ages.toml")
    import_benchmark(store, "ages", tmp_path / "ages.csv", "r1", recipe=recipe)
    first = export(store, "ages", tmp_path / "first")
    other = Store.open(tmp_path / "other")
    import_benchmark(other, "theirs", tmp_path / "first", "r2")  # a folder, as it was written
    pairs = [s.read("benchmark_pair").sort_by("pair_id") for s in (store, other)]
    for column in ("item_id", "sentence_a", "sentence_b", "group_a", "group_b"):
        assert pairs[0][column] == pairs[1][column], column
    facts = [
        {row["fact"]: row["said"] for row in s.read("benchmark_fact").to_pylist()}
        for s in (store, other)
    ]
    assert facts[0] == facts[1] | {"About": "sentences on age"}
    assert facts[1]["About"] == "sentences on age." and len(facts[0]) == 5
    second = export(other, "theirs", tmp_path / "second")
    text = second.paths[0].read_text("utf-8")
    assert 'license: "cc-by-4.0"' in text and "- Source: a survey\n" in text
    assert "@misc{ages2026, title = {Ages}}" in text
    for metadata, problem in {
        "[]": "not a JSON object of texts",
        "{": "not a JSON object of texts",
        '{"Licence": "a b"}': "licence = 'a b'",
    }.items():
        table = pq.read_table(first.paths[1]).replace_schema_metadata({IN_PARQUET: metadata})
        pq.write_table(table, tmp_path / "odd.parquet")
        with pytest.raises(BadInput, match=f"plumbline_facts.*{re.escape(problem)}"):
            import_benchmark(other, "odd", tmp_path / "odd.parquet", "r3")
    table = pq.read_table(first.paths[1])
    for name in ("part-1", "part-2"):
        pq.write_table(table.append_column("of", pa.array([name])), tmp_path / f"{name}.parquet")
    assert len(import_benchmark(other, "parts", tmp_path / "part-*.parquet", "r4").pairs) == 2


def test_constraints_that_no_pair_or_corpus_meets(store: Store, tmp_path: Path) -> None:
    shapes(store)
    fill(store, "pair_association", [association("b", "0", 0.9)])
    with pytest.raises(BadInput, match=r"no pair is within \|MaxPMI\| <= 0.5 nats in c"):
        export(store, "b", tmp_path, constraint=Constraint("c", eta_nats=0.5))
    with pytest.raises(UsageProblem, match="constrain --corpus other --benchmark b"):
        export(store, "b", tmp_path, constraint=Constraint("other"))


def test_a_card_keeps_the_constraint_of_its_build(store: Store, tmp_path: Path) -> None:
    config = {"corpus": "c", "contrast": "she/he", "eta": 0.5}
    with recorded(store, "benchmark build", config) as run_id:
        rows = [pair("b", str(k)) for k in range(3)]
        store.publish("benchmark_pair", rows, unit="a", run_id=run_id)
    fill(store, "pair_association", [association("b", str(k), 0.3 * k) for k in range(3)])
    assert export(store, "b", tmp_path).data.num_rows == 2
    assert export(store, "b", tmp_path, constraint=Constraint("c")).data.num_rows == 3


def test_the_front_matter_is_what_hubs_read(store: Store, tmp_path: Path) -> None:
    with recorded(store, "benchmark import", {}) as run_id:
        rows = [pair("winogender", f"{k:03}", stereotype="pro") for k in range(3)]
        store.publish("benchmark_pair", rows, unit="a", run_id=run_id)
        replace_facts(store, "winogender", {"Model": "a: b"}, run_id)
    export(store, "winogender", tmp_path, "mit")
    _, front, text = (tmp_path / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    said = yaml.safe_load(front)
    assert (said["license"], said["pretty_name"]) == ("mit", "winogender")
    assert said["size_categories"] == ["n<1K"]
    info = said["dataset_info"]
    shared = pq.read_table(tmp_path / "data.parquet")
    n_bytes = pa.Table.from_pylist(shared.to_pylist(), shared.schema).nbytes
    assert info["splits"] == [{"name": "test", "num_examples": 3, "num_bytes": n_bytes}]
    schema = pq.read_schema(tmp_path / "data.parquet")
    assert [(f["name"], f["dtype"]) for f in info["features"]] == [
        (f.name, str(f.type)) for f in schema
    ]
    (files,) = said["configs"][0]["data_files"]
    assert (tmp_path / files["path"]).is_file()
    assert "- Model: a: b\n" in text and "Prompts" not in text and "None" not in text
    export(store, "winogender", tmp_path, licence="cc-by-4.0")
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert 'license: "cc-by-4.0"' in text and "- Model: a: b\n" in text, "what was said is kept"
    with recorded(store, "benchmark import", {}) as run_id:
        store.replace("benchmark_pair", rows, {"benchmark": "winogender"}, run_id)
    export(store, "winogender", tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert run_id in text and "Model" not in text, "of other pairs it was said"
