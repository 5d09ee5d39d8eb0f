"""Hostile values of a command's options, from the type and bounds that each field declares."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic.fields import FieldInfo

from plumbline.pipelines.command.base import Command, Parameter
from plumbline.warehouse.input.shards import write_jsonl_zst

_LONG = 100_000
TEXTS = (
    *("", " ", "\0", "a\0b", "\udcff", "a\ud800b", "\x1b[2J", "\u202ex", "\u200b", "\r", "a\nb"),
    *("x" * 300, "x" * _LONG, "é" * 200, "e\u0301", "\U0010ffff", "٣", "＝1", "=1+1", "-x", "--"),
    *("..", "../../outside/x", "a/b", "/", "~", "~nobody", "*", "[", "**/*", "{", "{}", "%s", "$x"),
    *("(a+)+$", "[bold]", "';--", '"', "'", "\\", "null", "NaN", "0", "-1", "True", ",", "a,,b"),
    *(
        "a,a",
        "/a",
        "a/",
        "she/he",
        "he/he",
        "@",
        "s3://",
        "http://[",
        "://",
        "file:///etc",
        "train:",
    ),
    *("\ufeff", "\u2028", "CON", "a=b", "a:b", "#", "hf://", "C:\\x"),
)
NUMBERS = (
    *("", "0", "-0", "-1", "1", "1.5", "1e3", "1e400", "-1e400", "5e-324", "nan", "inf", "-inf"),
    *("٣", "１２", "²", "½", "0x10", "1_000", "+5", " 5 ", "5\n", "1,5", "9" * 5_000, "x", "None"),
    *(str(base + k) for base in (2**31, 2**32, 2**53, 2**63, 10**12, 10**30) for k in (-1, 0, 1)),
)
_JSON = (
    *("null", "[]", "{}", "3", '"x"', "[" * 5_000, "{", '{"text": "\\ud800 she"}', '{"text": 5}'),
    *('{"text": "she \\u0000 he"}', '{"text": 1e999}', '{"a": ' + "9" * 5_000 + "}", "NaN"),
    *('{"sentence_a": "He ran.", "sentence_b": "She ran."}', '{"text": "she he nurse"}'),
    *('{"sentence_a": ["x"], "sentence_b": {}}', '{"sentence_a": "\\ud800 a", "sentence_b": "b"}'),
)
_TOML = (
    "x = [",
    "[a]\n[a]",
    "x = nan",
    "x = 1e999",
    "\0",
    "words = 5",
    'words = ["a", 5]',
    "x = {}",
)
_CSV = ("sentence_a,sentence_b\nHe ran.,She ran.\n", "a\n\0\n", '"', "a,a\n1,2\n", "\n", "=1,+1\n")
#: Of a value in a file of settings: what no field has, or has as another type.
_LITERALS = (
    *("[]", "{}", "nan", "inf", "-1", "0", "1e400", '""', '"\\u0000"', "true", "1979-05-27"),
    *('["x", "x"]', "[[1]]", "{ a = 1 }", "9223372036854775807", '"x"', "[1, 'a']", "2.5", "[{}]"),
)


def write_files(here: Path, rng: random.Random) -> list[Path]:
    """Files and what only looks like files: whole, malformed, pipes, links and directories."""
    here.mkdir()
    texts = [f"She said that he met nurse {k}." for k in range(20)]
    contents: dict[str, bytes] = {"empty": b"", "zeros": bytes(4096), "noise": rng.randbytes(5_000)}
    contents |= {"latin": "caf\xe9 she".encode("latin-1"), "utf16": "she he".encode("utf-16")}
    contents |= {f"json{k}": text.encode() for k, text in enumerate(_JSON)}
    contents |= {f"toml{k}": text.encode() for k, text in enumerate(_TOML)}
    contents |= {f"csv{k}": text.encode() for k, text in enumerate(_CSV)}
    contents["lines"] = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    contents["mixed"] = "\n".join(_JSON).encode()
    suffixes = (
        *(".jsonl", ".json", ".csv", ".tsv", ".toml", ".txt", ".parquet", ".jsonl.zst", ""),
        *(".jsonl.gz", ".bin", ".yaml", ".vec", ".safetensors"),
    )
    made = []
    for name, content in contents.items():
        path = here / f"{name}{rng.choice(suffixes)}"
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        made.append(path)
    write_jsonl_zst(here / "good.jsonl.zst", texts)
    (here / "good.txt").write_text("\n".join(texts))
    table = {"text": [None, *texts], "n": [math.nan] * 21}
    pq.write_table(pa.table(table), here / "good.parquet")
    os.mkfifo(here / "pipe.jsonl")
    (here / "circle").symlink_to(here / "circle")
    (here / "dangling").symlink_to(here / "nothing")
    (here / "folder.jsonl").mkdir()
    model = here / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": ["gpt2"], "architectures": [1]}')
    (model / "model.safetensors").write_bytes(bytes(64))
    names = ("good.jsonl.zst", "good.txt", "good.parquet", "pipe.jsonl", "circle", "dangling")
    return [*made, *(here / name for name in (*names, "folder.jsonl", "model"))]


class Values:
    """Values for the options of a command, plausible or hostile; ``known`` are texts by column."""

    def __init__(
        self, rng: random.Random, files: Sequence[Path], known: Mapping[str, Sequence[str]]
    ) -> None:
        self.rng, self.files, self.known = rng, files, known

    def words(self, kind: type[Command], one: Parameter, *, hostile: bool) -> list[str]:
        """The words of a command line that give a value to an option."""
        if one.kind is bool:
            no = f"--no-{one.option[2:]}"
            some = (
                (one.option, no, f"{one.option}=x", f"{one.option}=") if hostile else (one.option,)
            )
            return [self.rng.choice(some)]
        values = [self.value(kind, one, hostile=hostile)]
        if get_origin(one.kind) is tuple:
            n = self.rng.choice((0, 1, 1, 2, 3, 500)) if hostile else self.rng.choice((1, 2))
            more = [self.value(kind, one, hostile=hostile and k % 2 == 0) for k in range(min(n, 3))]
            values = (more * n)[:n]
            if not one.is_list:
                values = [one.on.separator.join(values)]
        if one.on.positional:
            return values
        return [word for value in values for word in (one.option, value)]

    def value(self, kind: type[Command], one: Parameter, *, hostile: bool) -> str:
        """One value as text."""
        types = [t for t in (get_args(one.kind) or (one.kind,)) if t not in (type(None), ...)]
        if get_origin(one.kind) is Literal or any(get_origin(t) is Literal for t in types):
            inner = next((t for t in types if get_origin(t) is Literal), one.kind)
            choices = [str(choice) for choice in get_args(inner)]
            odd = [choices[0].upper(), f"{choices[0]} ", *TEXTS]
            return self.rng.choice(odd if hostile else choices)
        if any(t in (int, float) for t in types):
            return self._number(kind, one, float in types, hostile=hostile)
        if Path in types:
            return self._path(hostile=hostile)
        return self._text(one.name, hostile=hostile)

    def _number(self, kind: type[Command], one: Parameter, real: bool, *, hostile: bool) -> str:
        low, high = _bounds(kind, one)
        if not hostile:
            first = math.ceil(low) if low is not None else 0
            value = min(first + self.rng.choice((0, 1, 2, 5)), high if high is not None else 10**9)
            return str(float(value) if real else int(value))
        ends = [end for end in (low, high) if end is not None]
        step = 1e-9 if real else 1
        near = [str(end + k * step) for end in ends for k in (-1, 0, 1)]
        return (
            self.rng.choice(near) if near and self.rng.random() < 0.5 else self.rng.choice(NUMBERS)
        )

    def _path(self, *, hostile: bool) -> str:
        place = self.rng.choice(self.files)
        if not hostile:
            return str(
                self.rng.choice((place, place, place.with_name("new"), Path("made") / "x.csv"))
            )
        whole, folder = str(place), str(place.parent)
        return self.rng.choice(
            (
                *(
                    whole,
                    whole,
                    whole,
                    f"{whole}/below",
                    f"{folder}/*",
                    f"{folder}/no/such",
                    folder,
                ),
                *("/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem", "/proc/x", "/proc/1/x"),
                *("/sys/x", "/proc/self/fd/0", ".", "..", "-", f"{folder}/{'x' * 300}"),
                *(f"{folder}/{'y/' * 3_000}", self.rng.choice(TEXTS), self.rng.choice(TEXTS)),
            )
        ).replace("hf://", "hf:/")

    def _text(self, name: str, *, hostile: bool) -> str:
        if hostile:
            return self.rng.choice(TEXTS)
        same = [n for n in self.known if n == name or n in name]
        column = self.rng.choice(same or [*self.known])
        return self.rng.choice(self.known[column])

    def literal(self, kind: type[Command], one: Parameter) -> str:
        """A value in a TOML file, often of another type than the field's."""
        if self.rng.random() < 0.6:
            return self.rng.choice(_LITERALS)
        text = self.value(kind, one, hostile=True)
        return text if self.rng.random() < 0.3 else json.dumps(text)


def _bounds(kind: type[Command], one: Parameter) -> tuple[float | None, float | None]:
    """The least and the largest number that a field takes, as it declares them."""
    hints: Any = kind
    for name in one.path:
        holder = hints if isinstance(hints, type) else get_args(hints)[0]
        hints = get_type_hints(holder, include_extras=True)[name]
    found: dict[str, float] = {}
    for mark in get_args(hints)[1:]:
        for bound in mark.metadata if isinstance(mark, FieldInfo) else ():
            found |= {n: getattr(bound, n) for n in ("ge", "gt", "le", "lt") if hasattr(bound, n)}
    return found.get("ge", found.get("gt")), found.get("le", found.get("lt"))
