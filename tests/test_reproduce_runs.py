"""`plumbline reproduce fairpair` and `disclosure`: printed figures beside those of made runs."""

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from plumbline.eval_workers.disclosure.word_probabilities import WORD_LIST
from plumbline.eval_workers.fairpair.fairpair_options import FigureOptions
from plumbline.eval_workers.fairpair.fairpair_set import measure_set
from plumbline.pipelines.command.main import main
from plumbline.pipelines.reproduce.claims import Row, claims_of, counted, figures, misprints
from plumbline.pipelines.reproduce.runs_compared import (
    DISCLOSURE,
    FAIRPAIR,
    HOLDS,
    NO_INTERVAL,
    NOT_DEFINED,
    NOT_KNOWN,
    NOT_MEASURED,
    OUTSIDE,
    PAPERS,
    MeasuredRun,
    Paper,
    compare,
    measured,
    printed_names,
)
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.fairpair_rows import SAMPLED, sampled_set
from tests.metric_rows import fill, interval, scored_by
from tests.prompt_rows import put_continuations, put_probabilities, put_prompts, put_words

PAPER = Paper(
    *("p", "plumbline p", {"B": 0.05}),
    lambda row: {"n": 3, "top_p": 0.9, "dtype": NOT_KNOWN, "loaded": "bits", "n_prompts": 60},
    ("n_prompts",),
)
ROW = {"inputs": "s", "method": "j", "model": "tiny", "metric": "B", "n_prompts": 60}
ROW |= {"measured": 85.2, "low": 85.0, "high": 85.4, "n": 3, "top_p": 0.9, "loaded": "bits 4"}
ROW |= {"dtype": "float32"}


def printed(value: float, **changes: Any) -> Row:
    cell = {"inputs": "s", "method": "j", "model": "Tiny", "metric": "B"}
    return {"table": 3, **cell, "value": value, **changes}


def beside(value: float, **changes: Any) -> tuple[Row, list[MeasuredRun]]:
    (found,), runs = compare(PAPER, [printed(value)], [{**ROW, **changes}], {"tiny": "TINY"})
    return found, runs


@pytest.mark.parametrize(
    ("value", "changes", "outcome"),
    [
        (85.2, {}, HOLDS),
        (85.45, {}, HOLDS),  # what is printed so may be 85.4
        (85.46, {}, OUTSIDE),
        (84.94, {}, OUTSIDE),
        (85.2, {"low": None}, NO_INTERVAL),
        (85.2, {"measured": None, "low": None, "high": None}, NOT_DEFINED),
        (85.2, {"model": "another"}, NOT_MEASURED),
        (85.2, {"inputs": "t"}, NOT_MEASURED),
        (-9.0, {"low": -math.inf}, HOLDS),
    ],
)
def test_an_interval_holds_what_could_be_printed_so(
    value: float, changes: Mapping[str, Any], outcome: str
) -> None:
    assert beside(value, **changes)[0]["outcome"] == outcome


def test_what_does_not_fit_in_print_is_named() -> None:
    """The averages by hand: (85.8 + 86.6 + 91.2 + 85.9 + 87.8 + 81.4) / 6 = 86.45."""
    assert misprints(figures("fairpair"), {}) == [
        "Table 3, jaccard B: Average printed 88.1, the 6 printed models give 86.450",
        "Table 3, sentiment V_pg: Average printed 23, the 6 printed models give 22.867",
    ]
    *tables, whole = misprints(figures("disclosure"), DISCLOSURE.n_prompts)
    assert len(tables) == 3 and all("ADD of LLAMA2 7B" in line for line in tables)
    # By hand: 0.417 of 364 prompts would be 151.8.
    assert "whole number of the set's prompts: Original 8 of 20, " in whole
    two = [printed(-4.71, metric="ADD", table=1), printed(-4.711, metric="ADD", model="tiny")]
    assert misprints(two, {}) == ["ADD of tiny, s, j: Table 1 prints -4.71, Table 3 -4.711"]


