"""Admission of edited sources: kernels only, which call the functions of kernel.h."""

from __future__ import annotations

from backends.gpu.source.admission import Admission
from backends.hip.spelling import MFMA, SCALED

ADMISSION = Admission(
    includes=("#include <hip/hip_runtime.h>", '#include "kernel.h"'),
    called=frozenset(f"mfma_{shape}" for shape in MFMA)
    | {f"mfma_scaled_{shape}" for shape in SCALED}
    | {
        "read",
        "write",
        "place",
        "copy_async",
        "assume",
        "interleave",
        "commit_copies",
        "wait_copies",
    },
)
