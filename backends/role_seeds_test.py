"""Seeds with roles: each emits and builds for chips with a DMA engine, and there are none for others."""

import pytest

from backends.registry import backend, served_by, target
from ir.autoschedule.autoschedule import alternatives, autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import LIBRARY

ATTENTION = dict(H=16, M=4096, N=4096, D=128)
GELU = dict(M=4096, K=1024, N=4096)


def work_of(name):
    return parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"), name)


def seeds_of(name, sizes, chip="h100", language="cuda"):
    machine = served_by(target(chip), backend(language))
    return alternatives(work_of(name).spec, machine, sizes)


def words(schedule, verb):
    return [str(d) for d in schedule.of(verb)]


def test_attention_has_its_second_matmul_one_iteration_later():
    boxes, later = seeds_of("attention", ATTENTION)
    assert words(boxes, "copy") == ["copy(k, by=bulk)", "copy(v, by=bulk)"]
    assert words(later, "overlap") == ["overlap(o)"]
    assert "tile(n, size=128)" in words(later, "tile")


@pytest.mark.parametrize("language", ["cuda", "cutedsl"])
def test_attention_has_its_first_matmul_ahead_where_more_stages_fit(language):
    _, later, sooner = seeds_of("attention", ATTENTION | {"D": 64}, language=language)
    assert words(later, "overlap") == ["overlap(o)"]
    assert words(sooner, "overlap") == ["overlap(o, ahead=1)"]
    assert words(sooner, "pipeline") == ["pipeline(k, stages=5)", "pipeline(v, stages=5)"]
    assert words(sooner, "copy") == [f"copy({x}, by=bulk)" for x in "kvq"]


def test_a_matmul_has_wide_tiles_and_blocks_that_stay():
    _, wide, *_ = seeds_of("matmul_bias_gelu", GELU)
    assert "tile(n, size=256)" in words(wide, "tile")
    assert "copy(y, by=bulk)" in words(wide, "copy")
    assert words(wide, "persistent") == ["persistent(y, programs=1)"]


@pytest.mark.parametrize("chip, language", [("a100", "cuda"), ("h100", "triton"), ("mi300", "hip")])
def test_there_are_none_without_the_engine_or_roles(chip, language):
    assert seeds_of("matmul_bias_gelu", GELU, chip, language) == ()


@pytest.mark.parametrize("name", ["rmsnorm_matmul", "conv1d", "softmax"])
def test_there_are_none_for_loops_that_load_something_else(name):
    work = work_of(name)
    assert seeds_of(name, work.tune) == ()


@pytest.mark.parametrize("language", ["cuda", "cutedsl"])
@pytest.mark.parametrize("name, sizes", [("attention", ATTENTION), ("matmul_bias_gelu", GELU)])
def test_each_is_emitted(name, sizes, language):
    serving = backend(language)
    machine = served_by(target("h100"), serving)
    spec = work_of(name).spec
    for schedule in seeds_of(name, sizes, "h100", language):
        assert schedule != autoschedule(spec, machine, sizes)
        assert serving.emit(lower(spec, schedule, machine, sizes), machine)


WINDOWS = """schedule(conv2d)
pack(w, order=i_j_o_c)
pack(x, order=b_p_q_c)
tile(w_ijoc_i, size=1)
tile(w_ijoc_j, size=1)
tile(w_ijoc_o, size=4)
tile(w_ijoc_c, size=32)
tile(x_bpqc_b, size=1)
tile(x_bpqc_p, size=4)
tile(x_bpqc_q, size=32)
tile(x_bpqc_c, size=32)
tile(b, size=1)
tile(p, size=4)
tile(q, size=32)
tile(i, size=1)
tile(j, size=1)
tile(c, size=32)
tile(o, size=32)
place(b.outer, level=grid)
place(p.outer, level=grid)
place(q.outer, level=grid)
place(o.outer, level=grid)
place(c.outer, level=loop)
compute(acc, unit=matrix)
pipeline(x_bpqc, stages=3)
pipeline(w_ijoc, stages=3)
copy(x_bpqc, by=bulk)
copy(w_ijoc, by=bulk)
threads(y, count=128)
"""


def test_a_copy_that_is_loaded_in_bulk_is_stored_by_threads_where_its_tile_is_no_box():
    """Four rows of weights of 64 bytes are no box; pixels of an image are one."""
    serving = backend("cutedsl")
    machine = served_by(target("h200"), serving)
    sizes = dict(B=8, C=32, O=32, H=32, W=32)
    made = serving.emit(
        lower(work_of("conv2d").spec, parse_schedule(WINDOWS), machine, sizes), machine
    )
    images, weights, windows = made.split("@cute.kernel")[1:]
    assert "store_box(" in images and "store_box(" not in weights
    assert windows.count("load_box(") == 2
