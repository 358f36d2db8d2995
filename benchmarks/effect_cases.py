"""Cases that show the effect of single decisions: a library kernel, and variants of one
schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule of a kernel."""

    topic: str  # The property that the cases of a topic compare.
    variant: str  # The difference from the other cases of the topic.
    kernel: str
    lines: tuple[str, ...]  # Its decisions.


def cases() -> Iterator[Case]:
    """Yields all cases, grouped by topic."""
    for topic, (kernel, variants) in _TOPICS.items():
        for variant, lines in variants.items():
            yield Case(topic, variant, kernel, tuple(lines))


def _stages(tensors: str, depth: int) -> list[str]:
    return [f"pipeline({t}, stages={depth})" for t in tensors.split() if depth > 1]


def _tiles(grid: dict[str, int], loop: dict[str, int] | None = None) -> list[str]:
    placed = {**dict.fromkeys(grid, "grid"), **dict.fromkeys(loop or {}, "loop")}
    sizes = {**grid, **(loop or {})}
    return [
        *(f"tile({i}, size={n})" for i, n in sizes.items()),
        *(f"place({i}.outer, level={level})" for i, level in placed.items()),
    ]


def _product(m: int, n: int, depth: int, k: int = 0, *more: str) -> list[str]:
    unit = ["compute(acc, unit=matrix)", "precision(acc, dtype=bf16)"]
    tiles = _tiles({"m": m, "n": n}, {"k": k} if k else None)
    return [*tiles, *unit, *more, *_stages("x w b y", depth)]


def _rows(m: int, depth: int, tensors: str, k: int = 0, *more: str) -> list[str]:
    return [*_tiles({"m": m}, {"k": k} if k else None), *more, *_stages(tensors, depth)]


_BOTH = [
    "compute(s, unit=matrix)",
    "compute(o, unit=matrix)",
    "precision(s, dtype=bf16)",
    "precision(o, dtype=bf16)",
]


def _attention(m: int, depth: int, n: int = 0, *more: str) -> list[str]:
    tiles = _tiles({"h": 1, "m": m}, {"n": n} if n else None)
    online = ["fuse(l, into=o)", "online(mx, into=o)"] if n else []
    return [*tiles, *online, *_BOTH, *more, *_stages("q k v y", depth)]


def _conv(o: int, length: int, acc: int, y: int = 2) -> list[str]:
    tiles = _tiles({"b": 1, **({"o": o} if o else {})})
    tiles += [f"tile(l, size={length})"] if length else []
    unit = ["compute(acc, unit=matrix)", "precision(acc, dtype=f16)"]
    kept = [f"pipeline(acc, stages={acc})"] if acc > 1 else []
    return [*tiles, *unit, *_stages("x w bias", 2), *_stages("y", y), *kept]


def _bag(ids: int, depth: int) -> list[str]:
    tensors = _stages("table idx y", depth) if depth > 1 else []
    return [*_tiles({"b": 1}, {"l": ids}), *tensors]


def _map_id(b: int) -> list[str]:
    return [*_tiles({"b": b}), *_stages("ids", 4), *_stages("keys y", 2)]


def _norm(m: int, n: int, *before: str) -> list[str]:
    unit = ["compute(acc, unit=matrix)", "precision(acc, dtype=bf16)"]
    fused = ["fuse(ss, into=acc)"] if "hoist(r, into=y)" in before else []
    return [*before, *_tiles({"m": m, "n": n}), *fused, *unit, *_stages("x g w y", 2)]


def _fm(kernel: str = "", k: int = 64) -> list[str]:
    unit = [
        "compute(t, unit=matrix)",
        "compute(out, unit=matrix)",
        "precision(t, dtype=f16)",
        "precision(out, dtype=f16)",
    ]
    tiles = [
        *_tiles({"b": 1}),
        "tile(d, size=32)",
        "place(d.outer, level=loop)",
        f"tile(k, size={k})",
    ]
    return [*([kernel] if kernel else []), *tiles, *unit, *_stages("x y out", 2)]


_UNIT = ["compute(acc, unit=matrix)", "precision(acc, dtype=f16)"]
_IMAGES = [
    *_tiles({"p": 4, "b": 1}),
    "tile(q, size=16)",
    "tile(c, size=8)",
    *_UNIT,
    *_stages("x w bias y", 2),
    *_stages("acc", 3),
]
_FORWARD = [
    *_tiles({"b": 1, "n": 32}, {"d": 128, "k": 64}),
    "compute(u, unit=matrix)",
    "compute(z, unit=matrix)",
    "precision(u, dtype=f16)",
    "precision(z, dtype=f16)",
    *_stages("x w1 b1 g1 w2 g2 u", 2),
    *_stages("y", 3),
]


