"""``python -m tools.frozen``: compare the frozen outputs with today's, or write them anew.

Without arguments it prints what differs and exits with 1. ``--write`` writes the outputs of today;
a commit that does so names the difference in its message. It keeps the tables, views, columns and
texts that were kept; ``--new`` keeps those that the product has besides, too.

Of texts (help, pages, printed lines) only hashes are kept, by the names in
``tests/frozen/outputs/texts.txt``. ``--text NAME`` prints a text of today, and ``--text NAME --at
COMMIT`` a diff of that of a commit and today's.

``--inputs`` makes the stored inputs anew, with models trained on this machine, which changes
everything.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.frozen.compare import Compared, kept_texts, write
from tools.frozen.outputs import Outputs, helps
from tools.frozen.plain import REPOSITORY
from tools.frozen.rebuild import frozen


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.frozen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help="write the outputs anew")
    parser.add_argument("--new", action="store_true", help="with --write: also what wasn't kept")
    parser.add_argument("--text", metavar="NAME", help="print a text")
    parser.add_argument("--at", metavar="COMMIT", help="with --text: as a diff since then")
    parser.add_argument("--inputs", action="store_true", help="make the stored inputs anew")
    given = parser.parse_args()
    if given.inputs:
        from tools.frozen.inputs import make

        make()
        return 0
    if given.text and given.text in (texts := helps()):
        print(_shown(texts[given.text], given.text, given.at))
        return 0
    with tempfile.TemporaryDirectory() as work, frozen(Path(work)) as printed:
        outputs = Outputs(printed)
        relations = {} if given.text else outputs.relations()  # first: a report asks `why`
        texts = outputs.texts() | helps()
    if given.text:
        print(_shown(texts.get(given.text, ""), given.text, given.at))
        return 0
    compared = Compared()
    compared.rows(relations)
    compared.texts(texts, kept_texts())
    print(compared)
    if given.write:
        write(relations, texts, new=given.new)
    return int(bool(compared.differences) and not given.write)


def _shown(text: str, name: str, commit: str | None) -> str:
    """Return the text, or its difference from that of a commit."""
    if commit is None:
        return text
    git = ("git", "-C", str(REPOSITORY), "worktree")
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([*git, "add", "--quiet", "--detach", work, commit], check=True)
        try:
            command = [sys.executable, "-m", "tools.frozen", "--text", name]
            old = subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True)
        finally:
            subprocess.run([*git, "remove", "--force", work], check=True)
    lines = difflib.unified_diff(
        old.stdout.splitlines(), text.splitlines(), commit, "today", lineterm=""
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(_main())
