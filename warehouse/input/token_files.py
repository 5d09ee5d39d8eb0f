"""Texts of token files, in order: Megatron's `.bin` with its `.idx`, and `.npy` arrays.

In both kinds of files, the token that ends a text ends a document.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plumbline.warehouse.distribution import install_line
from plumbline.warehouse.errors import BadInput, MissingComponent, UsageProblem, failure
from plumbline.warehouse.input.remote_files import describe, open_file, unreadable
from plumbline.warehouse.paths import replacing

#: Reason for rejecting a document that can't be decoded.
NOT_DECODED = "holds a token that the tokenizer lacks: name the model's own with --tokenizer"
Tokens = NDArray[np.integer[Any]]

_MAGIC = b"MMIDIDX\0\0"
#: Magic, version, code of the tokens' type, number of sequences, length of the list of documents.
_HEADER = struct.Struct("<9sQBQQ")
_TYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
#: The name of a part of a `.bin`; a part can begin at any byte, and all share one index.
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})")
#: Most tokens of a document.
_LONGEST = 1 << 26
_BLOCK = 1 << 22
#: Number of offsets that are read from an index at once, and of tokens in a batch of texts.
_OFFSETS, _BATCH_TOKENS = 1 << 16, 1 << 18


def decoder(name: str) -> bytes:
    """A model's tokenizer and the token that ends a text, as bytes for :func:`loaded`.

    ``name`` is a directory or a hub id. Raises ``BadInput`` if it has no valid `tokenizer.json`,
    ``Interrupted`` if the hub can't be reached, ``MissingComponent`` if a package is missing.
    """
    tokenizer = _file(name, "tokenizer.json")
    if tokenizer is None:
        fix = "give a directory with tokenizer.json, or a model's id on the hub"
        raise BadInput(f"tokenizer {name}", "has no tokenizer.json", fix)
    ends: list[object] = []
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        try:
            end = json.loads(_file(name, file) or b"{}").get("eos_token")
        except (ValueError, AttributeError) as e:
            raise BadInput(f"tokenizer {name}", f"{file} is not a JSON object") from e
        ends.append(end.get("content") if isinstance(end, dict) else end)
    text = tokenizer.decode("utf-8", "replace")
    content = json.dumps({"tokenizer": text, "end": next(filter(None, ends), None)}).encode()
    loaded(content)  # raises if it can't be read
    return content


def digest(content: bytes) -> str:
    """Hash of a decoder's bytes, 16 hex digits; empty for no decoder.

    >>> digest(b""), len(digest(b"x"))
    ('', 16)
    """
    return hashlib.sha256(content).hexdigest()[:16] if content else ""


def texts(path: Path, content: bytes) -> Iterator[pa.LargeStringArray]:
    """The documents of a token file in order, in batches; NULL for one with an unknown token.

    ``content`` is what :func:`decoder` returned. Raises ``UsageProblem`` if it is empty,
    ``BadInput`` for a truncated, damaged or unreadable file or index.
    """
    if not content:
        raise UsageProblem(f"shard {path}", "holds tokens, not text", "name their --tokenizer")
    decode = loaded(content)
    try:
        if path.suffix == ".bin":
            yield from decode.batches(
                piece for _, ids in indexed(path) for piece in decode.cut(ids)
            )
        else:
            yield from decode.batches(_array(path, decode))
    except OSError as e:
        raise unreadable(path, e) from e


def index_of(path: Path) -> Path:
    """The path of the index of a `.bin`, or of a part of a `.bin`.

    >>> index_of(Path("a/text.bin")).name, index_of(Path("document-00003-of-00020.bin")).name
    ('text.idx', 'document.idx')
    """
    part = _PART.fullmatch(path.stem)
    return path.with_name(f"{part[1] if part else path.stem}.idx")


def write_sequences(path: Path, sequences: Iterable[Tokens]) -> None:
    """Write sequences of one length as a `.bin`, with 16 or 32 bits per token, and its `.idx`.

    Like Pythia's index, it lists each sequence as a document. A file appears when it is complete.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "text.bin"
    >>> write_sequences(path, np.array([[5, 6], [7, 8]], np.uint16))
    >>> [(k, ids.tolist()) for k, ids in indexed(path)]
    [(0, [5, 6]), (1, [7, 8])]
    """
    n, length = 0, 0
    kind: np.dtype[Any] = np.dtype("<u2")
    with replacing(path) as temporary, open(temporary, "wb") as file:
        for ids in sequences:
            n, length = n + 1, ids.size
            kind = np.dtype("<u2" if ids.itemsize <= 2 else "<i4")
            file.write(ids.astype(kind).tobytes())
    code = next(code for code, name in _TYPES.items() if np.dtype(name) == kind)
    with replacing(index_of(path)) as temporary:
        pointers = np.arange(n, dtype="<i8") * (length * kind.itemsize)
        parts = np.full(n, length, "<i4"), pointers, np.arange(n + 1, dtype="<i8")
        header = _HEADER.pack(_MAGIC, 1, code, n, n + 1)
        temporary.write_bytes(b"".join([header, *(part.tobytes() for part in parts)]))


class Decoder:
    """A tokenizer. Token ids are below ``n_ids``; ``end`` is the id that ends a text, or None."""

    def __init__(self, content: bytes) -> None:
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError as e:
            fix = install_line("models")
            raise MissingComponent("tokenizers", "is not installed", fix) from e
        parts = json.loads(content)
        try:
            self._tokenizer = Tokenizer.from_str(parts["tokenizer"])
        except Exception as e:  # the library has no class of its own
            raise BadInput("tokenizer", f"tokenizer.json can't be read: {e}") from e
        kind = (json.loads(parts["tokenizer"]).get("decoder") or {}).get("type")
        vocabulary = self._tokenizer.get_vocab()
        self.end = self._tokenizer.token_to_id(parts["end"]) if parts["end"] else None
        self.n_ids = max(vocabulary.values(), default=-1) + 1
        self._is_id = np.isin(np.arange(self.n_ids + 1), list(vocabulary.values()))
        spelled = _bytes(vocabulary)
        # The last entry is null; it stands for every number that isn't a token.
        table = pa.array([spelled.get(k) for k in range(self.n_ids + 1)], pa.large_binary())
        self._bytes = table if kind == "ByteLevel" else None

    def batches(self, documents: Iterable[Tokens]) -> Iterator[pa.LargeStringArray]:
        """The texts of documents, as from :meth:`texts`, in batches."""
        batch: list[Tokens] = []
        n_tokens = 0
        for ids in documents:
            batch.append(ids)
            n_tokens += ids.size
            if n_tokens > _BATCH_TOKENS:
                yield pa.array(self.texts(batch), pa.large_string())
                batch, n_tokens = [], 0
        if batch:
            yield pa.array(self.texts(batch), pa.large_string())

    def texts(self, documents: Sequence[Tokens]) -> list[str | None]:
        """The texts of documents; ``None`` for a document with a token that the tokenizer lacks."""
        # Without the cast numpy turns unsigned 64-bit ids into floats.
        empty = np.empty(0, np.int64)
        ids = np.concatenate([empty, *documents], dtype=np.int64, casting="unsafe")
        number = np.where((ids >= 0) & (ids < self.n_ids), ids, self.n_ids)
        ends = np.cumsum([ids.size for ids in documents])
        if self._bytes is None:
            decode = self._tokenizer.decode
            number = np.where(self._is_id[number], number, self.n_ids)
            return [
                None
                if self.n_ids in part
                else str(decode(part.tolist(), skip_special_tokens=False))
                for part in np.split(number, ends[:-1])
            ]
        # The same texts, many times faster: the bytes of all tokens lie one after the other.
        tokens = self._bytes.take(pa.array(number))
        is_unknown = tokens.is_null().to_numpy(zero_copy_only=False)
        n_unknown = np.concatenate([[0], np.cumsum(is_unknown)])  # before each token
        _, places, data = tokens.buffers()
        at, view = np.frombuffer(places, np.int64), memoryview(data)
        return [
            None
            if n_unknown[end] > n_unknown[start]
            else str(view[at[start] : at[end]], "utf-8", "replace")
            for start, end in zip([0, *ends], ends, strict=False)
        ]

    def cut(self, ids: Tokens) -> Iterator[Tokens]:
        """The documents in a run of tokens: the non-empty runs between tokens that end a text."""
        ends = np.flatnonzero(ids == self.end) if self.end is not None else ()
        start = 0
        for end in (*ends, ids.size):
            if end > start:
                yield ids[start:end]
            start = end + 1


def _bytes(vocabulary: Mapping[str, int]) -> dict[int, bytes]:
    """The bytes of each token of a byte-level vocabulary, which writes each byte as a character.

    It writes the printable bytes of Latin-1 as themselves, the other bytes as characters from
    U+0100 on. A token with any other character was added as text.
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    byte_of = {chr(byte): byte for byte in plain}
    byte_of |= {chr(256 + k): byte for k, byte in enumerate(others)}
    return {
        number: bytes(byte_of[c] for c in token) if byte_of.keys() >= set(token) else token.encode()
        for token, number in vocabulary.items()
    }


