// What kernels see of the emulator: where a work-item is, exchanges in a wavefront, how a grid is run. The
// rest is in runtime.h, which is compiled once. No header of the C++ library: a kernel compiles with it
// in a fraction of a second.
#ifndef BACKENDS_HIP_NATIVE_EMULATOR_H_
#define BACKENDS_HIP_NATIVE_EMULATOR_H_

#define HIDDEN __attribute__((disable_sanitizer_instrumentation))
#define EXPORTED __attribute__((visibility("default")))

extern "C" int snprintf(char*, unsigned long, const char*, ...);

#pragma GCC visibility push(hidden)
alignas(1024) extern unsigned char shared_bytes[163840];  // the LDS of one block

namespace emulated {

using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

constexpr int kWave = 64;

struct Place { unsigned x; };
typedef void (*Collective)(void** all);

// What the running work-item sees of itself.
struct Now {
  Place thread, block, threads, blocks;
};

extern Now now;
extern bool faulted;
extern char message[512];
extern void (*body)();
extern void** arguments;

void stop();     // the running work-item has ended
void barrier();  // all threads of the block
// An operation of all threads of a wavefront on what each gives, which lies on its stack.
void collective(void* given, Collective operation);
// Copies past the registers, from nullptr where a mask does not hold; and those of the thread arrive.
void copied_to_shared(void* to, const void* from, int bytes);
void land();
// All blocks of a grid run `body`; what was wrong, empty where nothing was.
const char* run_grid(int grid, int block, int shared, bool reversed);

// Notes the first fault, and does not return to the kernel.
template <class... Values>
HIDDEN __attribute__((noinline)) void fault(const char* kind, const char* words, Values... values) {
  if (!faulted) {
    const int used = snprintf(message, sizeof(message), "%s, block %u, thread %u: ", kind, now.block.x, now.thread.x);
    snprintf(message + used, sizeof(message) - used, words, values...);
  }
  faulted = true;
  stop();
  __builtin_trap();
}

template <class T>
struct Exchange {
  T mine, found;
  int from;
  HIDDEN static void all(void** given) {
    for (int thread = 0; thread < kWave; ++thread) {
      Exchange& one = *static_cast<Exchange*>(given[thread]);
      one.found = static_cast<Exchange*>(given[one.from])->mine;
    }
  }
};
template <class T>
HIDDEN inline T exchanged(T x, int from) {
  Exchange<T> own{x, x, from};
  collective(&own, Exchange<T>::all);
  return own.found;
}

// As xf32 reads an operand: f32 rounded to a fraction of 10 bits, ties to even.
HIDDEN inline float rounded(float x) {
  const u32 b = __builtin_bit_cast(u32, x);
  if ((b & 0x7f800000u) == 0x7f800000u) return x;
  return __builtin_bit_cast(float, (b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu);
}

template <class T, T... N>
struct Numbers {};

template <class... Parameters>
struct Kernel {
  static inline void (*held)(Parameters...);
  template <int... N>
  HIDDEN static void call(Numbers<int, N...>) {
    held(*static_cast<Parameters*>(arguments[N])...);
  }
  HIDDEN static void run() { call(__make_integer_seq<Numbers, int, sizeof...(Parameters)>{}); }
};

// A kernel's grid. given: where the value of each parameter lies.
template <class... Parameters>
HIDDEN inline const char* launched(void (*kernel)(Parameters...), int grid, int block, int shared,
                                   bool reversed, void** given) {
  Kernel<Parameters...>::held = kernel;
  body = Kernel<Parameters...>::run;
  arguments = given;
  return run_grid(grid, block, shared, reversed);
}

}  // namespace emulated
#pragma GCC visibility pop

#endif  // BACKENDS_HIP_NATIVE_EMULATOR_H_
