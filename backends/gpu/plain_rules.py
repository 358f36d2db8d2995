"""The rules of a fictitious language, for tests."""

from backends.gpu.rules import Rules

RULES = Rules(
    least_side=16,
    least_depth=32,
    unrolled=8,
    box_aligned=16,
    box_most=256,
    repeated=frozenset({"gelu", "square"}),
    typed=frozenset({"log1p"}),
    typed_but_f32=frozenset({"pow"}),
    warps=4,
    box_steps=8,
    shares=True,
    cooperative=True,
    clusters=True,
)
