"""Unaligned eight-byte loads and stores, and the hash: the ground the counting kernel stands on."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

import plumbline.jobs.kernel.cache  # noqa: F401  (before the first compiled function)

#: Slack every byte buffer has past its end, so that wide loads and stores stay inside.
SLACK = 128

_LOW = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
#: Turns ASCII letters into lowercase ones, eight at a time.
LOWERCASE = np.uint64(0x2020202020202020)
#: Top byte of the key of a word longer than seven bytes.
LONG_WORD = np.uint64(0xFF00000000000000)
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
def address(typingctx: Any, array: Any) -> Any:
    """``address(array)``: where the array's data start. Whoever calls this keeps it alive."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), codegen


def _pointer(builder: Any, where: Any, bits: int) -> Any:
    return builder.inttoptr(where, ir.IntType(bits).as_pointer())


@intrinsic
def get8(typingctx: Any, where: Any) -> Any:
    """The byte at an address, as int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = builder.load(_pointer(builder, args[0], 8))
        return builder.zext(byte, ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def get32(typingctx: Any, where: Any) -> Any:
    """The unsigned 32 bits at an address, as int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = builder.load(_pointer(builder, args[0], 32), align=1)
        return builder.zext(word, ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def get64(typingctx: Any, where: Any) -> Any:
    """The 64 bits at an address, as uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0], 64), align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def put32(typingctx: Any, where: Any, value: Any) -> Any:
    """Write the low 32 bits of an integer to an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word = builder.trunc(args[1], ir.IntType(32))
        builder.store(word, _pointer(builder, args[0], 32), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def put64(typingctx: Any, where: Any, value: Any) -> Any:
    """Write 64 bits to an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[1], _pointer(builder, args[0], 64), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), codegen


@intrinsic
def prefetch(typingctx: Any, where: Any) -> Any:
    """Ask for the cache line at an address; never faults."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(builder, args[0], 8)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        name = "llvm.prefetch.p0"
        known = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(known, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def range_bits(typingctx: Any, where: Any, low: Any, n: Any) -> Any:
    """``range_bits(address, low, n)``: bit k is set when low <= byte k < low + n, of 64 bytes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte, row = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)

        def spread(value: Any) -> Any:
            one = builder.insert_element(
                ir.Constant(row, ir.Undefined), builder.trunc(value, byte), ir.IntType(32)(0)
            )
            order = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            return builder.shuffle_vector(one, ir.Constant(row, ir.Undefined), order)

        data = builder.load(builder.inttoptr(args[0], row.as_pointer()), align=1)
        inside = builder.icmp_unsigned("<", builder.sub(data, spread(args[1])), spread(args[2]))
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(types.int64, types.int64, types.int64), codegen


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


@njit(cache=True)
def word_key(data: Any, s: int, e: int) -> int:
    """Key of the word data[s:e]: itself up to 7 bytes, else a hash with a top byte of 255."""
    n = e - s
    if n <= 7:
        return (load64(data, s) & low_bytes(n)) | (np.uint64(n) << np.uint64(56))
    return hash_bytes(data, s, e) | LONG_WORD


@njit(cache=True)
def letters_key(where: int, n: int) -> int:
    """:func:`word_key` of the n ASCII letters at an address, in lowercase."""
    if n <= 7:
        return ((get64(where) | LOWERCASE) & low_bytes(n)) | (np.uint64(n) << np.uint64(56))
    h = np.uint64(n)
    i = 0
    while i + 8 <= n:
        h = mix(h ^ (get64(where + i) | LOWERCASE)) + np.uint64(1)
        i += 8
    if i < n:
        h = mix(h ^ ((get64(where + i) | LOWERCASE) & low_bytes(n - i)))
    return mix(h) | LONG_WORD


@njit(cache=True)
def word_hash(data: Any, s: int, e: int) -> int:
    """Hash of the word data[s:e], for its slot and its bit in the table of exceptions."""
    return mix(word_key(data, s, e))
