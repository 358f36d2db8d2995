"""Every way of being wrong that shared correctness must see, with a kernel that is wrong so."""

from types import SimpleNamespace

import numpy as np
import pytest

from backends import measure
from backends.backend import BackendError
from backends.compare import Usual
from backends.measure import References, check, compare, reference
from ir.parse.parse import parse_spec
from ir.reference import rows
from ir.reference.reference import evaluate_storage
from ir.reference.rounding import round_to
from ir.sizes import free_sizes

MATMUL = parse_spec(
    "def product(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:\n"
    '    """Multiply."""\n    y[m, n] = sum(x[m, k] * w[k, n], k)\n    return y\n'
)
HALF = parse_spec(
    "def half(x: bf16[M, K]) -> (bf16[M, K], i32[M]):\n"
    '    """Scale, and find the largest."""\n'
    "    y[m, k] = x[m, k] * 3.0\n    z[m] = argmax(x[m, k], k)\n    return y, z\n"
)
ZERO = parse_spec(
    'def zero(x: f32[M]) -> f32[M]:\n    """Nothing."""\n    y[m] = x[m] - x[m]\n    return y\n'
)
ROOT = parse_spec(
    "def root(x: f32[M]) -> f32[M]:\n"
    '    """Of both signs: not a number for half of them."""\n'
    "    z[m] = x[m] * 1.0\n    y[m] = sqrt(0.0 - z[m] + 1.0)\n    return y\n"
)
EIGHT = parse_spec(
    "def eight(x: f8e4m3[M, K]) -> (f8e4m3[M, K], f8e5m2[M, K]):\n"
    '    """Scale by little and by much."""\n'
    "    y[m, k] = x[m, k] * 300.0\n    z[m, k] = x[m, k] * 0.7\n    return y, z\n"
)
SIZES = {"M": 13, "K": 67, "N": 31}


class Kernel:
    """A backend whose kernel is the spec's plain arithmetic, then `spoil`."""

    def __init__(self, spec, spoil=lambda outputs, inputs: outputs):
        self.spec = spec
        self.spoil = spoil

    def run(self, built, nest, machine, sizes, inputs):
        return self.spoil(evaluate_storage(self.spec, inputs, sizes), inputs)


def verdict(spec, spoil=lambda outputs, inputs: outputs, sizes=SIZES, unordered=False, **options):
    sizes = {name: sizes[name] for name in free_sizes(spec)}
    nest = SimpleNamespace(unordered=unordered)
    return check(Kernel(spec, spoil), None, nest, None, spec, sizes, 3, **options)


def reason(spec, spoil, **options):
    with pytest.raises(BackendError) as caught:
        verdict(spec, spoil, **options)
    assert caught.value.stage == "check"
    return caught.value.reason


def on_y(change):
    def spoil(outputs, inputs):
        return outputs | {"y": change(outputs["y"].copy())}

    return spoil


def set_at(position, value):
    def change(y):
        y[position] = value
        return y

    return on_y(change)


@pytest.mark.parametrize("spec", [MATMUL, HALF, ZERO, ROOT])
def test_plain_arithmetic_passes(spec):
    found = verdict(spec)
    assert found.rel_err <= found.reference_rel_err < 1e-2
    assert found.repeated


def test_results_of_8_bits_pass_where_they_are_rounded_well():
    assert 0.01 < verdict(EIGHT).rel_err < 0.1
    off = on_y(lambda y: round_to(y * 1.4, "f8e4m3"))
    assert "output `y`" in reason(EIGHT, off)
    assert "it must be a number of f8e4m3" in reason(EIGHT, on_y(lambda y: y * 1.01))


def test_what_8_bits_without_infinity_cannot_hold_is_their_largest_number():
    known = reference(EIGHT, {"M": 13, "K": 67}, 3)
    assert np.max(known.storage["y"]) == 448 < np.max(known.exact["y"])
    assert "output `y`" in reason(EIGHT, on_y(lambda y: np.where(y == 448, np.nan, y)))


def test_figures_are_errors_relative_to_float64():
    found = verdict(MATMUL)
    assert 1e-9 < found.rel_err < 1e-6
    assert found.rel_err < found.max_err < 1e-5


def test_one_wrong_element_is_named_with_position_and_values():
    text = reason(MATMUL, set_at((4, 7), 1000.0))
    assert text.startswith("at M=13, K=67, N=31: output `y`[13, 31] at [4, 7] is 1000.0, expected")
    assert "1 of 403 elements are off" in text