@lru_cache(2)
def loaded(content: bytes) -> Decoder:
    """The decoder from the bytes that :func:`decoder` returned."""
    return Decoder(content)


def _file(name: str, file: str) -> bytes | None:
    """A file of a model, in a directory or on the hub; ``None`` if the model lacks the file."""
    if Path(name).is_dir():
        path = Path(name) / file
        return path.read_bytes() if path.is_file() else None
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(name, file)).read_bytes()
    except LocalEntryNotFoundError as e:
        fix = "or give a directory with tokenizer.json"
        raise failure(e, f"tokenizer {name}", "is not here, and the hub can't be asked", fix) from e
    except EntryNotFoundError:
        return None
    except Exception as e:  # an invalid id, no such repository, a proxy's refusal
        problem = (str(e).strip() or type(e).__name__).splitlines()[0]
        fix = "give a directory with tokenizer.json, or a model's id on the hub"
        raise failure(e, f"tokenizer {name}", problem, fix) from e


def _array(path: Path, decode: Decoder) -> Iterator[Tokens]:
    """The documents of an array file, with NumPy's header or, as from OLMo, without a header."""
    where = f"shard {path.name}"
    if decode.end is None:
        problem = "the tokenizer has no eos_token, which ends documents"
        raise BadInput(where, problem, "add it to tokenizer_config.json")
    with open_file(path) as file:
        kind = array_type(file, where, decode.n_ids)
        rest = np.empty(0, kind)
        while block := read(file, _BLOCK):
            if len(block) % kind.itemsize:
                raise BadInput(where, f"ends inside a token of {kind.itemsize} bytes")
            ids = np.concatenate([rest, np.frombuffer(block, kind)])
            ends = np.flatnonzero(ids == decode.end)
            whole = int(ends[-1]) + 1 if ends.size else 0
            yield from decode.cut(ids[:whole])
            rest = ids[whole:]
            if rest.size > _LONGEST:
                problem = f"no token {decode.end} in {_LONGEST:,} tokens, which ends documents"
                raise BadInput(where, problem, "name the model's own --tokenizer")
        yield from decode.cut(rest)


