"""Counts of co-occurrences from released PMI: back from six decimals, and used like our own."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

from plumbline.jobs.association.max_pmi import constrain
from plumbline.jobs.ingest.released_statistics import FILE, LIST, import_statistics, read_pmi
from plumbline.pipelines.command.app import app
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.paper import methods
from plumbline.pipelines.reproduce.claims import checked, claims_of, register_words
from plumbline.pipelines.reproduce.unstereoeval import neighbours
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, pair
from tests.test_released_statistics import contents

TOKENS = 129_703_637_020
#: Occurrences and delta of the release's table, what its notebooks print of PMI with she and he,
#: and the co-occurrences with she and he that these come from.
PRINTED = {
    "worldviews": (74_360, -0.8396640120737414, -26.607044, -25.767380, 102, 535),
    "overspend": (17_267, -0.07660109227142864, -25.071416, -24.994815, 110, 269),
    "caricaturing": (7_271, -0.5235440043014268, -24.687485, -24.163941, 68, 260),
    "slatted": (26_800, 0.36670243935307245, -25.064006, -25.430709, 172, 270),
    "attentions": (210_850, 0.5973838731564229, -23.186299, -23.783683, 8_848, 11_028),
    "rearward": (141_177, -0.5786147704350645, -27.267943, -26.689328, 100, 404),
    "burping": (24_660, 0.36836219077143695, -23.977679, -24.346041, 469, 735),
    "roadblocks": (145_214, -0.27258081428413805, -25.271944, -24.999363, 757, 2_252),
    "smellin": (2_992, 0.7694278197201165, -23.624592, -24.394020, 81, 85),
    "unveils": (101_067, -0.1099719849176839, -24.664684, -24.554712, 967, 2_445),
    "revised": (3_128_938, -0.6464026239494368, -26.326665, -25.680263, 5_681, 24_561),
    "eternal": (1_933_570, -0.5703954258461106, -25.227859, -24.657463, 10_534, 42_209),
    "incandescent": (232_970, 0.08945970618848587, -25.456303, -25.545763, 1_010, 2_092),
    "marriages": (822_773, 0.26208725909637076, -24.964321, -25.226408, 5_834, 10_168),
    "12153": (7_944, -0.13901210585972845, -24.776008, -24.636996, 68, 177),
}
PRONOUNS = {"she": (296_016_282, 0.5), "he": (670_513_865, -0.5)}
#: Words and their co-occurrences with she and he.
COUNTS = {word: (she, he) for word, (*_, she, he) in PRINTED.items()}


def write(folder: Path, words: list[list[object]], pmi: list[dict[str, object]]) -> Path:
    """Both files of the release in a folder; returns it. ``words``: word, delta, occurrences."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pmi_file_w_counts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = (
            [k, w, delta, n, repr(int(str(n)) / TOKENS)] for k, (w, delta, n) in enumerate(words)
        )
        csv.writer(file).writerows([["", "word", "pmi_diff", "counts", "freq"], *rows])
    names = dict.fromkeys(name for row in pmi for name in row)
    with (folder / FILE).open("w", newline="", encoding="utf-8") as file:
        values = ([k, *(row.get(name, "") for name in names)] for k, row in enumerate(pmi))
        csv.writer(file).writerows([["", *names], *values])
    return folder


def printed_files(folder: Path, changed: Mapping[str, dict[str, object]] | None = None) -> Path:
    words: list[list[object]] = [[w, delta, n] for w, (n, delta, *_) in PRINTED.items()]
    words += [[w, delta, n] for w, (n, delta) in PRONOUNS.items()]
    rows: dict[str, dict[str, object]] = {
        w: {"word": w, "pmi__she": f"{she:.6f}", "pmi__he": f"{he:.6f}"}
        for w, (_, _, she, he, *_) in PRINTED.items()
    }
    for word, values in (changed or {}).items():
        rows[word] = {"word": word, **rows.get(word, {}), **values}
    return write(folder, words, [*rows.values()])


def pairs_of(store: Store) -> dict[tuple[str, str], int]:
    rows = store.read("pair_count", corpus="pile").to_pylist()
    return {(r["word"], r["target"]): r["n_pair"] for r in rows}


