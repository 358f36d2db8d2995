"""Taps of windows in three dimensions: those of a row are loaded together."""

from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Load
from ir.parse.parse import parse_spec
from testing.samples.samples import WITH_THREADS

POOL = """
def f(x: f32[64, 33, 33, {n}]) -> f32[64, 16, 16, 16]:
    \"\"\"A max pooling.\"\"\"
    y[b, i, j, k]: [64, 16, 16, 16] = max(x[b, i * 2 + l, j * 2 + m, k * 2 + n], l=3, m=3, n={taps})
    return y
"""


def seed_of(taps):
    spec = parse_spec(POOL.format(taps=taps, n=30 + taps))
    return spec, autoschedule(spec, WITH_THREADS, {})


def test_the_taps_of_a_row_are_unrolled():
    spec, schedule = seed_of(3)
    assert [d.subject for d in schedule.of("unroll")] == ["n"]
    assert schedule.find("tile", "m") and not schedule.find("tile", "n")
    (launch,) = lower(spec, schedule, WITH_THREADS, {}).launches
    assert sum(isinstance(s, Load) for s in launch.statements()) in (1, 3)


def test_many_taps_stay_in_a_loop():
    assert not seed_of(5)[1].of("unroll")


def test_windows_in_two_dimensions_keep_their_loops():
    text = POOL.replace("x[b, i * 2 + l, ", "x[b, i * 2, ").replace("l=3, ", "")
    spec = parse_spec(text.format(taps=3, n=33))
    assert not autoschedule(spec, WITH_THREADS, {}).of("unroll")


def test_a_scalar_among_what_windows_read_has_no_taps():
    text = POOL.replace("f(x:", "f(s: f32[()], x:").replace("+ n], l=3", "+ n] * s[()], l=3")
    spec = parse_spec(text.replace("max(", "sum(").format(taps=3, n=33))
    assert [d.subject for d in autoschedule(spec, WITH_THREADS, {}).of("unroll")] == ["n"]
