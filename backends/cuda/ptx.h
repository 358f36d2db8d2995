// Instructions that the language has no functions for, in PTX for sm_80 and later.
#ifndef BACKENDS_CUDA_PTX_H_
#define BACKENDS_CUDA_PTX_H_

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

namespace ptx {

// Without the three instructions that subnormal results take.
inline float exp2_flushed(float x) {
  float found;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(x));
  return found;
}
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
#if __CUDA_ARCH__ >= 900
inline u32 tf32_of(float x) {
  u32 found;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(found) : "f"(x));
  return found;
}
#endif

// A NaN among the operands is the result.
inline float max_nan(float a, float b) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}
inline float min_nan(float a, float b) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}

// Accesses of memory that tell L1 and L2 what to do with its lines. kLeast: bytes of a copy to shared
// memory from which it does as it is told.
#define LOAD(how, to, from, told, ...)                                                         \
  asm volatile("ld.global" how ".L2::cache_hint." to ", [" from "], " told ";"                 \
               : __VA_ARGS__ : "l"(at), "l"(policy()) : "memory");
#define STORE(how, type, from, ...)                                                            \
  asm volatile("st.global" how ".L2::cache_hint." type " [%0], " from ", %1;" ::"l"(at),        \
               "l"(policy()), __VA_ARGS__ : "memory");
#define HINTED(Name, how, priority, least)                                                     \
  struct Name {                                                                                \
    static constexpr int kLeast = least;                                                       \
    static u64 policy() {                                                                      \
      u64 found;                                                                               \
      asm("createpolicy.fractional.L2::" priority ".b64 %0, 1.0;" : "=l"(found));              \
      return found;                                                                            \
    }                                                                                          \
    template <class Word>                                                                      \
    static void load(Word& to, const Word* at) {                                               \
      u16 part = 0;                                                                            \
      if constexpr (sizeof(Word) == 1) LOAD(how, "u8 %0", "%1", "%2", "=h"(part))              \
      else if constexpr (sizeof(Word) == 2) LOAD(how, "u16 %0", "%1", "%2", "=h"(part))        \
      else if constexpr (sizeof(Word) == 4) LOAD(how, "u32 %0", "%1", "%2", "=r"(to))          \
      else if constexpr (sizeof(Word) == 8)                                                    \
        LOAD(how, "v2.u32 {%0, %1}", "%2", "%3", "=r"(to.x), "=r"(to.y))                       \
      else                                                                                     \
        LOAD(how, "v4.u32 {%0, %1, %2, %3}", "%4", "%5", "=r"(to.x), "=r"(to.y), "=r"(to.z),   \
             "=r"(to.w))                                                                       \
      if constexpr (sizeof(Word) < 4) to = Word(part);                                         \
    }                                                                                          \
    template <class Word>                                                                      \
    static void store(Word* at, const Word& x) {                                               \
      if constexpr (sizeof(Word) == 1) STORE(how, "u8", "%2", "h"(u16(x)))                     \
      else if constexpr (sizeof(Word) == 2) STORE(how, "u16", "%2", "h"(x))                    \
      else if constexpr (sizeof(Word) == 4) STORE(how, "u32", "%2", "r"(x))                    \
      else if constexpr (sizeof(Word) == 8) STORE(how, "v2.u32", "{%2, %3}", "r"(x.x), "r"(x.y)) \
      else                                                                                     \
        STORE(how, "v4.u32", "{%2, %3, %4, %5}", "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w))       \
    }                                                                                          \
  };
HINTED(EvictFirst, ".L1::evict_first", "evict_first", 4)
HINTED(EvictLast, ".L1::evict_last", "evict_last", 4)
HINTED(PastL1, ".L1::no_allocate", "evict_normal", 16)
#undef LOAD
#undef STORE
#undef HINTED
template <class Hint>
constexpr bool kTold = requires { Hint::policy(); };  // whether L2 is told something
template <class Hint>
inline u64 policy_of() {
  if constexpr (kTold<Hint>) return Hint::policy();
  else return 0;
}

// Copies `bytes` of kBytes to shared memory, and zeros for the rest.
template <int kBytes, class Hint>
inline void copy_async(u32 to, const void* from, u32 bytes) {
#define COPY(how, told)                                                                            \
  if constexpr (kBytes == 16)                                                                      \
    asm volatile("cp.async.cg.shared.global" how " [%0], [%1], 16, %2" told ";" ::"r"(to),          \
                 "l"(from), "r"(bytes), "l"(policy_of<Hint>()) : "memory");                        \
  else                                                                                             \
    asm volatile("cp.async.ca.shared.global" how " [%0], [%1], %4, %2" told ";" ::"r"(to),          \
                 "l"(from), "r"(bytes), "l"(policy_of<Hint>()), "n"(kBytes) : "memory");
  if constexpr (kTold<Hint>) {
    COPY(".L2::cache_hint", ", %3")
  } else {
    COPY("", "")
  }
#undef COPY
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
#define MULTIPLY(name, D, c, instruction)                                                      \
  inline void name(D& c0, D& c1, D& c2, D& c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) { \
    asm("mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "      \
        "{%0, %1, %2, %3};"                                                                    \
        : c(c0), c(c1), c(c2), c(c3)                                                           \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                               \
  }
MULTIPLY(mma_f16, float, "+f", "m16n8k16.row.col.f32.f16.f16.f32")
MULTIPLY(mma_bf16, float, "+f", "m16n8k16.row.col.f32.bf16.bf16.f32")
MULTIPLY(mma_tf32, float, "+f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MULTIPLY(mma_s8, int, "+r", "m16n8k32.row.col.s32.s8.s8.s32")
#if __CUDA_ARCH__ >= 890
MULTIPLY(mma_e4m3, float, "+f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
MULTIPLY(mma_e5m2, float, "+f", "m16n8k32.row.col.f32.e5m2.e5m2.f32")
#endif
#undef MULTIPLY

// Flags in memory, and a fence for all threads of the GPU.
inline void raise(int* flag) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
}
inline void await_raised(const int* flag) {
  int found = 0;
  while (!found) asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
}
inline void acquire_raised(const int* flag) {
  int found = 0;
  while (!found) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
}
inline void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

#if __CUDA_ARCH__ >= 900
// What threads wrote to shared memory, for instructions that read it past the registers.
inline void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Barriers in shared memory that threads and bytes arrive at (mbarriers).
inline void init_signal(u32 at, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
inline void fence_signals() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}
inline void arrive(u32 at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
// At the same place of another block of the cluster. What it tells of are reads, which are over. A
// release at the scope of the cluster would wait for all writes: a matmul took 1.7 times as long.
inline void arrive_at(u32 at, u32 block) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(at),
               "r"(block) : "memory");
}
inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
inline void expect(u32 at, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
               : "memory");
}
inline void await(u32 at, u32 parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@!p bra AGAIN;\n}" ::"r"(at), "r"(parity) : "memory");
}
template <int kThreads>
inline void sync_threads() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}
// Of several groups of threads, each by itself.
template <int kThreads>
inline void sync_group(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kThreads) : "memory");
}
// Registers move between roles, where the code is for one architecture alone.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL)
template <int kRegisters>
inline void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
#else
template <int kRegisters>
inline void release_registers() {}
template <int kRegisters>
inline void take_registers() {}
#endif