def array_type(file: pa.NativeFile, where: str, n_values: int) -> np.dtype[Any]:
    """The type of an array's values, from NumPy's header; leaves the file at the first value.

    Without a header, values have 16 bits if that is enough for ``n_values`` different values, else
    32. Raises ``BadInput`` if the values aren't integers, or if its size isn't the header's.
    """
    magic = read(file, 6)
    file.seek(0)
    if magic != np.lib.format.MAGIC_PREFIX:
        return np.dtype("<u2" if n_values <= 1 << 16 else "<u4")
    try:
        if np.lib.format.read_magic(file) == (1, 0):
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, kind = np.lib.format.read_array_header_2_0(file)
    except ValueError as e:
        raise BadInput(where, f"is not an array of tokens: {e}") from e
    if kind.kind not in "iu":
        raise BadInput(where, f"is an array of {kind}, not of tokens")
    expected, n_bytes = math.prod(shape) * kind.itemsize, file.size() - file.tell()
    if n_bytes != expected:
        problem = f"holds {n_bytes:,} bytes of values, its header says {expected:,}"
        raise BadInput(where, problem, "fetch or make it again")
    return np.dtype(kind)


def indexed(path: Path, *, sequences: bool = False) -> Iterator[tuple[int, Tokens]]:
    """Number, from 0, and tokens of each document (or sequence) that begins in a `.bin` or part."""
    before, after = _parts(path)
    first, size, index_path = sum(map(_size, before)), _size(path), index_of(path)
    with open_file(index_path) as index_file, open_file(path) as file:
        index = _Index(index_path, index_file, sequences)
        is_part = _PART.fullmatch(path.stem) is not None
        if is_part:
            _refuse_truncated(path, first + size, after, index)
        low = index.search(first)
        high = index.search(first + size) if is_part else index.n_documents
        for k in range(low, high, _OFFSETS):
            starts = index.starts(k, min(k + _OFFSETS, high))
            places = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
            for number, (start, end) in enumerate(places, k):
                if start < first or not 0 <= end - start <= _LONGEST * index.type.itemsize:
                    problem = f"document {k + 1:,} or one soon after has no valid offset"
                    raise BadInput(f"index {index_path.name}", problem)
                file.seek(start - first)
                data = _across(path, file, after, end - start)
                yield number, np.frombuffer(data, index.type)


def n_sequences(path: Path) -> int:
    """Number of sequences in a `.bin`, in all its parts.

    Raises ``BadInput`` for an index that is invalid or can't be read.
    """
    try:
        with open_file(index_of(path)) as file:
            return _Index(index_of(path), file, True).n_documents
    except OSError as e:
        raise unreadable(index_of(path), e) from e


