"""Accesses at the edges of tensors."""

import numpy as np
import pytest

from backends.triton.interpret.guard import Guard, Region, Stray


class Memory:
    """Says what it is asked for."""

    MEM_SEMANTIC = "kept"

    def load(self, at, mask, other, dtype):
        return at

    def store(self, at, value, mask):
        return at

    def atomic_rmw(self, what, at, value, mask, order):
        return at

    def atomic_cas(self, at, compared, value, order):
        return at


@pytest.fixture
def guard():
    regions = [Region("x", 1000, 64, False), Region("y", 5000, 32, True)]
    made = Guard(regions, Memory())
    made.kernel = "k"
    return made


def addresses(guard, name, *offsets):
    return np.array([guard.address(name) + o for o in offsets], np.uint64)


ALL = np.ones(2, bool)


def test_addresses_lead_to_the_tensors(guard):
    at = addresses(guard, "x", 0, 60)
    np.testing.assert_array_equal(guard.load(at, ALL, None, np.float32), [1000, 1060])
    at = addresses(guard, "y", 0, 28)
    np.testing.assert_array_equal(guard.store(at, np.zeros(2, np.float32), ALL), [5000, 5028])
    assert guard.MEM_SEMANTIC == "kept"
    assert guard.address("x") % 16 == 0


def test_one_access_may_span_several_tensors(guard):
    at = np.concatenate([addresses(guard, "x", 4), addresses(guard, "y", 8)])
    np.testing.assert_array_equal(guard.load(at, ALL, None, np.float32), [1004, 5008])


def test_what_is_masked_off_may_lie_anywhere(guard):
    at = addresses(guard, "x", 0, 1 << 40)
    guard.load(at, np.array([True, False]), None, np.float32)
    guard.load(np.zeros(2, np.uint64), ~ALL, None, np.float32)


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (61, r"k reads outside `x`: 4 bytes at byte 61; it has 64 \(1 of 2 lanes\)"),
        (-4, "outside `x`: 4 bytes at byte -4;"),
        (1 << 40, "outside `x`"),
        (-(1 << 40), "outside `x`"),
    ],
)
def test_the_nearest_tensor_is_named(guard, offset, words):
    with pytest.raises(Stray, match=words):
        guard.load(addresses(guard, "x", 0, offset), ALL, None, np.float32)


def test_a_null_pointer_is_no_tensors(guard):
    with pytest.raises(Stray, match=r"k reads at no tensor's address \(2 of 2 lanes\)"):
        guard.load(np.zeros(2, np.uint64), ALL, None, np.float32)


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
