"""Benchmarks and results on the hub: files that its validators take, uploads, reading back."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard, constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.benchmarks.own.pushed_set import fingerprint
from plumbline.eval_workers.pairs.sharing.dataset import dataset
from plumbline.eval_workers.pairs.sharing.upload import Repository
from plumbline.eval_workers.scoring.statistics.measure_options import MeasureOptions
from plumbline.eval_workers.scoring.statistics.metrics_by_sql import measure
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.input import remote_files as sources
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, serving
from tests.hub_server import Hub, environment, hub
from tests.hub_uploads import Uploads
from tests.metric_rows import association, fill, pair, score, scored_by

_REPO = "datasets/me/tea"
_WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
_PAIR = st.fixed_dictionaries(
    {
        "sentence_a": _WORD.map(lambda w: f"She {w}"),
        "sentence_b": _WORD.map(lambda w: f"He {w}"),
        "template": _WORD,
        "group_a": st.sampled_from(["female", "old"]),
        "group_b": st.sampled_from(["male", "young"]),
        "word": st.none() | _WORD,
        "split": st.none() | st.just("dev"),
        "stereotype": st.none() | st.sampled_from(["pro", "anti"]),
        "category": st.none() | _WORD,
        "direction": st.none() | st.sampled_from(["a", "b"]),
        "weight": st.none() | st.floats(0, 1e9),
        "extra": st.none() | _WORD.map(lambda w: json.dumps({"x": w})),
        "is_natural": st.none() | st.booleans(),
        "pronoun_first": st.booleans(),
        "source_row": st.integers(1, 10**9),
    }
)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that takes uploads, which this process's client talks to, with a token."""
    with hub({}, uploads=tmp_path / "hub") as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", "hf_writes")
        sources._file_system.cache_clear()
        yield server
        sources._file_system.cache_clear()


@pytest.fixture
def uploads(served: Hub) -> Uploads:
    assert served.uploads is not None
    return served.uploads


def _pairs(store: Store, benchmark: str = "tea") -> list[dict[str, object]]:
    """Five pairs of two kinds of groups, one of them unnatural."""
    old = {
        "group_a": "old",
        "group_b": "young",
        "sentence_a": "Old “tea”.",
        "template": "{differs}",
    }
    rows = [pair(benchmark, str(k), word=f"w{k}", is_natural=k != 2) for k in range(4)]
    rows.append(pair(benchmark, "é", **old, extra='{"age": 3}', weight=0.25, direction="a"))
    fill(store, "benchmark_pair", rows)
    return rows


def _push(store: Store, *more: str, name: str = "tea", repo: str = "me/tea") -> int:
    return main(["benchmark", "push", name, "--repo", repo, "--warehouse", str(store.root), *more])


