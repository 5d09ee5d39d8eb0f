"""`corpus audit`: matched documents, errors of a curation's changes, and what a model would do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.jobs.evidence.curation.curation_audit import Audited, audit
from plumbline.jobs.evidence.curation.predicted_preference import fitted_response
from plumbline.jobs.evidence.subset import SubsetRule, write_subset
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.rows import Rows
from plumbline.pipelines.report.sections.compare_corpora import audit_section
from plumbline.pipelines.reproduce.cause import read_design
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import documents
from plumbline.warehouse.query.method_validation import OWN
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair, score, scored_by, studied, trained
from tests.test_change import corpus, counts, delta, texts
from tools import audit_study


def kept_shard(path: Path, records: Sequence[dict[str, Any]]) -> str:
    """A shard of JSON lines, compressed as its name says."""
    raw = "".join(json.dumps(r) + "\n" for r in records).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return str(path)


def word(done: Audited, of: str) -> dict[str, Any]:
    return next(row for row in done.rows if (row["part"], row["subject"]) == ("word", of))


def part(done: Audited, name: str) -> dict[str, dict[str, Any]]:
    return {row["subject"]: row for row in done.rows if row["part"] == name}


@pytest.mark.parametrize("n_copies", [1, 4, 16])
def test_planted_copies_of_leaning_documents(store: Store, tmp_path: Path, n_copies: int) -> None:
    """The change is that of the counts; its error that of a bootstrap over documents, each with
    its copies; and it differs from 0, as every copied document leans."""
    plain, leaning = texts(200, 1), texts(60, 2, nurse=1.0)
    corpus(store, "a", plain + leaning * (1 + n_copies), tmp_path)
    kept = [{"text": text} for text in plain + leaning]
    done = audit(store, "a", [kept_shard(tmp_path / "kept.jsonl.gz", kept)], "r")
    row, both = word(done, "nurse"), counts(plain + leaning, "nurse")
    times = np.repeat([1, 1 + n_copies], [200, 60])
    before, after = delta(*both, times), delta(*both, np.ones(260))
    assert row["delta_before_nats"] == pytest.approx(before)
    assert row["delta_after_nats"] == pytest.approx(after)
    assert row["change_nats"] == pytest.approx(after - before) and row["change_nats"] < 0
    rng = np.random.default_rng(3)
    draws = [
        delta(*both, w) - delta(*both, w * times)
        for w in (rng.multinomial(260, np.full(260, 1 / 260)) for _ in range(500))
    ]
    assert 0.88 < np.std(draws) / row["change_nats_se"] < 1.12
    assert row["q"] < 0.01 and row["change_nats_high"] < 0
    assert (row["clusters"], row["q_turn"]) == ("document", 1.0)
    n = part(done, "documents")["documents"]
    assert (n["n_before"], n["n_after"]) == (260 + 60 * n_copies, 260)
    assert done.curation.n_removed == 60 * n_copies and not done.curation.n_unmatched
    assert part(done, "copies")["copies"]["n_before"] == 60 * n_copies
    assert part(done, "copies")["copies"]["n_after"] == 0
    often = part(done, "copies")["in more than 10 copies"]["n_before"]
    assert often == (60 * 17 if n_copies == 16 else 0)


def test_sources_are_drawn_where_there_are_ten(store: Store, tmp_path: Path) -> None:
    """Against a bootstrap over sources; of each the second half is removed."""
    rng = np.random.default_rng(4)
    rows = [
        (t, f"s{s:02}") for s in range(14) for t in texts(16, 100 + s, nurse=rng.uniform(0.3, 0.9))
    ]
    corpus(store, "a", rows, tmp_path)
    stays = np.arange(len(rows)) % 16 < 8
    kept = [{"text": t} for (t, _), s in zip(rows, stays, strict=True) if s]
    done = audit(store, "a", [kept_shard(tmp_path / "kept.jsonl", kept)], "r")
    row, both = word(done, "nurse"), counts([t for t, _ in rows], "nurse")
    source = np.arange(len(rows)) // 16
    draws = []
    for _ in range(500):
        times = rng.multinomial(14, np.full(14, 1 / 14))[source]
        draws.append(delta(*both, times * stays) - delta(*both, times))
    assert row["clusters"] == "source" and row["df"] == 13
    assert 0.85 < np.std(draws) / row["change_nats_se"] < 1.15
    assert {(r["n_before"], r["n_after"]) for r in part(done, "source").values()} == {(16, 8)}


def test_what_all_words_share_is_no_change_of_a_word(store: Store, tmp_path: Path) -> None:
    """Documents of *he* alone are removed: every delta changes alike, and no word's own part."""
    plain, his = texts(200, 21), [f"he sat and he ate w{k}" for k in range(150)]
    corpus(store, "a", plain + his, tmp_path)
    kept = [{"text": t} for t in plain]
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", kept)], "r")
    rows = [r for r in done.rows if r["part"] == "word" and r["p"] is not None]
    assert len(rows) > 10
    for row in rows:
        assert row["change_nats"] == pytest.approx(row["base_change_nats"])
        assert row["q"] < 0.05 < row["q_own"]
    said = audit_section(Rows(done.rows), 5).intro[3]
    assert (
        f"Beyond that, of {len(rows):,} words 0 lean more to she than before, 0 more to he" in said
    )


