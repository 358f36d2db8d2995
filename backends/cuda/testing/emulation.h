// The instructions of ptx.h on the CPU; included before a kernel, in its place. Copies that run ahead
// arrive when they are waited for.
#ifndef BACKENDS_CUDA_PTX_H_
#define BACKENDS_CUDA_PTX_H_

#include "fibers.h"

namespace ptx {

inline float exp2_flushed(float x) {
  float found = exp2f(x);
  return found < 0x1p-126f ? 0.0f : found;
}
inline u16 bf16_of(float x) {
  const u32 b = as<u32>(x);
  return u16(x != x ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}
inline u16 f16_of(float x) { return as<u16>(_Float16(x)); }
inline float float_of(u16 f16) { return as<_Float16>(f16); }
inline u32 tf32_of(float x) {
  const u32 b = as<u32>(x);
  return (b & 0x7f800000u) == 0x7f800000u ? b : b + 0xfffu + ((b >> 13) & 1u);
}
inline float max_nan(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
inline float min_nan(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }

// Hints to the caches: accesses of aligned words.
template <int kLeastCopy>
struct Hinted {
  static constexpr int kLeast = kLeastCopy;
  template <class Word>
  static void load(Word& to, const Word* from) {
    if (reinterpret_cast<size_t>(from) % sizeof(Word)) abort();
    to = *from;
  }
  template <class Word>
  static void store(Word* to, const Word& from) {
    if (reinterpret_cast<size_t>(to) % sizeof(Word)) abort();
    *to = from;
  }
};
struct EvictFirst : Hinted<4> {};
struct EvictLast : Hinted<4> {};
struct PastL1 : Hinted<16> {};
template <int kBytes, class>
inline void copy_async(u32 to, const void* from, u32 bytes) {
  if (to % kBytes || bytes && reinterpret_cast<size_t>(from) % kBytes) abort();
  emulated::fiber().copies.back().push_back({to, from, bytes, kBytes});
}
inline void commit_copies() { emulated::fiber().copies.emplace_back(); }
template <int kPending>
inline void wait_copies() {
  auto& groups = emulated::fiber().copies;
  for (; groups.size() > kPending + 1; groups.pop_front())
    for (const emulated::Copy& c : groups.front()) {
      memset(shared_byte(c.to), 0, c.whole);
      memcpy(shared_byte(c.to), c.from, c.bytes);
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
    memcpy(&to[n], shared_byte(rows.of[8 * n + own / 4] + own % 4 * 4), 4);
  }
}
template <int kCount>
inline void load_matrices_transposed(u32 row, u32 (&to)[kCount]) {
  const auto rows = emulated::exchanged(row);
  const int own = emulated::current % 32;
  for (int n = 0; n < kCount; ++n) {
    u16 pair[2];
    for (int i = 0; i < 2; ++i)
      memcpy(&pair[i], shared_byte(rows.of[8 * n + own % 4 * 2 + i] + own / 4 * 2), 2);
    to[n] = u32(pair[0]) | u32(pair[1]) << 16;
  }
}

// kEach: elements along K that a register holds.
template <int kEach, class D, class Of>
inline void mma(D& c0, D& c1, D& c2, D& c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, Of of) {
  struct Operands { u32 a[4], b[2]; };
  const auto all = emulated::exchanged(Operands{{a0, a1, a2, a3}, {b0, b1}});
  const int own = emulated::current % 32, half = 4 * kEach;
  constexpr u32 kMask = ~0u >> (32 - 32 / kEach);
  D* c[4] = {&c0, &c1, &c2, &c3};
  for (int n = 0; n < 4; ++n) {
    const int row = own / 4 + n / 2 * 8, column = own % 4 * 2 + n % 2;
    for (int k = 0; k < 2 * half; ++k) {
      const int inner = k % half / kEach, shift = k % kEach * (32 / kEach);
      const u32 a = all.of[row % 8 * 4 + inner].a[row / 8 + 2 * (k / half)];
      const u32 b = all.of[column * 4 + inner].b[k / half];
      *c[n] += of(a >> shift & kMask) * of(b >> shift & kMask);
    }
  }
}
// Of 8 bits: the value of a code.
inline float of_eight(u8 x, int fraction, int bias) {
  const int exponent = x >> fraction & (127 >> fraction), part = x & ((1 << fraction) - 1);
  const int whole = part + (exponent ? 1 << fraction : 0);
  const float value = ldexpf(whole, (exponent ? exponent : 1) - bias - fraction);
  const bool nan = fraction == 3 ? (x & 127) == 127 : exponent == 31 && part;
  const float found = nan ? NAN : fraction == 2 && exponent == 31 ? INFINITY : value;
  return x & 128 ? -found : found;
}
#define MULTIPLY(name, D, each, value)                                                           \
  inline void name(D& c0, D& c1, D& c2, D& c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) { \
    mma<each>(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1, [](u32 x) -> D { return value; });         \
  }
MULTIPLY(mma_f16, float, 2, float_of(u16(x)))
MULTIPLY(mma_bf16, float, 2, as<float>(x << 16))
MULTIPLY(mma_tf32, float, 1, as<float>(x & ~0x1fffu))
MULTIPLY(mma_s8, int, 4, int8_t(x))
MULTIPLY(mma_e4m3, float, 4, of_eight(u8(x), 3, 7))
MULTIPLY(mma_e5m2, float, 4, of_eight(u8(x), 2, 15))
#undef MULTIPLY

// The words of a tensor map are its own here: address, bytes of an element, dimensions, swizzle, then
// elements and box of each dimension, the last one's first, its steps, a byte each, and whether it rounds
// f32 to tf32.
struct Signal { u32 pending, arrivals; };  // in memory; the phase and the bytes are kept beside it
inline emulated::Phase& phase_of(u32 at) {
  at &= 0xffffff;
  for (auto& [known, phase] : emulated::own->phases)
    if (known == at) return phase;
  return emulated::own->phases.emplace_back(at, emulated::Phase{}).second;
}
inline Signal& signal_of(u32 at) { return *reinterpret_cast<Signal*>(shared_byte(at)); }
inline void settle(u32 at) {
  Signal& signal = signal_of(at);
  emulated::Phase& phase = phase_of(at);
  if (signal.pending == 0 && phase.bytes == 0) {
    signal.pending = signal.arrivals;
    ++phase.number;
  }
}
inline void init_signal(u32 at, u32 arrivals) {
  signal_of(at) = {arrivals, arrivals};
  phase_of(at) = {};
}
inline void fence_signals() {}
inline void arrive(u32 at) {
  if (signal_of(at).pending-- == 0) abort();
  settle(at);
}
// Acts as if a block of the cluster were the own one.
template <class Act>
inline void in_block(u32 block, Act act) {
  emulated::Block* const before = emulated::own;
  emulated::enter(emulated::cluster.at(block));
  act();
  emulated::enter(*before);
}
inline void arrive_at(u32 at, u32 block) { in_block(block, [&] { arrive(at); }); }
inline void sync_cluster() {
  emulated::wait(emulated::together, emulated::cluster.size() * emulated::own->fibers.size());
}
inline void expect(u32 at, u32 bytes) {
  phase_of(at).bytes += bytes;
  arrive(at);
}
inline void await(u32 at, u32 parity) {
  while (phase_of(at).number % 2 == parity) emulated::yield();
}
template <int kThreads>
inline void sync_threads() { emulated::wait(emulated::own->named[1], kThreads); }
template <int kThreads>
inline void sync_group(int group) {
  if (emulated::current / kThreads != unsigned(group)) abort();
  emulated::wait(emulated::own->named[1 + group], kThreads);
}
template <int kRegisters>
inline void release_registers() {}
template <int kRegisters>
inline void take_registers() {}

// Calls act(element of the boxes, its address in the tensor or null) for each; returns bytes.
template <class Act>
inline long long each_of_box(const void* map, const long long* first, u64 count_dims, Act act) {
  const u64* words = static_cast<const u64*>(map);
  const u64 size = words[1], dims = words[2];
  const u64 *extents = words + 4, *box = words + 9;
  if (dims != count_dims) abort();
  u64 count = 1;
  for (u64 d = 0; d < dims; ++d) count *= box[d];
  for (u64 n = 0; n < count; ++n) {
    u64 left = n, distance = 1;
    long long at = 0;
    bool inside = true;
    for (u64 d = 0; d < dims; ++d) {
      const long long place = first[d] + (long long)(left % box[d] * (words[14] >> 8 * d & 255));
      left /= box[d];
      inside = inside && place >= 0 && place < (long long)extents[d];
      at += place * distance;
      distance *= extents[d];
    }
    act(n * size, inside ? reinterpret_cast<char*>(words[0]) + at * size : nullptr);
  }
  return count * size;
}
// Where an element of a box lies in shared memory.
inline unsigned char* place_of(const void* map, u32 start, u64 offset) {
  const u64 swizzled = static_cast<const u64*>(map)[3];
  if (start % 128 || swizzled && start % (8 * swizzled)) abort();
  u64 at = start + offset;
  if (swizzled) at ^= (at >> 7 & (swizzled / 16 - 1)) << 4;
  return shared_byte(at);
}
template <size_t... N, class Given>
inline void copied(u32 to, const void* map, u32 signal, const Given& given,
                   std::index_sequence<N...>) {
  const long long first[] = {std::get<N>(given)...};
  const u64 size = static_cast<const u64*>(map)[1];
  phase_of(signal).bytes -= each_of_box(map, first, sizeof...(N), [&](u64 offset, char* from) {
    unsigned char* const place = place_of(map, to, offset);
    if (from && static_cast<const u64*>(map)[15])
      *reinterpret_cast<u32*>(place) = tf32_of(*reinterpret_cast<float*>(from)) & ~0x1fffu;
    else if (from) memcpy(place, from, size);
    else memset(place, 0, size);
  });
  settle(signal);
}
template <class, int kBlocks, class... Given>  // coordinates, then the signal
inline void copy_box(u32 to, const void* map, Given... given) {
  const auto all = std::make_tuple(given...);
  const u32 signal = __cvta_generic_to_shared(std::get<sizeof...(Given) - 1>(all));
  const auto copy = [&] {
    copied(to, map, signal, all, std::make_index_sequence<sizeof...(Given) - 1>());
  };
  if (kBlocks == 1) copy();
  else
    for (u32 block = 0; block < kBlocks; ++block) in_block(block, copy);
}
template <class, class... Coordinates>
inline void store_box(const void* map, u32 from, Coordinates... given) {
  const long long first[] = {given...};
  const u64 size = static_cast<const u64*>(map)[1];
  each_of_box(map, first, sizeof...(given), [&](u64 offset, char* to) {
    if (to) memcpy(to, place_of(map, from, offset), size);
  });
}
inline void finish_boxes() {}

inline void fence_shared() {}

// Blocks that do not run together run one after the other: what one waits for is there then, or never
// will be.
inline void raise(int* flag) { *flag = 1; }
inline void await_raised(const int* flag) {
  for (int turns = 0; *flag != 1; ++turns) {
    if (emulated::cluster.size() == 1 || turns == 1 << 20) abort();
    emulated::yield();
  }
}
inline void acquire_raised(const int* flag) { await_raised(flag); }
inline void fence_device() {}
inline void arrive_warpgroup() {}
inline void commit_warpgroup() {}
template <int kPending>
inline void wait_warpgroup() {}
inline void keep_order(float) {}
inline void keep_word(u32&) {}

// The element of an operand in shared memory as its descriptor says; along: of M or N. Where that is
// the contiguous dimension, panels are as far apart as the descriptor's first distance says.
template <class Word>
inline Word element(u64 matrix, bool along_is_contiguous, int along, int k) {
  const u32 start = u32(matrix & 0x3fff) << 4, panels = u32(matrix >> 16 & 0x3fff) << 4;
  const u32 groups = u32(matrix >> 32 & 0x3fff) << 4;
  const int mode = int(matrix >> 62), bytes = mode ? 256 >> mode : 16;
  const int row = along_is_contiguous ? k : along;
  const int column = (along_is_contiguous ? along : k) * int(sizeof(Word));
  u32 at = start + row / 8 * groups + row % 8 * bytes + column % bytes;
  if (along_is_contiguous) at += column / bytes * panels;
  else if (column >= bytes) abort();
  if (along_is_contiguous && sizeof(Word) != 2) abort();
  const int bits = mode ? 4 - mode : 0;
  at ^= (at >> 7 & ((1 << bits) - 1)) << 4;
  Word found;
  memcpy(&found, shared_bytes + at, sizeof(Word));
  return found;
}

#define WGMMA(name, Word, D, value)                                                             \
  template <int kColumns>                                                                       \
  struct name {                                                                                 \
    static constexpr int kEach = 4 / sizeof(Word), kDepth = 8 * kEach; /* of 4 bytes; all of K */ \
    static D of(Word x) { return value; }                                                       \
    template <int kA, int kB>                                                                   \
    static void multiply(D* top, D* bottom, u64 left, u64 right) {                              \
      const int own = emulated::current % 128, row = own / 32 * 16 + own % 32 / 4;              \
      for (int half = 0; half < 2; ++half)                                                      \
        for (int n = 0; n < kColumns / 4; ++n)                                                  \
          for (int k = 0; k < kDepth; ++k)                                                      \
            (half ? bottom : top)[n] +=                                                         \
                of(element<Word>(left, kA, row + 8 * half, k)) *                                \
                of(element<Word>(right, kB, n / 2 * 8 + own % 4 * 2 + n % 2, k));               \
    }                                                                                           \
    template <int kB>                                                                           \
    static void multiply(D* top, D* bottom, const u32* a, u64 right) {                          \
      struct Operand { u32 a[4]; };                                                             \
      const auto all = emulated::exchanged(Operand{{a[0], a[1], a[2], a[3]}});                  \
      const int own = emulated::current % 32;                                                   \
      for (int half = 0; half < 2; ++half)                                                      \
        for (int n = 0; n < kColumns / 4; ++n)                                                  \
          for (int k = 0; k < kDepth; ++k) {                                                    \
            const Operand& held = all.of[own / 4 * 4 + k % (4 * kEach) / kEach];                \
            const u32 word = held.a[half + k / (4 * kEach) * 2];                                \
            (half ? bottom : top)[n] +=                                                         \
                of(Word(word >> k % kEach * 8 * sizeof(Word))) *                                \
                of(element<Word>(right, kB, n / 2 * 8 + own % 4 * 2 + n % 2, k));               \
          }                                                                                     \
    }                                                                                           \
  };
WGMMA(wgmma_f16, u16, float, float_of(x))
WGMMA(wgmma_bf16, u16, float, as<float>(u32(x) << 16))
WGMMA(wgmma_tf32, u32, float, as<float>(x & ~0x1fffu))
WGMMA(wgmma_e4m3, u8, float, of_eight(x, 3, 7))
WGMMA(wgmma_e5m2, u8, float, of_eight(x, 2, 15))
WGMMA(wgmma_s8, u8, int, int8_t(x))
#undef WGMMA

}  // namespace ptx

#endif  // BACKENDS_CUDA_PTX_H_