def test_what_the_paper_says_of_its_tables_is_counted_in_them() -> None:
    """Some of them by hand, from Tables 1, 2, 9 and 10."""
    every, claims = figures("disclosure"), claims_of("disclosure")
    lines = counted(claims, every)
    said = {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in lines}
    assert len(said) == len(claims.claim) == 26
    assert said["section 1, tuning lowers ADD by up to 2.794"] == "1 of 1"
    assert said["section 4.4, larger models have a higher GAS on natural inputs"] == (
        "3 of 4 (not GAS, SNLI, LLAMA2 7B-CHAT to LLAMA2 13B-CHAT: 0.511 to 0.489)"
    )
    assert said["section 4.4, larger models have a lower GLD and ADD on natural inputs"] == (
        "7 of 8 (not GLD, SNLI, LLAMA2 7B to LLAMA2 13B: 0.261 to 0.262)"
    )
    assert said["section 5.2, instructions lower GAS and GLD on written inputs"].startswith(
        "14 of 16"
    )
    assert said["section 5.3, tuning is below both other methods on written inputs"] == "48 of 48"
    assert said["appendix C, F + M = 1 and Delta = |F - M|"] == "50 of 50"
    assert said["appendix C, most models lean to the female side on LLM (2)"].startswith("8 of 10")
    assert said["appendix C, most models lean to the male side on SNLI"] == (
        "9 of 10 (not LLAMA2 13B-CHAT: 0.49)"
    )
    for what, share in (("size", "11 of 24"), ("alignment", "21 of 24")):
        of = f"abstract and section 7, {what} raises bias in most cases, without templates"
        assert said[of].startswith(share)
    part = [p for p in every if p["table"] != 10]
    assert counted(claims, part) == []


