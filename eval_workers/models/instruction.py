"""Instructions before a prompt, in two forms.

`prefix`: one text of the instruction, a space and the prompt. `chat`: the instruction is a user's
message in the model's chat template, and the assistant's turn begins with the prompt. In both
forms, the model continues the prompt.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plumbline.warehouse.errors import UsageProblem

if TYPE_CHECKING:
    from plumbline.warehouse.storage.store import Store

FORMS = ("prefix", "chat")
#: The key for no instruction.
NO_INSTRUCTION = "none"


@dataclass(frozen=True)
class Instruction:
    """An instruction and its form. Without an instruction (``None``), the form is ignored.

    Raises ``UsageProblem`` for an empty or blank instruction, and for an unknown form.

    >>> Instruction().key, Instruction("Go on.").key == Instruction("Go on.", "chat").key
    ('none', False)
    >>> Instruction("")
    Traceback (most recent call last):
    ...
    plumbline.warehouse.errors.UsageProblem: instruction '': is empty (leave it out for none)
    """

    text: str | None = None
    form: str = "prefix"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageProblem(f"form {self.form!r}", f"is not one of {', '.join(FORMS)}")
        if self.text is not None and not self.text.strip():
            raise UsageProblem(f"instruction {self.text!r}", "is empty", "leave it out for none")

    @property
    def key(self) -> str:
        """Hash of instruction and form (16 hex digits), or `none`."""
        if self.text is None:
            return NO_INSTRUCTION
        return hashlib.sha256(json.dumps([self.text, self.form]).encode()).hexdigest()[:16]

    @property
    def prefix(self) -> str:
        """The text before a prompt in the form `prefix`; empty without an instruction.

        Raises ``UsageProblem`` for the form `chat`, whose frame needs a model's template.

        >>> Instruction("Go on:").prefix + "It was", Instruction().prefix + "It was"
        ('Go on: It was', 'It was')
        """
        if self.text is None:
            return ""
        if self.form != "prefix":
            problem = "needs a model that is loaded here, whose chat template is known"
            raise UsageProblem(f"form {self.form!r}", problem, "use the form prefix")
        return f"{self.text} "


#: No instruction.
NONE = Instruction()


def publish_instruction(store: Store, instruction: Instruction, run_id: str) -> None:
    """Write the instruction's row to table ``instruction`` if it isn't there; also for ``NONE``."""
    key = instruction.key
    if key in store.units("instruction"):
        return
    form = instruction.form if instruction.text is not None else None
    row = {"instruction_key": key, "instruction": instruction.text, "form": form}
    store.publish("instruction", [{**row, "run_id": run_id}], unit=key, run_id=run_id)
