"""``python -m tools.frozen``: compare the frozen outputs with today's, or replace them.

Without arguments, it prints the differences and exits with 1 if there are any. ``--write`` stores
today's outputs; a commit that does so says in its message what changed. It keeps the tables, views,
columns and texts that are already frozen; ``--new`` also adds new ones.

Texts (help, pages, printed lines) are frozen as hashes, by the names in
``tests/frozen/outputs/texts.txt``. ``--text NAME`` prints today's text; ``--at COMMIT`` prints how
it differs from that commit's.

Of a long relation only the first rows and a total of each column are frozen. ``--all DIRECTORY``
writes every row: use it on the earlier commit, too, and compare the directories with ``diff -r``.

``--inputs`` makes the stored inputs again, with models trained on this machine. All outputs then
change.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.frozen.compare import Compared, kept_texts, save, write
from tools.frozen.outputs import Outputs, helps
from tools.frozen.plain import REPOSITORY
from tools.frozen.rebuild import frozen


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.frozen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true", help="replace the frozen outputs")
    parser.add_argument("--new", action="store_true", help="with --write: also freeze what is new")
    parser.add_argument("--text", metavar="NAME", help="print a text")
    parser.add_argument("--at", metavar="COMMIT", help="with --text: show a diff from this commit")
    parser.add_argument("--all", type=Path, metavar="DIRECTORY", help="write every row as TSV")
    parser.add_argument("--inputs", action="store_true", help="make the stored inputs again")
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
        relations = {} if given.text else outputs.relations()  # first, since a report runs `why`
        texts = outputs.texts() | helps()
    if given.text:
        print(_shown(texts.get(given.text, ""), given.text, given.at))
        return 0
    for name, relation in relations.items() if given.all else ():
        save(given.all, name, relation, len(relation.rows))
    compared = Compared()
    compared.rows(relations)
    compared.texts(texts, kept_texts())
    print(compared)
    if given.write:
        write(relations, texts, new=given.new)
    return int(bool(compared.differences) and not given.write)


def _shown(text: str, name: str, commit: str | None) -> str:
    """Return the text, or how it differs from a commit's."""
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
