"""From seed words to a published benchmark, steps and command: scripted, replayed, offline."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.writing import build as steps
from plumbline.eval_workers.writing.build import not_kept, write_sentences
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.eval_workers.writing.offline import offline_pairs
from plumbline.pipelines.command.main import main
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, good_script, in_prose, serving
from tests.test_constrain import filled
from tests.test_generation import build, requests

WORDS = tuple(f"th{chr(97 + k // 8)}{chr(97 + k % 8)}ng" for k in range(40))
SPEC = BuildSpec(words=WORDS, model="scripted", n_sentences=3)


def imperfect(prompt: str, count: int) -> Say:
    """A model with faults of every kind, some for each word, by the word's place."""
    if prompt.startswith("Replace every pronoun"):
        sentence = prompt.rsplit("\n", 1)[1]
        right = sentence.replace(" her ", " his ")
        return Say("No idea." if WORDS[6] in sentence else right)
    if "likely" in prompt:
        return Say("Unlikely." if " dropped " in prompt else "Likely.")
    say = good_script(prompt, count)
    if "different" not in prompt:
        return say
    place = next(k for k, word in enumerate(WORDS) if f'"{word}"' in prompt)
    word, lines = WORDS[place], say.text.splitlines()
    pronoun = "She" if '"she"' in prompt else "He"
    if place % 4 == 0:
        lines[0] = f"1. {pronoun} left the room at once."
    if place % 5 == 0 and pronoun == "She":
        lines[1] = f"2. The {word} on the shelf was hers."
    if place % 6 == 0 and pronoun == "She":
        lines[2] = f"3. They saw her smile near the {word}."
    if place % 7 == 0 and pronoun == "He":
        lines[0] = f"1. {pronoun} took the {word} " + "very " * 9 + "far."
    return Say("\n".join(lines))


def _built(order: Build, spec: BuildSpec = SPEC) -> dict[str, Any]:
    """The steps one after the other, as the flow takes them."""
    words = steps.seed_words(order.store, spec)
    written = write_sentences(order, words, spec)
    found = steps.pair_sentences(order, written, spec)
    pairs, unnatural = steps.judge_pairs(order, found.pairs, spec)
    rejects = {"write": not_kept(written), "pair": found.rejects, "judge": unnatural}
    steps.publish(order, pairs, rejects, {})
    return steps.count(words, written, len(found.rejects), pairs)


def _pairs(store: Store) -> list[dict[str, Any]]:
    return store.read("benchmark_pair", benchmark="demo").to_pylist()


def _rejects(store: Store, step: str) -> list[dict[str, Any]]:
    rows = store.read("reject", stage="generate", subject=f"demo/{step}").to_pylist()
    return [{k: v for k, v in row.items() if k != "run_id"} for row in rows]


def test_replies_as_json_give_the_same_set_as_prose(tmp_path: Path) -> None:
    """Only the requests differ: their form is part of their key, and of what is sent."""
    spec = replace(SPEC, words=WORDS[:8])
    made, forms = [], []
    prose = str(in_prose(tmp_path / "prompts.toml"))
    for knows_schemas, prompts in ((True, ""), (False, ""), (False, prose)):
        store = Store.open(tmp_path / f"{knows_schemas}{bool(prompts)}")
        with serving(imperfect, knows_schemas=knows_schemas) as server:
            counts = _built(build(store, server), replace(spec, prompts=prompts))
        assert counts["n_in"] == counts["n_kept"] + counts["n_rejected"] + counts["n_revised"]
        assert counts["n_kept"] == counts["n_pairs"] + counts["n_unpaired"]
        rows = [_pairs(store), *(_rejects(store, step) for step in ("write", "pair", "judge"))]
        figures = ("n_rejected", "n_unpaired", "n_natural")
        written, unpaired, unnatural = (len(one) for one in rows[1:])
        expected = [written, unpaired, counts["n_pairs"] - unnatural]
        assert [counts[name] for name in figures] == expected and all(expected)
        made.append([counts, *map(_without_requests, rows)])
        ids = {row["request_id"] for row in requests(store)}
        forms.append((ids, ["response_format" in body for body in server.bodies]))
        replies = {row["request_id"]: row["reply"] for row in requests(store)}
        assert ({reply[:1] for reply in replies.values()} == {"{"}) == knows_schemas
        for pair in rows[0]:
            reply = replies[pair["source_file"]]
            assert pair["sentence_a"] in reply or pair["sentence_b"] in reply
    assert made[0] == made[1] == made[2]
    assert forms[0][0] == forms[1][0] and not forms[0][0] & forms[2][0]
    assert all(forms[0][1]) and not any(forms[2][1])


def _without_requests(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("source_file", "run_id")} for row in rows]


