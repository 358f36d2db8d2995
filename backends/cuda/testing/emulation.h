// Device code on the CPU: each thread of a block is a fiber, which runs until it waits for others.
// Included before a kernel, in place of ptx.h. Copies that run ahead arrive when they are waited for.
#ifndef BACKENDS_CUDA_PTX_H_
#define BACKENDS_CUDA_PTX_H_

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <deque>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __launch_bounds__(...)
#define __shared__
#define __align__(bytes)
#define __CUDA_ARCH__ 900

using u16 = uint16_t;
using u32 = uint32_t;
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct Place { unsigned x, y, z; };

inline Place threadIdx, blockIdx, gridDim;
alignas(128) unsigned char shared_bytes[1 << 18];

namespace emulated {

struct Copy { u32 to; const void* from; u32 bytes, whole; };
struct Waiting { unsigned arrived = 0, generation = 0; };
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done = false;
  std::deque<std::vector<Copy>> copies{1};  // groups in flight, the open one last
};
struct Warp {
  Waiting waiting;
  alignas(16) unsigned char held[2][32][64];
};

inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline Waiting whole;
inline ucontext_t scheduler;
inline unsigned current;

inline void yield() { swapcontext(&fibers[current].context, &scheduler); }
inline void wait(Waiting& at, unsigned count) {
  const unsigned generation = at.generation;
  if (++at.arrived == count) {
    at.arrived = 0;
    ++at.generation;
  }
  while (at.generation == generation) yield();
}

// What all threads of the warp give.
template <class T>
struct All {
  T of[32];
};
template <class T>
inline All<T> exchanged(const T& mine) {
  static_assert(sizeof(T) <= 64);
  Warp& warp = warps[current / 32];
  const unsigned buffer = warp.waiting.generation % 2;
  memcpy(warp.held[buffer][current % 32], &mine, sizeof(T));
  wait(warp.waiting, 32);
  All<T> found;
  for (int n = 0; n < 32; ++n) memcpy(&found.of[n], warp.held[buffer][n], sizeof(T));
  return found;
}

template <class... Parameters>
struct Started {
  static inline void (*kernel)(Parameters...);
  static inline std::tuple<Parameters...> given;
  static void body() {
    std::apply(kernel, given);
    fibers[current].done = true;
    yield();
  }
};

template <class... Parameters, size_t... N>
inline void launch(void (*kernel)(Parameters...), int grid, int block, void** arguments,
                   std::index_sequence<N...>) {
  using Start = Started<Parameters...>;
  Start::kernel = kernel;
  Start::given = {*static_cast<Parameters*>(arguments[N])...};
  gridDim = {unsigned(grid), 1, 1};
  for (int number = 0; number < grid; ++number) {
    blockIdx = {unsigned(number), 0, 0};
    memset(shared_bytes, 0xff, sizeof(shared_bytes));
    fibers = std::vector<Fiber>(block);
    warps = std::vector<Warp>(block / 32);
    whole = {};
    for (Fiber& f : fibers) {
      constexpr size_t kStack = 1 << 18;
      f.stack = std::make_unique<char[]>(kStack);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.get();
      f.context.uc_stack.ss_size = kStack;
      makecontext(&f.context, Start::body, 0);
    }
    for (int running = block; running > 0;)
      for (current = 0; current < unsigned(block); ++current) {
        if (fibers[current].done) continue;
        threadIdx = {current, 0, 0};
        swapcontext(&scheduler, &fibers[current].context);
        running -= fibers[current].done;
      }
  }
}
template <class... Parameters>
inline void launch(void (*kernel)(Parameters...), int grid, int block, void** arguments) {
  launch(kernel, grid, block, arguments, std::index_sequence_for<Parameters...>());
}

}  // namespace emulated

inline void __syncthreads() { emulated::wait(emulated::whole, emulated::fibers.size()); }
template <class T>
inline T __shfl_xor_sync(u32, T x, int distance) {
  return emulated::exchanged(x).of[(emulated::current % 32) ^ distance];
}
template <class T>
inline T __shfl_up_sync(u32, T x, int distance) {
  const int own = emulated::current % 32;
  return emulated::exchanged(x).of[own >= distance ? own - distance : own];
}
template <class T>
inline T __shfl_sync(u32, T x, int own) {
  return emulated::exchanged(x).of[own % 32];
}

