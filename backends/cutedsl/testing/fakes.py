"""Fakes of CuTe DSL's modules, as far as emitted kernels and `kernel/` use them, for one Python thread."""

from __future__ import annotations

import importlib
import math as of_python
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from backends.cutedsl.testing import accumulators, memory
from backends.cutedsl.testing.boxes import TensorMap, load_box, store_box
from backends.cutedsl.testing.machine import HERE, WARP, Signal, warp, warpgroup
from backends.cutedsl.testing.memory import GMEM, RMEM, SMEM, Layout, Pointer, Swizzle, Tensor
from backends.cutedsl.testing.numbers import NUMBERS, Float32, Int32, Number, TFloat32

KERNEL = "backends.cutedsl.kernel"


def _module(name: str, **members: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(members)
    return made


def _same(x: Any) -> Any:
    return x


def _range(*given: Any, **_: Any) -> range:
    return range(*(int(x) for x in given))


# -- arithmetic -----------------------------------------------------------------------------------


def _unary(apply: Any) -> Any:
    def call(x: Number, **_: Any) -> Number:
        with np.errstate(all="ignore"):
            return type(x)(apply(x.value))

    return call


def _by_element(apply: Any) -> Any:
    def call(x: Any) -> Any:
        try:
            return apply(float(x))
        except (ValueError, OverflowError):
            return np.nan

    return call


def _binary(apply: Any) -> Any:
    def call(a: Number, b: Number, **_: Any) -> Number:
        with np.errstate(all="ignore"):
            return type(a)(apply(a.value, b.value))

    return call


MATH = SimpleNamespace(
    **{
        name: _unary(getattr(np, known))
        for name, known in {
            **{n: n for n in "floor ceil trunc sqrt exp exp2 expm1 log log2 log10 log1p".split()},
            **{n: n for n in "tanh sin cos tan sinh cosh abs".split()},
            "roundeven": "rint",
            **{f"a{n}": f"arc{n}" for n in "sin cos tan sinh cosh tanh".split()},
        }.items()
    },
    rsqrt=_unary(lambda x: 1 / np.sqrt(x)),
    erf=_unary(_by_element(of_python.erf)),
    erfc=_unary(_by_element(of_python.erfc)),
    div=_binary(lambda a, b: a / b),
    atan2=_binary(np.arctan2),
    pow=_binary(np.power),
    rem=_binary(np.fmod),
    max=_binary(np.maximum),
    min=_binary(np.minimum),
)


def _extremum(plain: Any, keeps: Any) -> Any:
    return lambda a, b, nan=False: Float32((keeps if nan else plain)(a.value, b.value))


# -- threads --------------------------------------------------------------------------------------


def _exchanged(x: Number, source: Any) -> Number:
    """A value of another thread of the warp. source: maps a thread's number in the warp to the
    number that it reads from."""
    own = HERE.number % WARP
    given = warp().together(x, dict)
    at = source(own)
    return given[HERE.number - own + at] if 0 <= at < WARP else x


def _block_barrier() -> None:
    HERE.block.group("block", HERE.block.threads).together(None, _same)


def _barrier(barrier_id: int, number_of_threads: int) -> None:
    HERE.block.group(("barrier", barrier_id), number_of_threads).together(None, _same)


def _signal(at: Pointer) -> Signal:
    return HERE.block.signals[at.address()]


def _init_signal(at: Pointer, arrivals: Any) -> None:
    HERE.block.signals[at.address()] = Signal(int(arrivals))


def _sync_cluster() -> None:
    barrier = HERE.block.cluster_barrier
    phase = barrier.phase
    barrier.arrive()
    HERE.block.wait(lambda: barrier.phase > phase)


def _arrived(at: Pointer, block: Any = None) -> None:
    own = HERE.block if block is None else HERE.block.cluster[int(block)]
    own.signals[at.address()].arrive()


def _add(at: Pointer, x: Number, **_: Any) -> Number:
    before = at.load()
    at.store(at.dtype(before + x))
    return before


def _await_raised(flags: Pointer, at: Any) -> None:
    HERE.block.wait(lambda: bool((flags + at).load()))


def _red(at: Pointer, x: Number, **_: Any) -> None:
    _add(at, x)


ARCH = SimpleNamespace(
    thread_idx=lambda: (Int32(HERE.number), Int32(0), Int32(0)),
    block_idx=lambda: (Int32(HERE.block.number), Int32(0), Int32(0)),
    grid_dim=lambda: (Int32(HERE.block.grid), Int32(1), Int32(1)),
    get_dyn_smem=lambda dtype, alignment: Pointer(HERE.block.memory, 0, dtype, SMEM),
    fmax=_extremum(np.fmax, np.maximum),
    fmin=_extremum(np.fmin, np.minimum),
    cvt_f32_tf32=lambda x: _rounded_tf32(x),
    shuffle_sync_bfly=lambda x, d: _exchanged(x, lambda own: own ^ int(d)),
    shuffle_sync_up=lambda x, d, mask_and_clamp=0: _exchanged(x, lambda own: own - int(d)),
    shuffle_sync=lambda x, at: _exchanged(x, lambda own: int(at)),
    sync_threads=_block_barrier,
    barrier=_barrier,
    sync_warp=lambda: warp().together(None, _same),
    red=_red,
    mbarrier_init=_init_signal,
    mbarrier_init_fence=lambda: None,
    mbarrier_arrive=_arrived,
    mbarrier_arrive_and_expect_tx=lambda at, count: _signal(at).arrive(int(count)),
    mbarrier_wait=lambda at, parity: _signal(at).wait(int(parity)),
    fence_proxy=lambda kind, space: None,
    fence_acq_rel_gpu=lambda: None,
    atomic_add=_add,
    store=lambda at, x, **_: at.store(x),
    setmaxregister_increase=lambda count: None,
    setmaxregister_decrease=lambda count: None,
    cp_async_commit_group=lambda: None,
    cp_async_wait_group=lambda pending: None,
    cp_async_bulk_commit_group=lambda: None,
    cp_async_bulk_wait_group=lambda pending, read: None,
)


def _rounded_tf32(x: Number) -> Any:
    bits = int(np.float32(x.value).view(np.uint32))
    if bits & 0x7F800000 != 0x7F800000:
        bits = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
    return SimpleNamespace(ir_value=lambda: bits & 0xFFFFFFFF)


# -- matrices -------------------------------------------------------------------------------------


def _atom(op: Any) -> Any:
    own = SimpleNamespace(partition_A=_same, partition_B=_same)
    return SimpleNamespace(
        op=op,
        set=lambda *_: None,
        get_slice=lambda n: own,
        make_fragment_A=_same,
        make_fragment_B=_same,
    )


def _values(x: Tensor) -> list[Any]:
    return [float(x[(n, 0, 0)]) for n in range(memory.size(x))]


def _require_words(x: Tensor) -> None:
    """Raises ValueError for operand registers that the compiler would misread: it reads whole words
    of short elements, and tf32 as if elements had 16 bits."""
    if x.memspace == RMEM:
        first = x.iterator.offset
        places = [first + x.layout((n, 0, 0)) for n in range(memory.size(x))]
        whole = x.element_type is TFloat32
        one = len(places) if whole else 32 // min(32, x.element_type.width)
        firsts = [places[n // one * one] for n in range(len(places))]
        if any(p - f != n % one for n, (p, f) in enumerate(zip(places, firsts, strict=True))) or (
            not whole and any(f % one for f in firsts)
        ):
            raise ValueError(f"registers {places} of an operand do not lie in words")


def _gemm(atom: Any, acc: Tensor, a: Tensor, b: Tensor, _: Tensor) -> None:
    """acc += a * b by the threads of a warp or of a warpgroup."""
    _require_words(a)
    _require_words(b)
    if atom.op.family == "warpgroup":
        _warpgroup_mma(acc, a, b, atom.op.shape)
        return
    _of_warp(acc, a, b, 8 if atom.op.dtype is TFloat32 else 16)


def _of_warp(acc: Tensor, a: Tensor, b: Tensor, k: int) -> None:
    given = warp().together((_values(a), _values(b), _values(acc)), lambda g: _warp_mma(g, k))
    for n, x in enumerate(given[HERE.number % WARP]):
        acc[(n, 0, 0)] = acc.element_type(x)


def eight_product(acc: Tensor, a: Tensor, b: Tensor) -> None:
    """Emulates the inline assembly of `kernel/matrices.py` for 8-bit operands."""
    _of_warp(acc, a, b, 32)


def a_place(thread: int, n: int, k: int) -> tuple[int, int]:
    """The row and column of a register of operand A with 16 rows (PTX ISA, mma.m16n8k8, k16 and k32)."""
    one = k // 8  # elements in a word
    row = thread // 4 + 8 * (n // one % 2)
    return row, thread % 4 * one + n % one + 4 * one * (n // (2 * one))


def b_place(thread: int, n: int, k: int) -> tuple[int, int]:
    """The row and column of a register of operand B."""
    one = k // 8
    return thread % 4 * one + n % one + 4 * one * (n // one), thread // 4


def c_place(thread: int, n: int) -> tuple[int, int]:
    """The row and column of a register of the result, with any number of columns."""
    return thread // 4 + 8 * (n // 2 % 2), thread % 4 * 2 + n % 2 + 8 * (n // 4)


def _warp_mma(given: dict[int, Any], k: int) -> list[list[float]]:
    a, b, c = np.zeros((16, k)), np.zeros((k, 8)), np.zeros((16, 8))
    for number, (left, right, acc) in given.items():
        thread = number % WARP
        for n, x in enumerate(left):
            a[a_place(thread, n, k)] = x
        for n, x in enumerate(right):
            b[b_place(thread, n, k)] = x
        for n, x in enumerate(acc):
            c[c_place(thread, n)] = x
    c += a @ b
    return [[c[c_place(thread, n)] for n in range(4)] for thread in range(WARP)]


def _warpgroup_mma(acc: Tensor, a: Any, b: Tensor, shape: tuple[int, int, int]) -> None:
    held = a.memspace == RMEM
    mine = (_values(a) if held else a, b, _values(acc))
    given = warpgroup().together(mine, lambda g: _product(g, held, shape))
    thread = HERE.number % 128
    for n in range(shape[1] // 2):
        row, column = c_place(thread % WARP, n)
        acc[(n, 0, 0)] = acc.element_type(given[16 * (thread // WARP) + row, column])


def _product(given: dict[int, Any], held: bool, shape: tuple[int, int, int]) -> np.ndarray:
    m, n, k = shape
    first = given[min(given)]
    a, c = np.zeros((m, k)), np.zeros((m, n))
    for number, (left, _, acc) in given.items():
        thread, base = number % WARP, 16 * (number % 128 // WARP)
        for i, x in enumerate(acc):
            row, column = c_place(thread, i)
            c[base + row, column] = x
        for i, x in enumerate(left if held else ()):
            row, column = a_place(thread, i, k)
            a[base + row, column] = x
    if not held:
        a = np.array([[float(first[0][(i, j)]) for j in range(k)] for i in range(m)])
    right = np.array([[float(first[1][(j, i)]) for j in range(n)] for i in range(k)])
    return c + a @ right


def tf32_product(acc: Any, a: Any, b: Any, columns: int) -> None:
    """Emulates the inline assembly of `kernel/matrices.py` for tf32."""
    left = getattr(a, "tensor", a)
    _warpgroup_mma(acc, left, b.tensor, (64, columns, 8))


def _load_matrices(atom: Any, row: Tensor, to: Tensor) -> None:
    """Loads 8 x 8 matrices; eight threads give the addresses of each matrix's rows."""
    count, transposed = memory.size(to) // 2, atom.op.transposed
    given = warp().together(row, dict)
    base, own = HERE.number // WARP * WARP, HERE.number % WARP
    for n in range(2 * count):
        i, j = own // 4, own % 4 * 2 + n % 2
        i, j = (j, i) if transposed else (i, j)
        to[n] = given[base + n // 2 * 8 + i][j]


# -- modules --------------------------------------------------------------------------------------


def _copied(to: Pointer, source: Pointer, count: int, _: Any, cp_size: Any = None) -> None:
    """An asynchronous copy of bytes, which completes immediately. It writes zeros if `cp_size` is 0."""
    if to.address() % count or (cp_size is None or int(cp_size)) and source.offset % count:
        raise IndexError(f"a copy of {count} bytes is not aligned")
    for n in range(count // to.size):
        (to + n).store((source + n).load() if cp_size is None or int(cp_size) else to.dtype(0))


def _swizzled(p: Pointer) -> Pointer:
    """A plain pointer to the address of a swizzled pointer."""
    return Pointer(p.memory, p.address(), p.dtype, p.space)


def _op(family: str) -> Any:
    def make(dtype: Any, acc: Any, shape: Any, *_: Any) -> Any:
        return SimpleNamespace(family=family, dtype=dtype, shape=shape)

    return make


def _of_eight(a: Any, b: Any, acc: Any, shape: Any, source: Any, *majors: str) -> Any:
    if set(majors) != {"k"}:
        raise ValueError("operands of 8 bits are contiguous along K")
    return SimpleNamespace(family="warpgroup", dtype=b, shape=shape)


def _nvgpu() -> ModuleType:
    return _module(
        "cutlass.cute.nvgpu",
        OperandMajorMode=SimpleNamespace(K="k", MN="mn"),
        tcgen05=None,
        warp=SimpleNamespace(
            MmaF16BF16Op=_op("warp"),
            MmaTF32Op=lambda shape: SimpleNamespace(family="warp", dtype=TFloat32, shape=shape),
            LdMatrix8x8x16bOp=lambda transposed, count: SimpleNamespace(transposed=transposed),
        ),
        warpgroup=SimpleNamespace(
            MmaF16BF16Op=_op("warpgroup"),
            MmaF8Op=_of_eight,
            MmaI8Op=_of_eight,
            OperandSource=SimpleNamespace(RMEM="rmem", SMEM="smem"),
            Field=SimpleNamespace(ACCUMULATE="accumulate"),
            fence=lambda: None,
            commit_group=lambda: None,
            wait_group=lambda pending: None,
        ),
    )


def _cute(nvgpu: ModuleType) -> ModuleType:
    return _module(
        "cutlass.cute",
        **dict.fromkeys(("kernel", "jit"), _same),
        Pointer=Pointer,
        CopyAtom=TensorMap,
        math=MATH,
        arch=ARCH,
        nvgpu=nvgpu,
        AddressSpace=SimpleNamespace(rmem=RMEM, smem=SMEM, gmem=GMEM),
        make_layout=lambda shape, stride=None: Layout(shape, stride),
        make_tensor=memory.tensor,
        make_rmem_tensor=memory.registers,
        make_swizzle=Swizzle,
        recast_ptr=lambda p, swizzle=None, dtype=None: Pointer(
            p.memory, p.offset, dtype or p.dtype, p.space, swizzle or p.swizzle
        ),
        crd2idx=lambda at, layout: layout(at),
        assume=lambda x, divby: _divisible(x, divby),
        ceil_div=lambda a, b: -(-int(a) // int(b)),
        round_up=lambda a, b: -(-int(a) // int(b)) * int(b),
        size=memory.size,
        rank=memory.rank,
        autovec_copy=memory.autovec_copy,
        make_tiled_mma=_atom,
        make_copy_atom=lambda op, dtype: SimpleNamespace(op=op),
        copy_atom_call=_load_matrices,
        gemm=_gemm,
    )


def modules() -> dict[str, ModuleType]:
    """The fake modules by name."""
    nvgpu = _nvgpu()
    cute = _cute(nvgpu)
    nvvm = SimpleNamespace(
        LoadCacheModifierKind=SimpleNamespace(CG="cg", CA="ca"), cp_async_shared_global=_copied
    )
    arith = SimpleNamespace(
        divsi=lambda a, b: type(a)(
            int(int(a) / int(b)) if abs(int(a)) < 1 << 52 else _cut(int(a), int(b))
        )
    )
    dialects = _module(
        "cutlass._mlir.dialects",
        nvvm=nvvm,
        arith=arith,
        llvm=SimpleNamespace(intr_assume=lambda *_: None),
        cute=SimpleNamespace(apply_swizzle=_swizzled),
        cute_nvgpu=None,
    )
    cutlass = _module(
        "cutlass",
        **{n.__name__: n for n in NUMBERS},
        cute=cute,
        Constexpr=Any,
        const_expr=bool,
        range=_range,
        range_constexpr=_range,
        select_=lambda c, a, b: a if c else b,
        AddressSpace=SimpleNamespace(generic="generic"),
        _mlir=SimpleNamespace(dialects=dialects),
    )
    return {
        "cutlass": cutlass,
        "cutlass.cute": cute,
        "cutlass.cute.nvgpu": nvgpu,
        "cutlass._mlir": _module("cutlass._mlir", dialects=dialects),
        "cutlass._mlir.dialects": dialects,
    }


def _cut(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divisible(x: Any, divby: int) -> Any:
    if int(x) % divby:
        raise ValueError(f"{int(x)} is no multiple of {divby}")
    return x


@contextmanager
def installed() -> Iterator[ModuleType]:
    """Installs these modules in place of CuTe DSL's, and `kernel/` on top of them."""
    own = [n for n in sys.modules if n.split(".")[0] == "cutlass" or n.startswith(KERNEL)]
    kept = {n: sys.modules.pop(n) for n in own}
    package = sys.modules["backends.cutedsl"]
    before = getattr(package, "kernel", None)
    sys.modules.update(modules())
    try:
        found = importlib.import_module(KERNEL)
        found.matrices._tf32_mma = tf32_product
        found.matrices._eight_mma = eight_product
        found.matrices._keep_before_waits = lambda x: None
        found.memory._load_where = _load_where
        found.load_box, found.store_box = load_box, store_box
        found.init_signals, found.sync_cluster = _init_signals, _sync_cluster
        found.await_raised = _await_raised
        for name in "take_columns give_columns_back tensor_mma signal_matmuls load_columns".split():
            setattr(found, name, getattr(accumulators, name))
        yield found
    finally:
        for n in [n for n in sys.modules if n.split(".")[0] == "cutlass" or n.startswith(KERNEL)]:
            del sys.modules[n]
        sys.modules.update(kept)
        if before is not None:
            package.kernel = before


def _load_where(registers: Any, pointer: Pointer, at: Any, inside: Any, other: Any) -> None:
    """A predicated load: nothing is read where the condition does not hold."""
    kernel = sys.modules[KERNEL].memory
    for n in range(memory.size(registers)):
        registers[n] = registers.element_type(other)
    if inside:
        kernel.copy_run(kernel._run(pointer, at, memory.size(registers)), registers)


def _init_signals(signal: Pointer, stages: int, arrivals: Any) -> None:
    for n in range(stages):
        _init_signal(signal + n, arrivals)