def test_two_words_with_the_same_sentence_make_one_pair(store: Store) -> None:
    def same(prompt: str, count: int) -> Say:
        if "likely" in prompt:
            return Say("Likely.")
        pronoun = "She" if '"she"' in prompt else "He"
        end = "here" if pronoun == "She" else "there"
        return Say(f"1. {pronoun} put the clock and the spoon {end}.\n2. At 5 p.m. "
                   f"{pronoun.lower()} sold a spoon and some clock.")  # fmt: skip

    spec = replace(SPEC, words=("clock", "spoon"), n_sentences=2, generate_rounds=1)
    with serving(same) as server:
        counts = _built(build(store, server), spec)
    assert (counts["n_pairs"], {p["word"] for p in _pairs(store)}) == (2, {"clock"})
    reasons = [r["reason"] for r in _rejects(store, "pair")]
    assert reasons.count("repeats a sentence of the word clock") == 2
    assert set(reasons) == {
        "repeats a sentence of the word clock",
        "a template can't keep the capitals of its pronouns",
    }


def test_no_pair_leaves_the_benchmark_as_it_was(store: Store) -> None:
    spec = replace(SPEC, words=("clock",), generate_rounds=1, n_sentences=1)
    hers = Say("1. The clock was hers and no other.")
    with serving(lambda prompt, count: hers) as server:
        with pytest.raises(BadInput, match="no sentence became a pair"):
            _built(build(store, server), spec)
        server.script = good_script
        _built(build(store, server, "run-2"), replace(spec, words=("spoon",)))
        before = _pairs(store)
        with pytest.raises(BadInput, match="no sentence became a pair"):
            _built(build(store, None, "run-3"), spec)
    assert _pairs(store) == before != []


def test_the_offline_writer() -> None:
    spec = BuildSpec(n_sentences=4)

    def written(words: list[str], **options: int) -> list[dict[str, object]]:
        return offline_pairs(None, "demo", words, replace(spec, **options))

    rows = written(["tea", "clock"])
    assert rows == written(["tea", "clock"]) != written(["tea", "clock"], seed=1)
    assert rows[8:] == written(["clock"])
    assert len({r["pair_id"] for r in rows}) == 16
    assert sum(bool(r["pronoun_first"]) for r in rows) == 8
    for row in rows:
        assert f'"{row["word"]}"' in str(row["template"]) and row["source_file"] == "offline-writer"
        assert len(str(row["sentence_a"]).split()) <= 10
    with pytest.raises(UsageProblem, match="frames of at most 3 words"):
        written(["tea"], max_words=3)
    with pytest.raises(UsageProblem, match=r"a\{b\}': doesn't fit into a sentence: .* '\{b\}'"):
        written(["tea", "a{b}"])
    for name in ("winobias", "crows-pairs"):
        with pytest.raises(UsageProblem, match="is the name of a benchmark to import"):
            steps.check_benchmark_name(name)


def fill_corpus(store: Store) -> None:
    """A corpus `c` with leans of the words, which are its sample, too."""
    lean = {word: 0.01 * k for k, word in enumerate(WORDS)}
    filled(store, lean)
    of = {"corpus": "c", "contrast": "she/he"}
    fixed = {**of, "seed": 0, "n_word": 1, "low_nats": -1.0, "high_nats": 1.0, "run_id": "r"}
    sample = [
        {**fixed, "position": k, "word": w, "delta_nats": d}
        for k, (w, d) in enumerate(lean.items(), 1)
    ]
    store.publish("seed_word", sample, unit="she/he 0", run_id="r")


CONFIG = """
[benchmark.build]
corpus = "c"
model = "scripted"
base_url = "{url}"
n_sentences = 3
concurrency = 4
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a warehouse of a corpus, as the working directory."""
    fill_corpus(Store.open(tmp_path / "out/warehouse"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> dict[tuple[str, str], tuple[Any, str]]:
    """Amount and note of a dry run, by subject and what."""
    assert main([*command, "--dry-run", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return {(row["subject"], row["what"]): (row["amount"], row["note"]) for row in rows}


def test_a_dry_run_asks_and_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(here.rglob("*"))
    with serving(imperfect) as server:
        (here / "mine.toml").write_text(CONFIG.format(url=server.url))
        found = planned(capsys, ["benchmark", "build", "demo", "--config", "mine.toml"])
        assert server.n_asked == 0
    assert found["demo", "seed words"][0] == 40 and found["demo", "pairs"][0] == 240
    assert found["demo", "requests"] == (80 + 240 * 2, "about, without revisions and repeats")
    assert sorted(here.rglob("*")) == sorted([*files, here / "mine.toml"])
    offline = planned(capsys, ["benchmark", "build", "demo", "--offline", "--corpus", "c"])
    assert offline["demo", "requests"][0] == 0
