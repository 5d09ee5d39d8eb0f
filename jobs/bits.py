"""Unaligned eight-byte loads and stores, and the hash: the ground the counting kernel stands on."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

import jobs.cache  # noqa: F401  (before the first compiled function)

#: Slack every byte buffer has past its end, so that eight-byte loads and stores stay inside.
SLACK = 16

_LOW = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX2 = np.uint64(0xD6E8FEB86659FD93)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    byte = builder.bitcast(data, cgutils.voidptr_t)
    return builder.bitcast(builder.gep(byte, [index]), ir.IntType(64).as_pointer())


@intrinsic
def load64(typingctx: Any, array: Any, index: Any) -> Any:
    """``load64(bytes, i)``: bytes i..i+7 of a uint8 array as a little-endian uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig.args[0], args[0], args[1]), align=1)

    return types.uint64(array, types.intp), codegen


@intrinsic
def store64(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """``store64(bytes, i, word)``: write a uint64 over bytes i..i+7, little-endian."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where = _address(context, builder, sig.args[0], args[0], args[1])
        builder.store(args[2], where, align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), codegen


@intrinsic
def unowned(typingctx: Any, array: Any) -> Any:
    """The same array without its owner.

    Compiled code counts references to owned arrays whenever one function hands them to another,
    which costs more than most of the functions here do. Whoever calls this keeps the owner alive.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        struct.meminfo = cgutils.get_null_value(struct.meminfo.type)
        struct.parent = cgutils.get_null_value(struct.parent.type)
        return struct._getvalue()

    return array(array), codegen


@intrinsic
def trailing_zeros(typingctx: Any, value: Any) -> Any:
    """Index of the lowest set bit of a non-zero uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@njit(cache=True)
def mix(h: int) -> int:
    """Spread a uint64 over all its bits (xor-shift and two odd multipliers)."""
    h = (h ^ (h >> np.uint64(32))) * _MIX
    h = (h ^ (h >> np.uint64(29))) * _MIX2
    return h ^ (h >> np.uint64(32))


@njit(cache=True)
def low_bytes(n: int) -> int:
    """Mask of the lowest n bytes of a uint64, 0 <= n <= 8."""
    if n >= 8:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)


@njit(cache=True)
def blanks_or_high(word: int) -> int:
    """High bit of each byte that is <= 0x20 or >= 0x80; exact up to and including the first hit."""
    below = (word - _LOW * np.uint64(0x21)) & ~word
    return (below | word) & _HIGH


@njit(cache=True)
def json_stops(word: int) -> int:
    """High bit of each byte a JSON string scan must look at: below 0x20, quote, backslash, >= 0x80.

    Exact up to and including the first hit, which is all a forward scan uses.
    """
    quote = word ^ (_LOW * np.uint64(0x22))
    slash = word ^ (_LOW * np.uint64(0x5C))
    hit = (word - _LOW * np.uint64(0x20)) & ~word
    hit |= (quote - _LOW) & ~quote
    hit |= (slash - _LOW) & ~slash
    return (hit | word) & _HIGH


@njit(cache=True)
def hash_bytes(data: Any, start: int, end: int) -> int:
    """64-bit hash of data[start:end]; needs SLACK readable bytes after ``end``."""
    h = np.uint64(end - start)
    i = start
    while i + 8 <= end:
        h = mix(h ^ load64(data, i)) + np.uint64(1)
        i += 8
    if i < end:
        h = mix(h ^ (load64(data, i) & low_bytes(end - i)))
    return mix(h)
