"""`plumbline disclosure`: prompts, probe and tune with real tiny models; bad input in a line."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.eval_workers.training.model_card import tuned_by
from plumbline.pipelines.command.base import Context
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.value_sources import made
from plumbline.pipelines.commands.disclosure import tuning as commands
from plumbline.pipelines.stages import Stages
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect, rows_of
from plumbline.warehouse.query.guard import lock
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, serving
from tests.page_queries import check_page
from tests.prompt_rows import list_file, put_prompts
from tests.test_mitigation_tune import PAIRS, TEST, TRAIN
from tests.test_report import Page, appendix
from tests.tiny_models import save

FIGURES = "GAS, GLD and ADD by set, model and topic"
EFFECTS = "What tuning changed"
SMALL = ["--steps", "6", "--rank", "4", "--batch-prompts", "8", "--learning-rate", "5e-3"]
#: Prompts of a set without topics, as many as an interval needs and one more.
ACTIONS = ("drank tea", "ran", "lost the key", "sings", "asked for cash", "waited")
DERIVED = [
    *(f"Someone {does}." for does in ACTIONS),
    "A person lost the key of a lady.",
    "A dog runs.",
]


class Ran:
    """A directory in which prompts, probe and tune have run, and what they said."""

    def __init__(self, here: Path) -> None:
        self.here, self.said, self.done = here, dict[str, str](), dict[str, Any]()
        self.where = ["--warehouse", str(here / "w")]
        self.words = ["--word-list", str(here / "mine.toml"), "--max-new-tokens", "6"]
        self.store = Store.open(here / "w")

    def probe(self, *sets: str, model: str = "base") -> list[str]:
        more = [*self.where, *self.words]
        return ["disclosure", "probe", *sets, "--model", str(self.here / model), *more]

    def tune(self, *more: str) -> list[str]:
        places = ["--out", str(self.here / "adapters")]
        where = [*places, *self.where, *self.words, *SMALL, *more]
        return ["disclosure", "tune", "train", "--model", str(self.here / "base"), *where]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`prompts` of sentences, `probe`, `tune --probe` on what was probed; without Prefect."""
    here = tmp_path_factory.mktemp("disclosure")
    save("neox", here / "base", seed=2)
    list_file(here / "mine.toml", PAIRS)
    (here / "some.txt").write_text("\n".join(DERIVED))
    one = Ran(here)
    put_prompts(one.store, "train", [*TRAIN, TEST[0].upper(), "The CEO met a man, and"])
    put_prompts(one.store, "test", TEST[:5])
    held = one.store.read("probe_prompt", probe_set="test").to_pylist()
    named = [{**r, "topic": "tea" if "tea" in r["prompt"] else "rest"} for r in held]
    one.store.replace("probe_prompt", named, {"probe_set": "test"}, "r")
    derive = ["disclosure", "prompts", "mine", "--derive", str(here / "some.txt"), *one.where]
    commands = {"prompts": derive, "probe": one.probe("test", "mine")}
    commands["tune"] = one.tune("--name", "calm", "--probe", "--test-sets", "test,mine")
    for name, command in commands.items():
        with _captured() as lines:
            assert main([*command, "--format", "json"]) == 0
        one.done[name] = json.loads(lines())
        one.said[name] = "\n".join(one.done[name]["said"])
    return one


class _captured:
    """What is written to the output and the error stream in the block."""

    def __enter__(self) -> Any:
        import contextlib
        import io

        self._text = io.StringIO()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(contextlib.redirect_stdout(self._text))
        return self._text.getvalue

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _rows(store: Store, query: str) -> list[dict[str, Any]]:
    return rows_of(store.root, query)


@pytest.mark.slow
def test_prompts_tells_rows_prompts_and_why_others_are_none(ran: Ran) -> None:
    counts = {"probe_set": "mine", "n_rows": 8, "n_prompts": 6, "n_rejected": 2}
    assert ran.done["prompts"]["rows"] == [counts]
    assert "\"holds the gendered word 'lady'\" (1)" in ran.said["prompts"]
    assert '"does not start with someone or a person" (1)' in ran.said["prompts"]
    assert ran.done["prompts"]["next"].startswith("plumbline disclosure probe mine --model")
    rows = ran.store.read("probe_prompt", probe_set="mine").to_pylist()
    assert {r["prompt"] for r in rows} == {f"My friend {does}, and" for does in ACTIONS}


