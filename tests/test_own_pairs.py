"""Benchmarks that a user brings: CSV to figure, every row a pair or a reject with its reason."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.disclosure.sentence_files import read_sentences
from plumbline.eval_workers.pairs.benchmarks import How, Imported, import_benchmark
from plumbline.eval_workers.pairs.benchmarks._parsed import DIFFERS, shared_template
from plumbline.eval_workers.pairs.benchmarks.own.file_rows import rows_of_file
from plumbline.eval_workers.pairs.benchmarks.own.filler import Filler, filler
from plumbline.eval_workers.pairs.benchmarks.own.recipe import RECIPES, load
from plumbline.pipelines.command.main import main
from plumbline.pipelines.report.model import Section
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.csv_rows import checked_rows, decoded, records_of
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.hub_server import environment, hub
from tests.metric_rows import fill, score
from tests.report_sections import made

_ENTRY = "from plumbline.pipelines.command.main import entry; entry()"

ROWS: list[dict[str, Any]] = [
    {"sentence_a": "Old men sing.", "sentence_b": "Young men sing.", "category": "age"},
    {"sentence_a": "Ann, a Jew, sang.", "sentence_b": "Ann, a Hindu, sang.", "category": "faith"},
]


def as_csv(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def as_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def taken(store: Store, source: Path, **how: Any) -> tuple[Imported, list[dict[str, Any]]]:
    done = import_benchmark(store, "mine", source, "r", How(**how))
    return done, store.read("benchmark_pair", benchmark="mine").to_pylist()


def reasons(store: Store) -> dict[int, str]:
    return {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}


def test_every_kind_of_file_gives_the_same_pairs(store: Store, tmp_path: Path) -> None:
    packed = tmp_path / "pairs.csv.gz"
    plain = as_csv(tmp_path / "pairs.csv", ROWS)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "pairs.parquet")
    document = tmp_path / "pairs.json"
    document.write_text(json.dumps(ROWS))
    sources = [
        plain,
        packed,
        as_csv(tmp_path / "pairs.tsv", ROWS, "\t"),
        as_jsonl(tmp_path / "pairs.jsonl", ROWS),
        document,
        tmp_path / "pairs.parquet",
    ]
    found = []
    for source in sources:
        done, pairs = taken(store, source)
        assert (done.n_pairs, done.n_rejects) == (2, 0), source
        found.append([{**pair, "source_file": ""} for pair in pairs])
    assert all(pairs == found[0] for pairs in found)
    first = found[0][0]
    assert first["template"] == "{differs} men sing." and first["pronoun_first"]
    assert (first["group_a"], first["group_b"], first["category"]) == ("a", "b", "age")
    assert found[0][1]["template"] == "Ann, a {differs}, sang."


def test_other_columns_take_the_figures_and_leave_the_scores(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "mine.csv"

    def imported(*rows: str) -> Imported:
        source.write_text("id,sentence_a,sentence_b,job,direction,note\n" + "\n".join(rows) + "\n")
        return import_benchmark(store, "mine", source, "r", How(columns=("cluster=job",)))

    rows = ["1,She left.,He left.,nurse,a,x", "2,She sat.,He sat.,clerk,b,x"]
    imported(*rows)
    fill(store, "pair_score", [score("mine", k, 0.5) for k in "12"])
    power = {"benchmark": "mine", "groups": "a/b", "measure": "us", "unit": "share", "n_pairs": 2}
    power |= {"n_clusters": 2, "n_alike": 0.0, "sd": 1.0, "icc": 0.0, "n_models": 0, "df": 1.0}
    fill(store, "benchmark_power", [{**power, "run_id": "r"}])
    imported(*rows[::-1])
    assert store.read("benchmark_power", benchmark="mine").num_rows == 1
    imported(rows[0].replace("nurse", "clerk"), rows[1])
    assert store.read("benchmark_power", benchmark="mine").num_rows == 0
    assert store.read("pair_score", benchmark="mine").num_rows == 2


def test_bad_rows_are_kept_with_their_reason(store: Store, tmp_path: Path) -> None:
    good = {"sentence_a": "Tea.", "sentence_b": "Rum.", "weight": 1, "direction": "a", "id": "1"}
    good |= {"group_a": "x", "group_b": "y"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sentence_a": " "}, "a sentence is empty"),
        ({"sentence_b": "Tea."}, "both sentences are the same"),
        ({"sentence_a": "Gin."}, "the identifier 1 was already used"),
        ({"weight": "much"}, "weight is 'much', expected a number of 0 or more"),
        ({"weight": -1}, "weight is '-1', expected"),
        ({"direction": "up"}, "direction is 'up', expected one of a, b"),
        ({"group_b": "x"}, "the groups are 'x' and 'x'"),
        ({"group_a": "x/y"}, "expected two names without /"),
    ]
    rows = [good, *({**good, "id": f"{n}", **change} for n, (change, _) in enumerate(wrong, 2))]
    rows[3]["id"] = "1"
    path = as_jsonl(tmp_path / "pairs.jsonl", rows)
    path.write_bytes(path.read_bytes() + b"not json\n[]\n\xff\n")
    done, pairs = taken(store, path)
    assert (done.n_pairs, done.n_rejects) == (1, len(wrong) + 3) and pairs[0]["weight"] == 1
    found = reasons(store)
    for number, (_, reason) in enumerate(wrong, 2):
        assert reason in found[number], number
    assert "not JSON" in found[10] and "not a JSON object" in found[11]
    assert done.n_pairs + done.n_rejects == len(rows) + 3


def test_half_a_surrogate_pair_takes_its_row_alone(store: Store, tmp_path: Path) -> None:
    odd = [ROWS[0] | {name: "x \ud83d"} for name in ("sentence_a", "category", "note")]
    odd += [ROWS[0] | {"\ud83d": "x"}, ROWS[0] | {"note": {"\ud83d": ["\ud83d"]}}]
    _, pairs = taken(store, as_jsonl(tmp_path / "p.jsonl", [*odd, ROWS[1]]))
    assert [p["sentence_a"] for p in pairs] == [ROWS[1]["sentence_a"]]
    assert len(reasons(store)) == len(odd) and all(
        "surrogate" in reason for reason in reasons(store).values()
    )


def test_rows_that_equal_an_earlier_one_are_rejected_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.integers(0, 3, (40, 3)), columns=["a", "b", "category"])
    frame["sentence_a"] = [f"Old {k}." for k in frame.pop("a")]
    frame["sentence_b"] = [f"Young {k}." for k in frame.pop("b")]
    frame.to_csv(tmp_path / "p.csv", index=False)
    numbers = np.flatnonzero(frame.duplicated()) + 1
    store, where = Store.open(tmp_path / "w"), ["--warehouse", str(tmp_path / "w")]
    source = ["--source", str(tmp_path / "p.csv")]
    assert main(["benchmark", "import", "ages", *source, *where]) == 0
    out = capsys.readouterr().out
    cells = " ".join(out.replace("│", " ").split())
    assert f"ages {40 - len(numbers)} {len(numbers)} " in cells
    category = frame["category"].iloc[numbers[0] - 1]
    n_more = (frame["category"].iloc[numbers - 1] == category).sum() - 1
    first = frame.eq(frame.iloc[numbers[0] - 1]).all(axis=1).idxmax() + 1
    like = f"(and {n_more} rows like it)"
    assert f"{category}: p.csv, row {numbers[0]}: the same as row {first} {like}\n" in out
    assert "All rows: plumbline sql \"FROM reject WHERE subject = 'ages'\"" in out
    rejects = store.read("reject", stage="benchmark")
    assert sorted(rejects["source_row"].to_pylist()) == numbers.tolist()


def test_other_names_of_columns_and_further_columns(store: Store, tmp_path: Path) -> None:
    rows = [
        {"Old sentence": "Tea.", "new": "Rum.", "who": "Ann", "n": 3, "sure": "stereo", "": "9"}
    ]
    path = as_csv(tmp_path / "pairs.csv", rows)
    columns = ("sentence_a=Old sentence", "sentence_b=new", "direction=sure")
    _, (pair,) = taken(store, path, columns=columns)
    assert (pair["sentence_a"], pair["direction"]) == ("Tea.", "a")
    assert json.loads(pair["extra"]) == {"who": "Ann", "n": "3"}
    with pytest.raises(BadInput, match=r"pairs\.csv: no column sentence_b \(it has Old sentence,"):
        taken(store, path, columns=columns[:1])
    with pytest.raises(BadInput, match="no column nowhere"):
        taken(store, path, columns=(*columns, "category=nowhere"))
    with pytest.raises(UsageProblem, match="--column sentence=x: is not a column"):
        taken(store, path, columns=("sentence=x",))


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_quote_left_open_takes_no_rows_unseen(
    store: Store, tmp_path: Path, delimiter: str
) -> None:
    """Of lines that a quote makes one field none is lost in silence; line breaks of a text stay."""
    lines = ["sentence_a,sentence_b", "One old,One new", '"Two old,Two new', "Three old,Three new"]
    lines += ['"Four" old,Four new', '"Five, she said.\nOld",Five new', "Six old,Six new"]
    path = tmp_path / ("pairs.csv" if delimiter == "," else "pairs.tsv")
    text = "\n".join(line.replace(",", delimiter) for line in lines)
    path.write_text(text.replace(f"Five{delimiter} ", "Five, "))
    done, pairs = taken(store, path)
    assert [p["sentence_b"] for p in pairs] == ["One new", "Five new", "Six new"]
    assert done.n_rejects == 1 and pairs[1]["sentence_a"] == "Five, she said.\nOld"
    assert "a quote left open takes 3 lines into one field" in reasons(store)[2]
    excerpts = [r["excerpt"] for r in store.read("reject").to_pylist()]
    assert "Three old" in excerpts[0]


def test_texts_are_texts_and_groups_turned_round_are_named(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, Any]] = [
        {**ROWS[0], "group_a": "old", "group_b": "young"},
        {**ROWS[1], "group_a": "young", "group_b": "old"},
        {**ROWS[0], "sentence_a": 3},
    ]
    source = as_jsonl(tmp_path / "a.jsonl", rows)
    done, _ = taken(store, source)
    assert done.n_pairs == 2
    assert reasons(store) == {3: "sentence_a is 3, expected a text"}
    command = ["benchmark", "import", "mine", "--source", str(source)]
    assert main([*command, "--warehouse", str(store.root)]) == 0
    assert "Warning: old/young and young/old are measured apart" in capsys.readouterr().out
    done, _ = taken(store, as_jsonl(tmp_path / "b.jsonl", rows[:1]))
    assert "measured apart" not in " ".join(done.warnings)


def test_pairs_that_may_not_be_meant_are_warned_about(store: Store, tmp_path: Path) -> None:
    """Groups that differ by case, a claim and its contrary, sets of a few pairs."""
    rows = [
        {"sentence_a": f"Old {k}.", "sentence_b": f"Young {k}.", "group_a": "old"}
        | {"group_b": "young", "category": "age", "direction": "a"}
        for k in range(10)
    ]
    same = {**rows[0], "sentence_a": rows[0]["sentence_b"], "sentence_b": rows[0]["sentence_a"]}
    same |= {"group_a": "young", "group_b": "old", "direction": "b"}
    (words,) = taken(store, as_csv(tmp_path / "a.csv", rows))[0].warnings
    assert "words: 10, such as Old / Young; PD also tells how frequent" in words
    (apart, _, few) = taken(store, as_csv(tmp_path / "a.csv", [*rows, same]))[0].warnings
    assert "old/young and young/old" in apart and few.endswith("10 pairs say little: young/old (1)")
    rows += [{**rows[0], "direction": "b"}, {**rows[1], "category": "skills"}]
    rows += [{**rows[2], "sentence_a": "Older.", "group_a": "Old"}]
    done, pairs = taken(store, as_csv(tmp_path / "a.csv", rows))
    assert len(pairs) == 13 and tuple(w for w in done.warnings if "frequent" not in w) == (
        "Warning: Old and old are measured apart (if you meant one group, spell its name the same "
        "way)",
        "Warning: pairs with the sentences of an earlier pair but another direction or category: "
        "2; the first, 00011, repeats 00001 (each counts; delete those you don't mean)",
        "Warning: fewer than 10 pairs say little: Old/young (1)",
    )


def test_a_reject_shows_its_row(store: Store, tmp_path: Path) -> None:
    rows = [*ROWS, {"sentence_a": "", "sentence_b": "Young men sing.", "category": "age"}]
    taken(store, as_csv(tmp_path / "pairs.csv", rows))
    assert [r["excerpt"] for r in store.read("reject").to_pylist()] == [" | Young men sing."]


def test_templates_are_filled_for_groups_and_words(store: Store, tmp_path: Path) -> None:
    templates = [
        "Ann's {kin} said {pronoun} was late.",
        "Ann met a {kin}.",
        "{pronoun} likes cats and dogs.",
        "Nothing to fill.",
    ]
    path = as_csv(tmp_path / "t.csv", [{"template": t} for t in templates])
    done, pairs = taken(store, path, fills=("kin=kinship",))
    # 6 words, 3 pairs of groups, 2 templates that hold a word; what they is is undecided.
    assert (done.n_pairs, done.n_rejects) == (36, 2)
    assert "stays undecided" in reasons(store)[3] and "no placeholder" in reasons(store)[4]
    wrong = as_csv(
        tmp_path / "w.csv", [{"template": t} for t in (*templates[:1], "The {who} sat.")]
    )
    assert taken(store, wrong, fills=("kin=kinship",))[0].n_rejects == 1
    assert reasons(store) == {2: "{who} has no words (give them by --fill who=LIST)"}
    sentences = {r["sentence_a"] for r in pairs} | {r["sentence_b"] for r in pairs}
    assert "Ann's grandfather said he was late." in sentences
    assert "Ann's child said they were late." in sentences
    assert set(Counter(r["item_id"] for r in pairs).values()) == {3}
    with pytest.raises(BadInput, match=r"no usable pair in .*; the first: .*\{kin\}"):
        taken(store, path, groups=("they", "xe"))


def test_articles_agree_with_the_word(tmp_path: Path) -> None:
    fills = filler(fills=["who=religions"], groups=["Christian", "atheist"])
    (item,) = fills.items("A {who} met a {who} person.", "1")
    assert item.sentences["atheist"] == "An atheist met an atheist person."
    assert item.sentences["Christian"] == "A Christian met a Christian person."


def test_names_of_a_word_list_have_capitals() -> None:
    fills = filler(fills=["name=names"])
    items = fills.items("I saw {name} with {pronoun1} dog.", "1")
    assert len(items) == 10 and items[0].sentences == {
        "female": "I saw Mary with her dog.",
        "male": "I saw James with his dog.",
    }


def test_the_usual_groups_are_female_and_male() -> None:
    assert Filler().items("{pronoun} ran.", "1")[0].sentences["female"] == "She ran."


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=7)


@given(WORDS, WORDS)
def test_the_shared_words_are_a_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    shared = shared_template(" ".join(a), " ".join(b))
    words = [w for w in shared.split() if w != DIFFERS]
    assert _is_within(words, a) and _is_within(words, b)
    assert len(words) == _longest(tuple(a), tuple(b))
    assert (DIFFERS in shared) == (a != b)


def _is_within(words: list[str], text: list[str]) -> bool:
    rest = iter(text)
    return all(word in rest for word in words)


def _longest(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """By trying every subset of the shorter one."""
    shorter, other = sorted((a, b), key=len)
    subsets = ([w for k, w in enumerate(shorter) if n >> k & 1] for n in range(1 << len(shorter)))
    return max(len(s) for s in subsets if _is_within(s, list(other)))


def test_every_recipe_says_what_it_is() -> None:
    assert {"bbq", "crows-pairs", "stereoset", "winoqueer"} <= set(RECIPES.names())
    for name in RECIPES.names():
        assert load(name).about and "\n" not in load(name).about
        assert re.search(r"github\.com/\S+, .* at [0-9a-f]{12}\b", load(name).source)


def test_crows_pairs(store: Store, tmp_path: Path) -> None:
    rows = [
        {"": "0", "sent_more": "Old x.", "sent_less": "New x.", "stereo_antistereo": "stereo"},
        {"": "1", "sent_more": "Bad y.", "sent_less": "Big y.", "stereo_antistereo": "antistereo"},
    ]
    path = as_csv(tmp_path / "c.csv", [{**row, "bias_type": "age"} for row in rows])
    done, pairs = taken(store, path, recipe="crows-pairs")
    assert done.n_pairs == 2 and {p["direction"] for p in pairs} == {"a"}
    assert [p["sentence_a"] for p in pairs] == ["Old x.", "Bad y."]
    assert pairs[0]["group_b"] == "less stereotyping" and pairs[1]["category"] == "age"
    assert json.loads(pairs[1]["extra"]) == {"stereo_antistereo": "antistereo"}


def stereoset() -> list[dict[str, Any]]:
    labels = ("anti-stereotype", "unrelated", "stereotype")
    sentences = [
        {"sentence": f"The cook is {word}.", "gold_label": label}
        for word, label in zip(("calm", "blue", "loud"), labels, strict=True)
    ]
    row = {"id": "7", "target": "cook", "bias_type": "profession", "sentences": sentences}
    row["context"] = "The cook is BLANK."
    return [row, {**row, "id": "8", "sentences": sentences[:2]}]


def test_stereoset_as_released_and_as_on_the_hub(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": {"intrasentence": stereoset(), "intersentence": []}}))
    done, (pair,) = taken(store, path, recipe="stereoset")
    assert (done.n_pairs, done.n_rejects) == (1, 1) and pair["pair_id"] == "7"
    assert (pair["sentence_a"], pair["sentence_b"]) == ("The cook is loud.", "The cook is calm.")
    assert (pair["word"], pair["category"], pair["direction"]) == ("cook", "profession", "a")
    assert "none of the labels 'anti-stereotype, unrelated' mean sentence a" in reasons(store)[2]
    numbers = {"anti-stereotype": 0, "stereotype": 1, "unrelated": 2}
    listed = {
        "sentence": [s["sentence"] for s in stereoset()[0]["sentences"]],
        "gold_label": [numbers[s["gold_label"]] for s in stereoset()[0]["sentences"]],
    }
    rows = [{**stereoset()[0], "sentences": listed}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "dev.parquet")
    _, (again,) = taken(store, tmp_path / "dev.parquet", recipe="stereoset")
    same = ("sentence_a", "sentence_b", "word", "category", "direction")
    assert [again[c] for c in same] == [pair[c] for c in same]


def test_winoqueer(store: Store, tmp_path: Path) -> None:
    row = {"Gender_ID_x": "Lesbian", "Gender_ID_y": "Straight"}
    row |= {"sent_x": "Lesbian women sing.", "sent_y": "Straight women sing."}
    _, (pair,) = taken(store, as_csv(tmp_path / "w.csv", [row]), recipe="winoqueer")
    assert (pair["group_a"], pair["category"]) == ("queer", "Lesbian")
    assert json.loads(pair["extra"]) == {"Gender_ID_y": "Straight"}


def test_bbq(store: Store, tmp_path: Path) -> None:
    """Ambiguous contexts make pairs; the stereotype favours one answer or the other."""
    row = {
        "question_polarity": "neg",
        "context_condition": "ambig",
        "category": "Age",
        "answer_info": {
            "ans0": ["grandfather", "old"],
            "ans1": ["grandson", "nonOld"],
            "ans2": ["Not known", "unknown"],
        },
        "additional_metadata": {"stereotyped_groups": ["old"]},
        "context": "I saw a grandson and his grandfather.",
        "question": "Who forgot the way?",
        **{"ans0": "The grandfather", "ans1": "The grandson", "ans2": "Not known", "label": 2},
    }
    women = {"ans0": ["Jo", "M-Black"], "ans1": ["No", "unknown"], "ans2": ["Al", "M-White"]}
    rows = [
        row,
        {**row, "question_polarity": "nonneg", "question": "Who knew the way?"},
        {**row, "context_condition": "disambig"},
        {**row, "additional_metadata": {"stereotyped_groups": ["young"]}},
        {
            **row,
            "answer_info": women,
            "additional_metadata": {"stereotyped_groups": ["African American", "Black"]},
            **{"ans0": "Jo", "ans1": "No", "ans2": "Al"},
        },
    ]
    done, pairs = taken(store, as_jsonl(tmp_path / "Age.jsonl", rows), recipe="bbq")
    assert (done.n_pairs, done.n_rejects) == (3, 2)
    assert [p["direction"] for p in pairs] == ["a", "b", "a"]
    start = "I saw a grandson and his grandfather. Who forgot the way?"
    assert pairs[0]["sentence_a"] == f"{start} The grandfather"
    assert pairs[0]["sentence_b"] == f"{start} The grandson"
    assert pairs[2]["sentence_a"].endswith("? Jo") and pairs[2]["sentence_b"].endswith("? Al")
    assert reasons(store)[3] == "context_condition is 'disambig', the recipe takes ambig"
    assert reasons(store)[4].startswith("none of the labels 'grandfather/old, ")
    assert reasons(store)[4].endswith(" mean sentence a ('young'), expected one")


def bbq_row(category: str, groups: list[str], *answers: list[str]) -> dict[str, Any]:
    """An ambiguous row of BBQ's form: who each answer names, its label, its text if another."""
    info = {f"ans{k}": answer[:2] for k, answer in enumerate(answers)}
    return {
        "example_id": 0,
        "question_index": "1",
        "question_polarity": "neg",
        "context_condition": "ambig",
        "category": category,
        "answer_info": info,
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": groups},
        "context": "Two people came in.",
        "question": "Who was late?",
        **{f"ans{k}": answer[-1] for k, answer in enumerate(answers)},
        "label": 2,
    }


