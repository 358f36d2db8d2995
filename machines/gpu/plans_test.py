"""What is decided before tiles."""

from ir.parse.parse import parse_spec
from ir.sizes import bind
from machines.gpu.plans import narrow_plans, wide_plans
from testing.samples.samples import WITH_TF32

CONVOLUTION = '''def conv(x: f32[8, {c}, 64, 64], w: f32[32, {c}, 3, 3]) -> f32[8, 32, 62, 62]:
    """Convolve images."""
    y[b, o, p, q] = sum(x[b, c, p + i, q + j] * w[o, c, i, j], c, i, j)
    return y
'''


def narrow(channels):
    spec = parse_spec(CONVOLUTION.format(c=channels))
    sizes = bind(spec, {})
    return narrow_plans(spec, WITH_TF32, sizes, wide_plans(spec, WITH_TF32, sizes), ("y",))


def merges(plan):
    return any(d.verb == "flatten" and d.subject in ("c", "i", "j") for d in plan.made)


def test_plans_that_merge_taps_try_fewer_threads():
    plans = narrow(3)
    assert any(merges(p) for p in plans)
    assert all(p.fewer for p in plans if merges(p))


def test_plans_of_many_channels_do_not():
    plans = narrow(32)
    assert plans and not any(merges(p) or p.fewer for p in plans)


def test_what_is_rounded_behind_its_load_may_be_a_box():
    boxes = [p.apart for p in narrow(32) if p.ahead]
    assert {"x", "w"} in boxes
