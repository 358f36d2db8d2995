"""Seeds of recurrences whose steps run in one launch."""

from __future__ import annotations

import pytest

from backends.registry import backend, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from machines.gpu.cooperative_seeds import in_one_launch

TEXT = """def f(x: {sums}[{t}, {b}, {h}], w: {dtype}[{h}, {h}]) -> {dtype}[{t}, {b}, {h}]:
    \"\"\"F.\"\"\"
    a[t, b, j] = sum(f32({state}) * f32(w[j, k]), k)
    y[t, b, j] = {dtype}(tanh(a[t, b, j] + x[t, b, j]))
    return y
"""
STATE = "pad(y[t - 1, b, k], 0.0)"


def seeds(chip="h200", b=64, h=512, dtype="f16", state=STATE, language="cuda"):
    text = TEXT.format(t=32, b=b, h=h, dtype=dtype, sums="f32", state=state)
    spec = parse_spec(text.replace("f32(y", "(y") if dtype == "f32" else text)
    machine = served_by(target(chip), backend(language))
    made = in_one_launch(spec, machine, {}, autoschedule(spec, machine, {}))
    return spec, machine, made


@pytest.mark.parametrize(
    "b, h, tile, threads",
    [(64, 512, (16, 16), 64), (64, 1024, (16, 32), 128), (8, 1024, (16, 8), 64)],
)
def test_as_many_blocks_as_run_at_once_of_few_rows(b, h, tile, threads):
    spec, machine, (made,) = seeds(b=b, h=h)
    sizes = {d.subject: d.number("size") for d in made.of("tile")}
    assert (sizes["b"], sizes["j"]) == tile and "k" not in sizes
    assert made.of("cooperative") and made.of("threads")[0].number("count") == threads
    launch = lower(spec, made, machine, {}).launches[-1]
    assert 0 < launch.grid_tiles({}) <= machine.parallel


@pytest.mark.parametrize(
    "given",
    [
        {"dtype": "f32"},  # no matmul of 16 bits
        {"b": 4096, "h": 2048},  # more tiles than processors
        {"language": "triton"},  # which has no such launches
        {"chip": "mi300", "language": "hip"},
    ],
    ids=str,
)
def test_others_have_none(given):
    assert seeds(**given)[2] == ()
