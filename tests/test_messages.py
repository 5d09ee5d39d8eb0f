"""Messages that take a call or a command line: what is named; `...` stands for other words."""

import math
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import plumbline
from plumbline.eval_workers.chat.client import checked_url
from plumbline.eval_workers.disclosure.set_probing import load_instructions
from plumbline.eval_workers.disclosure.written import load_wording as prompt_wording
from plumbline.eval_workers.fairpair.perturbers import load_wording as perturbation_wording
from plumbline.eval_workers.fairpair.probe_prompts import load as name_prompts
from plumbline.eval_workers.models import model_lists, open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.pairs.benchmarks import default_source, find, import_benchmark
from plumbline.eval_workers.pairs.parsed_pairs import checked_groups
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill, forms
from plumbline.eval_workers.scoring.measure import MeasureOptions
from plumbline.eval_workers.training.trained_models import plain_name
from plumbline.eval_workers.training.training_options import preset
from plumbline.eval_workers.writing import wordings
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.jobs.association.associations import read_weights
from plumbline.jobs.kernel.corpus_options import CorpusOptions, VocabularyOptions
from plumbline.jobs.seed_words import vocabulary
from plumbline.jobs.spark.spark_session import settings_for
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.settings import configured, made
from plumbline.pipelines.commands.model_commands.score import Score
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.pipelines.pipeline_plan import make_plan
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError, UsageProblem
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import make
from plumbline.warehouse.query import connection
from plumbline.warehouse.storage.store import Store
from tests.test_fairpair_command import PROMPTS

Files = Mapping[str, str | bytes]
NONE: Files = MappingProxyType({})


class Typed(NamedTuple):
    """A command line, its exit status and what it says behind `error: `."""

    command: str
    status: int
    message: str
    files: Files = NONE
    #: It leaves the row of a run that failed.
    is_recorded: bool = False


class Called(NamedTuple):
    """What is wrong, a call, and the message of its error."""

    wrong: str
    call: Callable[[], object]
    message: str
    error: type[PlumblineError] = UsageProblem
    files: Files = NONE


def of_file(
    read: Callable[[Path], object],
    name: str,
    text: str | bytes,
    message: str,
    error: type[PlumblineError] = BadInput,
) -> Called:
    """A file that can't be used, by the function that reads it."""
    return Called(message[:60], lambda: read(Path(name)), message, error, {name: text})


def store() -> Store:
    """The empty warehouse of the working directory."""
    return Store.open("w")


def settings(path: Path) -> Score:
    return made(Score, {"model": "m", "benchmark": "b"}, configured(Score, path, {}))


def word_list(path: Path) -> object:
    return wordlists.load(str(path))


def model_list(path: Path) -> object:
    return model_lists.load(str(path))


