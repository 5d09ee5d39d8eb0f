"""Writes the lists of `docs/commands.md` anew.

``python -m plumbline.pipelines.command.commands_page docs/commands.md``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from plumbline.pipelines.command import registry
from plumbline.pipelines.command.base import class_of, has_plan

#: The first and last line of the page's part that is generated.
BEGIN, END = "<!-- commands: written -->", "<!-- commands: end -->"


def lists() -> Iterator[str]:
    """A table per group: its commands, what they do, and whether they have a plan.

    >>> next(line for line in lists() if line.startswith("| `corpus count`"))
    '| `corpus count` | Count words and their co-occurrences with target words. | plan |'
    """
    group = ""
    for name in registry.targets():
        first = name.split()[0]
        if first != group:
            group = first
            yield from ("", f"### {group}", "", "| command | does | has |", "|---|---|---|")
        kind = class_of(name)
        has = "plan" if has_plan(kind) else ""
        about = " ".join(registry.summary(name).split()).replace("|", "\\|")
        yield f"| `{name}` | {about} | {has} |"


def written(page: str) -> str:
    """A page with the current lists between ``BEGIN`` and ``END``."""
    text = "\n".join([BEGIN, *lists(), "", END])
    return re.sub(f"{BEGIN}.*{END}", lambda _: text, page, flags=re.S)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(written(target.read_text("utf-8")), "utf-8")