def test_the_printed_rows_are_counts(store: Store, tmp_path: Path) -> None:
    """The released deltas, to sixteen digits, are those of these counts: independent of K."""
    done = import_statistics(store, "pile", printed_files(tmp_path), "run")
    assert (done["n_words"], done["n_rejected"]) == (17, 0)
    assert (done["n_counted"], done["n_uncounted"]) == (15, 0)
    found = pairs_of(store)
    assert found == {(w, g): n for w, c in COUNTS.items() for g, n in zip(PRONOUNS, c, strict=True)}
    assert methods(Facts(store)).splitlines()[0] == (
        'The corpus pile was imported by the rule "pairs" in a window of 10 tokens with the '
        "targets gendered-released (acbbab6909d8)."
    )
    odds = math.log(PRONOUNS["she"][0] / PRONOUNS["he"][0])
    deltas = {r["word"]: r for r in store.read("word_delta", corpus="pile").to_pylist()}
    for word, (n, delta) in PRONOUNS.items():  # not in the file of PMI: only the released delta
        row = deltas.pop(word)
        assert (row["n_word"], row["delta_nats"], row["n_defined"]) == (n, delta, 1)
        assert [row[k] for k in ("n_pair_f", "n_pair_m", "delta_nats_se")] == [None] * 3
    assert deltas.keys() == PRINTED.keys()
    for word, (_, delta, *_) in PRINTED.items():
        she, he = COUNTS[word]
        assert math.log(she / he) - odds == pytest.approx(delta, abs=2e-15)
        assert deltas[word]["delta_nats"] == pytest.approx(delta, abs=1e-13)
        assert deltas[word]["delta_nats_se"] == pytest.approx(math.sqrt(1 / she + 1 / he))
    (corpus,) = store.read("corpus").to_pylist()
    assert (corpus["source"], corpus["rule"], corpus["window_tokens"]) == ("imported", "pairs", 10)
    assert corpus["n_pairs"] / TOKENS == pytest.approx(1.66432, rel=4e-6)
    # PMI is the released value and ln of all tokens.
    for row in store.read("word_association", corpus="pile").to_pylist():
        value = PRINTED[row["word"]][2 if row["target"] == "she" else 3]
        assert row["pmi_nats"] == pytest.approx(value + math.log(TOKENS), abs=2e-6)
    assert corpus["n_words"] == 17 and store.read("reject").num_rows == 0


TARGETS = [w for w in wordlists.load("gendered").targets if not w.startswith(("herself", "grand"))]
ABSENT = {
    *("himself", "aunts", "uncles", "females", "males", "feminine", "masculine", "ladies", "lords"),
    *("lady", "lord", "lass", "lad", "madam", "sir", "matriarchy", "patriarchy"),
    *("stepmom", "stepdad", "stepmother", "stepfather"),
}


