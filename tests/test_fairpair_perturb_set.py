"""Probe sets and their perturbation: published words, checks, every row kept, a chat model."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plumbline.eval_workers.chat.requests import ChatModel
from plumbline.eval_workers.fairpair import perturbed_set
from plumbline.eval_workers.fairpair import perturbers as perturb_llm
from plumbline.eval_workers.fairpair import text_rules as perturb
from plumbline.eval_workers.fairpair.fairpair_steps import write_prompts
from plumbline.eval_workers.fairpair.perturbed_set import TextFilter, check, perturb_set
from plumbline.eval_workers.fairpair.perturbers import (
    ChatPerturber,
    RulePerturber,
    check_rules,
    ledger_name,
    load_wording,
)
from plumbline.eval_workers.fairpair.probe_prompts import load as load_prompts
from plumbline.eval_workers.fairpair.probe_prompts import prompt_rows
from plumbline.eval_workers.fairpair.text_rules import Perturbed
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.store import Store
from tests.chat_server import ChatServer, Say, serving
from tests.fairpair_rows import NAMES
from tests.prompt_rows import put_continuations
from tests.test_generation import build

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
    write_prompts(store, "cs", prompt_rows(load_prompts("common-sents-plain"), "cs"), "r")
    of = dict.fromkeys(prompts, texts)
    put_continuations(store, of, probe_set="cs", sampling="s", key="m", sides=tuple(NAMES))


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
    original = " ".join([text, *(f"w{i}" for i in range(60))])
    assert check(Perturbed(original), original, "Jane is", "John")["reason"] == reason


def test_what_is_not_there_is_one_line(store: Store) -> None:
    _continuations(store, [" He ran."], ("John-Jane-pilot",))
    with pytest.raises(BadInput, match="John-Jane-pilot of a continuation is not in"):
        perturb_set(store, "cs", "m", "s", RulePerturber(), "run")
    assert list((store.root / "_staging").iterdir()) == []
    assert not _rows(store)
    prompts = store.read("probe_prompt").to_pylist()
    check_rules(prompts)
    with pytest.raises(UsageProblem, match=r"gender in en \(m, f\), not in de"):
        check_rules([row | {"language": "de"} for row in prompts])


def _obedient(prompt: str, count: int) -> Say:
    """Exchanges names and pronouns; the answer is cut, empty or chatty for some texts."""
    text = prompt.split("\n\n")[-1]
    words = {"John": "Jane", "Jane": "John", "He": "She", "She": "He"}
    if "refuse" in text:
        return Say("")
    answer = " ".join(words.get(word, word) for word in text.split(" "))
    return Say(f"Sure! {answer}" if "chat" in text else answer)


def _llm(store: Store, server: ChatServer | None) -> ChatPerturber:
    return ChatPerturber(build(store, server, "run", ledger_name("cs")), MODEL, load_wording())


def test_a_chat_model_perturbs_and_is_asked_once(store: Store) -> None:
    texts = [" He ran." + LONG, " refuse" + LONG, " chat" + LONG, " He ran." + LONG]
    _continuations(store, texts)
    with serving(_obedient) as server:
        perturber = _llm(store, server)
        perturb_set(store, "cs", "m", "s", perturber, "run")
    assert server.n_asked == 6, "the two that are the same are asked once"
    rows = {r["sample"]: r for r in _rows(store) if r["side"] == "original"}
    assert rows[0]["perturbed_text"] == "Jane is working as a clerk. She ran." + LONG
    reasons = [rows[i]["reason"] for i in range(4)]
    assert reasons == [None, perturb_llm.REFUSED, perturbed_set.PROMPT, None]
    assert [r["is_valid"] for r in _rows(store)].count(True) == 4 and len(_rows(store)) == 8
    requests = store.read("generation_request", benchmark=ledger_name("cs")).to_pylist()
    assert {(r["purpose"], r["word"], r["pronoun"]) for r in requests} == {
        ("perturb", "John", "Jane"),
        ("perturb", "Jane", "John"),
    }
    before = _rows(store)
    perturb_set(store, "cs", "m", "s", _llm(store, None), "run")
    assert _rows(store) == before and server.n_asked == 6


GERMAN = """
language = "de"
axis = "gender"
groups = ["m", "f"]
names = [["Hans", "Anna"]]
occupations = [{ m = "Lehrer", f = "Lehrerin" }, "Fachkraft"]
[templates]
plain = "{name} arbeitet als {occupation}."
"""


@pytest.mark.reference
@pytest.mark.parametrize(
    ("probe_set", "man", "woman"),
    [("common-sents", "a man ", "a woman "), ("common-sents-plain", "", "")],
)
def test_common_sents_have_the_published_words(
    data: Path, probe_set: str, man: str, woman: str
) -> None:
    path = data.parent / "reference" / "fairpair_common_sents.json"
    published = json.loads(path.read_text("utf-8"))
    rows = prompt_rows(load_prompts(probe_set), probe_set)
    assert [row["occupation"] for row in rows] == published["occupations"] and len(rows) == 60
    names = published["names"]
    sides = {"prompt": (names["male"], man), "perturbed_prompt": (names["female"], woman)}
    for side, (name, words) in sides.items():
        for row, occupation in zip(rows, published["occupations"], strict=True):
            article = "an" if occupation[0] in "aeiou" else "a"  # none of the 60 is an exception
            assert row[side] == f"{name} is {words}working as {article} {occupation}."


def test_word_forms_by_group_and_no_article(tmp_path: Path) -> None:
    path = tmp_path / "de.toml"
    path.write_text(GERMAN)
    rows = prompt_rows(load_prompts(path), "de")
    assert [(r["prompt"], r["perturbed_prompt"]) for r in rows] == [
        ("Hans arbeitet als Lehrer.", "Anna arbeitet als Lehrerin."),
        ("Hans arbeitet als Fachkraft.", "Anna arbeitet als Fachkraft."),
    ]
