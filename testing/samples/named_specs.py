"""A kernel whose names a test chooses: tensors, attributes, indices, sizes. For tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ir.parse.expression import RESERVED, is_name, is_size
from ir.parse.parse import parse_spec
from ir.spec import Spec

LOWER, UPPER = 9, 3  # how many names of each sort the kernel has
ROLES = 3  # of its lower-case names: tensor, attribute, index
_TEXT = '''
def {kernel}(
    {0}: f32[{A}, {C}], {1}: f32[{C}, {B}], shift: f32[{B}], {3}=0.5, {4}=0.25, {5}=2.0
) -> f32[{A}, {B}]:
    """Multiply, shift and scale."""
    {2}[{6}, {7}] = sum({0}[{6}, {8}] * {1}[{8}, {7}] * {3}, {8})
    result[{6}, {7}] = ({2}[{6}, {7}] + pad(shift[{7} - 1], 0.0)) * {4} + {5}
    return result
'''


def named_spec(kernel: str, lower: Sequence[str], upper: Sequence[str]) -> Spec:
    """The kernel. lower: three tensors, three attributes, three indices.  upper: the sizes."""
    return parse_spec(_TEXT.format(*lower, kernel=kernel, **dict(zip("ABC", upper, strict=True))))


def named_specs(words: Iterable[str]) -> Iterator[Spec]:
    """Kernels in which each word that the language allows is a tensor, an attribute and an index
    in turn, or a size; some are the kernel's name."""
    free = [w for w in dict.fromkeys(words) if w not in (*RESERVED, "shift", "result")]
    lower = [w for w in free if is_name(w)]
    upper = [w for w in free if is_size(w)]
    for start in range(0, len(lower), LOWER):
        chosen = _cycled(lower, start, LOWER)
        for turn in range(0, LOWER, LOWER // ROLES):
            sizes = _cycled(upper, start // ROLES + turn, UPPER)
            yield named_spec(chosen[turn], [*chosen[turn:], *chosen[:turn]], sizes)


def _cycled(words: Sequence[str], start: int, count: int) -> list[str]:
    return [words[(start + n) % len(words)] for n in range(count)]
