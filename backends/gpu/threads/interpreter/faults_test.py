"""Faults planted in correct thread programs: each is found, and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.gpu.layout.layout import Layout
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.cases import SIZES, TABLE, arrays
from backends.gpu.threads.interpreter.counts import require_no_conflicts
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing import samples
from backends.gpu.tile import Check, Name
from ir.spec import Apply, Number, Size

PROGRAMS = {
    "vector_add": samples.vector_add(),
    "row_sum": samples.row_sum(),
    "transpose": samples.transpose(),
    "matmul": samples.matmul(),
    "histogram": samples.histogram(),
}
Change = Callable[[to.Statement], "tuple[to.Statement, ...] | None"]


def block(statements, change: Change):
    """Statements with some replaced; change: None keeps one and goes on inside it."""
    found = []
    for s in statements:
        made = change(s)
        if made is not None:
            found += made
        elif isinstance(s, to.Loop):
            found.append(replace(s, body=block(s.body, change)))
        elif isinstance(s, to.Guard):
            found.append(replace(s, body=block(s.body, change), others=block(s.others, change)))
        else:
            found.append(s)
    return tuple(found)


def changed(kernel: str, change: Change, **fields):
    """A sample with the statements, and fields, of its last launch changed."""
    program = PROGRAMS[kernel]
    *others, last = program.launches
    body = block(last.body, change)
    assert body != last.body or fields, "nothing was planted"
    made = replace(last, **{"body": body, **fields})
    return replace(program, groups=((None, (*others, made)),))


def without(kind: type, number: int = 0) -> Change:
    """Leaves out the statement of a kind with a number."""
    seen = iter(range(1000))
    return lambda s: () if isinstance(s, kind) and next(seen) == number else None


def kept(s: to.Statement):
    return None


def refitted(kernel: str, stem: str, index: str, **fields):
    """The fragments of a sample with one axis of one of them changed."""
    found = []
    for f in PROGRAMS[kernel].launches[-1].fragments:
        if f.name == Name("value", stem):
            axes = tuple(replace(a, **fields) if a.index == index else a for a in f.axes)
            f = replace(f, axes=axes)
        found.append(f)
    return tuple(found)


def retiled(kernel: str, **fields):
    """The tiles of shared memory of a sample with fields changed."""
    return tuple(replace(s, **fields) for s in PROGRAMS[kernel].launches[-1].shared)


def on(kind: type, make: Callable) -> Change:
    """Replaces statements of a kind."""
    return lambda s: make(s) if isinstance(s, kind) else None


def guarded(s):
    """A statement that only some threads of a warp reach."""
    return (to.Guard(Apply("lt", (to.Thread(), Number(5))), (s,)),)


def unmasked(s):
    return (replace(s, place=replace(s.place, mask=())),)


def early(s):
    """A loop whose wait comes after what it waits for."""
    wait, barrier, *rest = s.body
    return (replace(s, body=(barrier, *rest, wait)),)


def late(s):
    """A loop that copies into the stage that it has just read."""
    wait, barrier, copies, commit, reads = s.body
    (copies,) = block((copies,), on(to.Copy, lambda c: (replace(c, stage=_read_stage(s)),)))
    return (replace(s, body=(wait, barrier, reads, copies, commit)),)


def _read_stage(loop):
    return next(s.stage for s in to.statements((loop,)) if isinstance(s, to.SharedLoad))


def reread(s):
    """A load from shared memory, then a store to it by other threads."""
    here = Name("value", "x")
    return (s, to.SharedStore(Name("shared", "x"), here))


def of_some(s):
    """A store to shared memory by half of the threads."""
    return (to.Guard(Apply("lt", (to.Thread(), Number(64))), (s,)),)


def by_thread(s):
    """A value of the exchange that differs between the copies, all of which store it."""
    return (
        to.Each(Name("value", "own"), Apply("mul", (samples.at("s"), to.Thread()))),
        replace(s, copies=0),
    )


PLANTED = {
    "missing barrier": (
        faults.READ_AFTER_WRITE,
        lambda: changed("transpose", without(to.Barrier)),
    ),
    "missing barrier of an exchange": (
        faults.READ_AFTER_WRITE,
        lambda: changed("row_sum", without(to.Barrier)),
    ),
    "write after read": (
        faults.WRITE_AFTER_READ,
        lambda: changed("transpose", on(to.SharedLoad, reread)),
    ),
    "copies of an element with several values": (
        faults.WRITE_AFTER_WRITE,
        lambda: changed("row_sum", on(to.SharedStore, by_thread)),
    ),
    "threads that store one element of global memory": (
        faults.WRITE_AFTER_WRITE,
        lambda: changed(
            "row_sum", on(to.Store, lambda s: (replace(s, value=to.Thread(), copies=0),))
        ),
    ),
    "atomic store made plain": (
        faults.WRITE_AFTER_WRITE,
        lambda: changed(
            "histogram", on(to.Store, lambda s: (replace(s, reduction="", value=to.Thread()),))
        ),
    ),
    "overlapping threads": (
        faults.LAYOUT,
        lambda: changed(
            "vector_add", kept, fragments=refitted("vector_add", "x", "n", thread=Layout(128, 2))
        ),
    ),
    "overlapping repetitions": (
        faults.LAYOUT,
        lambda: changed("transpose", kept, fragments=refitted("transpose", "x", "n", span=16)),
    ),
    "an element without an owner": (
        faults.LAYOUT,
        lambda: changed("transpose", kept, fragments=refitted("transpose", "x", "n", span=33)),
    ),
    "wrong fragment of an instruction": (
        faults.FRAGMENT,
        lambda: changed(
            "matmul",
            kept,
            fragments=refitted("matmul", "w", "k", register=Layout((2, 2), (8, 1))),
        ),
    ),
    "wrong fragment of an expression": (
        faults.FRAGMENT,
        lambda: changed(
            "vector_add",
            kept,
            fragments=refitted(
                "vector_add", "x", "n", thread=Layout(128, 1), register=Layout(4, 128)
            ),
        ),
    ),
    "a load of matrices that are none": (
        faults.FRAGMENT,
        lambda: changed(
            "matmul",
            on(to.SharedLoad, lambda s: (replace(s, by="matrix"),)),
        ),
    ),
    "a barrier that some threads reach": (
        faults.DIVERGENT,
        lambda: changed("transpose", on(to.Barrier, guarded)),
    ),
    "a shuffle that some threads reach": (
        faults.DIVERGENT,
        lambda: changed("row_sum", on(to.Shuffle, guarded)),
    ),
    "an instruction that some threads reach": (
        faults.DIVERGENT,
        lambda: changed("matmul", on(to.Multiply, guarded)),
    ),
    "a lost wait": (
        faults.COPY_IN_FLIGHT,
        lambda: changed("matmul", without(to.Wait)),
    ),
    "a wait that allows too many groups": (
        faults.COPY_IN_FLIGHT,
        lambda: changed("matmul", on(to.Wait, lambda s: (to.Wait(2),))),
    ),
    "a wait after the reads": (
        faults.COPY_IN_FLIGHT,
        lambda: changed("matmul", lambda s: early(s) if _is_k_loop(s) else None),
    ),
    "a lost commit": (
        faults.COPY_IN_FLIGHT,
        lambda: changed("matmul", without(to.Commit, 2)),
    ),
    "no barrier after a wait": (
        faults.READ_AFTER_WRITE,
        lambda: changed("matmul", without(to.Barrier)),
    ),
    "a copy into the stage that was just read": (
        faults.STAGE_IN_USE,
        lambda: changed("matmul", lambda s: late(s) if _is_k_loop(s) else None),
    ),
    "a load without its mask": (
        faults.OUT_OF_BOUNDS,
        lambda: changed("histogram", on(to.Load, unmasked)),
    ),
    "a store without its mask": (
        faults.OUT_OF_BOUNDS,
        lambda: changed("matmul", on(to.Store, unmasked)),
    ),
    "a store beyond a tile of shared memory": (
        faults.OUT_OF_BOUNDS,
        lambda: changed(
            "transpose", kept, shared=retiled("transpose", extents=(Number(64), Number(60)))
        ),
    ),
    "a stage that there is not": (
        faults.OUT_OF_BOUNDS,
        lambda: changed("matmul", kept, shared=retiled("matmul", stages=2)),
    ),
    "an uninitialised accumulator": (
        faults.UNINITIALISED,
        lambda: changed("matmul", lambda s: () if _fills(s, "acc") else None),
    ),
    "registers that some threads wrote": (
        faults.UNINITIALISED,
        lambda: changed("row_sum", on(to.Load, guarded)),
    ),
    "an uninitialised tile of shared memory": (
        faults.UNINITIALISED,
        lambda: changed("row_sum", without(to.SharedStore)),
    ),
    "a tile of shared memory that is stored in part": (
        faults.UNINITIALISED,
        lambda: changed("transpose", on(to.SharedStore, of_some)),
    ),
    "vectors that are not aligned": (
        faults.VECTOR,
        lambda: changed(
            "vector_add", on(to.Load, lambda s: (replace(s, vector=to.Vector("n", 4, None)),))
        ),
    ),
    "shared memory over the limit": (
        faults.SHARED_MEMORY,
        lambda: changed("matmul", kept, shared=retiled("matmul", stages=24)),
    ),
}


def _is_k_loop(s):
    return isinstance(s, to.Loop) and s.name == Name("origin", "k")


def _fills(s, stem):
    return isinstance(s, to.Each) and s.name == Name("value", stem)


def run(program, sizes=None, **options):
    sizes = sizes or SIZES[program.name]
    return interpret(program, sizes, arrays(program, sizes), TABLE, 1 << 16, **options)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_found_and_named(planted):
    kind, make = PLANTED[planted]
    with pytest.raises(ThreadFault) as found:
        run(make())
    assert found.value.kind == kind, str(found.value)
    assert found.value.hint and found.value.launch
    assert str(found.value).startswith(f"{kind}: {found.value.launch}")


@pytest.mark.parametrize("seed", range(3))
def test_faults_are_found_in_any_order_of_blocks(seed):
    kind, make = PLANTED["missing barrier"]
    with pytest.raises(ThreadFault) as found:
        run(make(), seed=seed)
    assert found.value.kind == kind and len(found.value.threads) == 2


def test_a_fault_says_where_it_is_and_what_to_do():
    with pytest.raises(ThreadFault) as found:
        run(changed("transpose", without(to.Barrier)), {"M": 64, "N": 64})
    assert str(found.value).splitlines() == [
        "read after write: transpose, block 0, thread 0 and 4: thread 0 reads what thread 4 wrote "
        "since the last barrier: `x` at offset 4 of stage 0",
        "  in: y = x_shared",
        "  hint: put a barrier between the write and this read",
    ]


@pytest.mark.parametrize(
    "kernel, tile, plain",
    [("transpose", "x", {"swizzle": None}), ("matmul", "w", {"swizzle": None})],
)
def test_a_promise_of_no_bank_conflicts_is_checked(kernel, tile, plain):
    name = Name("shared", tile)
    require_no_conflicts(run(PROGRAMS[kernel]), name)
    counts = run(changed(kernel, kept, shared=retiled(kernel, **plain)))
    assert counts.conflicts(name) > 0
    with pytest.raises(ThreadFault) as found:
        require_no_conflicts(counts, name)
    assert found.value.kind == faults.BANK_CONFLICT and found.value.statement


def test_padding_keeps_its_promise_too():
    counts = run(changed("transpose", kept, shared=retiled("transpose", swizzle=None, padding=1)))
    require_no_conflicts(counts, Name("shared", "x"))
    assert counts.conflicts(Name("shared", "x")) == 0


def test_a_barrier_in_a_guard_that_all_threads_agree_on_is_none():
    agreed = Check(Size("M"), below=Number(1000))
    run(changed("transpose", on(to.Barrier, lambda s: (to.Guard(agreed, (s,)),))))


def test_shuffles_of_whole_warps_do_not_diverge():
    first = Apply("lt", (to.Thread(), Number(32)))
    run(changed("row_sum", on(to.Shuffle, lambda s: (s, to.Guard(first, (s,))))))