UNKNOWN = ["Can't be determined", "unknown"]
TRANS = ["Transgender women", "transgender men", "trans"]
BLACK = ["Black", "African American"]


@pytest.mark.parametrize(
    ("row", "a", "b"),
    [
        (
            (
                "Nationality",
                ["British"],
                ["British", "Europe", "A"],
                ["Thai", "Asia", "B"],
                UNKNOWN,
            ),
            "A",
            "B",
        ),
        (
            (
                "Nationality",
                ["Irish", "British"],
                UNKNOWN,
                ["French", "Europe", "French"],
                ["Irish", "Europe", "Irish"],
            ),
            "Irish",
            "French",
        ),
        (
            ("Age", ["old"], UNKNOWN, ["22-year-old", "nonOld", "A"], ["78-year-old", "old", "B"]),
            "B",
            "A",
        ),
        (
            (
                "Gender_identity",
                TRANS,
                ["Ann", "nonTrans_F", "Ann"],
                ["Max", "trans_M", "Max"],
                UNKNOWN,
            ),
            "Max",
            "Ann",
        ),
        (
            (
                "Gender_identity",
                TRANS,
                ["Max", "nonTrans_M", "Max"],
                UNKNOWN,
                ["Ann", "trans_F", "Ann"],
            ),
            "Ann",
            "Max",
        ),
        (
            (
                "Gender_identity",
                [*TRANS[:1], "trans"],
                ["A", "trans", "A"],
                ["B", "nonTrans", "B"],
                UNKNOWN,
            ),
            "A",
            "B",
        ),
        (
            ("Gender_identity", ["F"], ["man", "man", "man"], ["girl", "girl", "girl"], UNKNOWN),
            "girl",
            "man",
        ),
        (
            ("Race_ethnicity", BLACK, ["Jo", "F-White", "Jo"], ["Al", "F-Black", "Al"], UNKNOWN),
            "Al",
            "Jo",
        ),
        (
            (
                "Race_ethnicity",
                BLACK,
                ["African", "African", "African"],
                UNKNOWN,
                ["Al", "African American", "Al"],
            ),
            "Al",
            "African",
        ),
        (
            (
                "Race_x_SES",
                BLACK,
                ["Jo", "lowSES-F-White", "Jo"],
                ["Al", "highSES-F-Black", "Al"],
                UNKNOWN,
            ),
            "Al",
            "Jo",
        ),
        (
            ("SES", ["low SES"], ["poor", "lowSES", "A"], UNKNOWN, ["rich", "highSES", "B"]),
            "A",
            "B",
        ),
    ],
)
def test_the_answer_about_the_stereotyped_group_of_bbq(
    store: Store, tmp_path: Path, row: tuple[Any, ...], a: str, b: str
) -> None:
    _, (pair,) = taken(store, as_jsonl(tmp_path / "b.jsonl", [bbq_row(*row)]), recipe="bbq")
    assert pair["sentence_a"] == f"Two people came in. Who was late? {a}"
    assert pair["sentence_b"] == f"Two people came in. Who was late? {b}"