// A box of a tensor, which begins at coordinates, the last dimension's first, into shared memory, where
// its bytes arrive at a signal; with several blocks, at the same places of each block of the cluster.
// And shared memory to such a box.
#define OPEN(...) __VA_ARGS__
#define COPY_BOX(dims, how, coordinates, told, ...)                                              \
  asm volatile("cp.async.bulk.tensor." dims ".shared::cluster.global.tile.mbarrier::complete_tx" \
               "::bytes" how " [%0], [%1, {" coordinates "}], [%2]" told ";" ::"r"(to), "l"(map), \
               "r"(u32(__cvta_generic_to_shared(signal))), "l"(policy_of<Hint>()),               \
               "h"(u16((1 << kBlocks) - 1)), __VA_ARGS__ : "memory")
#define STORE_BOX(dims, how, coordinates, told, ...)                                             \
  asm volatile("cp.async.bulk.tensor." dims ".global.shared::cta.tile.bulk_group" how            \
               " [%0, {" coordinates "}], [%1]" told ";" ::"l"(map), "r"(from), "n"(0),          \
               "l"(policy_of<Hint>()), "n"(0), __VA_ARGS__ : "memory")
#define BOX(dims, coordinates, parameters, ...)                                                  \
  template <class Hint, int kBlocks>                                                             \
  inline void copy_box(u32 to, const void* map, OPEN parameters, u64* signal) {                  \
    if constexpr (kBlocks > 1 && kTold<Hint>)                                                    \
      COPY_BOX(dims, ".multicast::cluster.L2::cache_hint", coordinates, ", %4, %3", __VA_ARGS__); \
    else if constexpr (kBlocks > 1)                                                              \
      COPY_BOX(dims, ".multicast::cluster", coordinates, ", %4", __VA_ARGS__);                   \
    else if constexpr (kTold<Hint>)                                                              \
      COPY_BOX(dims, ".L2::cache_hint", coordinates, ", %3", __VA_ARGS__);                       \
    else COPY_BOX(dims, "", coordinates, "", __VA_ARGS__);                                       \
  }                                                                                              \
  template <class Hint>                                                                          \
  inline void store_box(const void* map, u32 from, OPEN parameters) {                            \
    if constexpr (kTold<Hint>)                                                                   \
      STORE_BOX(dims, ".L2::cache_hint", coordinates, ", %3", __VA_ARGS__);                      \
    else STORE_BOX(dims, "", coordinates, "", __VA_ARGS__);                                      \
  }