def test_of_a_curation_at_random_few_words_are_told(store: Store, tmp_path: Path) -> None:
    a = texts(300, 5)
    corpus(store, "a", a, tmp_path)
    stays = np.random.default_rng(6).random(300) < 0.6
    kept = [{"text": t} for t, s in zip(a, stays, strict=True) if s]
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", kept)], "r", min_pairs=2)
    tested = [r for r in done.rows if r["part"] == "word" and r["p"] is not None]
    assert len(tested) > 30 and sum(r["q"] < 0.05 for r in tested) <= 1
    assert stats.kstest([r["p"] for r in tested], "uniform").pvalue > 1e-3


def outputs(rows: list[dict[str, Any]], where: Path) -> dict[str, str]:
    """Records as the tools write them, by tool."""
    trove = [
        {"text": r["text"], "id": r["id"], "metadata": {"file_path": "in.jsonl"}} for r in rows
    ]
    curator = pa.table({"text": [r["text"] for r in rows], "id": [r["id"] for r in rows]})
    pq.write_table(curator, where / "curator.parquet")
    dolma = [{**r, "source": "web", "added": "2026", "metadata": {}} for r in rows]
    return {
        "datatrove": kept_shard(where / "00000.jsonl.gz", trove),
        "dolma": kept_shard(where / "part-0.jsonl.gz", dolma),
        "curator": str(where / "curator.parquet"),
        "ids only": kept_shard(where / "ids.jsonl", [{"id": r["id"]} for r in rows]),
        "no ids": kept_shard(where / "texts.jsonl", [{"text": r["text"]} for r in rows]),
    }


@pytest.fixture
def with_ids(store: Store, tmp_path: Path) -> list[dict[str, Any]]:
    """The records of corpus a, with ids, some texts there twice."""
    made = texts(60, 7)
    rows = [{"id": f"doc/{k}", "text": t} for k, t in enumerate(made + made[:10])]
    path = tmp_path / "before.jsonl"
    kept_shard(path, rows)
    count_corpus(store, CountRequest("a", (path,)))
    return rows


@pytest.mark.parametrize("tool", ["datatrove", "dolma", "curator", "ids only", "no ids"])
def test_every_document_is_kept_removed_or_not_matched(
    store: Store, tmp_path: Path, with_ids: list[dict[str, Any]], tool: str
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "gone").mkdir()
    kept = outputs(with_ids[:50], tmp_path / "kept")[tool]
    gone = outputs(with_ids[55:], tmp_path / "gone")[tool]
    alone = audit(store, "a", [kept], "r", min_pairs=1).curation
    assert (int(alone.kept.sum()), alone.n_removed, alone.n_unmatched) == (50, 20, 0)
    both = audit(store, "a", [kept], "r", [gone], min_pairs=1).curation
    assert (int(both.kept.sum()), both.n_removed, both.n_unmatched) == (50, 15, 5)
    if tool != "no ids":  # else the first of two copies may stand for the other
        assert np.flatnonzero(alone.kept).tolist() == list(range(50))
    assert both.n_after == 50 and both.n_new == both.n_changed == 0


