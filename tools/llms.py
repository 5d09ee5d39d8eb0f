"""Write `docs/llms.txt`, the pages of the documentation for language models, from the index.

python -m tools.llms docs/index.md docs/llms.txt
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path


def written(index: str) -> str:
    """The index's first paragraph and its list of pages, one line for each (see llmstxt.org).

    >>> index = "# A\\n\\nB\\nb.\\n\\nC.\\n\\n## D\\n\\nE.\\n\\n- [F](f.md): g,\\n  h.\\n"
    >>> print(written(index), end="")
    # A
    <BLANKLINE>
    > B b.
    <BLANKLINE>
    ## D
    <BLANKLINE>
    - [F](f.md): g, h.
    """
    title, about, *blocks = re.sub(r"\n +", " ", index).split("\n\n")
    return "\n\n".join([title, f"> {' '.join(about.split())}", *_lists(blocks)]) + "\n"


def _lists(blocks: list[str]) -> Iterator[str]:
    """Headings and lists of pages."""
    for block in blocks:
        if lines := re.findall(r"(?m)^(?:## |- \[).*", block):
            yield "\n".join(lines)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(written(source.read_text("utf-8")), "utf-8")
