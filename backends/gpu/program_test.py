"""A tile program says of each launch what the launcher has to give it, and no more."""

from dataclasses import fields, is_dataclass

from backends.gpu.plain_rules import RULES
from backends.gpu.program import sizes_of, tile_program
from backends.gpu.tile import Guard, Load, Loop, Name, expressions, statements
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.spec import Apply, Number, Size
from testing.samples.samples import KERNELS, WITH_TF32, lowered, spec_of, workload

GRID = ("tile(m, size=4)", "place(m.outer, level=grid)")
SIZES = dict(M=21, K=70)


def program(*lines, equation="y[m, k] = x[m, k] * 2.0", machine=WITH_TF32):
    nest = lowered(spec_of(equation), *lines, sizes=SIZES, machine=machine)
    return tile_program(nest, machine, RULES)


def test_a_launch_gets_the_sizes_that_it_reads():
    (launch,) = program(*GRID).launches
    read = sizes_of(launch.once, launch.body, launch.grid)
    assert launch.sizes == tuple(s for s in ("M", "K") if s in read)
    (constant,) = program(*GRID, equation="y[m, k] = x[m, k] * f32(K)").launches
    assert "K" in constant.sizes


def test_warps_follow_from_threads_or_from_the_rules_of_the_language():
    assert program(*GRID).launches[0].warps == RULES.warps
    assert program(*GRID, "threads(y, count=256)").launches[0].warps == 256 // WITH_TF32.warp


def test_a_persistent_launch_has_blocks_for_each_processor():
    assert program(*GRID).launches[0].resident == 0
    (launch,) = program(*GRID, "persistent(y, programs=2)").launches
    assert launch.resident == 2 * WITH_TF32.parallel


def test_the_stages_are_those_of_the_loads_in_loops():
    loop = (*GRID, "tile(k, size=16)", "place(k.outer, level=loop)")
    sum_of_rows = "s[m] = sum(x[m, k], k)"
    made = {}
    for stages in (1, 3):
        more = (f"pipeline(x, stages={stages})",) if stages > 1 else ()
        spec = spec_of(sum_of_rows, "y[m, k] = s[m] + x[m, k]")
        nest = lowered(spec, *loop, *more, sizes=SIZES, machine=WITH_TF32)
        made[stages] = tile_program(nest, WITH_TF32, RULES).launches[-1].stages
    assert made == {1: 1, 3: 3}


def test_every_launch_of_the_library_becomes_frozen_values():
    for name in KERNELS:
        work = workload(name)
        schedule = autoschedule(work.spec, WITH_TF32, work.tune)
        nest = lower(work.spec, schedule, WITH_TF32, work.tune)
        made = tile_program(nest, WITH_TF32, RULES)
        assert [one.name for one in made.launches] == [one.name for one in nest.launches]
        assert hash(made) == hash(tile_program(nest, WITH_TF32, RULES))


def test_statements_are_walked_outer_ones_first():
    inner = Load(*[None] * len(fields(Load)))
    loop = Loop(Name("value", "k"), Number(0), Size("K"), 16, (inner,))
    guard = Guard(*((loop,) if f.name == "body" else () for f in fields(Guard)))
    assert is_dataclass(guard) and list(statements((guard,))) == [guard, loop, inner]


def test_expressions_are_found_in_statements_and_tuples_of_them():
    product = Apply("mul", (Size("K"), Number(2)))
    loop = Loop(Name("value", "k"), Number(0), product, 16, ())
    found = list(expressions((loop, (Size("M"),))))
    assert {n.name for n in found if isinstance(n, Size)} == {"K", "M"}
    assert sizes_of(loop, Size("M")) == {"K", "M"}
