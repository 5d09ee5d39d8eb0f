"""Messages of the house that take no more than a call or a command line, in one place to read.

A row has what is called or typed, the files beside it, and the whole message: what is wrong and
where, what was expected, and what to do. `...` stands for words of another library.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import plumbline
from plumbline.eval_workers.chat.client import checked_url, find_key
from plumbline.eval_workers.disclosure.set_measures import load_instructions
from plumbline.eval_workers.disclosure.written import load_wording as prompt_wording
from plumbline.eval_workers.fairpair import phi
from plumbline.eval_workers.fairpair.perturbation import terms
from plumbline.eval_workers.fairpair.perturbation.perturbers import (
    load_wording as perturbation_wording,
)
from plumbline.eval_workers.fairpair.probe_prompts import load as name_prompts
from plumbline.eval_workers.models import model_lists, open_backend
from plumbline.eval_workers.models.local.text_form import in_form
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.sampling_contract import SamplingOptions
from plumbline.eval_workers.pairs.benchmarks import default_source, find, import_benchmark
from plumbline.eval_workers.pairs.benchmarks.own.filler import filler
from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions
from plumbline.eval_workers.pairs.pronouns.pronoun_templates import fill, forms
from plumbline.eval_workers.scoring.choices.choice_questions import load as choice_wordings
from plumbline.eval_workers.scoring.measure import MeasureOptions
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.eval_workers.training.trained_models import plain_name
from plumbline.eval_workers.training.training_options import preset
from plumbline.eval_workers.writing import wordings
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.jobs.association.associations import WordWeights
from plumbline.jobs.kernel.corpus_options import CorpusOptions, VocabularyOptions
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.jobs.seed_words import english
from plumbline.jobs.seed_words.sample import neutral_interval, read_verdicts
from plumbline.jobs.spark.spark_session import settings_for
from plumbline.pipelines import spark_submit
from plumbline.pipelines.command.main import main
from plumbline.pipelines.command.value_sources import here, made
from plumbline.pipelines.commands.pipeline import Pipeline
from plumbline.pipelines.pipeline_plan import make_plan
from plumbline.pipelines.report.write import write_report
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import BadInput, MissingComponent, PlumblineError, UsageProblem
from plumbline.warehouse.input.shards import expand_shards
from plumbline.warehouse.options import make
from plumbline.warehouse.query import connection
from plumbline.warehouse.storage.store import Store

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


def settings(path: Path) -> Pipeline:
    return made(Pipeline, {}, None, here(Pipeline, path, {}))


def plan(**options: object) -> object:
    return make_plan(made(Pipeline, options))


def client(url: str, **environment: str) -> str:
    return find_key(checked_url(url), environment)


def taken(path: Path) -> object:
    return import_benchmark(store(), "mine", path, "run")


def word_list(path: Path) -> object:
    return wordlists.load(str(path))


def model_list(path: Path) -> object:
    return model_lists.load(str(path))


def swapped(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


COUNTED = ("she", "he", "her", "queen")
NOBLES = """
description = "nobles"
source = "made up for this test"
pairs = [{ female = "queen", male = "king" }, { female = "she", male = "he", weight = 2 }]
targets = ["they"]
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
TERMS = 'version = "1"\nlanguage = "en"\naxis = "gender"\ngroups = ["m", "f"]\n'


