"""`plumbline disclosure`: prompts, probe and tune with real tiny models; bad input in a line."""

import json
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.disclosure import prompt_sets
from plumbline.pipelines.command.base import Context
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.settings import made
from plumbline.pipelines.commands.model_commands import disclosure_tune as commands
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.query.connection import connect, lock, rows_of
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, serving
from tests.page_queries import check_page
from tests.prompt_rows import list_file, put_prompts
from tests.test_mitigation_tune import PAIRS, TEST, TRAIN
from tests.test_report import appendix
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
        self.here, self.done = here, dict[str, Any]()
        self.where = ["--warehouse", str(here / "w")]
        self.words = ["--word-list", str(here / "mine.toml"), "--max-new-tokens", "6"]
        self.store = Store.open(here / "w")

    def probe(self, *sets: str) -> list[str]:
        more = [*self.where, *self.words]
        return ["disclosure", "probe", *sets, "--model", str(self.here / "base"), *more]

    def tune(self, *more: str) -> list[str]:
        places = ["--out", str(self.here / "adapters"), *self.words[:2]]
        where = [*places, *self.where, *SMALL, *more]
        return ["disclosure", "tune", "train", "--model", str(self.here / "base"), *where]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`prompts` of sentences, `probe`, `tune`, and `probe` of the adapter; without Prefect."""
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
    commands["tune"] = one.tune("--name", "calm", "--test-sets", "test,mine")
    adapter = str(here / "adapters/calm")
    commands["tuned"] = [*one.probe("test", "mine"), "--adapter", adapter]
    for name, command in commands.items():
        with redirect_stdout(StringIO()) as printed:
            assert main([*command, "--format", "json"]) == 0
        one.done[name] = json.loads(printed.getvalue())
    return one


def test_probe_says_what_sql_says(ran: Ran) -> None:
    found = rows_of(
        ran.store.root,
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
    n_tokens = {r["max_new_tokens"] for r in ran.store.read("sampling").to_pylist()}
    assert n_tokens == {6}


def test_every_query_of_the_report_gives_what_stands_above_it(ran: Ran) -> None:
    page = appendix(ran.store, ran.here / "again")  # that of a run doesn't know of its end
    connection = connect(ran.store.root)
    lock(connection)
    names = check_page(page, connection)
    for start in (FIGURES, EFFECTS, "Adapters tuned", "disclosure-measures"):
        assert [n for n in names if n.startswith(start)], (start, names)


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
        tune.run(Context(Store.open(tmp_path / "w"), "r"))
    assert given == {"stsb": False, "stsb-train": True, "snli-validation": True}


def test_tune_says_which_step_the_dev_set_chose(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    put_prompts(ran.store, "dev", TEST[6:9])
    command = ran.tune("--name", "chosen", "--checkpoint-steps", "2", "--dev-sets", "dev")
    assert main(command) == 0
    said = capsys.readouterr().out
    (row,) = ran.store.read("tuning", tuning="chosen").to_pylist()
    assert f"the adapter is from step {row['chosen_step']}, " in said and row["dev_loss"] > 0
    assert "3 prompts of dev" in said
    assert (row["test_sets"], row["n_dev_prompts"]) == ("mine, test", 3)
    ran.store.replace("probe_prompt", [], {"probe_set": "dev"}, "r")