def test_probe_says_what_sql_says(ran: Ran) -> None:
    found = _rows(
        ran.store,
        "SELECT * FROM disclosure() AS d JOIN gas AS g ON d.probe_set = g.probe_set AND "
        "d.model_key = g.model_key AND d.topic IS NOT DISTINCT FROM g.topic "
        "JOIN model AS m ON m.model_key = d.model_key WHERE m.adapter IS NULL",
    )
    assert sorted(str(r["topic"]) for r in found if r["probe_set"] == "test") == [
        *("None", "rest", "tea")
    ]
    rows = {(r["probe_set"], r["topic"]): r for r in ran.done["probe"]["rows"]}
    assert len(rows) == len(found) == 4
    for row in found:
        shown = rows[row["probe_set"], row["topic"]]
        for name in ("gas", "gas_f_of_gendered", "gld", "add_nats"):
            # Below five clusters, here two topics or the prompts of one, there is no interval.
            n_figures = row["n_gendered" if name == "gas_f_of_gendered" else "n_prompts"]
            ends = [row[f"{name}_low"], row[f"{name}_high"]]
            assert (None not in ends) == (row["probe_set"] == "mine" and n_figures >= 5)
            assert (row[name] is None) <= (n_figures == 0)
            assert [shown[name], shown[f"{name}_low"], shown[f"{name}_high"]] == [row[name], *ends]
    said = ran.said["probe"]
    assert "test by base, key " in said and "5 prompts, 5 probed and 5 continued now" in said
    n_tokens = {r["max_new_tokens"] for r in ran.store.read("sampling").to_pylist()}
    assert n_tokens == {6}


def test_tune_says_losses_leaks_and_where_the_adapter_is(ran: Ran) -> None:
    (row,) = ran.store.read("tuning").to_pylist()
    said = ran.said["tune"]
    assert "default: losses are means, gradients clipped at norm 1, base not quantised" in said
    shown = ran.done["tune"]["rows"][0]
    ends = ("distance_start_nats", "distance_end_nats", "difference_start", "difference_end")
    assert [shown[name] for name in ends] == pytest.approx([row[name] for name in ends])
    assert (row["n_prompts"], row["n_left_out"], row["n_leaks"]) == (24, 2, 1)
    assert (shown["n_left_out"], shown["n_leaks"]) == (2, 1)
    assert 'left out: "is in the test set test" (1)' in said
    assert "\"holds the gendered word 'man'\" (1)" in said
    path = ran.here / "adapters" / "calm"
    assert str(path) in ran.done["tune"]["files"] and (path / "adapter_model.safetensors").exists()
    effect = f"plumbline sql 'FROM tuning_effect' --warehouse {ran.here / 'w'}"
    assert ran.done["tune"]["next"] == effect
    keys = {r["model_key"] for r in ran.store.read("pronoun_probability").to_pylist()}
    assert len(keys) == 2 and {"calm"} == {
        str(r["adapter"]).partition("@")[0] for r in ran.done["tune"]["rows"][1:] if r["adapter"]
    }
    assert "5 prompts, 0 probed and 0 continued now" in said  # the base was measured before


@pytest.mark.slow
def test_a_second_run_computes_nothing(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from plumbline.eval_workers.models.kinds.causal_model import CausalModel

    def loaded(self: CausalModel) -> None:
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr(CausalModel, "loaded", property(loaded))
    assert main(ran.probe("test", "mine")) == 0
    assert "0 probed and 0 continued now" in capsys.readouterr().out
    command = ran.tune("--name", "calm", "--probe", "--test-sets", "test,mine")
    assert main(command) == 0
    assert "was there already" in capsys.readouterr().out


def test_smoothing_is_that_of_add(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ran.probe("mine"), "--smoothing", "0.01", "--format", "json"]) == 0
    query = "SELECT add_nats FROM disclosure(smoothing := 0.01) WHERE probe_set = 'mine'"
    (row,) = _rows(ran.store, f"{query} AND model_key = '{_base(ran)}'")
    done = json.loads(capsys.readouterr().out)
    assert [r["add_nats"] for r in done["rows"]] == [row["add_nats"]]
    assert "disclosure(smoothing := 0.01)" in done["next"]


