"""Operators that choose among NaN and infinities: kernels of each target give PyTorch's results."""

import numpy as np
import pytest
import torch

from backends.registry import backend, target
from frontends.aten.against import meta_of, tensors_of
from frontends.aten.apply import apply
from frontends.builder import Builder
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from testing.samples.special_rows import special_rows
from testing.slow import in_turn

ATEN = torch.ops.aten
ROWS = torch.from_numpy(special_rows(9, 11, 3))
IMAGES = torch.from_numpy(special_rows(18, 7, 4)).reshape(1, 2, 9, 7)
IMAGES[0, 1, :4, :4] = -torch.inf
CALLS = {
    "max": (ATEN.max.dim, ROWS, 1),
    "argmin": (ATEN.argmin.default, ROWS, 1),
    "cummax": (ATEN.cummax.default, ROWS, 1),
    "kthvalue": (ATEN.kthvalue.default, ROWS[:1], 11, 1),
    "fmax": (ATEN.fmax.default, ROWS, ROWS.flip(0)),
    "max_pool2d": (ATEN.max_pool2d_with_indices.default, IMAGES, [3, 2], [2, 1], [1, 1]),
    "adaptive_max_pool2d": (ATEN.adaptive_max_pool2d.default, IMAGES, [3, 4]),
}


@pytest.mark.parametrize(("name", "chip"), in_turn(CALLS, ["npu", "h200", "mi300"]))
def test_results_are_pytorchs(name, chip, tmp_path):
    operator, *args = CALLS[name]
    expected = tensors_of(operator(*args))
    b, given = Builder(), {}
    for n, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            args[n] = b.input("x", meta_of(arg).dtype, meta_of(arg).shape)
            given[args[n].name] = arg.numpy().copy()
    made = apply(b, operator, tuple(args), {}, tuple(map(meta_of, expected)))
    spec, machine = b.spec("f", [b.copy(value) for value in made]), target(chip)
    served = backend(machine.backends[0])
    nest = lower(spec, autoschedule(spec, machine, {}), machine, {})
    built = served.build(served.emit(nest, machine), nest, machine, tmp_path)
    found = served.run(built, nest, machine, {}, given)
    for output, right in zip(spec.outputs, expected, strict=True):
        np.testing.assert_array_equal(found[output.name], right.numpy(), err_msg=output.name)
