"""Kernels with schedules, one for each feature of emission."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from backends.cutedsl.backend import CuteDsl
from backends.registry import REGISTRY, served_by, target
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import Workload

FOLDER = Path(__file__).parents[1] / "testdata"
_MATMUL = (
    "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
)
_STREAMED = (
    "tile(h, size=1)\ntile(m, size=64)\ntile(n, size=64)\nplace(h.outer, level=grid)\n"
    "place(m.outer, level=grid)\nplace(n.outer, level=loop)\ncompute(s, unit=matrix)\n"
    "compute(o, unit=matrix)"
)
CASES = {  # schedule decisions, by the case's name; its kernel is in FOLDER
    "rows": "tile(m, size=4)\nplace(m.outer, level=grid)\nthreads(y, count=128)",
    "staged": f"{_MATMUL}pipeline(x, stages=3)\npipeline(w, stages=3)",
    "warps": f"{_MATMUL}pipeline(x, stages=2)\npipeline(w, stages=2)\n"
    "instruction(acc, shape=m16n8k16)\nthreads(y, count=128)",
    "split": f"{_MATMUL}precision(acc, dtype=tf32x3)\npipeline(x, stages=2)\n"
    "pipeline(w, stages=2)\nthreads(acc, count=128)",
    "streamed": _STREAMED,
    "scanned": "tile(m, size=4)\nplace(m.outer, level=grid)",
    "parts": "tile(m, size=1)\nplace(m.outer, level=grid)\nthreads(y, count=128)",
    "wide": "tile(m, size=4)\ntile(n, size=8)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nthreads(y, count=128)",
    "jagged": "tile(b, size=1)\ntile(l, size=32)\nplace(b.outer, level=grid)",
    "recurrent": "kernel(gx)\nkernel(a)\ntile(t, size=1)\ntile(b, size=1)\n"
    "place(t.outer, level=grid)\nplace(b.outer, level=grid)",
    "persistent": "tile(m, size=4)\nplace(m.outer, level=grid)\npersistent(y, programs=1)",
    "produced": f"{_MATMUL}pipeline(x, stages=3)\npipeline(w, stages=3)\ncopy(x, by=bulk)\n"
    "copy(w, by=bulk)\ncopy(y, by=bulk)\nrasterize(m, size=8, over=n)\nthreads(y, count=256)",
    "fetched": f"{_STREAMED}\ncopy(q, by=bulk)\npipeline(k, stages=2)\npipeline(v, stages=2)\n"
    "copy(k, by=bulk)\ncopy(v, by=bulk)",
    "overlapped": f"{_STREAMED}\npipeline(k, stages=3)\npipeline(v, stages=3)\ncopy(k, by=bulk)\n"
    "copy(v, by=bulk)\nfuse(l, into=o)\nonline(mx, into=o)\nprecision(o, dtype=bf16)\noverlap(o)\nthreads(y, count=128)",
}
CASES["ahead"] = CASES["overlapped"].replace("overlap(o)", "overlap(o, ahead=1)")
_EIGHT = (
    _MATMUL.replace("tile(k, size=32)", "tile(k, size=64)")
    + "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=128)"
)
_BULK = "pipeline(x, stages=3)\npipeline(w, stages=3)\ncopy(x, by=bulk)\ncopy(w, by=bulk)\n"
_TAPPED = (
    "unroll(i)\nunroll(j)\ntile(b, size=1)\ntile(p, size=4)\ntile(q, size=32)\n"
    "place(b.outer, level=grid)\nplace(p.outer, level=grid)\nplace(q.outer, level=grid)\n"
    "compute(acc, unit=matrix)\nthreads(y, count=128)\ncopy(x, by=window)"
)
_SHARED = "persistent(y, programs=1)\nstream_k(y, over=k)"
CASES |= {
    "clustered": f"{_MATMUL}{_BULK}copy(y, by=bulk)\nrasterize(m, size=4, over=n)\n"
    "cluster(m, size=2)\npersistent(y, programs=1)",
    "pingpong": f"{_MATMUL}{_BULK}copy(y, by=bulk)\nthreads(y, count=128)\n"
    "persistent(y, programs=1)\npingpong(y)",
    "rounded": f"{_MATMUL}{_BULK}threads(y, count=128)".replace("(acc", "(y"),
    "padded": f"{_MATMUL}precision(acc, dtype=tf32x3)\npipeline(x, stages=2)\n"
    "pipeline(w, stages=2)\nthreads(acc, count=128)\npad(x, bytes=32)",
    "stream_k": f"{_MATMUL}pipeline(x, stages=2)\npipeline(w, stages=2)\n{_SHARED}",
    "stream_k_by_roles": f"{_MATMUL}{_BULK}copy(y, by=bulk)\n{_SHARED}",
    "eight": _EIGHT,
    "whole": _EIGHT,
    "whole_warps": _EIGHT.replace("tile(m, size=64)", "tile(m, size=32)"),
    "windowed": "tile(b, size=1)\ntile(p, size=4)\ntile(q, size=16)\ntile(o, size=64)\n"
    "tile(c, size=64)\ntile(i, size=1)\ntile(j, size=1)\nplace(b.outer, level=grid)\n"
    "place(p.outer, level=grid)\nplace(q.outer, level=grid)\nplace(o.outer, level=grid)\n"
    "place(c.outer, level=loop)\ncompute(acc, unit=matrix)\nthreads(y, count=128)\n"
    f"{_BULK}cluster(o, size=2)",
    "tapped": _TAPPED,
    "tapped_warps": f"{_TAPPED}\ninstruction(acc, shape=m16n8k16)",
}
_ACCUMULATED = {  # by matrix instructions whose accumulators are in tensor memory
    "accumulated": CASES["produced"].replace("count=256", "count=128")
    + "\npersistent(y, programs=1)",
    "accumulated_by_two": CASES["produced"].replace("tile(n, size=64)", "tile(n, size=128)"),
    "accumulated_staged": CASES["staged"],
    "accumulated_tf32": CASES["rounded"],
    "accumulated_eight": CASES["eight"],
    "accumulated_streamed": CASES["fetched"].replace("tile(n, size=64)", "tile(n, size=32)"),
}
CASES |= {n: s.replace("tile(m, size=64)", "tile(m, size=128)") for n, s in _ACCUMULATED.items()}
MACHINES = dict.fromkeys(_ACCUMULATED, "b200")  # target of cases that are not for h200
SPECS = {  # cases whose kernel file has another name
    **dict.fromkeys(
        "produced warps clustered pingpong stream_k stream_k_by_roles".split(), "staged"
    ),
    "fetched": "streamed",
    "overlapped": "streamed",
    "ahead": "streamed",
    "whole_warps": "whole",
    "padded": "split",
    "tapped_warps": "tapped",
    **dict.fromkeys(("accumulated", "accumulated_by_two", "accumulated_staged"), "staged"),
    "accumulated_tf32": "rounded",
    "accumulated_eight": "eight",
    "accumulated_streamed": "streamed",
}
# Small sizes, because emulated threads are slow: odd ones, and ones for which vectors and boxes are copied.
SIZES = {
    "rows": (dict(M=3, K=257), dict(M=5, K=256)),
    "staged": (dict(M=9, K=35, N=11), dict(M=9, K=40, N=24)),
    "warps": (dict(M=9, K=35, N=11), dict(M=9, K=40, N=24)),
    "split": (dict(M=5, K=9, N=3), dict(M=10, K=16, N=24)),
    "streamed": (dict(H=1, M=9, N=70, D=13), dict(H=1, M=9, N=70, D=16)),
    "scanned": (dict(M=3, K=257),),
    "parts": (dict(M=2, K=700),),
    "wide": (dict(M=3, K=5, N=2), dict(M=5, K=8, N=7)),
    "jagged": (dict(V=100, D=33, L=31, B=16),),
    "recurrent": (dict(T=2, B=1, I=5, H=17),),
    "persistent": (dict(M=9, K=128),),
    "produced": (dict(M=9, K=35, N=11), dict(M=9, K=40, N=24)),
    "fetched": (dict(H=1, M=9, N=70, D=13), dict(H=1, M=8, N=64, D=64)),
    "overlapped": (dict(H=1, M=9, N=150, D=16),),
    "ahead": (dict(H=1, M=9, N=150, D=16), dict(H=1, M=3, N=40, D=13)),
    "clustered": (dict(M=70, K=40, N=64),),
    "pingpong": (dict(M=70, K=40, N=200),),
    "rounded": (dict(M=9, K=35, N=11), dict(M=9, K=40, N=24)),
    "padded": (dict(M=5, K=9, N=3), dict(M=10, K=16, N=24)),
    "stream_k": (dict(M=9, K=107, N=70),),
    "stream_k_by_roles": (dict(M=9, K=104, N=72),),
    "eight": (dict(M=9, K=70, N=11),),
    "whole": (dict(M=9, K=70, N=11),),
    "whole_warps": (dict(M=9, K=70, N=11),),
    "accumulated": (dict(M=9, K=107, N=11), dict(M=130, K=104, N=200)),
    "accumulated_by_two": (dict(M=9, K=40, N=24),),
    "accumulated_staged": (dict(M=9, K=35, N=11),),
    "accumulated_tf32": (dict(M=9, K=40, N=24),),
    "accumulated_eight": (dict(M=9, K=70, N=11),),
    "accumulated_streamed": (dict(H=1, M=9, N=70, D=16),),
    "tapped": (dict(B=1, C=19, H=5, W=33, O=9),),
    "tapped_warps": (dict(B=1, C=8, H=3, W=4, O=8),),
    "windowed": (dict(B=1, H=3, W=9, C=8, O=72, P=2, Q=5),),
}
FEW = 2  # multiprocessors, so few that a block has several tiles, or parts of one
QUICK = ("rows", "staged", "scanned", "parts")  # cases that take seconds on the CPU


def backend() -> CuteDsl:
    """The CuTe DSL backend."""
    return REGISTRY.backend("cutedsl")


def machine_of(name: str, multiprocessors: int = 0) -> Machine:
    """A target as this backend serves it. multiprocessors: overrides its number of SMs, unless 0."""
    found = served_by(target(name), backend())
    if multiprocessors:
        return replace(found, levels={**found.levels, "grid": multiprocessors})
    return found


@cache
def work_of(name: str) -> Workload:
    """The kernel of a case, with its sizes."""
    file = FOLDER / f"{SPECS.get(name, name)}.kir"
    return parse_workload(file.read_text(encoding="utf-8"), name)


def own_machine(name: str) -> str:
    """The target of a case."""
    return MACHINES.get(name, "h200")


@cache
def nest_of(name: str, machine: str = "", multiprocessors: int = 0) -> LoopNest:
    """A case lowered for a machine of `machine_of`; the case's own target if none is named."""
    work, machine = work_of(name), machine or own_machine(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES[name]}\n")
    return lower(work.spec, schedule, machine_of(machine, multiprocessors), work.timed_sizes)
