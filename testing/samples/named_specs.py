"""Kernels whose names a test chooses: tensors, attributes, indices, sizes. For tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ir.parse.expression import RESERVED, is_name, is_size
from ir.parse.parse import parse_spec
from ir.spec import Spec

PARTS = 3  # of a kernel: so many times the equations, as a kernel is built more slowly than a part
LOWER, UPPER = 9 * PARTS, 3  # how many names of each sort a kernel has
ROLES = 3  # of its lower-case names: tensor, attribute, index
_INPUTS = "{0}: f32[{A}, {C}], {1}: f32[{C}, {B}], shift_{part}: f32[{B}]"
_ATTRIBUTES = "{3}=0.5, {4}=0.25, {5}=2.0"
_LINES = """\
    {2}[{6}, {7}] = sum({0}[{6}, {8}] * {1}[{8}, {7}] * {3}, {8})
    result_{part}[{6}, {7}] = ({2}[{6}, {7}] + pad(shift_{part}[{7} - 1], 0.0)) * {4} + {5}
"""


def named_spec(kernel: str, lower: Sequence[str], upper: Sequence[str]) -> Spec:
    """The kernel: it multiplies, shifts and scales. lower: of each part three tensors, three
    attributes, three indices.  upper: the sizes."""
    sizes = dict(zip("ABC", upper, strict=True))
    parts = range(PARTS)

    def filled(text: str, by: str) -> str:
        some = (text.format(*lower[9 * n : 9 * n + 9], part=n, **sizes) for n in parts)
        return by.join(some)

    results = ", ".join(f"f32[{sizes['A']}, {sizes['B']}]" for _ in parts)
    returned = ", ".join(f"result_{n}" for n in parts)
    return parse_spec(
        f"def {kernel}({filled(_INPUTS, ', ')}, {filled(_ATTRIBUTES, ', ')}) -> ({results}):\n"
        f'    """Multiply, shift and scale."""\n{filled(_LINES, "")}    return {returned}\n'
    )


def named_specs(words: Iterable[str], every_role: bool = True) -> Iterator[Spec]:
    """Kernels in which each word that the language allows is a tensor, an attribute and an index
    in turn, or in one of these roles; or a size; some are the kernel's name."""
    own = {f"{name}_{n}" for name in ("shift", "result") for n in range(PARTS)}
    free = [w for w in dict.fromkeys(words) if w not in RESERVED and w not in own]
    lower = [w for w in free if is_name(w)]
    lower += [f"other_{n}" for n in range(LOWER - len(lower))]
    upper = [w for w in free if is_size(w)]
    number = 0
    for start in range(0, len(lower), LOWER):
        chosen = _cycled(lower, start, LOWER)
        for turn in range(ROLES) if every_role else (start // LOWER % ROLES,):
            names = [w for n in range(PARTS) for w in _turned(chosen[9 * n : 9 * n + 9], turn)]
            yield named_spec(names[turn], names, _cycled(upper, UPPER * number, UPPER))
            number += 1


def _turned(names: Sequence[str], turn: int) -> list[str]:
    """Nine names, each in another role."""
    return [*names[3 * turn :], *names[: 3 * turn]]


def _cycled(words: Sequence[str], start: int, count: int) -> list[str]:
    return [words[(start + n) % len(words)] for n in range(count)]
