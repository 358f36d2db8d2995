"""Cases of outputs that are parts of larger tensors: what is beside them stays as it is."""

from __future__ import annotations

from collections.abc import Iterator

from testing.conformance.case import Case
from testing.conformance.kernels import kernel

ABOUT = ("part",)
TILED = """
tile(m, size=16)
place(m.outer, level=grid)
tile(n, size=16)
place(n.outer, level=grid)
"""
# Of 64 columns, so that no box of 32 reaches beyond the part.
BULK = f"{TILED.replace('=16', '=32')}copy(y, by=bulk)\n"


def part_cases() -> Iterator[Case]:
    """Parts along each dimension of the larger tensor, of all sorts of kernels."""
    for dtype, dim in (("f32", 0), ("f32", 1), ("bf16", 1), ("f32", 2), ("f16", 2), ("i32", 1)):
        yield Case(f"part {dim} of {dtype}", _map(dtype, ("H", "M", "N"), dim), ABOUT)
    for dtype, dim in (("f32", 0), ("f32", 1), ("bf16", 1)):
        yield Case(f"part {dim} of {dtype}, tiled", _map(dtype, ("M", "N"), dim), ABOUT, TILED)
    yield from _several()
    product = kernel(
        "x: f32[M, K], w: f32[K, 40]",
        {
            "y": (
                "f32[M, part(40, first=24, of=72)]",
                "y[m, n] = maximum(sum_of[m, n], 0.0)",
            )
        },
        ({"M": 37, "K": 35}, {"M": 1, "K": 1}),
        "sum_of[m, n] = sum(x[m, k] * w[k, n], k)",
    )
    yield Case("part, of a matmul", product, (*ABOUT, "matmul"))
    tiles = f"{TILED}tile(k, size=16)\nplace(k.outer, level=loop)\ncompute(sum_of, unit=matrix)\n"
    yield Case("part, of a matmul in tiles", product, (*ABOUT, "matmul"), tiles)
    image = kernel(
        "x: f32[B, 6, 5, 7], w: f32[3]",
        {
            "y": (
                "f32[B, part(6, first=3, of=11), 5, 7]",
                "y[b, c, p, q] = sum(pad(x[b, c, p + i - 1, q], 0.0) * w[i], i)",
            )
        },
        ({"B": 3}, {"B": 1}),
    )
    for pair in ("p, inner=q", "c, inner=p"):
        line = f"flatten({pair})"
        yield Case(f"part, {line}", image, (*ABOUT, "window"), line, registers=True)
    boxes = _map("f32", ("M", "N"), 1, "part(64, first=32, of=128)")
    yield Case("part, stored in bulk", boxes, ABOUT, BULK, registers=True, everywhere=True)


def _map(
    dtype: str, sizes: tuple[str, ...], dim: int, part: str = "part(5, first=3, of=11)"
) -> str:
    """A kernel of one element after another, whose output is a part along a dimension."""
    at, own = ", ".join(sizes).lower(), part.removeprefix("part(").split(",")[0]
    given, held = ([*sizes[:dim], size, *sizes[dim + 1 :]] for size in (own, part))
    free = {s: n for s, n in {"H": 3, "M": 21, "N": 37}.items() if s in given}
    return kernel(
        f"x: {dtype}[{', '.join(given)}]",
        {"y": (f"{dtype}[{', '.join(held)}]", f"y[{at}] = x[{at}] + x[{at}]")},
        (free, dict.fromkeys(free, 1)),
    )


def _several() -> Iterator[Case]:
    """Outputs beside one another: parts of unlike tensors, one of them read by the other's equation."""
    several = kernel(
        "x: f32[M, 12]",
        {
            "y": ("f32[M, part(12, first=0, of=20)]", "y[m, n] = exp(x[m, n])"),
            "z": ("f16[12, M]", "z[n, m] = f16(y[m, n] * 0.5)"),
            "r": ("f32[part(12, first=1, of=13)]", "r[n] = max(x[m, n], m)"),
        },
        ({"M": 37}, {"M": 1}),
    )
    yield Case("parts of several", several, (*ABOUT, "reduction"))
