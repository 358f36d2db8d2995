"""A part of a fragment that begins where none does is a fault."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing.lowered_samples import WARPS, matmul, of
from ir.nest.nest import Parameter
from ir.spec import Apply, Number

SIZES = {"M": 64, "N": 64, "K": 64}


def changed(launch, change):
    """The launch with its parts changed."""

    def block(statements):
        found = []
        for s in statements:
            if isinstance(s, to.Loop):
                s = replace(s, body=block(s.body))
            found.append(change(s) if isinstance(s, to.Part) else s)
        return tuple(found)

    return replace(launch, body=block(launch.body))


def run(launch):
    program = to.ThreadProgram(
        "f",
        ((None, (launch,)),),
        tuple(Parameter(t, "bf16", (), "input") for t in launch.tensors),
    )
    held = {t: np.zeros((64, 64), np.uint16) for t in launch.tensors}
    interpret(program, SIZES, held, WARPS, 1 << 17, 0)


def test_a_part_that_begins_elsewhere_is_a_fault():
    decided = (
        "epilogue(y, by=shared, columns=32)",
        "threads(y, count=128)",
        "warps(acc, m=4, n=1)",
    )
    launch = matmul(*decided, m=64, n=64, k=32, sizes=SIZES)
    (part,) = of(to.Part, launch)
    run(launch)
    with pytest.raises(ThreadFault, match="are no part of"):
        run(changed(launch, lambda s: replace(s, first=Apply("add", (part.first, Number(1))))))
