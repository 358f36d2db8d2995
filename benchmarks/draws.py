"""Draws: random schedules of a kernel, from seeded random walks over the edits of the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import cast

from backends.backend import BackendError, ModelsTime
from backends.served import Served
from ir.autoschedule.autoschedule import autoschedule
from ir.digest import text_digest
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import LIBRARY

MOST_EDITS = 8  # Limit of one walk.
MOST_WALKS = 40  # Walks per wanted schedule.
# Schedules whose estimate is this many times that of the first are left out: they only occupy the
# device.
SLOWEST = 12.0

# Sizes that keep a large GPU busy for ten to several hundred microseconds.
SIZES: Mapping[str, Mapping[str, int]] = {
    "attention": dict(H=32, M=2048, N=2048, D=64),
    "conv1d": dict(B=512, C=96, O=96, L=200),
    "conv2d": dict(B=256, C=32, O=32, H=28, W=28),
    "cumsum": dict(M=4096, K=4096),
    "embedding_bag": dict(V=200_000, D=128, L=131_072, B=4096),
    "layer_norm": dict(M=8192, K=2048),
    "map_id": dict(U=10_000, B=1_000_000),
    "matmul_bias_gelu": dict(M=4096, K=1024, N=4096),
    "max_pool2d": dict(N=256, C=16, H=56, W=56),
    "pairwise_dot": dict(B=4096, F=27, D=128),
    "pffn": dict(B=256, N=200, D=256, K=160),
    "rmsnorm_matmul": dict(M=4096, K=2048, N=2048),
    "softmax": dict(M=8192, K=2048),
    "wukong_fm": dict(B=512, N=24, D=224, K=448),
}


@dataclass(frozen=True, slots=True)
class Draw:
    """A schedule of a kernel that lowers on a machine, with its nest and source."""

    kernel: str
    schedule: Schedule
    nest: LoopNest
    source: str

    @property
    def digest(self) -> str:
        """The digest of the schedule's text."""
        return text_digest(str(self.schedule))

    @property
    def code(self) -> str:
        """The source without the digest that names the schedule."""
        return self.source.replace(self.digest, "")


def spec_of(kernel: str) -> Spec:
    """Returns a spec of the library."""
    text = (LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8")
    return parse_workload(text, kernel).spec


def draws(kernel: str, served: Served, count: int, seed: int) -> list[Draw]:
    """Returns up to `count` different schedules for a backend, the autoschedule first. The same
    seed gives the same ones.

    A walk starts at the autoschedule or at an earlier draw, and takes 1 to 8 edits that lower.
    Draws that the time model estimates to be far slower than the first are left out, and so are
    duplicates of a source.
    """
    spec, sizes, machine = spec_of(kernel), SIZES[kernel], served.machine
    model = cast(ModelsTime, served.backend).model
    rng = Random(f"{seed} {kernel}")
    first = _draw(spec, autoschedule(spec, machine, sizes), served)
    if first is None:
        return []
    limit = SLOWEST * model(first.nest, machine, sizes, {}).us
    found = {first.code: first}
    starts = [first]
    for _ in range(MOST_WALKS * count):
        if len(found) >= count:
            break
        end = _walk(spec, rng.choice(starts), served, rng)
        if end.code in found or model(end.nest, machine, sizes, {}).us > limit:
            continue
        found[end.code] = end
        starts.append(end)
    return list(found.values())


def _walk(spec: Spec, start: Draw, served: Served, rng: Random) -> Draw:
    at, machine = start, served.machine
    wanted = rng.randint(1, MOST_EDITS)
    edits = neighbours(spec, at.schedule, machine, SIZES[spec.name])
    for _ in range(4 * MOST_EDITS):
        if wanted == 0:
            break
        after = _draw(spec, rng.choice(edits).apply(at.schedule), served)
        if after is None:
            continue
        at, wanted = after, wanted - 1
        edits = neighbours(spec, at.schedule, machine, SIZES[spec.name])
    return at


def _draw(spec: Spec, schedule: Schedule, served: Served) -> Draw | None:
    """Returns the schedule with its nest. None if it does not lower, or if the backend rejects
    it."""
    try:
        nest = lower(spec, schedule, served.machine, SIZES[spec.name])
        return Draw(spec.name, schedule, nest, served.backend.emit(nest, served.machine))
    except (KernelError, BackendError):
        return None