def test_changed_texts_are_found_by_ids_or_said(
    store: Store, tmp_path: Path, with_ids: list[dict[str, Any]]
) -> None:
    changed = [{**r, "text": r["text"].upper() if k < 4 else r["text"]} for k, r in
               enumerate(with_ids[:30])]  # fmt: skip
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", changed)], "r", min_pairs=1)
    assert (int(done.curation.kept.sum()), done.curation.n_changed) == (30, 4)
    nameless = [{"text": r["text"]} for r in changed]
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", nameless)], "r", min_pairs=1)
    found = done.curation
    assert (int(found.kept.sum()), found.n_new, found.n_unmatched) == (26, 4, 4)
    assert found.kept.sum() + found.n_removed + found.n_unmatched == len(with_ids)
    others = [{"text": t} for t in texts(30, 8)]
    with pytest.raises(UsageProblem, match="30 of 31 documents match none of a"):
        audit(store, "a", [kept_shard(tmp_path / "o.jsonl", [*others, with_ids[0]])], "r")
    for name, none in (("n.jsonl", others), ("e.jsonl", [])):
        with pytest.raises(UsageProblem, match="holds no document of a"):
            audit(store, "a", [kept_shard(tmp_path / name, none)], "r")
    (written,) = set(store.read("corpus_audit")["text_after"].to_pylist())
    assert written.endswith("k.jsonl")
    (tmp_path / "before.jsonl").write_text('{"text": "other"}\n')
    with pytest.raises(BadInput, match="has changed since it was counted"):
        audit(store, "a", [kept_shard(tmp_path / "k.jsonl", nameless)], "r")


def test_a_corpus_is_matched_by_its_words_and_dropped_when_counted_anew(
    store: Store, tmp_path: Path
) -> None:
    a = texts(80, 9)
    corpus(store, "a", a, tmp_path)
    corpus(store, "b", a[:50], tmp_path)
    as_corpus = audit(store, "a", ["b"], "r")
    as_shards = audit(store, "a", [str(tmp_path / "b-*.jsonl")], "r")
    assert as_corpus.curation.kept.tolist() == as_shards.curation.kept.tolist()
    same = ("part", "subject", "change_nats", "change_nats_se", "q")
    assert [[r[n] for n in same] for r in as_corpus.rows] == [
        [r[n] for n in same] for r in as_shards.rows
    ]
    corpus(store, "b", a[:40], tmp_path)
    assert {r["text_after"] for r in store.read("corpus_audit").to_pylist()} == {as_shards.after}
    with pytest.raises(UsageProblem, match="are the same"):
        audit(store, "a", ["a"], "r")


def test_words_turn_and_groups_disappear(store: Store, tmp_path: Path) -> None:
    his, hers = texts(400, 10, nurse=0.05), texts(90, 11, nurse=0.98)
    mum = [f"{t} {'the mother f' * 3}" for t in texts(40, 12)]
    rows = his + hers + mum
    corpus(store, "a", rows, tmp_path)
    kept = [{"text": t} for t in [*his[:30], *hers]]
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", kept)], "r")
    nurse = word(done, "nurse")
    assert nurse["delta_before_nats"] < 0 < nurse["delta_after_nats"]
    assert nurse["q_turn"] < 0.05 < word(done, "tea")["q_turn"]
    groups = part(done, "group")
    assert set(groups) == {"gendered: female", "gendered: male"}
    row = groups["gendered: female"]
    assert row["change_nats"] == pytest.approx(
        np.log(row["n_after"] / row["n_before"])
        - np.log(np.divide(*[part(done, "documents")["kept words"][n] for n in
                             ("n_after", "n_before")]))
    )  # fmt: skip
    assert row["change_nats_low"] < row["change_nats"] < row["change_nats_high"]


