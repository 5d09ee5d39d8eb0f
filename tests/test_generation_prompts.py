"""A user's wordings take the place of ours."""

from __future__ import annotations

from pathlib import Path

from plumbline.eval_workers.chat.chat_session import Build, Server
from plumbline.eval_workers.writing import build as steps
from plumbline.eval_workers.writing.build_spec import BuildSpec
from plumbline.warehouse.storage.store import Store
from tests.chat_server import Say, serving

THEIRS = """
generate = "LIST: {n} {max_words} {word} {pronoun}"
revise = ["MEND1: {word} {pronoun} {sentence}", "MEND2: {forms} {word} {sentence}"]
convert = "TURN: {forms} {sentence}"
judge = "NATURAL: {sentence}"
"""


def test_a_wording_for_every_purpose_is_what_the_server_gets(tmp_path: Path, store: Store) -> None:
    """A build that needs every purpose asks with the wordings of the file and with no others."""
    file = tmp_path / "mine.toml"
    file.write_text(THEIRS, encoding="utf-8")
    words = ("smile", "laugh")
    spec = BuildSpec(words=words, model="m", n_sentences=2, prompts=str(file), generate_rounds=1)

    def answer(prompt: str, count: int) -> Say:
        purpose, rest = prompt.split(": ", 1)
        if purpose == "LIST":
            n, most, word, pronoun = rest.split()
            assert (n, most) == ("2", "10")
            lacking = f"The {pronoun} was lost."
            lines = [f"They saw her {word}.", lacking] if pronoun == "she" else [lacking]
            return Say("\n".join(f"{k}. {line}" for k, line in enumerate(lines, 1)))
        if purpose == "MEND2":
            forms, word, sentence = rest.split(" ", 2)
            pronoun = sentence.split()[1]
            assert forms == {"she": "she/her/her/herself", "he": "he/his/him/himself"}[pronoun]
            return Say(f"Then {pronoun} found the {word}.")
        if purpose == "TURN":
            forms, sentence = rest.split(" ", 1)
            assert forms == "he/his/him/himself"
            return Say(sentence.replace("her", "his"))
        return Say("I'm sorry, but I can't do that." if purpose == "MEND1" else "likely")

    with serving(answer) as server:
        order = Build(store, "demo", "run-1", Server(server.url, 5.0))
        written = steps.write_sentences(order, words, spec)
        pairs = steps.judge_pairs(order, steps.pair_sentences(order, written, spec).pairs, spec)
    assert {p["template"] for p in pairs if p["is_natural"]} == {
        *(f"They saw {{pronoun1}} {word}." for word in words),
        *(f"Then {{pronoun}} found the {word}." for word in words),
    }
    asked = store.read("generation_request").to_pylist()
    assert {(r["purpose"], r["prompt"].split(":")[0]) for r in asked} == {
        ("generate", "LIST"),
        ("revise", "MEND1"),
        ("revise", "MEND2"),
        ("convert", "TURN"),
        ("judge", "NATURAL"),
    }
