"""JSON lines: the compiled parser never accepts what Python refuses, and reads what it accepts."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.jobs.kernel.json_parser import DONE, FULL, ReaderState, read_lines
from plumbline.jobs.kernel.line_verdict import judge
from plumbline.jobs.kernel.memory import SLACK, address, new_record
from plumbline.jobs.kernel.tokens.chunks import END
from plumbline.jobs.kernel.tokens.words import Words

GOOD = [
    '{"text": "tea"}',
    ' {"meta": {"text": "no", "a": [1, -2.5e+3, true, null, {"text": 1}]}, "text": "yes"} \r',
    '{"text": "first", "text": "last"}',
    '{"a": "\\"text\\": \\"x\\"", "text": "\\u00e9\\ud83d\\ude00\\n\\t\\/\\\\ \\b\\f\\r"}',
    '{"text": "", "b": [[], {}, [[]]]}',
    '{"text":"é中😀","x":0}',
    '{"text": "nul \\u0000 here"}',
    '{"text": "a", "b": 1.0E-2}',
]

BAD = {
    b"not json": "not JSON",
    b'{"text": "a"': "not JSON",
    b'{"text": "a"} x': "not JSON",
    b'{"text": "a",}': "not JSON",
    b'{"text": "a" "b": 1}': "not JSON",
    b'{"text": "a\x00b"}': "NUL",
    b'{"text": "a\tb"}': "not JSON",
    b'{"text": "\\x"}': "not JSON",
    b'{"text": "\\u12g4"}': "not JSON",
    b'{"text": "a", "n": 01}': "not JSON",
    b'{"text": "a", "n": [1}': "not JSON",
    b'\xef\xbb\xbf{"text": "a"}': "not JSON",
    b'["text"]': "not an object but array",
    b"3": "not an object but number",
    b'{"txt": "a"}': "no `text`",
    b'{"meta": {"text": "a"}}': "no `text`",
    b'{"text": null}': "not a string but null",
    b'{"text": ["a"]}': "not a string but array",
    b'{"text": "a", "text": 3}': "not a string but number",
    b'{"text": "\xff"}': "invalid UTF-8",
    b'{"text": "\xc0\xaf"}': "invalid UTF-8",
    b'{"text": "\xed\xa0\x80"}': "invalid UTF-8",
    b'{"a": "\xf4\x90\x80\x80", "text": "a"}': "invalid UTF-8",
    b'{"text": "\\ud800"}': "lone surrogate",
    b'{"text": "\\udc00\\ud800"}': "lone surrogate",
    b'{"text": "\\ud83dx"}': "lone surrogate",
    b'{"text": "a", "n": ' + b"1" * 5000 + b"}": "Python can hold",
    b'{"text": "a", "n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": "nested too deeply",
}


def compiled(line: bytes) -> str | None:
    """What the compiled parser reads from a line; None when it leaves the line to Python."""
    buf = np.frombuffer(line + bytes(SLACK), np.uint8)
    texts = np.zeros(len(line) + SLACK, np.uint8)
    reader, name = new_record(ReaderState), np.frombuffer(b"text", np.uint8)
    reader.field, reader.n_field = address(name), name.size
    reader.texts, reader.next = address(texts), address(buf)
    documents, sources = np.zeros(2, np.int64), Words(["other"])
    reader.documents, reader.documents_capacity = address(documents), 2
    end = address(buf) + len(line)
    # In pieces of seven bytes: no escape is torn apart, nothing is lost between them.
    reader.limit = 7
    while (state := read_lines(reader, sources.state, end)) == FULL:
        reader.limit += 7
    found = texts[: int(reader.n)].tobytes()
    return found.removesuffix(END).decode() if state == DONE and found else None


@pytest.mark.parametrize("line", BAD)
def test_bad_lines_are_rejected_with_a_reason(line: bytes) -> None:
    assert compiled(line) is None
    assert BAD[line] in str(judge(line).reason)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.dictionaries(st.sampled_from(["text", "meta", "x", 'q"\\']) | st.text(), VALUES)


def agree(line: bytes) -> None:
    verdict = judge(line)
    read = compiled(line)
    if read is not None:
        assert read == verdict.text
    elif verdict.text is not None:
        # Left to Python although fine: only for what the parser is unsure of.
        assert b"\\" in line or b"N" in line or b"I" in line or len(line) > 60


@given(RECORDS, st.booleans(), st.sampled_from([None, 1]))
def test_made_records(record: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(record, ensure_ascii=ascii_only, indent=indent).replace("\n", " ")
    agree(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=400)
@given(
    st.sampled_from([g.encode() for g in GOOD] + [b for b in BAD if len(b) < 100]),
    st.lists(st.tuples(st.integers(0, 120), st.binary(max_size=3), st.integers(0, 3)), max_size=3),
)
@example(b'{"text": "a"}', [(12, b"", 1)])
def test_mutated_lines(line: bytes, edits: list[tuple[int, bytes, int]]) -> None:
    for at, insert, cut in edits:
        line = line[:at] + insert + line[at + cut :]
    agree(line.replace(b"\n", b" "))
