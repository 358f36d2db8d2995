"""The table of verbs: the subject of each, its options, and their order in a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.schedule import Schedule

OF_LAUNCH = (
    "threads",
    "persistent",
    "specialize",
    "registers",
    "roles",
    "pingpong",
    "stream_k",
    "cooperative",
)  # verbs that name a launch by what it stores


@dataclass(frozen=True, slots=True)
class Verb:
    """One kind of decision."""

    name: str
    doc: str  # before -> after
    subject: str  # kind of its subject: index, loop, tensor, reduction, ...
    needs: Mapping[str, str]  # required options, each with the kind of its value
    may: Mapping[str, str]  # optional ones, likewise


_TABLE = (
    Verb(
        "kernel",
        "one launch -> a launch that ends after this tensor, and another",
        "tensor",
        {},
        {},
    ),
    Verb(
        "hoist",
        "sum(r * f, k) read by y -> sum(f, k), and y reads it times r",
        "tensor",
        {"into": "tensor"},
        {},
    ),
    Verb(
        "associate",
        "t = sum(x * y, i), z = sum(w * t, d) -> t_again = sum(w * x, d), z = sum(t_again * y, i)",
        "reduction",
        {},
        {},
    ),
    Verb(
        "unroll",
        "a reduction over a short index -> its terms, each loaded by itself (unrolled loop)",
        "short",
        {},
        {},
    ),
    Verb(
        "flatten",
        "two adjacent indices, p and q -> one index pq of their common range",
        "flattened",
        {"inner": "flattened"},
        {},
    ),
    Verb(
        "split_k",
        "a reduction -> `parts` partial reductions in parallel, in a launch of their "
        "own, and a second reduction of their results (split-K)",
        "reduction",
        {"over": "index", "parts": "positive"},
        {},
    ),
    Verb(
        "pack",
        "an input w[k, n] -> a packed copy w_nk[n, k], made by its own launch and read "
        "instead; an intermediate tensor -> computed with its dimensions permuted",
        "tensor",
        {"order": "order"},
        {"dtype": "dtype"},
    ),
    Verb(
        "atomic",
        "each element of a scatter gathers its updates -> one launch initialises the "
        "tensor, and another adds each update atomically",
        "tensor",
        {},
        {},
    ),
    Verb(
        "carry",
        "one launch for each step of a recurrence -> one launch, whose programs loop "
        "over all steps and keep the loop-carried values",
        "tensor",
        {},
        {},
    ),
    Verb(
        "mirror",
        "a reverse scan in a launch of its own, which another launch reads from the end -> one launch, "
        "which stores it from the end",
        "tensor",
        {},
        {},
    ),
    Verb(
        "tile",
        "an index -> an outer loop over tiles and an inner one of `size`",
        "index",
        {"size": "positive"},
        {},
    ),
    Verb(
        "place",
        "an outer loop -> tiles in parallel (grid) or one after another (loop)",
        "loop",
        {"level": "level"},
        {},
    ),
    Verb(
        "fuse",
        "two loops that reduce the same index -> one",
        "reduction",
        {"into": "reduction"},
        {},
    ),
    Verb(
        "online",
        "a maximum, then sums that need it or its position -> one loop with a running maximum",
        "reduction",
        {"into": "reduction"},
        {},
    ),
    Verb(
        "causal_bound",
        "a loop over all of an index -> over the tiles that a mask does not remove "
        "whole, for the current tile of `at` (causal loop bound)",
        "index",
        {"at": "index"},
        {},
    ),
    Verb(
        "compute",
        "a contraction -> computed on a unit",
        "reduction",
        {"unit": "unit"},
        {"acc": "dtype"},
    ),
    Verb(
        "precision",
        "operands of a contraction -> rounded to a dtype first",
        "reduction",
        {"dtype": "dtype"},
        {},
    ),
    Verb(
        "multicast",
        "a tensor read by each tile of the grid -> one read, broadcast to all tiles "
        "along the grid's last loop",
        "tensor",
        {"over": "loop"},
        {},
    ),
    Verb(
        "load",
        "a tensor loaded in the innermost loop that it needs -> loaded in the loop `at`, with all "
        "that the loops inside read of it",
        "tensor",
        {"at": "place"},
        {},
    ),
    Verb(
        "keep",
        "a tile that a loop loads or computes lasts for its iteration -> a buffer slot for each "
        "iteration: all are in flight at once, and later loops over the index read them",
        "tensor",
        {"over": "loop"},
        {},
    ),
    Verb(
        "pipeline",
        "a tile loaded (or computed), then used, in turn -> a circular buffer of `stages` tiles, "
        "so that the next are in flight while one is used",
        "tensor",
        {"stages": "positive"},
        {},
    ),
    Verb(
        "copy",
        "a tensor loaded or stored by the program itself -> moved by a DMA engine",
        "tensor",
        {"by": "engine"},
        {},
    ),
    Verb(
        "rasterize",
        "grid tiles in the order of the grid's axes -> groups of `size` tiles of this "
        "index, walked along all of `over` (L2 swizzle)",
        "index",
        {"size": "positive", "over": "index"},
        {},
    ),
    Verb(
        "cluster",
        "each thread block copies its boxes -> `size` neighbouring blocks along this index copy what "
        "all of them read once (multicast)",
        "index",
        {"size": "positive"},
        {},
    ),
    Verb(
        "threads",
        "thread blocks of the launch that stores a tensor have the backend's default "
        "number of threads -> `count` threads",
        "tensor",
        {"count": "positive"},
        {},
    ),
    Verb(
        "persistent",
        "one program for each tile of the launch that stores a tensor -> `programs` "
        "persistent programs per processor, which loop over the tiles",
        "tensor",
        {"programs": "positive"},
        {},
    ),
    Verb(
        "stream_k",
        "each persistent program of the launch that stores a tensor has whole tiles, one after another "
        "-> an equal share of all iterations over `over` of all tiles; parts of a tile's sum meet in "
        "memory",
        "tensor",
        {"over": "index"},
        {},
    ),
    Verb(
        "cooperative",
        "the launch that stores a tensor runs again for each step of a recurrence -> one cooperative "
        "launch, whose programs run all steps and meet at a grid barrier between them",
        "tensor",
        {},
        {},
    ),
    Verb(
        "specialize",
        "the sizes of the launch that stores a tensor are arguments -> compile-time constants",
        "tensor",
        {},
        {},
    ),
    Verb(
        "registers",
        "the compiler gives each thread of the launch that stores a tensor as many registers as it "
        "wants -> `limit` at most, so that a processor holds more thread blocks",
        "tensor",
        {"limit": "positive"},
        {},
    ),
    Verb(
        "roles",
        "the threads that start bulk copies for the launch that stores a tensor are as many as the "
        "backend chooses -> `producers`, with so many registers each",
        "tensor",
        {"producers": "positive"},
        {"registers": "positive"},
    ),
    Verb(
        "pingpong",
        "the threads of a persistent program work on one tile together -> two groups of as many threads "
        "take turns: one multiplies a tile while the other stores the tile before",
        "tensor",
        {},
        {},
    ),
    Verb(
        "warps",
        "the warps of a block share a matmul's result as the backend chooses -> `m` parts of its "
        "rows times `n` parts of its columns, a part for each warp",
        "reduction",
        {"m": "positive", "n": "positive"},
        {},
    ),
    Verb(
        "instruction",
        "a matmul by the matrix instruction that the backend chooses -> by the one of this shape, "
        "such as m16n8k16",
        "reduction",
        {"shape": "shape"},
        {},
    ),
    Verb(
        "overlap",
        "a matmul in the iteration that computes its operand -> in the next one, in flight with the matmul "
        "before it and with what is computed from that (as FlashAttention-3 within a warpgroup); with "
        "`ahead=1` the matmul before it is in the iteration before its own, too",
        "reduction",
        {},
        {"ahead": "positive"},
    ),
    Verb(
        "unroll_loop",
        "a loop over tiles -> `factor` of its iterations at once, whose instructions the compiler "
        "interleaves",
        "loop",
        {"factor": "positive"},
        {},
    ),
    Verb(
        "serpentine",
        "each of several loops over the same tiles runs from the first to the last -> every second one "
        "from the last to the first, and begins with what the one before left in the caches",
        "loop",
        {},
        {},
    ),
    Verb(
        "cache",
        "a tensor's lines stay in the caches as the hardware decides -> with a hint: evict_first, "
        "evict_last or no_allocate (bypass L1); `last`: that of the last of several loads",
        "tensor",
        {},
        {"hint": "hint", "last": "hint"},
    ),
    Verb(
        "swizzle",
        "a tensor's tile lies in shared memory as the backend chooses -> in panels of `bytes`, whose "
        "16-byte parts are exchanged so that columns lie in unlike banks",
        "tensor",
        {"bytes": "positive"},
        {},
    ),
    Verb(
        "pad",
        "a tensor's tile lies in shared memory as the backend chooses -> in whole rows with `bytes` "
        "between them",
        "tensor",
        {"bytes": "positive"},
        {},
    ),
    Verb(
        "epilogue",
        "a tensor's tile leaves the registers as the backend chooses -> by stores of each thread "
        "(registers), or through shared memory, `columns` of it at a time",
        "tensor",
        {"by": "way"},
        {"columns": "positive"},
    ),
)
VERBS = {v.name: v for v in _TABLE}
RANK = {v.name: n for n, v in enumerate(_TABLE)}


def canonical(schedule: Schedule) -> Schedule:
    """The same decisions in the order of the verb table. Unknown verbs come last.

    Decisions of one verb keep their order, on which `place` depends.
    """
    ranked = sorted(schedule.decisions, key=lambda d: RANK.get(d.verb, len(RANK)))
    return Schedule(schedule.kernel, tuple(ranked))
