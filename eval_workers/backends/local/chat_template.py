"""Prompts inside a chat: the frame that a model's own template puts before the assistant's words.

A frame is what the template writes for a user's message, up to where the assistant's turn begins.
Its special tokens are the only ones that a text to be scored or continued may hold. Frame and text
are encoded together, as the model's tokenizer does with a chat: some templates end with a blank,
which belongs to the next word. A BOS that the template writes is dropped: every backend gives one.
A template that writes today's date gets the same day always, so that results stay what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.warehouse.errors import UsageProblem

_PREFIX = "use the form prefix"
#: Stands for the assistant's words while a frame is made; letters alone, which no template changes.
_WORDS = "Plumblinewords"
#: In the place of the function that templates have for today's date: the day that those of Llama 3
#: fall back on, as they write it or in digits alone.
_TODAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ '2024-07-26' if '%m' in format else '26 Jul 2024' }}"
    "{%- endmacro -%}"
)


@dataclass(frozen=True)
class Frame:
    """A frame's text as the template writes it, and its special tokens in order, without BOS."""

    text: str
    special: tuple[int, ...]


def rendered(tokenizer: Any, instruction: str, model: str) -> str:
    """The text of an instruction's frame.

    Raises ``UsageProblem`` for a model without a chat template, or with one that can't put words of
    its own after a single message of the user.
    """
    what = f"model {model}"
    if not getattr(tokenizer, "chat_template", None):
        raise UsageProblem(what, "has no chat template to put an instruction in", _PREFIX)
    messages = [
        {"role": "user", "content": instruction},
        {"role": "assistant", "content": _WORDS},
    ]
    try:
        template = _TODAY + tokenizer.get_chat_template()
        text = str(tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False))
    except Exception as e:  # a template raises what it likes
        first = (str(e).splitlines() or [type(e).__name__])[0]
        problem = f"its chat template refuses an instruction before a prompt: {first}"
        raise UsageProblem(what, problem, _PREFIX) from e
    before, found, _ = text.rpartition(_WORDS)
    # Templates may trim a message.
    if not found or instruction.strip() not in before:
        problem = "its chat template leaves out the instruction or the prompt"
        raise UsageProblem(what, problem, _PREFIX)
    return before


def without_bos(ids: Sequence[int], bos: int) -> list[int]:
    """Tokens of a chat without the BOS that its template wrote.

    >>> without_bos([1, 5, 1], 1), without_bos([5, 1], 1), without_bos([], 1)
    ([5, 1], [5, 1], [])
    """
    return list(ids[1:] if ids[:1] == [bos] else ids)
