"""Cases of what schedules decide: matmuls on the matrix unit, the order of blocks, loads."""

from __future__ import annotations

from collections.abc import Iterator

from testing.conformance.case import Case
from testing.conformance.kernels import kernel

SIZES = ({"M": 21, "K": 37, "N": 18}, {"M": 1, "K": 1, "N": 1}, {"M": 64, "K": 64, "N": 64})
ALIGNED = ({"M": 64, "K": 64, "N": 64}, {"M": 72, "K": 40, "N": 56})  # rows of whole 16 bytes
TILES = """
tile(m, size=16)
tile(n, size=16)
tile(k, size=16)
place(m.outer, level=grid)
place(n.outer, level=grid)
"""
MATRIX = f"{TILES}compute(y, unit=matrix)\n"
CAUSAL = '''
def causal(q: bf16[H, M, D], k: bf16[H, N, D], v: bf16[H, N, D]) -> bf16[H, M, D]:
    """Average values by how keys fit, over those up to each query's own place."""
    s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
    a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
    mx[h, m] = max(a[h, m, n], n)
    p[h, m, n] = exp(a[h, m, n] - mx[h, m])
    l[h, m] = sum(p[h, m, n], n)
    o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
    y[h, m, d] = o[h, m, d] / l[h, m]
    return y


check(H=2, M=21, N=37, D=16)
check(H=1, M=1, N=1, D=1)
'''
LONGER = CAUSAL.replace("check(H=2, M=21, N=37, D=16)", "check(H=1, M=70, N=200, D=64)")
ONLINE = """
tile(h, size=1)
tile(m, size=8)
tile(n, size=16)
place(h.outer, level=grid)
place(m.outer, level=grid)
fuse(l, into=o)
online(mx, into=o)
compute(s, unit=matrix)
compute(o, unit=matrix)
precision(o, dtype=bf16)
"""


WINDOWS = """
tile(b, size=1)
tile(p, size=4)
tile(q, size=16)
tile(o, size=64)
tile(c, size=32)
tile(i, size=1)
tile(j, size=1)
place(b.outer, level=grid)
place(p.outer, level=grid)
place(q.outer, level=grid)
place(o.outer, level=grid)
compute(y, unit=matrix)
pipeline(x, stages=2)
pipeline(w, stages=2)
copy(x, by=bulk)
copy(w, by=bulk)
"""


def decision_cases() -> Iterator[Case]:
    """All of them."""
    yield from _matmuls()
    yield from _mapping()
    yield from _staging()
    yield from _rows()


def _product(dtype: str, second: str = "w[k, n]", shape: str = "K, N", checks=SIZES) -> str:
    x, w = ("x[m, k]", second) if dtype in ("f32", "f64") else ("f32(x[m, k])", f"f32({second})")
    wide = "f64" if dtype == "f64" else "f32"
    return kernel(
        f"x: {dtype}[M, K], w: {dtype}[{shape}]",
        {"y": (f"{wide}[M, N]", f"y[m, n] = sum({x} * {w}, k)")},
        checks,
    )


