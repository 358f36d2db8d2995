"""Signals (mbarriers in shared memory), and TMA copies of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Int8, Int16, Int32
from cutlass._mlir.dialects import cute as cute_ir
from cutlass._mlir.dialects import cute_nvgpu, llvm, nvvm

TENSOR_MAP_ALIGNMENT = 64
WARP = 32


def init_signals(signal: Any, stages: int, arrivals: Any) -> None:
    """Initialises signals whose phases complete after a number of arrivals."""
    for n in range(stages):
        cute.arch.mbarrier_init(signal + n, arrivals)
    cute.arch.mbarrier_init_fence()
    cute.arch.fence_proxy("async.shared", space="cta")


@cute.jit
def arrive_warp(signal: Any) -> None:
    """One thread of a warp arrives at a signal, after all threads of the warp."""
    cute.arch.sync_warp()
    if cute.arch.thread_idx()[0] % WARP == 0:
        cute.arch.mbarrier_arrive(signal)


@cute.jit
def arrive_cluster(signal: Any, blocks: cutlass.Constexpr) -> None:
    """A warp arrives at the signals of all blocks of the cluster, one thread for each, after all
    threads of the warp."""
    cute.arch.sync_warp()
    block = cute.arch.thread_idx()[0] % WARP
    if block < blocks:
        cute.arch.mbarrier_arrive(signal, block)


def sync_cluster() -> None:
    """A barrier of all threads of the cluster."""
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def _address(tensor_map: Any) -> Any:
    """The address of a tensor map (128 bytes) among the kernel's parameters."""
    where = cute_ir.PtrType.get(Int8.mlir_type, cutlass.AddressSpace.generic, TENSOR_MAP_ALIGNMENT)
    made = cute_nvgpu.atom_make_exec_tma(tensor_map._trait.value)
    return cute_nvgpu.get_tma_desc_addr(where, made).to_llvm_ptr()


def load_box(to: Any, tensor_map: Any, at: Sequence[Any], signal: Any, blocks: int = 1) -> None:
    """Copies a box of a tensor to shared memory; its bytes arrive at a signal. at: the start of the
    box, last dimension first. blocks: number of blocks of a cluster that get it at the same address
    (multicast)."""
    several = Int16((1 << blocks) - 1).ir_value() if blocks > 1 else None
    place = to.to_llvm_ptr()
    if several is not None:  # the same offset in each thread block
        place = llvm.addrspacecast(llvm.PointerType.get(cutlass.AddressSpace.dsmem), place)
    nvvm.cp_async_bulk_tensor_shared_cluster_global(
        place,
        _address(tensor_map),
        [Int32(a).ir_value() for a in at],
        signal.to_llvm_ptr(),
        [],
        multicast_mask=several,
        is_cta_only=several is None,
    )


def store_box(tensor_map: Any, source: Any, at: Sequence[Any]) -> None:
    """Copies shared memory to a box of a tensor."""
    nvvm.cp_async_bulk_tensor_global_shared_cta(
        _address(tensor_map), source.to_llvm_ptr(), [Int32(a).ir_value() for a in at]
    )
