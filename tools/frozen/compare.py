"""Compare today's outputs with the frozen ones: rows of tables and views, and hashes of texts.

A table, view, column or text that only the product has is listed, but not compared until ``--new``
freezes it. One that only the frozen outputs have is a difference.

Of more than 3 rows, the first 3 are frozen, and a last row with a total of each column.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tools.frozen.rows import Relation, number

OUTPUTS = Path(__file__).resolve().parents[2] / "tests/frozen/outputs"
ROWS, TEXTS = OUTPUTS / "rows", OUTPUTS / "texts.txt"

#: The sign in an exponent tells a number from a key such as 193e5440327bb101.
_FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+)")
#: Other processors round the last digits differently.
_TOLERANCE = 1e-9
#: How a cell of the row of totals starts.
_TOTAL = "see --all: "
#: How many rows of a relation are frozen as they are. The totals are over all rows.
_MOST = 3


@dataclass
class Compared:
    """The ``differences`` as lines of a diff, and what is ``new``: in the product, not frozen."""

    differences: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        new = [f"not frozen: {', '.join(self.new)}"] if self.new else []
        return "\n".join([*(self.differences or ["no difference"]), *new])

    def rows(self, relations: Mapping[str, Relation]) -> None:
        """Compare the rows of tables and views."""
        kept = {path.stem: _read(path) for path in ROWS.glob("*.tsv")}
        self.new += sorted(relations.keys() - kept.keys())
        for name, old in sorted(kept.items()):
            if name not in relations:
                self.differences.append(f"{name} is gone")
                continue
            columns = [c for c in old.columns if c in relations[name].columns]
            self.differences += [f"{name}.{c} is gone" for c in old.columns if c not in columns]
            self.new += [f"{name}.{c}" for c in relations[name].columns if c not in columns]
            a, b = (_lines(relation.only(columns)) for relation in (old, relations[name]))
            for lines in (a, b):
                if lines[-1].startswith(_TOTAL):
                    lines += lines.pop().split("\t")
            if len(a) == len(b):
                b = [x if same(x, y) else y for x, y in zip(a, b, strict=True)]
            self.differences += difflib.unified_diff(a, b, name, "today", lineterm="", n=1)

    def texts(self, texts: Mapping[str, str], kept: Mapping[str, str]) -> None:
        """Compare the hashes of texts with the frozen hashes."""
        self.new += sorted(texts.keys() - kept.keys())
        for name, old in kept.items():
            if name not in texts:
                self.differences.append(f"{name} is gone")
            elif hashed(texts[name]) != old:
                self.differences.append(f"{name}: another text, see --text")


def write(relations: Mapping[str, Relation], texts: Mapping[str, str], *, new: bool) -> None:
    """Replace the frozen outputs with today's; ``new`` also adds what wasn't frozen."""
    kept = {path.stem: _read(path) for path in ROWS.glob("*.tsv")}
    for name in kept.keys() - relations.keys():
        (ROWS / f"{name}.tsv").unlink()
    for name, relation in relations.items() if new else ():
        kept[name] = relation
    for name in kept.keys() & relations.keys():
        columns = [c for c in kept[name].columns if c in relations[name].columns]
        save(ROWS, name, relations[name].only(columns))
    names = texts if new else texts.keys() & kept_texts()
    hashes = [f"{hashed(texts[name])} {name}\n" for name in sorted(names)]
    TEXTS.write_text("".join(hashes), encoding="utf-8")


def save(directory: Path, name: str, relation: Relation, most: int = _MOST) -> None:
    """Write a relation as TSV; of more than `most` rows, only the first `most` and the totals."""
    directory.mkdir(parents=True, exist_ok=True)
    text = "\n".join(_lines(relation, most))
    (directory / f"{name}.tsv").write_text(f"{text}\n", encoding="utf-8")


def kept_texts() -> dict[str, str]:
    """Read the hashes of the frozen texts, by name."""
    lines = TEXTS.read_text("utf-8").splitlines() if TEXTS.exists() else []
    return {name: value for value, _, name in (line.partition(" ") for line in lines)}


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def same(a: str, b: str) -> bool:
    """Return whether lines are the same except for the tenth digit of numbers that aren't whole.

    >>> same("x 0.3333333333", "x 0.3333333334"), same("x 0.3333333333", "x 0.3333333433")
    (True, False)
    """
    return a == b or (
        _FLOAT.sub("", a) == _FLOAT.sub("", b)
        and all(
            math.isclose(float(x), float(y), rel_tol=_TOLERANCE, abs_tol=1e-11)
            for x, y in zip(_FLOAT.findall(a), _FLOAT.findall(b), strict=True)
        )
    )


def _read(path: Path) -> Relation:
    columns, *rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return Relation(columns, rows)


def _lines(relation: Relation, most: int = _MOST) -> list[str]:
    """Return the columns, then the rows, in an order that doesn't depend on last digits."""
    lines = ["\t".join(row) for row in relation.rows]
    lines.sort(key=lambda x: (x.startswith(_TOTAL), _FLOAT.sub("", x), x))
    if len(lines) > most and not lines[-1].startswith(_TOTAL):
        cells = zip(*(line.split("\t") for line in lines), strict=True)
        lines[most:] = ["\t".join(map(_total, relation.columns, cells))]
    return ["\t".join(relation.columns), *lines]


def _total(column: str, cells: Sequence[str]) -> str:
    """Return the number of cells, a sum over their floats, and a hash of everything else.

    If the eighth digit of a float changes, the sum changes by more than `same` allows; the tenth
    may change. asinh is like a logarithm, so the size of the floats doesn't matter. Weights differ
    by row, so the sum also changes if two floats are exchanged.
    """
    text = "\t".join(cells)
    floats = enumerate(map(float, _FLOAT.findall(text)), 1)
    sum_ = math.fsum((1 - k * 0.618 % 1 / 2) * math.asinh(100 * x) for k, x in floats)
    rest = hashed(_FLOAT.sub("", text))[:16]
    return f"{_TOTAL}{column}, {len(cells)} rows, {number(3 + sum_ % 1)}, {rest}"
