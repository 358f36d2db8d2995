"""Matmuls in tensor memory: what stays there, when it is loaded, and what is refused."""

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.fragments import registers
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.testing.lowered_samples import GRID, MATMUL, PRODUCT, of, tiles
from backends.gpu.threads.text import statement_text
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("tcgen05"))
COLUMNS = 128
SIZES = dict(warps_per_unit=64, shared_bytes_per_unit=233_472, cluster_blocks=8)
GPU = {"tensor_columns": COLUMNS, **SIZES}
MACHINE = replace(WITH_INSTRUCTIONS, details={**WITH_INSTRUCTIONS.details, "gpu": GPU})
STREAM = (*tiles(m=128, n=64, k=32), *GRID, "compute(acc, unit=matrix)")
FOUR, EIGHT = "threads(y, count=128)", "threads(y, count=256)"


def launch(*decided, equations=(PRODUCT, "y[m, n] = acc[m, n]"), given=MATMUL):
    spec = spec_of(*equations, **given)
    sizes = dict.fromkeys("MNK", 256)
    nest = lowered(spec, *decided, sizes=sizes, machine=MACHINE)
    return thread_program(nest, MACHINE, RULES, TABLE).launches[-1]


def lines(block):
    """The lines about an accumulator, in order, with loops as they begin."""
    kinds = (to.TensorMultiply, to.TensorLoad, to.Loop, to.Barrier)
    return [type(s).__name__ for s in to.statements(block) if isinstance(s, kinds)]


def test_a_sum_over_a_loop_stays_in_tensor_memory_and_is_loaded_once():
    found = launch(*STREAM, FOUR)
    (multiply,), (load,) = of(to.TensorMultiply, found), of(to.TensorLoad, found)
    assert multiply.shape == (128, 64, 16) and multiply.to == load.source
    seen = lines(found.body)
    last = len(seen) - 1 - seen[::-1].index("TensorLoad")
    assert seen.index("Loop") < seen.index("TensorMultiply") < last
    assert seen[last + 1] == "Barrier"
    (accumulator,) = found.accumulators
    assert accumulator.fragment == load.name and accumulator.groups == 1
    begun = [s for s in of(to.Each, found) if s.name.sort == "begun"]
    assert [statement_text(s) for s in begun] == ["acc_begun = 0", "acc_begun = 1"]


def test_warps_of_two_groups_have_columns_of_their_own():
    found = launch(*(d.replace("tile(n, size=64)", "tile(n, size=128)") for d in STREAM), EIGHT)
    (accumulator,) = found.accumulators
    fragment = found.fragment(accumulator.fragment)
    assert accumulator.groups == 2 and [registers(a) for a in fragment.axes] == [1, 64]
    (signal,) = (s for s in found.signals if s.name.sort == "done")
    assert signal.arrivals.value == 2


def test_a_signal_has_a_stage_for_each_matmul_that_warps_may_be_behind():
    bulk = ("copy(x, by=bulk)", "copy(w, by=bulk)")
    found = launch(*STREAM, FOUR, "pipeline(x, stages=5)", "pipeline(w, stages=5)", *bulk)
    stages = {s.name.sort: s.stages for s in found.signals}
    # A round of the ring, and the one that is in flight.
    assert stages["full"] == 5 and stages["done"] == 8
    (multiply,) = of(to.TensorMultiply, found)
    assert multiply.pending == 1


def test_what_something_else_changes_is_added_in_registers():
    equations = (
        "s[m, n] = sum(f32(q[m, d]) * f32(k[n, d]), d)",
        "mx[m] = max(s[m, n], n)",
        "p[m, n] = exp(s[m, n] - mx[m])",
        "l[m] = sum(p[m, n], n)",
        "o[m, d] = sum(p[m, n] * f32(v[n, d]), n)",
        "y[m, d] = o[m, d] / l[m]",
    )
    given = {"inputs": "q: bf16[M, D], k: bf16[N, D], v: bf16[N, D]", "result": "bf16[M, D]"}
    decided = (*tiles(m=128, n=32), "place(m.outer, level=grid)", "place(n.outer, level=loop)")
    decided += ("compute(s, unit=matrix)", "compute(o, unit=matrix)", FOUR)
    decided += ("fuse(l, into=o)", "online(mx, into=o)", "precision(o, dtype=bf16)")
    spec = spec_of(*equations, **given)
    nest = lowered(spec, *decided, sizes=dict(M=256, N=256, D=64), machine=MACHINE)
    found = thread_program(nest, MACHINE, RULES, TABLE).launches[-1]
    products = of(to.TensorMultiply, found)
    added = [statement_text(s) for s in of(to.Each, found) if s.name.stem == "o"]
    assert len(products) == 2 and products[1].onto == Number(False)
    loaded = of(to.TensorLoad, found)[1].name
    assert f"o = join sum(o[m, d], part_{loaded.copy}[m, d])" in added
    tiles_of = {t.name for t in found.shared}  # the computed operand is stored there, too
    assert all(s.a in tiles_of and s.b in tiles_of for s in products)


def test_more_columns_than_there_are_are_refused():
    decided = (*tiles(m=256, n=128, k=32), *GRID, "compute(acc, unit=matrix)")
    with pytest.raises(BackendError, match="take 256 columns of tensor memory; there are 128"):
        launch(*decided, FOUR)


@pytest.mark.parametrize("stages", [2, 9])
def test_blocks_of_clusters_do_not_wait_for_each_others_columns_in_a_circle(stages):
    pipelined = (f"pipeline({x}, stages={stages})" for x in "xw")
    shared = ("copy(x, by=bulk)", "copy(w, by=bulk)", "cluster(m, size=2)")
    decided = (*STREAM, FOUR, *pipelined, *shared, "persistent(y, programs=1)")
    if stages == 9:  # a multiprocessor has room for two
        assert launch(*decided).accumulators
    else:
        with pytest.raises(BackendError, match="would wait for tensor memory in a circle"):
            launch(*decided)


def test_blocks_that_wait_for_each_other_have_no_tensor_memory():
    pipelined = ("pipeline(x, stages=2)", "pipeline(w, stages=2)")
    found = launch(*STREAM, FOUR, *pipelined, "persistent(y, programs=1)", "stream_k(y, over=k)")
    assert not found.accumulators and of(to.Multiply, found)


def test_groups_do_not_share_a_panel_of_columns():
    assert not launch(*STREAM, EIGHT).accumulators


def test_few_rows_are_multiplied_by_warps():
    decided = (*tiles(m=64, n=64, k=32), *GRID, "compute(acc, unit=matrix)")
    found = launch(*decided, FOUR)
    assert not found.accumulators and of(to.Multiply, found)
