"""The whole mission on real servers: count on Spark, build and filter a benchmark, score, query.

Deployments of `prefect.yaml` do it on a Prefect server of their own; what the warehouse then holds
comes from somewhere else in each case: counts from brute force, natural pairs from the script of
the chat server, scores from the model's own pass over one sentence.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys

import pytest

from plumbline.eval_workers.models.remote.vllm_client import interpreter
from plumbline.jobs.kernel.tokens.tokenizer import tokenize
from plumbline.warehouse import wordlists
from plumbline.warehouse.errors import MissingComponent
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.chat_server import Say, good_script, serving
from tests.oracle_counts import oracle
from tests.prefect_server import Place
from tests.tiny_models import KINDS, one_by_one, save

pytestmark = [pytest.mark.acceptance, pytest.mark.spark]

try:
    _, BACKEND = interpreter(), "vllm"
except MissingComponent:
    BACKEND = "transformers"
WORDS = ("kettle", "ladder", "violin", "anchor")
#: Each word n times with she and m times with he, both often enough for its lean to count.
LEANS = {word: (10 + 5 * k, 30 - 5 * k) for k, word in enumerate(WORDS)}
TEXTS = [
    text
    for word, (n_she, n_he) in LEANS.items()
    for text in [f"She sold the {word} again."] * n_she + [f"He sold the {word} again."] * n_he
]
SETTINGS = """
corpus = "texts/*.jsonl.zst"
master = "local[2]"
out = "out"
"""
BUILD = """
[benchmark.build]
model = "scripted"
base_url = "{url}"
words = {words}
n_sentences = 3
"""


def half_likely(prompt: str, count: int) -> Say:
    """Finds every sentence about a kettle unlikely."""
    if "likely" in prompt and "kettle" in prompt:
        return Say("Unlikely.")
    return good_script(prompt, count)


@pytest.fixture(scope="module")
def mission(place: Place) -> Place:
    """The place after the runs count, build, count again (constrains), score, report."""
    shards = place.work / "texts"
    shards.mkdir()
    for number in range(2):
        write_jsonl_zst(shards / f"{number}.jsonl.zst", TEXTS[number::2])
    save("gpt2", place.work / "tiny")
    with serving(half_likely) as server:
        text = BUILD.format(url=server.url, words=json.dumps(WORDS))
        backend = f'backend = "{BACKEND}"\n'
        (place.work / "plumbline.toml").write_text(SETTINGS + backend + text)
        config = {"config": "plumbline.toml"}
        for name, parameters in (
            ("count", config),
            ("build", {**config, "name": "demo"}),
            ("count", {**config, "benchmarks": ["demo"]}),
            ("score", {**config, "benchmarks": ["demo"], "model": "tiny"}),
            ("report", config),
        ):
            run = place.end(place.begin(name, **parameters))
            assert run["state"]["type"] == "COMPLETED", (name, run["state"]["message"])
        assert server.n_asked > 0
    return place


def plumbline(place: Place, *arguments: str) -> str:
    """What a command prints in the directory of the runs."""
    code = "import sys; from plumbline.pipelines.command.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=place.work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def query(mission: Place, text: str) -> list[dict[str, str]]:
    """The rows of `plumbline sql`, as CSV holds them."""
    return list(csv.DictReader(plumbline(mission, "sql", text, "--format", "csv").splitlines()))


def test_counts_and_max_pmi_are_those_of_brute_force(mission: Place) -> None:
    targets = wordlists.load("gendered").targets
    of = oracle(TEXTS, targets, "pairs", 10)
    found = query(mission, "SELECT word, n_word FROM word_count ORDER BY ALL")
    assert {r["word"]: int(r["n_word"]) for r in found} == of.words
    found = query(mission, "SELECT word, target, n_pair FROM pair_count ORDER BY ALL")
    assert {(r["word"], r["target"]): int(r["n_pair"]) for r in found} == of.pairs
    lean = {
        word: math.log(of.pairs[word, "she"] * of.words["he"])
        - math.log(of.pairs[word, "he"] * of.words["she"])
        for word in of.words
        if of.pairs[word, "she"] and of.pairs[word, "he"]
    }
    found = query(
        mission,
        "SELECT template, max_pmi_nats FROM pair_association JOIN benchmark_pair USING "
        "(benchmark, pair_id) WHERE contrast = 'she/he'",
    )
    assert found
    for r in found:
        words = tokenize(r["template"].replace("{pronoun}", " "), targets)
        leans = [lean[word] for word in words if word in lean]
        assert float(r["max_pmi_nats"]) == pytest.approx(max(leans, key=abs), abs=1e-6)


def test_the_benchmark_is_filtered_by_the_served_model(mission: Place) -> None:
    pairs = query(mission, "SELECT * FROM benchmark_pair ORDER BY pair_id")
    assert {r["word"] for r in pairs} == set(WORDS) and len(pairs) > len(WORDS)
    for r in pairs:
        assert (r["is_natural"] == "True") == ("kettle" not in r["template"]), r["template"]
        assert r["word"] in r["sentence_a"] and r["sentence_a"] != r["sentence_b"]


def test_scores_and_metrics_are_those_of_one_sentence_at_a_time(mission: Place) -> None:
    """And the metrics are on the page."""
    rows = query(
        mission,
        "SELECT sentence_a, sentence_b, logprob_a_nats, logprob_b_nats, is_natural FROM pair_score "
        "JOIN benchmark_pair USING (benchmark, pair_id) ORDER BY pair_id",
    )
    assert len(rows) == len(query(mission, "SELECT 1 FROM benchmark_pair"))
    for side in "ab":
        texts = [r[f"sentence_{side}"] for r in rows]
        alone = one_by_one(mission.work / "tiny", KINDS["gpt2"].bos, texts)
        for r, (logprob, _) in zip(rows, alone, strict=True):
            assert float(r[f"logprob_{side}_nats"]) == pytest.approx(logprob, abs=1e-3)
    ratios = [
        float(r["logprob_a_nats"]) - float(r["logprob_b_nats"])
        for r in rows
        if r["is_natural"] == "True"
    ]
    within = [abs(ratio) <= math.log(1.65) for ratio in ratios]
    found = query(
        mission,
        "SELECT value, n FROM metric_value WHERE metric = 'us' AND subset = 'all' "
        "AND benchmark = 'demo'",
    )
    assert [int(r["n"]) for r in found] == [len(within)]
    assert float(found[0]["value"]) == pytest.approx(sum(within) / len(within))
    assert "demo" in (mission.work / "out/report/index.html").read_text(encoding="utf-8")
