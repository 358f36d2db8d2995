"""Seeds of convolutions whose blocks transpose windows of the image, where the backend has them."""

from backends.gpu.threads import thread as to
from backends.registry import backend, served_by, target
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.schedule import Schedule

CONV = '''def conv(x: {dtype}[B, C, H, W], w: {dtype}[O, C, 3, 3], bias: {dtype}[O]) -> {dtype}[B, O, H, W]:
    """Convolve images."""
    acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w[o, c, i, j]), c, i, j)
    y[b, o, p, q] = {dtype}(acc[b, o, p, q] + f32(bias[o]))
    return y
'''
SIZES = dict(B=256, C=96, O=64, H=28, W=28)


def seeds(dtype="f16"):
    """The seeds beside the first, of which blocks transpose windows; with the machine."""
    spec = parse_spec(CONV.format(dtype=dtype))
    machine = served_by(target("h200"), backend("cutedsl"))
    every = machine.model.alternatives(spec, machine, SIZES)
    return (
        spec,
        machine,
        [s for s in every if any(d.option("by") == "window" for d in s.of("copy"))],
    )


def test_a_search_tries_windows_in_blocks():
    spec, machine, found = seeds()
    assert len(found) == 4
    for one in found:
        program = backend("cutedsl").program(lower(spec, one, machine, SIZES), machine)
        launch = program.launches[-1]
        (loaded,) = {
            s.place.tensor.stem for s in to.statements(launch.body) if isinstance(s, to.Load)
        }
        assert loaded == "x"
        assert {t.panel for t in launch.shared if t.region == "x" and t.swizzle} == {32}


def test_operands_of_32_bits_have_none():
    assert not seeds(dtype="f32")[2]


def test_the_quick_cost_counts_a_window_once():
    """By its nest each tap loads its own tile, for which there would be neither time nor registers."""
    spec, machine, (one, *_) = seeds()
    plain = Schedule(
        one.kernel, tuple(d for d in one.decisions if d.verb not in ("copy", "swizzle"))
    )
    windows, tiles = (
        machine.model.quick_us(lower(spec, s, machine, SIZES), machine, SIZES) for s in (one, plain)
    )
    assert windows < tiles / 4