def test_what_a_recipe_does_not_use_is_said_by_category_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows in = pairs + rejects; fewer pairs of a category than its recipe expects: a warning."""
    two_men = bbq_row("Race_x_gender", BLACK, ["Jo", "M-Black"], ["Al", "M-Black"], UNKNOWN)
    old = bbq_row("Age", ["old"], ["Jo", "old"], ["Al", "nonOld"], UNKNOWN)
    rows = [{**old, "example_id": k} for k in range(4)]
    rows += [{**old, "example_id": k, "context_condition": "disambig"} for k in range(3)]
    rows += [{**two_men, "example_id": k} for k in range(2)]
    path, where = as_jsonl(tmp_path / "b.jsonl", rows), ["--warehouse", str(tmp_path / "w")]
    assert main(["benchmark", "import", "bbq", "--source", str(path), *where]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith(("Age", "Race", "Warning: "))] == [
        "Warning: 5 rows of bbq were not used: table `reject`",
        "Age: b.jsonl, row 5: context_condition is 'disambig', the recipe takes ambig "
        "(and 2 rows like it)",
        "Race_x_gender: b.jsonl, row 8: several of the labels \"Jo/M-Black, Al/M-Black, Can't "
        "be determined/unknown\" mean sentence a ('African American or Black'), expected one "
        "(and 1 row like it)",
        "Warning: Age: 4 pairs, the recipe expects 1,840 (is the source whole, and the same "
        "version?)",
        "Warning: Race_x_gender: 0 pairs, the recipe expects 5,360 (is the source whole, and the "
        "same version?)",
        "Warning: pairs that differ by words other than listed names, pronouns and gendered words: "
        "4, such as old / nonOld; PD also tells how frequent these are (subset `less baseline` has "
        "4 of them, less what the words score alone)",
        "Warning: fewer than 10 pairs say little: stereotyped group/other group (4)",
    ]
    assert main(["benchmark", "import", "bbq", "--source", str(path), "--dry-run"]) == 0
    assert "Race_x_gender: 0 pairs, the recipe expects 5,360" in capsys.readouterr().err


def test_only_a_star_stands_for_other_texts_in_a_recipes_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fixed category is that of rejects, too."""
    recipe, _ = ages(tmp_path)
    values = """sure = ["who?", "*[MASK]*"]\n[fixed]\ncategory = "age"\n"""
    recipe.write_text(RECIPE.replace('sure = ["yes"]\n', values))
    sure = ("who?", "A [MASK]\nran.", "whom", "A M ran.", "Who?", "[MASK")
    rows = [{"x": f"Old {k}.", "y": f"Young {k}.", "sure": s} for k, s in enumerate(sure)]
    source, where = as_csv(tmp_path / "s.csv", rows), ["--warehouse", str(tmp_path / "w")]
    command = ["benchmark", "import", "mine", "--source", str(source), "--recipe", str(recipe)]
    assert main([*command, *where]) == 0
    store = Store.open(tmp_path / "w")
    pairs = store.read("benchmark_pair", benchmark="mine").to_pylist()
    assert [p["source_row"] for p in pairs] == [1, 2]
    assert [*reasons(store)] == [3, 4, 5, 6]
    said = [line for line in capsys.readouterr().out.splitlines() if "the recipe takes" in line]
    assert said and all(line.startswith("age: ") for line in said), said