def study_of(store: Store, words: Sequence[str], slope: float, scatter: float) -> None:
    """A study whose models prefer by a slope of each word's delta, less so by the dose."""
    rng = np.random.default_rng(13)
    rows = store.read("word_delta", corpus="a").to_pylist()
    of_word = {r["word"]: r["delta_nats"] for r in rows if r["contrast"] == "she/he"}
    fill(store, "benchmark_pair", [pair("b", w, word=w) for w in words])
    arms = []
    for dose in (0.0, 1.0):
        for seed in range(4):
            model = f"m-{dose:g}-{seed}"
            own = slope * (1 + 0.02 * seed) * (1 - 2 * dose)
            noise = rng.normal(0, scatter / np.sqrt(2), len(words))
            ratio = {w: own * of_word[w] + e for w, e in zip(words, noise, strict=True)}
            fill(store, "trained_model", [trained(model, "a")], model)
            fill(store, "model", [scored_by(model)], model)
            fill(store, "pair_score", [score("b", w, r, model) for w, r in ratio.items()])
            arm = {"study": "s", "kind": "gender", "dose": dose, "seed": seed, "near": ""}
            arm |= {"window_start": 0.0, "window_end": 1.0, "exchanged": "", "model": model}
            counted = dict.fromkeys(("n_documents", "n_changed", "n_changes", "n_undecided"), 1)
            arms.append({**arm, **counted, "run_id": "r"})
    fill(store, "intervention_arm", arms)


def test_preferences_are_predicted_by_the_fitted_response(store: Store, tmp_path: Path) -> None:
    from plumbline.jobs.association.associations import associate

    plain, leaning = texts(300, 14), texts(80, 15, nurse=1.0)
    corpus(store, "a", plain + leaning * 5, tmp_path)
    associate(store, "a")
    kept = [kept_shard(tmp_path / "k.jsonl", [{"text": t} for t in plain + leaning])]
    without = audit(store, "a", kept, "r", min_pairs=2)
    assert not without.response and "no study of a response on a" in without.basis
    assert word(without, "nurse")["predicted_nats"] is None
    words = [r["subject"] for r in without.rows if r["part"] == "word"][:40]
    study_of(store, words, 0.5, 0.05)
    untrusted = audit(store, "a", kept, "r", min_pairs=2)
    assert not untrusted.response  # by the study that comes with Plumbline
    assert "not shown to be better than chance and baselines on planted" in untrusted.basis
    assert word(untrusted, "nurse")["predicted_nats"] is None
    studied(store, OWN, is_trusted=False)
    failed = audit(store, "a", kept, "r", min_pairs=2)
    assert not failed.response and "not shown to be better than chance" in failed.basis
    assert word(failed, "nurse")["predicted_nats"] is None
    studied(store, OWN)
    done = audit(store, "a", kept, "r", min_pairs=2)
    by = done.response
    assert done.basis == f"counts is validated: LDS 0.40 (0.30 to 0.50) on novels ({OWN})"
    assert by and by.name == "s:b" and by.n_seeds == 4
    assert by.slope == pytest.approx(0.515, abs=0.02)
    assert by.scatter == pytest.approx(0.05, rel=0.25)
    row = word(done, "nurse")
    assert row["predicted_nats"] == pytest.approx(by.slope * row["change_nats"])
    variance = (by.slope * row["change_nats_se"]) ** 2 + (row["change_nats"] * by.slope_se) ** 2
    variance += (row["change_nats_se"] * by.slope_se) ** 2 + by.scatter**2
    half = row["predicted_nats_high"] - row["predicted_nats"]
    assert 1.96 <= half / np.sqrt(variance) < 2.2
    again = fitted_response(store, "a", "she/he", "s:b")[0]
    assert again is not None and astuple(again) == pytest.approx(astuple(by))
    assert fitted_response(store, "a", "she/he", "other")[1].startswith("no study other on a")


def test_a_response_that_is_none_predicts_nothing(store: Store, tmp_path: Path) -> None:
    from plumbline.jobs.association.associations import associate

    corpus(store, "a", texts(100, 16), tmp_path)
    associate(store, "a")
    study_of(store, ["nurse", "tea", "war", "king", "ship"], 0.0, 0.1)
    found, lack = fitted_response(store, "a", "she/he")
    assert found is None and lack.startswith("the response of s:b can't be told from 0")