def _matmuls() -> Iterator[Case]:
    """Operands of every dtype and order, batches, an epilogue, and sums over two indices."""
    for dtype in ("f32", "f16", "bf16"):
        yield Case(f"matmul of {dtype}", _product(dtype), ("matmul",), MATRIX)
    yield Case("matmul of f64", _product("f64"), ("matmul",), TILES)
    for dtype in ("f8e4m3", "f8e5m2"):
        yield Case(f"matmul of {dtype}", _product(dtype), ("matmul",), "autoschedule")
    transposed = _product("bf16", "w[n, k]", "N, K")
    yield Case("matmul of a transposed operand", transposed, ("matmul",), MATRIX)
    batched = (
        kernel(
            "x: f16[B, M, K], w: f16[B, K, N], b: f16[N]",
            {"y": ("f16[B, M, N]", "y[b, m, n] = gelu(acc[b, m, n] + f32(b[n]))")},
            ({"B": 3, "M": 9, "K": 21, "N": 17}, {"B": 1, "M": 1, "K": 1, "N": 1}),
            "acc[b, m, n] = sum(f32(x[b, m, k]) * f32(w[b, k, n]), k)",
        )
        .replace("b: f16[N]", "bias: f16[N]")
        .replace("f32(b[n])", "f32(bias[n])")
    )
    yield Case("matmul of a batch, with an epilogue", batched, ("matmul",))
    two = kernel(
        "x: f32[M, K, J], w: f32[K, J, N]",
        {"y": ("f32[M, N]", "y[m, n] = sum(x[m, k, j] * w[k, j, n], k, j)")},
        ({"M": 9, "K": 5, "J": 7, "N": 17}, {"M": 1, "K": 1, "J": 1, "N": 1}),
    )
    yield Case("matmul over two indices", two, ("matmul",))
    yield Case("online softmax", CAUSAL, ("matmul", "reduction"), ONLINE)
    yield Case(
        "online softmax, cut",
        CAUSAL,
        ("matmul",),
        f"{ONLINE}causal_bound(n, at=m)\n",
        registers=True,
    )


def _mapping() -> Iterator[Case]:
    """How blocks lie on the machine; each is one more line for the same matmul."""
    text = _product("f32")
    lines = {
        "grouped": "rasterize(m, size=2, over=n)",
        "threads": "threads(y, count=64)",
        "persistent": "persistent(y, programs=1)",
        "equal shares": "persistent(y, programs=1)\nstream_k(y, over=k)",
        "specialized": "specialize(y)",
        "unrolled": "unroll_loop(k.outer, factor=2)",
        "evicted first": "cache(x, hint=evict_first)\ncache(y, hint=evict_first)",
        "evicted last": "cache(w, hint=evict_last)",
        "past L1": "cache(x, hint=no_allocate)\ncache(y, hint=no_allocate)",
        "few registers": "registers(y, limit=64)",
        "split_k": "split_k(y, over=k, parts=2)",
        "packed": "pack(w, order=n_k)",
        "tf32x3": "precision(y, dtype=tf32x3)",
    }
    for name, line in lines.items():
        first = line if line.startswith("split_k") else ""
        rest = "" if first else line
        schedule = f"{first}\n{MATRIX}{rest}"
        yield Case(f"matmul, {name}", text, ("matmul", "mapping"), schedule, registers=True)
    yield from _shared_matmuls()
    image = kernel(
        "x: f32[B, P, Q], w: f32[3]",
        {"y": ("f32[B, P, Q]", "y[b, p, q] = sum(pad(x[b, p + i - 1, q], 0.0) * w[i], i)")},
        ({"B": 2, "P": 7, "Q": 5}, {"B": 1, "P": 1, "Q": 1}),
    )
    for verb in ("unroll(i)", "flatten(p, inner=q)"):
        yield Case(f"a window, {verb}", image, ("window", "mapping"), verb, registers=True)
    once = kernel(
        "x: f32[M, K], g: f32[K]",
        {
            "y": ("f32[M, K]", "y[m, k] = x[m, k] * total[()]"),
            "scale": ("f32[K]", "scale[k] = exp(g[k])"),
        },
        ({"M": 21, "K": 37}, {"M": 1, "K": 1}),
        "total[()] = sum(g[k], k)",
    )
    yield Case("what no block of the grid needs", once, ("mapping",))
    split = "tile(m, size=4)\nplace(m.outer, level=grid)\nkernel(r)\n"
    several = kernel(
        "x: f32[M, K]",
        {"y": ("f32[M, K]", "y[m, k] = x[m, k] * r[m]")},
        ({"M": 21, "K": 37}, {"M": 1, "K": 1}),
        "r[m] = rsqrt(sum_of[m] / K + 1e-06)",
    ).replace("    r[m] =", "    sum_of[m] = sum(x[m, k] ** 2, k)\n    r[m] =")
    yield Case("several launches", several, ("mapping",), split)


