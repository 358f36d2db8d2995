// Device code on the CPU: each thread of a block is a fiber, which runs until it waits for others. Blocks
// of a cluster run together.
#ifndef BACKENDS_CUDA_TESTING_FIBERS_H_
#define BACKENDS_CUDA_TESTING_FIBERS_H_

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
#define __grid_constant__
#define __maxnreg__(...)
#define __builtin_assume(holds)
#define __shared__
#define __align__(bytes)
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = unsigned long long;
using u8 = unsigned char;
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct Place { unsigned x, y, z; };

inline Place threadIdx, blockIdx, gridDim;
// The shared memory of the block that runs; kernel.h declares it again, as an array.
constexpr unsigned kSharedBytes = 1 << 18;
unsigned char (*own_bytes)[];
#define shared_bytes (*own_bytes)

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

struct Phase { unsigned number = 0; long long bytes = 0; };
struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Waiting whole, named[16];
  std::vector<std::pair<u32, Phase>> phases;  // of signals, by where they are
  std::unique_ptr<unsigned char[]> held = std::make_unique<unsigned char[]>(kSharedBytes + 1024);
  unsigned char* bytes = held.get() + (1024 - reinterpret_cast<size_t>(held.get()) % 1024);
};

inline std::vector<Block> cluster;
inline Waiting together;  // the threads of all its blocks
inline Block* own;
inline ucontext_t scheduler;
inline unsigned current;

inline Fiber& fiber() { return own->fibers[current]; }
inline void yield() { swapcontext(&fiber().context, &scheduler); }
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
  Warp& warp = own->warps[current / 32];
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
    fiber().done = true;
    yield();
  }
};

// Lets a block be what is current.
inline void enter(Block& block) {
  own = &block;
  own_bytes = reinterpret_cast<unsigned char(*)[]>(block.bytes);
}

template <class... Parameters, size_t... N>
inline void launch(void (*kernel)(Parameters...), int grid, int block, int blocks, void** arguments,
                   std::index_sequence<N...>) {
  using Start = Started<Parameters...>;
  Start::kernel = kernel;
  Start::given = {*static_cast<Parameters*>(arguments[N])...};
  gridDim = {unsigned(grid), 1, 1};
  if (grid % blocks) abort();
  for (int number = 0; number < grid; number += blocks) {
    cluster = std::vector<Block>(blocks);
    together = {};
    for (Block& one : cluster) {
      memset(one.bytes, 0xff, kSharedBytes);
      one.fibers = std::vector<Fiber>(block);
      one.warps = std::vector<Warp>(block / 32);
      for (Fiber& f : one.fibers) {
        constexpr size_t kStack = 1 << 18;
        f.stack = std::make_unique<char[]>(kStack);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = kStack;
        makecontext(&f.context, Start::body, 0);
      }
    }
    for (int running = block * blocks; running > 0;)
      for (int n = 0; n < blocks; ++n) {
        enter(cluster[n]);
        blockIdx = {unsigned(number + n), 0, 0};
        for (current = 0; current < unsigned(block); ++current) {
          if (fiber().done) continue;
          threadIdx = {current, 0, 0};
          swapcontext(&scheduler, &fiber().context);
          running -= fiber().done;
        }
      }
  }
}
template <class... Parameters>
inline void launch(void (*kernel)(Parameters...), int grid, int block, int blocks,
                   void** arguments) {
  launch(kernel, grid, block, blocks, arguments, std::index_sequence_for<Parameters...>());
}

}  // namespace emulated

inline void __syncwarp() { emulated::exchanged(0); }
inline void __syncthreads() { emulated::wait(emulated::own->whole, emulated::own->fibers.size()); }
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
inline int __double2int_rz(double x) {
  return x >= 0x1p31 ? INT32_MAX : x <= -0x1p31 ? INT32_MIN : int(x);
}
inline long long __double2ll_rz(double x) {
  return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (long long)x;
}
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T>
inline T atomicAdd(T* to, T x) {
  const T before = *to;
  *to += x;
  return before;
}
// An address is an offset, with the number of the block in its cluster above.
inline size_t __cvta_generic_to_shared(const void* at) {
  const size_t block = emulated::own - emulated::cluster.data();
  return block << 24 | static_cast<const unsigned char*>(at) - shared_bytes;
}
inline unsigned char* shared_byte(u32 at) { return shared_bytes + (at & 0xffffff); }

#endif
