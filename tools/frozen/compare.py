"""Today's outputs beside the frozen ones; a unified diff of what differs."""

from __future__ import annotations

import difflib
import math
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

OUTPUTS = Path(__file__).resolve().parents[2] / "tests/frozen/outputs"

_FLOAT = re.compile(r"(?<![\w.])[-−+]?\d+\.\d{6,}(?:e[-+]\d+)?")
#: Other processors round the ninth digit otherwise.
_TOLERANCE = 1e-8


def differences(kind: str, texts: Mapping[str, str]) -> str:
    """A unified diff of one kind's files; nothing where all are the same."""
    folder = OUTPUTS / kind
    before = {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*.txt")
    }
    found: list[str] = []
    for name in sorted({*before, *texts}):
        old, new = before.get(name, "").splitlines(), texts.get(name, "").splitlines()
        new = _with_old_digits(old, new)
        path = f"tests/frozen/outputs/{kind}/{name}"
        found += difflib.unified_diff(old, new, path, "today", lineterm="")
    return "".join(f"{line}\n" for line in found)


def write(kind: str, texts: Mapping[str, str]) -> None:
    """Put the files of one kind in the place of the frozen ones."""
    shutil.rmtree(OUTPUTS / kind, ignore_errors=True)
    for name, text in texts.items():
        path = OUTPUTS / kind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _with_old_digits(old: list[str], new: list[str]) -> list[str]:
    """The new lines, where they differ in last digits only as they were."""
    if len(old) != len(new):
        return new
    return [a if a != b and same(a, b) else b for a, b in zip(old, new, strict=True)]


def same(a: str, b: str) -> bool:
    """Whether lines are the same but for the ninth digit of numbers with six decimals or more.

    >>> same("x 0.333333333", "x 0.333333334"), same("x 0.333333333", "x 0.333333343")
    (True, False)
    """
    if _FLOAT.sub("", a) != _FLOAT.sub("", b):
        return False
    pairs = zip(_FLOAT.findall(a), _FLOAT.findall(b), strict=True)
    return all(
        math.isclose(
            float(x.replace("−", "-")), float(y.replace("−", "-")), rel_tol=_TOLERANCE, abs_tol=1e-9
        )
        for x, y in pairs
    )
