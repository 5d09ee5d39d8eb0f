"""Let compiled code access memory by address or by record, and limit how much memory is used.

Compiled functions pass each other addresses and records instead of arrays. For an array, numba
counts references and unpacks seven values at every call, which takes longer than most functions
here. The memory belongs to Python objects, and is valid as long as these exist.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from plumbline.jobs.kernel.cache import EntryPoint, compiled

#: Extra bytes at the end of every buffer, since a load of up to 64 bytes may reach past the end.
SLACK = 128

Fields = TypeVar("Fields")


def new_record(fields: type[Fields]) -> Fields:
    """Create a record with the int64 fields that a class declares. All values are 0.

    Python and compiled code read and write the same memory.

    >>> class Point:
    ...     x: int
    ...     y: int
    >>> point = new_record(Point)
    >>> point.y = 3
    >>> int(point.x), int(point.y)
    (0, 3)
    """
    dtype = np.dtype([(name, np.int64) for name in fields.__annotations__])
    return cast(Fields, np.zeros(1, dtype).view(np.recarray)[0])


def address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


def aligned_zeros(n_rows: int, n_columns: int) -> NDArray[np.uint64]:
    """Create a 2-D array of zeros. Each row of 8, 16, 32 or 64 bytes is in one cache line."""
    n_bytes = 8 * n_rows * n_columns
    memory = np.zeros(n_bytes + 64, np.uint8)
    start = -address(memory) % 64
    return memory[start : start + n_bytes].view(np.uint64).reshape(n_rows, n_columns)


def _item(builder: Any, base: Any, index: Any, bits: int) -> Any:
    """Return a pointer to item ``index`` of the array at ``base``. Each item has ``bits`` bits."""
    pointer = builder.inttoptr(base, ir.IntType(bits).as_pointer())
    return builder.gep(pointer, [index])


def _load(bits: int, result_type: Any) -> Any:
    """Make a compiled function ``(base, index)`` that reads a ``bits``-bit unsigned integer."""

    @intrinsic
    def load(typingctx: Any, base: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value = builder.load(_item(builder, args[0], args[1], bits), align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return result_type(types.int64, types.int64), codegen

    return load


def _store(bits: int) -> Any:
    """Make a compiled function ``(base, index, value)`` that stores a ``bits``-bit integer."""

    @intrinsic
    def store(typingctx: Any, base: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            builder.store(value, _item(builder, args[0], args[1], bits), align=1)
            return context.get_dummy_value()

        value_type = types.uint64 if value == types.uint64 else types.int64
        return types.void(types.int64, types.int64, value_type), codegen

    return store


#: ``get32(base, k)`` returns the k-th unsigned 32-bit integer, counted from 0, at address ``base``.
#: ``get8`` does the same for bytes, ``get_int`` for int64, and ``get64`` for uint64.
get8, get32, get_int = _load(8, types.int64), _load(32, types.int64), _load(64, types.int64)
get64 = _load(64, types.uint64)
#: ``put32(base, k, value)`` stores the low 32 bits of ``value`` as the k-th integer at ``base``.
put8, put32, put64 = _store(8), _store(32), _store(64)


@intrinsic
def prefetch(typingctx: Any, where: Any) -> Any:
    """Load the memory at an address into the cache, for later use. A bad address does no harm."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _spread(builder: Any, value: Any, row: Any) -> Any:
    """Make a vector of type ``row`` that has the low byte of a 64-bit value in every lane."""
    in_first_lane = builder.insert_element(
        ir.Constant(row, ir.Undefined), builder.trunc(value, ir.IntType(8)), ir.IntType(32)(0)
    )
    first_lane = ir.Constant(ir.VectorType(ir.IntType(32), row.count), [0] * row.count)
    return builder.shuffle_vector(in_first_lane, ir.Constant(row, ir.Undefined), first_lane)


