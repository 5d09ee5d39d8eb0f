"""Lists of instructions: the packaged one, or a TOML, JSON-lines or text file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from plumbline.eval_workers.models.instruction import NONE, Instruction
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.text.toml_file import parsed, read_text

_KINDS = {
    ".toml": 'instructions = ["...", ...]',
    ".jsonl": 'one {"instruction": "..."} a line',
    ".txt": "one instruction a line",
}
_SHIPPED = "instructions.toml"


def load_instructions(path: Path | None = None) -> tuple[str, ...]:
    """Instructions of a file in order; without a path the packaged ones.

    White space around each is stripped; empty lines of JSON-lines and text files are skipped.
    Raises ``UsageProblem`` for a file that is missing or of another kind. Raises ``BadInput`` for a
    row that isn't an instruction, is empty or repeated, and for a file without instructions.

    >>> len(load_instructions())
    4
    """
    what = str(path or _SHIPPED)
    file = path or resources.files("plumbline.eval_workers.disclosure") / _SHIPPED
    kind = Path(what).suffix.lower()
    if kind not in _KINDS:
        expected = "; ".join(f"{name}: {form}" for name, form in _KINDS.items())
        raise UsageProblem(what, f"is not of a known kind ({expected})")
    text = read_text(file, what)
    if kind == ".toml":
        listed = parsed(text, what).get("instructions")
        if not isinstance(listed, list):
            problem = "has no list `instructions`"
            raise BadInput(what, problem, f"expected {_KINDS['.toml']}")
        return _checked(what, enumerate(listed, 1))
    lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    return _checked(what, _of_json(what, lines) if kind == ".jsonl" else lines)


def in_each_form(texts: tuple[str, ...], forms: tuple[str, ...]) -> list[Instruction]:
    """The instruction ``NONE``, then one for each text in each form.

    >>> [i.form for i in in_each_form(("Go on.",), ("prefix", "chat"))[1:]]
    ['prefix', 'chat']
    """
    return [NONE, *(Instruction(text, form) for form in dict.fromkeys(forms) for text in texts)]


def _of_json(what: str, lines: list[tuple[int, str]]) -> Iterator[tuple[int, object]]:
    for i, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise BadInput(f"{what}, row {i}", f"not valid JSON: {e}") from e
        yield i, row.get("instruction") if isinstance(row, dict) else row


def _checked(what: str, rows: Iterable[tuple[int, object]]) -> tuple[str, ...]:
    row_of: dict[str, int] = {}
    for i, value in rows:
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"{what}, row {i}", "holds no instruction", "expected a text")
        text = value.strip()
        if text in row_of:
            raise BadInput(f"{what}, row {i}", f"repeats row {row_of[text]}", "leave it out")
        row_of[text] = i
    if not row_of:
        raise BadInput(what, "holds no instruction", "give one at least")
    return tuple(row_of)
