"""Thread programs written by hand, for tests; each uses other statements."""

from __future__ import annotations

from backends.gpu import tile as of
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.threads import thread as to
from backends.gpu.threads.thread import Axis, Element, Fragment
from backends.gpu.tile import Check, Name, Place, Term
from ir.nest.nest import Parameter
from ir.spec import Apply, Expr, Number, Size

THREADS, WARP = 128, 32
TILE = Name("tile")
ZERO = Number(0)
EVERY = Layout(THREADS, 0)  # every thread holds all positions
ONE = Layout(1, 0)


def axis(index: str, thread: Layout, register: Layout, span: int, width: int) -> Axis:
    """An axis of a known width."""
    return Axis(index, thread, register, span, Number(width))


def at(stem: str, *axes: str) -> Element:
    """The element of a value."""
    return Element(Name("value", stem), axes)


def position(index: str, copy: int = 0) -> Element:
    """The position along an index, in one of its distributions."""
    return Element(Name("positions", index, copy=copy), (index,))


def launch(name: str, tensors: str, tiles: tuple[Expr, ...], *parts: object) -> to.Launch:
    """A launch. parts: fragments, shared memory tiles, pairs (constants), lists (the body)."""

    def of_kind(kind: type) -> tuple:  # type: ignore[type-arg]
        return tuple(p for p in parts if isinstance(p, kind))

    return to.Launch(
        name=name,
        equations=(),
        tensors=tuple(tensors.split()),
        sizes=(),
        specialized=False,
        step=None,
        attributes=(),
        constants=of_kind(tuple),
        tiles=tiles,
        resident=0,
        threads=THREADS,
        warp=WARP,
        fragments=of_kind(Fragment),
        shared=of_kind(to.Shared),
        once=(),
        body=tuple(s for block in of_kind(list) for s in block),
    )


def program(name: str, tensors: str, *launches: to.Launch) -> to.ThreadProgram:
    """A program. tensors: `name: dtype[sizes] ...`; the last one is the result."""
    found = []
    for text in tensors.split("; "):
        stem, kind = text.split(": ")
        dtype, sizes = kind[:-1].split("[")
        found.append(Parameter(stem, dtype, tuple(map(Size, sizes.split(", "))), "input"))
    return to.ThreadProgram(name, ((None, launches),), tuple(found))


def place(tensor: str, *terms: Expr, mask: tuple[Expr, ...] = ()) -> Place:
    """Elements of a tensor."""
    return Place(Name("pointer", tensor), terms, mask)


def vector_add() -> to.ThreadProgram:
    """z = x + y, with four elements per thread at once where N is a multiple of 4."""
    n = axis("n", Layout(THREADS, 4), Layout(4, 1), 512, 512)
    inside = (Element(Name("mask", "n"), ("n",)),)
    flag = Name("aligned", "n")
    vector = to.Vector("n", 4, flag)
    body: list[to.Statement] = [
        to.Positions(Name("positions", "n"), Apply("mul", (TILE, Number(512)))),
        to.Each(Name("mask", "n"), Check(position("n"), below=Size("N"))),
    ]
    for stem in ("x", "y"):
        here = place(stem, Term(position("n")), mask=inside)
        body.append(to.Load(Name("value", stem), here, Number(0.0), vector))
    total = Apply("add", (at("x", "n"), at("y", "n")))
    here = place("z", Term(position("n")), mask=inside)
    body.append(to.Store(here, total, (n,), vector=vector))
    made = launch(
        "add",
        "x y z",
        (of.Tiles(Size("N"), 512),),
        (flag, to.All((of.Even(Size("N"), Number(4)),))),
        Fragment(Name("positions", "n"), "i32", (n,)),
        Fragment(Name("mask", "n"), "b8", (n,)),
        *(Fragment(Name("value", stem), "f32", (n,)) for stem in ("x", "y")),
        body,
    )
    return program("vector_add", "x: f32[N]; y: f32[N]; z: f32[N]", made)


