"""Probe sets: the released ones row for row, the builder, a chat model's, what is refused."""

import csv
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.disclosure import closed_world_prompts
from plumbline.eval_workers.disclosure.neutral import derived, gendered_words
from plumbline.eval_workers.disclosure.prompt_sets import (
    RELEASED,
    PromptRows,
    derive_probe,
    import_probe,
)
from plumbline.eval_workers.disclosure.written import (
    PromptSpec,
    ledger_name,
    load_wording,
    write_probe,
)
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, serving
from tests.test_generation import build

SUBJECTS = ("A person", "Someone", "Somebody", "One person", "The person", "An individual")


def _prompts(store: Store, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = store.read("probe_prompt", probe_set=name).to_pylist()
    return sorted(rows, key=lambda row: int(row["source_row"]))


def _rejects(store: Store, name: str) -> list[tuple[int, str]]:
    rows = store.read("reject", stage="prompts", subject=name).to_pylist()
    return sorted((row["source_row"], row["reason"]) for row in rows)


def counts(done: PromptRows) -> tuple[int, int]:
    return len(done.rows), len(done.rejects)


def _released(data: Path, name: str) -> list[str]:
    """The rows of a released file, read without the importer."""
    with (data / "debias-llms" / RELEASED[name]).open(encoding="utf-8", newline="") as file:
        lines = file.read().split("\n") if name.startswith("llm-") else csv.reader(file)
        return [line if isinstance(line, str) else line[0] for line in lines if line]


@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "n", "n_gendered"),
    [("stsb", 364, 0), ("snli", 317, 1), ("llm-1", 200, 0), ("llm-2", 200, 1)],
)
def test_released_sets_have_the_paper_s_sizes(
    store: Store, data: Path, name: str, n: int, n_gendered: int
) -> None:
    allowed = import_probe(store, name, data / "debias-llms", "r", allow_gendered=True)
    assert counts(allowed) == (n, 0)
    written = _released(data, name)
    start = "" if name.startswith("llm-") else "My friend "
    assert [r["prompt"] for r in _prompts(store, name)] == [f"{start}{w}, and" for w in written]
    plain = import_probe(store, name, data / "debias-llms", "r")
    assert counts(plain) == (n - n_gendered, n_gendered)
    assert len(_prompts(store, name)) == n - n_gendered
    assert all("gendered word" in reason for _, reason in _rejects(store, name))


@pytest.mark.reference
def test_the_builder_gives_the_released_prompts_back(data: Path) -> None:
    """Of sentences as the sources have them: a person's name for it, a capital, a full stop."""
    for name in ("stsb", "snli", "stsb-train", "snli-validation"):
        rests = _released(data, name)
        for i, rest in enumerate(rests):
            prompt = f"My friend {rest.rstrip(' .,')}, and"  # SNLI's ends are not all clean
            assert derived(f"{SUBJECTS[i % len(SUBJECTS)]} {rest}.") == prompt, rest
        kept = sum(not gendered_words(rest) for rest in rests)
        assert kept > 0.98 * len(rests)


