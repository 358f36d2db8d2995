"""Stream-K: the launch and its workspace, where it is legal, and which edits propose it."""

from dataclasses import replace

import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Fill, Store, StreamK
from ir.nest.text import nest_text
from ir.spec import Number
from testing.samples.samples import WITH_INSTRUCTIONS, decisions, lowered, spec_of

MATMUL = {"inputs": "x: bf16[M, K], w: bf16[K, N]", "result": "f32[M, N]"}
SPEC = spec_of(
    "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)", "y[m, n] = relu(acc[m, n])", **MATMUL
)
SIZES = {"M": 256, "N": 128, "K": 512}
GRID = ("place(m.outer, level=grid)", "place(n.outer, level=grid)")
PLAIN = ("tile(m, size=64)", "tile(n, size=32)", "tile(k, size=32)", *GRID)
PERSISTENT = (*PLAIN, "compute(acc, unit=matrix)", "persistent(y, programs=2)")
SHARED = "stream_k(y, over=k)"


def nest_of(*lines, spec=SPEC, sizes=SIZES, machine=WITH_INSTRUCTIONS):
    return lowered(spec, *lines, sizes=sizes, machine=machine)


def test_a_launch_gets_a_workspace_that_the_launch_before_clears():
    clear, launch = nest_of(*PERSISTENT, SHARED).launches
    blocks = 2 * WITH_INSTRUCTIONS.parallel
    assert launch.stream_k == StreamK("k", "acc", "acc_partial", "acc_flag")
    made = {p.name: p for p in launch.parameters if p.role == "workspace"}
    assert made["acc_partial"].shape == (Number(blocks), Number(64), Number(32))
    assert made["acc_partial"].dtype == "f32"
    assert made["acc_flag"].shape == (Number(blocks + 1),)
    assert [type(s) for s in clear.body] == [Fill, Store]
    assert clear.parameters == (made["acc_flag"],)


def test_a_nest_says_it():
    text = nest_text(nest_of(*PERSISTENT, SHARED), WITH_INSTRUCTIONS)
    assert "equal shares of all iterations over k of all tiles" in text


def test_an_axis_of_one_element_is_none_of_the_workspace():
    spec = spec_of(
        "acc[b, m, n] = sum(f32(x[b, m, k]) * f32(w[b, k, n]), k)",
        "y[b, m, n] = relu(acc[b, m, n])",
        inputs="x: bf16[B, M, K], w: bf16[B, K, N]",
        result="f32[B, M, N]",
    )
    batch = ("tile(b, size=1)", "place(b.outer, level=grid)")
    launch = nest_of(*batch, *PERSISTENT, SHARED, spec=spec, sizes=SIZES | {"B": 3}).launches[-1]
    shape = next(p.shape for p in launch.parameters if p.name == "acc_partial")
    assert shape == (Number(2 * WITH_INSTRUCTIONS.parallel), Number(64), Number(32))


@pytest.mark.parametrize(
    "lines, why",
    [
        (PERSISTENT[:-1], "have one tile each"),
        ((*PLAIN, "persistent(y, programs=1)"), "one sum on the matrix unit"),
        ((*PERSISTENT, "cluster(m, size=2)", "copy(w, by=bulk)"), "form clusters"),
        (("tile(n, size=48)", *(d for d in PERSISTENT if "tile(n" not in d)), "no power of two"),
        (tuple(d for d in PERSISTENT if "tile(n" not in d and "place(n" not in d), "tile of `n`"),
    ],
)
def test_what_blocks_cannot_share_is_refused(lines, why):
    machine = replace(WITH_INSTRUCTIONS, details={"gpu": {"cluster_blocks": 8}})
    pipelined = ("pipeline(w, stages=2)",) if "cluster(m, size=2)" in lines else ()
    with pytest.raises(KernelError, match=why) as found:
        nest_of(*lines, *pipelined, SHARED, machine=machine)
    assert found.value.place and found.value.allowed and found.value.hint


@pytest.mark.parametrize(
    "equations, lines",
    [
        (  # two sums in one loop
            ("s[m] = sum(f32(x[m, k]), k)", "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)"),
            ("fuse(s, into=acc)",),
        ),
        (  # two loops
            ("s[m] = sum(f32(x[m, k]), k)", "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)"),
            (),
        ),
    ],
)
def test_another_sum_in_the_launch_is_refused(equations, lines):
    spec = spec_of(*equations, "y[m, n] = acc[m, n] + s[m]", **MATMUL)
    with pytest.raises(KernelError, match="cannot share the iterations over `k`"):
        nest_of(*PERSISTENT, *lines, SHARED, spec=spec)


def test_memory_that_adds_no_integers_counts_no_blocks():
    machine = replace(WITH_INSTRUCTIONS, atomics=("f32",))
    with pytest.raises(KernelError, match="does not add to i32"):
        nest_of(*PERSISTENT, SHARED, machine=machine)


def test_a_name_that_the_spec_has_is_refused():
    spec = spec_of(
        "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n] + acc_flag[n]",
        inputs=f"{MATMUL['inputs']}, acc_flag: f32[N]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match="a second `acc_flag`"):
        nest_of(*PERSISTENT, SHARED, spec=spec)


def proposed(*lines, machine=WITH_INSTRUCTIONS):
    schedule = decisions(SPEC, *lines)
    edits = neighbours(SPEC, schedule, machine, SIZES)
    return schedule, [e for e in edits if e.decision.verb == "stream_k"]


def test_edits_propose_it_for_a_persistent_matmul():
    assert [str(e) for e in proposed(*PERSISTENT)[1]] == [f"+ {SHARED}"]
    assert [str(e) for e in proposed(*PERSISTENT, SHARED)[1]] == [f"- {SHARED}"]
    assert not proposed(*PERSISTENT[:-1])[1]
    few = replace(WITH_INSTRUCTIONS, atomics=())
    assert not proposed(*PERSISTENT, machine=few)[1]
    rendering = replace(WITH_INSTRUCTIONS.rendering, verbs=("persistent",))
    assert not proposed(*PERSISTENT, machine=replace(WITH_INSTRUCTIONS, rendering=rendering))[1]


@pytest.mark.parametrize("verb, subject", [("persistent", "y"), ("tile", "k")])
def test_it_goes_with_what_it_needs(verb, subject):
    schedule, _ = proposed(*PERSISTENT, SHARED)
    edits = neighbours(SPEC, schedule, WITH_INSTRUCTIONS, SIZES)
    old = schedule.find(verb, subject)
    (dropped,) = (e for e in edits if e.old == old and e.new is None)
    assert dropped.apply(schedule).find("stream_k", "y") is None