def row_sum() -> to.ThreadProgram:
    """s[m] = sum of a row of x: in registers, by shuffles in each warp, then over the four warps."""
    k = axis("k", Layout(THREADS, 1), ONE, THREADS, 512)
    warp = axis("w", Layout((WARP, 4), (0, 1)), ONE, 4, 4)
    warps = axis("w", EVERY, Layout(4, 1), 4, 4)
    inside = Check(position("k"), below=Size("K"))
    row = Term(TILE, (Size("K"),))
    part = Name("shared", "part")
    body: list[to.Statement] = [
        to.Positions(Name("positions", "k"), None),
        to.Load(
            Name("value", "x"), place("x", row, Term(position("k")), mask=(inside,)), Number(0.0)
        ),
        to.Reduce(Name("value", "s"), "sum", at("x", "k"), (k,), "k", False),
        to.Shuffle(Name("value", "s"), "sum", (1, 2, 4, 8, 16), False),
        to.Each(Name("value", "own"), at("s")),
        to.SharedStore(part, Name("value", "own"), copies=WARP - 1),
        to.Barrier(),
        to.SharedLoad(Name("value", "all"), part),
        to.Reduce(Name("value", "s"), "sum", at("all", "w"), (warps,), "w", False),
        to.Store(place("s", Term(TILE)), at("s"), (), copies=THREADS - 1),
    ]
    made = launch(
        "sum",
        "x s",
        (Size("M"),),
        Fragment(Name("positions", "k"), "i32", (k,)),
        Fragment(Name("value", "x"), "f32", (k,)),
        Fragment(Name("value", "s"), "f32"),
        Fragment(Name("value", "own"), "f32", (warp,)),
        Fragment(Name("value", "all"), "f32", (warps,)),
        to.Shared(part, "f32", ("w",), (Number(4),), "exchange"),
        body,
    )
    return program("row_sum", "x: f32[M, K]; s: f32[M]", made)


def transpose(swizzle: Swizzle | None = Swizzle(5, 0, 6)) -> to.ThreadProgram:
    """y = x transposed, in tiles of 64 x 64; M and N are multiples of 64."""
    fast, slow = Layout((WARP, 4), (1, 0)), Layout((WARP, 4), (0, 1))
    loaded = (axis("m", slow, ONE, 4, 64), axis("n", fast, ONE, 32, 64))
    stored = (axis("n", slow, ONE, 4, 64), axis("m", fast, ONE, 32, 64))
    tile, columns = Name("shared", "x"), of.Tiles(Size("N"), 64)
    starts = {
        "m": Apply("mul", (Apply("floordiv", (TILE, columns)), Number(64))),
        "n": Apply("mul", (Apply("mod", (TILE, columns)), Number(64))),
    }
    body: list[to.Statement] = [
        *(
            to.Positions(Name("positions", i, copy=copy), start)
            for i, start in starts.items()
            for copy in (0, 1)
        ),
        to.Load(
            Name("value", "x"),
            place("x", Term(position("m"), (Size("N"),)), Term(position("n"))),
            Number(0.0),
        ),
        to.SharedStore(tile, Name("value", "x")),
        to.Barrier(),
        to.SharedLoad(Name("value", "y"), tile),
        to.Store(
            place("y", Term(position("n", 1), (Size("M"),)), Term(position("m", 1))),
            at("y", "n", "m"),
            stored,
        ),
    ]
    made = launch(
        "transpose",
        "x y",
        (of.Tiles(Size("M"), 64), columns),
        *(Fragment(Name("positions", a.index), "i32", (a,)) for a in loaded),
        *(Fragment(Name("positions", a.index, copy=1), "i32", (a,)) for a in stored),
        Fragment(Name("value", "x"), "f32", loaded),
        Fragment(Name("value", "y"), "f32", stored),
        to.Shared(tile, "f32", ("m", "n"), (Number(64), Number(64)), "x", swizzle=swizzle),
        body,
    )
    return program("transpose", "x: f32[M, N]; y: f32[N, M]", made)


