"""Lists of instructions: the packaged one, or a file of one."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from plumbline.eval_workers.disclosure.sentence_files import SourceSentence, read_sentences
from plumbline.eval_workers.models.instruction import NONE, Instruction
from plumbline.warehouse.errors import BadInput
from plumbline.warehouse.text.toml_file import Texts, load, toml_table

_SHIPPED = resources.files("plumbline.eval_workers.disclosure") / "instructions.toml"


@toml_table
class _File:
    instructions: Texts


def load_instructions(path: Path | None = None) -> tuple[str, ...]:
    """Instructions of a file in order; without a path the packaged ones.

    ``.toml``: a list ``instructions``. Other files have one instruction per line or row, see
    ``read_sentences``, whose errors this raises; of ``.jsonl`` it is the key ``instruction``. White
    space around each is stripped. Raises ``BadInput`` for a row that isn't an instruction, is empty
    or repeated, and for a file without instructions.

    >>> len(load_instructions())
    4
    """
    if path is None or path.suffix.lower() == ".toml":
        what = str(path or _SHIPPED.name)
        listed = load(_File, path or _SHIPPED, what).instructions
        rows = [SourceSentence(number, text.strip()) for number, text in enumerate(listed, 1)]
    else:
        what, is_json = str(path), path.suffix.lower() == ".jsonl"
        rows = list(read_sentences(path, "instruction" if is_json else None))
    row_of: dict[str, int] = {}
    for row in rows:
        problem = row.problem or (None if row.text else "holds no instruction")
        if row.text in row_of:
            problem = f"repeats row {row_of[row.text]}"
        if problem:
            raise BadInput(f"{what}, row {row.number}", problem)
        row_of[row.text] = row.number
    if not row_of:
        raise BadInput(what, "holds no instruction", "give one at least")
    return tuple(row_of)


def in_each_form(texts: tuple[str, ...], forms: tuple[str, ...]) -> list[Instruction]:
    """The instruction ``NONE``, then one for each text in each form.

    >>> [i.form for i in in_each_form(("Go on.",), ("prefix", "chat"))[1:]]
    ['prefix', 'chat']
    """
    return [NONE, *(Instruction(text, form) for form in dict.fromkeys(forms) for text in texts)]