def _shared_matmuls() -> Iterator[Case]:
    """Matmuls whose warps share the result as decided, for warps of 32 and of 64 threads."""
    for warp, name, line in (
        (32, "rows for each of 4 warps", "warps(y, m=4, n=1)"),
        (32, "a square for each of 4 warps", "warps(y, m=2, n=2)"),
        (32, "columns for each of 4 warps", "warps(y, m=1, n=4)"),
        (32, "an instruction of 32 threads", "instruction(y, shape=m16n8k16)"),
        (64, "rows for each of 2 warps", "warps(y, m=2, n=1)"),
        (64, "columns for each of 2 warps", "warps(y, m=1, n=2)"),
        (64, "an instruction of 64 threads", "instruction(y, shape=m32n32k8)"),
        (0, "panels of 32 bytes", "swizzle(x, bytes=32)"),
        (0, "stored from registers", "epilogue(y, by=registers)"),
        (0, "stored through shared memory", "epilogue(y, by=shared)"),
        (32, "32 columns at a time", "warps(y, m=4, n=1)\nepilogue(y, by=shared, columns=32)"),
        (
            64,
            "32 columns at a time of 2 warps",
            "warps(y, m=2, n=1)\nepilogue(y, by=shared, columns=32)",
        ),
    ):
        tiles = TILES.replace("=16", "=64").replace("k, size=64", "k, size=32")
        yield Case(
            f"matmul, {name}",
            _product("bf16", checks=({"M": 72, "K": 40, "N": 56}, {"M": 1, "K": 1, "N": 1})),
            ("matmul", "mapping"),
            f"{tiles}compute(y, unit=matrix)\nthreads(y, count=128)\n{line}\n",
            registers=True,
            warp=warp,
        )


def _staging() -> Iterator[Case]:
    """Loads that run ahead, are shared by blocks, or are moved by a DMA engine."""
    text = _product("bf16", checks=ALIGNED)
    deep = f"{MATRIX}pipeline(x, stages=3)\npipeline(w, stages=3)\n"
    yield Case("pipelined operands", text, ("staging", "matmul"), deep)
    each = f"{MATRIX}pipeline(x, stages=3)\npipeline(w, stages=2)\npipeline(y, stages=2)\n"
    yield Case("stages of each tensor", text, ("staging", "matmul"), each, of_tensors=True)
    # An engine fills rows of 32 bytes at least, and whole tiles.
    bulk = f"{MATRIX.replace('=16', '=64')}pipeline(x, stages=2)\ncopy(x, by=bulk)\n"
    bulk += "pipeline(w, stages=2)\ncopy(w, by=bulk)\n"
    yield Case("bulk copies", text, ("staging", "matmul"), bulk, registers=True)
    pair = f"{bulk}cluster(m, size=2)\n".replace("=16", "=64")
    checks = ({"M": 128, "K": 64, "N": 64}, {"M": 72, "K": 40, "N": 56}, {"M": 8, "K": 8, "N": 8})
    yield Case(
        "bulk copies of a cluster",
        _product("bf16", checks=checks),
        ("staging", "matmul"),
        pair,
        registers=True,
        everywhere=True,  # the first target of a backend may have no clusters
    )
    yield Case(
        "bulk copies of windows",
        kernel(
            "x: bf16[B, H, W, C], w: bf16[3, 3, C, O]",
            {
                "y": (
                    "f32[B, H, W, O]",
                    "y[b, p, q, o] = sum(f32(pad(x[b, p + i - 1, q + j - 1, c], 0.0)) * f32(w[i, j, c, o]), i, j, c)",
                )
            },
            ({"B": 2, "H": 5, "W": 19, "C": 24, "O": 24}, {"B": 1, "H": 3, "W": 3, "C": 5, "O": 3}),
        ),
        ("window", "matmul"),
        WINDOWS,
        registers=True,
        everywhere=True,  # the first target of a backend may have no DMA engine
    )
    roles = f"{bulk}roles(y, producers=32)\n"
    yield Case("bulk copies by one warp", text, ("staging", "matmul"), roles, registers=True)
    turns = f"{bulk}threads(y, count=128)\npersistent(y, programs=1)\npingpong(y)\n"
    own = {"registers": True, "everywhere": True}  # the first target may have no DMA engine
    yield Case("consumers that take turns", text, ("staging", "matmul"), turns, **own)
    late = ONLINE.replace("size=8", "size=64").replace("size=16", "size=64")
    late += "place(n.outer, level=loop)\npipeline(k, stages=3)\npipeline(v, stages=3)\n"
    late += "copy(k, by=bulk)\ncopy(v, by=bulk)\noverlap(o)\nthreads(y, count=128)\n"
    for title, more in (("", ""), (", cut", "causal_bound(n, at=m)\n")):
        name = f"online softmax, multiplied one iteration later{title}"
        yield Case(name, LONGER, ("staging", "matmul"), f"{late}{more}", **own)
    shared = f"{MATRIX}multicast(x, over=n.outer)\npipeline(x, stages=2)\n"
    yield Case("a broadcast operand", text, ("staging", "matmul"), shared)