BOX("1d", "%5", (int a), "r"(a))
BOX("2d", "%5, %6", (int a, int b), "r"(a), "r"(b))
BOX("3d", "%5, %6, %7", (int a, int b, int c), "r"(a), "r"(b), "r"(c))
BOX("4d", "%5, %6, %7, %8", (int a, int b, int c, int d), "r"(a), "r"(b), "r"(c), "r"(d))
BOX("5d", "%5, %6, %7, %8, %9", (int a, int b, int c, int d, int e), "r"(a), "r"(b), "r"(c), "r"(d), "r"(e))
#undef OPEN
#undef COPY_BOX
#undef STORE_BOX
#undef BOX
// Waits until shared memory was read.
inline void finish_boxes() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// D += A * B of four warps, in flight until it is waited for. A thread holds two rows of D, two of
// every 8 columns. B is a matrix in shared memory (`matrix` of kernel.h); A is one, or registers.
inline void arrive_warpgroup() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline void commit_warpgroup() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
inline void wait_warpgroup() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler makes a word here.
inline void keep_word(u32& x) { asm volatile("" : "+r"(x)); }
// What x is computed from is computed before a wait that follows: the compiler may move a wait to an earlier
// place, not past a branch. Nothing else happens, whatever x is.
inline void keep_order(float x) {
  asm volatile("{\n.reg .pred p;\nsetp.eq.f32 p, %0, 0fCF000000;\n@p nanosleep.u32 0;\n}" ::"f"(x) : "memory");
}

#define D8(c, i) c(top[i]), c(top[i + 1]), c(bottom[i]), c(bottom[i + 1])
#define D16(c, i) D8(c, i), D8(c, i + 2)
#define D32(c, i) D16(c, i), D16(c, i + 4)
#define D64(c, i) D32(c, i), D32(c, i + 8)
#define D128(c, i) D64(c, i), D64(c, i + 16)
#define D256(c, i) D128(c, i), D128(c, i + 32)
#define P8 "%0, %1, %2, %3"
#define P16 P8 ", %4, %5, %6, %7"
#define P32 P16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define P64 P32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define P128 P64 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define P256 P128 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
// What follows the operands: signs of floats, and of 16-bit operands the contiguous dimensions.
#define FLAGS(f) ", 1, 1, %" #f
#define FLAG(f) ", %" #f
#define SIGNS(f) ", 1, 1"
#define NONE(f) ""
// The last six arguments are the numbers of the operands after D.
#define WGMMA(name, columns, type, T, c, first, second, n0, n1, n2, n3, n4, n5)                    \
  template <>                                                                                      \
  struct name<columns> {                                                                           \
    template <int kA, int kB>                                                                      \
    static inline void multiply(T* top, T* bottom, u64 left, u64 right) {                          \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n"     \
                   #columns type " {" P##columns "}, %" #n0 ", %" #n1 ", p" first(n2) second(n3) ";\n}" \
                   : D##columns(c, 0) : "l"(left), "l"(right), "n"(kA), "n"(kB));                  \
    }                                                                                              \
    template <int kB>                                                                              \
    static inline void multiply(T* top, T* bottom, const u32* a, u64 right) {                      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n"     \
                   #columns type " {" P##columns "}, {%" #n0 ", %" #n1 ", %" #n2 ", %" #n3         \
                   "}, %" #n4 ", p" first(n5) ";\n}"                                               \
                   : D##columns(c, 0)                                                              \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right), "n"(kB));             \
    }                                                                                              \
  };
#define WGMMAS(name, type, T, c, first, second)                             \
  template <int kColumns>                                                   \
  struct name;                                                              \
  WGMMA(name, 8, type, T, c, first, second, 4, 5, 6, 7, 8, 9)               \
  WGMMA(name, 16, type, T, c, first, second, 8, 9, 10, 11, 12, 13)          \
  WGMMA(name, 32, type, T, c, first, second, 16, 17, 18, 19, 20, 21)        \
  WGMMA(name, 64, type, T, c, first, second, 32, 33, 34, 35, 36, 37)        \
  WGMMA(name, 128, type, T, c, first, second, 64, 65, 66, 67, 68, 69)       \
  WGMMA(name, 256, type, T, c, first, second, 128, 129, 130, 131, 132, 133)
WGMMAS(wgmma_f16, "k16.f32.f16.f16", float, "+f", FLAGS, FLAG)
WGMMAS(wgmma_bf16, "k16.f32.bf16.bf16", float, "+f", FLAGS, FLAG)
WGMMAS(wgmma_tf32, "k8.f32.tf32.tf32", float, "+f", SIGNS, NONE)
WGMMAS(wgmma_e4m3, "k32.f32.e4m3.e4m3", float, "+f", SIGNS, NONE)
WGMMAS(wgmma_e5m2, "k32.f32.e5m2.e5m2", float, "+f", SIGNS, NONE)
WGMMAS(wgmma_s8, "k32.s32.s8.s8", int, "+r", NONE, NONE)
#undef WGMMAS
#undef WGMMA
#endif

}  // namespace ptx

#endif  // BACKENDS_CUDA_PTX_H_
