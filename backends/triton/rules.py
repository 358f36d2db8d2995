"""Triton's rules for tile programs."""

from backends.gpu.rules import Rules
from backends.triton.emit.spelling import LIBRARY

RULES = Rules(
    least_side=16,
    least_depth=32,
    unrolled=8,
    unrolled_divisions=4,
    box_aligned=16,
    box_most=256,
    repeated=frozenset({"silu", "square", "gelu", "sign", "isnan"}),
    typed=LIBRARY,
    typed_but_f32=frozenset({"pow", "fmod", "mod", "floordiv"}),
    warps=4,
    persistent_is_one_loop=True,
    sums=frozenset({"f32", "i32"}),
    holds_addresses=True,
    flat_sums=True,
    k_last=True,
    interiors=True,
    box_rows=True,
    joins_axes=True,
)
