"""A source as a part of a HIP program: its kernels, a function that launches them, and the included
headers.

Emitted and evaluated sources have no host code; this adds it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from backends.gpu.source.launches import calls, constants
from backends.hip import clang
from backends.hip.build import far, launches
from backends.hip.spelling import templates
from backends.parameters import Parameter

_HEADER = """\
/* {what}
   To compile it: hipcc {flags} -c {name}.hip */
#ifndef {guard}
#define {guard}
#include <hip/hip_runtime_api.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Enqueues the kernel on tensors that lie row-major in memory, from multiples of 128 bytes on:
{tensors} */
hipError_t {name}_run({parameters}, hipStream_t stream);

#ifdef __cplusplus
}}
#endif
#endif
"""
_SOURCE = """\
#include "{name}.h"

{defines}

{kernels}
extern "C" hipError_t {name}_run({parameters}, hipStream_t stream) {{
{body}
  return hipSuccess;
}}
"""


def program_files(
    name: str,
    what: str,
    tensors: Sequence[tuple[Parameter, Sequence[int]]],
    file: Path,
    sizes: Mapping[str, int],
    architecture: str,
) -> Mapping[str, str]:
    """A header, a HIP source and the included headers, by name.

    what: a line that describes the kernel. tensors: each with its shape, in the kernel's order.
    file: a built source. sizes: with the source's names. Raises BackendError("emit") if the
    kernel's name is that of an included header.
    """
    beside = {h.name: h.read_text(encoding="utf-8") for h in clang.headers()}
    if f"{name}.h" in beside:
        raise BackendError("emit", f"sources include another `{name}.h`; rename the kernel")
    given = launches(file)
    known = {**sizes, **constants(given, sizes)}
    defines = [f"#define {n} {v}" for n, v in constants(given, sizes).items()]
    defines += ["#define FAR 1"] * far(given["bytes"], sizes)
    told = {
        "what": what.replace("*/", "* /"),
        "name": name,
        "guard": f"{name.upper()}_KERNEL_H",
        "flags": " ".join((*clang.CODE_FLAGS, f"--offload-arch={architecture}")),
        "parameters": ", ".join(
            f"{'const ' if p.role == 'input' else ''}void* {p.name}_ptr" for p, _ in tensors
        ),
        "tensors": "\n".join(
            f"   {p.name}_ptr: {p.dtype}{list(shape)}, {p.role}" for p, shape in tensors
        ),
        "defines": "\n".join(defines),
        "kernels": file.read_text(encoding="utf-8"),
        "body": "\n".join(_body(given, known, [p for p, _ in tensors])),
    }
    texts = {f"{name}.h": _HEADER.format(**told), f"{name}.hip": _SOURCE.format(**told)}
    return texts | beside


def _body(
    given: Mapping[str, Any], known: Mapping[str, int], tensors: Sequence[Parameter]
) -> Iterator[str]:
    """The launches in order, with a loop over the steps of each recurrence."""
    written = {p.name for p in tensors if p.role != "input"}
    for group in given["groups"]:
        made = list(calls({**given, "groups": [group]}, known))
        one_step, repeat = len(group["launches"]), group["repeat"]
        steps = len(made) // one_step
        pad = "  "
        if repeat:
            order = "n = {0}; n-- > 0;" if repeat["backwards"] else "n = 0; n < {0}; ++n"
            yield f"{pad}for (int {order.format(steps)}) {{"
            pad += "  "
        for call, launch in zip(made, group["launches"], strict=False):
            if not call.grid:
                continue
            numbers = call.arguments[: len(launch["arguments"])]
            passed = [_pointer(tensors[n], given["dtypes"][n], written) for n in call.tensors]
            passed += [*map(str, numbers), *["n"] * launch["step"]]
            yield f"{pad}hipLaunchKernelGGL({call.name}, dim3({call.grid}), dim3({call.block}), {call.shared}, stream,"
            yield f"{pad}                   {', '.join(passed)});"
            yield f"{pad}if (hipError_t failed = hipGetLastError()) return failed;"
        if repeat:
            yield "  }"


def _pointer(p: Parameter, dtype: str, written: Collection[str]) -> str:
    """A tensor as a kernel's argument."""
    of = templates().table("threads/names.j2", "TYPES")[dtype]
    return f"static_cast<{'' if p.name in written else 'const '}{of}*>({p.name}_ptr)"
