"""Sources that are no kernels: a build or a run refuses each, and nothing else comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from backends.backend import Admits, Backend, BackendError
from backends.measure import check
from ir.machine import Machine
from ir.nest.nest import LoopNest
from testing.conformance.case import SEED, Case

# Of a C-like source: what would compile and change no result, but reaches beyond a kernel's numbers.
# Each is refused by admission alone, so a backend that admits everything passes none of them.
_OUTSIDE = {  # before the first line
    "another header": "#include <stddef.h>",
    "a macro": "#define OTHER(x) ((x) + 1)",
    "a variable that outlives a launch": "static int kept = 0;",
    "a type": "struct Other { int field; };",
    "a function of another library": 'extern "C" int system(const char* command);',
}
_INSIDE = {  # at the start of the first function
    "a cast to a pointer": "if (false) { *reinterpret_cast<volatile char*>(8) = 1; }",
    "a plain cast to a pointer": "if (false) { *(volatile char*)8 = 1; }",
    "an address": "if (false) { int own = 0; int* at = &own; *at = 1; }",
    "inline assembly": 'asm volatile("");',
    "a call of the compiler's own": "if (false) { __builtin_trap(); }",
    "an allocation": "if (false) { delete new int(1); }",
    "a variable that is kept": "static int kept_here = 0; kept_here += 1;",
    "an attribute": "__attribute__((unused)) int unused_here = 0;",
    "a macro in digraphs": "\n%:define OTHER_HERE 1\n",
}
_BODY = re.compile(r"\) *\{\n")  # where the first function of a C-like source begins


def hostile_sources(source: str, other: str) -> dict[str, str]:
    """Edits of a source by name. other: a source of a kernel with other tensors."""
    half = source[: len(source) // 2]
    lines = source.splitlines()
    third = len(lines) // 3  # so many that some of them have an effect
    without = "\n".join((*lines[:third], *lines[2 * third :])) + "\n"
    return {
        "nothing": "",
        "blank lines": "\n\n",
        "half of it": half,
        "words before it": f"this is no kernel ( {{\n{source}",
        "brackets without end": "(" * 100_000,
        "a zero byte": f"{half}\0{source[len(half) :]}",
        "other letters": source.replace("e", "\N{CYRILLIC SMALL LETTER IE}"),
        "lines that are gone": without,
        "another kernel": other,
    }


def reaching_sources(source: str) -> dict[str, str]:
    """Edits of a C-like source that reach beyond its kernels, by name; none of another language."""
    body = _BODY.search(source)
    if '#include "' not in source or body is None:
        return {}
    at = body.end()
    outside = {name: f"{text}\n{source}" for name, text in _OUTSIDE.items()}
    inside = {name: f"{source[:at]}  {text}\n{source[at:]}" for name, text in _INSIDE.items()}
    return outside | inside


def hostile_problems(
    backend: Backend, machine: Machine, case: Case, other: LoopNest, folder: Path
) -> Iterator[str]:
    """Where a source that was spoiled passes, or fails as anything but a fault of the candidate."""
    source = backend.emit(case.nest(machine), machine)
    reaching = reaching_sources(source)
    yield from unadmitted(backend, source, reaching)
    spoiled = hostile_sources(source, backend.emit(other, machine)) | reaching
    yield from passing(backend, machine, case, spoiled, folder)


def unadmitted(backend: Backend, source: str, reaching: Mapping[str, str]) -> Iterator[str]:
    """Where admission refuses what the backend emits, or takes what reaches beyond a kernel. reaching: by
    name."""
    if not isinstance(backend, Admits):
        yield "it has no `admit`"
        return
    try:
        backend.admit(source)
    except BackendError as e:
        yield f"what it emits is not admitted: {e.reason}"
    for name, text in reaching.items():
        try:
            backend.admit(text)
        except BackendError:
            continue
        yield f"{name}: it is admitted"


def passing(
    backend: Backend, machine: Machine, case: Case, sources: Mapping[str, str], folder: Path
) -> Iterator[str]:
    """Of sources by name, those that are not refused with a reason."""
    nest = case.nest(machine)
    for number, (name, text) in enumerate(sources.items()):
        own = folder / str(number)
        own.mkdir()
        try:
            built = backend.build(text, nest, machine, own)
            for sizes in case.workload.checks:
                check(backend, built, nest, machine, nest.spec, sizes, SEED)
        except BackendError as e:
            if not e.reason.strip():
                yield f"{name}: refused at stage {e.stage!r} without a reason"
        except Exception as e:
            yield f"{name}: {type(e).__name__} instead of a BackendError: {e}"
        else:
            yield f"{name}: it was built, and its results are right"