def _line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error, which is one line."""
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1 and "Traceback" not in "".join(lines)
    return errors[0]


@pytest.mark.slow
def test_what_is_pushed_comes_back_the_same(
    store: Store, uploads: Uploads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _pairs(store)
    assert _push(store, "--license", "cc-by-4.0") == 0
    assert f"Pushed to {uploads.url}/{_REPO}, commit" in capsys.readouterr().out
    files = uploads.files(_REPO)
    names = {"README.md", "plumbline.json", "eval.yaml", "data.parquet", "left_out.parquet"}
    assert {*files} == names | {".gitattributes"}
    there = Store.open(tmp_path / "there")
    assert main(["benchmark", "import", f"hf://{_REPO}", "--warehouse", str(there.root)]) == 0
    assert main(["benchmark", "import", "cups", "--source", f"hf://{_REPO}", "--warehouse",
                 str(there.root)]) == 0  # fmt: skip
    for name in ("tea", "cups"):
        again = there.read("benchmark_pair", benchmark=name).sort_by("pair_id").to_pylist()
        blank = dict.fromkeys(again[0])
        assert again == [{**blank, **row, "benchmark": name} for row in before]
    assert fingerprint(again) == fingerprint(before)
    assert json.loads(files["plumbline.json"])["fingerprint"] == fingerprint(before)
    dry = tmp_path / "dry"
    capsys.readouterr()
    assert _push(store, "--dry-run", str(tmp_path / "bare")) == 0
    warned = [line for line in capsys.readouterr().out.splitlines() if "Warning" in line]
    assert [re.findall("--[a-z]+", line) for line in warned] == [["--license"], ["--language"]]
    assert _push(store, "--license", "cc-by-4.0", "--language", "en", "--dry-run", str(dry)) == 0
    assert "Warning" not in capsys.readouterr().out
    assert "language:\n- en\n" in (dry / "README.md").read_text(encoding="utf-8")
    assert _push(store, "--license", "cc-by-4.0", "--dry-run", str(dry)) == 0
    assert {path.name: path.read_bytes() for path in dry.iterdir()} == {n: files[n] for n in names}
    assert _push(there, "--license", "cc-by-4.0") == 0, "from there they are the same pairs"
    data = [name for name in names if name.endswith(".parquet")]
    assert [uploads.files(_REPO)[name] for name in data] == [files[name] for name in data]


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(_PAIR, min_size=1, max_size=4))
def test_any_pairs_come_back(
    rows: list[dict[str, Any]], uploads: Uploads, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Through the server, into another warehouse: every column of every pair."""
    if not any(row["is_natural"] is not False for row in rows):
        rows[0]["is_natural"] = None
    top = tmp_path_factory.mktemp("any")
    here, there = Store.open(top / "here"), Store.open(top / "there")
    pairs = [pair("tea", f"{k}", **row) for k, row in enumerate(rows)]
    fill(here, "benchmark_pair", pairs)
    uploads.commits.clear()
    sources._file_system.cache_clear()
    assert _push(here) == 0
    assert main(["benchmark", "import", f"hf://{_REPO}", "--warehouse", str(there.root)]) == 0
    found = there.read("benchmark_pair").sort_by("pair_id").to_pylist()
    expected = here.read("benchmark_pair").sort_by("pair_id").to_pylist()
    assert found == expected and fingerprint(found) == fingerprint(pairs)
    n_used = pq.read_metadata(io.BytesIO(uploads.files(_REPO)["data.parquet"])).num_rows
    assert n_used == sum(row["is_natural"] is not False for row in rows)


def test_the_card_the_metadata_and_the_tasks(store: Store) -> None:
    _pairs(store)
    made = dataset(store, "tea", "me/tea", "mit", language="en")
    card = DatasetCard(made.files["README.md"].decode())
    said = card.data.to_dict()
    assert (said["license"], said["language"], said["pretty_name"]) == ("mit", ["en"], "tea")
    assert said["tags"] == ["bias", "evaluation", "plumbline"]
    assert said["task_categories"] == ["text-generation"]
    (config,) = said["configs"]
    assert [one["split"] for one in config["data_files"]] == ["test", "left_out"]
    kinds = {f["name"]: f["dtype"] for f in said["dataset_info"]["features"]}
    for one, split in zip(config["data_files"], said["dataset_info"]["splits"], strict=True):
        table = pq.read_table(io.BytesIO(made.files[one["path"]]))
        assert kinds == {f.name: str(f.type).replace("double", "float64") for f in table.schema}
        assert split["num_examples"] == table.num_rows and split["num_bytes"] > 0
        assert f"| `{table.column_names[-1]}` |" in card.text
    found = json.loads(made.files["plumbline.json"])
    assert found["name"] == "tea" and found["files"] == [
        one["path"] for one in config["data_files"]
    ]
    tasks = yaml.safe_load(made.files["eval.yaml"])
    assert [task["id"] for task in tasks["tasks"]] == ["us_female_male", "us_old_young"]
    assert {(t["config"], t["split"]) for t in tasks["tasks"]} == {("default", "test")}
    assert made.n_pairs == {"female/male": 3, "old/young": 1} and made.n_left_out == 1


def test_a_limit_on_max_pmi_leaves_pairs_out_but_loses_none(store: Store) -> None:
    _pairs(store)
    fill(store, "pair_association", [association("tea", str(k), k / 2) for k in range(4)])
    from plumbline.eval_workers.pairs.sharing.benchmark_card import Constraint

    made = dataset(store, "tea", "me/tea", constraint=Constraint("c", eta_nats=0.5))
    used, left = (
        pq.read_table(io.BytesIO(made.files[f"{name}.parquet"])) for name in ("data", "left_out")
    )
    assert used.schema == left.schema and used["pair_id"].to_pylist() == ["0", "1"]
    assert left["max_pmi_nats"].to_pylist() == [1.0, 1.5, None]
    plain = dataset(store, "tea", "me/tea")
    assert made.fingerprint == plain.fingerprint and made.n_left_out == 3


