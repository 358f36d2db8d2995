"""Figures of the compiled launches of a kernel, for any language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backends.backend import BackendError
from backends.gpu.assembly.mix import Code
from backends.gpu.model.builds import CompiledLaunch
from backends.gpu.source.launches import Call


def compiled_launches(
    calls: Iterable[Call],
    code: Mapping[str, Code],
    stages: Mapping[str, int],
    warp: int,
    seconds: float,
) -> list[CompiledLaunch]:
    """Each launch once, in the order of first calls.

    code: of each launch.
    stages: the most of any of its loops.
    warp: threads of a warp.
    seconds: compile time of all launches, which is divided equally.

    Raises BackendError("build") where the source lacks a launch.
    """
    done: dict[str, CompiledLaunch] = {}
    share = seconds / max(len(code), 1)
    for call in calls:
        if call.name not in code:
            raise BackendError("build", f"the source has no kernel `{call.name}`")
        done.setdefault(
            call.name,
            CompiledLaunch(
                name=call.name,
                programs=call.grid,
                warps=call.block // warp,
                stages=stages[call.name],
                shared=call.shared,
                seconds=share,
                code=code[call.name],
            ),
        )
    return list(done.values())
