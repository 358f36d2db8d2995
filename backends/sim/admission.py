"""Admission: the parts of C++ and of the device interface that a kernel's text may use."""

from __future__ import annotations

from backends.shared import admission
from backends.shared.admission import NUMBERS, Rules
from backends.shared.texts import BUILTINS

INTERNAL = frozenset("std Launch Program Issued Number Pe Args Misuse List".split())
CALLED = BUILTINS | frozenset(
    """
    KERNEL if while for switch return co_await co_return bool int float double Index Slice Box Group
    Region Outside least tiles pad run_of indirect scattered size tensor id count rows columns
    buffer next tile fix rename window shift load load_shared number store add send receive map
    fill iota bucketize take reduce scan matmul barrier
    """.split()
)
RULES = Rules(
    include='#include "device.h"',
    what="numbers, tiles and commands",
    starts=("using", "namespace", "constexpr", "enum", "KERNEL", ";", "}"),
    types=NUMBERS
    | frozenset(
        """
        Axis Box Buffer Dtype Reduction Group Index List Op Operand Operands Outside Region Slice Span
        Step Tensor Tile
        """.split()
    ),
    # Only the simulator uses these members, and types with such members.
    members=frozenset("slot first_slot room handle sizes axes at shape".split()),
    names=INTERNAL,
    namespaces=frozenset({"device"}),
    called=CALLED,
    made=("Buffer", "Tensor", "Tile"),  # created by `pe.buffer`, `tile`, `args.tensor`
)


def require_admissible(source: str) -> None:
    """Raises BackendError("build") at the first construct that a kernel may not use."""
    admission.require_admissible(source, RULES)
