"""Downloads the five released sets of UnStereoEval from its public repository."""

from __future__ import annotations

import hashlib
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import RELEASED
from plumbline.warehouse.errors import BadInput, failure
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress

_ADDRESS = "https://raw.githubusercontent.com/ucinlp/unstereo-eval"
_COMMIT = "2aaff91621516d3e03d65db0c0ccedf0b856f623"
#: The tables, each with the start of its SHA-256.
_FILES = {
    "USE-5.csv": "033337b7e37b",
    "USE-10.csv": "e24cfc729978",
    "USE-20.csv": "b640aea8b91a",
    "coref__Winobias__templates.dev.csv": "abb0b77d04fe",
    "coref__Winobias__templates.test.csv": "fd5d24c27297",
    "coref__Winogender__templates.csv": "f8777726c1dd",
}
_LICENCE = (
    "downloading five sets of sentence pairs, 4.6 MB, from github.com/ucinlp/unstereo-eval; they "
    "are published without a licence: cite Belem et al. (ICLR 2024), and don't pass them on"
)
_PATIENCE_S = 20


def downloaded() -> Path:
    """The directory with the released sets, as `PLUMBLINE_DATA`, in the user's cache.

    Each file is downloaded once. Raises ``Interrupted`` for an unreachable server, and ``BadInput``
    for a file that isn't the expected one.
    """
    import platformdirs

    root = platformdirs.user_cache_path("plumbline") / "released" / _COMMIT
    missing = [name for name in _FILES if not (root / RELEASED / name).is_file()]
    if missing:
        say(_LICENCE, err=True)
    with progress("download", "files") as update:
        for number, name in enumerate(missing):
            update(number, len(missing))
            address = f"{_ADDRESS}/{_COMMIT}/data/datasets/raw/{name}"
            try:
                with urlopen(address, timeout=_PATIENCE_S) as answer:
                    content = answer.read()
            except (OSError, HTTPException) as e:
                fix = "give --data, the directory with a clone of it"
                raise failure(e, address, f"can't be downloaded: {e}", fix) from e
            if not hashlib.sha256(content).hexdigest().startswith(_FILES[name]):
                raise BadInput(address, "is not the expected file", "check the network's proxy")
            with replacing(root / RELEASED / name) as temporary:
                temporary.write_bytes(content)
    return root
