"""Numbers of UnStereoEval's text beside ours: verdicts, and on the release pandas beside SQL."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plumbline.pipelines.reproduce.claims import (
    AGREE,
    BENCHMARKS,
    NOT_RUN,
    OFF,
    Row,
    check,
    claims_of,
    verdict,
)
from plumbline.pipelines.reproduce.unstereoeval import (
    Release,
    import_release,
    neighbours,
    outcomes,
)
from plumbline.warehouse.storage.store import Store
from tests.conftest import REPOSITORY

CLAIMS = claims_of("unstereoeval").claim


@pytest.mark.parametrize(
    ("printed", "ours", "outcome"),
    [
        ("22", 22.0, AGREE),
        ("9", 9.51, OFF),
        ("40.72", 40.7249, AGREE),
        ("40.72", 40.7251, OFF),
        ("-0.13", 0.13, OFF),
        ("<= 0.81", 0.8149, AGREE),
        ("<= 0.81", 0.8151, OFF),
        (">= 90", 89.6, AGREE),
        ("< 40", 40.0, OFF),
        ("> 14", 15.0, AGREE),
        ("21.7k", 21_751.0, OFF),
        ("120k", 120_499.0, AGREE),
        ("a, b", "b, a", OFF),
        ("1", "a", OFF),
        ("250", None, NOT_RUN),
    ],
)
def test_a_printed_value_beside_ours(printed: str, ours: float | str | None, outcome: str) -> None:
    assert verdict(printed, ours) == outcome


@pytest.mark.reference
def test_no_sentence_of_the_release_is_in_the_file(data: Path) -> None:
    path = REPOSITORY / "pipelines" / "reproduce" / "unstereoeval.toml"
    text = path.read_text(encoding="utf-8").lower()
    for path in (data / "unstereo-eval/data/datasets/raw").glob("*.csv.gz"):
        for template in pd.read_csv(path).template.str.lower():
            parts = [part.strip() for part in re.split(r"\{pronoun\d?\}(?:self)?", template)]
            assert not any(len(part.split()) > 3 and part in text for part in parts), template


_FOLDERS = ("5words", "10words", "20words", "Winobias", "Winogender")
_TABLES = ("USE-5", "USE-10", "USE-20", "Winobias-*", "Winogender")


@pytest.fixture(scope="module")
def released(data: Path) -> pd.DataFrame:
    """model, benchmark, template, x (nats), max_pmi: from the released files, without Plumbline."""
    release, frames = data / "unstereo-eval", []
    for benchmark, folder, stem in zip(BENCHMARKS, _FOLDERS, _TABLES, strict=True):
        of_sets = (release / "data/datasets/preprocessed").glob(f"{stem}-no-maxpmi*.csv.gz")
        pairs = pd.concat(pd.read_csv(path) for path in of_sets)
        max_pmi = dict(zip(pairs.template, pairs.max_gender_pmi, strict=True))
        for path in sorted((release / "results" / folder).glob("*.csv.gz")):
            scores = pd.read_csv(path)
            if "is_natural" in scores:
                scores = scores[scores.is_natural]
            frames.append(
                pd.DataFrame(
                    {
                        "model": path.name.partition("__scores__")[2].removesuffix(".csv.gz"),
                        "benchmark": benchmark,
                        "template": scores.template,
                        "x": scores.F_logprob - scores.M_logprob,
                        "max_pmi": scores.template.map(max_pmi),
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def imported(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(tmp_path_factory.mktemp("claims") / "w")
    import_release(store, Release.at(data / "unstereo-eval"), "pile", "run")
    return store


@pytest.fixture(scope="module")
def found(imported: Store, data: Path) -> list[Row]:
    models = sorted(set(imported.read("model")["model"].to_pylist()))
    statistics = Release.at(data / "unstereo-eval").statistics
    return check(imported, models, "pile", CLAIMS, neighbours(imported, statistics, "pile"))


def ours(found: list[Row], what: str) -> list[float | str | None]:
    """Ours of the one claim that says so."""
    claims = {(row["table"], row["metric"]) for row in found if what in row["metric"]}
    assert len(claims) == 1, claims
    return [row["ours"] for row in found if what in row["metric"]]


EPSILON = math.log(1.65)


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """US and PD in percent by model and set."""
    lean = np.sign(frame.x).where(frame.x.abs() > EPSILON, 0)
    by = [frame.model, frame.benchmark]
    return pd.DataFrame(
        {"us": 100 * (lean == 0).groupby(by).mean(), "pd": 100 * lean.groupby(by).mean()}
    ).reset_index()


@pytest.mark.slow
@pytest.mark.reference
def test_claims_by_pandas(released: pd.DataFrame, found: list[Row], data: Path) -> None:
    all_pairs, at = shares(released), {}
    for eta in (0.8, 0.65, 0.5):
        at[eta] = shares(released[released.max_pmi.abs() <= eta])
        gap = at[eta].merge(all_pairs, on=["model", "benchmark"], suffixes=("", "_all"))
        at[eta]["gap"] = gap.us - gap.us_all
    raw = pd.read_csv(data / "unstereo-eval/data/datasets/raw/USE-5.csv.gz", index_col=0)
    # Figure 1: for none, the male and the female sentence, as its picture in the release prints
    counts = []
    for row in (4471, 1020, 4430):
        is_pair = (released.benchmark == "use-5") & (released.template == raw.template[row])
        of_pair = released[is_pair].drop_duplicates("model")
        assert len(of_pair) == 28
        counts += [(of_pair.x.abs() <= EPSILON).sum(), (of_pair.x < -EPSILON).sum()]
        counts.append((of_pair.x > EPSILON).sum())
    assert ours(found, "three pairs of USE-5") == counts == [5, 22, 1, 7, 19, 2, 4, 4, 20]
    # Figure 2
    of_one = released[released.model == "EleutherAI__gpt-j-6b"]
    left = (of_one.max_pmi.abs() <= 0.5).groupby(of_one.benchmark).mean()
    assert ours(found, "keep less than 35%") == [(left < 0.35).sum()] == [3]
    # extremes
    of_table_1 = pd.concat([all_pairs, at[0.8], at[0.65]])
    use = of_table_1[of_table_1.benchmark.str.startswith("use")]
    assert ours(found, "all models on USE-5, 10 and 20") == pytest.approx(
        [use.us.min(), use.us.max()]
    )
    ends = [of_table_1.us.min(), of_table_1.us.max()]
    assert ours(found, "across all benchmarks") == pytest.approx(ends)
    highest = [at[0.65][at[0.65].benchmark == b].us.max() for b in ("use-5", "winogender")]
    assert ours(found, "highest US on USE-5 at 0.65") == pytest.approx(highest[:1])
    assert ours(found, "highest US on Winogender at 0.65") == pytest.approx(highest[1:])
    # gaps
    plain = [
        f[(f.benchmark == "use-5") & ~f.model.str.endswith("deduped")] for f in (at[0.8], at[0.65])
    ]
    largest = [f.gap.abs().max() for f in plain]
    assert ours(found, "largest |gap| on USE-5 of the 21 models") == pytest.approx(largest)
    most = at[0.65].groupby("benchmark").gap.max()
    of_28 = ours(found, "at 0.65 of all 28 models")
    assert of_28[1:] == pytest.approx([most["winobias"], most["winogender"]])
    # preference
    counts = []
    for frame in (all_pairs, at[0.8], at[0.65], at[0.5]):
        wino = frame[frame.benchmark.str.startswith("wino")]
        counts.append((wino.groupby("model").pd.max() < -40 - 1e-9).sum())
    assert ours(found, "by more than 40 points on both") == counts
    opt = at[0.65][at[0.65].model.str.contains("opt")]
    of_opt = [((opt.benchmark == b) & (opt.pd < -20)).sum() for b in BENCHMARKS[:3]]
    assert ours(found, "of four OPT models") == of_opt
    for what, sets in (
        ("Llama-2 on USE-5,", BENCHMARKS[:1]),
        ("Llama-2 on USE-10", BENCHMARKS[1:3]),
    ):
        largest = []
        for frame in (all_pairs, at[0.8], at[0.65], at[0.5]):
            of = frame[frame.model.str.contains("llama") & frame.benchmark.isin(sets)]
            largest.append(of.pd.abs().max())
        assert ours(found, what) == pytest.approx(largest)
    # App. G.3: the cut
    n_same = 0
    for eta in (math.inf, 0.8, 0.65, 0.5):
        for _, of in released[released.max_pmi.abs() <= eta].groupby(["model", "benchmark"]):
            ways = [100 * ((of.x > cut).mean() - (of.x < -cut).mean()) for cut in (0.5, EPSILON)]
            n_same += round(ways[0], 2) == round(ways[1], 2)
    assert ours(found, "with the cut 0.5") == [n_same]
    # Figure 6
    pythia = released[released.model == "EleutherAI__pythia-6.9b"]
    at_3 = [
        100 * (pythia[pythia.benchmark == b].x.abs() <= 3 * math.log(10)).mean()
        for b in ("use-5", "use-20")
    ]
    assert ours(found, "US of Pythia 6.9B") == pytest.approx(at_3)
    by = [released.benchmark, released.model]
    near = (released.x.abs() <= 4 * math.log(10)).groupby(by).mean() >= 0.99
    assert ours(found, "at epsilon 4") == [near[b].sum() for b in BENCHMARKS[:3]]
    # App. H
    for n, letters in ((5, "use-5"), (10, "use-10"), (20, "use-20")):
        raw = pd.read_csv(data / f"unstereo-eval/data/datasets/raw/USE-{n}.csv.gz", index_col=0)
        (claim,) = (c for c in CLAIMS if f"listed sentences per side of USE-{n}," in c.what)
        listed = [
            [raw.template[int(i)] for i in part.split("'")[0].split()]
            for part in claim.query.split("string_split(\n            '")[1:]
        ]
        of = released[released.benchmark == letters]
        counts = []
        for templates, sign in zip(listed, (1, -1), strict=True):
            so = (np.sign(of.x) == sign).groupby(of.template)
            counts.append(int((so.mean()[templates] > 0.5).sum()))
        assert ours(found, f"listed sentences per side of USE-{n},") == counts


@pytest.mark.slow
@pytest.mark.reference
def test_claims_about_words_by_pandas(found: list[Row], data: Path) -> None:
    words = pd.read_csv(data / "unstereo-eval/data/pmi_file_w_counts.csv.gz", index_col=0)
    delta = words.pmi_diff
    assert ours(found, "median delta") == pytest.approx([np.median(delta)])
    assert ours(found, "words that lean male") == pytest.approx([100 * (delta < 0).mean()])
    bound = math.ceil(delta.abs().max())
    edges = np.linspace(-bound, bound, 20)
    (half,) = {round(float(e), 9) for e in edges if 0 < e < 0.5}
    assert ours(found, "half the width") == pytest.approx([half])


@pytest.mark.slow
@pytest.mark.reference
def test_what_comes_out_is_on_the_page(found: list[Row]) -> None:
    """docs/reproduce.md lists every claim that is off with both figures, and says how many are."""
    page = (REPOSITORY / "docs" / "reproduce.md").read_text(encoding="utf-8").replace("−", "-")
    assert f"\n{outcomes('claims', found)}\n" in page
    assert Counter(row["outcome"] for row in found)[NOT_RUN] == 57
    lines = page.replace("\\|", "|").splitlines()
    for row in found:
        if row["outcome"] == OFF:
            start = f"| {row['table']} | {row['metric']}"
            [line] = (line for line in lines if line.startswith(start))
            ours = row["ours"]
            digits = 0 if ours == int(ours) else len(row["value"].partition(".")[2].rstrip("k")) + 1
            assert row["value"] in line and f"{ours:,.{digits}f}" in line, line


def test_a_claim_must_have_as_many_values_as_its_query_rows() -> None:
    for claim in CLAIMS:
        assert claim.printed and all(claim.printed)
        assert claim.query or claim.note, f"{claim.what}: without a query the reason is needed"