def hub_layout(directory: Path) -> Path:
    """StereoSet as the hub has it: a directory for each configuration."""
    inter = {**stereoset()[0], "id": "9", "context": "He is a cook."}
    for name, row in (("intrasentence", stereoset()[0]), ("intersentence", inter)):
        (directory / name).mkdir(parents=True)
        path = directory / name / "validation-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist([row]), path)
    return directory


def test_a_directory_of_several_configurations_is_refused(store: Store, tmp_path: Path) -> None:
    source = hub_layout(tmp_path / "stereoset")
    several = "holds several configurations or splits: intersentence, intrasentence"
    with pytest.raises(BadInput, match=rf"stereoset: {several} \(name one: --source .*/inters"):
        taken(store, source, recipe="stereoset")
    done, (pair,) = taken(store, source / "intrasentence", recipe="stereoset")
    assert (done.n_pairs, done.n_rejects, pair["pair_id"]) == (1, 0, "7")
    with pytest.raises(BadInput, match=r"context is 'He is a cook\.', the recipe takes \*BLANK\*"):
        taken(store, source / "intersentence", recipe="stereoset")
    done, _ = taken(store, source / "*" / "*.parquet", recipe="stereoset")
    assert (done.n_pairs, done.n_rejects) == (1, 1)


def test_what_datasets_writes_beside_the_data_is_no_data(store: Store, tmp_path: Path) -> None:
    """`dataset_infos.json` beside files, and a directory as `save_to_disk` writes it."""
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "dataset_infos.json").write_text('{"default": {}}')
    (beside / "state.json").write_text(json.dumps(ROWS[:1]))
    as_csv(beside / "pairs.csv", ROWS[1:])
    assert taken(store, beside)[0].n_pairs == 2
    saved = tmp_path / "saved"
    saved.mkdir()
    for name in ("dataset_info.json", "state.json"):
        (saved / name).write_text("{}")
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(saved / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    _, pairs = taken(store, saved)
    assert [p["sentence_a"] for p in pairs] == [row["sentence_a"] for row in ROWS]
    (saved / "data-00000-of-00001.arrow").write_bytes(b"no stream")
    with pytest.raises(
        BadInput, match=r"data-00000-of-00001\.arrow: can.t be read: Expected to read"
    ):
        taken(store, saved)


def test_a_recipe_of_ones_own(store: Store, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        'about = "Mine"\nsource = "Me"\n[columns]\nsentence_a = "x"\nsentence_b = "y"\n'
        '[fixed]\ngroup_a = "old"\ngroup_b = "young"\n[only]\nlang = ["en"]\n'
    )
    rows = [{"x": "Tea.", "y": "Rum.", "lang": lang} for lang in ("en", "fr")]
    path = as_csv(tmp_path / "p.csv", rows)
    done, (pair,) = taken(store, path, recipe=str(recipe))
    assert done.n_rejects == 1 and (pair["group_a"], pair["group_b"]) == ("old", "young")
    recipe.write_text(recipe.read_text() + "[colours]\n")
    with pytest.raises(BadInput, match=r"mine\.toml: unknown key colours"):
        taken(store, path, recipe=str(recipe))


RECIPE = """about = "Pairs about age"
source = "Me, ages.csv at commit 0123abc"
licence = "cc-by-4.0"
language = "en"
groups = ["old", "young"]
citation = '''
@misc{me2026ages,
  title = {Ages},
}
'''
[columns]
sentence_a = "x"
sentence_b = "y"
[only]
sure = ["yes"]
"""


def ages(tmp_path: Path) -> tuple[Path, Path]:
    """A recipe with all that sharing needs, and its three rows, of which one isn't sure."""
    recipe = tmp_path / "ages.toml"
    recipe.write_text(RECIPE)
    rows = [{"x": f"Old {k}.", "y": f"Young {k}.", "sure": "yes"} for k in "ab"]
    return recipe, as_csv(tmp_path / "rows.csv", [*rows, {**rows[0], "sure": "no"}])


def checked(recipe: Path | str, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """What an import's dry run says of a recipe; the last line is the status."""
    given = ["--recipe", str(recipe), *more, "--dry-run"]
    code = main(["benchmark", "import", "mine", *given])
    return [*capsys.readouterr().err.splitlines(), str(code)]


def test_a_recipe_that_is_fine_says_what_it_would_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, rows = ages(tmp_path)
    assert checked(recipe, capsys) == ["0"]
    words = (
        "pairs that differ by words other than listed names, pronouns and gendered words: 2, such "
        "as Old / Young; PD also tells how frequent these are (subset `less baseline` has 2 of "
        "them, less what the words score alone)"
    )
    assert checked(recipe, capsys, "--source", str(rows)) == [
        "rows.csv, row 3: sure is 'no', the recipe takes yes",
        f"Warning: {words}",
        "Warning: fewer than 10 pairs say little: old/young (2)",
        "0",
    ]
    recipe.write_text("\n".join(RECIPE.splitlines()[:2]) + "\n")
    missing = [line.split()[2] for line in checked(recipe, capsys) if "is missing" in line]
    assert missing == ["licence", "language", "groups", "citation"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('about = "Pairs about age"', "", "about is missing (expected a text)"),
        ("licence", "license", "unknown key license (known here: about, source, licence, "),
        ('"cc-by-4.0"', '"CC BY"', "licence: 'CC BY' is not an identifier (expected one such as"),
        ('"en"', '"English"', "language: 'English' is not the code of a language (expected"),
        ('["old", "young"]', '["old"]', "groups: ['old'] are not groups (expected two or more"),
        ('["old", "young"]', '"old"', "groups does not fit (expected a list of texts, not 'old')"),
        ("@misc{me2026ages,", "Me,", "citation: is not a BibTeX entry (expected @misc{key, "),
        ("[only]", "[fixed]\ngroup_b = 'new'\n[only]", "fixed.group_b: 'new' is not one of groups"),
        ("sentence_a", "sentence", "unknown key columns.sentence (known here: id, item, "),
        ('"x"', '"X"', "columns.sentence_a is 'X', a column that "),
        ("sure =", "surely =", "only.surely is 'surely', a column that "),
        ("[only]", "[only", "is not valid TOML"),
        ('["yes"]', '["maybe"]', "no row makes a pair (each reason is a line above)"),
    ],
)
def test_every_problem_of_a_recipe_names_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: str
) -> None:
    recipe, rows = ages(tmp_path)
    recipe.write_text(RECIPE.replace(old, new))
    *said, code = checked(recipe, capsys, "--source", str(rows))
    assert code == "3" and any(line in one and tmp_path.name in one for one in said), said


