"""Sources that a backend emitted, edited to do harm; by backend. For tests."""

from __future__ import annotations

import re
from functools import cache

import pytest

from backends.registry import backend_for, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from tests.cheats.kernels import WORKLOADS
from tests.hostile import c_texts, python_texts

KERNEL = "twice"
TARGETS = {
    "sim": "npu_small",
    "cpp": "cpu",
    "cuda": "h200",
    "hip": "mi300",
    "triton": "mi300",
    "cutedsl": "h200",
}
C_LIKE = ("sim", "cpp", "cuda", "hip")
GPUS = ("cuda", "hip")
_BODY = re.compile(r"\) *\{\n")  # where the first function of a C-like source begins
_HEAD = re.compile(r"(?m)^(@triton\.jit|@cute\.kernel)")
_DEF = re.compile(r'(?s)\ndef \w+\(.*?\)(?: -> \w+)?:\n(?:    """.*?"""\n)?')


def admit(name: str, source: str) -> None:
    """BackendError("build") where a backend does not admit a source."""
    backend_for(target(TARGETS[name]), name).admit(source)


@cache
def emitted(name: str) -> str:
    """What a backend emits for a kernel."""
    backend = backend_for(target(TARGETS[name]), name)
    machine, workload = served_by(target(TARGETS[name]), backend), WORKLOADS[KERNEL]
    schedule = autoschedule(workload.spec, machine, workload.tune)
    return backend.emit(lower(workload.spec, schedule, machine, workload.tune), machine)


@cache
def hostile(name: str) -> dict[str, str]:
    """Edited sources of a backend, by what was done to them."""
    source = emitted(name)
    if name in C_LIKE:
        body = _BODY.search(source)
        assert body is not None, source
        at = body.end()
        found = {
            f"in a kernel: {what}": f"{source[:at]}  {text}\n{source[at:]}"
            for what, text in c_texts.INSIDE.items()
            if name not in GPUS or what not in c_texts.NOT_ON_GPUS
        }
        for what, text in c_texts.OUTSIDE.items():
            found[f"before all: {what}"] = f"{text}\n{source}"
            found[f"after all: {what}"] = f"{source}\n{text}\n"
        return found
    found = {str(p.id): p.values[0](source) for p in python_texts.WHOLE}
    for n, head in enumerate(_DEF.finditer(source)):
        more = python_texts.LOOPS.get(name, {})
        for what, text in {**python_texts.STATEMENTS, **more}.items():
            if what in python_texts.ADMITTED.get(name, ()):
                continue
            found[f"in function {n}: {what}"] = (
                f"{source[: head.end()]}    {text}\n{source[head.end() :]}"
            )
        if n == 1:
            break  # a kernel, and what launches it
    at = _HEAD.search(source)
    assert at is not None, source
    for what, text in python_texts.OUTSIDE.items():
        found[f"outside: {what}"] = f"{source[: at.start()]}{text}\n\n{source[at.start() :]}"
    return found


CASES = [pytest.param(n, what, id=f"{n}: {what}") for n in TARGETS for what in hostile(n)]
