"""What is prefetched: operands of products in loops, as deep as shared memory allows."""

from dataclasses import replace

from ir.lower.lower import lower
from ir.sizes import bind
from machines.gpu.prefetched import deepest, prefetched
from testing.samples.samples import WITH_THREADS, decisions, workload

SIZES = {"M": 64, "N": 64, "K": 64}


def launch():
    spec = workload("rmsnorm_matmul").spec
    lines = ("tile(m, size=16)", "place(m.outer, level=grid)", "tile(k, size=16)")
    lines = (*lines, "place(k.outer, level=loop)", "compute(acc, unit=matrix)")
    nest = lower(spec, decisions(spec, *lines, "precision(acc, dtype=bf16)"), WITH_THREADS, SIZES)
    return nest.launches[-1], bind(spec, SIZES)


def test_what_a_product_loads_is_prefetched_and_what_that_is_made_of_where_that_is_asked_for():
    one, _ = launch()
    assert prefetched(one, (), mapped=False) == {"w"}
    assert prefetched(one, (), mapped=True) > {"w"}


def test_stages_are_as_many_as_fit():
    one, sizes = launch()
    deep, made = deepest(one, {"w"}, WITH_THREADS, sizes)
    assert deep.value("w").stages == 3 and str(made[0]) == "pipeline(w, stages=3)"
    space = replace(WITH_THREADS.spaces["shared"], bytes=64)
    small = replace(WITH_THREADS, spaces={**WITH_THREADS.spaces, "shared": space})
    assert deepest(one, {"w"}, small, sizes) == (one, [])
    assert deepest(one, (), WITH_THREADS, sizes) == (one, [])