def _rows() -> Iterator[Case]:
    """Rows that two loops read: loaded whole, or kept tile by tile."""
    softmax = kernel(
        "x: f32[M, K]",
        {"y": ("f32[M, K]", "y[m, k] = e[m, k] / s[m]")},
        ({"M": 21, "K": 37}, {"M": 1, "K": 1}),
        "t[m] = max(x[m, k], k)",
        "e[m, k] = exp(x[m, k] - t[m])",
        "s[m] = sum(e[m, k], k)",
    )
    tiles = "tile(m, size=4)\ntile(k, size=16)\nplace(m.outer, level=grid)\n"
    for title, line in (
        ("tiles that are kept", "keep(x, over=k.outer)"),
        ("computed tiles that are kept", "keep(e, over=k.outer)"),
        ("rows that are loaded whole", "load(x, at=grid)"),
    ):
        yield Case(title, softmax, ("staging", "reduction"), f"{tiles}{line}\n")
    serpentine = f"{tiles}serpentine(k.outer)\n"
    for title, more in (
        ("rows from their ends", ""),
        ("rows from their ends, in stages", "pipeline(x, stages=3)"),
        ("rows from their ends, of known sizes", "specialize(y)"),
        (
            "rows that stay until they were loaded last",
            "cache(x, hint=evict_last, last=evict_first)",
        ),
        ("rows that go after the last loop", "cache(x, last=evict_first)"),
    ):
        yield Case(title, softmax, ("mapping", "reduction"), f"{serpentine}{more}\n")
    for text, dtype in (("x[m, k] * 0.5", "f32"), ("f32(x[m, k])", "bf16")):
        for title, how in (("", "reverse=True"), (", exclusive", "reverse=True, exclusive=True")):
            body = f"y[m, k] = cumsum({text}, k, {how})"
            scan = kernel(
                f"x: {dtype}[M, K]",
                {"y": ("f32[M, K]", body)},
                ({"M": 21, "K": 37}, {"M": 1, "K": 1}, {"M": 4, "K": 64}),
            )
            for name, cut in (
                ("tiles", tiles),
                ("whole rows", "tile(m, size=4)\nplace(m.outer, level=grid)\n"),
            ):
                yield Case(
                    f"{name} stored from their ends, {dtype}{title}",
                    scan,
                    ("scan", "mapping"),
                    f"{cut}mirror(y)\n",
                )
    masked = "".join(
        f"{line}\n" for line in ONLINE.split("\n") if not line.startswith(("fuse", "online"))
    )
    cut = f"{masked}causal_bound(n, at=m)\nserpentine(n.outer)\n"
    yield Case("masked rows from their ends", CAUSAL, ("matmul", "mapping"), cut, registers=True)
