"""Prompts inside a chat: the frame that a model's own template puts before the assistant's words.

A frame is the template's text for some messages, up to the start of the assistant's turn. Its
special tokens are the only ones that a scored or continued text may hold. Frame and text are
encoded together, as in a chat: some templates end with a space, which belongs to the next word. The
template's BOS is dropped: every backend adds one. A template that writes today's date always gets
the same day, so that results are reproducible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.warehouse.errors import UsageProblem

#: Placeholder for the assistant's words; letters alone, which no template changes.
_WORDS = "Plumblinewords"
#: Placeholders for messages, to find out whether a template changes them.
_MESSAGES = ("Plumblinesystem", "Plumblineuser")
#: Macro that replaces the templates' function for today's date. Its fixed day, the fallback of
#: Llama 3's templates, is written in their format, or in digits for formats with `%m`.
_TODAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ '2024-07-26' if '%m' in format else '26 Jul 2024' }}"
    "{%- endmacro -%}"
)


@dataclass(frozen=True)
class Frame:
    """A frame's text as the template writes it, its token ids without BOS, and the special ones."""

    text: str
    ids: tuple[int, ...]
    special: tuple[int, ...]


def rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]], model: str, fix: str) -> str:
    """The text of the frame of some messages, up to the start of the assistant's turn.

    Raises ``UsageProblem`` with the advice ``fix`` for a model without a chat template, or with one
    that refuses these messages, leaves them out, or changes more than their white space.
    """
    what = f"model {model}"
    if not getattr(tokenizer, "chat_template", None):
        raise UsageProblem(what, "has no chat template to put an instruction in", fix)
    pairs = list(zip(messages, _MESSAGES, strict=False))
    placeholders = [{**message, "content": mark} for message, mark in pairs]
    try:
        before, expected = _before(tokenizer, messages), _before(tokenizer, placeholders) or ""
    except Exception as e:  # templates raise many kinds
        first = (str(e).splitlines() or [type(e).__name__])[0]
        roles = " and ".join(message["role"] for message in messages)
        problem = f"its chat template refuses messages of {roles} before a prompt: {first}"
        raise UsageProblem(what, problem, fix) from e
    # Templates may trim a message.
    if before is None or any(m["content"].strip() not in before for m in messages):
        problem = "its chat template leaves out the instruction or the prompt"
        raise UsageProblem(what, problem, fix)
    for message, mark in pairs:
        expected = expected.replace(mark, message["content"])
    if before.split() != expected.split():
        raise UsageProblem(what, "its chat template changes the words of a message", fix)
    return before


def _before(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str | None:
    """The template's text before the assistant's words; ``None`` if it leaves these out."""
    chat = [*messages, {"role": "assistant", "content": _WORDS}]
    template = _TODAY + tokenizer.get_chat_template()
    text = str(tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False))
    before, words, _ = text.rpartition(_WORDS)
    return before if words else None


def without_bos(ids: Sequence[int], bos: int) -> list[int]:
    """Tokens of a chat without its template's BOS.

    >>> without_bos([1, 5, 1], 1), without_bos([5, 1], 1), without_bos([], 1)
    ([5, 1], [5, 1], [])
    """
    return list(ids[1:] if ids[:1] == [bos] else ids)