# fmt: off
COMMAND_LINES = [
    Typed("scoer", 2, "No such command 'scoer'. Did you mean ..."),
    Typed("lists", 2, "No such command 'lists'. Did you mean ..."),
    # without a warehouse: the command that makes one
    Typed("why tea", 3, "warehouse out/warehouse: ..."),
    Typed("corpus list", 3, "warehouse out/warehouse: ..."),
    Typed("corpus words --corpus c", 3, "warehouse out/warehouse: ..."),
    Typed("benchmark show b", 3, "warehouse out/warehouse: ..."),
    Typed("score --model m --benchmark b", 3, "warehouse out/warehouse: ..."),
    Typed("disclosure sweep topics --model m --by decoding", 3, "warehouse out/warehouse: ..."),
    Typed("benchmark import-ratings a.csv", 3, "warehouse out/warehouse: ..."),
    Typed("measure", 3, "warehouse out/warehouse: ..."),
    Typed("runs", 3, "warehouse out/warehouse: ..."),
    Typed("measure --warehouse none", 3, "warehouse none: ..."),
    Typed("report --warehouse none", 3, "warehouse none: ..."),
    Typed("sql --warehouse none", 3, "warehouse none: ..."),
    # settings
    Typed("runs", 2, "plumbline.toml: key 'dta': ...", {"plumbline.toml": "dta = 'data'\n"}),
    Typed("runs", 2, "plumbline.toml: warehouse = 3: ...", {"plumbline.toml": "warehouse = 3\n"}),
    Typed("doctor --settings pipeline --conf none.toml", 2, "settings file none.toml: ..."),
    Typed("doctor --settings scores", 2, "command scores: ..."),
    Typed("pipeline --benchmarks winobias", 2, "setting model: ..."),
    Typed("pipeline --benchmarks winobias --model gpt2", 4, "benchmark winobias: ..."),
    Typed("pipeline --benchmarks winobas --model gpt2", 2, "benchmark 'winobas': ..."),
    Typed("pipeline --conf nowhere.toml", 2, "settings file nowhere.toml: ..."),
    # corpus
    Typed("corpus pack nowhere --out a.jsonl.zst", 3, "texts nowhere: ...", is_recorded=True),
    Typed("corpus pack empty --out a.jsonl.zst", 3, "texts empty: ...", {"empty/": ""}, True),
    Typed("corpus pack a.txt --out a.zip", 3, "--out a.zip: ...", {"a.txt": "Tea."}, True),
    Typed("corpus count a.txt --corpus c", 3, "shard a.txt: ...", {"a.txt": "Tea."}),
    Typed("corpus count empty --corpus c", 3, "shard empty: ...", {"empty/": ""}),
    Typed("corpus count a.jsonl --corpus ''", 2, "corpus: ...", {"a.jsonl": '{"text": "Tea."}\n'}),
    Typed(f"corpus count a.jsonl --corpus a --min-count {'9' * 20}", 2,
        "min_count = 99999999999999999999: ...", {"a.jsonl": '{"text": "Tea."}\n'}),
    # benchmarks
    Typed("benchmark build use-5 --offline", 2, "benchmark 'use-5': ..."),
    Typed("benchmark build a/b --offline", 2, "benchmark 'a/b': ..."),
    Typed("benchmark build demo --model m", 2, "seed words: ..."),
    Typed("benchmark build demo --corpus c --warehouse w", 2, "model: ..."),
    Typed("benchmark build demo --corpus c --model m --warehouse w", 2,
        "seed words of corpus 'c': ..."),
    Typed("benchmark build demo --offline --replay", 2, "--replay and --offline: ..."),
    Typed("benchmark build demo --config nowhere.toml", 2, "config nowhere.toml: ..."),
    Typed("benchmark build demo --config mine.toml", 2, "config mine.toml: key 'modle': ...",
        {"mine.toml": "modle = 'm'"}),
    Typed("benchmark build demo --config mine.toml", 2,
        "config mine.toml: n_sentences = 'five': ...", {"mine.toml": "n_sentences = 'five'"}),
    Typed("benchmark build demo --config mine.toml", 2, "config mine.toml: judge = 1: ...",
        {"mine.toml": "judge = 1"}),
    Typed("benchmark build demo --config mine.toml", 2, "config mine.toml: words = 3: ...",
        {"mine.toml": "words = 3"}),
    Typed("benchmark build demo --config mine.toml", 2,
        "config mine.toml: token_limit = 'tokens': ...",
        {"mine.toml": "token_limit = 'tokens'"}),
    Typed("benchmark build demo --config mine.toml", 2, "config mine.toml: n_words = 0: ...",
        {"mine.toml": "n_words = 0"}),
    Typed("benchmark build demo --config mine.toml", 3,
        "config mine.toml: is not valid TOML: ...", {"mine.toml": "words = "}),
    Typed("benchmark build demo --config mine.toml", 2, "config mine.toml: --base-url: ...",
        {"mine.toml": "base_url = 'http://me:hidden@host/v1'"}),
    # scores
    Typed("score --benchmark demo --model a --models unstereoeval --warehouse w", 2,
        "--model and --models: ..."),
    Typed("score --benchmark demo --warehouse w", 2, "--model and --models: ..."),
    Typed("measure --eta -1 --warehouse w", 2, "eta = (-1.0,): should be greater than or ..."),
    # queries
    Typed("sql SELECT --warehouse w", 2, "SQL: Parser Error: ..."),
    Typed("sql 'SELEC 1' --warehouse w", 2, "SQL: Parser Error: ..."),
    Typed("sql 'SELECT nothing FROM word_delta' --warehouse w", 2, "SQL: Binder Error: ..."),
    Typed("sql 'SELECT 1 +' --warehouse w", 2, "SQL: Parser Error: ..."),
    Typed("sql \"'\" --warehouse w", 2, "SQL: Parser Error: ..."),
]

