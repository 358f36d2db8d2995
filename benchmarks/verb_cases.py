"""Cases that show the effect of a verb on a GPU: one schedule, and the same with a decision
changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ir.parse.parse import parse_workload
from ir.workload import LIBRARY, Sizes, Workload

SPECS = Path(__file__).parent / "specs"


@dataclass(frozen=True, slots=True)
class VerbCase:
    """A variant of a schedule. The times of a topic are compared with its first variant's."""

    topic: str
    variant: str  # The difference from the other variants of the topic.
    kernel: str  # A file of the library, or of `specs/`.
    sizes: Sizes
    lines: tuple[str, ...]  # Its decisions.

    def work(self) -> Workload:
        """Returns the kernel."""
        own = SPECS / f"{self.kernel}.kir"
        file = own if own.exists() else LIBRARY / f"{self.kernel}.kir"
        return parse_workload(file.read_text(encoding="utf-8"), self.kernel)


def verb_cases() -> Iterator[VerbCase]:
    """Yields all cases, grouped by topic."""
    for topic, (base, variants) in _TOPICS.items():
        kernel, sizes, lines = _BASES[base]
        for variant, changes in variants.items():
            yield VerbCase(topic, variant, kernel, sizes, changed(lines, *changes))


def changed(lines: tuple[str, ...], *changes: str) -> tuple[str, ...]:
    """Returns decisions with changes.

    A change replaces the decision of the same verb on the same subject, or is added.
    `-verb(subject)` removes one.
    """
    found = {_decided(line): line for line in lines}
    for change in changes:
        if change.startswith("-"):
            del found[change[1:]]
        else:
            found[_decided(change)] = change
    return tuple(found.values())


def _decided(line: str) -> str:
    """Returns the verb and the subject of a decision."""
    return line.split(",")[0].rstrip(")") + ")"


def _tiled(placed: str, **tiles: int) -> list[str]:
    """Returns tiles of indices. The indices in `placed` are loops of a program, the others its
    grid."""
    levels = dict.fromkeys(tiles, "grid") | dict.fromkeys(placed.split(), "loop")
    return [
        *(f"tile({i}, size={n})" for i, n in tiles.items()),
        *(f"place({i}.outer, level={level})" for i, level in levels.items()),
    ]