class _Index:
    """An open `.idx`: the offsets of documents. It can be large, so it is read in parts.

    With ``sequences``, each sequence is a document, and the list of documents is ignored.
    """

    def __init__(self, path: Path, file: pa.NativeFile, sequences: bool = False) -> None:
        self._path, self._file = path, file
        header = read(file, _HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_MAGIC):
            raise BadInput(f"index {path.name}", "is not a Megatron index")
        _, version, code, self._n_sequences, n_entries = _HEADER.unpack(header)
        if version != 1 or code not in _TYPES:
            raise BadInput(f"index {path.name}", f"unknown version {version} or type {code}")
        self.type = np.dtype(_TYPES[code])
        self._pointers = _HEADER.size + 4 * self._n_sequences
        self._documents = self._pointers + 8 * self._n_sequences
        # Without a list of documents that spans the file, each sequence is a document.
        ends = [0, n_entries - 1] if n_entries > 1 else []
        span = [int(self._numbers("<i8", self._documents + 8 * k, 1)[0]) for k in ends]
        self._has_documents = not sequences and span == [0, self._n_sequences]
        self.n_documents: int = n_entries - 1 if self._has_documents else self._n_sequences

    def starts(self, low: int, high: int) -> NDArray[np.int64]:
        """Byte offsets of documents ``low`` to ``high`` (included); ``n_documents``: the end."""
        places: Tokens = np.arange(low, high + 1)
        if self._has_documents:
            places = self._numbers("<i8", self._documents + 8 * low, high + 1 - low)
        first, last = (min(int(k), self._n_sequences - 1) for k in (places.min(), places.max()))
        if first < 0 or int(places.max()) > self._n_sequences:
            raise BadInput(f"index {self._path.name}", "names a sequence that it does not hold")
        pointers = self._numbers("<i8", self._pointers + 8 * first, last + 1 - first)
        if int(places.max()) == self._n_sequences:
            n_tokens = self._numbers("<i4", self._pointers - 4, 1)
            pointers = np.append(pointers, pointers[-1:] + n_tokens * self.type.itemsize)
        return np.asarray(pointers[places - first], np.int64)

    def end(self) -> int:
        """The byte at which the last document ends."""
        return int(self.starts(self.n_documents, self.n_documents)[0]) if self.n_documents else 0

    def search(self, offset: int) -> int:
        """Number of the first document that begins at byte ``offset`` or later."""
        low, high = 0, self.n_documents
        while low < high:
            middle = (low + high) // 2
            if int(self.starts(middle, middle)[0]) < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _numbers(self, kind: str, at: int, n: int) -> NDArray[np.integer[Any]]:
        self._file.seek(at)
        data = read(self._file, n * np.dtype(kind).itemsize)
        if len(data) < n * np.dtype(kind).itemsize:
            raise BadInput(f"index {self._path.name}", "is truncated", "fetch or make it again")
        return np.frombuffer(data, kind)


def _parts(path: Path) -> tuple[list[Path], list[Path]]:
    """The parts of a `.bin` before and after ``path``; both are empty if ``path`` isn't a part."""
    if not (part := _PART.fullmatch(path.stem)):
        return [], []
    numbers, number = range(int(part[3]) + 1), int(part[2])
    parts = [path.with_name(f"{part[1]}-{k:05}-of-{part[3]}.bin") for k in numbers]
    return parts[:number], parts[number + 1 :]


def _refuse_truncated(path: Path, n_bytes: int, after: Iterable[Path], index: _Index) -> None:
    """Raise ``BadInput`` if all parts exist and their sizes don't sum to the size in the index.

    ``n_bytes``: size of the parts up to ``path``. After a truncated part, all offsets are wrong.
    """
    for part in after:
        if (description := describe(part)) is None:
            return  # without this part, the whole size is unknown
        n_bytes += description.n_bytes
    end = index.end()
    if n_bytes != end:
        problem = f"it and its other parts hold {n_bytes:,} bytes, their index names {end:,}"
        raise BadInput(f"shard {path.name}", problem, "fetch the part that is not whole again")


def _size(path: Path) -> int:
    if (description := describe(path)) is None:
        raise BadInput(f"shard {path.name}", "no such file", "keep all parts in one directory")
    return description.n_bytes


def _across(path: Path, file: pa.NativeFile, after: Iterable[Path], n: int) -> bytes:
    """The next n bytes of a file, continued in the parts ``after`` it."""
    data = read(file, n)
    for part in after:
        if len(data) == n:
            break
        with open_file(part) as following:
            data += read(following, n - len(data))
    if len(data) < n:
        problem = "ends before its index does"
        raise BadInput(f"shard {path.name}", problem, "fetch or make it again")
    return data


def read(file: pa.NativeFile, n: int) -> bytes:
    """The next n bytes, fewer only at the end."""
    data = bytes(file.read(n))
    while 0 < len(data) < n and (more := file.read(n - len(data))):
        data += more
    return data
