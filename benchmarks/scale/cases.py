"""The use cases of the model: searches on more slots, devices and nodes than were measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.scale.model import Case, Found, SearchSort, Times, simulated
from benchmarks.scale.nodes import CHECK, TIME, NodeSort

RESULTS = Path(__file__).parents[1] / "results"
EVALUATIONS = 96  # Evaluations of each search.
SLOTS = 8  # Slots of a node, and its cores.
SLOTS_OF_DEVICE = 4  # As in search/evaluator/cluster.py.
REMOTE = 0.0094  # Seconds. docs/scale.md: the median of 60 differences.
# Seconds. docs/store.md: everything stored of an evaluation, on a server with two cores.
SHARED = 0.0064
STORE_CORES = 2
MANY = 5_000  # With more evaluations, one drawing is enough.
DRAWINGS = 3
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Named:
    """A case with its name."""

    name: str
    case: Case


def times_of(calibration: Mapping[str, Any], **more: float) -> Times:
    """Returns the times of a calibrating run. more: further fields."""
    return Times(
        stages=[stages_of(line) for line in calibration["stages"]],
        asked=calibration["asked"],
        told=calibration["told"],
        **more,
    )


def stages_of(line: str) -> tuple[tuple[str, float], ...]:
    """Parses the stages of a candidate with their seconds."""
    words = line.split()
    return tuple(zip(words[::2], map(float, words[1::2]), strict=True))


def local_case(calibration: Mapping[str, Any], workers: int, evaluations: int) -> Case:
    """Returns a search on the cores that its workers share with it, as it was measured."""
    node = NodeSort(workers, calibration["cores"], speeds=tuple(calibration["speeds"]))
    search = SearchSort(evaluations, first=calibration["first"])
    return Case(times_of(calibration), search, node, cluster=False)


def npu_cases(calibration: Mapping[str, Any]) -> list[Named]:
    """Returns searches whose times are simulated. They only need cores."""
    times = times_of(calibration, remote=REMOTE, shared=SHARED)
    search = SearchSort(EVALUATIONS, first=calibration["first"])
    base = Case(times, search, NodeSort(SLOTS, SLOTS))

    def case(slots: int, searches: int, **more: Any) -> Case:
        each = min(slots, SLOTS)
        node = replace(base.node, slots=each, cores=each)
        return replace(base, node=node, nodes=slots // each, searches=searches, **more)

    found = [Named("one search", case(slots, 1)) for slots in (1, 2, 4, 8, 16, 32)]
    found += [Named("100 slots", case(104, searches)) for searches in (1, 6, 13, 26, 52)]
    found += [Named("1,000 slots", case(1000, searches)) for searches in (62, 125, 250, 500)]
    lossy = case(1000, 250)
    found += [
        Named("1,000 slots, one store", case(1000, 250, store_cores=STORE_CORES)),
        Named("1,000 slots, one store of 8 cores", case(1000, 250, store_cores=4 * STORE_CORES)),
        Named(
            "1,000 slots, each node lost every 15 min",
            replace(lossy, node=replace(lossy.node, lives=HOUR / 4, repair=60.0)),
        ),
        Named(
            "a model is asked, 12 at once, 30 s each",
            replace(
                case(8, 1), times=replace(times, answer=30.0), search=replace(search, batch=12)
            ),
        ),
    ]
    return found


def device_times(calibration: Mapping[str, Any]) -> tuple[Times, dict[str, str]]:
    """Returns stage times of candidates for an H200, and the origin of each."""
    ranked = _rows("h200/model_rank.json")
    builds = [r["figures"]["compile_seconds"] for r in ranked if r.get("figures")]
    builds = [seconds for seconds in builds if seconds]
    checks = [r["triton"]["cpu_s"] for r in _rows("h200/check_times.json")]
    measured = [r["seconds_each"]["correct"]["time"] for r in _rows("h200/throughput.json")]
    rest = fmean(dict(stages_of(line))["rest"] for line in calibration["stages"])
    stages = [
        (
            ("build", build),
            (CHECK, checks[n % len(checks)]),
            (TIME, measured[n * 7 % len(measured)]),
            ("rest", rest),
        )
        for n, build in enumerate(builds)
    ]
    npu = times_of(calibration, remote=REMOTE, shared=SHARED)
    return replace(npu, stages=stages), {
        "build": f"measured: compile_seconds of {len(builds)} Triton builds, h200/model_rank.json",
        "check": f"measured without the device: cpu_s of {len(checks)} kernels, h200/check_times.json",
        "time": f"measured: the mean of correct candidates in searches of {len(measured)} modules, "
        "h200/throughput.json",
        "rest, proposer, store": "measured: npu/scale.json; the proposer's is that of the npu search",
    }


def device_cases(times: Times, first: int) -> list[Named]:
    """Returns searches whose times are measured on devices."""
    search = SearchSort(EVALUATIONS, first=first)
    one = NodeSort(SLOTS_OF_DEVICE, SLOTS_OF_DEVICE, devices=1)
    eight = NodeSort(8 * SLOTS_OF_DEVICE, 8 * SLOTS_OF_DEVICE, devices=8)
    base = Case(times, search, one)

    def case(devices: int, searches: int) -> Case:
        return replace(base, nodes=devices, searches=searches)

    found = [Named("1 device", case(1, searches)) for searches in (1, 2, 4)]
    found += [Named("8 devices, one a node", case(8, searches)) for searches in (1, 4, 8, 16)]
    found += [
        Named("8 devices, one node", replace(base, node=eight, searches=searches))
        for searches in (4, 8)
    ]
    found += [Named("64 devices, one a node", case(64, searches)) for searches in (8, 32, 64, 128)]
    return found


def row(named: Named, core_hour: float, device_hour: float) -> dict[str, Any]:
    """Returns the model's prediction for a case, the mean of a few drawings."""
    case = named.case
    count = 1 if case.searches * case.search.evaluations >= MANY else DRAWINGS
    found = [simulated(replace(case, seed=seed)) for seed in range(count)]
    return {
        "name": named.name,
        "kind": "modelled",
        "searches": case.searches,
        "nodes": case.nodes,
        "slots": case.nodes * case.node.slots,
        "devices": case.nodes * case.node.devices,
        **means(found),
        "kernels_an_hour": round(HOUR * case.searches / fmean(f.seconds for f in found), 2),
        "cost": round(fmean(f.cost(case, core_hour, device_hour) for f in found), 5),
    }


def means(found: Sequence[Found]) -> dict[str, Any]:
    """Returns mean figures of several drawings of a case, as plain data."""
    return {
        name: round(fmean(getattr(f, name) for f in found), 4)
        for name in ("seconds", "throughput", "busy", "measuring", "waited", "held", "losses")
    }


def _rows(name: str) -> list[dict[str, Any]]:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))["rows"]