_TOPICS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "depth": (
        "matmul_bias_gelu",
        {
            "depth 1": _product(64, 64, 1),
            "depth 2": _product(64, 64, 2),
            "depth 1, k in a loop of 128": _product(64, 64, 1, 128),
            "depth 2, k in a loop of 128": _product(64, 64, 2, 128),
            "depth 4, k in a loop of 128": _product(64, 64, 4, 128),
            "depth 2, k in a loop of 32": _product(64, 64, 2, 32),
            "depth 8, k in a loop of 32": _product(64, 64, 8, 32),
        },
    ),
    "tiles": (
        "matmul_bias_gelu",
        {
            "16 x 64": _product(16, 64, 2),
            "32 x 32": _product(32, 32, 2),
            "32 x 64": _product(32, 64, 2),
            "40 x 64": _product(40, 64, 2),
            "64 x 64": _product(64, 64, 2),
            "128 x 128, k in a loop of 64": _product(128, 128, 2, 64),
        },
    ),
    "multicast": (
        "matmul_bias_gelu",
        {
            "none": _product(32, 32, 2),
            "x over n": _product(32, 32, 2, 0, "multicast(x, over=n.outer)"),
            "tiles of 64 x 64, none": _product(64, 64, 2),
            "tiles of 64 x 64, x over n": _product(64, 64, 2, 0, "multicast(x, over=n.outer)"),
        },
    ),
    "norm and product": (
        "rmsnorm_matmul",
        {
            "r before the product": _norm(32, 64),
            "r hoisted, squares beside the product": _norm(32, 64, "hoist(r, into=y)"),
            "squares in a launch of their own": _norm(32, 64, "kernel(r)"),
        },
    ),
    "rows": (
        "softmax",
        {
            "1 row, depth 2": _rows(1, 2, "x y"),
            "1 row, depth 1": _rows(1, 1, "x y"),
            "4 rows, depth 2": _rows(4, 2, "x y"),
            "16 rows, depth 2": _rows(16, 2, "x y"),
            "1 row in tiles of 128": _rows(1, 2, "x y", 128),
            "1 row in tiles of 128, streamed": _rows(1, 2, "x y", 128, "online(mx, into=s)"),
            "exponentials stored by a launch": ["kernel(e)", *_rows(1, 2, "x y")],
        },
    ),
    "norm": (
        "layer_norm",
        {
            "1 row, depth 2": _rows(1, 2, "x g b y"),
            "1 row, depth 1": _rows(1, 1, "x g b y"),
            "4 rows, depth 2": _rows(4, 2, "x g b y"),
        },
    ),
    "scan": (
        "cumsum",
        {
            "1 row": _rows(1, 2, "x y"),
            "8 rows": _rows(8, 2, "x y"),
            "8 rows in tiles of 256": _rows(8, 2, "x y", 256),
        },
    ),
    "attention": (
        "attention",
        {
            "8 queries": _attention(8, 1),
            "16 queries": _attention(16, 2),
            "16 queries, keys and values shared": _attention(
                16, 2, 0, "multicast(k, over=m.outer)", "multicast(v, over=m.outer)"
            ),
            "32 queries": _attention(32, 2),
            "16 queries, 64 keys at a time": _attention(16, 2, 64),
            "16 queries, 128 keys at a time": _attention(16, 2, 128),
            "16 queries, 32 keys at a time": _attention(16, 2, 32),
        },
    ),
    "convolution": (
        "conv1d",
        {
            "a row at a time": _conv(0, 0, 1),
            "32 of 96 outputs": _conv(32, 0, 1),
            "32 outputs, 16 positions at a time": _conv(32, 16, 1),
            "the same, 2 accumulators": _conv(32, 16, 2),
            "32 outputs, 64 positions at a time": _conv(32, 64, 2),
            "16 outputs, 16 positions at a time": _conv(16, 16, 2),
        },
    ),
    "images": (
        "conv2d",
        {
            "4 lines, 16 columns, 8 channels at a time": _IMAGES,
            "the same, w shared over b": [*_IMAGES, "multicast(w, over=b.outer)"],
            "whole images": [*_tiles({"b": 1}), *_UNIT, *_stages("x w bias y", 2)],
        },
    ),
    "pools": (
        "max_pool2d",
        {
            "4 channels": [*_tiles({"n": 1, "c": 4}), *_stages("x y", 2)],
            "1 channel": [*_tiles({"n": 1, "c": 1}), *_stages("x y", 2)],
            "16 channels": [*_tiles({"n": 1, "c": 16}), *_stages("x y", 1)],
        },
    ),
    "feed forward": ("pffn", {"normalised before the product": _FORWARD}),
    "bags": (
        "embedding_bag",
        {
            "4 ids at a time": _bag(4, 2),
            "16 ids at a time": _bag(16, 2),
            "64 ids at a time": _bag(64, 2),
            "512 ids at a time, not staged": _bag(512, 1),
        },
    ),
    "search": ("map_id", {f"{b} ids a tile": _map_id(b) for b in (8, 32, 64, 128, 313, 1024)}),
    "chain": (
        "wukong_fm",
        {
            "one launch": _fm(),
            "one launch, 448 columns at a time": _fm("", 448),
            "t stored by a launch": _fm("kernel(t)"),
        },
    ),
}
