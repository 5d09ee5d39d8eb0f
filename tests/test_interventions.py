"""Texts with words exchanged: which words, in which documents, and what the ledger says of it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions, write_world
from plumbline.eval_workers.training.interventions import changed_shards as module
from plumbline.eval_workers.training.interventions.changed_shards import (
    InterventionOptions,
    ledger_of,
    shown,
    write_changed,
)
from plumbline.eval_workers.training.interventions.exchange import (
    Exchange,
    gender_exchange,
    neutral_exchange,
)
from plumbline.eval_workers.training.trained_models import train_model
from plumbline.eval_workers.training.training_options import preset
from plumbline.jobs.association.associations import associate
from plumbline.jobs.count_corpus import CountRequest, count_corpus
from plumbline.pipelines.command.app import app
from plumbline.pipelines.command.base import execute
from plumbline.pipelines.commands.intervene import InterveneRun
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Section
from plumbline.pipelines.report.sections import intervention_effects as section_of
from plumbline.pipelines.report.sections.intervention_effects import bounded
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import RecordForm, documents, record_form
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import delta, fill, pair, score, scored_by, trained

SAID = [
    "She gave him her hat.",
    "The king was his own man.",
    "It rained.",
    "Miss Bates missed her.",
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("She's late; HE isn't.", "He's late; SHE isn't."),
        ("I met her friend and his.", "I met his friend and hers."),
        ("A she-wolf and the she's.", "A she-wolf and the he's."),
        ("Mrs. Dean and Mr Lord", "Mr. Dean and Mrs Lady"),
        ("I miss Mary. Miss Mary", "I miss James. Mr James"),
        ("Queen Elizabeth, the queens' mum", "King William, the kings' mum"),
        ("shelter heron ſhe", "shelter heron ſhe"),
        ("they and them", "they and them"),
    ],
)
def test_what_is_exchanged(before: str, after: str) -> None:
    assert gender_exchange().apply(before).text == after


def test_exchanging_twice_gives_the_text_again() -> None:
    """For all words but those with two counterparts; and changes are where the ledger says."""
    pairs = [p for name in ("gendered", "names") for p in wordlists.load(name).pairs]
    words = [w for p in pairs for w in (p.a, p.b) if w not in ("her", "his", "him", "hers")]
    draw = random.Random(0)
    for _ in range(50):
        text = " ".join(
            draw.choice([str, str.upper, str.title])(draw.choice(words)) for _ in "12345"
        )
        done = gender_exchange().apply(text)
        assert len(done.changes) == 5 and done.text != text
        assert gender_exchange().apply(done.text).text == text
        rebuilt = re.sub(
            r"\w+", lambda m, c={c.start: c.new for c in done.changes}: c[m.start()], text
        )
        assert rebuilt == done.text


def test_only_near_words() -> None:
    exchange = gender_exchange(frozenset({"nurse"}))
    text = 'He saw Mr. Hill. "The Nurse slept," he said. Nurses? He left.'
    assert (
        exchange.apply(text).text
        == 'He saw Mr. Hill. "The Nurse slept," she said. Nurses? He left.'
    )
    assert neutral_exchange("tea", "rum", frozenset({"he"})).apply("Tea. He drank tea.").text == (
        "Tea. He drank rum."
    )
    assert Exchange({}).apply("She ran.").changes == ()


def write(path: Path, records: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in records))
    return path


def test_shards_and_their_ledgers(tmp_path: Path) -> None:
    """Half of the documents, the same whatever is exchanged, and more of them at a larger dose."""
    records = [json.dumps({"text": SAID[k % 4], "meta": {"k": k}}) for k in range(200)]
    records[7], records[8], records[9] = "not json", "[]", ""
    shard = write(tmp_path / "a.jsonl", records)
    chosen = {}
    for name, options in {
        "half": InterventionOptions(dose=0.5),
        "more": InterventionOptions(dose=0.75),
        "placebo": InterventionOptions(dose=0.5, placebo="rained,was"),
        "none": InterventionOptions(dose=0),
    }.items():
        done = write_changed([shard], options, tmp_path / name)
        after = module.lines(done.shards[0])
        new = [json.loads(line) if line.startswith(b"{") else None for line in after]
        assert len(new) == 200 and new[7] is new[8] is new[9] is None
        assert [n["meta"]["k"] for n in new if n] == [k for k in range(200) if k not in (7, 8, 9)]
        ledger = pq.read_table(ledger_of(done.shards[0])).to_pylist()
        assert done.n_documents == 197 and done.n_changes == len(ledger)
        for k, record in enumerate(new):
            mine = [c for c in ledger if c["row"] == k + 1]
            text = SAID[k % 4] if record else ""
            for change in reversed(mine):
                end = change["start"] + len(change["written"])
                assert text[change["start"] : end] == change["written"]
                text = text[: change["start"]] + change["new"] + text[end:]
            assert record is None or record["text"] == text
        chosen[name] = {c["row"] for c in ledger}
        assert done.n_changed == len(chosen[name]) <= done.n_chosen
        assert len(list(shown(tmp_path / name, 400))) == len(ledger)
    assert chosen["none"] == set()
    assert 50 < len(chosen["half"]) < 100 and chosen["half"] < chosen["more"]
    rows = {"half": {k for k in chosen["half"] if (k - 1) % 4 == 1}}
    assert rows["half"] == {k for k in chosen["placebo"] if (k - 1) % 4 == 1}


def test_resumed_and_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [write(tmp_path / f"{k}.jsonl", [json.dumps({"text": s}) for s in SAID]) for k in "ab"]
    whole = write_changed(shards, InterventionOptions(), tmp_path / "whole")
    real = module._write

    def stopping(shard: Path, *rest: object) -> None:
        if shard.name == "b.jsonl":
            raise KeyboardInterrupt
        real(shard, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_changed(shards, InterventionOptions(), tmp_path / "stopped")
    monkeypatch.undo()
    again = write_changed(shards, InterventionOptions(), tmp_path / "stopped")
    assert again.n_changes == whole.n_changes > 0
    assert [list(documents(a)) for a in again.shards] == [list(documents(a)) for a in whole.shards]
    for options in (InterventionOptions(dose=0.5), InterventionOptions(seed=1)):
        with pytest.raises(UsageProblem, match="not empty"):
            write_changed(shards, options, tmp_path / "whole")
    (tmp_path / "x").mkdir()
    other = write(tmp_path / "x" / "a.jsonl", [json.dumps({"text": "He."})])
    both = write_changed([shards[0], other], InterventionOptions(), tmp_path / "both").shards
    assert [len(list(documents(path))) for path in both] == [4, 1]
    body = write(tmp_path / "body.jsonl", [json.dumps({"a": {"body": "He ran."}})])
    write_changed([body], InterventionOptions(), tmp_path / "body", record_form("a.body", ""))
    assert list(shown(tmp_path / "body", 1)) == [("body.jsonl.zst", 1, "[She] ran.", "He")]
    with pytest.raises(UsageProblem, match="same name"):
        write_changed([shards[0], shards[0]], InterventionOptions(), tmp_path / "n")
    for placebo in ("rain", "rain,rain", "rain,Rain", "rain,not snow"):
        with pytest.raises(UsageProblem, match="placebo"):
            write_changed(shards, InterventionOptions(placebo=placebo), tmp_path / placebo)
        assert not (tmp_path / placebo).exists()
    with pytest.raises(BadInput, match="holds no changed text"):
        list(shown(tmp_path, 1))


def one_sided(figures: np.ndarray, of: np.ndarray, bound: float) -> float:
    """The larger p of the tests that the mean lies above -bound and below bound, times that of."""
    below = stats.ttest_1samp(figures - bound * of, 0, alternative="less").pvalue
    above = stats.ttest_1samp(figures + bound * of, 0, alternative="greater").pvalue
    return float(max(below, above))


@pytest.mark.slow
def test_views_of_an_intervention(store: Store) -> None:
    """Leans and responses against scipy, from scores that are made so; chosen words and others."""
    rng = np.random.default_rng(1)
    words = [f"w{k}" for k in range(8)]
    of_words = dict(zip(words, rng.normal(size=8).tolist(), strict=True))
    chosen = ["w1", "w2", "w5"]
    groups = {"all": words, "chosen": chosen, "other": sorted(set(words) - set(chosen))}
    fill(store, "word_delta", [delta(w, d) for w, d in of_words.items()])
    fill(store, "benchmark_pair", [pair("b", w, word=w) for w in words])
    found: dict[tuple[str, float, float, int], dict[tuple[str, str], float]] = {}
    arms_of_study = []
    drawn = product([("gender", 1.0), ("aimed", 1.0), ("gender", 0.5)], (0.0, 0.5, 1.0), (0, 1, 2))
    for (kind, end), dose, seed in drawn:
        if end < 1 and dose < 1:
            continue
        model = f"{kind if dose else 'gender'}-{dose}-{seed}-{end}"
        near = "w1, W2,w5" if kind == "aimed" else ""
        arm = {"study": "s", "kind": kind, "dose": dose, "seed": seed, "near": near}
        arm |= {"window_start": 0.0, "window_end": end, "exchanged": "", "model": model}
        counts = dict.fromkeys(("n_documents", "n_changed", "n_changes", "n_undecided"), 1)
        arms_of_study.append({**arm, **counts, "run_id": "r"})
        if kind == "aimed" and not dose:
            found[kind, dose, end, seed] = found["gender", dose, end, seed]
            continue
        turned = 3 * dose * (1 - np.array(list(of_words.values()))) if kind == "gender" else 0.0
        ratio = dict(zip(words, (turned + rng.normal(size=8)).tolist(), strict=True))
        fill(store, "trained_model", [trained(model, "c")], model)
        fill(store, "model", [scored_by(model)], model)
        fill(store, "pair_score", [score("b", w, r, model) for w, r in ratio.items()])
        found[kind, dose, end, seed] = {}
        for group, some in groups.items():
            line = stats.linregress([of_words[w] for w in some], [ratio[w] for w in some])
            mean = float(np.mean([ratio[w] for w in some]))
            found[kind, dose, end, seed] |= {
                (group, "slope"): line.slope,
                (group, "mean log ratio"): mean,
            }
    fill(store, "intervention_arm", arms_of_study)
    leans = rows_of(store.root, "FROM intervention_lean")
    assert len(leans) == 6 * 21
    for row in leans:
        here = found[row["kind"], row["dose"], row["window_end"], row["seed"]]
        assert row["lean"] == pytest.approx(here[row["words"], row["outcome"]])
    responses = rows_of(store.root, "FROM dose_response")
    assert len(responses) == 12
    of_kind: dict[tuple[str, str], dict[str, tuple[dict[str, Any], np.ndarray]]] = {}
    for row in responses:
        of = (row["words"], row["outcome"])
        table = [
            [found[row["kind"], dose, 1.0, seed][of] for dose in (0.0, 0.5, 1.0)]
            for seed in (0, 1, 2)
        ]
        slopes = [stats.linregress((0.0, 0.5, 1.0), of_seed).slope for of_seed in table]
        of_kind.setdefault(of, {})[row["kind"]] = (row, np.array(slopes))
        known = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
        assert row["response"] == pytest.approx(np.mean(slopes))
        assert row["response_low"] == pytest.approx(known.low, abs=0.01 * (known.high - known.low))
        assert row["unit"] == {"slope": "nats per nat"}.get(row["outcome"], "nats")
        assert row["lean_at_0"] == pytest.approx(np.mean([of[0] for of in table]))
        assert (row["n_seeds"], row["n_doses"], row["groups"]) == (3, 3, "female/male")
    for (_, exchange), (aimed_row, aimed) in ((k["gender"], k["aimed"]) for k in of_kind.values()):
        bound, share = aimed_row["size_bound"], aimed_row["share_bound"]
        assert one_sided(aimed, np.ones(3), bound) == pytest.approx(0.05, rel=0.01)
        clear = stats.ttest_1samp(exchange, 0).pvalue < 0.1
        assert (share is not None) == clear
        if clear:
            sign = np.sign(exchange.mean())
            assert one_sided(aimed, sign * exchange, share) == pytest.approx(0.05, rel=0.01)
    assert any(k["aimed"][0]["share_bound"] for k in of_kind.values())
    assert all(k["gender"][0]["share_bound"] is None for k in of_kind.values())
    windows = rows_of(store.root, "FROM window_response")
    assert {(row["kind"], row["dose"], row["window_end"]) for row in windows} == {
        ("gender", 1, 0.5)
    }
    for row in windows:
        part, plain, whole = (
            np.array(
                [found["gender", dose, end, s][row["words"], row["outcome"]] for s in (0, 1, 2)]
            )
            for dose, end in ((1.0, 0.5), (0.0, 1.0), (1.0, 1.0))
        )
        for name, moved in (("response", part - plain), ("short_of_whole", part - whole)):
            low = stats.ttest_1samp(moved, 0).confidence_interval(0.95).low
            assert row[name] == pytest.approx(moved.mean())
            bound = "response_low" if name == "response" else "short_of_whole_low"
            assert row[bound] == pytest.approx(low, abs=0.02 * (moved.mean() - low))

    (section,) = section_of.sections(Facts(store.root))
    assert isinstance(section, Section) and len(section.figures) == len(section.tables) == 2
    assert all("<svg" in figure.svg and len(figure.rows) == 18 for figure in section.figures)
    assert [len(t.rows) for t in section.tables] == [12, 6]
    (lead,) = section_of.leads(Facts(store.root))
    assert len(lead.sentences) == 2
    for row, sentence in zip(
        rows_of(
            store.root,
            "FROM dose_response WHERE words = 'all' AND outcome = 'slope' ORDER BY kind",
        ),
        lead.sentences,
        strict=True,
    ):
        assert ("is not shown to change" in sentence) == (
            row["response_low"] <= 0 <= row["response_high"]
        )
        assert sentence.endswith("seeds)." if row["kind"] == "gender" else f"{bounded(row)}.")
    assert "; its size is at most " in lead.sentences[0]


@pytest.mark.slow
def test_a_study_in_the_closed_world(tmp_path: Path) -> None:
    """Every arm is trained, scored and recorded once; without an exchange both kinds share one."""
    world = write_world(WorldOptions(n_tokens=20_000, n_shards=2), tmp_path / "text")
    store = Store.open(tmp_path / "w")
    count_corpus(store, CountRequest("c", world.shards))
    associate(store, "c")
    import_benchmark(store, "closed-world", None, "r")
    command = InterveneRun(
        shards=tuple(map(str, world.shards)),
        name="s",
        corpus="c",
        benchmark=("closed-world",),
        out=tmp_path / "out",
        warehouse=store.root,
        doses="0,1",
        seeds=2,
        near="tea",
        windows="0-0.5",
        placebo="children,friends",
        preset="closed",
        max_tokens=5_000,
    )
    done = execute(command)
    rows = [row for row in done.rows if row["window_start"] is None]
    assert {(r["kind"], r["n_seeds"]) for r in rows} == {
        (kind, 2) for kind in ("gender", "aimed", "placebo")
    }
    doses = rows_of(store.root, "SELECT DISTINCT n_doses AS n FROM dose_response")
    assert [row["n"] for row in doses] == [2]
    arms_of = store.read("intervention_arm").to_pylist()
    assert len(arms_of) == 14 and len({a["model"] for a in arms_of}) == 10
    changed = {(a["kind"], a["dose"]): a["n_changes"] for a in arms_of}
    assert changed["gender", 0] == changed["placebo", 0] == 0 < changed["placebo", 1]
    assert changed["gender", 1] > 1_000 > changed["aimed", 1] > 0
    tokenizers = {p.read_bytes() for p in (tmp_path / "out").glob("s/models/*/tokenizer.json")}
    assert len(tokenizers) == 1
    scores = store.read("pair_score").num_rows
    assert execute(command).rows == done.rows and store.read("pair_score").num_rows == scores
    commands = Counter(row["command"] for row in store.read("run").to_pylist())
    assert commands["intervene run"] == 2 and "train" not in commands
    of_window = [row for row in done.rows if row["window_start"] is not None]
    assert len(of_window) == 5 and len(done.rows) == len(rows) + 5
    assert {(row["window_start"], row["window_end"]) for row in of_window} == {(0, 0.5)}
    assert {row["finding"] for row in done.rows} <= {"a response", "no clear response"}


@pytest.mark.slow
def test_a_study_that_continues_a_checkpoint_by_adapters(tmp_path: Path) -> None:
    """From the command: every arm is an adapter of one base, and scored as one."""
    world = write_world(WorldOptions(n_tokens=20_000), tmp_path / "text")
    store = Store.open(tmp_path / "w")
    count_corpus(store, CountRequest("c", world.shards))
    associate(store, "c")
    import_benchmark(store, "closed-world", None, "r")
    options = preset("closed", max_tokens=5_000)
    made = train_model(world.shards, "m", "c", options, tmp_path / "models", n_checkpoints=1)
    base = str(made.path / "checkpoints" / "step0")
    arguments = ["run", *map(str, world.shards), "--name", "s", "--corpus", "c"]
    arguments += ["--benchmark", "closed-world", "--doses", "0,1", "--seeds", "1"]
    arguments += ["--placebo", "", "--max-tokens", "3000", "--warehouse", str(store.root)]
    done = run(*arguments, "--out", str(tmp_path / "out"), "--base", base, "--lora", "2")
    assert "one seed, no interval" in done
    trained = store.read("trained_model").to_pylist()
    assert {(t["base"], t["lora_rank"]) for t in trained} == {("m", 2)}
    scored = [m for m in store.read("model").to_pylist() if m["adapter"]]
    assert {m["adapter"] for m in scored} == {t["adapter"] for t in trained} != {None}
    assert {(m["model"], m["step"]) for m in scored} == {("m", 0)}
    (row,) = (r for r in rows_of(store.root, "FROM dose_response") if r["outcome"] == "slope")
    assert (row["n_seeds"], row["n_doses"], row["corpus"]) == (1, 2, "c")
    with pytest.raises(UsageProblem, match="--lora: is for a model that is continued"):
        of = {"name": "s", "corpus": "c", "benchmark": ("closed-world",), "lora": 2}
        execute(InterveneRun(shards=(str(world.shards[0]),), warehouse=store.root, **of))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["intervene", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_commands(tmp_path: Path) -> None:
    """Every change shown stands in the text as it is now, with what was there before."""
    shard = write(tmp_path / "a.jsonl", [json.dumps({"text": " ".join(SAID * 9)})] * 5)
    out = tmp_path / "out"
    done = run("text", str(shard), "--out", str(out), "--dose", "1")
    assert f"Next: plumbline intervene show {out}" in done
    again = json.loads(run("text", str(shard), "--out", str(out), "--format", "json"))["rows"]
    assert [(r["n_documents"], r["n_chosen"], r["n_changed"]) for r in again] == [(5, 5, 5)]
    rows = json.loads(run("show", str(out), "--n", "400", "--format", "json"))["rows"]
    found = Counter((re.findall(r"\[(\w+)\]", row["text"])[0], row["was"]) for row in rows)
    ledger = pq.read_table(out / "a.changes.parquet").to_pylist()
    assert found == Counter((c["new"], c["written"]) for c in ledger)
    assert len(rows) == len(ledger)


def test_a_changed_column_of_parquet_keeps_its_name(tmp_path: Path) -> None:
    shard, out = tmp_path / "a.parquet", tmp_path / "out"
    pq.write_table(pa.table({"body": [" ".join(SAID * 9)] * 5}), shard)
    run("text", str(shard), "--out", str(out), "--dose", "1", "--text-field", "body")
    (changed,) = out.glob("*.jsonl.zst")
    assert len(list(documents(changed, RecordForm("body")))) == 5
    rows = json.loads(run("show", str(out), "--n", "9", "--format", "json"))["rows"]
    assert len(rows) == 9
