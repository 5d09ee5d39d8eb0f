"""``python -m tools.frozen``: compare the frozen outputs with today's, or write them anew.

Without arguments it prints what differs and exits with 1. ``--write`` writes the outputs of
today; a commit that does so names the difference in its message. ``--inputs`` makes the stored
inputs anew, with models trained on this machine, which changes everything.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.frozen", description=__doc__)
    parser.add_argument("kinds", nargs="*", help="only these kinds of outputs")
    parser.add_argument("--write", action="store_true", help="write the outputs anew")
    parser.add_argument("--inputs", action="store_true", help="make the stored inputs anew")
    given = parser.parse_args()
    if given.inputs:
        from tools.frozen.inputs import make

        make()
        return 0
    from tools.frozen.compare import differences, write
    from tools.frozen.outputs import KINDS, Outputs
    from tools.frozen.rebuild import frozen

    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}, there are {', '.join(KINDS)}")
    found = ""
    with tempfile.TemporaryDirectory() as work, frozen(Path(work)) as printed:
        outputs = Outputs(printed)
        for kind in given.kinds or KINDS:
            texts = outputs.kind(kind)
            found += differences(kind, texts)
            if given.write:
                write(kind, texts)
    print(found or "no difference")
    return int(bool(found) and not given.write)


if __name__ == "__main__":
    sys.exit(_main())
