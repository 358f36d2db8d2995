"""The table `[triton]` of a target file: the compiler's target, limits, and the time model's
figures."""

from __future__ import annotations

from dataclasses import replace

from backends.table import (
    AMOUNT,
    COUNT,
    FLAG,
    GUIDE,
    RATE,
    SHARE,
    SIZE,
    Checked,
    Kind,
    one_of,
    words,
)
from ir.errors import KernelError
from ir.machine import Machine
from ir.spec import DTYPES

WORD = 4  # bytes of a register
VENDORS = ("NVIDIA ", "AMD ")


def _names(value: object) -> bool:
    """Whether a value names devices: one name, or several."""
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(n, str) and n.strip() == n != "" for n in names)


FIELDS = {
    "backend": one_of("cuda", "hip"),
    "arch": Kind(
        "a number for cuda (90), a text for hip ('gfx942')", lambda v: type(v) in (int, str)
    ),
    "warp": one_of(32, 64),
    "device_name": Kind("the whole name of the device, or a list of such names", _names),
    **dict.fromkeys(
        (
            "partitions",
            "shared_bytes_per_program",
            "shared_bytes_per_unit",
            "shared_granularity",
            "registers_per_unit",
            "register_granularity",
            "registers_per_thread",
            "warps_per_unit",
            "programs_per_unit",
            "threads_per_program",
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
    "step_cycles": AMOUNT,
    "barrier_cycles": AMOUNT,
    "copies_async": FLAG,
    "matrix_dtypes": words(tuple(DTYPES)),
    "matrix_share_below": SHARE,
    "thread_product_share": SHARE,
}


def device_names(machine: Machine) -> tuple[str, ...]:
    """What the driver calls the devices that are this machine, without the vendor's name."""
    found = machine.details["triton"]["device_name"]
    return tuple(map(own_name, [found] if isinstance(found, str) else found))


def own_name(device: str) -> str:
    """A device's name without its vendor's, which drivers put before it or do not."""
    return next((device.removeprefix(v) for v in VENDORS if device.startswith(v)), device)


def check(machine: Machine) -> None:
    """KernelError at the first field that is wrong, or that the general part contradicts."""
    found = Checked(machine, "triton", FIELDS)
    table = found.table
    backend, arch = table["backend"], table["arch"]
    if not (arch > 0 if isinstance(arch, int) else arch.startswith("gfx")) or (
        isinstance(arch, int) != (backend == "cuda")
    ):
        found.refuse("arch", f"is {arch!r}, for backend {backend!r}", FIELDS["arch"].allowed)
    if backend == "cuda" and table["warp"] != 32:
        found.refuse("warp", f"is {table['warp']}, for backend 'cuda'", "32")
    if table["copies_async"] and "copy_threads_per_cycle" not in table:
        found.refuse("copy_threads_per_cycle", "is missing", RATE.allowed)
    _agree(found)


def _agree(found: Checked) -> None:
    """What the table and the general part both say, and limits that hold others."""
    table, machine = found.table, found.machine
    found.equal("warp", table["warp"], "levels.warp", machine.warp)
    found.equal(
        "threads_per_program", table["threads_per_program"], "levels.thread", machine.threads
    )
    program = table["shared_bytes_per_program"]
    found.equal("shared_bytes_per_program", program, "spaces.scratch.bytes", machine.scratch_bytes)
    found.at_most(
        "shared_bytes_per_program",
        program,
        "triton.shared_bytes_per_unit",
        table["shared_bytes_per_unit"],
    )
    if "register" not in machine.spaces:
        found.refuse(
            "registers_per_unit",
            "is given, and `spaces.register` is missing",
            "both: programs have registers",
        )
    held = WORD * table["registers_per_unit"]
    found.equal(
        "registers_per_unit", held, "spaces.register.bytes", machine.spaces["register"].bytes
    )
    found.at_most(
        "threads_per_program",
        table["threads_per_program"],
        "triton.warps_per_unit",
        table["warps_per_unit"] * table["warp"],
    )
    found.at_most(
        "programs_per_unit",
        table["programs_per_unit"],
        "triton.warps_per_unit",
        table["warps_per_unit"],
    )
    if "matrix" in machine.units and any(n & (n - 1) for n in machine.units["matrix"].step):
        raise KernelError(
            f"field `units.matrix.step` is {list(machine.units['matrix'].step)}",
            allowed="powers of two, as blocks of Triton are",
            hint=GUIDE,
        )
    peaks = machine.units["matrix"].flops if "matrix" in machine.units else {}
    for dtype in table["matrix_dtypes"]:
        if dtype not in peaks:
            found.refuse(
                "matrix_dtypes",
                f"has {dtype!r}, and `units.matrix.flops.{dtype}` is missing",
                ", ".join(peaks),
            )
