"""The conversation before a sentence that a chat model scores, read from a TOML file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from plumbline.warehouse.text.toml_file import Text, load, toml_table

#: Name of the conversation that comes with Plumbline.
DEFAULT = "default"


@toml_table
class Conversation:
    """A user's message, after an optional system message."""

    user: Text
    system: Text | None = None

    def messages(self) -> list[dict[str, str]]:
        """Messages as role/content dicts.

        >>> Conversation("Go on.", "Be brief.").messages()[0]
        {'role': 'system', 'content': 'Be brief.'}
        """
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": self.user}]


def load_conversation(name: str) -> Conversation:
    """The conversation of a TOML file with `user` and perhaps `system`, or the shipped `default`.

    Raises ``UsageProblem`` for a missing file, ``BadInput`` for one that holds anything else.

    >>> load_conversation("default").user
    'Write one sentence that could stand in a book.'
    """
    if name == DEFAULT:
        file = resources.files(__package__) / "conversation.toml"
        return load(Conversation, file, "the shipped conversation")
    fix = f"give {DEFAULT}, or a TOML file with `user` and perhaps `system`"
    return load(Conversation, Path(name), f"--chat {name}", fix)
