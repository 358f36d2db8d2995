// Instructions that the language has no functions for, in PTX for sm_80 and later.
#ifndef BACKENDS_CUDA_PTX_H_
#define BACKENDS_CUDA_PTX_H_

using u16 = unsigned short;
using u32 = unsigned int;

namespace ptx {

inline u16 bf16_of(float x) {
  u16 found;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(found) : "f"(x));
  return found;
}
inline u16 f16_of(float x) {
  u16 found;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(found) : "f"(x));
  return found;
}
inline float float_of(u16 f16) {
  float found;
  asm("cvt.f32.f16 %0, %1;" : "=f"(found) : "h"(f16));
  return found;
}

// A NaN among the operands is the result.
inline float max_nan(float a, float b) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}
inline float min_nan(float a, float b) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}

// Copies `bytes` of kBytes to shared memory, and zeros for the rest.
template <int kBytes>
inline void copy_async(u32 to, const void* from, u32 bytes) {
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(bytes) : "memory");
}
inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

inline void add_f16(void* to, u16 x) {
  asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(to), "h"(x) : "memory");
}
#if __CUDA_ARCH__ >= 900
inline void add_bf16(void* to, u16 x) {
  asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(to), "h"(x) : "memory");
}
#endif

// Matrices of 8 x 8 elements of 16 bits, whose rows begin where eight threads each say.
#define LOAD_MATRICES(name, how)                                                             \
  template <int kCount>                                                                      \
  inline void name(u32 row, u32 (&to)[kCount]) {                                             \
    if constexpr (kCount == 1)                                                               \
      asm volatile("ldmatrix.sync.aligned.m8n8.x1" how ".shared.b16 {%0}, [%1];"             \
                   : "=r"(to[0]) : "r"(row) : "memory");                                     \
    else if constexpr (kCount == 2)                                                          \
      asm volatile("ldmatrix.sync.aligned.m8n8.x2" how ".shared.b16 {%0, %1}, [%2];"         \
                   : "=r"(to[0]), "=r"(to[1]) : "r"(row) : "memory");                        \
    else                                                                                     \
      asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                      \
                   : "r"(row) : "memory");                                                   \
  }
LOAD_MATRICES(load_matrices, "")
LOAD_MATRICES(load_matrices_transposed, ".trans")
#undef LOAD_MATRICES

// c += a * b of a warp.
#define MULTIPLY(name, instruction)                                                           \
  inline void name(float& c0, float& c1, float& c2, float& c3, u32 a0, u32 a1, u32 a2, u32 a3, \
                   u32 b0, u32 b1) {                                                          \
    asm("mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "     \
        "{%0, %1, %2, %3};"                                                                   \
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)                                              \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                              \
  }
MULTIPLY(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32")
MULTIPLY(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MULTIPLY(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
#undef MULTIPLY

}  // namespace ptx

#endif  // BACKENDS_CUDA_PTX_H_
