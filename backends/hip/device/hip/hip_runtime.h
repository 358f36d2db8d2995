// The part of HIP's device interface that kernels use, for clang without ROCm: a source compiles in
// a tenth of the time that the real header takes. Functions that are no instruction are those of
// AMD's device library, ocml.
#ifndef BACKENDS_HIP_DEVICE_HIP_RUNTIME_H_
#define BACKENDS_HIP_DEVICE_HIP_RUNTIME_H_

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
// The threads of a block, all of them, and the least wavefronts of a SIMD, which bounds registers.
#define __launch_bounds__(threads, waves) \
  __attribute__((amdgpu_flat_work_group_size(threads, threads), amdgpu_waves_per_eu(waves)))
#define __forceinline__ inline __attribute__((always_inline))

#include "clang_hip_math.h"

#pragma clang force_cuda_host_device begin

// The numbers of a work-item, as in HIP: members that read a register each.
#define PLACE(name, read)                                              \
  struct name##_of {                                                   \
    __declspec(property(get = at_x)) unsigned x;                       \
    inline unsigned at_x() const { return read; }                      \
  };                                                                   \
  extern const __device__ __attribute__((weak)) name##_of name;
PLACE(threadIdx, __builtin_amdgcn_workitem_id_x())
PLACE(blockIdx, __builtin_amdgcn_workgroup_id_x())
PLACE(blockDim, __builtin_amdgcn_workgroup_size_x())
// The first hidden argument of code objects of version 5 is the number of blocks.
PLACE(gridDim, *(const __attribute__((address_space(4))) unsigned*)__builtin_amdgcn_implicitarg_ptr())
#undef PLACE

inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

inline unsigned place_in_wave() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
// What another thread of the wavefront holds.
template <class T>
inline T __shfl(T x, int thread) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  int words[kWords] = {};
  __builtin_memcpy(words, &x, sizeof(T));
#pragma unroll
  for (int n = 0; n < kWords; ++n) words[n] = __builtin_amdgcn_ds_bpermute(thread << 2, words[n]);
  __builtin_memcpy(&x, words, sizeof(T));
  return x;
}
template <class T>
inline T __shfl_up(T x, unsigned distance) {
  const int own = place_in_wave(), from = own - int(distance);
  return __shfl(x, from < 0 ? own : from);
}
template <class T>
inline T __shfl_xor(T x, int distance) {
  return __shfl(x, int(place_in_wave()) ^ distance);
}

template <class T>
inline T atomicAdd(T* to, T x) {
  return __hip_atomic_fetch_add(to, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
inline float unsafeAtomicAdd(float* to, float x) { return atomicAdd(to, x); }
inline unsigned atomicCAS(unsigned* to, unsigned old, unsigned x) {
  __hip_atomic_compare_exchange_strong(to, &old, x, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return old;
}

inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }

#pragma clang force_cuda_host_device end

#endif  // BACKENDS_HIP_DEVICE_HIP_RUNTIME_H_