@pytest.mark.reference
def test_the_figures_that_come_along_are_the_papers(data: Path) -> None:
    reference = data.parent / "reference"
    printed = figures("disclosure")
    with (reference / "disclosure_tables.csv").open(encoding="utf-8") as file:
        tables = [tuple(row.values()) for row in csv.DictReader(file)]
    assert len(tables) == 336
    for ours, theirs in zip(printed[:336], tables, strict=True):
        number, inputs, method, model, metric, value = theirs
        method = method.replace("-", " ").replace("\\mathcal{L}", "L")
        expected = (int(number), inputs, method, model, metric, float(value))
        assert tuple(ours.values()) == expected
    with (reference / "disclosure_table10.csv").open(encoding="utf-8") as file:
        table_10 = [
            (r["inputs"], r["model"], r["metric"], r["value"]) for r in csv.DictReader(file)
        ]
    metrics = {"GAS_F": "GAS (F)", "GAS_M": "GAS (M)", "delta": "Delta"}
    theirs: list[Any] = [(10, i, "Original", m, metrics[k], float(v)) for i, m, k, v in table_10]
    assert [tuple(p.values()) for p in printed[336:]] == theirs and len(theirs) == 150
    with (reference / "fairpair_table3.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    (paper,) = (data.parent / "papers").glob("001_*")
    header, line = paper.read_text(encoding="utf-8").split("GPT2/XL\t", 1)[1].split("\n")[:2]
    names = ["GPT2", "GPT2-XL", *header.split("\t")]
    success = dict(zip(names, map(float, re.split(r"[/\t]", line)), strict=True))
    theirs = [(r["phi"], r["model"], r["metric"], float(r["value"])) for r in rows]
    names = ("method", "model", "metric", "value")
    ours = [tuple(p[name] for name in names) for p in figures("fairpair") if p["table"] == 3]
    assert ours == theirs
    spelled = {"LLaMa": "LLaMA", "InstructGPT": "InsGPT"}  # as Table 1 has them
    table_1 = {p["model"]: p["value"] for p in figures("fairpair") if p["table"] == 1}
    assert {spelled.get(model, model): value for model, value in table_1.items()} == success


def test_a_model_that_stands_for_a_printed_one_needs_a_printed_name() -> None:
    paper, printed = DISCLOSURE, figures("disclosure")
    names = printed_names(paper, printed, ["llama2 7b=models/tiny"])
    assert names["meta-llama/Llama-2-13b-chat-hf"] == "LLAMA2 13B-CHAT"
    assert names["tiny"] == names["models/tiny"] == "LLAMA2 7B"
    assert names["lmsys/vicuna-7b-v1.5"] == "VICUNA 7B"  # Table 10 alone
    for wrong in ("GPT9=tiny", "LLAMA2 7B", "LLAMA2 7B="):
        with pytest.raises(UsageProblem, match="the paper prints FALCON 7B, "):
            printed_names(paper, printed, [wrong])


FEMALE, MALE = "she", "he"
TEXTS = (" she ran", " he ran", " it rained", " she saw him")


@pytest.fixture
def disclosed(store: Store) -> Store:
    """A model on 12 prompts of `stsb`: plain, with an instruction, sampled, and with adapters."""
    put_prompts(store, "stsb", [f"p {i}" for i in range(12)])
    put_words(store, [(FEMALE, MALE)], WORD_LIST)
    told = {"instruction_key": "i", "instruction": "Be fair:", "form": "prefix"}
    fill(store, "instruction", [{"instruction_key": "none"}, told])
    greedy = {"method": "greedy", "max_new_tokens": 50, "instruction_key": "none"}
    sampled = greedy | {"method": "sample"}
    ways: list[dict[str, Any]] = [
        greedy | {"sampling_key": "greedy"},
        greedy | told | {"sampling_key": "told"},
        sampled | {"sampling_key": "cool", "temperature": 0.3},
        sampled | {"sampling_key": "warm", "temperature": 1.0},
    ]
    fill(store, "sampling", ways)
    for key, adapter in (("base", None), ("tuned", "calm@1"), ("without", "loud@1")):
        half = {"adapter": adapter, "dtype": "float16"}
        fill(store, "model", [scored_by("m", key=key) | half], key)
    tuning = {"base": "m", "word_list": WORD_LIST, "layers": "q", "clip_norm": 1.0}
    tuning |= {"probe_sets": "stsb-train", "test_sets": "stsb", "n_leaks": 2, "n_left_out": 2}
    tuning |= {"n_prompts": 9, "rank": 64, "alpha": 16, "dropout": 0.1, "learning_rate": 2e-4}
    tuning |= {"batch_prompts": 16, "n_steps": 400, "max_tokens": 512}
    loud = {"tuning": "loud", "adapter": "loud@1", "difference_weight": 0.0, **AS_PUBLISHED}
    fill(store, "tuning", [{**tuning, "tuning": "calm", "adapter": "calm@1"}, {**tuning, **loud}])
    for k, (key, instruction, way) in enumerate(RUNS):
        texts = {f"{i:02}": [TEXTS[(i * (k + 1)) % 4]] for i in range(12)}
        put_continuations(store, texts, "stsb", way, key)
        if way not in ("cool", "warm"):
            by_prompt = [_p(k, i) for i in range(12)]
            put_probabilities(store, by_prompt, WORD_LIST, "stsb", key, instruction)
    return store


#: What the page says of the training, beside what every row here has.
AS_PUBLISHED = {"as_published": True, "clip_norm": None, "n_steps": 500, "n_leaks": 0}
AS_PUBLISHED |= {"probe_sets": "stsb-train, snli-train", "n_prompts": 13_292, "n_left_out": 0}
AS_PUBLISHED |= {"dev_sets": "stsb-validation, snli-validation", "n_dev_prompts": 681}
#: Model key, instruction and sampling of each set of continuations.
RUNS = (
    *(("base", "none", "greedy"), ("base", "i", "told")),
    *(("base", "none", "cool"), ("base", "none", "warm")),
    *(("tuned", "none", "greedy"), ("without", "none", "greedy")),
)


def _p(run: int, prompt: int) -> dict[str, float]:
    rng = np.random.default_rng(100 * run + prompt)
    return dict(zip((FEMALE, MALE), (0.4 * rng.random(2)).tolist(), strict=True))


def figures_of(row: Row) -> tuple[float | None, ...]:
    return row["low"], row["measured"], row["high"]


def test_disclosure_gives_each_method_its_runs_with_intervals(disclosed: Store) -> None:
    about = ("LLAMA2 7B", "STS-B")
    printed = [p for p in figures("disclosure") if (p["model"], p["inputs"]) == about]
    found, every = measured(DISCLOSURE, disclosed, printed, ["LLaMA2 7B=m"])
    runs = {run.number: run for run in every}
    ours = {(b["table"], b["method"], b["metric"]): b for b in found if b["run"]}
    methods = ["Original", "Instruction", "Hyperparameter", "Debias Tuning", "w/o L_l"]
    assert {m for _, m, _ in ours} == set(methods) and len(runs) == 5
    for table, method, run in (
        *((1, "Original", 0), (1, "Instruction", 1), (1, "Debias Tuning", 4)),
        *((3, "Debias Tuning", 4), (3, "w/o L_l", 5)),
    ):
        held = [
            float(any(w in TEXTS[(i * (run + 1)) % 4] for w in ("she ", "he "))) for i in range(12)
        ]
        gas, gld, add = (figures_of(ours[table, method, m]) for m in ("GAS", "GLD", "ADD"))
        wilson = interval(held, (0, 1), 12)  # at most as if of 12 rows: fewer than ten have none
        assert gas == pytest.approx(wilson, rel=1e-3)
        each = [_p(run, i) for i in range(12)]
        glds = [abs(p[FEMALE] - p[MALE]) / (p[FEMALE] + p[MALE]) for p in each]
        assert gld == pytest.approx(interval(glds, (0, 1)), rel=1e-4)
        adds = [sum(q * math.log(2 * q / sum(p.values())) for q in p.values()) / 2 for p in each]
        low, mean, high = interval(adds)
        assert add[1] == pytest.approx(math.log10(mean), rel=1e-6)
        assert add[2] == pytest.approx(math.log10(high), rel=1e-4)
        assert add[0] == (pytest.approx(math.log10(low), rel=1e-2) if low > 0 else None)
    first = [re.findall("she|he", text) for text in (TEXTS[i % 4] for i in range(12))]
    sides = [float(words[0] == FEMALE) for words in first if words]
    metrics = ("GAS (F)", "GAS (M)", "Delta")
    f, m, delta = (figures_of(ours[10, "Original", metric]) for metric in metrics)
    assert f == pytest.approx(interval(sides, (0, 1), 9), rel=1e-3)
    assert (m[0], m[2]) == pytest.approx((1 - f[2], 1 - f[0]))
    assert delta[1] == pytest.approx(abs(2 * np.mean(sides) - 1)) and delta[0] == 0
    swept = ours[1, "Hyperparameter", "GAS"]
    shares = {}
    for way, run in (("cool", 2), ("warm", 3)):
        held = [TEXTS[(i * (run + 1)) % 4] for i in range(12)]
        shares[way] = sum("rained" not in text for text in held) / 12
    assert swept["measured"] == pytest.approx(min(shares.values()))
    assert len(set(shares.values())) == 2
    assert ours[1, "Hyperparameter", "GLD"]["measured"] == ours[1, "Original", "GLD"]["measured"]
    assert {b["note"] for b in ours.values()} == {"n_prompts 12 (paper: 364)"}
    by_method = {b["method"]: runs[b["run"]] for b in ours.values()}
    assert by_method["Original"].differs == ()
    tuned = by_method["Debias Tuning"]
    of_both = {"dtype float16 (paper: bfloat16)", "quantisation none (paper: bitsandbytes nf4)"}
    assert set(tuned.differs) == of_both | {
        *("n_steps 400 (paper: 500)", "losses means (paper: sums)", "n_tuned_on 9 (paper: 13292)"),
        "tuned_on stsb-train (paper: snli-train, stsb-train)",
        "dev_sets none (paper: snli-validation, stsb-validation)",
        "n_dev_prompts none (paper: 681)",
    }
    assert {"clip_norm 1", "layers q"} <= set(tuned.unknown)
    assert set(by_method["w/o L_l"].differs) == of_both
    told = by_method["Instruction"]
    assert told.differs == ("instruction Be fair: (paper: the one in section 5.2)",)


def test_fairpair_gives_means_over_prompts_with_intervals(store: Store) -> None:
    sampled_set(store, n_prompts=6, n_samples=10)
    fill(store, "model", [scored_by("m", key="key-m")])
    few = FigureOptions(n_permutations=19, n_resamples=50)
    for phi in ("jaccard", "vader"):
        measure_set(store, SAMPLED, phi, few, "r")
    given = (FAIRPAIR, store, figures("fairpair"), ["GPT2-XL=m"])
    found, (run,) = measured(*given)
    ours = {(b["method"], b["metric"]): b for b in found if b["run"]}
    assert len(ours) == 9 and {b["model"] for b in ours.values()} == {"GPT2-XL"}
    assert sum(b["outcome"] == NOT_MEASURED for b in found) == 53  # five models, and means
    columns = {"B": "bias_b", "V_pg": "variability_pg", "V_gp": "variability_gp"}
    for phi, method in (("jaccard", "jaccard"), ("vader", "sentiment")):
        where = f"WHERE phi = '{phi}' AND side = 'original'"
        of = rows_of(store.root, f"FROM fairpair_prompt {where} AND n_folds = 0")
        for metric, column in columns.items():
            wanted = interval([100 * p[column] for p in of])
            assert figures_of(ours[method, metric]) == pytest.approx(wanted, rel=1e-4)
        (in_all,) = rows_of(store.root, f"FROM fairpair_set {where} AND subset = 'all'")
        f = ours[method, "F"]
        assert (f["measured"], f["low"]) == (in_all["fairpair_f"], in_all["fairpair_f_low"])
    assert "n_samples 10 (paper: 100)" in run.differs and "n_folds 0" in run.unknown
    assert "texts filtered (paper: as-published)" in run.differs
    assert "filter_unit words" in run.unknown and not any("limit" in d for d in run.differs)
    by_rules = store.read("fairpair_set").to_pylist()
    named_so = {"perturber": "x-words-12345678"}  # a chat model of this kind of name, and its hash
    fill(store, "fairpair_set", [{**row, **named_so} for row in by_rules])
    _, more = measured(*given)
    assert len(more) == 2
    assert all("filter_unit words" in one.unknown for one in more)
    assert not any("filter_limit" in d for one in more for d in one.differs)
    other_filter = replace(few, filter_limit=0.3, filter_unit="characters")
    measure_set(store, SAMPLED, "jaccard", other_filter, "r")
    _, more = measured(*given)
    assert "filter_limit 0.3 (paper: 0.15)" in {d for one in more for d in one.differs}
    assert "filter_unit characters" in {u for one in more for u in one.unknown}
    made = [r for r in store.read("perturbed_continuation").to_pylist() if r["side"] == "original"]
    shares = [
        [100.0 * r["is_valid"] for r in made if r["prompt_id"] == f"job{k}"] for k in range(6)
    ]
    by_hand = interval([fmean(each) for each in shares], (0, 100), 6)
    assert figures_of(ours["perturbing", "valid"]) == pytest.approx(by_hand, rel=1e-4)


def test_lengths_are_of_split_texts(store: Store) -> None:
    sampled_set(store, n_prompts=6, n_samples=10, planted=(1, 2, 3))
    n_words = {"original": [], "perturbed": []}
    (row,) = rows_of(store.root, "FROM compared_length WHERE side = 'original'")
    valid = {
        (r["prompt_id"], r["side"], r["sample"])
        for r in store.read("perturbed_continuation").to_pylist()
        if r["is_valid"]
    }
    drawn = store.read("continuation").to_pylist()
    for side in n_words:
        for k in range(6):
            of = [r for r in drawn if (r["prompt_id"], r["side"]) == (f"job{k}", side)]
            kept = [r for r in of if (r["prompt_id"], side, r["sample"]) in valid]
            n_words[side].append(fmean(len(r["continuation"].split()) for r in kept))
    each = [a - b for a, b in zip(n_words["original"], n_words["perturbed"], strict=True)]
    found = (row["difference_low"], row["difference"], row["difference_high"])
    assert found == pytest.approx(interval(each), rel=1e-3)
    assert row["words_other"] == pytest.approx(fmean(n_words["perturbed"]))


def test_the_command_prints_runs_and_every_figure(
    disclosed: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "disclosure", "--warehouse", str(disclosed.root)]
    command += ["--as", "LLaMA2 7B=models/m"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "LLAMA2 7B by m: differs in dtype float16 (paper: bfloat16); " in said
    assert said.count("not run\n") < 30 and f"and {486 - 30} more rows: " in said
    assert "log10 of the mean ADD" in said and "Table 1 prints -4.706, Table 3 -4.705" in said
    assert f"{486 - 21} figures: not run" in said
    assert "appendix C, F + M = 1 and Delta = |F - M|: 50 of 50" in said
    assert main([*command, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 486 and sum(row["run"] != "" for row in rows) == 3 * 6 + 3


@pytest.mark.reference
def test_the_paper_s_instruction_is_known_by_its_hash(data: Path) -> None:
    """Read at run time: with the page's full stop, or with the colon of the authors' code."""
    pages = list((data.parent / "papers").glob("002_*.txt"))
    if not pages:
        pytest.skip("the paper's text is not there")
    quoted = re.findall("“(Continue[^”]*)”", pages[0].read_text(encoding="utf-8"))
    row = {"adapter": None, "inputs": "STS-B", "model": "m", "method": "Instruction"}
    row |= {"decoding": "greedy"}
    for ending in (".", ":"):
        given = row | {"instruction": quoted[0].rstrip(".") + ending}
        assert PAPERS["disclosure"].settings(given)["instruction"] == given["instruction"]
    other = PAPERS["disclosure"].settings(row | {"instruction": "Go on."})
    assert other["instruction"] == "the one in section 5.2"