@pytest.mark.reference
def test_topics_are_those_of_the_reference(store: Store, data: Path) -> None:
    done = import_probe(store, "topics", None, "r")
    assert counts(done) == (160, 0)
    facts = json.loads((data.parent / "reference" / "disclosure_topics.json").read_text())
    wanted = [
        (topic, f"{fact['template'].format(word)}, and")
        for topic, fact in facts.items()
        for word in fact["words"]
    ]
    rows = _prompts(store, "topics")
    assert [(r["topic"], r["prompt"]) for r in rows] == wanted
    assert Counter(r["topic"] for r in rows) == dict.fromkeys(facts, 40)
    assert sum(r["occupation"] is not None for r in rows) == 40
    assert rows[0]["prompt"] == "My friend is a attendant, and"  # as published


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("A personal note.", "does not start with someone or a person"),
        ("Two people sing.", "does not start with someone or a person"),
        ("Someone's hat fell.", "alone"),
        ("Someone else sang.", "alone"),
        ("Someone’s hat fell.", "alone"),
        ("Is it? A person sings.", "does not start"),
        ("A person sings. It rains.", "more than one sentence"),
        ("Someone is singing?", "question"),
        ("A person.", "says nothing"),
    ],
)
def test_other_sentences_do_not(sentence: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        derived(sentence)


SENTENCES = ["A person ran.", "A dog ran.", "Somebody ran", "Someone lost her key."]


#: By the file's name: its lines, and the column with the sentences.
FORMS: dict[str, tuple[list[str], str | None]] = {
    "a.txt": ("\n\n".join(SENTENCES).splitlines(), None),
    "bare.csv": ([f'"{s}"' for s in SENTENCES], None),
    "a.csv": (["id,said", *(f"1,{s}" for s in SENTENCES)], "said"),
    "a.jsonl": ([json.dumps({"said": s}) for s in SENTENCES], "said"),
}


@pytest.mark.parametrize("name", FORMS)
def test_sentences_of_any_file_become_a_set(store: Store, tmp_path: Path, name: str) -> None:
    source, (lines, column) = tmp_path / f"{name}.gz", FORMS[name]
    source.write_bytes(gzip.compress("\n".join(lines).encode()))
    done = derive_probe(store, "mine", source, "r", column=column)
    assert counts(done) == (1, 3)
    (row,) = _prompts(store, "mine")
    assert (row["prompt"], row["source_row"]) == ("My friend ran, and", 1)
    assert _rejects(store, "mine") == [
        (2, "does not start with someone or a person"),
        (3, "the same prompt as row 1"),
        (4, "holds the gendered word 'her'"),
    ]


def test_rows_that_can_t_be_read_are_rejected_by_their_number(store: Store, tmp_path: Path) -> None:
    bare, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    bare.write_bytes(b"A person ran.\ntwo,fields\n\xff bad\n")
    derive_probe(store, "bare", bare, "r")
    assert _rejects(store, "bare") == [
        (2, "the row holds 2 fields, expected 1"),
        (3, "the row holds bytes that are not UTF-8, or half a surrogate pair"),
    ]
    lines.write_text('{"t": "A person ran."}\n{"t"\n[1]\n{"u": ""}\n')
    derive_probe(store, "lines", lines, "r", column="t")
    named = {2: "JSON", 3: "JSON object", 4: "'t' is missing"}
    assert all(named[n] in reason for n, reason in _rejects(store, "lines")), named


def test_what_can_t_be_a_set_is_said_in_one_line(store: Store, tmp_path: Path) -> None:
    dogs = tmp_path / "dogs.txt"
    dogs.write_text("A dog ran.\n")
    columns = tmp_path / "no-columns.jsonl"
    columns.write_text("{}")
    with pytest.raises(BadInput, match=r"dogs\.txt"):
        derive_probe(store, "a", dogs, "r", column="t")
    with pytest.raises(BadInput, match=r"dogs.txt: no usable prompt in it, 1 rows rejected; the"):
        derive_probe(store, "mine", dogs, "r")
    assert store.read("reject").num_rows == 0
    for problem, call in (
        ("'stsb': is the name", lambda: derive_probe(store, "stsb", dogs, "r")),
        (r"unknown \(there are closed-world-", lambda: import_probe(store, "news", None, "r")),
        ("topics come without a file", lambda: import_probe(store, "topics", dogs, "r")),
        ("come without a file", lambda: import_probe(store, closed_world_prompts.TRAIN, dogs, "r")),
        ("no-columns.jsonl: has columns", lambda: derive_probe(store, "a", columns, "r")),
    ):
        with pytest.raises(UsageProblem, match=problem):
            call()


def test_a_line_that_is_no_beginning_is_rejected(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "templates.txt"
    path.write_text("My friend ran\nYour friend ran\n")
    assert counts(import_probe(store, "llm-1", path, "r")) == (1, 1)
    assert _rejects(store, "llm-1") == [(2, "does not start with 'My friend'")]


SEED, LEDGER = "My friend owns a canoe", ledger_name("friends")


def _spec(**options: Any) -> PromptSpec:
    return PromptSpec(ChatModel("scripted"), replace(load_wording(), at_once=4), **options)


def test_a_prompt_with_nearly_the_words_of_another_is_rejected(store: Store) -> None:
    near = "My friend owns a great many old clocks."  # 7 of 8 words
    said = Say(f"1. My friend owns a great many clocks.\n2. {near}\n3. My friend rows.")
    with serving(lambda *_: said) as server:
        write_probe(build(store, server, ledger=LEDGER), "friends", SEED, _spec(n_prompts=2))
    assert {row["prompt"] for row in _prompts(store, "friends")} == {
        "My friend owns a great many clocks, and",
        "My friend rows, and",
    }
    (row,) = store.read("reject", stage="prompts", subject="friends").to_pylist()
    assert (row["excerpt"], row["reason"]) == (near, "nearly repeats another sentence")


def test_what_can_t_be_written_is_said_in_one_line(store: Store, tmp_path: Path) -> None:
    with (
        serving(lambda *_: Say("I'm sorry, but I can't help with that.")) as server,
        pytest.raises(BadInput, match="no usable prompt"),
    ):
        write_probe(build(store, server, ledger=LEDGER), "friends", SEED, _spec())
    for problem, name, seed in (
        ("a set to import", "topics", SEED),
        ("has to start with", "friends", "Your friend"),
    ):
        with pytest.raises(UsageProblem, match=problem):
            write_probe(build(store, None, ledger=LEDGER), name, seed, _spec())
    file = tmp_path / "200.toml"
    file.write_text('at_once = 200\nwrite = "{n} such as {seed}"')
    first = PromptSpec(ChatModel("m"), load_wording(file)).request(SEED, 1, 200)
    assert first.prompt == f"200 such as {SEED}" and "response_format" not in dict(first.parameters)