def test_a_push_is_one_commit_and_again_none(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    _pairs(store)
    assert _push(store, "--private") == 0 and uploads.private == {_REPO}
    assert _push(store) == 0
    assert "which held the same already" in capsys.readouterr().out
    assert len(uploads.commits[_REPO]) == 2, "the repository as it was created, and the push"
    fill(store, "benchmark_pair", [pair("tea", "0")])
    uploads.files(_REPO)["NOTES.md"] = b"ours"
    assert _push(store) == 0
    assert len(uploads.commits[_REPO]) == 3
    assert uploads.files(_REPO)["NOTES.md"] == b"ours"
    assert "left_out.parquet" not in uploads.files(_REPO), "there is none any more"


@pytest.mark.parametrize(
    "readme",
    [b"# Theirs\n", b"---\npretty_name: cups\ntags:\n- plumbline\n---\n", b"---\ntags: [x]\n---\n"],
)
def test_what_others_put_there_stays(
    store: Store, uploads: Uploads, readme: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    _pairs(store)
    uploads.make(_REPO, {"README.md": readme, "data.csv": b"a\n"})
    assert _push(store) == 2
    assert "datasets/me/tea: holds something else than 'tea'" in _line(capsys)
    assert len(uploads.commits[_REPO]) == 1


@pytest.mark.parametrize(
    "place",
    [
        *("/lfs/", "/commit/"),
        pytest.param("/preupload/", marks=pytest.mark.slow),
        pytest.param("/objects/batch", marks=pytest.mark.slow),
    ],
)
def test_a_server_that_dies_half_way_shows_nothing_of_it(
    store: Store,
    uploads: Uploads,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    _pairs(store)
    uploads.dies_at = place
    assert _push(store) == 5
    line = _line(capsys)
    assert "datasets/me/tea: " in line and "no file was changed" in line
    assert {*uploads.files(_REPO)} == {".gitattributes"}
    uploads.dies_at = ""
    assert _push(store) == 0
    assert "data.parquet" in uploads.files(_REPO)


@pytest.mark.parametrize(
    ("token", "status", "says"),
    [
        ("", 2, "the hub wants a token to write (set HF_TOKEN, or run `hf auth login`)"),
        ("hf_wrong", 3, "the hub doesn't know the token: Invalid credentials"),
        ("hf_reads", 3, "the token may not write there: You don't have the rights"),
    ],
)
def test_tokens(
    store: Store,
    uploads: Uploads,
    token: str,
    status: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: token or None)
    uploads.tokens["hf_reads"] = "read"
    _pairs(store)
    assert _push(store) == status
    shown = capsys.readouterr()
    assert says in shown.err and _REPO not in uploads.commits
    assert not token or token not in shown.err + shown.out
    runs = [str(row) for row in store.read("run").to_pylist()]
    assert len(runs) == (status != 2), "wrong usage is no run"
    assert all("failed" in run and token not in run for run in runs)


@pytest.mark.parametrize(
    ("place", "status", "says", "ends"),
    [
        ("/commit/", 412, "it was changed meanwhile: stale (412) (run the same command again)", 5),
        ("/repos/create", 409, "it exists, but not for this token", 3),
        ("/api/validate-yaml", 400, "Invalid metadata in README.md", 3),
        ("/commit/", 500, "the hub refused it: hf*** is stale (500) (run the same command", 5),
    ],
)
def test_refusals_are_one_line(
    store: Store,
    uploads: Uploads,
    place: str,
    status: int,
    says: str,
    ends: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _pairs(store)
    said = "hfhf_writes is stale" if status == 500 else "stale"
    uploads.refused[place] = (status, said)
    assert _push(store) == ends
    assert says in _line(capsys)


def test_names_that_are_none(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("tea", "me/tea/cup", "me/té", ""):
        with pytest.raises(UsageProblem, match="expected OWNER/NAME"):
            Repository("dataset", name)
    _pairs(store)
    for language in ("English", "e", "- x"):
        assert _push(store, "--language", language, "--dry-run", str(store.root / "x")) == 2
        assert "is not the code of a language (expected one such as en)" in _line(capsys)
    assert _push(store, "--dry-run", str(store.root / "x"), name="none") == 2
    assert "plumbline benchmark import none" in _line(capsys)


@pytest.mark.parametrize("what", ["a pair", "metadata", "a column", "a NULL", "a path"])
def test_what_was_changed_is_not_taken_for_what_was_pushed(
    store: Store, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = _pairs(store)
    top = tmp_path / "copy"
    assert _push(store, "--dry-run", str(top)) == 0
    table = pq.read_table(top / "data.parquet")
    if what == "a pair":
        table = table.slice(1)
    elif what == "metadata":
        (top / "plumbline.json").write_text("[", encoding="utf-8")
    elif what == "a path":
        text = (top / "plumbline.json").read_text(encoding="utf-8")
        text = text.replace('"data.parquet"', '"../copy/data.parquet"')
        (top / "plumbline.json").write_text(text, encoding="utf-8")
    elif what == "a column":
        table = table.set_column(0, "pair_id", table["source_row"])
    else:
        table = table.set_column(2, "template", [[None] * table.num_rows])
    pq.write_table(table, top / "data.parquet")
    arguments = ["benchmark", "import", "tea", "--source", str(top), "--warehouse"]
    assert main([*arguments, str(store.root)]) == 3
    expected = {
        "a pair": "its pairs are not those that plumbline.json names",
        "a path": "its pairs are not those that plumbline.json names",
        "metadata": "plumbline.json: ",
        "a column": "column pair_id is int64 (expected string, without NULL)",
        "a NULL": "column template is null (expected string, without NULL)",
    }
    assert expected[what] in _line(capsys)
    assert store.read("benchmark_pair").num_rows == len(rows)


def test_an_address_that_holds_no_benchmark(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    uploads.make("datasets/me/cups", {"a.csv": b"sentence_a,sentence_b\nShe ran.,He ran.\n"})
    where = ["--warehouse", str(store.root)]
    assert main(["benchmark", "import", "hf://datasets/me/cups", *where]) == 2
    line = _line(capsys)
    assert "has no benchmark that was pushed there" in line
    assert "benchmark import NAME --source hf://datasets/me/cups" in line
    assert main(["benchmark", "import", "c", "--source", "hf://datasets/me/cups", *where]) == 0


@pytest.mark.slow
def test_the_environment_names_hub_and_token(store: Store, tmp_path: Path) -> None:
    _pairs(store)
    code = "from plumbline.pipelines.command.main import entry; entry()"
    command = [sys.executable, "-c", code, "benchmark", "push", "tea", "--repo", "me/tea"]
    with hub({}, uploads=tmp_path / "hub") as server:
        assert server.uploads is not None
        variables = environment(server, tmp_path / "home") | {"HF_TOKEN": "hf_writes"}
        done = subprocess.run(
            [*command, "--warehouse", str(store.root)],
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert server.uploads.tokens_seen == {"hf_writes"} and _REPO in server.uploads.commits
        assert "hf_writes" not in done.stdout + done.stderr


RATIOS = (0.1, -0.2, 9.0, 0.9, -0.7)
EPSILON = math.log(1.65)


def _scored(store: Store) -> None:
    """The five pairs with a model's scores: the unnatural one has the ratio 9."""
    rows = _pairs(store)
    with recorded(store, "score", {}) as run_id:
        scores = [
            {**score("tea", str(row["pair_id"]), ratio, "me/gpt"), "run_id": run_id}
            for row, ratio in zip(rows, RATIOS, strict=True)
        ]
        store.publish("pair_score", scores, unit="s", run_id=run_id)
    fill(store, "model", [scored_by("me/gpt")])
    limits = [association("tea", str(k), k / 2) for k in range(4)]
    fill(store, "pair_association", limits)
    _measure(store)


def _measure(store: Store) -> None:
    measure(store, "r", MeasureOptions())


def _results(store: Store, *more: str, repo: str = "me/gpt") -> int:
    where = ["--warehouse", str(store.root)]
    return main(["report", "push", "--repo", repo, "--model", "me/gpt", *more, *where])


def _entries(content: bytes) -> list[huggingface_hub.EvalResultEntry]:
    """As the hub's client reads them."""
    return huggingface_hub.parse_eval_result_entries(yaml.safe_load(content))


def test_results_that_nobody_measured_are_asked_for(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    _scored(store)
    store.replace("metric_value", [], {"benchmark": "tea"}, "r")
    assert _results(store) == 2
    assert "it has no US and PD yet, run `plumbline measure`" in _line(capsys)


@pytest.mark.slow
def test_results_are_a_pull_request_with_what_was_measured(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    _scored(store)
    assert _push(store) == 0
    uploads.make("models/me/gpt", {"README.md": b"# Theirs", "config.json": b"{}"})
    assert _results(store) == 0
    assert f"{uploads.url}/me/gpt/discussions/1" in capsys.readouterr().out
    ((name, files),) = uploads.pulls
    assert name == "models/me/gpt" and len(uploads.commits[name]) == 1
    assert {*files} == {".gitattributes", "README.md", "config.json", _RESULTS}
    gender, age = _entries(files[_RESULTS])
    of_gender = [RATIOS[k] for k in (0, 1, 3)]  # the third is unnatural
    us = 100 * sum(abs(r) <= EPSILON for r in of_gender) / 3
    pd = 100 * sum((r > EPSILON) - (r < -EPSILON) for r in of_gender) / 3
    assert (gender.dataset_id, gender.task_id) == ("me/tea", "us_female_male")
    assert gender.value == round(us, 2) and (age.task_id, age.value) == ("us_old_young", 0.0)
    assert gender.source_url is None and gender.verify_token is None
    (run,) = store.read("run").filter(pc.field("command") == "score").to_pylist()
    assert gender.date == f"{run['started_at']:%Y-%m-%d}"
    (row,) = rows_of(
        store.root,
        "FROM metric_value WHERE metric = 'us' AND subset = 'all' AND groups = 'female/male'",
    )
    assert row["n_clusters"] == 3 and row["value_low"] is row["value_high"] is None
    said = f"US {us:.1f}% (no interval), PD {pd:+.1f} points (no interval)"
    assert str(gender.notes).startswith(said)
    assert ", female/male, 3 pairs, log ratio within ln 1.65, " in str(gender.notes)
    assert str(age.notes).startswith("US 0.0% (no interval), PD -100.0 points (no interval)")
    files[_RESULTS] = b"[]\n"
    assert _results(store) == 0 and f"{uploads.url}/me/gpt/discussions/1" in capsys.readouterr().out
    assert len(uploads.pulls) == 1 and _entries(uploads.pulls[0][1][_RESULTS]) == [gender, age]
    assert _results(store) == 0 and len(uploads.pulls) == 1, "nothing has changed"
    uploads.closed.add(1)
    assert _results(store) == 0 and len(uploads.pulls) == 2, "what was closed stays closed"
    tasks = yaml.safe_load(uploads.files(_REPO)["eval.yaml"])["tasks"]
    assert {gender.task_id, age.task_id} == {task["id"] for task in tasks}


_RESULTS = ".eval_results/plumbline-tea.yaml"


def test_results_of_five_words_have_their_interval(store: Store, uploads: Uploads) -> None:
    ratios = (0.1, -0.2, 0.9, -0.7, 0.3, 0.6)
    pairs = [pair("tea", str(k), word=f"w{k}") for k in range(len(ratios))]
    fill(store, "benchmark_pair", pairs)
    fill(store, "pair_score", [score("tea", str(k), r, "me/gpt") for k, r in enumerate(ratios)])
    fill(store, "model", [scored_by("me/gpt")])
    _measure(store)
    assert _push(store) == 0
    uploads.make("models/me/gpt", {"README.md": b"# Theirs"})
    assert _results(store) == 0
    (entry,) = _entries(uploads.pulls[0][1][_RESULTS])
    rows = rows_of(store.root, "FROM metric_value WHERE metric IN ('us', 'pd') AND subset = 'all'")
    us, pd = sorted(rows, key=lambda row: row["metric"], reverse=True)
    low, high = 100 * us["value_low"], 100 * us["value_high"]
    assert 0 < low < 50 < high < 100 and pd["value_low"] < 100 / 6 < pd["value_high"]
    assert str(entry.notes).startswith(
        f"US 50.0% (95% interval {low:.1f} to {high:.1f}), PD +16.7 points "
        f"(95% interval {pd['value_low']:.1f} to {pd['value_high']:.1f}), female/male, 6 pairs"
    )


@pytest.mark.slow
def test_a_dry_run_of_results_writes_what_would_be_pushed(
    store: Store, uploads: Uploads, tmp_path: Path
) -> None:
    _scored(store)
    assert _push(store) == 0
    uploads.make("models/me/gpt")
    assert _results(store, "--direct", "--dry-run", str(tmp_path / "dry")) == 0
    assert len(uploads.commits["models/me/gpt"]) == 1
    assert "report push" not in store.read("run")["command"].to_pylist()
    assert _results(store, "--direct") == 0 and not uploads.pulls
    pushed = uploads.files("models/me/gpt")[_RESULTS]
    assert (tmp_path / "dry" / _RESULTS).read_bytes() == pushed
    assert "report push" in store.read("run")["command"].to_pylist()


@pytest.mark.slow
def test_results_are_of_the_pairs_that_were_pushed(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within eta, where the data set is; of other pairs than on the hub there is no result."""
    _scored(store)
    uploads.make("models/me/gpt")
    assert _results(store) == 2
    known = "tea: its data set on the hub is not known: run `plumbline benchmark push tea`, or give"
    assert known in _line(capsys)
    assert _push(store, "--corpus", "c", "--eta", "0.5") == 0
    assert _results(store) == 0
    (entry,) = _entries(uploads.pulls[-1][1][_RESULTS])  # pairs 0 and 1
    assert (entry.task_id, entry.value) == ("us", 100.0) and "2 pairs" in str(entry.notes)
    assert _push(store, "--corpus", "c", "--eta", "0.25") == 0
    capsys.readouterr()
    assert _results(store) == 2
    assert "tea: no US and PD over me/tea's pairs: run `plumbline measure`" in _line(capsys)
    assert _push(store) == 0
    kept = store.read("pair_score").sort_by("pair_id").to_pylist()[:2]
    store.replace("pair_score", kept, {"model_key": "key-me/gpt", "benchmark": "tea"}, "r")
    _measure(store)
    assert _results(store) == 0
    (entry,) = _entries(uploads.pulls[-1][1][_RESULTS])
    assert "2 of 3 pairs" in str(entry.notes) and entry.task_id == "us_female_male"
    store.replace("benchmark_pair", _pairs(store)[:2], {"benchmark": "tea"}, "r")
    capsys.readouterr()
    assert _results(store) == 2
    assert "tea: me/tea holds other pairs: push it again" in _line(capsys)


@pytest.mark.slow
def test_results_on_a_data_set_that_somebody_else_pushed(
    store: Store, uploads: Uploads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _scored(store)
    theirs = Store.open(tmp_path / "theirs")
    _pairs(theirs, "cups")
    assert _push(theirs, name="cups", repo="you/cups") == 0
    uploads.make("models/me/gpt")
    assert _results(store, "--dataset", "tea=you/cups") == 0
    entry, _ = _entries(uploads.pulls[-1][1][_RESULTS])
    assert entry.dataset_id == "you/cups" and "3 pairs" in str(entry.notes)
    capsys.readouterr()
    for wrong, says in {
        "tea": "is not a data set (give NAME=OWNER/NAME)",
        "tea=you": "expected OWNER/NAME",
        "tea=you/none": "has no benchmark that was pushed there",
    }.items():
        assert _results(store, "--dataset", wrong) == 2
        assert says in _line(capsys)
    assert _results(store, "--dataset", "tea=you/cups", repo="me/none") == 2
    assert "me/none: no such repository" in _line(capsys)


def test_what_is_pushed_goes_to_no_other_host(
    store: Store, uploads: Uploads, capsys: pytest.CaptureFixture[str]
) -> None:
    _pairs(store)
    with serving(lambda *_: Say("")) as other:
        uploads.elsewhere = other.url.removesuffix("/v1")
        assert _push(store) == 3
        error = _line(capsys)
        assert f"the hub redirects requests to {uploads.elsewhere}," in error, error
        assert "set HF_ENDPOINT" in error and not other.bodies and not other.paths
        uploads.elsewhere = ""
        assert _push(store) == 0
