"""Inputs made on the device, here torch's CPU: the bits of a reference's; and a judge that has the outputs
held there."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from backends.backend import BackendError, Held
from backends.compare import same_bits
from backends.gpu.device import arena, running
from backends.gpu.device import formulas as on_device
from backends.gpu.device.arena import FENCE, Arena
from backends.gpu.device.fake import stand_in
from backends.gpu.device.formulas import HeldTensor, differs, fill
from backends.gpu.device.tensors import DTYPES, array
from backends.measure import check, check_draws, check_timed
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_spec
from ir.reference import formulas as module
from ir.reference import rows
from ir.reference.formulas import DRAWS, formulas
from ir.schedule import Schedule
from ir.spec import EIGHT
from testing.samples.samples import spec_of

SPEC = parse_spec(
    "def scale(x: f32[M, N], w: bf16[N], h: f16[M, N], i: i64[M], c: b8[M], s: f32[1]) -> f32[M, N]:\n"
    '    """Scale."""\n'
    "    y[m, n] = where(c[m], x[m, n] * w[n] + h[m, n], s[0] + i[m])\n"
    "    return y\n"
)
SIZES = {"M": 300, "N": 200}
SEED = 3


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What is large otherwise is large from some hundred numbers, and made in parts."""
    monkeypatch.setattr(arena, "DEVICE", "cpu")
    for name, value in dict(MANY=1000, FEW=100, PART=4096).items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(on_device, "PART", 1000)
    monkeypatch.setattr(rows, "AFFORDABLE_ENTRIES", 1000)
    stand_in(monkeypatch, SimpleNamespace(present=None))


def given(draw=""):
    found = formulas(SPEC, SIZES, SEED, draw)
    assert found is not None and set(found.formulas) == set("xwhic")
    return found


def made():
    nest = LoopNest(SPEC, SPEC, Schedule("scale"), "", tuple(SIZES.items()), ())
    return Arena(nest, SIZES, given())


@pytest.mark.parametrize("draw", DRAWS)
def test_a_device_makes_the_bits_that_a_reference_has(draw):
    found = given(draw)
    for name, formula in found.formulas.items():
        tensor = torch.empty(formula.dims, dtype=DTYPES[formula.dtype])
        fill(tensor, formula)
        assert same_bits(array(tensor), found[name])
        assert not differs(tensor, formula)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("dtype", EIGHT)
def test_floats_of_8_bits_are_those_that_a_reference_has(dtype, draw):
    spec = spec_of("y[m, n] = f32(x[m, n])", inputs=f"x: {dtype}[M, N]", result="f32[M, N]")
    found = formulas(spec, SIZES, SEED, draw)
    formula = found.formulas["x"]
    tensor = torch.empty(formula.dims, dtype=DTYPES[dtype])
    fill(tensor, formula)
    assert np.array_equal(array(tensor), found["x"], equal_nan=True)
    assert not differs(tensor, formula)
    assert np.isnan(found["x"]).any() == (draw == "nan")
    assert draw == "shifted" or len(np.unique(found["x"])) > 2


def test_what_lies_beyond_the_largest_of_8_bits_is_the_largest():
    far = torch.tensor([1e4, -torch.inf, 3.0, torch.nan])
    held = on_device._held(far, "f8e4m3").float()
    assert held[:3].tolist() == [448.0, -448.0, 3.0] and held[3].isnan()


@pytest.mark.parametrize("name, at", [("x", 59_999), ("h", 0), ("w", 7), ("i", 299), ("c", 1)])
def test_one_other_bit_is_seen(name, at):
    formula = given().formulas[name]
    tensor = torch.empty(formula.dims, dtype=DTYPES[formula.dtype])
    fill(tensor, formula)
    tensor.view(-1).view(torch.uint8)[at * tensor.element_size()] ^= 1
    assert differs(tensor, formula)


def test_a_zero_with_a_sign_is_another_number():
    formula = given("zero_rows").formulas["x"]
    tensor = torch.empty(formula.dims)
    fill(tensor, formula)
    tensor[0, 0] = -0.0
    assert differs(tensor, formula)


def test_inputs_lie_in_an_arena_and_outputs_stay_where_they_are():
    one = made()
    buffer, (x, w, h, i, c, s, y) = one.placed()
    known = given()
    for name, tensor in zip("xwhics", (x, w, h, i, c, s), strict=True):
        assert same_bits(array(tensor), known[name])
    y.copy_(x)
    found = one.taken(buffer).outputs()["y"]
    assert torch.equal(found, x) and found.data_ptr() != y.data_ptr()


@pytest.mark.parametrize("name, number", [("x", 0), ("i", 3), ("s", 5)])
def test_a_write_to_an_input_or_beside_it_is_seen(name, number):
    one = made()
    for at, why in ((0, "changed its input"), (-1, "writes outside"), (-FENCE, "writes outside")):
        buffer, tensors = one.placed()
        buffer[tensors[number].data_ptr() - buffer.data_ptr() + at] ^= 1
        with pytest.raises(BackendError, match=f"{why} `{name}`"):
            one.taken(buffer).outputs()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f8e5m2", "i32", "b8"])
def test_a_held_output_gives_its_parts(dtype):
    tensor = torch.arange(24).reshape(4, 6).to(DTYPES[dtype])
    held = HeldTensor(tensor, dtype)
    assert isinstance(held, Held) and not isinstance(array(tensor), Held)
    assert held.shape == (4, 6) and np.asarray(held).dtype == held.dtype
    part = held.take(np.array([1, 3]), 0).take(np.array([5]), 1)
    assert np.array_equal(np.asarray(part), array(tensor)[[1, 3]][:, [5]])
    other = tensor.clone()
    assert same_bits(held, HeldTensor(other, dtype))
    other.view(torch.uint8)[3, -1] ^= 1
    assert not same_bits(held, HeldTensor(other, dtype))