def test_all_problems_of_a_recipe_are_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, _ = ages(tmp_path)
    recipe.write_text(RECIPE.replace("cc-by-4.0", "CC BY").replace('"en"', "3"))
    *said, last, code = checked(recipe, capsys)
    assert [line.split()[1].rstrip(":") for line in said] == ["licence", "language"]
    assert "2 problems" in last and code == "3"


def test_what_a_recipe_says_stays_with_its_pairs(store: Store, tmp_path: Path) -> None:
    """In the card and in the report; gone with pairs that came otherwise."""
    recipe, rows = ages(tmp_path)
    where = ["--warehouse", str(store.root)]
    taken(store, rows, recipe=str(recipe))
    assert main(["benchmark", "export", "mine", "--out", str(tmp_path / "card"), *where]) == 0
    card = (tmp_path / "card" / "README.md").read_text()
    assert '\nlicense: "cc-by-4.0"\nlanguage: ["en"]\n' in card and "Pairs about age." in card
    assert "- Source: Me, ages.csv at commit 0123abc\n- Files: rows.csv" in card
    assert "## Citation\n\n```bibtex\n@misc{me2026ages," in card
    shown = {s.anchor: s for s in made(store, "provenance") if isinstance(s, Section)}
    (line,) = shown["benchmarks"].tables[0].rows
    assert [cell.text for cell in line] == [
        *("mine", "Me, ages.csv at commit 0123abc", "cc-by-4.0", "en")
    ]
    assert store.read("benchmark_fact", benchmark="mine").num_rows == 5
    taken(store, as_csv(tmp_path / "p.csv", ROWS))
    assert store.read("benchmark_fact", benchmark="mine").num_rows == 0