CALLS = [
    # paths and addresses of corpora
    Called("no file", lambda: expand_shards(["none-*.jsonl"]), "shards none-*.jsonl: ...",
        BadInput),
    Called("a directory", lambda: expand_shards(["folder"]), "shard folder: ...", BadInput,
        {"folder/": ""}),
    Called("a text", lambda: expand_shards(["a.txt"]), "shard a.txt: ...", BadInput,
        {"a.txt": "x"}),
    Called("ftp", lambda: expand_shards(["ftp://host/a.jsonl"]), "ftp://: ..."),
    Called("password", lambda: expand_shards(["https://u:secret@host/a.jsonl"]),
        "https://host/a.jsonl: ..."),
    Called("password of Azure",
        lambda: expand_shards(["abfss://c:secret@a.dfs.core.windows.net/a.jsonl"]),
        "abfss://a.dfs.core.windows.net/a.jsonl: ..."),
    Called("password alone", lambda: expand_shards(["https://:secret@host/a.jsonl"]),
        "https://host/a.jsonl: ..."),
    Called("bracket", lambda: expand_shards(["s3://bu[cket/a.jsonl"]),
        "s3://bu[cket/a.jsonl: is not an address: ..."),
    Called("bracket and password", lambda: expand_shards(["https://u:secret@[h/a?b=secret"]),
        "https://[h/a: is not an address: ..."),
    Called("signature", lambda: expand_shards(["https://host/a.jsonl?sig=secret"]),
        "https://host/a.jsonl: ..."),
    Called("shard that is a table", lambda: expand_shards(["a.csv"]), "shard a.csv: ...",
        BadInput, {"a.csv": "text\n"}),
    # counting
    Called("list of targets", lambda: CorpusOptions(targets="nobody").listed,
        "word list 'nobody': ..."),
    Called("rule", lambda: make(CorpusOptions, {"rule": "lines"}), "rule = 'lines': ..."),
    Called("memory", lambda: CorpusOptions(memory="1m"), "memory '1m': ..."),
    Called("min count", lambda: make(CorpusOptions, {"min_count": 0}), "min_count = 0: ..."),
    Called("no target", lambda: Targets(()), "targets: ..."),
    Called("target twice", lambda: Targets(("she", "she")), "targets she, she: ..."),
    Called("target of two words", lambda: Targets(("step-mother",)), "target 'step-mother': ..."),
    Called("target in capitals", lambda: Targets(("She",)), "target 'She': ..."),
    Called("hex number as master", lambda: settings_for("f8b44f", {}, {}), "Spark on f8b44f: ..."),
    Called("master without host", lambda: settings_for("spark:", {}, {}), "Spark on spark:: ..."),
    Called("web address as master", lambda: settings_for("http://host:7077", {}, {}),
        "Spark on http://host:7077: ..."),
    Called("wide digit as master", lambda: settings_for("\uff1d1", {}, {}), "Spark on ＝1: ..."),
    Called("spark-submit", lambda: spark_submit.check(Pipeline(master="yarn",
        spark_submit="no-such-submit")), "spark_submit no-such-submit: ...", MissingComponent),
    Called("distribution", lambda: spark_submit.check(Pipeline(master="yarn",
        spark_submit=sys.executable, dist="nowhere") ), "dist nowhere: ..."),
    Called("Spark's settings", lambda: spark_submit.check(Pipeline(master="yarn",
        spark_conf="nowhere.conf")), "Spark configuration 'nowhere.conf': ..."),
    # seed words
    Called("delta that is no number", lambda: neutral_interval([0.5, math.nan]),
        "word_delta: ...", BadInput),
    Called("delta without bound", lambda: neutral_interval([0.5, math.inf]), "word_delta: ...",
        BadInput),
    Called("quantile of 1", lambda: make(VocabularyOptions, {"quantile": 1.0}),
        "quantile = 1.0: ..."),
    Called("quantile below 0", lambda: make(VocabularyOptions, {"quantile": -0.1}),
        "quantile = -0.1: ..."),
    Called("score above 1", lambda: make(VocabularyOptions, {"min_score": 1.5}),
        "min_score = 1.5: ..."),
    Called("no language model", lambda: english.load_model(Path("none.ftz")),
        "language model none.ftz: ...", BadInput),
    of_file(english.load_model, "text.ftz", "not a model", "language model text.ftz: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\ntea,high\n", "v.csv, row 1: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\ntea,inf\n", "v.csv, row 1: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\ntea,1\ntea,2\n", "v.csv, row 2: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\nTea,1\n", "v.csv, row 1: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\nice cream,1\n", "v.csv, row 1: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\ntea\n", "v.csv, row 1: ..."),
    of_file(WordWeights.read, "v.csv", "word,weight\n", "v.csv: ..."),
    of_file(WordWeights.read, "v.csv", "word,toxicity\ntea,1\n", "v.csv: ..."),
    of_file(read_verdicts, "said.csv", "word,verdict,why\ntea,accept,\nrum,maybe,\n",
        "said.csv, row 2: ..."),
    of_file(read_verdicts, "said.csv", "word,verdict,why\n,accept,\n", "said.csv, row 1: ..."),
    of_file(read_verdicts, "said.csv", "word,verdict,why\ntea\n", "said.csv, row 1: ..."),
    of_file(read_verdicts, "said.csv", "word,verdict\ntea,accept\n", "said.csv: ..."),
    # pairs
    Called("benchmark of two parts", lambda: find("use"), "benchmark 'use': ..."),
    Called("benchmark of another length", lambda: find("use-6"), "benchmark 'use-6': ..."),
    Called("benchmark with an ending", lambda: find("winobias-x"), "benchmark 'winobias-x': ..."),
    Called("private module", lambda: find("_released"), "benchmark '_released': ..."),
    Called("benchmark without a name", lambda: find(""), "benchmark '': ..."),
    Called("reference data", lambda: default_source("use-5"), "benchmark use-5: ...",
        MissingComponent),
    Called("no source", lambda: import_benchmark(store(), "use-5", Path("none"), "r"),
        "benchmark use-5: ...", BadInput),
    Called("empty source", lambda: import_benchmark(store(), "use-5", Path("folder"), "r"),
        "folder: ...", BadInput, {"folder/": ""}),
    of_file(lambda path: import_benchmark(store(), "use-5", path, "r"), "USE-5.csv",
        ",template\n0,They ran.\n", "USE-5.csv: ..."),
    of_file(lambda path: import_benchmark(store(), "use-5", path, "r"), "USE-5.csv",
        ",word,template,is_natural\n0,tea,They ran.,True\n",
        "benchmark use-5: no usable pair in USE-5.csv, 1 rows ..."),
    of_file(lambda path: import_benchmark(store(), "winobias", path, "r"), "USE-5.csv", "",
        "benchmark winobias: USE-5.csv is a file, expected a ..."),
    Called("no file of pairs", lambda: taken(Path("none.csv")), "none.csv: ...", BadInput),
    of_file(taken, "notes.txt", "Tea.", "notes.txt: ..."),
    of_file(taken, "empty.csv", "", "benchmark mine: ..."),
    of_file(taken, "twice.csv", "sentence_a,sentence_b,sentence_a\nTea.,Rum.,Gin.\n",
        "twice.csv: ..."),
    of_file(taken, "utf16.csv", b"\xff\xfea",
        "utf16.csv: has the byte order mark of UTF-16 but is not: ..."),
    Called("name without a file", lambda: import_benchmark(store(), "mine", None, "r"),
        "benchmark 'mine': ..."),
    Called("recipe without a file", lambda: import_benchmark(store(), "winoqueer", None, "r"),
        "recipe winoqueer: ..."),
    Called("one group", lambda: filler(["she"]), "--groups she: ..."),
    Called("a group twice", lambda: filler(["she", "she"]), "--groups she,she: ..."),
    Called("unknown group", lambda: filler(["she", "thon"]), "group 'thon': ..."),
    Called("list of a placeholder", lambda: filler(["she", "he"], ["kin=kinship"]),
        "group 'she': ..."),
    Called("list of a pronoun", lambda: filler(fills=["pronoun=kinship"]),
        "--fill pronoun=kinship: ..."),
    Called("forms of an unknown group", lambda: forms("thon"), "group 'thon': ..."),
    Called("empty template", lambda: fill("", "f"), "template '': ...", BadInput),
    Called("blank template", lambda: fill("  ", "f"), "template ' ': ...", BadInput),
    Called("template without a pronoun", lambda: fill("no pronoun", "f"),
        "template 'no pronoun': ...", BadInput),
    Called("other placeholder", lambda: fill("{name} and {pronoun}", "f"),
        "template '{name} and {pronoun}': ...", BadInput),
    Called("numbered placeholder", lambda: fill("{pronoun3} ran", "f"),
        "template '{pronoun3} ran': ...", BadInput),
    Called("open brace", lambda: fill("{pronoun} {", "f"), "template '{pronoun} {': ...",
        BadInput),
    Called("control character", lambda: fill("{pronoun}\0", "f"),
        "template '{pronoun}\\x00': ...", BadInput),
    Called("tokens of a world", lambda: WorldOptions(n_tokens=0), "n_tokens = 0: ..."),
    Called("shards of a world", lambda: WorldOptions(n_shards=0), "n_shards = 0: ..."),
    Called("seed of a world", lambda: WorldOptions(seed=-1), "seed = -1: ..."),
    Called("another world", lambda: WorldOptions(world="x"), "world 'x': ..."),
    Called("no address", lambda: BuildSpec(model="m", base_url=""), "--base-url: ..."),
    Called("password of a server", lambda: client("https://user:secret99@host/v1"),
        "--base-url: ..."),
    Called("key in an address", lambda: client("https://host/v1?key=secret99"), "--base-url: ..."),
    Called("word as an address", lambda: client("secret99"), "--base-url: ..."),
    Called("no key", lambda: client("https://api.openai.com/v1"),
        "server https://api.openai.com/v1: ..."),
    Called("key with an accent", lambda: client("http://localhost/v1",
        PLUMBLINE_API_KEY="sk-déjà4711"), "PLUMBLINE_API_KEY: isn't a key: ..."),
    Called("key of two lines", lambda: client("http://localhost/v1",
        PLUMBLINE_API_KEY="sk-4711\nX: y"), "PLUMBLINE_API_KEY: isn't a key: ..."),
    Called("key in quotes", lambda: client("http://localhost/v1", PLUMBLINE_API_KEY="“sk-4711”"),
        "PLUMBLINE_API_KEY: isn't a key: ..."),
    Called("open bracket", lambda: checked_url("http://[::1"), "--base-url: ..."),
    Called("port too large", lambda: checked_url("http://h:99999/v1"), "--base-url: ..."),
    Called("port that is a letter", lambda: checked_url("http://h:x"), "--base-url: ..."),
    Called("address of two lines", lambda: checked_url("http://a\nb/v1"), "--base-url: ..."),
    Called("address with a space", lambda: checked_url("http://a b/"), "--base-url: ..."),
    Called("no wordings", lambda: wordings.load(Path("none.toml")), "prompts none.toml: ..."),
    of_file(wordings.load, "bad.toml", b"\xff\xfe", "prompts bad.toml: can't be read: ..."),
    Called("no sentences", lambda: make(BuildSpec, {"n_sentences": 0}), "n_sentences = 0: ..."),
    Called("sentences of no words", lambda: make(BuildSpec, {"max_words": 0}),
        "max_words = 0: ..."),
    Called("no round", lambda: make(BuildSpec, {"generate_rounds": 0}),
        "generate_rounds = 0: ..."),
    Called("no request at a time", lambda: make(BuildSpec, {"concurrency": 0}),
        "concurrency = 0: ..."),
    # models
    Called("dtype", lambda: make(ModelOptions, {"dtype": "int3"}), "dtype = 'int3': ..."),
    Called("batch", lambda: make(ModelOptions, {"batch_tokens": 0}), "batch_tokens = 0: ..."),
    Called("devices", lambda: make(ModelOptions, {"tensor_parallel": 0}),
        "tensor_parallel = 0: ..."),
    Called("quantisation", lambda: make(ModelOptions, {"quantisation": "int3"}),
        "quantisation = 'int3': ..."),
    Called("revision", lambda: make(ModelOptions, {"revision": 1}), "revision = 1: ..."),
    Called("per token", lambda: make(ModelOptions, {"per_token": "yes"}),
        "per_token = 'yes': ..."),
    Called("option", lambda: make(ModelOptions, {"dtyp": 1}), "key 'dtyp': ..."),
    Called("form of texts", lambda: make(ModelOptions, {"text_form": "lower"}),
        "text_form = 'lower': ..."),
    Called("text in a form", lambda: in_form("She ran.", "lower"), "--text-form lower: ..."),
    Called("GGUF", lambda: open_backend("m.gguf", ModelOptions()), "model m.gguf: ...", BadInput,
        {"m.gguf": "GGUF"}),
    Called("GGUF and a config", lambda: open_backend("m", ModelOptions()), "model m: ...",
        BadInput, {"m/q4.gguf": "GGUF", "m/config.json": "GGUF"}),
    Called("GGUF in a folder", lambda: open_backend("m", ModelOptions()), "model m: ...",
        BadInput, {"m/q4.gguf": "GGUF"}),
    Called("list of models", lambda: model_lists.load("nothing"), "model list 'nothing': ..."),
    Called("no list of models", lambda: model_lists.load("x.toml"), "model list x.toml: ..."),
    of_file(model_list, "mine.toml", b"\xff\xfe", "model list mine.toml: can't be read: ..."),
    Called("temperature of 0", lambda: SamplingOptions(temperature=0.0), "temperature 0: ..."),
    Called("temperature that is no number", lambda: SamplingOptions(temperature=math.nan),
        "temperature nan: ..."),
    Called("top-p of 0", lambda: SamplingOptions(top_p=0.0), "top_p 0: ..."),
    Called("top-p above 1", lambda: SamplingOptions(top_p=1.1), "top_p 1.1: ..."),
    Called("top-k of 0", lambda: SamplingOptions(top_k=0), "top_k 0: ..."),
    Called("no new tokens", lambda: SamplingOptions(max_new_tokens=0), "max_new_tokens 0: ..."),
    Called("benchmark to score", lambda: score_benchmarks(store(), "no such model", ["nothing"],
        ModelOptions(), "run"), "benchmark 'nothing': ..."),
    Called("benchmarks by commas", lambda: score_benchmarks(store(), "no such model", ["a,b"],
        ModelOptions(), "run"), "benchmark 'a,b': ..."),
    Called("preset", lambda: preset("large"), "preset 'large': ..."),
    Called("model above the folder", lambda: plain_name("../x"), "model name '../x': ..."),
    Called("model at the top", lambda: plain_name("/x"), "model name '/x': ..."),
    Called("model of two dots", lambda: plain_name(".."), "model name '..': ..."),
    Called("model of one dot", lambda: plain_name("."), "model name '.': ..."),
    Called("model without a name", lambda: plain_name(""), "model name '': ..."),
    Called("model in a folder", lambda: plain_name("a/b"), "model name 'a/b': ..."),
    Called("model with a zero byte", lambda: plain_name("a\0b"), "model name 'a\\x00b': ..."),
    Called("model that is hidden", lambda: plain_name(".hidden"), "model name '.hidden': ..."),
    # files of wordings, lists and models
    of_file(choice_wordings, "mine.toml", 'choose = ["{first} {second}"]\nmore = 1',
        "prompts mine.toml: ..."),
    of_file(choice_wordings, "mine.toml", 'choose = []', "prompts mine.toml: ..."),
    of_file(choice_wordings, "mine.toml", 'choose = ["{first} or {first}?"]',
        "prompts mine.toml: choose 1: ..."),
    of_file(choice_wordings, "mine.toml",
        'choose = ["{first} {second}", "{first} {second} {third}"]',
        "prompts mine.toml: choose 2: ..."),
    of_file(choice_wordings, "mine.toml", 'choose = ["{first!r} {second}"]',
        "prompts mine.toml: choose 1: ..."),
    of_file(choice_wordings, "mine.toml", 'choose = ["{first} {second"]',
        "prompts mine.toml: choose 1: ..."),
    Called("no wording of prompts", lambda: prompt_wording(Path("none.toml")), "none.toml: ..."),
    of_file(prompt_wording, "wording.toml", 'at_once = 0\nwrite = "{seed} {n}"',
        "wording.toml: ..."),
    of_file(prompt_wording, "wording.toml", 'at_once = true\nwrite = "{seed} {n}"',
        "wording.toml: ..."),
    of_file(prompt_wording, "wording.toml", 'write = 3', "wording.toml: ..."),
    of_file(prompt_wording, "wording.toml", 'write = "{seed}"', "wording.toml: write: ..."),
    of_file(prompt_wording, "wording.toml", 'write = "{seed} {n} {m}"',
        "wording.toml: write: ..."),
    of_file(prompt_wording, "wording.toml", 'write = "{"', "wording.toml: write: ..."),
    of_file(prompt_wording, "wording.toml", 'x', "wording.toml: is not valid TOML: ..."),
    of_file(perturbation_wording, "own.toml", 'perturb = "{text} {name}"',
        "own.toml: perturb: ..."),
    of_file(perturbation_wording, "own.toml", 'perturb = "{text} {name} {counterpart} {x}"',
        "own.toml: perturb: ..."),
    of_file(perturbation_wording, "own.toml", 'perturb = "{text} {name} {counterpart!r}"',
        "own.toml: perturb: ..."),
    of_file(perturbation_wording, "own.toml", 'perturb = "{text"', "own.toml: perturb: ..."),
    of_file(perturbation_wording, "own.toml", 'wording = "x"', "own.toml: ..."),
    of_file(terms.load, "own.toml", TERMS + 'noun = [["a", "b"]]', "own.toml: ..."),
    of_file(terms.load, "own.toml", TERMS + 'nouns = [["a", "b", "c"]]', "own.toml: ..."),
    of_file(terms.load, "own.toml", TERMS + 'nouns = [["a", "b"], ["c", "a"]]',
        "own.toml: nouns: ..."),
    of_file(terms.load, "own.toml", TERMS + 'pronouns = 1', "own.toml: ..."),
    of_file(terms.load, "own.toml", TERMS + '[grammar]\ncopula = "is"', "own.toml: ..."),
    of_file(terms.load, "own.toml", TERMS + '[first_names]\nx = "Ann"',
        "own.toml: first_names.x: ..."),
    of_file(terms.load, "own.toml", TERMS + '[grammar]\ncopulas = 3', "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'axis = "age"', ''), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'axis = "age"', 'axis = 3'), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'names =', 'naems ='), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '[["Grandpa Joe", "Little Joe"]',
        '[["Grandpa Joe"]'), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '["old", "young"]', '["old", "old"]'),
        "own.toml: groups: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '"guard", "editor"', '"guard", 3'),
        "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '"guard", "editor"', ''), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '{name} works', '{who} works'),
        "own.toml: templates.plain: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '{name} works', '{name works'),
        "own.toml: templates.plain: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'described =', 'descirbed ='),
        "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, '[templates]', 'templates = 3\n[t]'),
        "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'a = [""]', 'a = ""'), "own.toml: ..."),
    of_file(name_prompts, "own.toml", swapped(NAMES, 'axis = "age"', 'axis = "age'),
        "own.toml: is not valid TOML: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{word} {pronoun} {sentence}',
        '{word} {sentence}'), "prompts mine.toml: revise 1: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, 'again {sentence}',
        '{colour} {sentence}'), "prompts mine.toml: revise 2: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{n} of', 'some of'),
        "prompts mine.toml: generate: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{sentence} to {pronoun}',
        '{sentence!r} {pronoun}'), "prompts mine.toml: convert: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{sentence} to {pronoun}',
        '{sentence:9} {pronoun}'), "prompts mine.toml: convert: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{{likely}}', '{likely'),
        "prompts mine.toml: judge 1: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{{likely}}', '{word}'),
        "prompts mine.toml: judge 1: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{word} {pronoun} {sentence}',
        '{form} {word} {sentence}'), "prompts mine.toml: revise 1: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '{sentence} to {pronoun}',
        '{sentence}'), "prompts mine.toml: convert: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, 'judge =', 'jugde ='),
        "prompts mine.toml: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, 'convert = "',
        'other = "x"\nconvert = "'), "prompts mine.toml: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '"{sentence} to {pronoun}"', '3'),
        "prompts mine.toml: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, '"{{likely}} or not? {sentence}"',
        '[]'), "prompts mine.toml: ..."),
    of_file(wordings.load, "mine.toml", swapped(SENTENCES, 'generate =', 'generate'),
        "prompts mine.toml: is not valid TOML: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'male = "king"', 'mail = "king"'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, ', male = "king"', ''),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '"king"', '"King"'),
        "word list nobles.toml: pairs 1, b: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '"king"', '"old king"'),
        "word list nobles.toml: pairs 1, b: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '"king"', '"queen"'),
        "word list nobles.toml: pairs 1: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'weight = 2', 'weight = -1'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'weight = 2', 'weight = inf'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'weight = 2', 'weight = "2"'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '["they"]', '["they", "they"]'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, '["they"]', '"they"'),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'source = "made up for this test"', ''),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'pairs = [', 'words = ['),
        "word list nobles.toml: ..."),
    of_file(word_list, "nobles.toml", swapped(NOBLES, 'pairs = [', 'pairs = [['),
        "word list nobles.toml: is not valid TOML: ..."),
    Called("no word list", lambda: wordlists.load("none.toml"), "word list none.toml: ..."),
    of_file(word_list, "gendered.toml", NOBLES, "word list gendered.toml: ...", UsageProblem),
    of_file(word_list, "latin.toml", NOBLES.replace("nobles", "nöbles").encode("latin-1"),
        "word list latin.toml: can't be read: ..."),
    of_file(word_list, "bare.toml", 'description = "d"\nsource = "s"\ntargets = ["they"]',
        "word list bare.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nworkers = 0',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nn_parameters = 7.5',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nsize = 3', "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\n[[model]]\nid = 3',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nbatch_tokens = "9"',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nbatch_tokens = true',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\nrevision = 1',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\ndtype = "float16"', "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = ""', "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a"\n\n[[model]]\nid = "a"',
        "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '[[model]]\nid = "a\n',
        "model list mine.toml: is not valid TOML: ..."),
    of_file(model_list, "mine.toml", 'models = ["a"]', "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", 'model = ["a"]', "model list mine.toml: ..."),
    of_file(model_list, "mine.toml", '', "model list mine.toml: ..."),
    # disclosure and FairPair
    of_file(load_instructions, "a.toml", 'told = ["x"]', "a.toml: unknown key told ..."),
    of_file(load_instructions, "a.toml", 'instructions = ["x", " "]', "a.toml: instructions 2 ..."),
    of_file(load_instructions, "a.toml", 'instructions = ["x", "y", " x"]',
        "a.toml: instructions: ..."),
    of_file(load_instructions, "a.toml", "instructions = []", "a.toml: instructions ..."),
    Called("form of an instruction", lambda: SamplingOptions(instruction="Be fair.",
        form="system"), "form 'system': ..."),
    Called("empty instruction", lambda: SamplingOptions(instruction=" \n"),
        "instruction ' \\n': ..."),
    Called("no prompts of names", lambda: name_prompts(Path("none.toml")), "none.toml: ..."),
    Called("no scoring function", lambda: phi.find("mood"), "scoring function 'mood': ..."),
    # statistics and report
    Called("epsilon below 0", lambda: make(MeasureOptions, {"epsilon": -1.0}),
        "epsilon = -1.0: ..."),
    Called("eta that is no number", lambda: make(MeasureOptions, {"eta": (math.nan,)}),
        "eta = (nan,): should be less than or equal ..."),
    Called("base of 1", lambda: make(MeasureOptions, {"log_base": (10.0, 1.0)}),
        "log_base = (10.0, 1.0): should be greater ..."),
    Called("report of nothing", lambda: write_report(Path("none"), Path("out")),
        "warehouse none: ...", BadInput),
    Called("report in a file", lambda: write_report(store(), Path("file")),
        "report file: cannot be written: ...", BadInput, {"file": "in the way"}),
    # warehouse and settings
    Called("folder of something else", lambda: Store.open("mine"), "warehouse mine: ...",
        BadInput, {"mine/thesis.tex": ""}),
    Called("no warehouse", lambda: connection.connect(Path("nowhere")), "warehouse nowhere: ...",
        BadInput),
    Called("name with a question mark", lambda: Store.open("what?"), "warehouse what?: ..."),
    Called("query by name", lambda: connection.sql("metrics/nothing"),
        "SQL of metrics 'nothing': ..."),
    Called("argument", lambda: plumbline.open("w", create=True).corpus_count(corpus="a"),
        "shards: ..."),
    Called("no settings file", lambda: settings(Path("nowhere.toml")),
        "settings file nowhere.toml: ..."),
    of_file(settings, "wrong.toml", 'windw = 7', "wrong.toml: key 'windw': ...", UsageProblem),
    of_file(settings, "wrong.toml", 'window = "wide"', "wrong.toml: window = 'wide': ...",
        UsageProblem),
    of_file(settings, "wrong.toml", 'rule = 3', "wrong.toml: rule = 3: ...", UsageProblem),
    of_file(settings, "wrong.toml", 'min_count = 0', "wrong.toml: min_count = 0: ...",
        UsageProblem),
    of_file(settings, "wrong.toml", 'memory = "lots"', "wrong.toml: memory 'lots': ...",
        UsageProblem),
    of_file(settings, "wrong.toml", 'twin = 2', "wrong.toml: twin = 2: ...", UsageProblem),
    of_file(settings, "wrong.toml", '[fairpair]\nn = 1', "wrong.toml: [fairpair] n = 1: ...",
        UsageProblem),
    of_file(settings, "wrong.toml", '[fairpair]\nsamples = 9',
        "wrong.toml: key 'fairpair_samples': ...", UsageProblem),
    of_file(settings, "wrong.toml", '[measure]\neta = [-1.0]', "wrong.toml: ...", UsageProblem),
    of_file(settings, "wrong.toml", 'window = ',
        "settings file wrong.toml: is not valid TOML: ..."),
    Called("trained on no corpus", lambda: plan(benchmarks="winobias", model="train:small"),
        "model train:small: ..."),
    Called("unknown preset", lambda: plan(corpus="a/x.jsonl", model="train:huge"),
        "model train:huge: ..."),
    Called("twin of a corpus", lambda: plan(corpus="a/x.jsonl", twin=True), "setting twin: ..."),
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


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (choice_wordings, 'choose = ["{first} {second}"]'),
        (prompt_wording, 'at_once = 2\nwrite = "{seed} {n}"'),
        (perturbation_wording, 'perturb = "{text} {name} {counterpart}"'),
        (terms.load, TERMS),
        (name_prompts, NAMES),
        (wordings.load, SENTENCES),
        (word_list, NOBLES),
        (model_list, '[[model]]\nid = "a"'),
    ],
)
def test_without_its_fault_a_file_is_read(
    read: Callable[[Path], object], text: str, tmp_path: Path
) -> None:
    (tmp_path / "nobles.toml").write_text(text)
    assert read(tmp_path / "nobles.toml")