@pytest.mark.parametrize("squared", [False, True])
def test_a_long_sum_may_be_taken_in_long_loops(squared):
    """Its one element says little of the errors that plain arithmetic may make."""
    body = "x[m] * x[m]" if squared else "minimum(x[m], 1.0)"
    text = f'def total(x: f32[M]) -> f32[()]:\n    """Add."""\n    y[()] = sum({body}, m)\n    return y\n'
    spec = parse_spec(text)

    def serial(outputs, inputs):
        terms = np.square(inputs["x"]) if squared else np.minimum(inputs["x"], np.float32(1))
        rows = np.add.accumulate(terms.reshape(64, -1), axis=1)[:, -1]
        return {"y": np.add.accumulate(rows)[-1:].reshape(())}

    def short(outputs, inputs):
        return {"y": np.asarray(outputs["y"] * np.float32(1 - 2**-12))}

    assert verdict(spec, serial, {"M": 1 << 20}).max_err > 2e-7
    assert "output `y`" in reason(spec, short, sizes={"M": 1 << 20})


def test_a_skipped_term_of_a_sum_is_seen():
    def spoil(outputs, inputs):
        outputs["y"][-1, -1] -= inputs["x"][-1, -1] * inputs["w"][-1, -1]
        return outputs

    assert "at [12, 30]" in reason(MATMUL, spoil)


def test_products_in_a_coarser_format_are_seen():
    def coarse(outputs, inputs):
        x, w = (inputs[name].astype(np.float16).astype(np.float32) for name in "xw")
        return {"y": x @ w}

    assert "output `y`" in reason(MATMUL, coarse)


def test_a_small_error_everywhere_is_seen_by_its_mean():
    def spoil(y):
        noise = np.random.default_rng(0).choice([-1, 1], y.shape)
        return (y + noise * np.sqrt(67) * 1.2e-6).astype(np.float32)

    assert "root mean square error of" in reason(MATMUL, on_y(spoil))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_poison_is_seen(value):
    text = reason(MATMUL, set_at((0, 3), value))
    assert f"at [0, 3] is {value}" in text
    assert "not written" in text


def test_not_a_number_must_be_where_the_reference_has_it():
    known = reference(ROOT, {"M": 13}, 3).exact["y"]
    at = int(np.argmax(np.isnan(known)))
    assert np.isnan(known[at])
    assert f"at [{at}] is 0.0, expected nan" in reason(ROOT, set_at(at, 0.0))


def test_a_constant_is_seen():
    assert "output `y`" in reason(MATMUL, on_y(lambda y: np.zeros_like(y)))


def test_a_result_that_is_kept_from_the_first_run_is_seen():
    kept = []

    def spoil(outputs, inputs):
        kept.append(outputs)
        return kept[0]

    assert "does not change when the inputs do" in reason(MATMUL, spoil)


def test_an_output_that_does_not_depend_on_inputs_may_stand_still():
    assert verdict(ZERO).rel_err == 0.0


def test_a_kernel_that_is_right_only_for_its_first_inputs_is_seen():
    runs = []

    def spoil(outputs, inputs):
        runs.append(1)
        return outputs if len(runs) < 3 else {"y": outputs["y"] * np.float32(2)}

    assert "expected" in reason(MATMUL, spoil)


def test_changed_inputs_are_seen():
    def spoil(outputs, inputs):
        inputs["w"][0, 0] = 0
        return outputs

    assert "the kernel changed its input `w`" in reason(MATMUL, spoil)


def test_two_results_for_the_same_inputs_are_seen():
    runs = []

    def spoil(y):
        runs.append(1)
        y[0, 0] = np.nextafter(y[0, 0], np.float32(len(runs) * 1e9))
        return y

    def alternate(y):
        runs.append(1)
        return y if len(runs) % 2 else np.nextafter(y, np.float32(np.inf))

    assert "differs between two runs" in reason(MATMUL, on_y(alternate))
    runs.clear()
    assert not verdict(MATMUL, on_y(alternate), repeat=False).repeated


def test_additions_in_any_order_need_not_give_the_same_bits():
    """But the second run must be right too, and integers are the same."""
    runs = []

    def alternate(by):
        def change(y):
            runs.append(1)
            return y if len(runs) % 2 else (y * np.float32(1 + by)).astype(np.float32)

        runs.clear()
        return on_y(change)

    assert not verdict(MATMUL, alternate(1e-7), unordered=True).repeated
    assert "differs between two runs" in reason(MATMUL, alternate(1e-7))
    assert "is allowed" in reason(MATMUL, alternate(1.0), unordered=True)

    def moving(outputs, inputs):
        runs.append(1)
        outputs["z"] = outputs["z"] + np.int32(len(runs) == 2)
        return outputs

    runs.clear()
    text = reason(HALF, moving, unordered=True)
    assert "output `z` differs between two runs" in text


