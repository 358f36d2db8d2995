"""The table `[gpu]` of a target file: limits of a multiprocessor, and figures of the time model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import HINTS
from ir.spec import DTYPES
from machines.fields import faults
from machines.fields.fields import (
    AMOUNT,
    COUNT,
    FLAG,
    GUIDE,
    RATE,
    SHARE,
    SIZE,
    Checked,
    Kind,
    words,
)
from machines.gpu.matrix_instructions import families, of_machine

WORD = 4  # bytes of a register
VENDORS = ("NVIDIA ", "AMD ")


def _names(value: object) -> bool:
    """Whether a value is a device name or a non-empty list of device names."""
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(n, str) and n.strip() == n != "" for n in names)


FIELDS = {
    "device_name": Kind("the whole name of the device, or a list of such names", _names),
    **dict.fromkeys(
        (
            "partitions",
            "shared_bytes_per_unit",
            "shared_granularity",
            "register_granularity",
            "registers_per_thread",
            "warps_per_unit",
            "programs_per_unit",
            "sector_bytes",
            "matrix_rows",
            "matrix_warps",
        ),
        SIZE,
    ),
    "shared_reserved": COUNT,
    "programs_of_one_warp": replace(SIZE, optional=True),
    **dict.fromkeys(
        (
            "clock_hz",
            "memory_latency_ns",
            "cache_latency_ns",
            "shared_latency_ns",
            "shared_bytes_per_cycle",
            "load_threads_per_cycle",
            "cache_bytes_per_cycle",
        ),
        RATE,
    ),
    "copy_threads_per_cycle": replace(RATE, optional=True),
    "lds_copy_bytes": replace(SIZE, optional=True),
    "step_cycles": AMOUNT,
    "barrier_cycles": AMOUNT,
    "copies_async": FLAG,
    "matrix_dtypes": words(tuple(DTYPES)),
    "instructions": replace(words(families()), optional=True),
    "tensor_columns": replace(SIZE, optional=True),
    "cluster_blocks": replace(SIZE, optional=True),
    "cache_hints": replace(words(HINTS), optional=True),
    "matrix_share_below": SHARE,
    "thread_product_share": SHARE,
}


def device_names(machine: Machine) -> tuple[str, ...]:
    """The driver's names of the devices that are this machine, without the vendor's name."""
    found = machine.details["gpu"]["device_name"]
    return tuple(map(own_name, [found] if isinstance(found, str) else found))


def own_name(device: str) -> str:
    """A device name without the vendor's prefix, which some drivers add."""
    return next((device.removeprefix(v) for v in VENDORS if device.startswith(v)), device)


def facts(machine: Machine) -> Mapping[str, Any]:
    """The table, with the multiprocessor's limits from the general part of the target file: threads
    of a warp and of a thread block, shared memory, registers."""
    return {
        **machine.details["gpu"],
        "warp": machine.warp,
        "threads_per_program": machine.threads,
        "shared_bytes_per_program": machine.on_chip_bytes,
        "registers_per_unit": machine.spaces["register"].bytes // WORD,
    }


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is wrong or contradicts the general part."""
    found = Checked(machine, "gpu", FIELDS)
    table = found.table
    if table["copies_async"] and "copy_threads_per_cycle" not in table:
        found.refuse("copy_threads_per_cycle", "is missing", RATE.allowed)
    if "lds" in machine.engines and "lds_copy_bytes" not in table:
        found.refuse("lds_copy_bytes", "is missing, and `engines` has 'lds'", SIZE.allowed)
    for field, there in (
        ("spaces.cache", "cache" in machine.spaces),  # the time model counts traffic through it
        ("units.matrix", "matrix" in machine.units),  # seed schedules of matmuls use it
    ):
        if not there:
            what = f"field `{field}` is missing"
            faults.refuse(KernelError(what, allowed="a table", hint=GUIDE))
    needed = machine.on_chip_bytes + table["shared_reserved"]
    if needed > table["shared_bytes_per_unit"]:
        found.refuse(
            "shared_bytes_per_unit",
            f"is {table['shared_bytes_per_unit']}, less than `spaces.shared.bytes` with "
            "`shared_reserved`",
            f"{needed} at least",
        )
    threads = table["warps_per_unit"] * machine.warp
    if machine.threads > threads:
        found.refuse(
            "warps_per_unit",
            f"makes {threads} threads, less than `levels.thread`",
            f"{-(-machine.threads // machine.warp)} at least",
        )
    found.at_most(
        "programs_per_unit",
        table["programs_per_unit"],
        "gpu.warps_per_unit",
        table["warps_per_unit"],
    )
    peaks = machine.units["matrix"].flops if "matrix" in machine.units else {}
    for dtype in table["matrix_dtypes"]:
        if dtype not in peaks:
            found.refuse(
                "matrix_dtypes",
                f"has {dtype!r}, and `units.matrix.flops.{dtype}` is missing",
                ", ".join(peaks),
            )
    _check_instructions(machine, found)


def _check_instructions(machine: Machine, found: Checked) -> None:
    """Refuses matrix instructions whose threads are not whole warps, and tables with a dtype that
    no instruction takes."""
    instructions = of_machine(machine)
    for one in instructions:
        if one.threads % machine.warp:
            found.refuse(
                "instructions",
                f"has {one.family!r} of {one.threads} threads, and `levels.warp` is {machine.warp}",
                "families whose threads are whole warps",
            )
        if one.c.tensor and "tensor_columns" not in found.table:
            found.refuse(
                "tensor_columns",
                f"is missing, and results of {one.family!r} lie in tensor memory",
                "columns of tensor memory that a multiprocessor has",
            )
    taken = {one.a.dtype for one in instructions}
    for dtype in found.table["matrix_dtypes"] if instructions else ():
        if dtype not in taken:
            found.refuse(
                "instructions",
                f"has none for {dtype!r}, which is in `gpu.matrix_dtypes`",
                "families that take all of them",
            )
