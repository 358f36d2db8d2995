"""Accesses at the edges of tensors."""

import numpy as np
import pytest

from backends.triton.interpret.guard import MemoryGuard, Region, Stray


class Memory:
    """Returns the accesses that reach it."""

    MEM_SEMANTIC = "kept"

    def load(self, at, mask, other, dtype):
        return at

    def store(self, at, value, mask):
        return at

    def atomic_rmw(self, what, at, value, mask, order):
        return at

    def atomic_cas(self, at, compared, value, order):
        return at


X, Y = np.arange(16, dtype=np.float32), np.zeros(8, np.float32)


@pytest.fixture
def guard():
    regions = [Region("x", X.ctypes.data, 64, False), Region("y", Y.ctypes.data, 32, True)]
    made = MemoryGuard(regions, Memory())
    made.kernel = "k"
    return made


def addresses(guard, name, *offsets):
    return np.array([guard.address(name) + o for o in offsets], np.uint64)


ALL = np.ones(2, bool)


OTHER = np.float32([-1, -2])


def test_addresses_lead_to_the_tensors(guard):
    at = addresses(guard, "x", 0, 60)
    np.testing.assert_array_equal(guard.load(at, ALL, OTHER, np.float32), [0, 15])
    at = addresses(guard, "y", 0, 28)
    there = np.uint64([0, 28]) + np.uint64(Y.ctypes.data)
    np.testing.assert_array_equal(guard.store(at, np.zeros(2, np.float32), ALL), there)
    assert guard.MEM_SEMANTIC == "kept"
    assert guard.address("x") % 16 == 0


def test_one_access_may_span_several_tensors(guard):
    at = np.concatenate([addresses(guard, "x", 4), addresses(guard, "y", 8)])
    there = np.uint64([X.ctypes.data + 4, Y.ctypes.data + 8])
    np.testing.assert_array_equal(guard.load(at, ALL, OTHER, np.float32), there)


def test_an_element_need_not_begin_at_its_size(guard):
    at = addresses(guard, "x", 2, 4)
    there = np.uint64([2, 4]) + np.uint64(X.ctypes.data)
    np.testing.assert_array_equal(guard.load(at, ALL, OTHER, np.float32), there)


def test_what_is_masked_off_may_lie_anywhere(guard):
    at = addresses(guard, "x", 4, 1 << 40)
    got = guard.load(at, np.array([True, False]), OTHER, np.float32)
    np.testing.assert_array_equal(got, [1, -2])
    guard.load(np.zeros(2, np.uint64), ~ALL, OTHER, np.float32)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (61, r"k reads outside `x`: 4 bytes at byte 61; it has 64 \(1 of 2 threads\)"),
        (-4, "outside `x`: 4 bytes at byte -4;"),
        (1 << 40, "outside `x`"),
        (-(1 << 40), "outside `x`"),
    ],
)
def test_the_nearest_tensor_is_named(guard, offset, words):
    with pytest.raises(Stray, match=words):
        guard.load(addresses(guard, "x", 0, offset), ALL, OTHER, np.float32)


def test_a_null_pointer_is_no_tensors(guard):
    with pytest.raises(Stray, match=r"k reads at no tensor's address \(2 of 2 threads\)"):
        guard.load(np.zeros(2, np.uint64), ALL, OTHER, np.float32)


@pytest.mark.parametrize("name", ["store", "atomic_rmw", "atomic_cas"])
def test_inputs_are_not_written(guard, name):
    at, value = addresses(guard, "x", 0, 4), np.zeros(2, np.float32)
    given = {
        "store": (at, value, ALL),
        "atomic_rmw": ("add", at, value, ALL, "relaxed"),
        "atomic_cas": (at, value, value, "relaxed"),
    }
    with pytest.raises(Stray, match="k writes to its input `x`"):
        getattr(guard, name)(*given[name])
