"""Memory: elements at an offset from a pointer, vectors of elements, asynchronous copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Int32, Uint8, Uint16, Uint32
from cutlass._mlir.dialects import cute as cute_ir
from cutlass._mlir.dialects import llvm, nvvm

from backends.cutedsl.kernel.functions import in_dtype, where

_EVERYWHERE = 1 << 30  # elements of a view without bounds; only the offsets limit accesses


def assume(holds: Any) -> None:
    """Tells the compiler that a condition is true."""
    if not isinstance(holds, bool):
        llvm.intr_assume(Boolean(holds).ir_value(), [], [])


def _view(pointer: Any) -> Any:
    return cute.make_tensor(pointer, cute.make_layout(_EVERYWHERE))


@cute.jit
def get(pointer: Any, at: Any, inside: Any = True, other: Any = 0) -> Any:
    """The element at an offset if `inside`, else another value."""
    if cutlass.const_expr(inside is True):
        return _view(pointer + at)[0]
    found = cute.make_rmem_tensor(1, pointer.dtype)
    _load_where(found, pointer, at, inside, other)
    return found[0]


@cute.jit
def put(pointer: Any, at: Any, value: Any, inside: Any = True) -> None:
    """Stores an element at an offset if `inside`."""
    if cutlass.const_expr(inside is True):
        _view(pointer + at)[0] = in_dtype(value, pointer.dtype)
    else:
        if Boolean(inside):
            _view(pointer + at)[0] = in_dtype(value, pointer.dtype)


def vector(tensor: Any, at: Any, count: int) -> Any:
    """Consecutive elements of a tensor along its last mode, starting at an aligned place."""
    offset = cute.crd2idx(at, tensor.layout)
    whole = min(count, 128 // tensor.element_type.width)  # the most that one instruction moves
    if tensor.memspace != cute.AddressSpace.rmem:
        return cute.make_tensor(tensor.iterator + cute.assume(offset, divby=whole), count)
    return cute.make_tensor(tensor.iterator + offset, _last_mode(tensor.layout, count))


def _last_mode(layout: Any, count: int) -> Any:
    """The layout of the first elements along the last mode. Elements of operands may not be
    contiguous."""
    rank = cute.rank(layout)
    places = [
        cute.crd2idx((0,) * (rank - 1) + (n,) if rank > 1 else n, layout) for n in range(count)
    ]
    if places == list(range(count)):
        return cute.make_layout(count)
    return layout_of(places)


def layout_of(places: Sequence[int]) -> Any:
    """The layout with these offsets; each bit of an element's number has its own stride."""
    shape, stride = [], []
    for bit in range(len(places).bit_length() - 1):
        shape.append(2)
        stride.append(places[1 << bit])
    for n, place in enumerate(places):
        if place != sum(s for bit, s in enumerate(stride) if n >> bit & 1):
            raise ValueError("registers do not lie as a layout")
    return cute.make_layout(tuple(shape), stride=tuple(stride))


def copy_run(source: Any, to: Any) -> None:
    """Copies elements, with instructions as wide as contiguous memory permits."""
    for side in (source, to):
        if side.memspace == cute.AddressSpace.rmem and cute.rank(side.layout) > 1:
            held = cute.make_rmem_tensor(cute.size(side), side.element_type)
            if side is to:
                copy_run(source, held)
            _elementwise(*((held, to) if side is to else (source, held)))
            if side is source:
                copy_run(held, to)
            return
    cute.autovec_copy(source, to)


def _elementwise(source: Any, to: Any) -> None:
    for n in range(cute.size(source)):
        to[n] = source[n]