_MATMUL = (
    *_tiled("k", m=128, n=256, k=64),
    "compute(c, unit=matrix)",
    *("pipeline(a, stages=3)", "pipeline(b, stages=3)"),
    *("copy(a, by=bulk)", "copy(b, by=bulk)", "copy(c, by=bulk)"),
    "rasterize(m, size=16, over=n)",
    "threads(c, count=256)",
    "persistent(c, programs=1)",
)
_WARPS = (  # mma.sync, whose operands the schedule lays out in shared memory
    *_tiled("k", m=128, n=128, k=32),
    "compute(c, unit=matrix)",
    "instruction(c, shape=m16n8k16)",
    *("pipeline(a, stages=3)", "pipeline(b, stages=3)"),
    "rasterize(m, size=8, over=n)",
    "threads(c, count=256)",
)
_GELU = (
    *_tiled("k", m=128, n=128, k=64),
    "compute(acc, unit=matrix)",
    *("pipeline(x, stages=3)", "pipeline(w, stages=3)"),
    *("copy(x, by=bulk)", "copy(w, by=bulk)", "copy(y, by=bulk)"),
    "rasterize(m, size=8, over=n)",
    "threads(y, count=256)",
    "persistent(y, programs=1)",
)
_ATTENTION = (
    *_tiled("n", h=1, m=128, n=128),
    *("fuse(l, into=o)", "online(mx, into=o)"),
    *("compute(s, unit=matrix)", "compute(o, unit=matrix)", "precision(o, dtype=bf16)"),
    *("pipeline(k, stages=2)", "pipeline(v, stages=2)"),
    *("copy(k, by=bulk)", "copy(v, by=bulk)"),
    "threads(y, count=256)",
    "specialize(y)",
)
_ROWS = (*_tiled("", m=1), "threads(y, count=256)")
_LARGE = dict(M=8192, K=8192, N=8192)
_FEW = dict(M=1024, K=16384, N=2048)  # 64 tiles, for 132 processors.
_KEEPS = "cache(x, hint=evict_last, last=evict_first)"
_LONG_ROWS = (
    *_tiled("k", m=1, k=16384),
    *("online(mx, into=s)", "threads(y, count=1024)"),
)
_BASES: dict[str, tuple[str, Sizes, tuple[str, ...]]] = {
    "matmul": ("matmul_bf16", _LARGE, _MATMUL),
    "few tiles": ("matmul_bf16", _FEW, changed(_MATMUL, "rasterize(m, size=8, over=n)")),
    "warps": ("matmul_bf16", dict(M=4096, K=4096, N=4096), _WARPS),
    "epilogue": ("matmul_bias_gelu", dict(M=4096, K=1024, N=4096), _GELU),
    "attention": ("attention", dict(H=64, M=2048, N=2048, D=128), _ATTENTION),
    "rows": ("softmax", dict(M=8192, K=8192), _ROWS),
    "long rows": ("softmax", dict(M=4096, K=131072), _LONG_ROWS),
}
_TOPICS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "copies": (
        "matmul",
        {
            "by the DMA engine": (),
            "operands by threads": ("-copy(a)", "-copy(b)"),
            "result by threads": ("-copy(c)",),
            "all by threads": ("-copy(a)", "-copy(b)", "-copy(c)"),
        },
    ),
    "stages": (
        "matmul",
        {
            "3": (),
            "2": ("pipeline(a, stages=2)", "pipeline(b, stages=2)"),
            "3, tiles of 128 x 128": ("tile(n, size=128)",),
            "4, tiles of 128 x 128": (
                *("tile(n, size=128)", "pipeline(a, stages=4)", "pipeline(b, stages=4)"),
            ),
        },
    ),
    "grid": (
        "matmul",
        {
            "persistent, groups of 16": (),
            "a block for each tile": ("-persistent(c)",),
            "groups of 8": ("rasterize(m, size=8, over=n)",),
            "no groups": ("-rasterize(m)",),
            "clusters of 2 along m": ("cluster(m, size=2)",),
            "clusters of 2 along n": ("cluster(n, size=2)",),
        },
    ),
    "roles": (
        "matmul",
        {
            "as the backend chooses": (),
            "32 producers": ("roles(c, producers=32)",),
            "128 producers": ("roles(c, producers=128)",),
            "128 producers of 24 registers": ("roles(c, producers=128, registers=24)",),
            "128 producers of 40 registers": ("roles(c, producers=128, registers=40)",),
        },
    ),
    "roles of attention": (
        "attention",
        {
            "as the backend chooses": (),
            "32 producers": ("roles(y, producers=32)",),
            "128 producers": ("roles(y, producers=128)",),
        },
    ),
    "few tiles": (
        "few tiles",
        {
            "whole tiles": (),
            "stream-K": ("stream_k(c, over=k)",),
            "tiles of 128 x 128": ("tile(n, size=128)",),
            "stream-K, tiles of 128 x 128": ("tile(n, size=128)", "stream_k(c, over=k)"),
            "split-K in 2, tiles of 128 x 128": (
                *("tile(n, size=128)", "split_k(c, over=k, parts=2)", "-persistent(c)"),
            ),
        },
    ),
    "shared memory": (
        "warps",
        {
            "as the backend chooses": (),
            "swizzle of 64 bytes": ("swizzle(a, bytes=64)", "swizzle(b, bytes=64)"),
            "swizzle of 32 bytes": ("swizzle(a, bytes=32)", "swizzle(b, bytes=32)"),
            "pad of 16 bytes": ("pad(a, bytes=16)", "pad(b, bytes=16)"),
            "pad of 128 bytes": ("pad(a, bytes=128)", "pad(b, bytes=128)"),
            "warps 2 x 4": ("warps(c, m=2, n=4)",),
            "warps 4 x 2": ("warps(c, m=4, n=2)",),
        },
    ),
    "epilogue": (
        "epilogue",
        {
            "by the DMA engine": (),
            "from registers": ("-copy(y)", "epilogue(y, by=registers)"),
            "through shared memory": ("-copy(y)", "epilogue(y, by=shared)"),
            "64 columns at a time": ("-copy(y)", "epilogue(y, by=shared, columns=64)"),
            "32 columns at a time": ("-copy(y)", "epilogue(y, by=shared, columns=32)"),
        },
    ),
    "consumers": (
        "epilogue",
        {
            "cooperative, 128 x 128": (),
            "cooperative, 128 x 256": ("tile(n, size=256)",),
            "ping-pong, 128 x 128": ("threads(y, count=128)", "pingpong(y)"),
            "ping-pong, 64 x 256": (
                *("tile(m, size=64)", "tile(n, size=256)", "threads(y, count=128)", "pingpong(y)"),
            ),
            "ping-pong, 64 x 128": ("tile(m, size=64)", "threads(y, count=128)", "pingpong(y)"),
        },
    ),
    "consumers of a long K": (
        "matmul",
        {
            "cooperative, 128 x 256": (),
            "cooperative, 128 x 128": ("tile(n, size=128)",),
            "ping-pong, 128 x 128": (
                *("tile(n, size=128)", "threads(c, count=128)", "pingpong(c)"),
            ),
            "ping-pong, 64 x 256": (*("tile(m, size=64)", "threads(c, count=128)", "pingpong(c)"),),
        },
    ),
    "cache": (
        "rows",
        {
            "no hint": (),
            "x evict_first": ("cache(x, hint=evict_first)",),
            "x no_allocate": ("cache(x, hint=no_allocate)",),
            "y evict_first": ("cache(y, hint=evict_first)",),
            "512 threads": ("threads(y, count=512)",),
            "40 registers": ("registers(y, limit=40)",),
        },
    ),
    "passes over rows": (
        "long rows",
        {
            "each from the first tile": (),
            "x stays until it was loaded last": (_KEEPS,),
            "y evict_first": ("cache(y, hint=evict_first)",),
            "serpentine": ("serpentine(k.outer)",),
            "serpentine, x stays": ("serpentine(k.outer)", _KEEPS),
            "all three": ("serpentine(k.outer)", _KEEPS, "cache(y, hint=evict_first)"),
        },
    ),
}
