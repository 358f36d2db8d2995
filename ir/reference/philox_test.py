"""Philox against the known answers of Random123, and uniform numbers from its words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.reference.philox import AT_ONCE, philox, uniform

# kat_vectors of Random123: counter, key, block.
KNOWN = (
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
)
LONG = st.integers(-(2**63), 2**63 - 1)


def words(text):
    return tuple(np.uint64(int(word, 16)) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN)
def test_blocks_are_the_known_ones(counter, key, block):
    assert philox(words(counter), words(key)) == words(block)


def test_a_number_is_the_upper_bits_of_the_first_word():
    assert uniform(np.int64(0), np.int64(0)) == (0x6627E8D5 >> 8) / 2**24
    seed = np.uint64(0x299F31D0A4093822).view(np.int64)
    counter = np.uint64(0x85A308D3243F6A88).view(np.int64)
    low = philox((*words("243f6a88 85a308d3"), *words("0 0")), words("a4093822 299f31d0"))[0]
    assert uniform(seed, counter) == (int(low) >> 8) / 2**24


@given(LONG, LONG)
def test_numbers_lie_in_the_unit_interval_and_are_exact_in_f32(seed, counter):
    found = uniform(np.int64(seed), np.int64(counter))
    assert 0 <= found < 1
    assert np.float32(found) == found


def test_many_numbers_are_those_of_their_counters():
    counters = np.arange(3 * AT_ONCE + 6, dtype=np.int64).reshape(3, -1).T * 7
    found = uniform(np.full((1, 1), 11, np.int64), counters)
    assert found.shape == counters.shape
    for place in ((0, 0), (5, 1), (counters.shape[0] - 1, 2)):
        assert found[place] == uniform(np.int64(11), counters[place])
    rows = uniform(np.arange(3, dtype=np.int64), counters)  # a seed for each column
    assert rows[5, 1] == uniform(np.int64(1), counters[5, 1])


def test_numbers_are_spread_evenly():
    found = uniform(np.int64(5), np.arange(1 << 16))
    counts, _ = np.histogram(found, 64, (0, 1))
    expected = found.size / 64
    # The sum is chi-squared with 63 degrees of freedom: 120 is beyond its 99.99th percentile.
    assert (((counts - expected) ** 2) / expected).sum() < 120
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02