def _run(pointer: Any, at: Any, count: int) -> Any:
    whole = min(count, 128 // pointer.dtype.width)
    return cute.make_tensor(pointer + cute.assume(at, divby=whole), count)


@cute.jit
def load(registers: Any, pointer: Any, at: Any, inside: Any = True, other: Any = 0) -> None:
    """Loads registers from consecutive aligned elements at an offset."""
    if cutlass.const_expr(registers.element_type is Boolean):
        for n in cutlass.range_constexpr(cute.size(registers)):
            registers[n] = Boolean(get(pointer, at + n, inside, other))
    elif cutlass.const_expr(inside is True):
        copy_run(_run(pointer, at, cute.size(registers)), registers)
    else:
        _load_where(registers, pointer, at, inside, other)


def _load_where(registers: Any, pointer: Any, at: Any, inside: Any, other: Any) -> None:
    """Loads registers from memory if `inside`, else sets them to another value. It uses one
    predicated instruction: with a branch, the compiler moves the code after it into the branch, and
    then few loads are in flight."""
    count, dtype = cute.size(registers), registers.element_type
    bits = count * dtype.width
    word = {8: Uint8, 16: Uint16}.get(bits, Uint32)
    words = bits // word.width
    held = cute.make_rmem_tensor(words, word)
    elements = cute.make_tensor(
        cute.recast_ptr(held.iterator, dtype=dtype), cute.make_layout(count)
    )
    for n in range(count):
        elements[n] = dtype(other)
    each = min(words, 4)
    for first in range(0, words, each):
        start = pointer + at + first * word.width // dtype.width
        found = _words_where(start, [held[first + n] for n in range(each)], Boolean(inside))
        for n in range(each):
            held[first + n] = found[n]
    _elementwise(elements, registers)


def _words_where(start: Any, others: Sequence[Any], inside: Any) -> list[Any]:
    """Words from a pointer on if `inside`, else other words."""
    count, word = len(others), type(others[0])
    held, letter = (Uint32, "r") if word is Uint32 else (Uint16, "h")  # no register has 8 bits
    types = [held.mlir_type] * count
    to = ", ".join(f"${n}" for n in range(count))
    to, several = (f"{{{to}}}", f".v{count}") if count > 1 else (to, "")
    made = llvm.inline_asm(
        llvm.StructType.get_literal(types) if several else types[0],
        [*(held(x).ir_value() for x in others), start.to_llvm_ptr(), Int32(inside).ir_value()],
        f"{{\n.reg .pred p;\nsetp.ne.b32 p, ${2 * count + 1}, 0;\n"
        f"@p ld.global{several}.b{word.width} {to}, [${2 * count}];\n}}",
        ",".join([f"={letter}"] * count + [str(n) for n in range(count)] + ["l", "r"]),
        has_side_effects=True,  # keeps the order with stores
    )
    parts = [llvm.extractvalue(t, made, [n]) for n, t in enumerate(types)] if several else [made]
    return [word(held(x)) for x in parts]


@cute.jit
def store(pointer: Any, at: Any, registers: Any, inside: Any = True) -> None:
    """Stores registers to consecutive aligned elements at an offset."""
    if cutlass.const_expr(registers.element_type is Boolean):
        for n in cutlass.range_constexpr(cute.size(registers)):
            put(pointer, at + n, registers[n], inside)
    elif cutlass.const_expr(inside is True):
        copy_run(registers, _run(pointer, at, cute.size(registers)))
    else:
        if Boolean(inside):
            copy_run(registers, _run(pointer, at, cute.size(registers)))


def copy_async(to: Any, pointer: Any, at: Any, inside: Any = True) -> None:
    """Copies global to shared memory, with zeros if not `inside`. It is asynchronous until a wait,
    unless the data is shorter than the hardware's copies."""
    count = cute.size(to)
    size = count * to.element_type.width // 8
    if size < 4:
        for n in range(count):
            to[n] = get(pointer, at + n, inside, 0)
        return
    each = min(size, 16)
    source, modifier = pointer + at, nvvm.LoadCacheModifierKind.CG if each == 16 else None
    modifier = modifier or nvvm.LoadCacheModifierKind.CA
    for n in range(size // each):
        step = n * each * 8 // to.element_type.width
        taken = None if inside is True else where(inside, Int32(each), Int32(0)).ir_value()
        nvvm.cp_async_shared_global(
            cute_ir.apply_swizzle((to.iterator + step).value).to_llvm_ptr(),
            (source + step).to_llvm_ptr(),
            each,
            modifier,
            cp_size=taken,
        )


@cute.jit
def add_to(pointer: Any, at: Any, value: Any, inside: Any = True) -> None:
    """Adds to an element atomically."""
    if cutlass.const_expr(inside is True):
        _added(pointer, at, value)
    else:
        if Boolean(inside):
            _added(pointer, at, value)


def _added(pointer: Any, at: Any, value: Any) -> None:
    added, dtype = in_dtype(value, pointer.dtype), pointer.dtype
    cute.arch.red(pointer + at, added, op="add", dtype=dtype, sem="relaxed", scope="gpu")


@cute.jit
def take_number(counter: Any, at: Any) -> Any:
    """The number of blocks that began before this one, the same in all of its threads. The counter
    in memory starts at 0. The number passes through the first bytes of shared memory."""
    held = cute.make_tensor(cute.arch.get_dyn_smem(Int32, 1024), cute.make_layout(1))
    if cute.arch.thread_idx()[0] == 0:
        held[0] = cute.arch.atomic_add(counter + at, Int32(1), sem="relaxed", scope="gpu")
    cute.arch.sync_threads()
    number = held[0]
    cute.arch.sync_threads()
    return number


def raise_flag(flags: Any, at: Any) -> None:
    """Sets a flag in memory, which was 0, to 1."""
    cute.arch.store(flags + at, Int32(1), sem="relaxed", scope="gpu")


@cute.jit
def await_raised(flags: Any, at: Any) -> None:
    """Waits until a flag in memory is 1."""
    found = Int32(0)
    while found == 0:
        found = Int32(cute.arch.load(flags + at, Int32, sem="relaxed", scope="gpu"))


@cute.jit
def rank(steps: cutlass.Constexpr, pointer: Any, count: Any, x: Any) -> Any:
    """The number of sorted entries that are less than x, by binary search with `steps` steps."""
    low, high = Int32(0), Int32(count)
    for _ in cutlass.range_constexpr(steps):
        middle, open_ = (low + high) // 2, low < high
        less = open_ & (get(pointer, middle, open_, 0) < x)
        low, high = where(less, middle + 1, low), where(less | ~open_, high, middle)
    return low
