"""Kernels lowered to thread programs, for tests."""

from __future__ import annotations

from backends.gpu.plain_rules import RULES
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.thread import Launch, Statement, statements
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

WARPS, WARPGROUPS = family("mma_sync"), (*family("mma_sync"), *family("wgmma"))
MATMUL = {"inputs": "x: bf16[M, K], w: bf16[K, N]", "result": "bf16[M, N]"}
PRODUCT = "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)"
GRID = ("place(m.outer, level=grid)", "place(n.outer, level=grid)")


def tiles(**sizes: int) -> tuple[str, ...]:
    """Decisions on tile sizes."""
    return tuple(f"tile({index}, size={size})" for index, size in sizes.items())


def threads(*equations, decided=(), sizes=None, table=WARPS, **kwargs) -> Launch:
    """The last launch of a kernel as a thread program."""
    spec = spec_of(*equations, **kwargs)
    given = sizes or {"M": 64, "K": 64}
    nest = lowered(spec, *decided, sizes=given, machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, table).launches[-1]


def matmul(*more, epilogue="y[m, n] = acc[m, n]", table=WARPS, sizes=None, **extents) -> Launch:
    """A matmul with a K loop."""
    decided = (*tiles(**extents), *GRID, "compute(acc, unit=matrix)", *more)
    given = sizes or {"M": 256, "N": 256, "K": 256}
    return threads(PRODUCT, epilogue, decided=decided, sizes=given, table=table, **MATMUL)


def of(kind: type, launch: Launch) -> list:
    """The statements of a kind."""
    every: list[Statement] = list(statements((*launch.once, *launch.body)))
    return [s for s in every if isinstance(s, kind)]