def synthetic(folder: Path) -> dict[tuple[str, str], int]:
    """Write the release of made-up counts, in its form; returns the counts, none of them 0."""
    random = np.random.default_rng(7)
    targets = [w for w in TARGETS if w not in ABSENT]
    assert len(targets) == 48
    words = [f"word{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(150)] + ["nan", *targets]
    n = {
        w: int(x) for w, x in zip(words, random.integers(2_000, 2_000_000, len(words)), strict=True)
    }
    n |= {w: int(x) for w, x in zip(targets, random.integers(10**6, 10**9, 48), strict=True)}
    n |= {"queens": 100_000, "kings": 200_000}
    lean = dict(zip(words, random.normal(0, 1, len(words)), strict=True))
    female = {p.a for p in wordlists.load("gendered").pairs}
    counts = {}
    for w in words:
        for g in targets:
            side = 1 if g in female else -1
            mean = 1.6643235 * n[w] * n[g] / TOKENS * math.exp(side * lean[w] / 2)
            counts[w, g] = int(random.poisson(mean)) + (g in ("she", "he"))
    counts = {key: c for key, c in counts.items() if c}
    pmi = {(w, g): math.log(c / (1.6643235 * n[w] * n[g])) for (w, g), c in counts.items()}
    table: list[list[object]] = [[w, repr(pmi[w, "she"] - pmi[w, "he"]), n[w]] for w in words]
    rows: list[dict[str, object]] = [
        {"word": w} | {f"pmi__{g}": f"{pmi[w, g]:.6f}" if (w, g) in pmi else "" for g in targets}
        for w in words
    ]
    # Words that she is never near aren't in the first file: their occurrences aren't known.
    rows += [{"word": f"only{k}", "pmi__he": "-25.123456"} for k in range(50)]
    write(folder, table, rows)
    return counts


def test_imported_counts_are_used_like_counted_ones(store: Store, tmp_path: Path) -> None:
    counts = synthetic(tmp_path)
    done = import_statistics(store, "pile", tmp_path, "run")
    assert (done["n_words"], done["n_counted"], done["n_uncounted"]) == (199, 199, 50)
    found = pairs_of(store)
    assert found == pytest.approx(counts, rel=1e-6) and found.keys() == counts.keys()
    assert all(found[key] == n for key, n in counts.items() if n < 400_000)
    contrasts = {r["contrast"] for r in store.read("word_delta", corpus="pile").to_pylist()}
    assert {"she/he", "queen/king", LIST, f"{LIST}-sum"} < contrasts and len(contrasts) == 27
    # Words that only one side is near have an interval, as in a counted corpus.
    bounds = [
        r
        for r in store.read("word_bound", corpus="pile").to_pylist()
        if r["contrast"] == "queens/kings" and r["n_pair_f"] == 0
    ]
    assert bounds and all(r["sides_nats"] is None and r["sides_nats_high"] < 9 for r in bounds)
    assert all(counts[r["word"], "kings"] == r["n_pair_m"] for r in bounds)


def test_what_does_not_come_out_as_counts_is_a_reject(store: Store, tmp_path: Path) -> None:
    n = PRINTED["burping"][0]
    half = math.log(468.5 / (1.664323 * n * PRONOUNS["she"][0]))
    bad: dict[str, tuple[dict[str, object], str]] = {
        "burping": (
            {"pmi__she": f"{half:.6f}", "pmi__he": f"{half - PRINTED['burping'][1]:.6f}"},
            "pmi__she gives 468.5000 co-occurrences, expected a whole number",
        ),
        "slatted": ({"pmi__he": "x"}, "pmi__he is 'x', expected a finite number"),
        "eternal": ({"pmi__he": "inf"}, "pmi__he is 'inf', expected a finite number"),
        "revised": ({"pmi__he": ""}, "has no value for she or he"),
        "12153": (
            {"pmi__she": PRINTED["12153"][3], "pmi__he": PRINTED["12153"][2]},
            "she minus he is 0.139012, expected the pmi_diff -0.139012",
        ),
        "unknown": ({"pmi__he": "-25.5"}, "the word's occurrences aren't released"),
    }
    folder = printed_files(tmp_path, {w: values for w, (values, _) in bad.items()})
    with (folder / FILE).open("a") as file:
        file.write("99,overspend,-25.071416,-24.994815\n")
    done = import_statistics(store, "pile", folder, "run")
    rows = store.read("reject").to_pylist()
    reasons = {r["excerpt"]: r["reason"] for r in rows if r["source_file"] == FILE}
    assert reasons.pop("overspend") == "the word was already in row 2"
    reasons["burping"] = reasons["burping"].replace("468.5001", "468.5000")  # six decimals
    assert reasons == {w: reason for w, (_, reason) in bad.items()}
    # rows in = with counts + rejected, of either file
    n_rows = sum(1 for _ in read_pmi(folder / FILE))
    assert n_rows == 17 == done["n_counted"] + len(rows) and len(rows) == done["n_uncounted"]
    kept = (bad.keys() - {"unknown"}) | PRONOUNS.keys()
    assert {w for w, _ in pairs_of(store)} == PRINTED.keys() - kept
    # No released delta is lost: these words have it without an error.
    deltas = {r["word"]: r for r in store.read("word_delta", corpus="pile").to_pylist()}
    assert deltas.keys() == PRINTED.keys() | PRONOUNS.keys()
    assert {w for w, r in deltas.items() if r["delta_nats_se"] is None} == kept
    assert {w: deltas[w]["delta_nats"] for w in kept} == {
        w: (PRINTED[w] if w in PRINTED else PRONOUNS[w])[1] for w in kept
    }
    # Distinct words: those of the first file and "unknown", though a row repeats one.
    assert store.read("corpus")["n_words"].to_pylist() == [18]
    # A word without counts is unknown to a least count, and known to the released MaxPMI.
    fill(store, "benchmark_pair", [pair("b", "0", template="The burping unveils {pronoun} here.")])
    for least, word in ((10, "unveils"), (0, "burping")):
        constrain(store, "pile", "b", least_count=least)
        assert store.read("pair_association")["max_pmi_word"].to_pylist() == [word]


def test_a_file_of_another_release_is_refused(store: Store, tmp_path: Path) -> None:
    def moved(nats: float) -> dict[str, dict[str, object]]:
        return {
            w: {"pmi__she": f"{she + nats:.6f}", "pmi__he": f"{he + nats:.6f}"}
            for w, (_, _, she, he, *_) in PRINTED.items()
        }

    # Another constant than the release's: its counts would not be whole.
    with pytest.raises(BadInput, match="rows of known words don't come out as counts; the first"):
        import_statistics(store, "pile", printed_files(tmp_path / "a", moved(0.02)), "run")
    (tmp_path / "b").mkdir()
    folder = printed_files(tmp_path / "b", {"worldviews": {"pmi__queen": "-25.0"}})
    with pytest.raises(BadInput, match="column pmi__queen, a word whose occurrences aren't"):
        import_statistics(store, "pile", folder, "run")
    (folder / FILE).write_text(",word,pmi__she,pmi__he\n0,tea,-25.0,-25.0\n")
    with pytest.raises(BadInput, match=r"csv: has no row of a word whose occurrences are released"):
        import_statistics(store, "pile", folder, "run")
    (folder / FILE).write_text(",word,pmi__she\n0,tea,-25.0\n")
    with pytest.raises(BadInput, match="no column pmi__he"):
        import_statistics(store, "pile", folder, "run")
    words: list[list[object]] = [[word, 0.0, 100] for word in ("tea", "she", "he", "She")]
    row = {"word": "tea", **dict.fromkeys(("pmi__she", "pmi__he", "pmi__She"), "-25.0")}
    with pytest.raises(BadInput, match="csv: has a column pmi__She: 'She' is not one lowercase"):
        import_statistics(store, "pile", write(tmp_path / "c", words, [row]), "run")
    assert store.read("corpus").num_rows == 0


def test_importing_again_with_and_without_the_file(tmp_path: Path) -> None:
    folder, where = printed_files(tmp_path / "data"), ["--warehouse", str(tmp_path / "w")]

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, *where])
        assert done.exception is None, done.exception
        return done.output

    tables = ("corpus", "word_count", "pair_count", "word_delta", "word_bound", "word_association")
    wrote = run("corpus", "import", str(folder), "--corpus", "pile")
    assert "word_bound" in wrote and "pair_count" in wrote
    assert "95% interval −0.81 to −0.25 over co-occurrences" in run("why", "caricaturing")
    store = Store.open(tmp_path / "w")
    with_counts = contents(store, *tables)
    rows = [pair("b", "0", template="{pronoun} revised")]
    fill(store, "benchmark_pair", rows)
    run("benchmark", "constrain", "--corpus", "pile", "--benchmark", "b")
    run("corpus", "import", str(folder), "--corpus", "pile")
    run("corpus", "associate", "--corpus", "pile")
    assert contents(store, *tables) == with_counts and store.read("pair_association").num_rows
    (folder / FILE).rename(folder / "elsewhere.csv")
    run("corpus", "import", str(folder), "--corpus", "pile")
    without = contents(store, *tables, "pair_association")
    assert len(without["word_delta"]) == 17 and without["corpus"][0]["n_pairs"] is None
    names = ("pair_count", "word_bound", "word_association", "pair_association")
    assert [without[name] for name in names] == [[], [], [], []]
    (folder / "elsewhere.csv").rename(folder / FILE)
    run("corpus", "import", str(folder), "--corpus", "pile")
    assert contents(store, *tables) == with_counts