template <class To, class From>
inline To as(From x) {
  To found;
  memcpy(&found, &x, sizeof(To));
  return found;
}
inline float __uint_as_float(u32 x) { return as<float>(x); }
inline float __int_as_float(int x) { return as<float>(x); }
inline u32 __float_as_uint(float x) { return as<u32>(x); }
inline int __float2int_rz(float x) {
  return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : int(x);
}
inline long long __float2ll_rz(float x) {
  return x >= 0x1p63f ? INT64_MAX : x <= -0x1p63f ? INT64_MIN : (long long)x;
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T>
inline void atomicAdd(T* to, T x) {
  *to += x;
}
inline size_t __cvta_generic_to_shared(const void* at) {
  return static_cast<const unsigned char*>(at) - shared_bytes;
}

namespace ptx {

inline u16 bf16_of(float x) {
  const u32 b = as<u32>(x);
  return u16(x != x ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
inline u16 f16_of(float x) { return as<u16>(_Float16(x)); }
inline float float_of(u16 f16) { return as<_Float16>(f16); }
inline float max_nan(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
inline float min_nan(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }

template <int kBytes>
inline void copy_async(u32 to, const void* from, u32 bytes) {
  if (to % kBytes || bytes && reinterpret_cast<size_t>(from) % kBytes) abort();
  emulated::fibers[emulated::current].copies.back().push_back({to, from, bytes, kBytes});
}
inline void commit_copies() { emulated::fibers[emulated::current].copies.emplace_back(); }
template <int kPending>
inline void wait_copies() {
  auto& groups = emulated::fibers[emulated::current].copies;
  for (; groups.size() > kPending + 1; groups.pop_front())
    for (const emulated::Copy& c : groups.front()) {
      memset(shared_bytes + c.to, 0, c.whole);
      memcpy(shared_bytes + c.to, c.from, c.bytes);
    }
}

inline void add_f16(void* to, u16 x) {
  u16* at = static_cast<u16*>(to);
  *at = f16_of(float_of(*at) + float_of(x));
}
inline void add_bf16(void* to, u16 x) {
  u16* at = static_cast<u16*>(to);
  *at = bf16_of(as<float>(u32(*at) << 16) + as<float>(u32(x) << 16));
}

template <int kCount>
inline void load_matrices(u32 row, u32 (&to)[kCount]) {
  const auto rows = emulated::exchanged(row);
  const int own = emulated::current % 32;
  for (int n = 0; n < kCount; ++n) {
    if (rows.of[8 * n + own / 4] % 16) abort();
    memcpy(&to[n], shared_bytes + rows.of[8 * n + own / 4] + own % 4 * 4, 4);
  }
}
template <int kCount>
inline void load_matrices_transposed(u32 row, u32 (&to)[kCount]) {
  const auto rows = emulated::exchanged(row);
  const int own = emulated::current % 32;
  for (int n = 0; n < kCount; ++n) {
    u16 pair[2];
    for (int i = 0; i < 2; ++i)
      memcpy(&pair[i], shared_bytes + rows.of[8 * n + own % 4 * 2 + i] + own / 4 * 2, 2);
    to[n] = u32(pair[0]) | u32(pair[1]) << 16;
  }
}

// kWide: elements along K of which a register holds two; else one.
template <bool kWide, class Of>
inline void mma(float& c0, float& c1, float& c2, float& c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                u32 b1, Of of) {
  struct Operands { u32 a[4], b[2]; };
  const auto all = emulated::exchanged(Operands{{a0, a1, a2, a3}, {b0, b1}});
  const int own = emulated::current % 32, half = kWide ? 8 : 4;
  float* c[4] = {&c0, &c1, &c2, &c3};
  for (int n = 0; n < 4; ++n) {
    const int row = own / 4 + n / 2 * 8, column = own % 4 * 2 + n % 2;
    for (int k = 0; k < 2 * half; ++k) {
      const int inner = kWide ? k % half / 2 : k % half;
      const u32 a = all.of[row % 8 * 4 + inner].a[row / 8 + 2 * (k / half)];
      const u32 b = all.of[column * 4 + inner].b[k / half];
      *c[n] += of(kWide ? a >> k % 2 * 16 & 0xffff : a) * of(kWide ? b >> k % 2 * 16 & 0xffff : b);
    }
  }
}
#define MULTIPLY(name, wide, value)                                                           \
  inline void name(float& c0, float& c1, float& c2, float& c3, u32 a0, u32 a1, u32 a2, u32 a3, \
                   u32 b0, u32 b1) {                                                          \
    mma<wide>(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, [](u32 x) -> float { return value; });  \
  }
MULTIPLY(mma_f16, true, float_of(u16(x)))
MULTIPLY(mma_bf16, true, as<float>(x << 16))
MULTIPLY(mma_tf32, false, as<float>(x & ~0x1fffu))
#undef MULTIPLY

}  // namespace ptx

#endif  // BACKENDS_CUDA_PTX_H_
