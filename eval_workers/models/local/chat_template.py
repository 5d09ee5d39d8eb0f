"""Texts inside a chat: the frame that a model's own template puts before the assistant's words.

A frame is the template's text for some messages, up to the start of the assistant's turn. A text
that is scored or continued may hold no special tokens other than the frame's. Frame and text are
encoded together, as in a chat, because some frames end with a space that belongs to the next word.
The template's BOS is dropped, because every backend adds one. A template that writes today's date
always gets the same day, so results are reproducible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.text.toml_file import Text, load, toml_table

#: Name of the built-in conversation.
_DEFAULT = "default"
#: Placeholder for the assistant's words. It is all letters, so no template changes it.
_WORDS = "Plumblinewords"
#: Placeholders for messages, used to check whether a template changes a message.
_MESSAGES = ("Plumblinesystem", "Plumblineuser")
#: Macro that replaces the templates' function for today's date. It writes the date that Llama 3's
#: templates fall back to, in their format, or in digits if the format has `%m`.
_TODAY = (
    "{%- macro strftime_now(format) -%}"
    "{{ '2024-07-26' if '%m' in format else '26 Jul 2024' }}"
    "{%- endmacro -%}"
)


@toml_table
class _Conversation:
    user: Text
    system: Text | None = None


def load_conversation(name: str) -> list[dict[str, str]]:
    """Return the messages before a scored sentence: an optional system message, then a user's.

    ``name`` is the built-in `default` or a TOML file with `user` and, optionally, `system`. Raises
    ``UsageProblem`` for a missing file, ``BadInput`` for a file with other content.

    >>> load_conversation("default")
    [{'role': 'user', 'content': 'Write one sentence that could stand in a book.'}]
    """
    if name == _DEFAULT:
        file: Any = resources.files(__package__) / "conversation.toml"
        said = load(_Conversation, file, "the shipped conversation")
    else:
        fix = f"give {_DEFAULT}, or a TOML file with `user` and perhaps `system`"
        said = load(_Conversation, Path(name), f"--chat {name}", fix)
    messages = (("system", said.system), ("user", said.user))
    return [{"role": role, "content": text} for role, text in messages if text is not None]


def rendered(tokenizer: Any, messages: Sequence[Mapping[str, str]], model: str, fix: str) -> str:
    """Return the frame's text for some messages, up to the start of the assistant's turn.

    Raises ``UsageProblem`` with the advice ``fix`` if the model has no chat template, or if the
    template refuses these messages, leaves one out, or changes more than their white space.
    """
    what = f"model {model}"
    if not getattr(tokenizer, "chat_template", None):
        raise UsageProblem(what, "has no chat template to put an instruction in", fix)
    pairs = list(zip(messages, _MESSAGES, strict=False))
    placeholders = [{**message, "content": mark} for message, mark in pairs]
    try:
        before, expected = _before(tokenizer, messages), _before(tokenizer, placeholders) or ""
    except Exception as e:  # templates raise many types of exceptions
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
    """Return the template's text before the assistant's words; ``None`` if it drops the words."""
    chat = [*messages, {"role": "assistant", "content": _WORDS}]
    template = _TODAY + tokenizer.get_chat_template()
    text = str(tokenizer.apply_chat_template(chat, chat_template=template, tokenize=False))
    before, words, _ = text.rpartition(_WORDS)
    return before if words else None