@intrinsic
def put_first(typingctx: Any, base: Any, where: Any, n: Any) -> Any:
    """Copy ``n`` bytes from address ``where`` to ``base``, then add zeros to make 32 bytes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row = ir.VectorType(ir.IntType(8), 32)
        data = builder.load(builder.inttoptr(args[1], row.as_pointer()), align=1)
        is_first = builder.icmp_unsigned(
            "<", ir.Constant(row, list(range(32))), _spread(builder, args[2], row)
        )
        first = builder.select(is_first, data, ir.Constant(row, None))
        builder.store(first, builder.inttoptr(args[0], row.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def range_bits(typingctx: Any, where: Any, low: Any, n: Any) -> Any:
    """Return a mask of the 64 bytes at ``where``. Bit k is set if low <= byte k < low + n."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row = ir.VectorType(ir.IntType(8), 64)
        data = builder.load(builder.inttoptr(args[0], row.as_pointer()), align=1)
        low, n_values = (_spread(builder, value, row) for value in args[1:])
        inside = builder.icmp_unsigned("<", builder.sub(data, low), n_values)
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(types.int64, types.int64, types.int64), codegen


@intrinsic
def trailing_zeros(typingctx: Any, value: Any) -> Any:
    """Return the index of the lowest set bit of a uint64, as int64. It is undefined for 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def set_bits(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@compiled
def mix(h: int) -> int:
    """Mix the bits of a uint64 (xor-shift and two odd multipliers)."""
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@compiled
def low_bytes(n: int) -> int:
    """Return a mask of the lowest n bytes of a uint64, 0 <= n <= 8."""
    if n >= 8:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(8 * n)) - np.uint64(1)


@compiled
def put_utf8(out: int, n: int, c: int) -> int:
    """Write code point ``c`` as UTF-8 at ``out`` + n. Return n plus the number of bytes."""
    if c < 0x80:
        put8(out, n, c)
        return n + 1
    if c < 0x800:
        put8(out, n, 0xC0 | c >> 6)
        put8(out, n + 1, 0x80 | c & 0x3F)
        return n + 2
    if c < 0x10000:
        put8(out, n, 0xE0 | c >> 12)
        put8(out, n + 1, 0x80 | c >> 6 & 0x3F)
        put8(out, n + 2, 0x80 | c & 0x3F)
        return n + 3
    put8(out, n, 0xF0 | c >> 18)
    put8(out, n + 1, 0x80 | c >> 12 & 0x3F)
    put8(out, n + 2, 0x80 | c >> 6 & 0x3F)
    put8(out, n + 3, 0x80 | c & 0x3F)
    return n + 4


@EntryPoint
def rehash(old: int, n_old: int, new: int, mask: int) -> None:
    """Copy the entries of a hash table to a larger, empty table with ``mask`` + 1 slots.

    A slot has a key and a value. A key of 0 marks a free slot.
    """
    for k in range(n_old):
        key = get64(old, 2 * k)
        if key:
            at = slot_of(key, mask)
            while get64(new, 2 * at):
                at = (at + 1) & mask
            put64(new, 2 * at, key)
            put64(new, 2 * at + 1, get64(old, 2 * k + 1))


@compiled
def slot_of(key: int, mask: int) -> int:
    """Return the slot at which the search for a key starts in a table of ``mask`` + 1 slots."""
    return np.int64(mix(key) >> np.uint64(20)) & mask


@dataclass(frozen=True)
class Limits:
    """Limits on a counter's memory.

    Attributes:
        n_bytes: limit on the total size of the tables. Before the tables exceed this limit, the
            counter writes its counts and empties the tables.
        cache_slots: maximum number of slots in the chunk cache, a power of 2. A full cache is
            emptied, which loses no counts.
    """

    n_bytes: int = 1 << 62
    cache_slots: int = 1 << 20

    @property
    def n_answers(self) -> int:
        """Maximum number of chunks that are stored with spaCy's pieces. English has no such chunks.

        A chunk needs about 100 bytes, or 200 bytes while the table grows.
        """
        return min(self.cache_slots, max(self.n_bytes >> 10, 1 << 14))


def limits_within(memory_bytes: int, all_pairs: bool = False) -> Limits:
    """Return limits for a counter that keep this process below ``memory_bytes``.

    First, the memory that the process used before counting is subtracted. The counter gets two
    fifths of the rest. The Arrow tables of the counts need as much again, and writing them needs
    more. If all pairs are counted, the counter gets half of the rest, because it writes smaller
    tables. If ``memory_bytes`` is below half a GB, the process may exceed this limit.
    """
    left = max(memory_bytes - _bytes_at_first(), 1 << 27)
    share = left // 2 if all_pairs else 2 * left // 5
    return Limits(share, min(1 << 20, 1 << (share // 128).bit_length()))


@cache
def _bytes_at_first() -> int:
    """Return this process's memory use in bytes, measured only once, or 300 MiB if unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 300 << 20
    return pages * resource.getpagesize()
