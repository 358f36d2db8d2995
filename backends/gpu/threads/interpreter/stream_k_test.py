"""Stream-K: right at all sizes and in any order of blocks, and what goes wrong between them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from backends.gpu import tile as of
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import TOGETHER, interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text
from backends.gpu.tile import Name
from backends.shared.arrays import from_device, poisoned, to_device
from ir.spec import Apply, Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
BLOCKS = 5  # of the machine
MACHINE = replace(WITH_INSTRUCTIONS, levels=WITH_INSTRUCTIONS.levels | {"grid": BLOCKS})
SPEC = spec_of(
    "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    "y[m, n] = acc[m, n] + f32(b[n])",
    inputs="x: bf16[M, K], w: bf16[K, N], b: bf16[N]",
    result="f32[M, N]",
)
BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)")
SIZES = {  # tiles of 64, iterations of 32
    "shares across tiles": dict(M=136, N=72, K=328),
    "odd sizes": dict(M=131, N=67, K=333),
    "a tile for several blocks": dict(M=64, N=64, K=640),
    "a share is a tile": dict(M=64 * BLOCKS, N=64, K=96),
    "fewer iterations than blocks": dict(M=7, N=5, K=70),
    "one iteration": dict(M=7, N=5, K=13),
}
CUT = SIZES["shares across tiles"]


@cache
def program(*more, programs=1):
    nest = lowered(
        SPEC,
        *("tile(m, size=64)", "tile(n, size=64)", "tile(k, size=32)"),
        *("place(m.outer, level=grid)", "place(n.outer, level=grid)", "compute(acc, unit=matrix)"),
        *("pipeline(x, stages=2)", "pipeline(w, stages=2)", "threads(y, count=128)"),
        f"persistent(y, programs={programs})",
        "stream_k(y, over=k)",
        *more,
        sizes=dict(M=256, N=128, K=512),
        machine=MACHINE,
    )
    return thread_program(nest, MACHINE, RULES, TABLE)


def run(made, sizes=CUT, seed=1):
    draw = np.random.default_rng(0)
    inputs = {}
    for p in made.tensors:
        shape = [sizes[e.name] if hasattr(e, "name") else int(e.value) for e in p.shape]
        given = p.role == "input"
        integers = draw.integers(-2, 3, size=shape).astype(float) if given else None
        inputs[p.name] = to_device(integers, p.dtype) if given else poisoned(p, sizes)
    interpret(made, sizes, inputs, TABLE, 1 << 18, seed)
    x, w, b = (from_device(inputs[n], "bf16") for n in "xwb")
    return inputs["y"], x @ w + b, inputs


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    "more", [(), BULK, (*BULK, "copy(y, by=bulk)"), ("epilogue(y, by=shared)",)]
)
def test_results_are_right(name, more):
    found, expected, _ = run(program(*more), SIZES[name])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("more", [(), BULK])
def test_the_order_of_blocks_changes_no_bit(more):
    draw = np.random.default_rng(3)
    x, w, b = (draw.normal(size=s) for s in ((136, 328), (328, 72), (72,)))
    given = {"x": x, "w": w, "b": b}
    made, found = program(*more, programs=2), []
    for seed in range(4):
        tensors = {
            p.name: to_device(given[p.name], p.dtype) if p.role == "input" else poisoned(p, CUT)
            for p in made.tensors
        }
        interpret(made, CUT, tensors, TABLE, 1 << 18, seed)
        found.append(tensors["y"])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_blocks_have_equal_shares():
    _, _, tensors = run(program())  # 6 tiles of 11 iterations for 5 blocks: 14, 14, 14, 14, 10
    assert tensors["acc_flag"][-1] == BLOCKS
    assert tensors["acc_flag"][:-1].tolist() == [1, 1, 1, 1, 0]  # the last one ends the last tile
    _, _, tensors = run(program(), SIZES["a share is a tile"])
    assert not tensors["acc_flag"][:-1].any()


def test_a_program_says_how_blocks_go_through_tiles():
    text = program_text(program())
    assert "for each tile from ((end - 1) // k_iterations) down to (begin // k_iterations)" in text
    assert "await acc_flag_pointer[peer]" in text and "raise acc_flag_pointer[block]" in text


# -- planted faults ---------------------------------------------------------------------------------


def changed(made, change):
    """A program with the statements of its last launch changed. change: None keeps one, else those
    in its place."""

    def block(statements):
        found = []
        for s in statements:
            if (other := change(s)) is not None:
                found += other
            elif isinstance(s, to.Guard):
                found.append(replace(s, body=block(s.body), others=block(s.others)))
            elif isinstance(s, to.Loop):
                found.append(replace(s, body=block(s.body)))
            else:
                found.append(s)
        return tuple(found)

    return with_launch(made, lambda one: replace(one, body=block(one.body)))


def with_launch(made, change):
    ((_, (*first, last)),) = made.groups
    return replace(made, groups=((None, (*first, change(last))),))


def by_one(kind):
    """Whether a statement is the one that the first thread does alone with one of a kind in it."""
    return lambda s: isinstance(s, to.Guard) and any(isinstance(x, kind) for x in s.body)


def without(kind, beside):
    """Leaves statements of a kind out where there is one of another kind beside."""

    def change(s):
        if not by_one(beside)(s):
            return None
        return [replace(s, body=tuple(x for x in s.body if not isinstance(x, kind)))]

    return change


def raised_first(s):
    """The flag before the part that it tells of."""
    if not isinstance(s, to.Guard) or not any(map(by_one(to.Raise), s.others)):
        return None
    store, barrier, flag = s.others
    return [replace(s, others=(flag, store, barrier))]


def without_barrier(beside):
    def change(s):
        for name in ("body", "others"):
            block = getattr(s, name, ())
            if any(map(by_one(beside), block)):
                left = tuple(x for x in block if not isinstance(x, to.Barrier))
                return [replace(s, **{name: left})]
        return None

    return change


def to_one_place(s):
    """Parts of all blocks in one place."""
    if isinstance(s, to.Store) and s.place.tensor == Name("pointer", "acc_partial"):
        first, *rest = s.place.terms
        own = Apply("mul", (to.Element(Name("block")), Number(64 * 64)))
        begins = of.Term(Apply("sub", (first.value, own)))
        return [replace(s, place=replace(s.place, terms=(begins, *rest)))]
    return None


FAULTS = {
    "the flag is raised before the part is stored": (
        raised_first,
        faults.FLAG,
        "before all threads|no block has written",
    ),
    "no thread waits for the others before the flag is raised": (
        without_barrier(to.Raise),
        faults.FLAG,
        "before all threads",
    ),
    "no fence before the flag is raised": (
        without(to.DeviceFence, to.Raise),
        faults.FENCE,
        "between what is written and the flag",
    ),
    "no fence after the flag was awaited": (
        without(to.DeviceFence, to.AwaitRaised),
        faults.FENCE,
        "between the flag that was awaited and what is read",
    ),
    "threads do not wait for the one that awaits the flag": (
        without_barrier(to.AwaitRaised),
        faults.FENCE,
        "may not know yet",
    ),
    "the flag is not awaited": (
        without(to.AwaitRaised, to.AwaitRaised),
        faults.FLAG,
        "was not awaited|no block has written",
    ),
    "the flag is not raised": (without(to.Raise, to.Raise), faults.DEADLOCK, "nothing raises"),
    "all parts lie in one place": (to_one_place, faults.OVERLAP, "is written by block"),
}


@pytest.mark.parametrize("more", [(), BULK])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_any_order_of_blocks(name, more):
    change, kind, what = FAULTS[name]
    wrong = changed(program(*more), change)
    assert wrong != program(*more)
    for seed in range(3):
        with pytest.raises(ThreadFault, match=what) as found:
            run(wrong, seed=seed)
        assert found.value.kind == kind, found.value
        assert found.value.hint and found.value.block is not None


def test_flags_and_the_number_of_blocks_are_cleared_first():
    made = program()
    ((_, launches),) = made.groups
    alone = replace(made, groups=((None, launches[1:]),))
    with pytest.raises(ThreadFault, match="was not cleared") as found:
        run(alone)
    assert found.value.kind == faults.UNINITIALISED


def test_a_block_that_waits_for_one_that_has_not_begun_is_a_deadlock():
    """Blocks with higher numbers may begin when others end: those that run may fill the machine."""

    def later(s):
        if isinstance(s, to.AwaitRaised):
            number = Apply("add", (s.flag.terms[0].value, Number(TOGETHER)))
            return [to.AwaitRaised(replace(s.flag, terms=(of.Term(number),)))]
        return None

    with pytest.raises(ThreadFault, match="lower numbers") as found:
        run(changed(program(), later))
    assert found.value.kind == faults.DEADLOCK