def test_a_missing_output_is_seen():
    assert "there is no output `z`" in reason(HALF, lambda o, i: {"y": o["y"]})


def test_another_shape_or_dtype_is_seen():
    assert "output `y` is float64[13, 31], expected float32[13, 31]" in reason(
        MATMUL, on_y(lambda y: y.astype(np.float64))
    )
    assert "output `y` is float32[12, 31]" in reason(MATMUL, on_y(lambda y: y[:12]))


def test_integers_must_be_equal():
    def spoil(outputs, inputs):
        outputs["z"][5] += 1
        return outputs

    text = reason(HALF, spoil)
    assert "output `z`[13] at [5]" in text
    assert "they must be equal" in text


def test_a_narrow_format_holds_no_more_bits_than_it_has():
    text = reason(HALF, on_y(lambda y: y * np.float32(1.001)))
    assert "it must be a number of bf16" in text


def test_references_are_pure_and_kept():
    first = reference(MATMUL, SIZES, 11)
    assert reference(MATMUL, dict(reversed(SIZES.items())), 11) is first
    again = measure._reference(MATMUL, SIZES, 11)
    assert all(np.array_equal(first.exact[n], again.exact[n]) for n in first.exact)
    assert not np.array_equal(first.inputs["x"], reference(MATMUL, SIZES, 12).inputs["x"])


def test_kept_references_stay_within_their_bytes_and_the_newest_is_always_kept():
    one = References(1).get(MATMUL, SIZES, 0)
    some = References(3 * one.bytes)
    for seed in range(6):
        some.get(MATMUL, SIZES, seed)
        some.get(MATMUL, SIZES, 0)
    assert [key[2] for key in some.kept] == [4, 5, 0]
    assert some.bytes == 3 * one.bytes
    tiny = References(0)
    assert tiny.get(MATMUL, SIZES, 1) is tiny.get(MATMUL, SIZES, 1)


WIDE = {"M": 64, "K": 67, "N": 31}


@pytest.fixture
def by_rows(monkeypatch):
    """Nothing is affordable whole, and no reference is kept from before."""
    monkeypatch.setattr(rows, "AFFORDABLE_WORK", 1)
    monkeypatch.setattr(measure, "_REFERENCES", References(1 << 20))


@pytest.mark.parametrize("spec", [MATMUL, HALF, ROOT])
def test_a_large_output_is_compared_at_some_rows(by_rows, spec):
    known = reference(spec, {n: WIDE[n] for n in free_sizes(spec)}, 3)
    assert all(known.shape(t.name)[0] == 64 > len(known.exact[t.name]) for t in spec.outputs)
    verdict(spec, sizes=WIDE)


def test_a_wrong_row_is_named_by_its_place_in_the_output(by_rows):
    def spoil(outputs, inputs):
        outputs["y"][63, 5] += 1.0
        return outputs

    with pytest.raises(BackendError, match=r"`y`\[64, 31\] at \[63, 5\]"):
        verdict(MATMUL, spoil, WIDE)


def test_references_that_are_made_several_at_a_time_are_those_made_one_by_one(monkeypatch):
    spec, sizes = MATMUL, SIZES
    kept = []
    for all_cores in (False, True):
        monkeypatch.setattr(measure, "_REFERENCES", measure.References(measure.CACHED_BYTES))
        measure.prepare(spec, [sizes], sizes, 3, all_cores=all_cores)
        kept.append(measure._REFERENCES.kept)
    one, other = kept
    assert one.keys() == other.keys() and len(one) > 5
    for key, known in one.items():
        for name, array in known.exact.items():
            np.testing.assert_array_equal(array, other[key].exact[name])


def test_what_follows_from_references_is_made_beforehand(monkeypatch):
    """So that processes that are forked afterwards share it."""
    spec, sizes, asked = MATMUL, SIZES, []
    monkeypatch.setattr(measure, "_REFERENCES", measure.References(measure.CACHED_BYTES))
    made = Usual.of
    monkeypatch.setattr(Usual, "of", lambda *a: asked.append(a) or made(*a))
    measure.prepare(spec, [sizes], sizes, 3)
    count = len(asked)
    assert count == len(measure._REFERENCES.kept) > 2
    for known in measure._REFERENCES.kept.values():
        compare(spec, sizes, "y", known.storage["y"], known)
    assert len(asked) == count