class Language:
    """A backend whose kernel is a function of tensors."""

    def __init__(self, kernel):
        self.kernel = kernel

    def run(self, built, nest, machine, sizes, inputs):
        return running.run(self.kernel, nest, sizes, inputs)

    def time(self, built, nest, machine, sizes, inputs):
        return running.time(self.kernel, nest, sizes, inputs)

    def leaves_inputs(self, machine):
        return True


def right(x, w, h, i, c, s, y):
    y.copy_(torch.where(c[:, None], x * w.float() + h.float(), s + i[:, None]))


def judged(kernel, spec=SPEC):
    nest = LoopNest(spec, spec, Schedule(spec.name), "", tuple(SIZES.items()), ())
    language = Language(kernel)
    found = check(language, None, nest, None, spec, SIZES, SEED)
    check_draws(language, None, nest, None, spec, SIZES, SEED)
    return found


def test_a_right_kernel_passes_though_only_rows_come_to_the_judge(monkeypatch):
    fetched = []
    monkeypatch.setattr(on_device, "array", lambda t: fetched.append(t.numel()) or array(t))
    assert judged(right).rel_err < 1e-6
    assert fetched and max(fetched) < 300 * 200 / 5


def test_a_wrong_row_of_those_that_are_compared_is_found():
    def wrong(*tensors):
        right(*tensors)
        tensors[-1][299, 5] += 0.1

    with pytest.raises(BackendError, match=r"at \[299, 5\] is"):
        judged(wrong)


def test_a_difference_between_two_runs_is_found_anywhere():
    times = []

    def differing(*tensors):
        right(*tensors)
        times.append(1)
        tensors[-1].view(-1)[len(times)] += 1e-4

    with pytest.raises(BackendError, match="differs between two runs"):
        judged(differing)


def test_a_kernel_that_is_wrong_for_large_numbers_is_found():
    def clipped(*tensors):
        right(*tensors)
        tensors[-1].clamp_(-60.0, 60.0)

    with pytest.raises(BackendError, match="of the draw `large`"):
        judged(clipped)


RELU = spec_of("y[m, n] = maximum(x[m, n], 0.0)", inputs="x: f32[M, N]", result="f32[M, N]")
BEST = spec_of("y[m] = argmax(x[m, n], n)", inputs="x: f32[M, N]", result="i32[M]")


def largest(x, y, last=False):
    """last: of equal ones, but of zeros."""
    found, other = x.argmax(1), x.shape[1] - 1 - x.flip(1).argmax(1)
    y.copy_(torch.where(x.amax(1) > 0, other, found) if last else found)


WRONG = {
    "nan": (RELU, lambda x, y: torch.fmax(x, torch.zeros(()), out=y)),
    "infinite": (RELU, lambda x, y: torch.mul((x + x.abs()), 0.5, out=y)),
    "positive infinite": (RELU, lambda x, y: torch.clamp(x, 0.0, 3e38, out=y)),
    "ties": (BEST, partial(largest, last=True)),
}


@pytest.mark.parametrize("many", [1000, 1 << 30], ids=["formulas", "drawn"])
@pytest.mark.parametrize("draw", WRONG)
def test_a_kernel_that_is_wrong_for_no_normal_number_is_found_at_large_sizes(
    monkeypatch, draw, many
):
    monkeypatch.setattr(module, "MANY", many)
    spec, kernel = WRONG[draw]
    with pytest.raises(BackendError, match=f"of the draw `{draw}`"):
        judged(kernel, spec)


@pytest.mark.parametrize("many", [1000, 1 << 30], ids=["formulas", "drawn"])
def test_right_kernels_pass_all_draws_at_large_sizes(monkeypatch, many):
    monkeypatch.setattr(module, "MANY", many)
    assert judged(lambda x, y: torch.clamp(x, min=0.0, out=y), RELU).rel_err == 0
    assert judged(largest, BEST).rel_err == 0


def test_what_a_timed_call_gives_is_compared_where_it_lies(monkeypatch):
    nest = LoopNest(SPEC, SPEC, Schedule("scale"), "", tuple(SIZES.items()), ())
    monkeypatch.setattr(running, "clocks", lambda uuid: {})
    outputs = Language(right).time(None, nest, None, SIZES, given()).outputs
    assert isinstance(outputs["y"], Held)
    check_timed(SPEC, SIZES, SEED, outputs)
    outputs["y"].tensor[0, 0] += 1.0
    with pytest.raises(BackendError, match="of a timed call"):
        check_timed(SPEC, SIZES, SEED, outputs)


def test_where_the_device_has_no_memory_left_it_is_not_the_kernel_that_is_wrong():
    def hungry(*tensors):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(BackendError) as fault:
        judged(hungry)
    assert (fault.value.stage, fault.value.kind) == ("check", "machine")


def test_a_device_that_gives_other_bits_is_not_the_fault_of_a_kernel(monkeypatch):
    on_device._arithmetic.cache_clear()
    monkeypatch.setattr(on_device, "quantiles", lambda: module.quantiles() * np.float32(1 + 2**-23))
    with pytest.raises(BackendError) as fault:
        judged(right)
    assert (fault.value.stage, fault.value.kind) == ("check", "machine")
