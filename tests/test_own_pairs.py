"""Benchmarks that a user brings: CSV to figure, every row a pair or a reject with its reason."""

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.benchmarks import Parsed, import_benchmark
from plumbline.eval_workers.pairs.parsed_pairs import DIFFERS, shared_template
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.input.input_rows import checked_rows, records_of
from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill, score
from tests.released_files import write_csv


def recipe_of(directory: Path, **columns: str) -> str:
    """The path of a recipe that names the columns."""
    path = directory / "columns.toml"
    lines = "".join(f'{ours} = "{theirs}"\n' for ours, theirs in columns.items())
    path.write_text(f'about = "x"\nsource = "y"\n[columns]\n{lines}')
    return str(path)


def taken(store: Store, source: Path, **how: Any) -> tuple[Parsed, list[dict[str, Any]]]:
    done = import_benchmark(store, "mine", source, "r", **how)
    return done, store.read("benchmark_pair", benchmark="mine").to_pylist()


def reasons(store: Store) -> dict[int, str]:
    return {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}


def test_other_columns_take_the_figures_and_leave_the_scores(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "mine.csv"

    def imported(*rows: str) -> Parsed:
        source.write_text("id,sentence_a,sentence_b,job,direction,note\n" + "\n".join(rows) + "\n")
        recipe = recipe_of(tmp_path, cluster="job")
        return import_benchmark(store, "mine", source, "r", recipe=recipe)

    rows = ["1,She left.,He left.,nurse,a,x", "2,She sat.,He sat.,clerk,b,x"]
    imported(*rows)
    fill(store, "pair_score", [score("mine", k, 0.5) for k in "12"])
    fill(store, "benchmark_power", [{"benchmark": "mine"}])
    imported(*rows[::-1])
    assert store.read("benchmark_power", benchmark="mine").num_rows == 1
    imported(rows[0].replace("nurse", "clerk"), rows[1])
    assert store.read("benchmark_power", benchmark="mine").num_rows == 0
    assert store.read("pair_score", benchmark="mine").num_rows == 2


def test_bad_rows_are_kept_with_their_reason(store: Store, tmp_path: Path) -> None:
    good = {"sentence_a": "Tea.", "sentence_b": "Rum.", "weight": 1, "direction": "a", "id": "1"}
    good |= {"group_a": "x", "group_b": "y"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sentence_a": " "}, "empty"),
        ({"sentence_a": 3}, "sentence_a is 3"),
        ({"template": 3}, "template is 3"),
        ({"sentence_b": "Tea."}, "same"),
        ({"sentence_a": "Gin.", "id": "1"}, "identifier 1"),
        ({"weight": "much"}, "'much'"),
        ({"weight": -1}, "'-1'"),
        ({"direction": "up"}, "'up'"),
        ({"group_b": "x"}, "'x' and 'x'"),
        ({"group_a": "x/y"}, "'x/y'"),
        ({"note": "x \ud83d"}, "surrogate"),
        ({"\ud83d": "x"}, "surrogate"),
        ({"note": {"\ud83d": ["\ud83d"]}}, "surrogate"),
        ({"id": "1"}, "same as row 1"),
    ]
    rows = [good, *({**good, "id": f"{n}"} | change for n, (change, _) in enumerate(wrong, 2))]
    path = tmp_path / "pairs.jsonl"
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(lines.encode() + b"not json\n[]\n\xff\n")
    done, pairs = taken(store, path)
    assert (len(done.pairs), len(done.rejects)) == (1, len(wrong) + 3) and pairs[0]["weight"] == 1
    found = reasons(store)
    for number, (_, reason) in enumerate([*wrong, ({}, "JSON"), ({}, "JSON object")], 2):
        assert reason in found[number], number


def test_other_names_of_columns_and_further_columns(store: Store, tmp_path: Path) -> None:
    rows = [{"Old sentence": "Tea.", "new": "Rum.", "who": "Ann", "n": 3, "sure": "a", "": "9"}]
    path = write_csv(tmp_path / "pairs.csv", rows)
    columns = {"sentence_a": "Old sentence", "sentence_b": "new", "direction": "sure"}
    _, (pair,) = taken(store, path, recipe=recipe_of(tmp_path, **columns))
    assert (pair["sentence_a"], pair["direction"]) == ("Tea.", "a")
    assert json.loads(pair["extra"]) == {"who": "Ann", "n": "3"}
    with pytest.raises(BadInput, match=r"pairs\.csv: no column sentence_b \(it has Old sentence,"):
        taken(store, path, recipe=recipe_of(tmp_path, sentence_a="Old sentence"))
    with pytest.raises(BadInput, match="no column nowhere"):
        taken(store, path, recipe=recipe_of(tmp_path, **columns, category="nowhere"))


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
    assert len(done.rejects) == 1 and pairs[1]["sentence_a"] == "Five, she said.\nOld"
    assert "a quote left open takes 3 lines into one field" in reasons(store)[2]
    excerpts = [r["excerpt"] for r in store.read("reject").to_pylist()]
    assert "Three old" in excerpts[0]


def test_templates_are_filled_for_groups(store: Store, tmp_path: Path) -> None:
    templates = ["Ann said {pronoun} was late.", "{pronoun} likes cats and dogs.", "The {who} sat."]
    path = write_csv(tmp_path / "t.csv", [{"template": t} for t in templates])
    done, pairs = taken(store, path, groups=("she", "he", "they"))
    assert (len(done.pairs), len(done.rejects)) == (3, 2)
    found = reasons(store)
    assert "undecided" in found[2] and "placeholder" in found[3]
    sentences = {r["sentence_a"] for r in pairs} | {r["sentence_b"] for r in pairs}
    assert sentences == {f"Ann said {p} late." for p in ("she was", "he was", "they were")}
    assert {r["item_id"] for r in pairs} == {"00001"}


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=7)


