// The emulator itself: fibers, wavefronts and memory. One file includes it, which is compiled once for all
// kernels.
#ifndef BACKENDS_HIP_NATIVE_RUNTIME_H_
#define BACKENDS_HIP_NATIVE_RUNTIME_H_

#include "emulator.h"

alignas(1024) unsigned char shared_bytes[163840];

namespace emulated {

constexpr int kMostThreads = 1024, kMostTensors = 64;
constexpr u64 kStack = 128 << 10;
constexpr u64 kStride = kStack + 448;  // else all stacks begin in the same set of the cache

struct Tensor { const unsigned char* start; u64 bytes; const char* name; };
enum State { kReady, kAtBarrier, kAtExchange, kDone };

struct Fiber {
  void* stack;  // where it goes on
  State state;
  Collective operation;
  const void* site;  // of its exchange
  void* given;
};

Now now;
bool faulted;
char message[512];
void (*body)();
void** arguments;

namespace {

Fiber fibers[kMostThreads];
Fiber* running;
void* scheduler;
Tensor tensors[kMostTensors];
int tensor_count, shared_size;
alignas(4096) unsigned char stacks[kMostThreads * kStride];

// Of each byte of LDS, who wrote and who read it: epoch << 11 | thread. A barrier begins an epoch.
constexpr u32 kThreads = 2047, kMany = 2047;
u32 writer[sizeof(shared_bytes)], reader[sizeof(shared_bytes)];
u32 epoch, first_epoch;

// What a thread copies to LDS past the registers, until it waits for it. The hardware counts to 63.
constexpr int kMostFlights = 63;
struct Flight { u32 at, bytes; unsigned char data[16]; };
Flight flights[kMostThreads][kMostFlights];
int flight_count[kMostThreads], in_flight;
u16 flying[sizeof(shared_bytes)];  // of each byte of LDS, the thread whose copy will fill it, and 1

}  // namespace

// Leaves a stack and goes on with another.
__attribute__((naked, noinline)) void switch_to(void** from, void* to) {
#if defined(__x86_64__)
  asm volatile(
      "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
      "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
      "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nretq");
#else
  asm volatile(
      "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
      "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
      "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
      "stp d14, d15, [sp, #144]\nmov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
      "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
      "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
      "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
      "ldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret");
#endif
}

void yield(State state) {
  running->state = state;
  switch_to(&running->stack, scheduler);
}

void stop() { yield(kDone); }
void barrier() { yield(kAtBarrier); }

void collective(void* given, Collective operation) {
  running->given = given;
  running->operation = operation;
  running->site = __builtin_return_address(0);
  yield(kAtExchange);
}

// -- memory -----------------------------------------------------------------------------------------

// Before an access of LDS: bounds, and what other threads did since the last barrier.
template <bool kWrites>
void touch_shared(u64 at, int bytes) {
  if (at + bytes > u64(shared_size))
    fault("LDS overrun", "byte %llu of %d of LDS", at + bytes - 1, shared_size);
  const u32 mine = epoch << 11 | now.thread.x;
  u32 bad = 0, never = 0;
  for (int n = 0; in_flight && n < bytes; ++n)
    if (flying[at + n])
      fault("copy in flight", "%s byte %llu of LDS, which a copy of thread %d will fill: it waits for the copy, then a barrier", kWrites ? "writes" : "reads", at + n, flying[at + n] - 1);
  for (int n = 0; n < bytes; ++n) {
    const u32 w = writer[at + n] ^ mine, r = reader[at + n] ^ mine;
    bad |= w != 0 && w <= kThreads;
    if (kWrites) bad |= r != 0 && r <= kThreads;
    else never |= writer[at + n] >> 11 < first_epoch;
  }
  if (bad)
    fault("race", "%s byte %llu of LDS, which another thread touched since the last barrier", kWrites ? "writes" : "reads", at);
  if (never) fault("uninitialised", "reads byte %llu of LDS, which no thread of the block wrote", at);
  for (int n = 0; n < bytes; ++n) {
    if (kWrites) writer[at + n] = mine;
    else reader[at + n] = (reader[at + n] ^ mine) - 1 < kThreads ? epoch << 11 | kMany : mine;
  }
}

template <bool kWrites>
void touch(const void* address, int bytes) {
  const auto* at = static_cast<const unsigned char*>(address);
  if (u64(at - shared_bytes) < sizeof(shared_bytes)) return touch_shared<kWrites>(at - shared_bytes, bytes);
  if (u64(at - stacks) < sizeof(stacks)) return;
  for (int n = 0; n < tensor_count; ++n)
    if (u64(at - tensors[n].start) + bytes <= tensors[n].bytes) return;
  if (u64(at - reinterpret_cast<unsigned char*>(&now)) < sizeof(now)) return;
  int nearest = 0;
  long long least = -1, offset = 0;
  for (int n = 0; n < tensor_count; ++n) {
    const long long from = at - tensors[n].start, size = tensors[n].bytes;
    const long long far = from < 0 ? -from : from - size < 0 ? 0 : from - size;
    if (least < 0 || far < least) least = far, nearest = n, offset = from;
  }
  fault("out of bounds", "%s byte %lld of `%s`, which has %llu", kWrites ? "writes" : "reads", offset,
        tensor_count ? tensors[nearest].name : "", tensor_count ? tensors[nearest].bytes : 0);
}

// -- copies past the registers ----------------------------------------------------------------------

// The places that the threads of a wavefront copy to: the hardware takes the first, and puts the bytes
// of each thread behind those of the thread before.
struct Places {
  u64 at;
  int bytes, wrong;
  static void all(void** given) {
    const Places& first = *static_cast<Places*>(given[0]);
    for (int thread = 0; thread < kWave; ++thread) {
      Places& one = *static_cast<Places*>(given[thread]);
      one.wrong = one.at != first.at + u64(thread) * first.bytes;
    }
  }
};

void land_oldest() {
  const int own = now.thread.x;
  const Flight& one = flights[own][0];
  for (u32 n = 0; n < one.bytes; ++n) {
    shared_bytes[one.at + n] = one.data[n];
    flying[one.at + n] = 0;
    writer[one.at + n] = epoch << 11 | own;
  }
  --flight_count[own], --in_flight;
  for (int n = 0; n < flight_count[own]; ++n) flights[own][n] = flights[own][n + 1];
}
void land() {
  while (flight_count[now.thread.x]) land_oldest();
}

// from: nullptr where a mask does not hold.
void copied_to_shared(void* to, const void* from, int bytes) {
  const u64 at = static_cast<unsigned char*>(to) - shared_bytes;
  Places own{at, bytes, 0};
  collective(&own, Places::all);
  if (own.wrong)
    fault("layout", "copies to byte %llu of LDS, which is not behind what the thread before copies", at);
  if (from) touch<false>(from, bytes);
  touch<true>(to, bytes);
  if (flight_count[now.thread.x] == kMostFlights) land_oldest();
  Flight& one = flights[now.thread.x][flight_count[now.thread.x]++];
  one.at = at, one.bytes = bytes;
  __builtin_memset(one.data, 0, sizeof(one.data));
  if (from) __builtin_memcpy(one.data, from, bytes);
  for (int n = 0; n < bytes; ++n) flying[at + n] = now.thread.x + 1;
  ++in_flight;
}

void forget_flights() {
  if (!in_flight) return;
  __builtin_memset(flying, 0, sizeof(flying));
  __builtin_memset(flight_count, 0, sizeof(flight_count));
  in_flight = 0;
}

// -- launches ---------------------------------------------------------------------------------------

void start() {
  body();
  yield(kDone);
}

void prepare(int count) {
  for (int n = 0; n < count; ++n) {
    void** top = reinterpret_cast<void**>(stacks + n * kStride + kStack - 64);
#if defined(__x86_64__)
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void*>(&start);
    fibers[n].stack = top - 8;  // six registers, then where to go
#else
    char* low = reinterpret_cast<char*>(top) - 160;
    __builtin_memset(low, 0, 160);
    reinterpret_cast<void**>(low)[11] = reinterpret_cast<void*>(&start);
    fibers[n].stack = low;
#endif
    fibers[n].state = kReady;
  }
}

// Runs the threads of a wavefront until each is at a barrier or done.
void run_wave(int first, bool reversed) {
  for (bool again = true; again && !faulted;) {
    again = false;
    for (int n = 0; n < kWave && !faulted; ++n) {
      const int own = first + (reversed ? kWave - 1 - n : n);
      if (fibers[own].state != kReady) continue;
      now.thread.x = own;
      running = &fibers[own];
      switch_to(&scheduler, running->stack);
    }
    if (faulted) return;
    int waiting = 0;
    for (int n = 0; n < kWave; ++n) waiting += fibers[first + n].state == kAtExchange;
    if (!waiting) return;
    void* all[kWave];
    for (int n = 0; n < kWave; ++n) {
      const Fiber& one = fibers[first + n];
      all[n] = one.given;
      const bool same = one.state == kAtExchange && one.operation == fibers[first].operation &&
                        one.site == fibers[first].site;
      if (same) continue;
      snprintf(message, sizeof(message), "divergent exchange, block %u, thread %d: threads of its wavefront "
               "are elsewhere", now.block.x, first + n);
      faulted = true;
      return;
    }
    fibers[first].operation(all);
    for (int n = 0; n < kWave; ++n) fibers[first + n].state = kReady;
    again = true;
  }
}

void run_block(int count, bool reversed) {
  first_epoch = ++epoch;
  forget_flights();
  __builtin_memset(shared_bytes, 0xff, shared_size);
  prepare(count);
  for (;;) {
    for (int n = 0; n < count && !faulted; n += kWave)
      run_wave(reversed ? count - kWave - n : n, reversed);
    if (faulted) return;
    int done = 0;
    for (int n = 0; n < count; ++n) done += fibers[n].state == kDone;
    if (done == count) return;
    if (done) {
      int at = 0;
      while (fibers[at].state == kDone) ++at;
      snprintf(message, sizeof(message), "divergent barrier, block %u, thread %d: %d of %d threads ended "
               "before it", now.block.x, at, done, count);
      faulted = true;
      return;
    }
    ++epoch;
    for (int n = 0; n < count; ++n) fibers[n].state = kReady;
  }
}

// All blocks of a grid; what was wrong, empty where nothing was.
const char* run_grid(int grid, int block, int shared, bool reversed) {
  faulted = false;
  message[0] = 0;
  shared_size = shared;
  now.threads.x = block;
  now.blocks.x = grid;
  for (int n = 0; n < grid && !faulted; ++n) {
    now.block.x = reversed ? grid - 1 - n : n;
    if (epoch >= (1u << 21) - 4096) {  // epochs of other launches are forgotten before they repeat
      __builtin_memset(writer, 0, sizeof(writer));
      __builtin_memset(reader, 0, sizeof(reader));
      epoch = 0;
    }
    run_block(block, reversed);
  }
  return message;
}

}  // namespace emulated