def test_groups_of_a_recipe(store: Store, tmp_path: Path) -> None:
    """They are those of the sentences, of a column they have to be, and templates are filled."""
    recipe, rows = ages(tmp_path)
    assert {(p["group_a"], p["group_b"]) for p in taken(store, rows, recipe=str(recipe))[1]} == {
        ("old", "young")
    }
    recipe.write_text(RECIPE.replace("[only]", 'group_b = "sure"\n[only]').replace("yes", "no"))
    with pytest.raises(BadInput, match="the group is 'no', the recipe names old, young"):
        taken(
            store,
            as_csv(tmp_path / "n.csv", [{"x": "A.", "y": "B.", "sure": "no"}]),
            recipe=str(recipe),
        )
    recipe.write_text(
        'about = "x"\nsource = "y"\ngroups = ["she", "they"]\n[columns]\ntemplate = "t"\n'
    )
    source = as_csv(tmp_path / "t.csv", [{"t": "The cook said {pronoun} was late."}])
    assert [p["sentence_b"] for p in taken(store, source, recipe=str(recipe))[1]] == [
        "The cook said they were late."
    ]


@pytest.mark.reference
def test_crows_pairs_as_released(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_DATA", str(data))
    done = import_benchmark(store, "crows-pairs", None, "r")
    assert (done.n_pairs, done.n_rejects) == (1508, 0)
    pairs = store.read("benchmark_pair", benchmark="crows-pairs").to_pylist()
    # Nangia et al., Table 2
    assert Counter(p["category"] for p in pairs) == {
        **{"race-color": 516, "gender": 262, "socioeconomic": 172, "nationality": 159},
        **{"religion": 105, "age": 87, "sexual-orientation": 84, "physical-appearance": 63},
        "disability": 60,
    }
    extra = Counter(json.loads(p["extra"])["stereo_antistereo"] for p in pairs)
    assert extra == {"stereo": 1290, "antistereo": 218}


def test_a_data_set_of_the_hub(tmp_path: Path) -> None:
    """All files of its directory, here two, named by where they are."""
    data = tmp_path / "data"
    data.mkdir()
    as_csv(data / "one.csv", ROWS)
    as_jsonl(data / "two.jsonl", [{**ROWS[0], "sentence_a": "Rich men sing."}])
    with hub({}, {"org/pairs": data}) as server:
        command = [sys.executable, "-c", _ENTRY, "benchmark", "import", "mine"]
        command += ["--source", "hf://datasets/org/pairs", "--warehouse", str(tmp_path / "w")]
        variables = environment(server, tmp_path / "home")
        done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = "SELECT pair_id, source_file FROM benchmark_pair WHERE benchmark = 'mine' ORDER BY ALL"
    rows = rows_of(tmp_path / "w", text)
    assert [r["source_file"] for r in rows] == ["one.csv", "one.csv", "two.jsonl"]
    assert rows[2]["pair_id"] == "two.jsonl:00001"


def test_the_command_from_a_csv_to_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, where = as_csv(tmp_path / "p.csv", ROWS), ["--warehouse", str(tmp_path / "w")]
    assert main(["benchmark", "import", "mine", "--source", str(path), *where]) == 0
    assert "mine 2 0" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert main(["benchmark", "show", "mine", *where]) == 0
    out = capsys.readouterr().out
    assert "Old men sing." in out and "Young men sing." in out
    assert main(["benchmark", "import", "nothing", *where]) == 2
    assert "give --source FILE" in capsys.readouterr().err
    rows = rows_of(
        tmp_path / "w", "SELECT benchmark, count(*) AS n FROM benchmark_pair GROUP BY ALL"
    )
    assert {r["benchmark"]: r["n"] for r in rows} == {"mine": 2}


def test_a_quote_left_open_in_the_last_column(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('a,b\nOld.,"New.\nOlder.,Newer.\nOldest.,Newest.\n')
    (row,) = rows_of_file(path)
    assert row.problem and "takes 3 lines into one field" in row.problem
    for text in ('"A ran.","B ran.\nB sat."', 'A ran.,"B ran,not\nB sat."', '"A\u2028b.",B.'):
        path.write_text(f"a,b\n{text}\n", "utf-8")
        assert [row.problem for row in rows_of_file(path)] == [None]


def _follows_rfc_4180(line: str) -> bool:
    """Whether one line of CSV is sound, letter by letter (RFC 4180, section 2, rules 5 to 7)."""
    state = "start"
    for letter in line:
        if letter == '"':
            states = {"start": "quoted", "quoted": "quote", "quote": "quoted"}
            if state not in states:
                return False
            state = states[state]
        elif letter == "," and state != "quoted":
            state = "start"
        elif state == "quote":
            return False
        elif state != "quoted":
            state = "plain"
    return state != "quoted"


@given(st.text(alphabet='a,\\" ', min_size=1, max_size=12))
def test_a_row_has_a_problem_exactly_if_it_breaks_the_rules_of_csv(line: str) -> None:
    ((_, problem),) = checked_rows(line + "\n", ",")
    assert (problem is None) == _follows_rfc_4180(line)


@given(
    st.lists(st.lists(st.text(alphabet='a,;\t\\" \n', max_size=6), min_size=2, max_size=2)),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_a_spreadsheet_writes_is_read_as_it_is(
    rows: list[list[str]], quoting: Any, end: str, delimiter: str, encoding: str
) -> None:
    """Quotes, line breaks and blanks in fields; every delimiter, line end and encoding."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end, delimiter=delimiter)
    writer.writerows([["x", "y"], *rows])
    content = decoded(text.getvalue().encode(encoding), "a.csv")
    found = list(records_of(content, "a.csv", ("x", "y")))
    assert [[r.fields["x"], r.fields["y"]] for r in found] == rows
    assert {r.problem for r in found} <= {None}


def test_a_row_that_breaks_the_quoting_rules_is_a_reject(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    lines = [r'"He said \"old\" twice.",B.', 'He said "old" twice.,B.', '"He "said" old.",B.']
    lines += ['"He said ""old"" twice.",B.', '"One, old.",One new.', ' "Old.",New.']
    path.write_text("\n".join(["sentence_a,sentence_b", *lines]))
    done, pairs = taken(store, path)
    assert [p["sentence_a"] for p in pairs] == ['He said "old" twice.', "One, old."]
    assert done.n_pairs + done.n_rejects == len(lines)
    assert sorted(reasons(store)) == [1, 2, 3, 6]
    assert all("a quote breaks the rules of CSV: put" in r for r in reasons(store).values())


def test_quotes_in_tab_separated_text_are_letters(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text('sentence_a\tsentence_b\nThe "old" man.\tB.\n"The \\"old\\" man."\tB.\n')
    _, pairs = taken(store, path)
    assert [p["sentence_a"] for p in pairs] == ['The "old" man.']
    assert "a quote breaks the rules" in reasons(store)[2]


def test_a_column_twice_in_a_header_is_an_error(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sentence_a,sentence_b,sentence_a\nTea.,Rum.,Gin.\n")
    with pytest.raises(BadInput, match=r"pairs\.csv: its header has sentence_a twice \(rename"):
        taken(store, path)
    with pytest.raises(BadInput, match="its header has sentence_a twice"):
        list(read_sentences(path, "sentence_b"))


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_a_csv_with_tabs_or_semicolons_is_read(
    store: Store, tmp_path: Path, delimiter: str
) -> None:
    path = as_csv(tmp_path / "pairs.csv", ROWS, delimiter)
    path.write_bytes(path.read_text("utf-8").encode("utf-16"))
    _, pairs = taken(store, path)
    assert [p["sentence_a"] for p in pairs] == [row["sentence_a"] for row in ROWS]
    assert [s.text for s in read_sentences(path, "category")] == ["age", "faith"]


def test_prompts_that_break_the_quoting_rules_are_rejects(tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    for header, column in (("text\n", "text"), ("", None)):
        path.write_text(f'{header}"He said \\"old\\" twice."\n"Someone ""ran""."\n')
        first, second = read_sentences(path, column)
        assert first.problem and "breaks the rules of CSV" in first.problem
        assert (second.text, second.problem) == ('Someone "ran".', None)
