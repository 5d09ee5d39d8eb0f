"""Reads and downloads the templates that UnStereoEval (Belem et al., ICLR 2024) released.

- USE-5, USE-10 and USE-20: sentences of about 5, 10 and 20 words. A language model wrote each one
  around a given word. We import every released row. ``is_natural`` is true if the sentence was
  judged natural with she and with he. Metrics only use natural rows: 4,405, 4,740 and 4,839 rows.
- WinoBias (Zhao et al., NAACL 2018): 1,586 templates with two occupations and a pronoun. We merge
  the development and test files, as the published figures do. In 41 templates a second pronoun for
  the same person is in square brackets. We keep the brackets, since the published scores were
  computed with them. ``direction`` names the sentence that follows the stereotype. ``stereotype``
  is `pro` if this is the masculine sentence, or else `anti`. A pair's clusters are its occupations.
- Winogender (Rudinger et al., NAACL 2018): 240 templates about 60 occupations. Half of them name a
  second person, such as "the customer"; the others say "someone". ``word`` is the noun that the
  pronoun refers to. The clusters are this word and the occupation in the template.
"""

from __future__ import annotations

import hashlib
import re
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from plumbline.eval_workers.pairs.benchmarks import Parsed
from plumbline.warehouse.errors import BadInput, UsageProblem, failure
from plumbline.warehouse.input.input_rows import records
from plumbline.warehouse.paths import replacing
from plumbline.warehouse.text.escape import say
from plumbline.warehouse.text.progress import progress

#: Where the released tables are, below ``PLUMBLINE_DATA``.
DEFAULT_LOCATION = "unstereo-eval/data/datasets/raw"
DESCRIPTION = "Templates with a pronoun, as UnStereoEval (Belem et al., ICLR 2024) released them"

#: UnStereoEval's public repository, and the commit whose sets are downloaded.
_ADDRESS = "https://raw.githubusercontent.com/ucinlp/unstereo-eval"
_COMMIT = "2aaff91621516d3e03d65db0c0ccedf0b856f623"
#: Name of a released table -> the start of its SHA-256.
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

_INDEX = ""  # the released tables' index column has no name
_LETTERS = re.compile(r"[a-z]+")


class _Tables(NamedTuple):
    """The CSV files of one set, and which of their columns to read.

    ``prefixes`` maps a file's stem to a prefix for the ids of its pairs. ``key`` is the column with
    the ids. ``verdict`` is a column whose values are True or False, or empty if there is none.
    """

    prefixes: dict[str, str]
    verdict: str = ""
    key: str = _INDEX


_SETS = {f"use-{n}": _Tables({f"USE-{n}": ""}, "is_natural") for n in (5, 10, 20)}
_PARTS = {f"coref__Winobias__templates.{part}": f"{part}-" for part in ("dev", "test")}
_SETS["winobias"] = _Tables(_PARTS, "stereotype")
_SETS["winogender"] = _Tables({"coref__Winogender__templates": ""}, key="example_id")
NAMES = tuple(_SETS)


def read(name: str, source: Path | None) -> Parsed:
    """Return the pairs of a set, and a reject for each row that gives no pair.

    ``source`` is the set's CSV file, which may be compressed, or the directory that holds it.
    WinoBias has two files and needs the directory. Pair ids are the released ids. Numeric ids are
    padded to five digits, so they sort as text. Raises ``BadInput`` if a file is missing.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "USE-5.csv"
    >>> _ = path.write_text(",word,template,is_natural\\n3,tea,{pronoun} drank tea.,True\\n")
    >>> [(p["pair_id"], p["sentence_b"], p["is_natural"]) for p in read("use-5", path).pairs]
    [('00003', 'He drank tea.', True)]
    """
    if source is None:
        raise UsageProblem(f"benchmark {name}", "needs its released table", "--source PATH")
    prefixes, verdict, key = _SETS[name]
    if len(prefixes) > 1 and not source.is_dir():
        problem = f"{source} is a file, expected a directory with one table per part: dev, test"
        raise BadInput(f"benchmark {name}", problem)
    parsed = Parsed(name)
    for stem, prefix in prefixes.items():
        path = _table(source, stem)
        needed = (key, "word", "template", *filter(None, [verdict]))
        for number, fields, fault in records(path, needed, ","):
            row: dict[str, Any] = {"source_file": path.name, "source_row": number}
            if fault is None and verdict and fields[verdict] not in ("True", "False"):
                fault = f"{verdict} is {fields[verdict]!r}, expected True or False"
            if fault:
                parsed.reject(row, fault, fields.get("template", ""))
                continue
            pair_id, word = fields[key], fields["word"]
            if key == _INDEX:
                is_number = pair_id.isascii() and pair_id.isdigit()
                pair_id = f"{prefix}{int(pair_id):05d}" if is_number else ""
            if name == "winobias":
                is_pro = fields[verdict] == "True"
                row |= {"split": prefix[:-1], "stereotype": "pro" if is_pro else "anti"}
                row["direction"] = "b" if is_pro else "a"
            elif verdict:
                row[verdict] = fields[verdict] == "True"
            elif word:
                row["cluster"] = f"word: {word}"
                row["cluster_2"] = f"schema: {pair_id.partition('.')[0]}"
            parsed.add(pair_id=pair_id, template=fields["template"], word=word or None, **row)
    if name == "winobias":
        _add_occupations(parsed)
    return parsed


def _table(source: Path, stem: str) -> Path:
    paths = [source, source / f"{stem}.csv", source / f"{stem}.csv.gz"]
    if path := next((path for path in paths if path.is_file()), None):
        return path
    raise BadInput(f"{source}", f"holds neither {stem}.csv nor {stem}.csv.gz", "give --source PATH")


def _add_occupations(parsed: Parsed) -> None:
    """Set each pair's clusters to two occupations: first its word, then those in its template."""
    occupations = {str(pair["word"]).lower() for pair in parsed.pairs if pair["word"]}
    for pair in parsed.pairs:
        words = _LETTERS.findall(str(pair["template"]).lower())
        named = [*filter(None, [pair["word"]]), *(w for w in words if w in occupations)]
        clusters = [f"occupation: {word}" for word in dict.fromkeys(named)]
        pair |= dict(zip(("cluster", "cluster_2"), clusters, strict=False))


def downloaded() -> Path:
    """Download the released sets into the user's cache; return a folder to use as PLUMBLINE_DATA.

    Each file is downloaded only once. Raises ``Interrupted`` if the server can't be reached, and
    ``BadInput`` if a file has an unexpected hash.
    """
    import platformdirs

    root = platformdirs.user_cache_path("plumbline") / "released" / _COMMIT
    missing = [name for name in _FILES if not (root / DEFAULT_LOCATION / name).is_file()]
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
                fix = "give --data, the directory with a clone of the repository"
                raise failure(e, address, f"can't be downloaded: {e}", fix) from e
            if not hashlib.sha256(content).hexdigest().startswith(_FILES[name]):
                raise BadInput(address, "is not the expected file", "check the network's proxy")
            with replacing(root / DEFAULT_LOCATION / name) as temporary:
                temporary.write_bytes(content)
    return root