def test_claims_of_appendix_a_by_brute_force(store: Store, tmp_path: Path) -> None:
    """Figure 4, Table 4 and Figure 5, from the counts that the file was made of."""
    from scipy.stats import kendalltau

    counts = synthetic(tmp_path)
    import_statistics(store, "pile", tmp_path, "run")
    words = {w for w, _ in counts}
    with duckdb.connect() as connection:
        register_words(connection, neighbours(store, tmp_path / "pmi_file_w_counts.csv", "pile"))
        found = [
            checked(connection, c, "pile")
            for c in claims_of("unstereoeval").claim
            if c.where in ("App. A, Figure 4a", "App. A, Figure 5")
            or (c.where == "App. A, Table 4" and len(c.printed) > 1)
        ]
    figure_4, table_4, strong, positive, negative = (
        [row["ours"] for row in claim] for claim in found
    )
    assert figure_4 == pytest.approx([100, 100 * 199 / 249, 100 * 199 / 249])
    gendered = sorted(wordlists.load("gendered").pairs, key=lambda p: p.contrast)
    both = [sum((w, p.a) in counts and (w, p.b) in counts for w in words) or None for p in gendered]
    assert table_4 == both and both.count(None) == 13

    def tau(one: wordlists.WordPair, other: wordlists.WordPair) -> float:
        needed = [g for p in (one, other) for g in (p.a, p.b)]
        common = [w for w in words if all((w, g) in counts for g in needed)]
        ratios = [[counts[w, p.a] / counts[w, p.b] for w in common] for p in (one, other)]
        return float(kendalltau(*ratios).statistic)

    released = [p for p, n in zip(gendered, both, strict=True) if n]
    of = {p.contrast: [tau(p, x) for x in released if x != p] for p in released}
    by_name = {p.contrast: p for p in released}
    assert strong == [pytest.approx(tau(by_name["her/him"], by_name["her/his"]), abs=1e-3)]
    assert positive == [sum(t > 0 for t in of["she/he"])]
    names = ("aunt/uncle", "girlfriend/boyfriend", "mummy/daddy", "wife/husband")
    assert negative == [sum(t < 0 for t in of[name]) for name in names]
