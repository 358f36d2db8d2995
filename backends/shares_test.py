"""Kernels of some kinds are made by another backend of the chip; the others by its first one."""

from __future__ import annotations

import pytest

from backends.registry import backend, served_by, target
from backends.served import Served
from backends.shares import Share, others, shared
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec

STEP = (
    "def f(w: f16[512, 512], x: f32[8, 64, 512]) -> f32[8, 64, 512]:",
    "s[t, b, j] = sum(pad(h[t - 1, b, k], 0.0) * f32(w[j, k]), k)",
    "h[t, b, j] = tanh(x[t, b, j] + s[t, b, j])",
    "return h",
)
GELU = (
    "def f(a: bf16[8192, 1024], w: bf16[4096, 1024]) -> bf16[8192, 4096]:",
    "s[m, n] = sum(f32(a[m, k]) * f32(w[n, k]), k)",
    "y[m, n] = bf16(gelu(s[m, n]))",
    "return y",
)
TURNS = (
    "def f(a: bf16[4096, 8960], w: bf16[1536, 8960], r: bf16[4096, 1536]) -> bf16[4096, 1536]:",
    "s[m, n] = sum(f32(a[m, k]) * f32(w[n, k]), k)",
    "y[m, n] = bf16(s[m, n] + f32(r[m, n]))",
    "return y",
)
SHORT = (
    "def f(w: f16[512, 512], x: f32[8, 64, 512]) -> f16[8, 64, 512]:",
    "s[t, b, j] = sum(f32(pad(h[t - 1, b, k], 0.0)) * f32(w[j, k]), k)",
    "h[t, b, j] = f16(tanh(x[t, b, j] + s[t, b, j]))",
    "return h",
)
WINDOW = (
    "def f(x: f16[8, 64, 64, 320], w: f16[320, 3, 3, 320]) -> f16[8, 64, 64, 320]:",
    "s[b, i, j, o] = sum(f32(pad(x[b, i + r - 1, j + t - 1, c], 0.0)) * f32(w[o, r, t, c]), c, r, t)",
    "y[b, i, j, o] = f16(s[b, i, j, o])",
    "return y",
)


def share(lines, machine="h200"):
    head, *body = lines
    spec = parse_spec("\n    ".join([head, '"""F."""', *body]) + "\n")
    chip = target(machine)
    first = Served(backend(chip.backends[0]), served_by(chip, backend(chip.backends[0])))
    nest = lower(spec, autoschedule(spec, first.machine, {}), first.machine, {})
    return Share(first, nest), shared(Share(first, nest), others(chip))


@pytest.mark.parametrize(
    "lines",
    [STEP, SHORT, GELU, WINDOW, TURNS],
    ids=["step", "steps", "epilogue", "window", "turns"],
)
def test_another_backend_makes_what_it_prefers(lines):
    first, made = share(lines)
    assert made.served.name != first.served.name
    assert made.nest.spec == first.nest.spec
    made.served.backend.emit(made.nest, made.served.machine)


def test_a_step_keeps_its_schedule_and_matmuls_are_copied_in_bulk():
    first, step = share(STEP)
    assert step.nest.schedule == first.nest.schedule
    assert share(SHORT)[1].nest.schedule.of("cooperative")
    for lines, copies in ((GELU, 3), (WINDOW, 2)):  # the result, too
        schedule = share(lines)[1].nest.schedule
        assert len(schedule.of("copy")) == copies and schedule.of("persistent")
    assert share(TURNS)[1].nest.schedule.of("pingpong")


@pytest.mark.parametrize(
    "lines",
    [
        # Nothing special follows a long sum in whole waves.
        [line.replace("gelu(s[m, n])", "s[m, n] * 2.0").replace("1024", "4096") for line in GELU],
        [line.replace("1024", "8192") for line in GELU],  # a long sum
        [line.replace("bf16", "f32") for line in GELU],
        [line.replace("1536", "2048") for line in TURNS],  # two whole waves
        [line.replace("8, 64, 64", "1, 8, 8") for line in WINDOW],  # too few tiles
        [line.replace("320", "40") for line in WINDOW],  # too few channels
    ],
)
def test_other_kernels_stay(lines):
    first, made = share(lines)
    assert made == first


@pytest.mark.parametrize("machine", ["a100", "b200", "mi300", "npu", "cpu"])
def test_chips_without_such_a_backend_or_engine_keep_theirs(machine):
    first, made = share(GELU, machine)
    assert made == first