def test_the_command(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus(store, "a", texts(100, 17) + texts(30, 18, nurse=1.0) * 4, tmp_path)
    write_subset(store, "a", SubsetRule("once"), tmp_path / "once")
    line = ["corpus", "audit", "a", *map(str, (tmp_path / "once").glob("*.jsonl.zst"))]
    line += ["--warehouse", str(store.root)]
    assert main([*line, "--dry-run"]) == 0
    assert "to match" in capsys.readouterr().out
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert "Of 220 documents 130 were kept" in shown and "90 removed, 0 not matched" in shown
    assert "What it would do to a model isn't predicted: no study of a response" in shown
    assert len(shown.splitlines()) <= 60
    assert main(["report", "--out", str(tmp_path / "page"), "--warehouse", str(store.root)]) == 0
    page = (tmp_path / "page/appendix.html").read_text(encoding="utf-8")
    assert "What is left of a in" in page


def test_an_audit_without_own_parts_is_reported(store: Store, tmp_path: Path) -> None:
    """As an older Plumbline wrote it: without the change that all words share, and `q_own`."""
    a = texts(80, 20)
    corpus(store, "a", a, tmp_path)
    kept = [{"text": t} for t in a[:50]]
    done = audit(store, "a", [kept_shard(tmp_path / "k.jsonl", kept)], "r", min_pairs=2)
    older = [{**row, "base_change_nats": None, "q_own": None} for row in done.rows]
    section = audit_section(Rows(older), 5)
    n = sum(r["part"] == "word" and r["change_nats"] is not None for r in older)
    assert section.intro[3].endswith(
        f"nats of every change. Which of {n} words change beyond that isn't known of an audit by "
        "an older version: run `plumbline corpus audit` again; 0 turn, leaning clearly to one side "
        "before and to the other after."
    )
    assert len(section.tables[0].rows) == 5


def test_the_study_imports_its_words_and_wants_the_text_that_it_trains_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = audit_study.Study(tmp_path, None)
    rows = study.store.read("benchmark_pair", benchmark=study.import_words())
    benchmark = read_design().benchmark
    assert rows.num_rows == len(benchmark.words) * len(benchmark.templates)
    with pytest.raises(SystemExit):
        audit_study.main(["--out", str(tmp_path), "--train-real"])
    assert "--train-real needs --data" in capsys.readouterr().err


@pytest.mark.reference
@pytest.mark.slow
def test_exact_deduplication_of_the_real_text(store: Store, data: Path, tmp_path: Path) -> None:
    """Copies of real documents that are planted and removed leave the leans of the text as it was,
    and the audit's leans before and after are those of `word_delta`'s counts."""
    shard = data / "corpora/nltk/00.jsonl.zst"
    real = list(dict.fromkeys(documents(shard)))
    drawn = np.random.default_rng(19).choice(len(real), 100, replace=False)
    planted = [{"text": real[k]} for k in drawn for _ in range(5)]
    paths = [tmp_path / "real.jsonl", tmp_path / "planted.jsonl"]
    for path, rows in zip(paths, ([{"text": t} for t in real], planted), strict=True):
        kept_shard(path, rows)
    count_corpus(store, CountRequest("copied", tuple(paths)))
    count_corpus(store, CountRequest("real", (paths[0],)))
    write_subset(store, "copied", SubsetRule("once"), tmp_path / "once")
    done = audit(store, "copied", [str(tmp_path / "once/*.jsonl.zst")], "r")
    same = audit(store, "copied", ["real"], "r")
    assert done.curation.n_removed >= 500 and not done.curation.n_unmatched
    leans = [r["delta_after_nats"] for r in done.rows if r["delta_after_nats"] is not None]
    assert len(leans) > 1000
    assert leans == [r["delta_after_nats"] for r in same.rows if r["delta_after_nats"] is not None]
    told = [r for r in done.rows if r["part"] == "word" and r["q"] is not None and r["q"] < 0.05]
    assert len(told) <= len(leans) / 100  # documents drawn at random
