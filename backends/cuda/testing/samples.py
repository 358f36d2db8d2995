"""Kernels with schedules, one for each feature of emission."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from backends.backend import Backend
from backends.cuda.testing.emulation import machine_of
from backends.registry import REGISTRY
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import Workload

FOLDER = Path(__file__).parents[1] / "testdata"
CASES = {  # schedule decisions, by the case's name; its kernel is in FOLDER
    "rows": "tile(m, size=4)\nplace(m.outer, level=grid)\nthreads(y, count=128)",
    "staged": "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
    "pipeline(x, stages=3)\npipeline(w, stages=3)",
    "split": "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
    "precision(acc, dtype=tf32x3)\npipeline(x, stages=2)\npipeline(w, stages=2)\n"
    "threads(acc, count=128)",
    "streamed": "tile(h, size=1)\ntile(m, size=64)\ntile(n, size=64)\nplace(h.outer, level=grid)\n"
    "place(m.outer, level=grid)\nplace(n.outer, level=loop)\ncompute(s, unit=matrix)\n"
    "compute(o, unit=matrix)",
    "scanned": "tile(m, size=4)\nplace(m.outer, level=grid)",
    "eight": "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=128)",
    "wide": "tile(m, size=4)\ntile(n, size=8)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nthreads(y, count=128)",
    "parts": "tile(m, size=1)\nplace(m.outer, level=grid)\nthreads(y, count=128)",
    "jagged": "tile(b, size=1)\ntile(l, size=32)\nplace(b.outer, level=grid)",
    "recurrent": "kernel(gx)\nkernel(a)\ntile(t, size=1)\ntile(b, size=1)\nplace(t.outer, level=grid)\n"
    "place(b.outer, level=grid)",
    "cooperative": "tile(t, size=1)\ntile(b, size=16)\ntile(j, size=16)\nplace(t.outer, level=grid)\n"
    "place(b.outer, level=grid)\nplace(j.outer, level=grid)\n"
    + "".join(f"compute({a}, unit=matrix)\n" for a in ("hi", "hf", "hg", "ho"))
    + "threads(h, count=128)\ncooperative(h)",
    "persistent": "tile(m, size=4)\nplace(m.outer, level=grid)\npersistent(y, programs=1)",
}
CASES["stream_k"] = f"{CASES['staged']}\npersistent(y, programs=1)\nstream_k(y, over=k)"
SPECS = {
    "produced": "staged",
    "stream_k": "staged",
    "stream_k_by_roles": "staged",
    "clustered": "staged",
    "pingpong": "staged",
    "fetched": "streamed",
    "overlapped": "streamed",
    "ahead": "streamed",
}  # cases whose kernel file has another name
BULK_CASES = {  # for machines with TMA
    "produced": f"{CASES['staged']}\ncopy(x, by=bulk)\ncopy(w, by=bulk)\ncopy(y, by=bulk)\n"
    "rasterize(m, size=8, over=n)\nthreads(y, count=256)",
    "clustered": f"{CASES['staged']}\ncopy(x, by=bulk)\ncopy(w, by=bulk)\ncopy(y, by=bulk)\n"
    "rasterize(m, size=4, over=n)\ncluster(m, size=2)\npersistent(y, programs=1)".replace(
        "tile(n, size=64)", "tile(n, size=128)"
    ),
    "stream_k_by_roles": f"{CASES['stream_k']}\ncopy(x, by=bulk)\ncopy(w, by=bulk)\ncopy(y, by=bulk)",
    "pingpong": f"{CASES['staged']}\ncopy(x, by=bulk)\ncopy(w, by=bulk)\ncopy(y, by=bulk)\n"
    "threads(y, count=128)\npersistent(y, programs=1)\npingpong(y)",
    "windowed": "tile(b, size=1)\ntile(p, size=4)\ntile(q, size=16)\ntile(o, size=64)\ntile(c, size=64)\n"
    "tile(i, size=1)\ntile(j, size=1)\nplace(b.outer, level=grid)\nplace(p.outer, level=grid)\n"
    "place(q.outer, level=grid)\nplace(o.outer, level=grid)\nplace(c.outer, level=loop)\n"
    "compute(acc, unit=matrix)\npipeline(x, stages=3)\npipeline(w, stages=3)\nthreads(y, count=128)\n"
    "copy(x, by=bulk)\ncopy(w, by=bulk)\ncluster(o, size=2)",
    "fetched": f"{CASES['streamed']}\ncopy(q, by=bulk)\npipeline(k, stages=2)\n"
    "pipeline(v, stages=2)\ncopy(k, by=bulk)\ncopy(v, by=bulk)",
    "overlapped": f"{CASES['streamed']}\npipeline(k, stages=3)\npipeline(v, stages=3)\n"
    "copy(k, by=bulk)\ncopy(v, by=bulk)\nfuse(l, into=o)\nonline(mx, into=o)\nprecision(o, dtype=bf16)\noverlap(o)\n"
    "threads(y, count=128)",
}
BULK_CASES["ahead"] = BULK_CASES["overlapped"].replace("overlap(o)", "overlap(o, ahead=1)")
# What a case decides on a machine that lacks its instruction.
WIDENED = {("eight", "a100"): "\nprecision(acc, dtype=bf16)"}


def backend() -> Backend:
    """The CUDA C++ backend."""
    return REGISTRY.backend("cuda")


def work_of(name: str) -> Workload:
    """The kernel of a case, with its sizes."""
    file = FOLDER / f"{SPECS.get(name, name)}.kir"
    return parse_workload(file.read_text(encoding="utf-8"), name)


@cache
def nest_of(name: str, machine: str = "h200") -> LoopNest:
    """A case lowered for a machine."""
    work = work_of(name)
    decided = (CASES | BULK_CASES)[name] + WIDENED.get((name, machine), "")
    schedule = parse_schedule(f"schedule({work.spec.name})\n{decided}\n")
    return lower(work.spec, schedule, machine_of(machine), work.timed_sizes)


def emitted(name: str, machine: str = "h200") -> str:
    """The source of a case."""
    return backend().emit(nest_of(name, machine), machine_of(machine))