#define TOUCHED(bytes)                                                                                \
  extern "C" void __tsan_read##bytes(void* at) { emulated::touch<false>(at, bytes); }          \
  extern "C" void __tsan_write##bytes(void* at) { emulated::touch<true>(at, bytes); }          \
  extern "C" void __tsan_unaligned_read##bytes(void* at) { emulated::touch<false>(at, bytes); } \
  extern "C" void __tsan_unaligned_write##bytes(void* at) { emulated::touch<true>(at, bytes); }
TOUCHED(1)
TOUCHED(2)
TOUCHED(4)
TOUCHED(8)
TOUCHED(16)
#undef TOUCHED
extern "C" void __tsan_init() {}
extern "C" void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  emulated::touch<false>(from, bytes);
  emulated::touch<true>(to, bytes);
  return __builtin_memcpy(to, from, bytes);
}
extern "C" void* __tsan_memset(void* to, int value, unsigned long bytes) {
  emulated::touch<true>(to, bytes);
  return __builtin_memset(to, value, bytes);
}

// Tells which tensors there are.
extern "C" EXPORTED const char* emulated_tensors(const emulated::Tensor* given, int count) {
  emulated::tensor_count = count;
  for (int n = 0; n < count; ++n) emulated::tensors[n] = given[n];
  return nullptr;
}

#endif  // BACKENDS_HIP_NATIVE_RUNTIME_H_
