"""The table `[sim]` of a target file: the simulator's parameters, checked against the peaks in the
general part."""

from __future__ import annotations

from ir.machine import Machine
from machines.fields.fields import AMOUNT, COUNT, RATE, SIZE, Checked, Fields, rates

ROUNDING = 1e-3  # relative tolerance for figures in a file
HELD = ("f32", "f16", "bf16", "i32", "i64", "b8", "i16", "i8", "u8")
FIELDS: Fields = {
    "clock_hz": RATE,
    "rows": SIZE,
    "columns": SIZE,
    "launch_cycles": COUNT,
    "issue_cycles": COUNT,
    "queue_length": SIZE,
    "dma": {
        "bytes_per_cycle": RATE,
        "startup_cycles": COUNT,
        "chunk_bytes": SIZE,
        "row_cycles": AMOUNT,
    },
    "dram": {
        "channels": SIZE,
        "bytes_per_cycle": RATE,
        "latency_cycles": COUNT,
        "interleave_bytes": SIZE,
    },
    "shared": {
        "bytes": SIZE,
        "banks": SIZE,
        "bytes_per_cycle": RATE,
        "latency_cycles": COUNT,
        "block_bytes": SIZE,
    },
    "mesh": {"bytes_per_cycle": RATE, "hop_cycles": COUNT},
    "matrix": {
        "rows": SIZE,
        "columns": SIZE,
        "startup_cycles": COUNT,
        "depth_per_cycle": rates(HELD),
    },
    "vector": {"startup_cycles": COUNT, "lanes": rates(HELD)},
    "special": {"startup_cycles": COUNT, "table_bits": SIZE, "lanes": rates(HELD)},
    "reduction": {"startup_cycles": COUNT, "lanes": rates(HELD)},
}


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is invalid, or inconsistent with the general
    part."""
    found = Checked(machine, "sim", FIELDS)
    table = found.table
    elements = table["rows"] * table["columns"]
    found.equal("rows", elements, "levels.grid", machine.parallel)
    step = machine.units["matrix"].step if "matrix" in machine.units else ()
    for side, steps in zip(("rows", "columns"), step, strict=False):
        found.equal(f"matrix.{side}", table["matrix"][side], "units.matrix.step", steps)
    _memory(found)
    _peaks(found, elements * table["clock_hz"])


def _memory(found: Checked) -> None:
    """Checks bytes and rates of DRAM and of shared memory, which the general part calls a cache."""
    table, spaces = found.table, found.machine.spaces
    dram, shared = table["dram"], table["shared"]
    rate = dram["channels"] * dram["bytes_per_cycle"] * table["clock_hz"]
    wanted = spaces["global"].bytes_per_second
    found.equal("dram.bytes_per_cycle", rate, "spaces.global.bytes_per_second", wanted, ROUNDING)
    if "cache" in spaces:
        found.equal("shared.bytes", shared["bytes"], "spaces.cache.bytes", spaces["cache"].bytes)
        rate = shared["banks"] * shared["bytes_per_cycle"] * table["clock_hz"]
        if wanted := spaces["cache"].bytes_per_second:
            general = "spaces.cache.bytes_per_second"
            found.equal("shared.bytes_per_cycle", rate, general, wanted, ROUNDING)


def _peaks(found: Checked, per_second: float) -> None:
    """Checks operations per second by unit and dtype. per_second: cycles of all processing
    elements."""
    table, units = found.table, found.machine.units
    matrix = table["matrix"]
    macs = 2 * matrix["rows"] * matrix["columns"]
    own = {
        "matrix": ("depth_per_cycle", {d: r * macs for d, r in matrix["depth_per_cycle"].items()}),
        "vector": ("lanes", table["vector"]["lanes"]),
        "special": ("lanes", table["special"]["lanes"]),
    }
    for unit in (u for u in own if u in units):
        field, rate = own[unit]
        for dtype, flops in units[unit].flops.items():
            path, general = f"{unit}.{field}.{dtype}", f"units.{unit}.flops.{dtype}"
            if dtype not in rate:
                found.refuse(path, "is missing", f"a rate, as `{general}` states a peak")
                continue
            found.equal(path, rate[dtype] * per_second, general, flops, ROUNDING)
