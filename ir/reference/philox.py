"""Random numbers as functions of a seed and a counter: Philox4x32-10, in numpy.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011), and the authors'
library Random123. Each counter gives one block of four words; all machines give the same bits.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the two key words after each round
AT_ONCE = (
    1 << 14
)  # numbers that are computed at a time, so that intermediate results stay in a core's cache
FRACTION = 24  # bits of a uniform number: as many as f32 represents in [0, 1)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter: tuple[np.ndarray, ...], key: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Four words from a counter of four words and a key of two: uint64 arrays below 2^32,
    broadcast."""
    a, b, c, d = counter
    left, right = key
    for _ in range(ROUNDS):
        first, second = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a, b = (second >> _HALF) ^ b ^ left, second & _LOW
        c, d = (first >> _HALF) ^ d ^ right, first & _LOW
        left, right = ((k + np.uint64(w)) & _LOW for k, w in zip((left, right), WEYL, strict=True))
    return a, b, c, d


def uniform(seed: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Uniform numbers in [0, 1) as float64 multiples of 2^-24, exact in f32; the integer arguments
    broadcast.

    Both arguments are taken as 64 bits, lower half first: the seed is the key, the counter the
    lower two words of the block's counter. The number is the upper 24 bits of the block's first
    word.
    """
    seed, counter = np.asarray(seed), np.asarray(counter)
    if seed.size != 1 or counter.size <= AT_ONCE:
        return _uniform(seed, counter)
    key, flat = seed.reshape(()), np.ascontiguousarray(counter).reshape(-1)
    found = np.empty(flat.size)

    for start in range(0, flat.size, AT_ONCE):
        found[start : start + AT_ONCE] = _uniform(key, flat[start : start + AT_ONCE])
    return found.reshape(np.broadcast_shapes(seed.shape, counter.shape))


def _uniform(seed: np.ndarray, counter: np.ndarray) -> np.ndarray:
    zero = np.zeros((), np.uint64)
    word, *_ = philox((*_halves(counter), zero, zero), _halves(seed))
    return (word >> np.uint64(32 - FRACTION)).astype(np.float64) * 2.0**-FRACTION


def _halves(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    bits = np.asarray(number).astype(np.int64).view(np.uint64)
    return bits & _LOW, bits >> _HALF