def histogram() -> to.ThreadProgram:
    """y[x[n]] += 1, atomically, after a launch that fills y."""
    n = axis("n", Layout(THREADS, 1), ONE, THREADS, 256)
    start = to.Positions(Name("positions", "n"), Apply("mul", (TILE, Number(256))))
    positions = Fragment(Name("positions", "n"), "i32", (n,))

    def inside(size: str) -> tuple[Expr, ...]:
        return (Check(position("n"), below=Size(size)),)

    zero: list[to.Statement] = [
        start,
        to.Store(place("y", Term(position("n")), mask=inside("B")), ZERO, (n,)),
    ]
    add: list[to.Statement] = [
        start,
        to.Load(Name("value", "x"), place("x", Term(position("n")), mask=inside("N")), ZERO),
        to.Store(
            place("y", Term(at("x", "n")), mask=inside("N")), Number(1), (n,), reduction="sum"
        ),
    ]
    values = Fragment(Name("value", "x"), "i32", (n,))
    return program(
        "histogram",
        "x: i32[N]; y: i32[B]",
        launch("fill", "y", (of.Tiles(Size("B"), 256),), positions, zero),
        launch("count", "x y", (of.Tiles(Size("N"), 256),), positions, values, add),
    )


# -- a matmul with a matrix instruction, copies in flight and three stages -------------------------


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
_OPERANDS = to.Instruction(
    MMA,
    a=((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
    b=((0, 0), (1, 0), (2, 0), (3, 0)),
    c=((0, 0), (0, 1), (1, 0), (1, 1)),
    a_steps=(2, 4),
    b_steps=(4, 1),
    c_steps=(2, 2),
)
STAGES = 3
# Two warps along M, two along N: a tile of 64 x 64, K in steps of 32.
_M = axis("m", Layout((4, 8, 2, 2), (0, 1, 16, 0)), Layout(2, 8), 32, 64)
_K = axis("k", Layout((4, WARP), (2, 0)), Layout((2, 2), (1, 8)), 16, 16)
_N_OF_B = axis("n", Layout((4, 8, 2, 2), (0, 1, 0, 8)), ONE, 16, 64)
_N_OF_C = axis("n", Layout((4, 8, 2, 2), (2, 0, 0, 8)), Layout(2, 1), 16, 64)
# Copies of 16 bytes.
_COPIED_A = (
    axis("m", Layout((4, 32), (0, 1)), ONE, 32, 64),
    axis("k", Layout((4, 32), (8, 0)), Layout(8, 1), 32, 32),
)
_COPIED_B = (
    axis("k", Layout((8, 16), (0, 1)), ONE, 16, 32),
    axis("n", Layout((8, 16), (8, 0)), Layout(8, 1), 64, 64),
)


_X, _W, _ACC = (Name("value", stem) for stem in ("x", "w", "acc"))
_TILES = (Name("shared", "x"), Name("shared", "w"))
_K_AT, _ISSUE = Name("origin", "k"), Name("step", "k")
_COLUMNS = of.Tiles(Size("N"), 64)


def matmul() -> to.ThreadProgram:
    """y = x @ w in bf16, K and N multiples of 8."""
    m_at, n_at = Name("origin", "m"), Name("origin", "n")
    outside = (
        Check(position("m", 2), below=Size("M")),
        Check(position("n", 2), below=Size("N")),
    )
    target = place("y", Term(position("m", 2), (Size("N"),)), Term(position("n", 2)), mask=outside)
    body: list[to.Statement] = [
        to.Each(m_at, Apply("mul", (Apply("floordiv", (TILE, _COLUMNS)), Number(64)))),
        to.Each(n_at, Apply("mul", (Apply("mod", (TILE, _COLUMNS)), Number(64)))),
        *(
            to.Positions(Name("positions", i, copy=c), Element(Name("origin", i)))
            for i, c in (("m", 0), ("n", 1), ("m", 2), ("n", 2))
        ),
        to.Each(_ACC, Number(0.0)),
        *(s for n in range(STAGES - 1) for s in (*_prefetch(Number(n), Number(n)), to.Commit())),
        _k_loop(),
        to.Store(target, of.Converted(at("acc", "m", "n"), "bf16"), (_M, _N_OF_C)),
    ]
    places = {("m", 0): _COPIED_A[0], ("k", 0): _COPIED_A[1]}
    places |= {("k", 1): _COPIED_B[0], ("n", 1): _COPIED_B[1]}
    places |= {("m", 2): _M, ("n", 2): _N_OF_C}
    made = launch(
        "matmul",
        "x w y",
        (of.Tiles(Size("M"), 64), _COLUMNS),
        *(Fragment(Name("positions", i, copy=c), "i32", (ax,)) for (i, c), ax in places.items()),
        *(Fragment(n, "i32") for n in (m_at, n_at, _K_AT, _ISSUE)),
        Fragment(_X, "bf16", (_M, _K)),
        Fragment(_W, "bf16", (_K, _N_OF_B)),
        Fragment(_ACC, "f32", (_M, _N_OF_C)),
        _tile(_TILES[0], ("m", "k"), (64, 32), Swizzle(2, 3, 3)),
        _tile(_TILES[1], ("k", "n"), (32, 64), Swizzle(3, 3, 3)),
        body,
    )
    return program("matmul", "x: bf16[M, K]; w: bf16[K, N]; y: bf16[M, N]", made)


def _k_loop() -> to.Loop:
    """Waits for a stage, starts the copies of a later one, multiplies."""
    number = Apply("floordiv", (Element(_K_AT), Number(32)))
    ahead = Apply("add", (number, Number(STAGES - 1)))
    now, later = (Apply("mod", (n, Number(STAGES))) for n in (number, ahead))
    begin = (("k", Element(_ISSUE)),)
    issue = (
        to.SharedLoad(_X, _TILES[0], now, begin, "matrix"),
        to.SharedLoad(_W, _TILES[1], now, begin, "transposed"),
        to.Multiply(_ACC, _X, _W, _OPERANDS),
    )
    body = (
        to.Wait(STAGES - 2),
        to.Barrier(),
        *_prefetch(ahead, later),
        to.Commit(),
        to.Loop(_ISSUE, ZERO, Number(32), 16, issue, True),
    )
    return to.Loop(_K_AT, ZERO, Size("K"), 32, body)


def _tile(
    name: Name, axes: tuple[str, ...], extents: tuple[int, ...], swizzle: Swizzle
) -> to.Shared:
    return to.Shared(
        name, "bf16", axes, tuple(map(Number, extents)), name.stem, STAGES, swizzle=swizzle
    )


def _prefetch(number: Expr, stage: Expr) -> tuple[to.Statement, ...]:
    """The copies of a K step, if there is one."""
    start = Apply("mul", (number, Number(32)))
    masks = {i: Check(position(i, c), below=Size(i.upper())) for i, c in (("m", 0), ("n", 1))}
    k_of_a, k_of_b = (Check(position("k", c), below=Size("K")) for c in (0, 1))
    x = place(
        "x",
        Term(position("m"), (Size("K"),)),
        Term(position("k")),
        mask=(masks["m"], k_of_a),
    )
    w = place(
        "w",
        Term(position("k", 1), (Size("N"),)),
        Term(position("n", 1)),
        mask=(k_of_b, masks["n"]),
    )
    copies = (
        *(to.Positions(Name("positions", "k", copy=c), start) for c in (0, 1)),
        to.Copy(_TILES[0], x, _COPIED_A, stage, to.Vector("k", 8, None)),
        to.Copy(_TILES[1], w, _COPIED_B, stage, to.Vector("n", 8, None)),
    )
    return (to.Guard(Apply("lt", (start, Size("K"))), copies),)