def swapped(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


NOBLES = """
description = "nobles"
source = "made up for this test"
groups = ["female", "male"]
pairs = [{ a = "queen", b = "king" }, { a = "she", b = "he", weight = 2 }]
unpaired = ["they"]
"""
NAMES = """
language = "en"
axis = "age"
groups = ["old", "young"]
names = [["Grandpa Joe", "Little Joe"], ["Old Ann", "Young Ann"]]
occupations = ["guard", "editor"]
descriptors = [[], "kind person", ["honest person", "owl"]]
[templates]
plain = "{name} works as {a_occupation}."
described = "{name}, {a_descriptors}, works as {a_occupation}."
[articles]
a = [""]
an = ["e", "o", "honest"]
"""
SENTENCES = """
generate = "{n} of {max_words} with {word} and {pronoun}"
revise = ["{word} {pronoun} {sentence}", "again {sentence}: {word}, {pronoun}, {max_words}"]
convert = "{sentence} to {pronoun}"
judge = "{{likely}} or not? {sentence}"
"""


SWEEP = "disclosure sweep topics --warehouse w --model m --by"


# fmt: off
COMMAND_LINES = [
    Typed("scoer", 2, "No such command 'scoer'. Did you mean ..."),
    # without a warehouse: the command that makes one
    Typed("corpus list", 3, "warehouse out/warehouse: ..."),
    Typed("measure --warehouse none", 3, "warehouse none: ..."),
    # settings
    Typed("doctor --config none.toml", 2, "settings file none.toml: ..."),
    Typed("pipeline --benchmarks winobias", 2, "setting model: ..."),
    # a shell's variable that isn't set: it would be the working directory
    Typed("corpus list --warehouse ''", 2, "warehouse: is empty ..."),
    Typed("disclosure tune topics --model '' --name a", 2, "model: is empty ..."),
    # disclosure
    Typed("disclosure prompts topics --max-requests 0", 2, "--max-requests: is for --write ..."),
    Typed("disclosure prompts novel", 2, "...'novel'..."),
    Typed("disclosure prompts stsb", 4, "...PLUMBLINE_DATA..."),
    Typed("disclosure prompts stsb --source .", 3, "...stsb_neutral_test.csv..."),
    Typed("disclosure prompts mine --derive none.txt", 2, "...none.txt..."),
    Typed("disclosure prompts topics --column c", 2, "--column..."),
    Typed("disclosure prompts topics --model m", 2, "--model..."),
    Typed("disclosure prompts new --write 'My friend' --source .", 2, "--source..."),
    Typed("disclosure prompts new --write 'My friend ran'", 2, "--write..."),
    Typed("disclosure probe topics --model m --word-list none", 2, "...none..."),
    Typed("disclosure tune topics --test-sets topics --model m --name n", 2, "--test-sets..."),
    Typed("disclosure tune topics --dev-sets topics --model m --name n", 2, "--dev-sets..."),
    Typed("disclosure tune topics --test-sets novel --model m --name n", 2, "...'novel'..."),
    Typed("disclosure tune topics --distance 0 --total 0 --difference 0 --model m --name n", 2,
        "...losses..."),
    Typed(f"{SWEEP} decoding --form chat", 2, "--form chat: ..."),
    Typed(f"{SWEEP} instruction --n 2", 2, "--n 2: ..."),
    Typed(f"{SWEEP} words", 2, "...--by..."),
    Typed(f"{SWEEP} instruction --instructions none.txt", 2, "...none.txt..."),
    Typed(f"{SWEEP} instruction --form system", 2, "...'system'...", is_recorded=True),
    Typed(f"{SWEEP} decoding --temperature 0", 2, "temperature 0: ...", is_recorded=True),
    Typed(f"{SWEEP} decoding --temperature warm", 2, "--temperature warm: ...", is_recorded=True),
    Typed(f"{SWEEP} decoding --top-k 1.5", 2, "--top-k 1.5: ...", is_recorded=True),
    Typed(f"{SWEEP} decoding --top-p 1.5", 2, "top_p 1.5: ...", is_recorded=True),
    Typed(f"{SWEEP} decoding --temperature '' --top-p '' --top-k ''", 2, "sweep: ...",
        is_recorded=True),
    # FairPair
    Typed("fairpair run novel --model m", 2, "...'novel'..."),
    Typed("fairpair run common-sents", 2, "model: is missing..."),
    Typed("fairpair run common-sents --model m --folds 101", 2, "folds 101..."),
    Typed("fairpair run common-sents --model m --phi mood", 2, "...'mood'..."),
    Typed("fairpair run common-sents --model m --endpoint chat", 2, "...needs a server..."),
    Typed("fairpair run common-sents --model m --perturber-url http://h", 2, "perturber_url..."),
    Typed("fairpair run common-sents --model m --perturber p", 2, "...needs a key..."),
    Typed("fairpair run common-sents --model m --perturber p --perturber-url h", 2,
        "...--perturber-url..."),
    Typed("fairpair run common-sents --model m --prompts none.toml", 2, "...none.toml..."),
    Typed("fairpair run mine --model m --prompts own.toml", 2, "...not in de (m, f)...",
        {"own.toml": PROMPTS.replace('"en"', '"de"')}),
    Typed("fairpair run common-sents --model ./nowhere", 3, "...nowhere..."),
    Typed("fairpair run common-sents --model m --base-url h", 2, "--base-url..."),
    Typed("fairpair run common-sents --model m --base-url https://api.openai.com/v1 "
        "--max-requests 0", 3, "a request: has no stored reply; 0 of ...", is_recorded=True),
    # corpus
    Typed("corpus pack nowhere --out a.jsonl.zst", 3, "texts nowhere: ...", is_recorded=True),
    Typed("corpus count a.txt --corpus c", 3, "shard a.txt: ...", {"a.txt": "Tea."}),
    # an option of another paper
    Typed("reproduce fairpair --eta 0.5", 2, "--eta: ..."),
    Typed("reproduce fairpair --data .", 2, "--data: ..."),
    Typed("reproduce unstereoeval --data . --eta 0.5", 2, "--eta: ..."),
    Typed("reproduce unstereoeval --data . --as GPTJ=m", 2, "--as: ..."),
    Typed("reproduce anatomy --data . --as GPTJ=m", 2, "--as: ..."),
    # benchmarks
    Typed("benchmark build use-5 --offline", 2, "benchmark 'use-5': ..."),
    Typed("benchmark build a/b --offline", 2, "benchmark 'a/b': ..."),
    # scores
    Typed("score --model a --model=b --benchmark c", 2, "--model: is given 2 times ..."),
    Typed("pipeline --model a --models unstereoeval --warehouse w", 2,
        "settings model and models: ..."),
    # queries
    Typed("sql SELECT --warehouse w", 2, "SQL: Parser Error: ..."),
]

CALLS = [
    # paths and addresses of corpora
    Called("no file", lambda: expand_shards(["none-*.jsonl"]), "shards none-*.jsonl: ...",
        BadInput),
    Called("a directory", lambda: expand_shards(["folder"]), "shard folder: ...", BadInput,
        {"folder/": ""}),
    # counting
    Called("list of targets", lambda: CorpusOptions(targets="nobody").listed,
        "word list 'nobody': ..."),
    Called("hex number as master", lambda: settings_for("f8b44f", {}), "Spark on f8b44f: ..."),
    # seed words
    Called("quantile of 1", lambda: make(VocabularyOptions, {"quantile": 1.0}),
        "quantile = 1.0: ..."),
    Called("no language model", lambda: vocabulary.load_model(Path("none.ftz")),
        "language model none.ftz: ...", BadInput),
    of_file(read_weights, "v.csv", "word,weight\ntea,high\n", "v.csv, row 1: ..."),
    of_file(read_weights, "v.csv", "word,weight\ntea,inf\n", "v.csv, row 1: ..."),
    of_file(read_weights, "v.csv", "word,weight\ntea,1\ntea,2\n", "v.csv, row 2: ..."),
    # pairs
    Called("benchmark of two parts", lambda: find("use"), "benchmark 'use': ..."),
    Called("reference data", lambda: default_source("use-5"), "benchmark use-5: ...",
        MissingComponent),
    Called("no source", lambda: import_benchmark(store(), "use-5", Path("none"), "r"),
        "benchmark use-5: ...", BadInput),
    Called("empty source", lambda: import_benchmark(store(), "use-5", Path("folder"), "r"),
        "folder: ...", BadInput, {"folder/": ""}),
    of_file(lambda path: import_benchmark(store(), "use-5", path, "r"), "USE-5.csv",
        ",template\n0,They ran.\n", "USE-5.csv: ..."),
    Called("no file of pairs", lambda: import_benchmark(store(), "mine", Path("none.csv"), "r"),
        "none.csv: ...", BadInput),
    Called("name without a file", lambda: import_benchmark(store(), "mine", None, "r"),
        "benchmark 'mine': ..."),
    Called("one group", lambda: checked_groups(["she"]), "--groups she: ..."),
    Called("forms of an unknown group", lambda: forms("thon"), "group 'thon': ..."),
    Called("empty template", lambda: fill("", "f"), "template '': ...", BadInput),
    Called("no address", lambda: BuildSpec(model="m", base_url=""), "--base-url: ..."),
    Called("password of a server", lambda: checked_url("https://user:secret99@host/v1"),
        "--base-url: ..."),
    Called("open bracket", lambda: checked_url("http://[::1"), "--base-url: ..."),
    Called("no wordings", lambda: wordings.load(Path("none.toml")), "prompts none.toml: ..."),
    # models
    Called("GGUF", lambda: open_backend("m.gguf", ModelOptions()), "model m.gguf: ...", BadInput,
        {"m.gguf": "GGUF"}),
    Called("list of models", lambda: model_lists.load("nothing"), "model list 'nothing': ..."),
    Called("top-p above 1", lambda: SamplingOptions(top_p=1.1), "top_p 1.1: ..."),
    Called("preset", lambda: preset("large"), "preset 'large': ..."),
    Called("model above the folder", lambda: plain_name("../x"), "model name '../x': ..."),
    # files of wordings, lists and models
    Called("no wording of prompts", lambda: prompt_wording(Path("none.toml")), "none.toml: ..."),
    of_file(perturbation_wording, "own.toml", 'perturb = "{text} {name}"',
        "own.toml: perturb: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'names =', 'naems ='), "own.toml: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{word} {pronoun} {sentence}',
        '{word} {sentence}'), "prompts mine.toml: revise 1: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '"king"', '"King"'),
        "word list nobles.toml: pairs 1, b: ..."),
    Called("no word list", lambda: wordlists.load("none.toml"), "word list none.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nn_parameters = 7.5',
        "model list mine.toml: ..."),
    # disclosure and FairPair
    of_file(load_instructions, "a.toml", 'told = ["x"]', "a.toml: key 'told': is unknown ..."),
    # statistics and report
    Called("eta that is no number", lambda: make(MeasureOptions, {"eta": (math.nan,)}),
        "eta 1 = nan: should be less than or equal ..."),
    # warehouse and settings
    Called("folder of something else", lambda: Store.open("mine"), "warehouse mine: ...",
        BadInput, {"mine/thesis.tex": ""}),
    Called("query by name", lambda: connection.sql("metrics/nothing"),
        "SQL of metrics 'nothing': ..."),
    Called("argument", lambda: plumbline.open("w", create=True).corpus_count(corpus="a"),
        "shards: ..."),
    of_file(settings, "wrong.toml", "[score]\ndtype =",
        "settings file wrong.toml: is not valid TOML: ..."),
    Called("trained on no corpus", lambda: make_plan(made(Pipeline, {"model": "train:small"})),
        "model train:small: ..."),
]
# fmt: on


def _lie(files: Files) -> None:
    for name, content in files.items():
        path = Path(name)
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _is(said: str, message: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, message.split("..."))), said) is not None


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, and no settings of whoever runs the tests."""
    for name in [n for n in os.environ if n.startswith(("PREFECT_", "PLUMB", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("row", COMMAND_LINES, ids=lambda row: row.command[:60])
def test_typed(row: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    if "--warehouse w" in row.command:
        store()
    _lie(row.files)
    before = sorted(Path().rglob("*"))
    assert main(shlex.split(row.command)) == row.status
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert said.startswith("error: ") and _is(said.removeprefix("error: "), row.message), said
    assert row.is_recorded or sorted(Path().rglob("*")) == before, "nothing is written"


@pytest.mark.parametrize("row", CALLS, ids=lambda row: row.wrong)
def test_called(row: Called) -> None:
    _lie(row.files)
    with pytest.raises(row.error) as caught:
        row.call()
    assert type(caught.value) is row.error
    said = str(caught.value)
    assert "\n" not in said and _is(said, row.message), said
    assert not Path("w").exists() or not store().snapshot().tables, "nothing is written"
