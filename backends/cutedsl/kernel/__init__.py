"""What emitted kernels call beside CuTe DSL's own: functions, memory, warps, matrices, signals."""

from backends.cutedsl.kernel import functions as fn
from backends.cutedsl.kernel.functions import where, wide
from backends.cutedsl.kernel.matrices import (
    keep_order,
    load_matrices,
    matrix,
    mma,
    operand,
    result,
    warpgroup_mma,
)
from backends.cutedsl.kernel.memory import (
    add_to,
    assume,
    await_raised,
    copy_async,
    copy_run,
    get,
    load,
    put,
    raise_flag,
    rank,
    store,
    take_number,
    vector,
)
from backends.cutedsl.kernel.signals import (
    arrive_cluster,
    arrive_warp,
    init_signals,
    load_box,
    store_box,
    sync_cluster,
)
from backends.cutedsl.kernel.warps import scan, scan_after, scan_one, scan_one_after, shuffle_xor

__all__ = [
    "add_to",
    "arrive_cluster",
    "arrive_warp",
    "assume",
    "await_raised",
    "copy_async",
    "copy_run",
    "fn",
    "get",
    "init_signals",
    "keep_order",
    "load",
    "load_box",
    "load_matrices",
    "matrix",
    "mma",
    "operand",
    "put",
    "raise_flag",
    "rank",
    "result",
    "scan",
    "scan_after",
    "scan_one",
    "scan_one_after",
    "shuffle_xor",
    "store",
    "store_box",
    "sync_cluster",
    "take_number",
    "vector",
    "warpgroup_mma",
    "where",
    "wide",
]
