"""Admission of edited CUDA C++ sources: they hold kernels only, which call only the functions of kernel.h."""

from __future__ import annotations

from backends.gpu.source.admission import COMPILER, PARAMETER, Admission

INCLUDE = '#include "kernel.h"'
ADMISSION = Admission(
    includes=(INCLUDE,),
    called=frozenset(
        """
        copy_async commit_copies wait_copies load_matrices load_matrices_transposed mma_m16n8k16
        mma_m16n8k8 mma_m16n8k32 matrix wgmma arrive_warpgroup commit_warpgroup wait_warpgroup keep_order pack_words
        fence_shared assume init_signals expect arrive_thread arrive_warp await copy_box store_box arrive_cluster sync_cluster sync_group finish_boxes
        take_number raise_flag await_raised acquire_all fence_device sync_threads release_registers take_registers
        """.split()
    ),
    parameter=rf"{PARAMETER}|\w+ \* between_blocks \w+|const __grid_constant__ TensorMap \w+",
    compiler=COMPILER | {"__grid_constant__"},
)
require_admissible = ADMISSION.require
