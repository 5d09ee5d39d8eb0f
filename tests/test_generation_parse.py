"""Replies are read as a person reads them; sentences are judged by what they hold."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.chat.replies import sentences, verdict
from plumbline.eval_workers.writing.written_sentences import WrittenSentence, check, repeats
from tests.conftest import REPOSITORY

EXAMPLES = tomllib.loads((REPOSITORY / "tests" / "chat_replies.toml").read_text("utf-8"))
VERDICTS = [(t, likely) for likely, texts in EXAMPLES["verdict"].items() for t in texts]


@pytest.mark.parametrize("name", EXAMPLES["reply"])
def test_the_sentences_of_a_reply(name: str) -> None:
    text, *expected = EXAMPLES["reply"][name]
    assert sentences(text) == expected


@pytest.mark.parametrize(("text", "likely"), VERDICTS)
def test_the_verdict_of_a_reply(text: str, likely: str) -> None:
    assert verdict(text) is {"yes": True, "no": False, "unclear": None}[likely]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(s == " ".join(s.split()) and s for s in sentences(text))
    assert verdict(text) in (True, False, None)


_PLAIN = st.lists(
    st.lists(st.sampled_from(["clock", "she", "found", "Łódź", "isn't", "12", "old"]), min_size=1),
    min_size=1,
)


@given(_PLAIN, st.sampled_from(["{k}. {s}", "{k}) {s}", "({k}) {s}", "- {s}", "**{k}.** {s}"]))
def test_lists_come_back_whatever_their_marks(items: list[list[str]], mark: str) -> None:
    wanted = [f"The {' '.join(words)}." for words in items]
    text = "\n".join(mark.format(k=k, s=s) for k, s in enumerate(wanted, 1))
    assert sentences(f"Sure, here you are:\n\n{text}\n\nEnjoy!") == wanted


@pytest.mark.parametrize(
    ("sentence", "fate", "reason"),
    [
        ("She wound the clock.", "keep", ""),
        ("The clock was HERS.", "keep", ""),
        ("She wound the clock in the old hall.", "keep", ""),
        ("“Wind the clock,” said her aunt.", "keep", ""),
        ("She'd sold the clock’s hands…", "keep", ""),
        ("A clock-maker taught her (twice!)", "keep", ""),
        ('Did she wind the clock?"', "keep", ""),
        ("She wound the clocks.", "revise", "lacks the word"),
        ("The clock struck nine.", "revise", "lacks the pronoun"),
        ("His clock struck nine.", "revise", "lacks the pronoun"),
        ("Her clock woke him.", "reject", "holds a pronoun of the other gender"),
        ("He/she wound the clock.", "reject", "holds a pronoun of the other gender"),
        ("She wound the clock in the old hall twice.", "reject", "has more than 8 words"),
        ("she wound the clock.", "reject", "does not start like a sentence"),
        ("She wound the clock", "reject", "does not end like a sentence"),
        ("Her clock.", "reject", "has fewer than 3 words"),
        ("She wound the \x07clock.", "reject", "holds characters that can't be printed"),
        ("She wound the {clock}.", "reject", "holds a brace"),
        ("> She wound the clock.", "reject", "does not start like a sentence"),
        ("① She wound the clock.", "reject", "does not start like a sentence"),
        ("She wound the \\*clock.", "reject", "holds a backslash"),
    ],
)
def test_the_fate_of_a_sentence(sentence: str, fate: str, reason: str) -> None:
    written = WrittenSentence(sentence, "clock", "she", "r", 1)
    assert check(written, 8) == (fate, reason)


def test_repeats_of_the_same_word_are_found() -> None:
    others = ["She carried the old clock home before the storm broke."]
    same = "HE CARRIED THE OLD CLOCK HOME, BEFORE THE STORM BROKE!"
    assert repeats(same, others) == "repeats another sentence"
    near = "She carried the old clock home before the big storm broke."  # 9 of 10 words
    assert repeats(near, others) == "nearly repeats another sentence"
    far = "She carried the new clock out before the storm came."  # 6 of 12
    assert repeats(far, others) == ""
    # Exactly 4 of 5 words in common is near; 4 of 6 is not.
    assert repeats("One two three four five.", ["One two three four."])
    assert not repeats("One two three four five six.", ["One two three four."])