def _base(ran: Ran) -> str:
    """The key of the base."""
    (row,) = _rows(ran.store, "FROM model WHERE adapter IS NULL")
    return str(row["model_key"])


def test_the_report_has_figures_tunings_and_what_changed(ran: Ran) -> None:
    page = Page(appendix(ran.store, ran.here / "report"))
    (figures,) = [rows for caption, rows in page.tables.items() if caption.startswith(FIGURES)]
    found = {
        (r["probe_set"], r["model_key"], r["topic"] or "all"): r
        for r in _rows(ran.store, "FROM disclosure()")
    }
    assert len(figures) == 1 + len(found) == 9
    adapter_of = {r["model_key"]: r["adapter"] for r in ran.store.read("model").to_pylist()}
    base, tuned = sorted({key for _, key, _ in found}, key=lambda key: adapter_of[key] is not None)
    shown = sorted(float(cells[8][1] or 0) for cells in figures[1:])
    assert shown == pytest.approx(sorted(r["gld"] for r in found.values()))
    few, more = _gas(ran.store, base, "test"), _gas(ran.store, base, "mine")
    assert f"test, 5 prompts: {few['gas']:.1f}% of base's" in page.text
    assert f"mine, 6 prompts: {more['gas']:.1f}% of base's" in page.text
    assert f"(95% interval {more['gas_low']:.1f} to {more['gas_high']:.1f})" in page.text
    (effects,) = [rows for caption, rows in page.tables.items() if caption.startswith(EFFECTS)]
    rows = {(c[1][0], c[4][0]): c for c in effects[1:]}
    assert {cells[3][0] for cells in rows.values()} == {"words"}
    for name in ("mine", "test"):
        shown = [float(rows[name, "GLD"][i][1] or 0) for i in (5, 6, 7)]
        before, after = (found[name, key, "all"]["gld"] for key in (base, tuned))
        assert shown == pytest.approx([before, after, after - before])
        assert f"calm: GLD of {name}, words " in page.text
    (row,) = ran.store.read("tuning").to_pylist()
    (caption,) = [c for c in page.tables if c.startswith("Adapters tuned")]
    cells = page.tables[caption][1]
    assert float(cells[11][1] or 0) == row["difference_end"] and cells[4][0] == "1"
    assert cells[5][0] == tuned_by(row) and "losses are means" in cells[5][0]
    listed = {c: rows[1:] for c, rows in page.tables.items() if "prompt by prompt" in c}
    assert sorted(c.split()[0] for c in listed) == ["mine", "mine", "test", "test"]
    each = _rows(ran.store, "FROM disclosed_continuation")
    assert sum(map(len, listed.values())) == len(each) == 2 * (5 + 6)
    shown = sorted(float(cells[2][1] or 0) for rows in listed.values() for cells in rows)
    assert shown == pytest.approx(sorted(r["p_f"] for r in each))
    drawn = {p.stem for p in (ran.here / "report").glob("disclosure-*.csv")}
    assert {"disclosure-losses-calm", "disclosure-gas-test-base"} <= drawn
    assert "disclosure-measures-all-sets-mine" in drawn
    assert any(name.startswith("disclosure-measures-test") for name in drawn)


def _gas(store: Store, key: str, probe_set: str) -> dict[str, float]:
    """GAS of a whole set in percent, with its ends where it has an interval."""
    query = f"FROM gas WHERE probe_set = '{probe_set}' AND topic IS NULL AND model_key = '{key}'"
    (row,) = _rows(store, query)
    names = ("gas", "gas_low", "gas_high")
    return {name: 100 * row[name] for name in names if row[name] is not None}


def test_every_query_of_the_report_gives_what_stands_above_it(ran: Ran) -> None:
    page = appendix(ran.store, ran.here / "again")  # that of a run doesn't know of its end
    connection = connect(ran.store.root)
    lock(connection)
    names = check_page(page, connection)
    for start in (FIGURES, EFFECTS, "Adapters tuned", "disclosure-measures", "disclosure-losses"):
        assert [n for n in names if n.startswith(start)], (start, names)


def test_a_report_of_nothing_names_the_command(store: Store, tmp_path: Path) -> None:
    page = Page(appendix(store, tmp_path / "report"))
    assert "plumbline disclosure probe topics --model ID_OR_PATH" in page.text
    assert "disclosure" not in page.anchors


