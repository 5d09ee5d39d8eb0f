"""Perturbing a probe set: checks at their bounds, every row kept, a chat model, kill and resume."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.client import Server
from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.chat.session import Build
from plumbline.eval_workers.fairpair.fairpair_steps import write_prompts
from plumbline.eval_workers.fairpair.perturbation import perturbed_set
from plumbline.eval_workers.fairpair.perturbation import perturbers as perturb_llm
from plumbline.eval_workers.fairpair.perturbation import text_rules as perturb
from plumbline.eval_workers.fairpair.perturbation.perturbed_set import (
    TextFilter,
    check,
    perturb_set,
)
from plumbline.eval_workers.fairpair.perturbation.perturbers import (
    ChatPerturber,
    RulePerturber,
    ledger_name,
    load_wording,
)
from plumbline.eval_workers.fairpair.perturbation.terms import load
from plumbline.eval_workers.fairpair.perturbation.text_rules import Perturbed
from plumbline.eval_workers.fairpair.probe_prompts import load as load_prompts
from plumbline.eval_workers.fairpair.probe_prompts import prompt_rows
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, serving
from tests.fairpair_rows import NAMES

LONG = (
    " The work is hard but pays well, and every morning starts with tea, bread, a walk along the"
    " river, some news on the radio and then a slow ride by tram through half the town"
)
TEXTS = {
    " He likes it." + LONG: None,
    " He likes it.": perturbed_set.SHORT,
    " His wife is a nurse. She sings." + LONG: None,
    " A man came in. He sat." + LONG: perturb.RIVAL,
    " Jane knows." + LONG: perturb.COUNTERPART_NAMED,
    "": perturbed_set.SHORT,
}
MODEL = ChatModel("scripted")


def _continuations(
    store: Store, texts: list[str], prompts: tuple[str, ...] = ("John-Jane-clerk",)
) -> None:
    write_prompts(store, "cs", prompt_rows(load_prompts("common-sents-plain"), "cs", ""), "r")
    rows = [
        {
            "probe_set": "cs",
            "model_key": "m",
            "model": "m",
            "sampling_key": "s",
            "prompt_id": prompt,
            "side": side,
            "sample": i,
            "seed": i,
            "text_id": "t",
            "continuation": text,
            "finish": "stop",
            "run_id": "r",
        }
        for prompt in prompts
        for side in ("original", "perturbed")
        for i, text in enumerate(texts)
    ]
    store.publish("continuation", rows, unit="all", run_id="r")


def _rows(store: Store) -> list[dict[str, Any]]:
    return store.read("perturbed_continuation", probe_set="cs").to_pylist()


def test_every_continuation_is_a_row_with_its_reason(store: Store) -> None:
    _continuations(store, list(TEXTS), ("John-Jane-clerk", "John-Jane-accountant"))
    perturber = RulePerturber()
    perturb_set(store, "cs", "m", "s", perturber, "run")
    rows = _rows(store)
    assert len(rows) == 24
    for row in rows:
        assert row["is_valid"] == (row["reason"] is None)
        if row["side"] == "original":
            assert row["reason"] == list(TEXTS.values())[row["sample"]], row
    expected = Counter((r["side"], r["reason"] or "valid") for r in rows)
    found = rows_of(store.root, "FROM perturbation_success")
    assert {(r["side"], r["reason"]): r["n"] for r in found if r["n"]} == expected
    for side in NAMES:
        assert sum(r["share"] for r in found if r["side"] == side) == pytest.approx(1)
    first = next(r for r in rows if r["side"] == "original" and r["sample"] == 0)
    start = "Jane is working as an accountant. She likes it."
    assert first["perturbed_text"] == start + LONG and first["perturber"] == perturber.name
    assert next(r for r in rows if r["side"] == "perturbed")["reason"] == perturb.NOBODY_ELSE
    perturb_set(store, "cs", "m", "s", perturber, "again")
    assert [r | {"run_id": "run"} for r in _rows(store)] == rows


def _numbered(n: int) -> str:
    return " ".join(f"w{i}" for i in range(n))


#: Answers of one sentence, as a chat model gives them; all are perturbed correctly by the rules.
ANSWERS = [
    *(" He likes to help people.", " He starts work at seven and comes home late in the evening."),
    *(" His day begins with a cup of tea.", " The work is hard, but he would not change it."),
    " Every morning he takes the bus into town.",
]


@pytest.mark.parametrize(
    ("text_filter", "n_valid"),
    [
        (TextFilter(), 0),
        (TextFilter(unit="characters"), 5),
        (TextFilter(0.3), 4),
        (TextFilter(0.5), 5),
    ],
)
def test_short_answers_are_valid_by_another_filter(
    store: Store, text_filter: TextFilter, n_valid: int
) -> None:
    """Valid or not by sets made here; and what failed, failed since it was short."""
    _continuations(store, ANSWERS)
    name = perturb_set(store, "cs", "m", "s", RulePerturber(), "run", text_filter=text_filter)
    rows = [row for row in _rows(store) if row["side"] == "original"]
    for row in rows:
        pair = [f"John is working as a clerk.{ANSWERS[row['sample']]}", row["perturbed_text"]]
        if text_filter.unit == "words":
            pair = [text.lower().translate({ord(c): " " for c in ".,"}) for text in pair]
        split = str.split if text_filter.unit == "words" else list
        a, b = (set(split(text)) - {" "} for text in pair)
        assert row["dissimilarity"] == pytest.approx(1 - len(a & b) / len(a | b), abs=1e-6)
        assert row["is_valid"] == (row["dissimilarity"] <= text_filter.limit)
        assert row["is_valid"] or row["reason"] == perturbed_set.SHORT
    assert sum(row["is_valid"] for row in rows) == n_valid
    assert {row["perturber"] for row in rows} == {name}


def test_the_length_that_a_valid_text_needs_is_the_least() -> None:
    """By trying: a text of n new words, with the name and a pronoun changed, at each length."""
    for limit in (0.05, 0.15, 1.0):
        for start in ("", "a man with a dog "):
            row = {"prompt": f"John is {start}", "axis": "gender"}
            row["perturbed_prompt"] = f"Jane is {start.replace('man', 'woman')}"

            def made(n: int, row: dict[str, str] = row) -> tuple[str, str]:
                rest = f"{_numbered(n)}"
                return f"{row['prompt']} he {rest}", f"{row['perturbed_prompt']} she {rest}"

            f = TextFilter(limit)
            valid = [f.dissimilarity(*made(n)) <= limit for n in range(150)]
            assert f.n_missing(row) == valid.index(True), (limit, start)
            for n in range(150):
                assert (f.n_missing(row, made(n)[0]) == 0) == valid[n]


@pytest.mark.reference
def test_characters_are_those_of_the_printed_figure(data: Path) -> None:
    """Table 2 prints 96.9 as what two texts share; the text is read at run time, not kept."""
    (page,) = (data.parent / "papers").glob("001_*.txt")
    rows = [line.split("\t") for line in page.read_text(encoding="utf-8").splitlines()]
    ((first, second, printed, _),) = [row for row in rows if len(row) == 4 and row[2] == "96.9"]
    shared = 100 * (1 - TextFilter(unit="characters").dissimilarity(first, second))
    assert f"{shared:.1f}" == printed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jane is", perturbed_set.PROMPT),
        ("So Jane is", perturbed_set.PROMPT),
        ("Jane is, like John,", perturbed_set.NAME),
        ("Jane is JOHN's", perturbed_set.NAME),
        ("Jane is Johnny Johnson", None),
    ],
)
def test_checks(text: str, reason: str | None) -> None:
    original = text + " " + _numbered(60)
    assert check(Perturbed(original), original, "Jane is", "John")["reason"] == reason


def test_what_is_not_there_is_one_line(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="has no prompts"):
        perturb_set(store, "cs", "m", "s", RulePerturber(), "run")
    _continuations(store, [" He ran."], ("John-Jane-pilot",))
    with pytest.raises(UsageProblem, match="has no continuations of m other"):
        perturb_set(store, "cs", "m", "other", RulePerturber(), "run")
    with pytest.raises(BadInput, match="John-Jane-pilot of a continuation is not in"):
        perturb_set(store, "cs", "m", "s", RulePerturber(), "run")
    assert list((store.root / "_staging").iterdir()) == []
    _continuations(store, [" He ran."])
    path = tmp_path / "age.toml"
    path.write_text('version = "1"\nlanguage = "en"\naxis = "age"\ngroups = ["old", "young"]\n')
    with pytest.raises(UsageProblem, match=r"are for age in en .*give a list of terms for these"):
        perturb_set(store, "cs", "m", "s", RulePerturber(load(path)), "run")
    path.write_text('version = "1"\nlanguage = "en"\naxis = "gender"\ngroups = ["man", "woman"]\n')
    with pytest.raises(UsageProblem, match='name their groups "man" and "woman", or give a list'):
        perturb_set(store, "cs", "m", "s", RulePerturber(load(path)), "run")
    assert not _rows(store)


# ---- the chat model


def _obedient(prompt: str, count: int) -> Say:
    """Exchanges names and pronouns; the answer is cut, empty or chatty for some texts."""
    text = prompt.split("\n\n")[-1]
    words = {"John": "Jane", "Jane": "John", "He": "She", "She": "He"}
    if "refuse" in text:
        return Say("")
    answer = " ".join(words.get(word, word) for word in text.split(" "))
    return Say(f"Sure! {answer}" if "chat" in text else answer)


def _llm(store: Store, server: ChatServer | None, run_id: str, **options: Any) -> ChatPerturber:
    to = Server(server.url, 5.0, 4, max_attempts=2, first_wait_s=0.01) if server else None
    build = Build(store, ledger_name("cs"), run_id, to, **options)
    return ChatPerturber(build, MODEL, load_wording())


def _requests(store: Store) -> list[dict[str, Any]]:
    return store.read("generation_request", benchmark=ledger_name("cs")).to_pylist()


def test_a_chat_model_perturbs_and_is_asked_once(store: Store) -> None:
    texts = [" He ran." + LONG, " refuse" + LONG, " chat" + LONG, " He ran." + LONG]
    _continuations(store, texts)
    with serving(_obedient) as server:
        perturber = _llm(store, server, "run")
        perturb_set(store, "cs", "m", "s", perturber, "run")
    assert server.n_asked == 6, "the two that are the same are asked once"
    rows = {r["sample"]: r for r in _rows(store) if r["side"] == "original"}
    assert rows[0]["perturbed_text"] == "Jane is working as a clerk. She ran." + LONG
    reasons = [rows[i]["reason"] for i in range(4)]
    assert reasons == [None, perturb_llm.REFUSED, perturbed_set.PROMPT, None]
    assert [r["is_valid"] for r in _rows(store)].count(True) == 4 and len(_rows(store)) == 8
    requests = _requests(store)
    assert {(r["purpose"], r["word"], r["pronoun"]) for r in requests} == {
        ("perturb", "John", "Jane"),
        ("perturb", "Jane", "John"),
    }
    before = _rows(store)
    perturb_set(store, "cs", "m", "s", _llm(store, None, "run"), "run")
    assert _rows(store) == before and server.n_asked == 6