@given(WORDS, WORDS)
def test_the_shared_words_are_in_both_sentences_in_order(a: list[str], b: list[str]) -> None:
    shared = shared_template(" ".join(a), " ".join(b))
    words = [w for w in shared.split() if w != DIFFERS]
    assert _is_within(words, a) and _is_within(words, b)
    assert (DIFFERS in shared) == (a != b)


def _is_within(words: list[str], text: list[str]) -> bool:
    rest = iter(text)
    return all(word in rest for word in words)


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
    assert (len(done.pairs), len(done.rejects)) == (1, 1) and pair["pair_id"] == "7"
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


def test_a_directory_of_several_configurations_is_refused(store: Store, tmp_path: Path) -> None:
    """StereoSet as the hub has it: a directory for each configuration, and what datasets adds."""
    source = tmp_path / "stereoset"
    inter = {**stereoset()[0], "id": "9", "context": "He is a cook."}
    for name, row in (("intrasentence", stereoset()[0]), ("intersentence", inter)):
        (source / name).mkdir(parents=True)
        path = source / name / "validation-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist([row]), path)
        (source / name / "dataset_infos.json").write_text('{"default": {}}')
    with pytest.raises(BadInput, match="intersentence, intrasentence"):
        taken(store, source, recipe="stereoset")
    done, (pair,) = taken(store, source / "intrasentence", recipe="stereoset")
    assert (len(done.pairs), len(done.rejects), pair["pair_id"]) == (1, 0, "7")
    done, _ = taken(store, source / "*" / "*.parquet", recipe="stereoset")
    assert (len(done.pairs), len(done.rejects)) == (1, 1)


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
    return recipe, write_csv(tmp_path / "rows.csv", [*rows, {**rows[0], "sure": "no"}])


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('about = "Pairs about age"', "", "about"),
        ("licence", "license", "key 'license': is unknown"),
        ('"cc-by-4.0"', '"CC BY"', "licence = 'CC BY'"),
        ('"en"', '"English"', "language = 'English'"),
        ('["old", "young"]', '["old"]', "groups: ['old']"),
        ("@misc{me2026ages,", "Me,", "citation = "),
        ("[only]", "[fixed]\ngroup_b = 'new'\n[only]", "fixed.group_b: 'new'"),
        ("sentence_a", "sentence", "key 'columns.sentence': is unknown"),
        ('"x"', '"X"', "no column X"),
        ("[only]", "[only", "TOML"),
        ('["yes"]', '["maybe"]', "3 rows rejected"),
    ],
)
def test_the_problem_of_a_recipe_names_its_field(
    store: Store, tmp_path: Path, old: str, new: str, named: str
) -> None:
    recipe, rows = ages(tmp_path)
    recipe.write_text(RECIPE.replace(old, new))
    with pytest.raises(BadInput, match=re.escape(named)):
        taken(store, rows, recipe=str(recipe))


def test_groups_of_a_recipe(store: Store, tmp_path: Path) -> None:
    """They are those of the sentences, of a column they have to be, and templates are filled."""
    recipe, rows = ages(tmp_path)
    _, pairs = taken(store, rows, recipe=str(recipe))
    assert {(p["group_a"], p["group_b"]) for p in pairs} == {("old", "young")}
    recipe.write_text(RECIPE.replace("[only]", 'group_b = "sure"\n[only]').replace("yes", "no"))
    other = write_csv(tmp_path / "n.csv", [{"x": "A.", "y": "B.", "sure": "no"}])
    with pytest.raises(BadInput, match="the group is 'no'"):
        taken(store, other, recipe=str(recipe))
    head = 'about = "x"\nsource = "y"\ngroups = ["she", "they"]\n'
    recipe.write_text(f'{head}[columns]\ntemplate = "t"\n')
    source = write_csv(tmp_path / "t.csv", [{"t": "The cook said {pronoun} was late."}])
    (pair,) = taken(store, source, recipe=str(recipe))[1]
    assert pair["sentence_b"] == "The cook said they were late."


@pytest.mark.reference
def test_crows_pairs_as_released(store: Store, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_DATA", str(data))
    done = import_benchmark(store, "crows-pairs", None, "r")
    assert (len(done.pairs), len(done.rejects)) == (1508, 0)
    pairs = store.read("benchmark_pair", benchmark="crows-pairs").to_pylist()
    # Nangia et al., Table 2
    assert Counter(p["category"] for p in pairs) == {
        **{"race-color": 516, "gender": 262, "socioeconomic": 172, "nationality": 159},
        **{"religion": 105, "age": 87, "sexual-orientation": 84, "physical-appearance": 63},
        "disability": 60,
    }
    extra = Counter(json.loads(p["extra"])["stereo_antistereo"] for p in pairs)
    assert extra == {"stereo": 1290, "antistereo": 218}


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
    st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_what_a_spreadsheet_writes_is_read_as_it_is(
    rows: list[list[str]], quoting: Any, end: str, delimiter: str, encoding: str
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end, delimiter=delimiter)
    writer.writerows([["x", "y"], *rows])
    content = text.getvalue().encode(encoding).decode("utf-8-sig")
    found = list(records_of(content, "a.csv", ("x", "y")))
    assert [[r.fields["x"], r.fields["y"]] for r in found] == rows
    assert {r.problem for r in found} <= {None}