def test_one_model_that_fails_stops_no_other(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    listed = f'[[model]]\nid = "{ran.here}/none"\n[[model]]\nid = "{ran.here}/base"\n'
    (ran.here / "list.toml").write_text(listed)
    command = ran.probe("mine")
    at = command.index("--model")
    command[at : at + 2] = ["--models", str(ran.here / "list.toml")]
    assert main(command) == 3
    captured = capsys.readouterr()
    assert "mine by base" in captured.out
    # A slow machine also says how long the report took.
    said = [
        x
        for x in captured.err.strip().splitlines()
        if not re.fullmatch(r"(report|measure .*): .*\d+ s", x)
    ]
    (failed, line) = said
    assert failed.startswith("failed: model ") and "1 of 2 failed" in line and "none" in line


def test_prompts_are_written_by_a_chat_model(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLUMBLINE_API_KEY", "none")
    replies = iter(["1. My friend owns a ferry.\n2. My friend is a woman.", "1. My friend skis."])
    command = ["disclosure", "prompts", "written", "--write", "My friend owns a canoe", "--n", "2"]
    (ran.here / "own.toml").write_text("write = 'Give me {n} lines such as {seed}.'")
    command += ["--wording", str(ran.here / "own.toml")]
    asked, where = [], [*ran.where, "--format", "json"]
    with serving(lambda prompt, count: asked.append(prompt) or Say(next(replies))) as server:
        assert main([*command, "--model", "m", "--base-url", server.url, *where]) == 0
    assert asked == [f"Give me {n} lines such as My friend owns a canoe." for n in (2, 1)]
    counts = {"probe_set": "written", "n_rows": 3, "n_prompts": 2, "n_rejected": 1}
    assert json.loads(capsys.readouterr().out)["rows"] == [counts]
    rows = ran.store.read("probe_prompt", probe_set="written").to_pylist()
    assert {r["prompt"] for r in rows} == {"My friend owns a ferry, and", "My friend skis, and"}
    ran.store.replace("probe_prompt", [], {"probe_set": "written"}, "r")


def _line(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [x for x in capsys.readouterr().err.strip().splitlines() if x.startswith("error:")]
    return line


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["prompts", "novel"], 2, "unknown (there are closed-world-frames, "),
        (["prompts", "a/b"], 2, "is not a valid name for a set of prompts"),
        (["prompts", "stsb"], 4, "set PLUMBLINE_DATA"),
        (["prompts", "stsb", "--source", "."], 3, "stsb_neutral_test.csv does not exist"),
        (["prompts", "mine", "--derive", "none.txt"], 2, "none.txt: doesn't exist"),
        (["prompts", "topics", "--column", "c"], 2, "--column: is for --derive"),
        (["prompts", "new", "--write", "My friend", "--source", "."], 2, "exclude each other"),
        (["prompts", "new", "--write", "My friend ran"], 2, "needs a chat model"),
        (["prompts", "topics", "--model", "m"], 2, "--model: is for --write"),
        (["probe", "novel", "--model", "m"], 2, "prompts 'novel': are not in the warehouse"),
        (["probe", "snli", "--model", "m"], 4, "set PLUMBLINE_DATA"),
        (["probe", "topics"], 2, "are both missing"),
        (["probe", "topics", "--model", "./nowhere"], 3, "does not exist"),
        (
            ["probe", "topics", "--model", "m", "--smoothing", "-1"],
            2,
            "smoothing = -1.0: should be",
        ),
        (
            ["probe", "topics", "--model", "m", "--max-new-tokens", "0"],
            2,
            "max_new_tokens = 0: should",
        ),
        (["probe", "topics", "--model", "m", "--word-list", "none"], 2, "are disclosure, gend"),
        (["tune", "topics", "--test-sets", "topics"], 2, "--test-sets: is topics too"),
        (["tune", "topics", "--dev-sets", "topics"], 2, "--dev-sets: is topics too"),
        (["tune", "topics", "--dev-sets", "novel"], 2, "prompts 'novel': are not in the"),
        (["tune", "topics", "--test-sets", "novel"], 2, "prompts 'novel': are not in the"),
        (["tune", "topics", "--probe"], 2, "--probe: leaves no set to measure"),
        (["tune", "topics", "--backend", "vllm"], 2, "--backend vllm: can't be trained"),
        (["tune", "topics", "--rank", "0"], 2, "rank = 0: should be greater than 0"),
        (["tune", "topics", "--as-published", "--clip-norm", "2"], 2, "clip_norm 2: isn't as"),
        (
            ["tune", "topics", "--as-published", "--quantisation", "int8"],
            2,
            "--quantisation int8: isn't as published",
        ),
        (
            *(["tune", "topics", "--distance", "0", "--total", "0", "--difference", "0"], 2),
            "losses: all have weight 0",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    for name in ("PLUMBLINE_API_KEY", "OPENAI_API_KEY", "PLUMBLINE_DATA", "PLUMBLINE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    base = ["--model", "m", "--name", "n"] if arguments[0] == "tune" else []
    assert main(["disclosure", *arguments, *base]) == status
    assert message in _line(capsys) and not list(tmp_path.iterdir())


def test_gendered_prompts_are_refused_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.txt"
    file.write_text("A person waves at a lady.\nSomeone sees his dog.\n")
    command = ["disclosure", "prompts", "m", "--derive", str(file), "--warehouse", f"{tmp_path}/w"]
    assert main(command) == 3
    assert "2 rows rejected; the first: holds the gendered word 'lady'" in _line(capsys)
    assert main([*command, "--allow-gendered"]) == 0
    assert Store.open(tmp_path / "w").read("probe_prompt", probe_set="m").num_rows == 2


def test_models_and_adapters_that_do_not_fit(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """Another base of the same shape; a vocabulary without the words of any pair."""
    if not (ran.here / "other").exists():
        save("neox", ran.here / "other", seed=9)
        save("gpt2-wordpiece", ran.here / "mute")
    adapter = ["--adapter", str(ran.here / "adapters" / "calm")]
    assert main([*ran.probe("mine", model="other"), *adapter]) == 3
    assert "trained on" in _line(capsys)
    far = ["--word-list", list_file(ran.here / "far.toml", [("ж", "ю")])]
    assert main([*ran.probe("mine", model="mute"), *far]) == 3
    assert "can't spell both words of any pair of the list far" in _line(capsys)


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_as_published_needs_bitsandbytes(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ran.tune("--name", "theirs", "--as-published")) == 4
    assert "--as-published: needs bitsandbytes (pip install bitsandbytes)" in _line(capsys)
    assert not ran.store.read("tuning", tuning="theirs").num_rows


def test_as_published_only_what_is_tuned_on_has_gendered_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set that is only evaluated is imported as `probe` imports it, whichever came first."""
    given = dict[str, bool]()

    def note(_store: Store, name: str, *_: object, allow_gendered: bool, **__: object) -> None:
        given[name] = allow_gendered

    def stop(*_: object) -> None:
        raise BadInput("prompts", "are enough here")

    monkeypatch.setattr(prompt_sets, "import_probe", note)
    monkeypatch.setattr(prompt_sets, "missing_sets", lambda store, names, data: names)
    monkeypatch.setattr(commands, "_tune", stop)
    what = {"sets": ("stsb-train",), "test_sets": "stsb", "dev_sets": ("snli-validation",)}
    tune = made(commands.Tune, {**what, "model": "m", "name": "n", "as_published": True})
    with pytest.raises(BadInput, match="enough"):
        tune.run(Context(Store.open(tmp_path / "w"), "r", Stages()))
    assert given == {"stsb": False, "stsb-train": True, "snli-validation": True}


def test_tune_says_which_step_the_dev_set_chose(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    put_prompts(ran.store, "dev", TEST[6:9])
    command = ran.tune("--name", "chosen", "--checkpoint-steps", "2", "--dev-sets", "dev")
    assert main(command) == 0
    said = capsys.readouterr().out
    (row,) = ran.store.read("tuning", tuning="chosen").to_pylist()
    assert f"the adapter is that of step {row['chosen_step']}: " in said and row["dev_loss"] > 0
    assert "3 prompts of dev" in said and (row["test_sets"], row["n_dev_prompts"]) == (
        "mine, test",
        3,
    )
    ran.store.replace("probe_prompt", [], {"probe_set": "dev"}, "r")
    page = Page(appendix(ran.store, ran.here / "chosen"))
    (caption,) = [c for c in page.tables if c.startswith("Adapters tuned")]
    (cells,) = [r for r in page.tables[caption][1:] if r[0][0] == "chosen"]
    assert cells[-2][0] == str(row["chosen_step"])
