"""Measure the size of every part of the project: lines, bytes, statements and long lines.

    python -m tools.budget           # print what is over its budget, and the sums
    python -m tools.budget --write STEP  # make today's figures the budget

`tests/budget.toml` has one entry for each state of the project, oldest first. The last entry is the
budget. `tests/test_budget.py` says what is over budget.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/budget.toml"
PRODUCT = ("warehouse", "jobs", "eval_workers", "pipelines", "plumbline")
ROOMS = (*PRODUCT, "spark_conf", "tools", "benchmarks", "tests", "docs")
FIGURES = ("lines", "bytes", "statements", "long_lines")
#: Kinds of files whose lines are limited to 100 characters.
_LIMITED = {"py", "sql", "js", "css", "html"}
_LONGEST = 100

#: The four figures, in the order of `FIGURES`, by room and kind of file.
Sizes = dict[str, dict[str, list[int]]]


def measured(root: Path = ROOT) -> Sizes:
    """Measure the files that git tracks, except budget.toml and links.

    Files outside the rooms count as `root`.
    """
    listing = ("git", "ls-files", "-z")
    output = subprocess.run(listing, cwd=root, check=True, capture_output=True).stdout.decode()
    sizes: Sizes = {}
    for name in sorted({name for name in output.split("\0") if name}):
        path = root / name
        if path.is_symlink() or not path.is_file() or path == root / "tests/budget.toml":
            continue
        room = top if (top := name.partition("/")[0]) in ROOMS else "root"
        kind = path.suffix.removeprefix(".") or "other"
        total = sizes.setdefault(room, {}).setdefault(kind, [0] * len(FIGURES))
        for i, figure in enumerate(_figures(kind, path.read_bytes())):
            total[i] += figure
    return sizes


def _figures(kind: str, data: bytes) -> tuple[int, int, int, int]:
    """Return the figures of a file; a binary file has only bytes.

    >>> _figures("py", b"x = 1\\nif x:\\n    y = 2\\n"), _figures("sql", b"SELECT 1")
    ((3, 22, 3, 0), (1, 8, 0, 0))
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return 0, len(data), 0, 0
    lines = text.splitlines()
    nodes = ast.walk(ast.parse(text)) if kind == "py" else ()
    n_statements = sum(isinstance(node, ast.stmt) for node in nodes)
    n_long = sum(len(line) > _LONGEST for line in lines) if kind in _LIMITED else 0
    return len(lines), len(data), n_statements, n_long


def entries() -> list[tuple[str, Sizes]]:
    """Read the entries of budget.toml, oldest first."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["state"]
    return [(state["at"], {k: v for k, v in state.items() if k != "at"}) for state in listed]


def over(sizes: Sizes, budget: Sizes) -> list[str]:
    """Say which figures are over their budget; a kind of file without a budget has 0.

    >>> over({"jobs": {"py": [9, 80, 7, 0]}}, {"jobs": {"py": [8, 90, 7, 0]}})
    ['jobs py: 9 lines, budget 8']
    """
    return [
        f"{room} {kind}: {figure:,} {name}, budget {limit:,}"
        for room, kinds in sizes.items()
        for kind, figures in kinds.items()
        for name, figure, limit in zip(
            FIGURES, figures, budget.get(room, {}).get(kind, [0] * len(FIGURES)), strict=True
        )
        if figure > limit
    ]


def summed(sizes: Mapping[str, Mapping[str, list[int]]], rooms: tuple[str, ...]) -> list[int]:
    """Return the sums of the figures over these rooms and all kinds of files."""
    found = [figures for room in rooms for figures in sizes.get(room, {}).values()]
    return [sum(column) for column in zip([0] * len(FIGURES), *found, strict=True)]


def _write(at: str, sizes: Sizes) -> None:
    """Add an entry to the end of budget.toml. Remove an earlier entry of the same name."""
    before = [state for state in entries() if state[0] != at] if LIST.exists() else []
    lines = [
        "# The size of each part of the project, by kind of file: lines, bytes, Python statements",
        "# and lines over 100 characters. One entry for each step, the oldest first; the last one",
        "# is the budget. `python -m tools.budget --write STEP` measures it.",
    ]
    for name, rooms in [*before, (at, sizes)]:
        lines += ["", "[[state]]", f'at = "{name}"']
        for room, kinds in rooms.items():
            cells = ", ".join(f"{kind} = {figures}" for kind, figures in kinds.items())
            lines.append(f"{room} = {{ {cells} }}")
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Run the tool; the status is 1 if something is over its budget."""
    parser = argparse.ArgumentParser(prog="python -m tools.budget")
    parser.add_argument("--write", metavar="STEP", help="make today's figures the budget of STEP")
    step = parser.parse_args().write
    sizes = measured()
    if step:
        _write(step, sizes)
    exceeded = over(sizes, entries()[-1][1])
    print("\n".join(exceeded) or "nothing is over its budget")
    for name, rooms in (("product", PRODUCT), ("tests", ("tests",)), ("docs", ("docs",))):
        total = dict(zip(FIGURES, summed(sizes, rooms), strict=True))
        print(f"{name}: " + ", ".join(f"{n:,} {figure}" for figure, n in total.items()))
    return int(bool(exceeded))


if __name__ == "__main__":
    sys.exit(main())
