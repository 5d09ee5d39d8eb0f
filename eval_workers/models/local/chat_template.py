"""Prompts inside a chat: the frame that a model's own template puts before the assistant's words.

A frame is what the template writes for some messages, up to where the assistant's turn begins.
Its special tokens are the only ones that a text to be scored or continued may hold. Frame and text
are encoded together, as the model's tokenizer does with a chat: some templates end with a blank,
which belongs to the next word. A BOS that the template writes is dropped: every backend gives one.
A template that writes today's date gets the same day always, so that results stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.warehouse.errors import UsageProblem

#: Stands for the assistant's words while a frame is made; letters alone, which no template changes.
_WORDS = "Plumblinewords"
#: Stand for messages where a template is compared with what it makes of them.
_MESSAGES = ("Plumblinesystem", "Plumblineuser")
#: In the place of the function that templates have for today's date: the day that those of Llama 3
#: fall back on, as they write it or in digits alone.
_TODAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ '2024-07-26' if '%m' in format else '26 Jul 2024' }}"
    "{%- endmacro -%}"
)


@dataclass(frozen=True)
class Frame:
    """A frame's text as the template writes it, its tokens, the special ones; without BOS."""

    text: str
    ids: tuple[int, ...]
    special: tuple[int, ...]


def rendered(tokenizer: Any, said: Sequence[Mapping[str, str]], model: str, fix: str) -> str:
    """The text of the frame of some messages, up to where the assistant's turn begins.

    Raises ``UsageProblem`` for a model without a chat template, or with one that can't put words of
    its own after these messages, or changes them in more than blanks.
    """
    what = f"model {model}"
    if not getattr(tokenizer, "chat_template", None):
        raise UsageProblem(what, "has no chat template to put an instruction in", fix)
    others = [{**one, "content": mark} for one, mark in zip(said, _MESSAGES, strict=False)]
    try:
        before, of_others = (_before(tokenizer, messages) for messages in (said, others))
    except Exception as e:  # a template raises what it likes
        first = (str(e).splitlines() or [type(e).__name__])[0]
        roles = " and ".join(one["role"] for one in said)
        problem = f"its chat template refuses messages of {roles} before a prompt: {first}"
        raise UsageProblem(what, problem, fix) from e
    # Templates may trim a message.
    if before is None or any(one["content"].strip() not in before for one in said):
        problem = "its chat template leaves out the instruction or the prompt"
        raise UsageProblem(what, problem, fix)
    expected = of_others or ""
    for one, mark in zip(said, _MESSAGES, strict=False):
        expected = expected.replace(mark, one["content"])
    if before.split() != expected.split():
        raise UsageProblem(what, "its chat template changes the words of a message", fix)
    return before


def _before(tokenizer: Any, said: Sequence[Mapping[str, str]]) -> str | None:
    """What the template writes before the assistant's words, if it writes these."""
    messages = [*said, {"role": "assistant", "content": _WORDS}]
    template = _TODAY + tokenizer.get_chat_template()
    text = str(tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False))
    before, found, _ = text.rpartition(_WORDS)
    return before if found else None


def without_bos(ids: Sequence[int], bos: int) -> list[int]:
    """Tokens of a chat without the BOS that its template wrote.

    >>> without_bos([1, 5, 1], 1), without_bos([5, 1], 1), without_bos([], 1)
    ([5, 1], [5, 1], [])
    """
    return list(ids[1:] if ids[:1] == [bos] else ids)
